// SPDX-License-Identifier: Apache-2.0
#include "package/verify.hpp"

#include "support/catch.hpp"

namespace kb::package {
namespace {

FileEntry entry(std::string_view path, std::string_view content) {
    return {
        .path = RelPath::literal(path), .size = content.size(), .sha256 = digest::sha256(content)};
}

Package sound() {
    Package package{.variant = "torch-stable-abi211-cpu-x86_64-linux",
                    .metadata = {.name = "my-relu", .id = "_my_relu_cpu_x", .backend = "cpu"},
                    .files = {entry("__init__.py", "x"),
                              entry("_my_relu_cpu_x.abi3.so", "y"),
                              entry("metadata.json", "{}")}};
    package.metadata.digest = compute_digest(package.files);
    return package;
}

std::string text(const std::vector<check::Finding>& findings) {
    std::string out;
    for (const check::Finding& f : findings) {
        out += f.check + " " + f.subject + ": " + f.message + "\n";
    }
    return out;
}

TEST_CASE("a sound package has no findings", "[package][verify]") {
    CHECK(text(verify(sound())).empty());
}

TEST_CASE("missing, changed and unknown files are told in that order", "[package][verify]") {
    Package package = sound();
    package.files = {entry("_my_relu_cpu_x.abi3.so", "z"),
                     entry("__pycache__/a.pyc", "ignored"),
                     entry("_ops/__init__.pyc", "code"),
                     entry("new.py", "n")};
    CHECK(text(verify(package.metadata, package.files)) ==
          "digest __init__.py: '__init__.py' is missing\n"
          "digest _my_relu_cpu_x.abi3.so: '_my_relu_cpu_x.abi3.so' differs from its digest\n"
          "digest new.py: 'new.py' is in no digest\n"
          "digest _ops/__init__.pyc: '_ops/__init__.pyc' is bytecode, which no digest covers\n");
}

TEST_CASE("a digest that is absent or cannot be recomputed is a finding", "[package][verify]") {
    Package package = sound();
    package.metadata.digest->algorithm = "sha512";
    CHECK(text(verify(package)) ==
          "digest : the digest uses sha512, which is not recomputed here\n");
    package.metadata.digest.reset();
    CHECK(text(verify(package)) == "digest : metadata.json holds no digest\n");
}

TEST_CASE("the directory must be what its name and metadata say", "[package][verify]") {
    Package package = sound();
    package.metadata.backend = "cuda";
    CHECK(text(verify(package)) ==
          "package torch-stable-abi211-cpu-x86_64-linux: the directory is named for backend 'cpu', "
          "metadata.json says 'cuda'\n");
    package = sound();
    package.variant = "relu-final";
    CHECK(text(verify(package)) ==
          "package relu-final: the directory name is no variant that a client would load\n");
    package = sound();
    package.variant = "torch-cpu";
    CHECK(text(verify(package)) ==
          "package torch-cpu: a variant for every machine holds a shared library\n");
    package = sound();
    std::erase_if(package.files, [](const FileEntry& f) { return f.path.extension() == ".so"; });
    package.metadata.digest = compute_digest(package.files);
    CHECK(text(verify(package)) ==
          "package torch-stable-abi211-cpu-x86_64-linux: the variant holds no shared library\n");
}

TEST_CASE("a package that cannot be imported or read by clients is told", "[package][verify]") {
    Package package = sound();
    package.files.erase(package.files.begin());
    package.metadata.digest = compute_digest(package.files);
    package.metadata.kernels_minver = "0.17";
    CHECK(text(verify(package)) ==
          "package __init__.py: the variant has no '__init__.py', so it cannot be imported\n"
          "package kernels-minver: 'kernels-minver' is '0.17', clients read three components "
          "only\n");
    package.files.push_back(entry("my_relu/__init__.py", "x")); // where old repositories have it
    package.metadata.digest = compute_digest(package.files);
    package.metadata.kernels_minver = "0.17.0";
    CHECK(text(verify(package)).empty());
}

} // namespace
} // namespace kb::package
