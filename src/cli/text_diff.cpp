// SPDX-License-Identifier: Apache-2.0
#include "cli/text_diff.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kb::cli {

namespace {

constexpr std::size_t kContext = 3;
constexpr std::size_t kMaxMiddle = 4000;

struct Line {
    char mark = ' '; ///< ' ', '-' or '+'
    std::string_view text{};
};

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
    Lines out = split(text, '\n');
    if (out.back().empty()) {
        out.pop_back();
    }
    return out;
}

/// The lines of both sides in one list, by a longest common subsequence.
void append_middle(const Lines& before, const Lines& after, std::vector<Line>& out) {
    const std::size_t rows = before.size();
    const std::size_t columns = after.size();
    std::size_t i = 0;
    std::size_t j = 0;
    if (std::max(rows, columns) <= kMaxMiddle) {
        std::vector<std::vector<std::uint16_t>> common(rows + 1,
                                                       std::vector<std::uint16_t>(columns + 1));
        for (std::size_t r = rows; r-- > 0;) {
            for (std::size_t c = columns; c-- > 0;) {
                common[r][c] = before[r] == after[c]
                                   ? static_cast<std::uint16_t>(common[r + 1][c + 1] + 1)
                                   : std::max(common[r + 1][c], common[r][c + 1]);
            }
        }
        while (i < rows && j < columns) {
            if (before[i] == after[j]) {
                out.push_back({' ', before[i]});
                ++i;
                ++j;
            } else if (common[i + 1][j] >= common[i][j + 1]) {
                out.push_back({'-', before[i++]});
            } else {
                out.push_back({'+', after[j++]});
            }
        }
    }
    for (; i < rows; ++i) {
        out.push_back({'-', before[i]});
    }
    for (; j < columns; ++j) {
        out.push_back({'+', after[j]});
    }
}

std::vector<Line> merged(const Lines& before, const Lines& after) {
    std::vector<Line> out;
    const auto [end_before, end_after] = std::ranges::mismatch(before, after);
    const auto same = static_cast<std::size_t>(end_before - before.begin());
    std::size_t tail = 0;
    while (tail + same < std::min(before.size(), after.size()) &&
           before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
        ++tail;
    }
    for (std::size_t i = 0; i < same; ++i) {
        out.push_back({' ', before[i]});
    }
    append_middle(Lines(end_before, before.end() - static_cast<std::ptrdiff_t>(tail)),
                  Lines(end_after, after.end() - static_cast<std::ptrdiff_t>(tail)),
                  out);
    for (std::size_t i = before.size() - tail; i < before.size(); ++i) {
        out.push_back({' ', before[i]});
    }
    return out;
}

/// Index one past the last line of the hunk that starts around the change at `first`.
std::size_t hunk_end(const std::vector<Line>& lines, std::size_t first) {
    std::size_t last = first;
    for (std::size_t i = first; i < lines.size() && i <= last + 2 * kContext; ++i) {
        if (lines[i].mark != ' ') {
            last = i;
        }
    }
    return std::min(lines.size(), last + 1 + kContext);
}

} // namespace

std::string unified_diff(std::string_view name, std::string_view before, std::string_view after) {
    if (before == after) {
        return {};
    }
    const std::vector<Line> lines = merged(lines_of(before), lines_of(after));
    std::string out = fmt::format("--- {0}\n+++ {0}\n", name);
    std::size_t at_before = 1;
    std::size_t at_after = 1;
    std::size_t done = 0;
    const auto step = [&](char mark) {
        at_before += mark == '+' ? 0U : 1U;
        at_after += mark == '-' ? 0U : 1U;
    };
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].mark == ' ') {
            continue;
        }
        const std::size_t begin = std::max(done, i < kContext ? 0 : i - kContext);
        const std::size_t end = hunk_end(lines, i);
        for (; done < begin; ++done) {
            step(lines[done].mark);
        }
        std::string body;
        const std::size_t from_before = at_before;
        const std::size_t from_after = at_after;
        for (; done < end; ++done) {
            step(lines[done].mark);
            body += fmt::format("{}{}\n", lines[done].mark, escape_control(lines[done].text));
        }
        out += fmt::format("@@ -{},{} +{},{} @@\n{}",
                           from_before,
                           at_before - from_before,
                           from_after,
                           at_after - from_after,
                           body);
        i = end - 1;
    }
    return out;
}

} // namespace kb::cli
