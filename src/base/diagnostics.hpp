// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/span.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb {

enum class Severity : std::uint8_t { warning, error };

/// One mistake of the user, with its place. `id` is a short kebab-case word, part of the contract
/// and listed in docs/diagnostics.md. `message`: lower case, no full stop, 'quoted' names, says
/// what was expected. `notes`: the next step, a suggestion.
struct Diagnostic {
    Severity severity = Severity::error;
    std::string id{};
    Span span{};
    std::string message{};
    std::vector<std::string> notes{};

    bool operator==(const Diagnostic&) const = default;
};

/// Collects all mistakes of one job; the job reports and goes on. Belongs to one thread.
class Diagnostics {
public:
    void report(Diagnostic diagnostic) { items_.push_back(std::move(diagnostic)); }

    void error(std::string id, Span span, std::string message, std::vector<std::string> notes = {});
    void
    warning(std::string id, Span span, std::string message, std::vector<std::string> notes = {});
    void append(Diagnostics other);

    [[nodiscard]] const std::vector<Diagnostic>& items() const { return items_; }

    [[nodiscard]] bool has_errors() const;

    [[nodiscard]] bool empty() const { return items_.empty(); }

    /// Sorted by file and place, then id; equal entries once.
    void sort();
    /// What `--strict` does.
    void promote_warnings();

private:
    std::vector<Diagnostic> items_;
};

/// "file:line:col: error: message [id]" and its notes, one a line. With `source` (the text of the
/// file) the line is shown with a caret below the place.
[[nodiscard]] std::string to_text(const Diagnostic& diagnostic,
                                  std::optional<std::string_view> source = std::nullopt);

/// The candidate that `word` is most likely a misspelling of, if any is near (Damerau-Levenshtein
/// <= max(1, length/3)).
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string_view> candidates);
/// "did you mean 'x'?" for use as a note, or nothing.
[[nodiscard]] std::vector<std::string>
suggestion_note(std::string_view word, std::span<const std::string_view> candidates);

} // namespace kb
