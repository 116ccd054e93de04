// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http/headers.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace kb::registry {

/// Requests a minute; 0: as many as come.
struct RateLimits {
    unsigned per_user = 0;
    /// Of one address without a valid token.
    unsigned per_address = 0;

    bool operator==(const RateLimits&) const = default;
};

/// What the limit says about one request.
struct RateVerdict {
    bool allowed = true;
    unsigned limit = 0;
    unsigned left = 0;
    /// Seconds until the count begins anew.
    std::int64_t reset = 0;
};

/// Counts requests in fixed windows of a minute. Usable from several threads.
class RateLimiter {
public:
    /// Counts one request of `key` against `limit`, which is not 0.
    [[nodiscard]] RateVerdict count(const std::string& key, unsigned limit, std::int64_t now);

private:
    struct Window {
        std::int64_t start = 0;
        unsigned used = 0;
    };

    std::mutex mutex_{};
    std::map<std::string, Window> windows_{};
};

/// RateLimit and RateLimit-Policy, and Retry-After for a request that was refused.
void add_rate_headers(const RateVerdict& verdict, http::Headers& headers);

} // namespace kb::registry
