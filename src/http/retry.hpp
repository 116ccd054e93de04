// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "http/client.hpp"
#include "sys/clock.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kb::http {

struct RetryPolicy {
    /// Sends in all; 1 never repeats.
    unsigned attempts = 6;
    /// Longest own wait before the second attempt; doubles with each further one ...
    std::chrono::milliseconds base{500};
    /// ... up to here.
    std::chrono::milliseconds ceiling{30'000};
    /// A server that asks for a longer wait than this is not waited for.
    std::chrono::milliseconds server_ceiling{15 * 60'000};
};

/// What the server asks for: Retry-After (seconds or a date) and, when nothing is left of the
/// budget, the reset of RateLimit. The longer one counts.
[[nodiscard]] std::optional<std::chrono::milliseconds> server_wait(const Headers& headers,
                                                                   std::int64_t now_unix_seconds);

/// Wait after the failed attempt number `attempt` (1 is the first): between half and all of
/// min(ceiling, base * 2^(attempt-1)) by `random`, but at least the server's wish and up to a tenth
/// more, so that clients do not come back together. Nothing: give up (attempts used up, or the
/// server asks for more than server_ceiling).
[[nodiscard]] std::optional<std::chrono::milliseconds>
retry_delay(const RetryPolicy& policy,
            unsigned attempt,
            std::optional<std::chrono::milliseconds> server_wish,
            std::uint64_t random);

/// 408, 425, 429, 500, 502, 503 and 504. (507 is a full disk: it does not pass by waiting.)
[[nodiscard]] bool is_retryable_status(int status);
/// Transient errors only: a certificate or an address does not get better.
[[nodiscard]] bool is_retryable(const Error& error);
[[nodiscard]] bool is_retryable(const Result<Response>& outcome);

/// One wait, for the people who watch.
struct RetryNotice {
    std::string url{}; ///< Redacted.
    std::string reason{};
    unsigned attempt = 1;
    std::chrono::milliseconds wait{0};
};

/// Sends again as the policy says; borrowed services. `on_wait` may be empty.
struct Retrier {
    HttpClient* client = nullptr;
    sys::Clock* clock = nullptr;
    RetryPolicy policy{};
    std::function<std::uint64_t()> random{};
    std::function<void(const RetryNotice&)> on_wait{};

    /// The last outcome: an answer (perhaps still a retryable one) or an Error. For requests that
    /// may be repeated without harm. `cancelled` when a wait was interrupted.
    [[nodiscard]] Result<Response> send(const Request& request) const;
    /// One wait of the policy; false: give up. For callers that look at the world in between.
    [[nodiscard]] Result<bool>
    wait(const Url& url, const Result<Response>& outcome, unsigned attempt) const;
};

} // namespace kb::http
