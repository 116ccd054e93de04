// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kb::sys {

/// Time as a service, so that tests turn it by hand.
class Clock {
public:
    virtual ~Clock() = default;
    /// Seconds since the epoch.
    [[nodiscard]] virtual std::int64_t unix_seconds() = 0;
    [[nodiscard]] virtual std::chrono::steady_clock::time_point now() = 0;
    /// Returns early, with false, when interrupted.
    virtual bool sleep(std::chrono::milliseconds duration) = 0;
};

Clock& real_clock();

/// "2026-11-30T20:15:00Z" (RFC 3339, UTC).
std::string to_rfc3339(std::int64_t unix_seconds);

} // namespace kb::sys
