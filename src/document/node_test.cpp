// SPDX-License-Identifier: Apache-2.0
#include "document/node.hpp"

#include "support/catch.hpp"

#include <cstdint>

using kb::document::Node;

TEST_CASE("a table keeps insertion order and replaces in place", "[document][node]") {
    Node table = Node::table({{"b", 1}, {"a", "x"}});
    table.set("c", true);
    table.set("b", 2);
    REQUIRE(table.entries().size() == 3);
    CHECK(table.entries()[0].key == "b");
    CHECK(table.entries()[0].value.as_int() == 2);
    CHECK(table.entries()[1].key == "a");
    CHECK(table.entries()[2].key == "c");
    CHECK(table.find("nothing") == nullptr);
    CHECK(Node{1}.find("nothing") == nullptr);
}

TEST_CASE("one number is one node, whatever type it came in", "[document][node]") {
    CHECK(Node{std::uint64_t{5}} == Node{5});
    CHECK(Node{std::uint64_t{UINT64_MAX}}.as_unsigned() == UINT64_MAX);
    CHECK(Node{std::uint64_t{UINT64_MAX}}.kind() == Node::Kind::integer);
    CHECK(Node{-1}.is_unsigned() == false);
    CHECK_FALSE(Node{1} == Node{1.0});
}

TEST_CASE("set and push make containers of an empty node", "[document][node]") {
    Node node;
    node.set("list", Node::array()).push("a");
    node.set("deep", {}).set("x", 1);
    CHECK(node == Node::table({{"list", Node::strings({"a"})}, {"deep", Node::table({{"x", 1}})}}));
}

TEST_CASE("text_or is tolerant of absence and of another type", "[document][node]") {
    const Node node = Node::table({{"s", "text"}, {"n", 1}});
    CHECK(node.text_or("s") == "text");
    CHECK(node.text_or("n", "-").append("|") == "-|");
    CHECK(node.text_or("none").empty());
    CHECK(Node{}.text_or("s", "-") == "-");
}

TEST_CASE("places are not part of the value", "[document][node]") {
    Node a{"x"};
    a.span.line = 7;
    CHECK(a == Node{"x"});
    CHECK(Node::datetime("1979-05-27").kind_text() == "a date or time");
    CHECK_FALSE(Node::datetime("1979-05-27") == Node{"1979-05-27"});
}
