// SPDX-License-Identifier: Apache-2.0
#include "hub/tree.hpp"

#include "document/json.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

namespace kb::hub {

namespace {

document::Node json(std::string_view text) {
    return *document::parse_json(text, {});
}

} // namespace

TEST_CASE("tree entries round-trip", "[hub][tree]") {
    const LfsPointer pointer{.oid = digest::sha256("x"), .size = 1};
    const std::vector<TreeEntry> entries{
        {.kind = EntryKind::directory, .oid = digest::sha1("d"), .path = RelPath::literal("build")},
        {.oid = digest::sha1("f"), .size = 12, .path = RelPath::literal("build/a.py")},
        {.oid = pointer_id(pointer),
         .size = 1,
         .path = RelPath::literal("build/a.so"),
         .lfs = pointer}};
    document::Node page = document::Node::array();
    for (const TreeEntry& entry : entries) {
        page.push(to_json(entry));
    }
    CHECK(*parse_tree_page(page) == entries);
}

TEST_CASE("an LFS entry says how long its pointer is", "[hub][tree]") {
    const LfsPointer pointer{.oid = digest::sha256("x"), .size = 12345};
    const document::Node entry = to_json(TreeEntry{.lfs = pointer});
    REQUIRE(entry.find("lfs") != nullptr);
    CHECK(entry.find("lfs")->find("pointerSize")->as_unsigned() == to_text(pointer).size());
}

TEST_CASE("entries of a hostile server are refused", "[hub][tree]") {
    const std::string oid(40, 'a');
    const std::string text = GENERATE_COPY(
        fmt::format(R"({{"type":"file","oid":"{}","size":1,"path":"../x"}})", oid),
        fmt::format(R"({{"type":"file","oid":"{}","size":1,"path":"/x"}})", oid),
        fmt::format(R"({{"type":"file","oid":"{}","size":-1,"path":"x"}})", oid),
        fmt::format(R"({{"type":"file","oid":"{}","path":"x"}})", oid),
        fmt::format(R"({{"type":"link","oid":"{}","size":1,"path":"x"}})", oid),
        fmt::format(R"({{"type":"file","oid":"{}","size":1,"path":"x","lfs":{{"oid":"1"}}}})", oid),
        std::string{R"({"type":"file","oid":"abc","size":1,"path":"x"})"},
        std::string{R"({"type":"file","size":1,"path":"x"})"},
        std::string{"[]"});
    INFO(text);
    CHECK_FALSE(parse_tree_entry(json(text)).has_value());
}

TEST_CASE("a directory needs no size", "[hub][tree]") {
    const std::string text =
        fmt::format(R"({{"type":"directory","oid":"{}","path":"a","x":1}})", std::string(40, 'a'));
    CHECK(parse_tree_entry(json(text))->kind == EntryKind::directory);
}

TEST_CASE("the next page is found in a Link header", "[hub][tree]") {
    CHECK(next_link(write_next_link("http://h/a?cursor=x")) == "http://h/a?cursor=x");
    CHECK(next_link("<http://h/1>; rel=\"last\", <http://h/2>; rel=\"next\"") == "http://h/2");
    CHECK(next_link("<http://h/2>; rel=\"next\", <http://h/1>; rel=\"last\"") == "http://h/2");
    CHECK(next_link("<http://h/2?a=1,2>; rel=next") == "http://h/2?a=1,2");
    const std::string none =
        GENERATE("", "<x>", "<http://h/1>; rel=\"last\"", "rel=\"next\"", "<", ">;<");
    INFO(none);
    CHECK_FALSE(next_link(none).has_value());
}

} // namespace kb::hub
