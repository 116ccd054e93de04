// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include "base/text.hpp"
#include "cli/render.hpp"

#include <fmt/format.h>

namespace kb::cli {

std::string progress_text(std::uint64_t finished,
                          std::uint64_t total,
                          double seconds,
                          std::string_view what,
                          std::size_t width) {
    std::string text = fmt::format("[{}/{}]", finished, total);
    if (finished > 0 && seconds > 0.5 && total >= finished) {
        const double rate = static_cast<double>(finished) / seconds;
        text += fmt::format(" {:.1f}/s, {} left",
                            rate,
                            human_seconds(static_cast<double>(total - finished) / rate));
    }
    text += fmt::format("  {}", escape_control(what));
    while (count_code_points(text) > width && !text.empty()) {
        text.pop_back();
    }
    return text;
}

void ProgressLine::show(const std::string& line) {
    terminal_.err("\r\x1b[K" + line);
    is_shown_ = true;
}

void ProgressLine::stage(std::string_view text) {
    const std::scoped_lock hold{mutex_};
    started_ = clock_.now();
    tenth_ = 0;
    if (terminal_.is_interactive()) {
        show(std::string{text});
    } else {
        terminal_.err(fmt::format("{}\n", text));
    }
}

void ProgressLine::count(std::uint64_t finished, std::uint64_t total, std::string_view what) {
    const std::scoped_lock hold{mutex_};
    const double seconds = std::chrono::duration<double>(clock_.now() - started_).count();
    if (terminal_.is_interactive()) {
        show(progress_text(finished, total, seconds, what, terminal_.width() - 1));
        return;
    }
    const std::uint64_t tenth = total == 0 ? 0 : finished * 10 / total;
    if (tenth != tenth_ || finished == total) {
        tenth_ = tenth;
        terminal_.err(progress_text(finished, total, seconds, what, 100) + "\n");
    }
}

void ProgressLine::clear() {
    const std::scoped_lock hold{mutex_};
    if (is_shown_) {
        terminal_.err("\r\x1b[K");
        is_shown_ = false;
    }
}

} // namespace kb::cli
