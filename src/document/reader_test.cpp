// SPDX-License-Identifier: Apache-2.0
#include "document/reader.hpp"

#include "document/toml.hpp"
#include "support/catch.hpp"

using kb::Diagnostics;
using kb::document::Node;
using kb::document::Reader;

namespace {

Node parse(std::string_view text) {
    Diagnostics diagnostics;
    auto node = kb::document::parse_toml(text, {.name = "t"}, diagnostics);
    REQUIRE(node);
    return *node;
}

std::string all(const Diagnostics& diagnostics) {
    std::string out;
    for (const kb::Diagnostic& item : diagnostics.items()) {
        out += kb::to_text(item);
    }
    return out;
}

} // namespace

TEST_CASE("a reader returns values with their places", "[document][reader]") {
    const Node root = parse("s = 'x'\nn = 3\nb = true\nl = ['p', 'q']\n[t]\n");
    Diagnostics diagnostics;
    Reader reader{root, "the file", diagnostics};
    const auto s = reader.string("s");
    REQUIRE(s);
    CHECK(s->value == "x");
    CHECK(s->span.column == 5);
    CHECK(reader.unsigned_integer("n")->value == 3);
    CHECK(reader.boolean("b")->value);
    CHECK(reader.strings("l")->at(1).value == "q");
    CHECK(reader.table("t") != nullptr);
    CHECK(reader.array("l") != nullptr);
    CHECK_FALSE(reader.string("absent"));
    CHECK(reader.table("absent") == nullptr);
    reader.finish({"s", "n", "b", "l", "t"});
    CHECK(diagnostics.empty());
}

TEST_CASE("a reader records every problem and goes on", "[document][reader]") {
    const Node root = parse("nmae = 1\ns = 2\nn = -3\nm = 'x'\nl = ['a', 1]\nzzzz = 0\n");
    Diagnostics diagnostics;
    Reader reader{root, "[general]", diagnostics};
    CHECK_FALSE(reader.string("s"));
    CHECK_FALSE(reader.unsigned_integer("n"));
    CHECK_FALSE(reader.unsigned_integer("m"));
    CHECK_FALSE(reader.boolean("m"));
    CHECK(reader.strings("l")->size() == 1);
    CHECK_FALSE(reader.strings("n"));
    CHECK(reader.table("s") == nullptr);
    CHECK(reader.array("s") == nullptr);
    reader.require({"name", "s"});
    reader.finish({"name", "s", "n", "m", "l"});
    CHECK(all(diagnostics) ==
          "t:2:5: error: 's' in [general] must be a string, not an integer [wrong-type]\n"
          "t:3:5: error: 'n' in [general] must be an integer >= 0, not -3 [wrong-type]\n"
          "t:4:5: error: 'm' in [general] must be an integer >= 0, not a string [wrong-type]\n"
          "t:4:5: error: 'm' in [general] must be true or false, not a string [wrong-type]\n"
          "t:5:11: error: each item of 'l' in [general] must be a string, not an integer "
          "[wrong-type]\n"
          "t:3:5: error: 'n' in [general] must be an array of strings, not an integer "
          "[wrong-type]\n"
          "t:2:5: error: 's' in [general] must be a table, not an integer [wrong-type]\n"
          "t:2:5: error: 's' in [general] must be an array, not an integer [wrong-type]\n"
          "t:1:1: error: [general] needs the key 'name' [missing-key]\n"
          "t:1:1: error: [general] has no key 'nmae' [unknown-key]\n"
          "note: did you mean 'name'?\n"
          "t:6:1: error: [general] has no key 'zzzz' [unknown-key]\n"
          "note: known keys: 'name', 's', 'n', 'm' and 'l'\n");
}
