// SPDX-License-Identifier: Apache-2.0
#include "document/json.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <limits>

using kb::document::JsonLimits;
using kb::document::Node;
using kb::document::parse_json;
using kb::document::write_canonical_json;
using kb::document::write_json;

namespace {

std::string compact(const Node& node) {
    return write_json(node, {.indent = 0, .sort_keys = false, .final_newline = false});
}

Node good(std::string_view text) {
    auto node = parse_json(text, {.name = "j"});
    if (!node) {
        UNSCOPED_INFO(node.error().to_text());
    }
    REQUIRE(node);
    return *node;
}

std::string bad(std::string_view text, const JsonLimits& limits = {}) {
    auto node = parse_json(text, {.name = "j"}, limits);
    REQUIRE_FALSE(node);
    CHECK(node.error().code == kb::ErrorCode::corrupt);
    return node.error().message;
}

} // namespace

TEST_CASE("what is read is written again", "[document][json]") {
    const std::string text = GENERATE(as<std::string>{},
                                      "null",
                                      "[]",
                                      "{}",
                                      "[1,-2,3.5,1e+300,true,false,null,\"\"]",
                                      R"({"b":{"y":[[],{}]},"a":"\"\\\b\f\n\r\t\u0001/ü€😀"})",
                                      "18446744073709551615",
                                      "-9223372036854775808",
                                      "0.1");
    CHECK(compact(good(text)) == text);
}

TEST_CASE("canonical JSON sorts keys by bytes and ends with a newline", "[document][json]") {
    const Node node = Node::table(
        {{"b", Node::table()}, {"B", Node::strings({"x", "y"})}, {"a", Node::table({{"k", 1}})}});
    CHECK(write_canonical_json(node) == "{\n"
                                        "  \"B\": [\n"
                                        "    \"x\",\n"
                                        "    \"y\"\n"
                                        "  ],\n"
                                        "  \"a\": {\n"
                                        "    \"k\": 1\n"
                                        "  },\n"
                                        "  \"b\": {}\n"
                                        "}\n");
    CHECK(write_json(node, {.indent = 0, .sort_keys = true, .final_newline = false}) ==
          R"({"B":["x","y"],"a":{"k":1},"b":{}})");
}

TEST_CASE("doubles read back as the same doubles", "[document][json]") {
    for (const double value : {1.0, 0.1, -0.0, 1e21, 5e-324, 1.7976931348623157e308, 123456789.0}) {
        const std::string text = compact(Node{value});
        CAPTURE(text);
        CHECK(good(text).as_double() == value);
    }
    CHECK(compact(Node{std::numeric_limits<double>::infinity()}) == "null");
}

TEST_CASE("invalid UTF-8 is replaced when written and refused when read", "[document][json]") {
    CHECK(compact(Node{"a\xff\xc3z\xed\xa0\x80"}) == "\"a\uFFFD\uFFFDz\uFFFD\uFFFD\uFFFD\"");
    CHECK(bad("{\"a\":\n \"\xff\"}").starts_with("j:2:3: this is not valid JSON: "));
}

TEST_CASE("errors carry line and column", "[document][json]") {
    const auto [text, message] = GENERATE(table<std::string, std::string>({
        {"{\"a\": 1,\n \"ü\": 2,\n \"ü\": 3}", "j:3:2: key 'ü' is given twice"},
        {"{\"a\": {\"b\": 1}, \"c\": {\"b\": 1, \"b\": 2}}", "j:1:31: key 'b' is given twice"},
        {"{\"k\": \"a\\u0000b\"}", "j:1:7: a string holds a NUL"},
        {"{\"a\\u0000\": 1}", "j:1:2: a key holds a NUL"},
    }));
    CHECK(bad(text) == message);
    CHECK(bad(std::string_view{"{}\0", 3}) == "j:1:3: the document holds a NUL");
    CHECK(bad("{\n\"a\" 1}").starts_with("j:2:5: this is not valid JSON: "));
    CHECK(bad("[1] x").starts_with("j:1:5: this is not valid JSON: "));
    CHECK(bad("").starts_with("j:1:1: this is not valid JSON: "));
    CHECK(bad("[1,]").starts_with("j:1:4: this is not valid JSON: "));
    CHECK(bad("// c\n1").starts_with("j:1:1: this is not valid JSON: "));
    CHECK(bad("1e999").starts_with("j:1:5: this is not valid JSON: "));
}

TEST_CASE("depth and size are bounded", "[document][json]") {
    CHECK(bad("[[[[", {.max_depth = 3}) == "j:1:4: nested deeper than 3 levels");
    CHECK(good("[[[]]]").as_array().size() == 1);
    CHECK(bad(std::string(1000000, '[')) == "j:1:65: nested deeper than 64 levels");
    CHECK(bad("[1,2,3]", {.max_depth = 3, .max_bytes = 6}) ==
          "j: the document has 7 B, the limit is 6 B");
}

TEST_CASE("keys and values know their places", "[document][json]") {
    const Node root = good("{ \"ä\" : [ 12, \"x\\\"y\" ],\n  \"b\":{\"c\":true}}");
    const auto place = [](const kb::Span& s) {
        return fmt::format("{}:{}-{}:{}", s.line, s.column, s.end_line, s.end_column);
    };
    const Node* list = root.find("ä");
    REQUIRE(list != nullptr);
    CHECK(place(list->key_span) == "1:3-1:6");
    CHECK(place(list->span) == "1:9-1:23");
    CHECK(place(list->as_array()[0].span) == "1:11-1:13");
    CHECK(place(list->as_array()[1].span) == "1:15-1:21");
    CHECK(place(root.find("b")->find("c")->span) == "2:12-2:16");
    CHECK(place(root.find("b")->key_span) == "2:3-2:6");
    CHECK(place(root.span) == "1:1-2:18");
}
