// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include "support/catch.hpp"

using namespace kb::http;

namespace {

Request request(Method method, std::string_view url) {
    return {.method = method,
            .url = Url::parse(url).value(),
            .headers = {{.name = "Authorization", .value = "Basic x"},
                        {.name = "Cookie", .value = "c"},
                        {.name = "Accept", .value = "text/plain"}},
            .bearer = Secret{"hf_x"}};
}

Response redirect(int status, std::string_view location) {
    return {.status = status, .headers = {{.name = "location", .value = std::string{location}}}};
}

} // namespace

TEST_CASE("a redirect to another origin carries no credentials", "[http][client]") {
    const auto next =
        next_request(request(Method::get, "http://h/a"), redirect(302, "http://cdn/x"));
    REQUIRE(next.has_value());
    REQUIRE(next->has_value());
    CHECK((*next)->bearer.empty());
    CHECK_FALSE((*next)->headers.find("Authorization").has_value());
    CHECK_FALSE((*next)->headers.find("Cookie").has_value());
    CHECK((*next)->headers.find("Accept") == "text/plain");
    CHECK((*next)->url.to_wire() == "http://cdn/x");
}

TEST_CASE("a redirect inside the origin keeps credentials", "[http][client]") {
    const auto next = next_request(request(Method::get, "http://h/a"), redirect(307, "/b"));
    REQUIRE(next.has_value());
    REQUIRE(next->has_value());
    CHECK((*next)->bearer.reveal() == "hf_x");
    CHECK((*next)->headers.find("Authorization") == "Basic x");
}

TEST_CASE("which redirects are followed depends on the method", "[http][client]") {
    const auto [method, status, followed] = GENERATE(table<Method, int, bool>({
        {Method::get, 301, true},
        {Method::get, 303, true},
        {Method::head, 302, true},
        {Method::get, 304, false},
        {Method::get, 200, false},
        {Method::post, 301, false},
        {Method::post, 303, false},
        {Method::post, 307, true},
        {Method::put, 308, true},
        {Method::put, 302, false},
    }));
    Request sent = request(method, "http://h/a");
    sent.body = std::string{"body"};
    const auto next = next_request(sent, redirect(status, "/b"));
    REQUIRE(next.has_value());
    CHECK(next->has_value() == followed);
    if (*next) {
        CHECK((*next)->method == method);
        CHECK(body_size((*next)->body) == 4);
    }
}

TEST_CASE("encryption is never given up by a redirect", "[http][client]") {
    const auto next =
        next_request(request(Method::get, "https://h/a"), redirect(302, "http://h/a"));
    REQUIRE_FALSE(next.has_value());
    CHECK(next.error().code == kb::ErrorCode::denied);
}

TEST_CASE("a redirect may be declined or lead nowhere", "[http][client]") {
    Request sent = request(Method::get, "http://h/a");
    sent.redirects = Redirects::none;
    CHECK_FALSE(next_request(sent, redirect(302, "/b"))->has_value());
    sent.redirects = Redirects::follow;
    CHECK_FALSE(next_request(sent, {.status = 302})->has_value());
    CHECK_FALSE(next_request(sent, redirect(302, "gopher://h/")).has_value());
}
