// SPDX-License-Identifier: Apache-2.0
#include "http/retry.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace kb::http {

namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMaxSeconds = 1'000'000'000; // far above any ceiling, far below overflow

milliseconds from_seconds(std::uint64_t seconds) {
    return milliseconds{static_cast<std::int64_t>(std::min<std::uint64_t>(seconds, kMaxSeconds)) *
                        1000};
}

std::optional<unsigned> month_number(std::string_view name) {
    constexpr std::array<std::string_view, 12> kMonths = {
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto* found = std::ranges::find(kMonths, name);
    if (found == kMonths.end()) {
        return std::nullopt;
    }
    return static_cast<unsigned>(found - kMonths.begin()) + 1;
}

/// Days since 1970-01-01 of a Gregorian date.
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
    const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(year)},
                                           std::chrono::month{static_cast<unsigned>(month)},
                                           std::chrono::day{static_cast<unsigned>(day)}};
    return std::chrono::sys_days{date}.time_since_epoch().count();
}

/// "Sun, 06 Nov 1994 08:49:37 GMT", the only form that a server may send today.
std::optional<std::int64_t> parse_http_date(std::string_view text) {
    const std::vector<std::string_view> parts = split(trim(text), ' ');
    if (parts.size() != 6 || parts[5] != "GMT") {
        return std::nullopt;
    }
    const auto day = parse_unsigned(parts[1]);
    const auto month = month_number(parts[2]);
    const auto year = parse_unsigned(parts[3]);
    const std::vector<std::string_view> time = split(parts[4], ':');
    if (!day || *day < 1 || *day > 31 || !month || !year || *year > 9999 || time.size() != 3) {
        return std::nullopt;
    }
    const auto hour = parse_unsigned(time[0]);
    const auto minute = parse_unsigned(time[1]);
    const auto second = parse_unsigned(time[2]);
    if (!hour || *hour > 23 || !minute || *minute > 59 || !second || *second > 60) {
        return std::nullopt;
    }
    const std::int64_t days =
        days_from_civil(static_cast<std::int64_t>(*year), *month, static_cast<std::int64_t>(*day));
    return days * 86400 + static_cast<std::int64_t>(*hour * 3600 + *minute * 60 + *second);
}

std::optional<milliseconds> parse_retry_after(std::string_view text, std::int64_t now) {
    if (const auto seconds = parse_unsigned(trim(text))) {
        return from_seconds(*seconds);
    }
    if (const auto date = parse_http_date(text)) {
        return from_seconds(static_cast<std::uint64_t>(std::max<std::int64_t>(0, *date - now)));
    }
    return std::nullopt;
}

/// RateLimit: "api";r=0;t=55 - parameters of the first item; the wish counts only when r is 0.
std::optional<milliseconds> parse_rate_limit(std::string_view text) {
    std::optional<std::uint64_t> remaining;
    std::optional<std::uint64_t> reset;
    for (const std::string_view part : split(text.substr(0, text.find(',')), ';')) {
        const std::string_view parameter = trim(part);
        if (parameter.starts_with("r=")) {
            remaining = parse_unsigned(parameter.substr(2));
        } else if (parameter.starts_with("t=")) {
            reset = parse_unsigned(parameter.substr(2));
        }
    }
    if (remaining == 0U && reset) {
        return from_seconds(*reset) + milliseconds{1000}; // t is rounded down
    }
    return std::nullopt;
}

std::string reason_of(const Result<Response>& outcome) {
    return outcome ? fmt::format("status {}", outcome->status) : outcome.error().to_text();
}

} // namespace

std::optional<milliseconds> server_wait(const Headers& headers, std::int64_t now_unix_seconds) {
    std::optional<milliseconds> wish;
    if (const auto field = headers.find("Retry-After")) {
        wish = parse_retry_after(*field, now_unix_seconds);
    }
    if (const auto field = headers.find("RateLimit")) {
        if (const auto reset = parse_rate_limit(*field)) {
            wish = std::max(wish.value_or(milliseconds{0}), *reset);
        }
    }
    return wish;
}

std::optional<milliseconds> retry_delay(const RetryPolicy& policy,
                                        unsigned attempt,
                                        std::optional<milliseconds> server_wish,
                                        std::uint64_t random) {
    if (attempt == 0 || attempt >= policy.attempts ||
        (server_wish && *server_wish > policy.server_ceiling)) {
        return std::nullopt;
    }
    std::int64_t longest = policy.base.count();
    for (unsigned i = 1; i < attempt && longest < policy.ceiling.count(); ++i) {
        longest = longest > policy.ceiling.count() / 2 ? policy.ceiling.count() : longest * 2;
    }
    longest = std::clamp<std::int64_t>(longest, 0, policy.ceiling.count());
    const auto part_of = [random](std::int64_t range) {
        return static_cast<std::int64_t>(random % (static_cast<std::uint64_t>(range) + 1));
    };
    const milliseconds own{longest - longest / 2 + part_of(longest / 2)};
    if (!server_wish || *server_wish < own) {
        return own;
    }
    return *server_wish + milliseconds{part_of(server_wish->count() / 10)};
}

bool is_retryable_status(int status) {
    constexpr std::array<int, 7> kRetryable = {408, 425, 429, 500, 502, 503, 504};
    return std::ranges::find(kRetryable, status) != kRetryable.end();
}

bool is_retryable(const Error& error) {
    return error.code == ErrorCode::transient;
}

bool is_retryable(const Result<Response>& outcome) {
    return outcome ? is_retryable_status(outcome->status) : is_retryable(outcome.error());
}

Result<bool>
Retrier::wait(const Url& url, const Result<Response>& outcome, unsigned attempt) const {
    const auto wish = outcome ? server_wait(outcome->headers, clock->unix_seconds()) : std::nullopt;
    const auto delay = retry_delay(policy, attempt, wish, random ? random() : 0);
    if (!delay) {
        return false;
    }
    if (on_wait) {
        on_wait({.url = url.redacted(),
                 .reason = reason_of(outcome),
                 .attempt = attempt,
                 .wait = *delay});
    }
    if (!clock->sleep(*delay)) {
        return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
    }
    return true;
}

Result<Response> Retrier::send(const Request& request) const {
    for (unsigned attempt = 1;; ++attempt) {
        Result<Response> outcome = client->send(request);
        if (!is_retryable(outcome)) {
            return outcome;
        }
        KB_TRY(const bool again, wait(request.url, outcome, attempt));
        if (!again) {
            return outcome;
        }
    }
}

} // namespace kb::http
