// SPDX-License-Identifier: Apache-2.0
#include "package/metadata.hpp"

#include "support/catch.hpp"

namespace kb::package {
namespace {

constexpr const char* kMinimal = R"({"name":"relu","id":"_relu_cpu_x","version":1,
"license":"apache-2.0","python-depends":[],"backend":{"type":"cpu"}})";

Metadata full() {
    return {.name = "relu",
            .id = "_relu_cuda_1a2b3c4",
            .version = 3,
            .license = "apache-2.0",
            .upstream = "https://example.org/u",
            .source = "https://example.org/s",
            .kernels_minver = "0.17.0",
            .python_depends = {"einops"},
            .kernel_depends = {{.repo_id = "o/a", .version = 2},
                               {.repo_id = "o/b", .revision = "main"}},
            .backend = "cuda",
            .archs = std::vector<std::string>{"9.0a", "10.0", "8.0", "8.0"},
            .digest = PackageDigest{.files = {{"z", "Z"}, {"a", "A"}}},
            .provenance = Provenance{.tool_version = "0.1.0",
                                     .tool = SourceState{std::string(40, 'a'), false},
                                     .kernel = SourceState{std::string(64, 'b'), true},
                                     .build_key = "k",
                                     .lock_digest = "l",
                                     .sandbox = "namespaces"},
            .experimental = true};
}

TEST_CASE("metadata is written in the format's key order", "[package][metadata]") {
    CHECK(write_metadata(full()) == R"({
  "name": "relu",
  "id": "_relu_cuda_1a2b3c4",
  "version": 3,
  "license": "apache-2.0",
  "upstream": "https://example.org/u",
  "source": "https://example.org/s",
  "kernels-minver": "0.17.0",
  "python-depends": [
    "einops"
  ],
  "kernel-depends": [
    {
      "repo-id": "o/a",
      "version": 2
    },
    {
      "repo-id": "o/b",
      "revision": "main"
    }
  ],
  "backend": {
    "type": "cuda",
    "archs": [
      "10.0",
      "8.0",
      "9.0a"
    ]
  },
  "digest": {
    "algorithm": "sha256",
    "files": {
      "a": "A",
      "z": "Z"
    }
  },
  "provenance": {
    "kernel-builder": {
      "version": "0.1.0",
      "commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "dirty": false
    },
    "kernel": {
      "commit": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
      "dirty": true
    },
    "build": {
      "key": "k",
      "lock": "l",
      "sandbox": "namespaces"
    }
  },
  "experimental": true
}
)");
}

TEST_CASE("metadata reads back what it wrote", "[package][metadata]") {
    const std::string text = write_metadata(full());
    const auto read = parse_metadata(text);
    REQUIRE(read);
    CHECK(read->version == 3);
    CHECK(read->kernel_depends == full().kernel_depends);
    CHECK(read->digest == full().digest);
    CHECK(read->provenance == full().provenance);
    CHECK(read->provenance->is_dirty());
    CHECK(read->experimental);
    CHECK(write_metadata(*read) == text);
}

TEST_CASE("keys that we do not know survive at every level", "[package][metadata]") {
    const std::string foreign = R"({"zz":{"deep":[1,{"x":null}]},"name":"relu","id":"i","version":1,
"license":"mit","python-depends":[],"backend":{"new":true,"type":"tachyon"},
"digest":{"algorithm":"sha256","files":{},"signed-by":"k"},
"provenance":{"kernel-builder":{"version":"9","extra":1},"other":{"a":2}}})";
    auto read = parse_metadata(foreign);
    REQUIRE(read);
    CHECK(read->backend == "tachyon");
    read->version = 2;
    const std::string text = write_metadata(*read);
    for (const char* kept : {R"("deep": [)",
                             R"("new": true)",
                             R"("signed-by": "k")",
                             R"("extra": 1)",
                             R"("other": {)",
                             R"("version": 2)"}) {
        CAPTURE(kept);
        CHECK(text.find(kept) != std::string::npos);
    }
    CHECK(write_metadata(*parse_metadata(text)) == text);
}

TEST_CASE("what readers tolerate is tolerated", "[package][metadata]") {
    const auto minimal = parse_metadata(kMinimal);
    REQUIRE(minimal);
    CHECK_FALSE(minimal->archs);
    CHECK(minimal->kernel_depends.empty());
    const std::string with_sha = std::string{kMinimal}.insert(
        1,
        R"("provenance":{"kernel-builder":{"version":"1"},"kernel":{"sha":")" +
            std::string(40, 'A') + R"(","dirty":false}},)");
    const auto old = parse_metadata(with_sha);
    REQUIRE(old);
    CHECK(old->provenance->kernel->commit == std::string(40, 'a'));
    CHECK(write_metadata(*old).find("\"sha\"") == std::string::npos);
    const std::string malformed = std::string{kMinimal}.insert(
        1, R"("provenance":{"kernel-builder":{"version":"1","commit":"xyz","dirty":true}},)");
    CHECK_FALSE(parse_metadata(malformed)->provenance->tool);
}

TEST_CASE("a missing or mistyped key is named", "[package][metadata]") {
    const auto [from, to, message] = GENERATE(table<const char*, const char*, const char*>({
        {R"("name":"relu",)", "", "the key 'name' is missing"},
        {R"("version":1)",
         R"("version":"1")",
         "'version' is a string, expected an integer that is not negative"},
        {R"("python-depends":[],)", "", "the key 'python-depends' is missing"},
        {R"("python-depends":[])",
         R"("python-depends":["a",1])",
         "'python-depends[1]' is an integer, expected a string"},
        {R"({"type":"cpu"})", R"({})", "the key 'backend.type' is missing"},
        {R"({"type":"cpu"})", R"("cpu")", "'backend' is a string, expected an object"},
        {R"("name":)",
         R"("kernel-depends":[{"repo-id":"a/b"}],"name":)",
         "'kernel-depends[0]' needs exactly one of 'version' and 'revision'"},
        {R"("name":)",
         R"("digest":{"algorithm":"md5","files":{}},"name":)",
         "'digest.algorithm' is 'md5', expected 'sha256' or 'sha512'"},
    }));
    std::string text = kMinimal;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string_view{from}.size(), to);
    const auto read = parse_metadata(text);
    REQUIRE_FALSE(read);
    CHECK(read.error().message == message);
    CHECK(read.error().code == ErrorCode::corrupt);
}

TEST_CASE("text that is no JSON object is refused", "[package][metadata]") {
    CHECK_FALSE(parse_metadata("[]"));
    CHECK_FALSE(parse_metadata(""));
    CHECK_FALSE(parse_metadata("{"));
}

} // namespace
} // namespace kb::package
