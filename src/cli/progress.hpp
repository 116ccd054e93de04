// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal.hpp"
#include "sys/clock.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace kb::cli {

/// Progress on standard error. On a terminal one line that is written over: "[12/40] 3.1/s, 9 s
/// left  CUDA relu.cu"; else one line a stage, and one for every tenth of the count. Usable from
/// any thread.
class ProgressLine {
public:
    ProgressLine(Terminal& terminal, sys::Clock& clock) : terminal_{terminal}, clock_{clock} {}

    void stage(std::string_view text);
    void count(std::uint64_t finished, std::uint64_t total, std::string_view what);
    /// Removes the line; call before other output.
    void clear();

private:
    void show(const std::string& line);

    Terminal& terminal_;
    sys::Clock& clock_;
    std::mutex mutex_{};
    std::chrono::steady_clock::time_point started_{};
    std::uint64_t tenth_ = 0;
    bool is_shown_ = false;
};

/// "[12/40] 3.1/s, 9 s left  what", cut to `width` code points.
[[nodiscard]] std::string progress_text(std::uint64_t finished,
                                        std::uint64_t total,
                                        double seconds,
                                        std::string_view what,
                                        std::size_t width);

} // namespace kb::cli
