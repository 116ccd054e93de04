// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

namespace kb {

void Diagnostics::error(std::string id,
                        Span span,
                        std::string message,
                        std::vector<std::string> notes) {
    report({Severity::error, std::move(id), std::move(span), std::move(message), std::move(notes)});
}

void Diagnostics::warning(std::string id,
                          Span span,
                          std::string message,
                          std::vector<std::string> notes) {
    report(
        {Severity::warning, std::move(id), std::move(span), std::move(message), std::move(notes)});
}

void Diagnostics::append(Diagnostics other) {
    std::ranges::move(other.items_, std::back_inserter(items_));
}

bool Diagnostics::has_errors() const {
    return std::ranges::any_of(items_,
                               [](const Diagnostic& d) { return d.severity == Severity::error; });
}

void Diagnostics::sort() {
    std::ranges::stable_sort(
        items_, {}, [](const Diagnostic& d) { return std::tie(d.span, d.id, d.message); });
    items_.erase(std::unique(items_.begin(), items_.end()), items_.end());
}

void Diagnostics::promote_warnings() {
    for (Diagnostic& d : items_) {
        d.severity = Severity::error;
    }
}

namespace {

std::string place(const Span& span) {
    if (span.line == 0) {
        return span.file;
    }
    return fmt::format("{}:{}:{}", span.file, span.line, span.column);
}

/// The source line and a caret line, for a terminal that shows one cell a code point.
std::string excerpt(const Span& span, std::string_view source) {
    std::string_view rest = source;
    for (std::uint32_t i = 1; i < span.line; ++i) {
        const std::size_t eol = rest.find('\n');
        if (eol == std::string_view::npos) {
            return {};
        }
        rest.remove_prefix(eol + 1);
    }
    std::string line{rest.substr(0, rest.find('\n'))};
    if (line.ends_with('\r')) {
        line.pop_back();
    }
    std::string number = fmt::format("{}", span.line);
    std::string under;
    std::uint32_t column = 1;
    for (const char c : line) {
        const bool continuation = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
        if (continuation) {
            continue;
        }
        if (column >= span.column) {
            break;
        }
        under += c == '\t' ? '\t' : ' ';
        ++column;
    }
    const std::size_t length =
        count_code_points(line) + 1 > span.column ? count_code_points(line) + 1 - span.column : 1;
    const bool one_line = span.end_line == span.line && span.end_column > span.column;
    const std::size_t width = std::clamp<std::size_t>(
        one_line ? span.end_column - span.column : 1, 1, std::max<std::size_t>(length, 1));
    under += '^' + std::string(width - 1, '~');
    return fmt::format(" {} | {}\n {} | {}\n",
                       number,
                       escape_control(line),
                       std::string(number.size(), ' '),
                       under);
}

} // namespace

std::string to_text(const Diagnostic& diagnostic, std::optional<std::string_view> source) {
    const char* severity = diagnostic.severity == Severity::error ? "error" : "warning";
    // The command line has no place: its mistakes begin with their severity.
    const std::string where = place(diagnostic.span);
    std::string out = fmt::format("{}{}{}: {} [{}]\n",
                                  where,
                                  where.empty() ? "" : ": ",
                                  severity,
                                  diagnostic.message,
                                  diagnostic.id);
    if (source && diagnostic.span.line != 0) {
        out += excerpt(diagnostic.span, *source);
    }
    for (const std::string& note : diagnostic.notes) {
        out += fmt::format("note: {}\n", note);
    }
    return out;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    // Optimal string alignment: insert, delete, replace, swap of neighbours, each costs 1.
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        d[i][0] = i;
    }
    std::iota(d[0].begin(), d[0].end(), 0UL);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.size()][b.size()];
}

} // namespace

std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates) {
    if (word.empty() || word.size() > 200) {
        return std::nullopt;
    }
    const std::string lower = to_lower(word);
    std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
    std::optional<std::string> best;
    for (const std::string_view candidate : candidates) {
        const std::string candidate_lower = to_lower(candidate);
        const std::size_t distance = edit_distance(lower, candidate_lower);
        if (distance < best_distance && distance < std::max<std::size_t>(candidate.size(), 2)) {
            best_distance = distance;
            best = std::string{candidate};
        }
    }
    return best;
}

std::vector<std::string> suggestion_note(std::string_view word,
                                         std::span<const std::string_view> candidates) {
    if (const auto found = nearest(word, candidates)) {
        return {fmt::format("did you mean '{}'?", *found)};
    }
    return {};
}

} // namespace kb
