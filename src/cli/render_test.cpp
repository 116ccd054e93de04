// SPDX-License-Identifier: Apache-2.0
#include "cli/render.hpp"

#include "support/catch.hpp"

namespace kb::cli {
namespace {

TEST_CASE("diagnostics print in order of place with their source line and a count",
          "[cli][render]") {
    Diagnostics diagnostics;
    diagnostics.warning("b", {"build.toml", 2, 1, 2, 4}, "second");
    diagnostics.error("a", {"build.toml", 1, 1, 1, 2}, "first", {"do this"});
    RecordingTerminal terminal;
    render_diagnostics(diagnostics, {{"build.toml", "x = 1\nyyy = 2\n"}}, terminal);
    CHECK(terminal.err_text ==
          "build.toml:1:1: error: first [a]\n 1 | x = 1\n   | ^\nnote: do this\n"
          "build.toml:2:1: warning: second [b]\n 2 | yyy = 2\n   | ^~~\n"
          "1 error, 1 warning\n");
    CHECK(terminal.out_text.empty());
}

TEST_CASE("tables align and end lines cleanly", "[cli][render]") {
    CHECK(render_table({{"a", "bb"}, {"ccc", ""}}) == "a    bb\nccc\n");
    CHECK(render_table({}).empty());
}

TEST_CASE("times read as people say them", "[cli][render]") {
    CHECK(human_seconds(0.34) == "340 ms");
    CHECK(human_seconds(12.34) == "12.3 s");
    CHECK(human_seconds(125) == "2 min 05 s");
}

TEST_CASE("foreign lines keep their ends and nothing else", "[cli][render]") {
    CHECK(escape_lines("a\x1b[2J\n\tb\r\n") == "a\\x1b[2J\n\tb\\x0d\n");
    CHECK(escape_lines("").empty());
}

} // namespace
} // namespace kb::cli
