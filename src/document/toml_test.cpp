// SPDX-License-Identifier: Apache-2.0
#include "document/toml.hpp"

#include "document/json.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

using kb::Diagnostics;
using kb::document::Node;
using kb::document::parse_toml;

namespace {

Node good(std::string_view text) {
    Diagnostics diagnostics;
    auto node = parse_toml(text, {.name = "t.toml"}, diagnostics);
    for (const auto& item : diagnostics.items()) {
        UNSCOPED_INFO(kb::to_text(item, text));
    }
    REQUIRE(node);
    REQUIRE(diagnostics.empty());
    return *node;
}

/// The one diagnostic of a text that is no TOML.
kb::Diagnostic bad(std::string_view text) {
    Diagnostics diagnostics;
    CHECK_FALSE(parse_toml(text, {.name = "t.toml"}, diagnostics));
    REQUIRE(diagnostics.items().size() == 1);
    CHECK(diagnostics.items()[0].id == "toml-syntax");
    return diagnostics.items()[0];
}

std::string place(const kb::Span& span) {
    return fmt::format("{}:{}-{}:{}", span.line, span.column, span.end_line, span.end_column);
}

std::string json(const Node& node) {
    return write_json(node, {.indent = 0, .sort_keys = false, .final_newline = false});
}

} // namespace

TEST_CASE("tables keep the order of the file, not that of their names", "[document][toml]") {
    CHECK(json(good("[kernel.z]\nb = 1\na = 2\n[general]\n[kernel.a]\n[kernel.m]\n")) ==
          R"({"kernel":{"z":{"b":1,"a":2},"a":{},"m":{}},"general":{}})");
}

TEST_CASE("dotted keys, inline tables and arrays of tables are tables", "[document][toml]") {
    CHECK(json(good("z.y = 1\nz.x.w = [1, {b = true, a.c = 'q'}]\n[[t]]\nk = 1\n[[t]]\n")) ==
          R"({"z":{"y":1,"x":{"w":[1,{"b":true,"a":{"c":"q"}}]}},"t":[{"k":1},{}]})");
}

TEST_CASE("every key and value knows its place, columns in code points", "[document][toml]") {
    const Node root = good("# ä\n[general]\n\"nämé\" = 'öö' # x\nlist = [\n  \"a\",\n  2 ]\n");
    const Node* general = root.find("general");
    REQUIRE(general != nullptr);
    CHECK(place(general->key_span) == "2:2-2:9");
    CHECK(place(general->span) == "2:1-2:10");
    CHECK(general->span.file == "t.toml");
    const Node* name = general->find("nämé");
    REQUIRE(name != nullptr);
    CHECK(place(name->key_span) == "3:1-3:7");
    CHECK(place(name->span) == "3:10-3:14");
    const Node* list = general->find("list");
    REQUIRE(list != nullptr);
    CHECK(place(list->span) == "4:8-6:6");
    CHECK(place(list->as_array()[0].span) == "5:3-5:6");
}

TEST_CASE("a byte order mark and CRLF are accepted", "[document][toml]") {
    const Node root = good("\xEF\xBB\xBF"
                           "a = 1\r\nb = 2\r\n");
    CHECK(place(root.find("a")->key_span) == "1:1-1:2");
    CHECK(place(root.find("b")->key_span) == "2:1-2:2");
}

TEST_CASE("scalars keep their kind", "[document][toml]") {
    CHECK(json(good("a = 0xFF\nb = +1_000\nc = 2.50\nd = 9223372036854775807\ne = -1")) ==
          R"({"a":255,"b":1000,"c":2.5,"d":9223372036854775807,"e":-1})");
    const Node root = good("d = 1979-05-27\nt = 07:32:00.5\nz = 1979-05-27T07:32:00Z\n"
                           "o = 1979-05-27 07:32:00-07:30");
    CHECK(root.find("d")->kind() == Node::Kind::datetime);
    CHECK(json(root) == R"({"d":"1979-05-27","t":"07:32:00.5","z":"1979-05-27T07:32:00Z",)"
                        R"("o":"1979-05-27T07:32:00-07:30"})");
    CHECK(good("f = inf").find("f")->kind() == Node::Kind::floating);
}

