// SPDX-License-Identifier: Apache-2.0
#include "hub/messages.hpp"

#include "document/json.hpp"
#include "support/catch.hpp"

namespace kb::hub {

namespace {

document::Node json(std::string_view text) {
    return *document::parse_json(text, {});
}

} // namespace

TEST_CASE("requests to create a repository are read from every client", "[hub][messages]") {
    const Result<CreateRepo> stock =
        parse_create_repo(json(R"({"name":"relu","organization":"acme","type":"kernel"})"));
    CHECK(*stock == CreateRepo{.type = RepoType::kernels, .name = "relu", .organization = "acme"});
    CHECK(parse_create_repo(json(R"({"name":"m","organization":null})"))->type == RepoType::models);
    CHECK(parse_create_repo(json(R"({"name":"m","private":true})"))->visibility ==
          Visibility::private_);
    CHECK(parse_create_repo(json(R"({"name":"m","visibility":"private"})"))->visibility ==
          Visibility::private_);
    CHECK(parse_create_repo(json(R"({"name":"m","private":false})"))->visibility ==
          Visibility::public_);
    CHECK(parse_create_repo(json(R"({"name":"acme/m"})"))->organization == "acme");
    const std::string bad = GENERATE(R"({})",
                                     R"({"name":1})",
                                     R"({"name":"m","type":"wheel"})",
                                     R"([])",
                                     R"({"name":"m","visibility":"secret"})");
    INFO(bad);
    CHECK_FALSE(parse_create_repo(json(bad)).has_value());
}

TEST_CASE("our own request to create a repository reads back", "[hub][messages]") {
    const CreateRepo request{.type = RepoType::kernels,
                             .name = "relu",
                             .organization = "acme",
                             .visibility = Visibility::private_};
    CHECK(*parse_create_repo(to_json(request)) == request);
}

TEST_CASE("refs round-trip and always list converts", "[hub][messages]") {
    const GitOid commit = digest::sha1("c");
    Refs refs{.branches = {{.name = "main", .ref = "refs/heads/main", .target = commit}},
              .tags = {{.name = "t", .ref = "refs/tags/t", .target = commit}}};
    CHECK(*parse_refs(to_json(refs)) == refs);
    CHECK(to_json(refs).find("converts")->is_array());
    CHECK(to_json(refs).find("pullRequests") == nullptr);
    refs.pull_requests = {{{.name = "refs/pr/1", .ref = "refs/pr/1", .target = commit}}};
    CHECK(*parse_refs(to_json(refs)) == refs);
    CHECK(refs.branch("main")->target == commit);
    CHECK(refs.branch("v1") == nullptr);
    CHECK_FALSE(parse_refs(json(R"({"branches":[{"name":"x"}]})")).has_value());
}

TEST_CASE("preupload messages round-trip", "[hub][messages]") {
    const Preupload request{.files = {{.path = RelPath::literal("a.so"),
                                       .size = 9,
                                       .sample = std::string("\x7F"
                                                             "ELF\0",
                                                             5)}}};
    CHECK(*parse_preupload(to_json(request)) == request);
    const PreuploadAnswer answer{
        .files = {{.path = RelPath::literal("a.so"), .mode = UploadMode::lfs},
                  {.path = RelPath::literal("b"), .should_ignore = true, .remote_oid = "abc"}}};
    CHECK(*parse_preupload_answer(to_json(answer)) == answer);
    // One client leaves out shouldIgnore, a server may too.
    CHECK(
        parse_preupload_answer(json(R"({"files":[{"path":"a","uploadMode":"lfs"}]})")).has_value());
    CHECK_FALSE(
        parse_preupload_answer(json(R"({"files":[{"path":"a","uploadMode":"x"}]})")).has_value());
    CHECK_FALSE(parse_preupload(json(R"({"files":[{"path":"../a","size":1}]})")).has_value());
}

TEST_CASE("the answer to a commit round-trips", "[hub][messages]") {
    CommitAnswer answer{.commit = digest::sha1("c"), .url = "http://h/kernels/a/b/commit/x"};
    CHECK(*parse_commit_answer(to_json(answer)) == answer);
    answer.pull_request_url = "http://h/kernels/a/b/discussions/1";
    CHECK(*parse_commit_answer(to_json(answer)) == answer);
    CHECK_FALSE(parse_commit_answer(json(R"({"commitOid":"x"})")).has_value());
}

TEST_CASE("whoami round-trips", "[hub][messages]") {
    const WhoAmI who{.name = "alice", .role = "write", .organizations = {"acme"}};
    CHECK(*parse_whoami(to_json(who)) == who);
    CHECK(parse_whoami(json(R"({"name":"bob"})"))->organizations.empty());
    CHECK_FALSE(parse_whoami(json(R"({})")).has_value());
}

TEST_CASE("times are written as UTC", "[hub][messages]") {
    CHECK(iso_time(0) == "1970-01-01T00:00:00.000Z");
    CHECK(iso_time(951782400) == "2000-02-29T00:00:00.000Z");
    CHECK(iso_time(1767225599) == "2025-12-31T23:59:59.000Z");
    CHECK(iso_time(4107542400) == "2100-03-01T00:00:00.000Z");
    CHECK(iso_time(-1) == "1969-12-31T23:59:59.000Z");
}

TEST_CASE("a commit in a history shows title, authors and time", "[hub][messages]") {
    const document::Node node =
        to_json(CommitInfo{.title = "t", .message = "m", .authors = {"alice"}, .time = 0});
    CHECK(node.text_or("title") == "t");
    CHECK(node.text_or("message") == "m");
    CHECK(node.find("authors")->as_array()[0].text_or("user") == "alice");
    CHECK(node.text_or("date") == "1970-01-01T00:00:00.000Z");
}

} // namespace kb::hub
