// SPDX-License-Identifier: Apache-2.0
#include "http/retry.hpp"

#include "support/catch.hpp"

#include <limits>

using namespace kb;
using namespace kb::http;
using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::optional<milliseconds> ms(std::int64_t n) {
    return milliseconds{n};
}

class FakeClock final : public sys::Clock {
public:
    std::int64_t unix_seconds() override { return 784'111'777; } // Sun, 06 Nov 1994 08:49:37 GMT

    std::chrono::steady_clock::time_point now() override { return {}; }

    bool sleep(milliseconds duration) override {
        slept.push_back(duration.count());
        return !interrupted;
    }

    std::vector<std::int64_t> slept{};
    bool interrupted = false;
};

class ScriptedClient final : public HttpClient {
public:
    explicit ScriptedClient(std::vector<Result<Response>> script) : script_{std::move(script)} {}

    Result<Response> send(const Request&) override { return script_.at(sent++); }

    std::size_t sent = 0;

private:
    std::vector<Result<Response>> script_;
};

Request any_request() {
    return {.url = Url::parse("http://h/x?sig=1").value()};
}

} // namespace

TEST_CASE("waits grow to a ceiling, jitter stays in its bounds, nothing overflows",
          "[http][retry]") {
    struct Case {
        const char* name;
        RetryPolicy policy;
        unsigned attempt;
        std::optional<milliseconds> wish;
        std::int64_t least;
        std::int64_t most;
    };

    const RetryPolicy usual{
        .attempts = 9, .base = milliseconds{500}, .ceiling = milliseconds{30'000}};
    RetryPolicy endless{.attempts = 4'000'000'000U, .ceiling = milliseconds{30'000}};
    RetryPolicy huge{.attempts = 100,
                     .base = milliseconds{std::numeric_limits<std::int64_t>::max() / 2},
                     .ceiling = milliseconds{std::numeric_limits<std::int64_t>::max()}};
    const std::vector<Case> cases = {
        {"first", usual, 1, {}, 250, 500},
        {"second doubles", usual, 2, {}, 500, 1000},
        {"fifth", usual, 5, {}, 4000, 8000},
        {"ceiling", usual, 8, {}, 15'000, 30'000},
        {"attempts without number", endless, 3'999'999'999U, {}, 15'000, 30'000},
        {"no overflow", huge, 90, {}, huge.ceiling.count() / 2, huge.ceiling.count()},
        {"a server's wish is a floor", usual, 1, ms(7000), 7000, 7700},
        {"a shorter wish changes nothing", usual, 8, ms(1000), 15'000, 30'000},
        {"zero base", {.base = milliseconds{0}}, 1, {}, 0, 0},
    };
    for (const Case& c : cases) {
        INFO(c.name);
        std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
        std::int64_t highest = 0;
        for (std::uint64_t random = 0; random < 40'000; ++random) {
            const auto delay = retry_delay(c.policy, c.attempt, c.wish, random);
            REQUIRE(delay.has_value());
            lowest = std::min(lowest, delay->count());
            highest = std::max(highest, delay->count());
        }
        const auto last = retry_delay(c.policy, c.attempt, c.wish, kMost);
        REQUIRE(last.has_value());
        CHECK(lowest >= c.least);
        CHECK(std::max(highest, last->count()) <= c.most);
        if (c.most < 40'000) { // every value was drawn: both bounds are reached
            CHECK(lowest == c.least);
            CHECK(highest == c.most);
        }
    }
}

TEST_CASE("giving up is an answer of the policy", "[http][retry]") {
    const RetryPolicy policy{.attempts = 3, .server_ceiling = milliseconds{60'000}};
    CHECK(retry_delay(policy, 2, {}, 0).has_value());
    CHECK_FALSE(retry_delay(policy, 3, {}, 0).has_value());
    CHECK(retry_delay(policy, 1, ms(60'000), 0).has_value());
    CHECK_FALSE(retry_delay(policy, 1, ms(60'001), 0).has_value());
    CHECK_FALSE(retry_delay({.attempts = 1}, 1, {}, 0).has_value());
    CHECK_FALSE(retry_delay({.attempts = 0}, 1, {}, 0).has_value());
}

TEST_CASE("what a server asks for is read from Retry-After and RateLimit", "[http][retry]") {
    struct Case {
        const char* name;
        Headers headers;
        std::optional<milliseconds> wish;
    };

    const std::int64_t now = 784'111'777;
    const std::vector<Case> cases = {
        {"nothing", {}, {}},
        {"seconds", {{"Retry-After", "55"}}, ms(55'000)},
        {"zero", {{"Retry-After", "0"}}, ms(0)},
        {"a date", {{"retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"}}, ms(60'000)},
        {"a past date", {{"Retry-After", "Sun, 06 Nov 1994 08:49:00 GMT"}}, ms(0)},
        {"a wrong date", {{"Retry-After", "Sun, 06 Now 1994 08:49:00 GMT"}}, {}},
        {"junk", {{"Retry-After", "soon"}}, {}},
        {"negative", {{"Retry-After", "-5"}}, {}},
        {"used up", {{"RateLimit", "\"api\";r=0;t=55"}}, ms(56'000)},
        {"something left", {{"RateLimit", "\"api\";r=3;t=55"}}, {}},
        {"both", {{"Retry-After", "90"}, {"RateLimit", "\"api\";r=0;t=55"}}, ms(90'000)},
        {"no overflow", {{"Retry-After", "18446744073709551615"}}, ms(1'000'000'000'000)},
    };
    for (const Case& c : cases) {
        INFO(c.name);
        CHECK(server_wait(c.headers, now) == c.wish);
    }
}

TEST_CASE("which outcomes are tried again", "[http][retry]") {
    for (const int status : {408, 425, 429, 500, 502, 503, 504}) {
        CHECK(is_retryable_status(status));
    }
    for (const int status : {200, 301, 400, 401, 403, 404, 409, 412, 413, 422, 501, 507}) {
        CHECK_FALSE(is_retryable_status(status));
    }
    CHECK(is_retryable(Error{.code = ErrorCode::transient}));
    for (const auto code :
         {ErrorCode::denied, ErrorCode::cancelled, ErrorCode::corrupt, ErrorCode::not_found}) {
        CHECK_FALSE(is_retryable(Error{.code = code}));
    }
}

TEST_CASE("a retrier repeats until an answer that stands", "[http][retry]") {
    ScriptedClient client{{Error{.code = ErrorCode::transient, .message = "reset"},
                           Response{.status = 429, .headers = {{"Retry-After", "7"}}},
                           Response{.status = 200}}};
    FakeClock clock;
    std::vector<RetryNotice> notices;
    const Retrier retrier{.client = &client,
                          .clock = &clock,
                          .random = [] { return kMost; },
                          .on_wait =
                              [&](const RetryNotice& n) {
                                  notices.push_back(n);
                              }};
    const auto outcome = retrier.send(any_request());
    REQUIRE(outcome.has_value());
    CHECK(outcome->status == 200);
    CHECK(client.sent == 3);
    REQUIRE(clock.slept.size() == 2);
    CHECK(clock.slept[1] >= 7000);
    REQUIRE(notices.size() == 2);
    CHECK(notices[0].reason == "reset");
    CHECK(notices[1].reason == "status 429");
    CHECK(notices[1].url == "http://h/x?sig=***");
}

TEST_CASE("a retrier ends with the last outcome", "[http][retry]") {
    ScriptedClient client{{Response{.status = 503}, Response{.status = 502}}};
    FakeClock clock;
    const Retrier retrier{.client = &client, .clock = &clock, .policy = {.attempts = 2}};
    const auto outcome = retrier.send(any_request());
    REQUIRE(outcome.has_value());
    CHECK(outcome->status == 502);
    CHECK(clock.slept.size() == 1);
}

TEST_CASE("an interrupted wait ends a retrier", "[http][retry]") {
    ScriptedClient client{{Response{.status = 503}, Response{.status = 200}}};
    FakeClock clock;
    clock.interrupted = true;
    const Retrier retrier{.client = &client, .clock = &clock};
    const auto outcome = retrier.send(any_request());
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().code == ErrorCode::cancelled);
    CHECK(client.sent == 1);
}
