// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "base/error.hpp"
#include "cli/terminal.hpp"
#include "document/node.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kb::cli {

/// Prints all diagnostics sorted by place, with the lines of the files that `sources` holds (by
/// Span::file), and a closing count. Nothing when there are none.
void render_diagnostics(const Diagnostics& diagnostics,
                        const std::map<std::string, std::string>& sources,
                        Terminal& terminal);
/// Items for --json: [{"severity","id","file","line","column","message","notes"}].
[[nodiscard]] document::Node to_json(const Diagnostics& diagnostics);
/// "error: context: message", once.
void render_error(const Error& error, Terminal& terminal);
/// Foreign text of several lines for a terminal: line ends stay, other control characters do not.
[[nodiscard]] std::string escape_lines(std::string_view text);
/// Columns padded to the widest cell, two spaces between; no trailing white space.
[[nodiscard]] std::string render_table(const std::vector<std::vector<std::string>>& rows);
/// "12.3 s", "340 ms", "2 min 05 s".
[[nodiscard]] std::string human_seconds(double seconds);

} // namespace kb::cli
