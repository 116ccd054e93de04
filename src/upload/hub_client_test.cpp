// SPDX-License-Identifier: Apache-2.0
#include "upload/hub_client.hpp"

#include "support/catch.hpp"
#include "upload/fake_hub.hpp"

using namespace kb;
using namespace kb::upload;

namespace {

class NoClock final : public sys::Clock {
public:
    std::int64_t unix_seconds() override { return 0; }

    std::chrono::steady_clock::time_point now() override { return {}; }

    bool sleep(std::chrono::milliseconds) override { return true; }
};

/// Answers everything with one response and keeps what was asked.
class OneAnswer final : public http::HttpClient {
public:
    Result<http::Response> send(const http::Request& request) override {
        requests.push_back(request);
        return answer;
    }

    http::Response answer{};
    std::vector<http::Request> requests{};
};

struct Fixture {
    OneAnswer wire{};
    NoClock clock{};
    http::Retrier retrier{.client = &wire, .clock = &clock};
    HubClient hub{retrier,
                  http::Url::parse("http://h/base").value(),
                  http::Secret{"hf_t"},
                  hub::RepoId::parse(hub::RepoType::kernels, "acme/demo").value()};
};

} // namespace

TEST_CASE("each failed status has its own text and code", "[upload][hub]") {
    const auto [status, code, words] = GENERATE(table<int, ErrorCode, const char*>({
        {401, ErrorCode::denied, "does not accept the token"},
        {403, ErrorCode::denied, "the right to write"},
        {404, ErrorCode::not_found, "check --repo-id, --branch and --endpoint"},
        {409, ErrorCode::corrupt, "busy with another change"},
        {412, ErrorCode::corrupt, "somebody else committed"},
        {413, ErrorCode::denied, "too large for this registry"},
        {429, ErrorCode::transient, "too many requests"},
        {507, ErrorCode::denied, "no space left"},
        {500, ErrorCode::transient, "the registry failed"},
        {422, ErrorCode::corrupt, "refused the request"},
    }));
    const Error error =
        explain_status({.http = status, .message = "its words"}, "doing it", HasToken::yes);
    CHECK(error.code == code);
    CHECK(error.message.contains(words));
    CHECK(error.message.contains("doing it failed"));
    CHECK(error.message.contains("its words"));
    CHECK(error.message.contains(std::to_string(status)));
}

TEST_CASE("without a token the advice for 401 is to set one", "[upload][hub]") {
    const Error error = explain_status({.http = 401}, "doing it", HasToken::no);
    CHECK(error.message.contains("set HF_TOKEN or HF_TOKEN_PATH"));
    for (const HasToken has_token : {HasToken::no, HasToken::yes}) {
        const Error mirror = explain_status({.http = 401}, "reading", has_token, TokenPlace::file);
        CHECK(mirror.message.contains("--token-file"));
        CHECK_FALSE(mirror.message.contains("set HF_TOKEN"));
    }
}

TEST_CASE("urls stand below the endpoint, segments are encoded", "[upload][hub]") {
    Fixture f;
    f.wire.answer = {.status = 200, .body = "{}"};
    static_cast<void>(f.hub.create_branch("release/1 x"));
    static_cast<void>(f.hub.lfs_batch({}));
    static_cast<void>(f.hub.post_commit("v1", "x\n", "create_pr=1"));
    REQUIRE(f.wire.requests.size() == 3);
    CHECK(f.wire.requests[0].url.to_wire() ==
          "http://h/base/api/kernels/acme/demo/branch/release%2F1%20x");
    CHECK(f.wire.requests[1].url.to_wire() ==
          "http://h/base/kernels/acme/demo.git/info/lfs/objects/batch");
    CHECK(f.wire.requests[2].url.to_wire() ==
          "http://h/base/api/kernels/acme/demo/commit/v1?create_pr=1");
    CHECK(f.wire.requests[2].headers.find("Content-Type") == "application/x-ndjson");
    CHECK(f.hub.web_url("/tree/v1").to_wire() == "http://h/base/kernels/acme/demo/tree/v1");
}

TEST_CASE("a page on another host is asked of the endpoint", "[upload][hub]") {
    Fixture f;
    f.wire.answer = {.status = 200,
                     .headers = {{"Link", "<http://internal:9/x?cursor=7>; rel=\"next\""}},
                     .body = "[]"};
    const auto tree = f.hub.read_tree(digest::sha1("c"));
    REQUIRE_FALSE(tree.has_value()); // the same page for ever
    REQUIRE(f.wire.requests.size() == 2);
    CHECK(f.wire.requests[1].url.host() == "h");
    CHECK(f.wire.requests[1].url.query() == "cursor=7");
    CHECK(f.wire.requests[1].bearer.reveal() == "hf_t");
}

TEST_CASE("a verify address elsewhere does not get the token", "[upload][hub]") {
    Fixture f;
    f.wire.answer = {.status = 200, .body = "{}"};
    const hub::LfsObject object{.size = 1};
    REQUIRE(f.hub.lfs_verify({.href = "http://other/v"}, object).has_value());
    REQUIRE(f.hub.lfs_verify({.href = "http://h/v"}, object).has_value());
    REQUIRE(
        f.hub.lfs_verify({.href = "http://h/v", .header = {{"authorization", "Basic x"}}}, object)
            .has_value());
    REQUIRE(f.wire.requests.size() == 3);
    CHECK(f.wire.requests[0].bearer.empty());
    CHECK(f.wire.requests[1].bearer.reveal() == "hf_t");
    CHECK(f.wire.requests[2].bearer.empty());
}

TEST_CASE("an answer that is not what was expected is an error", "[upload][hub]") {
    const auto* body = GENERATE("", "<html>", "{}", "[1]", "{\"branches\":1}");
    Fixture f;
    f.wire.answer = {.status = 200, .body = body};
    CHECK_FALSE(f.hub.read_refs().has_value());
    if (std::string_view{body} != "[1]") {
        CHECK_FALSE(f.hub.read_tree(digest::sha1("c")).has_value());
    }
}

TEST_CASE("a registry's words never show the token", "[upload][hub]") {
    Fixture f;
    f.wire.answer = {
        .status = 403, .headers = {{"X-Request-Id", "r-1"}}, .body = "{\"error\":\"no hf_t\"}"};
    const auto made = f.hub.create_repo(hub::Visibility::public_);
    REQUIRE_FALSE(made.has_value());
    CHECK_FALSE(made.error().to_text().contains("hf_t "));
    CHECK(made.error().to_text().contains("no ***"));
    CHECK(made.error().to_text().contains("[request r-1]"));
}