TEST_CASE("an empty document is an empty table", "[document][toml]") {
    CHECK(good("") == Node::table());
    CHECK(good("# only a comment") == Node::table());
}

TEST_CASE("a syntax error is one diagnostic at its place", "[document][toml]") {
    const auto [text, where] = GENERATE(table<std::string, std::string>({
        {"[general\n", "1:9"},
        {"a = 1\na = 2\n", "2:5"},
        {"[a]\n[b]\n[a]\n", "3:1"},
        {"a = \"\xff\"", "1:5"},
        {"a = [1,\n", "1:9"},
        {"a = {b = 1}\n[a.c]\n", "2:7"},
        {"[a.b]\nx = 1\n[a]\nb.y = 2\n", "4:1"},
        {"a = 9223372036854775808", "1:24"},
        {"a = 1 b = 2", "1:7"},
        {"a = \"x\ny\"", "1:7"},
        {"[}x]", "1:2"},
        {"[[}x]]", "1:3"},
        {"}x = 1", "1:1"},
    }));
    const kb::Diagnostic d = bad(text);
    CAPTURE(text, d.message);
    CHECK(fmt::format("{}:{}", d.span.line, d.span.column) == where);
    CHECK(d.message.starts_with("this is not valid TOML: "));
}

TEST_CASE("characters other than ASCII stand in strings and comments only", "[document][toml]") {
    for (const std::string_view text :
         {"ü = 1", "[kernel.ü]", "a =\u00a01", "a = 1 \uFC66", "\uFEFE"}) {
        CAPTURE(text);
        CHECK(bad(text).message == "this is not valid TOML: characters other than ASCII stand in "
                                   "strings and comments only, a key has to be in quotes");
    }
    CHECK(bad("ab = 'ä'\n  ü = 1").span.column == 3);
    CHECK(json(good("\xEF\xBB\xBF'ü' = 'ä' # ö\n\"ß\" = \"\"\"\n€ \\\n ü\"\"\"\nq = ''' ''ü'''")) ==
          R"({"ü":"ä","ß":"€ ü","q":" ''ü"})");
}

TEST_CASE("depth is bounded however it is written", "[document][toml]") {
    const auto times = [](std::string_view piece, std::size_t n) {
        std::string out;
        for (std::size_t i = 0; i < n; ++i) {
            out += piece;
        }
        return out;
    };
    CHECK(bad("x = " + times("[", 200)).message == "nested deeper than 100 levels");
    CHECK(bad("x = " + times("{a = ", 200)).message == "nested deeper than 100 levels");
    CHECK(bad(times("a.", 1000000) + "a = 1").message == "nested deeper than 100 levels");
    CHECK(bad("[" + times("a.", 60) + "a]\n" + times("b.", 60) + "b = 1").message ==
          "nested deeper than 100 levels");
    CHECK(bad("x = " + times("{a.a.a = ", 50)).message == "nested deeper than 100 levels");
    CHECK(bad("\n\n" + times("a.", 1000) + "a = 1").span.line == 3);
    good("x = " + times("[", 90) + times("]", 90));
    good("[" + times("a.", 40) + "a]\n" + times("b.", 40) + "b = 1");
}

TEST_CASE("dots and brackets that do not nest are not counted", "[document][toml]") {
    std::string text = "# " + std::string(500, '.') + std::string(500, '[') + "\n";
    text += "a = '" + std::string(500, '.') + "'\n";
    text += "b = \"\"\"\n" + std::string(500, '[') + "\\\"\"\"\"\"\n";
    text += "c = '''" + std::string(500, '{') + "''''\n";
    text += "d = [";
    for (int i = 0; i < 500; ++i) {
        text += "1.5, [2.5, 3.5],\n";
    }
    text += "]\n";
    for (int i = 0; i < 500; ++i) {
        text += fmt::format("[t{}.a.b]\nx.y = 1.5\n[[u.v]]\n", i);
    }
    CHECK(good(text).entries().size() == 505);
}

TEST_CASE("a file over 4 MiB is refused unread", "[document][toml]") {
    CHECK(bad(std::string((4UL << 20U) + 1, '#')).message ==
          "the file has 4.2 MB, the limit is 4.2 MB");
}
