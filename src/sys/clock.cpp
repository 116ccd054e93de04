// SPDX-License-Identifier: Apache-2.0
#include "sys/clock.hpp"

#include "sys/signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <poll.h>

namespace kb::sys {
namespace {

class RealClock final : public Clock {
public:
    std::int64_t unix_seconds() override {
        return std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
            .count();
    }

    std::chrono::steady_clock::time_point now() override {
        return std::chrono::steady_clock::now();
    }

    bool sleep(std::chrono::milliseconds duration) override {
        const auto end = std::chrono::steady_clock::now() + duration;
        while (!interrupted()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(
                end - std::chrono::steady_clock::now());
            if (left.count() <= 0) {
                return true;
            }
            pollfd wake{.fd = interrupt_descriptor(), .events = POLLIN, .revents = 0};
            // poll() skips a negative descriptor, so this is a plain sleep without a guard.
            ::poll(&wake, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
        }
        return false;
    }
};

} // namespace

Clock& real_clock() {
    static RealClock clock;
    return clock;
}

std::string to_rfc3339(std::int64_t unix_seconds) {
    const std::time_t time = unix_seconds;
    std::tm utc{};
    ::gmtime_r(&time, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                       utc.tm_year + 1900,
                       utc.tm_mon + 1,
                       utc.tm_mday,
                       utc.tm_hour,
                       utc.tm_min,
                       utc.tm_sec);
}

} // namespace kb::sys
