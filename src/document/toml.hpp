// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "document/node.hpp"

#include <optional>
#include <string_view>

namespace kb::document {

/// TOML 1.0 text to a tree. A syntax error, invalid UTF-8, a document over 4 MiB or nesting over
/// 100 levels is one diagnostic ("toml-syntax") with its place. Tables keep file order; a byte
/// order mark and CRLF are accepted.
[[nodiscard]] std::optional<Node>
parse_toml(std::string_view text, const Origin& origin, Diagnostics& diagnostics);

} // namespace kb::document
