// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "base/result.hpp"
#include "document/node.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kb::document {

struct JsonLimits {
    std::size_t max_depth = 64;
    std::size_t max_bytes = 64UL << 20U;
};

/// RFC 8259 JSON to a tree. Duplicate keys, trailing text, invalid UTF-8, a NUL (escaped or not),
/// depth and size over the limits are errors. `corrupt`, with "file:line:column" in the message.
[[nodiscard]] Result<Node>
parse_json(std::string_view text, const Origin& origin, const JsonLimits& limits = {});

struct JsonStyle {
    /// Spaces a level; 0 writes one line without white space.
    std::size_t indent = 2;
    /// Keys by bytes instead of insertion order.
    bool sort_keys = false;
    bool final_newline = true;
};

/// Canonical: the same tree gives the same bytes. Non-ASCII stays UTF-8; invalid UTF-8 becomes
/// U+FFFD; a number that is not finite, which JSON cannot say, becomes null.
[[nodiscard]] std::string write_json(const Node& node, const JsonStyle& style = {});
/// Contract files (build.lock, plan.json): 2 spaces, sorted keys, LF at the end.
[[nodiscard]] std::string write_canonical_json(const Node& node);

} // namespace kb::document
