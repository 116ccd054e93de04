// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <compare>
#include <string>
#include <string_view>

namespace kb {

/// A relative path with '/' that cannot leave its root: no empty, "." or ".." segment, no leading
/// '/', no backslash, no control character, valid UTF-8, at most 4096 bytes and 255 a segment.
/// Traversal is thus a parse error, once. Orders by bytes.
class RelPath {
public:
    [[nodiscard]] static Result<RelPath> parse(std::string_view text);
    /// For paths that the program itself spells; a bad one is our bug.
    [[nodiscard]] static RelPath literal(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }

    /// Last segment.
    [[nodiscard]] std::string_view name() const;
    /// Everything before the last segment, "" at the root.
    [[nodiscard]] std::string_view parent() const;
    /// Extension with the dot, "" without one: ".cu".
    [[nodiscard]] std::string_view extension() const;
    [[nodiscard]] RelPath operator/(const RelPath& tail) const;

    auto operator<=>(const RelPath&) const = default;

private:
    explicit RelPath(std::string text) : text_{std::move(text)} {}

    std::string text_;
};

} // namespace kb
