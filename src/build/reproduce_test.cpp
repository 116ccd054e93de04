// SPDX-License-Identifier: Apache-2.0
#include "build/reproduce.hpp"

#include "support/catch.hpp"
#include "support/elf_builder.hpp"
#include "support/support.hpp"

namespace kb::build {

namespace {

struct Two {
    test::TempDir dir{};
    sys::Path first = dir / "first";
    sys::Path second = dir / "second";

    void write(std::string_view name, std::string_view a, std::string_view b) const {
        test::write_text(first / name, a);
        test::write_text(second / name, b);
    }

    [[nodiscard]] std::vector<FileDifference> compare() const {
        auto found = compare_variants(sys::real_file_system(), first, second);
        REQUIRE(found);
        return *found;
    }
};

} // namespace

TEST_CASE("equal variants have no differences", "[build][reproduce]") {
    const Two two;
    two.write("metadata.json", "{}", "{}");
    two.write("layers/__init__.py", "a", "a");
    CHECK(two.compare().empty());
}

TEST_CASE("a text file differs from its first other byte on", "[build][reproduce]") {
    const Two two;
    two.write("metadata.json", "{\"a\": 1}", "{\"a\": 2}");
    two.write("ops.py", "same", "same and more");
    const auto found = two.compare();
    REQUIRE(found.size() == 2);
    // metadata.json holds the digest of the others, so that it comes last.
    CHECK(found[0] == FileDifference{.file = "ops.py", .offset = 4, .what = "changed"});
    CHECK(found[1] == FileDifference{.file = "metadata.json", .offset = 6, .what = "changed"});
}

TEST_CASE("the section of a library that differs is named", "[build][reproduce]") {
    const Two two;
    two.write("_k.abi3.so",
              test::build_elf({.soname = "k", .fatbin = "aaaaaaaa"}),
              test::build_elf({.soname = "k", .fatbin = "aabaaaaa"}));
    const auto found = two.compare();
    REQUIRE(found.size() == 1);
    CHECK(found[0].file == "_k.abi3.so");
    CHECK(found[0].section == ".nv_fatbin");
    CHECK(found[0].offset == 2);
}

TEST_CASE("a library without readable sections differs as a file", "[build][reproduce]") {
    const Two two;
    const std::string library = test::build_elf({.soname = "k", .section_headers = false});
    two.write("_k.abi3.so", library, library + "x");
    const auto found = two.compare();
    REQUIRE(found.size() == 1);
    CHECK(found[0].section.empty());
    CHECK(found[0].offset == library.size());
}

TEST_CASE("a file of one build alone is a difference", "[build][reproduce]") {
    const Two two;
    two.write("metadata.json", "{}", "{}");
    test::write_text(two.first / "a.py", "a");
    test::write_text(two.second / "b.py", "b");
    const auto found = two.compare();
    REQUIRE(found.size() == 2);
    CHECK(found[0] == FileDifference{.file = "a.py", .what = "only in the first"});
    CHECK(found[1] == FileDifference{.file = "b.py", .what = "only in the second"});
}

} // namespace kb::build
