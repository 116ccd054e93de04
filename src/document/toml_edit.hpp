// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/span.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kb::document {

/// Replaces the text between two places (line and column of `span`; an empty span inserts).
/// Comments and everything outside the span stay.
struct TomlEdit {
    Span span{};
    std::string text{};
};

/// Applies edits that do not overlap, in any order. An edit outside the text is our bug.
[[nodiscard]] std::string apply_edits(std::string_view text, std::vector<TomlEdit> edits);

} // namespace kb::document
