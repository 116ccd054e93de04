// SPDX-License-Identifier: Apache-2.0
#include "package/package_digest.hpp"

#include "support/catch.hpp"

namespace kb::package {
namespace {

FileEntry entry(std::string_view path, std::string_view content) {
    return {
        .path = RelPath::literal(path), .size = content.size(), .sha256 = digest::sha256(content)};
}

TEST_CASE("the digest leaves out metadata at the top and bytecode everywhere", "[package]") {
    const auto [path, digested] =
        GENERATE(table<const char*, bool>({{"__init__.py", true},
                                           {"metadata.json", false},
                                           {"metadata.json.sigstore", false},
                                           {"sub/metadata.json", true},
                                           {"a.pyc", false},
                                           {"sub/__pycache__/a.txt", false},
                                           {"__pycache__x/a.txt", true},
                                           {"_k.abi3.so", true}}));
    CAPTURE(path);
    CHECK(is_digested(RelPath::literal(path)) == digested);
}

TEST_CASE("bytecode that an import wrote differs from what was put there", "[package]") {
    const auto [path, expected] = GENERATE(
        table<const char*, Bytecode>({{"_ops.py", Bytecode::none},
                                      {"_ops.pyc", Bytecode::placed},
                                      {"_ops/__init__.pyc", Bytecode::placed},
                                      {"__pycache__/_ops.cpython-311.pyc", Bytecode::cached},
                                      {"sub/__pycache__/a.txt", Bytecode::cached},
                                      {"__pycache__x/a.py", Bytecode::none}}));
    CAPTURE(path);
    CHECK(bytecode_of(RelPath::literal(path)) == expected);
}

TEST_CASE("the digest maps paths in byte order to base64", "[package]") {
    const PackageDigest digest =
        compute_digest({entry("b", "abc"), entry("a", ""), entry("metadata.json", "{}")});
    CHECK(digest.algorithm == "sha256");
    REQUIRE(digest.files.size() == 2);
    CHECK(digest.files.begin()->first == "a");
    CHECK(digest.files.at("a") == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    CHECK(digest.files.at("b") == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

} // namespace
} // namespace kb::package
