// SPDX-License-Identifier: Apache-2.0
#include "document/toml_edit.hpp"

#include "document/toml.hpp"
#include "support/catch.hpp"

using kb::document::apply_edits;

namespace {

kb::Span at(std::uint32_t line, std::uint32_t column, std::uint32_t end_line, std::uint32_t end) {
    return {.file = "t", .line = line, .column = column, .end_line = end_line, .end_column = end};
}

} // namespace

TEST_CASE("edits replace, insert and delete by place", "[document][toml_edit]") {
    const std::string_view text = "# ü keeps\na = 'ö' # note\nb = 2\n";
    CHECK(apply_edits(text,
                      {{.span = at(3, 1, 4, 1), .text = ""},
                       {.span = at(2, 5, 2, 8), .text = "\"new\""},
                       {.span = at(2, 1, 2, 1), .text = "z = 0\n"},
                       {.span = at(4, 1, 4, 1), .text = "end = 1\n"}}) ==
          "# ü keeps\nz = 0\na = \"new\" # note\nend = 1\n");
    CHECK(apply_edits(text, {}) == text);
}

TEST_CASE("insertions at one place keep their order", "[document][toml_edit]") {
    CHECK(apply_edits("x",
                      {{.span = at(1, 1, 1, 2), .text = "y"},
                       {.span = at(1, 1, 1, 1), .text = "a"},
                       {.span = at(1, 1, 1, 1), .text = "b"}}) == "aby");
}

TEST_CASE("places of the TOML reader fit, also behind a byte order mark", "[document][toml_edit]") {
    const std::string_view text = "\xEF\xBB\xBF"
                                  "key = 'old'\r\nother = 1\r\n";
    kb::Diagnostics diagnostics;
    const auto root = kb::document::parse_toml(text, {.name = "t"}, diagnostics);
    REQUIRE(root);
    CHECK(apply_edits(text,
                      {{.span = root->find("key")->span, .text = "'new'"},
                       {.span = root->find("other")->key_span, .text = "renamed"}}) ==
          "\xEF\xBB\xBF"
          "key = 'new'\r\nrenamed = 1\r\n");
}
