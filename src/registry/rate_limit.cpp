// SPDX-License-Identifier: Apache-2.0
#include "registry/rate_limit.hpp"

#include <fmt/format.h>

namespace kb::registry {

namespace {

constexpr std::int64_t kWindow = 60;
/// Whoever comes from many addresses must not fill the memory.
constexpr std::size_t kMostWindows = 65'536;

} // namespace

RateVerdict RateLimiter::count(const std::string& key, unsigned limit, std::int64_t now) {
    const std::scoped_lock lock{mutex_};
    if (windows_.size() >= kMostWindows && !windows_.contains(key)) {
        std::erase_if(windows_,
                      [now](const auto& item) { return item.second.start + kWindow <= now; });
        if (windows_.size() >= kMostWindows) {
            windows_.clear();
        }
    }
    Window& window = windows_[key];
    if (window.used == 0 || window.start + kWindow <= now || window.start > now) {
        window = {.start = now};
    }
    RateVerdict verdict{.limit = limit, .reset = window.start + kWindow - now};
    verdict.allowed = window.used < limit;
    window.used += verdict.allowed ? 1U : 0U;
    verdict.left = limit - window.used;
    return verdict;
}

void add_rate_headers(const RateVerdict& verdict, http::Headers& headers) {
    headers.set("RateLimit", fmt::format("\"api\";r={};t={}", verdict.left, verdict.reset));
    headers.set("RateLimit-Policy",
                fmt::format("\"fixed window\";\"api\";q={};w={}", verdict.limit, kWindow));
    if (!verdict.allowed) {
        headers.set("Retry-After", fmt::format("{}", verdict.reset));
    }
}

} // namespace kb::registry
