// SPDX-License-Identifier: Apache-2.0
#include "check/abi_diff.hpp"

#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using Texts = std::vector<std::string>;

AbiDiff diff(const test::ElfSpec& before, const test::ElfSpec& after) {
    const Library a = test::library_of(before);
    const Library b = test::library_of(after);
    return diff_abi({.object = &*a.object}, {.object = &*b.object});
}

TEST_CASE("equal libraries do not differ", "[check][diff]") {
    const test::ElfSpec spec{.needed = {"libc.so.6"}, .symbols = {{.name = "f", .defined = true}}};
    CHECK(diff(spec, spec) == AbiDiff{});
    CHECK_FALSE(diff(spec, spec).breaks());
}

TEST_CASE("symbols, libraries, versions and architectures that come and go", "[check][diff]") {
    const AbiDiff out =
        diff({.needed = {"a.so"},
              .symbols = {{.name = "old", .defined = true}, {.name = "wanted"}},
              .fatbin = test::build_fatbin({{.sm = 80}, {.sm = 90}})},
             {.needed = {"b.so"},
              .symbols = {{.name = "now", .defined = true},
                          {.name = "f", .version = "GLIBC_2.34", .library = "libc.so.6"}},
              .fatbin = test::build_fatbin({{.sm = 90}, {.kind = 1, .sm = 90}})});
    CHECK(out.exports == NameChanges{.removed = {"old"}, .added = {"now"}});
    CHECK(out.imports == NameChanges{.removed = {"wanted"}, .added = {"f"}});
    CHECK(out.needed == NameChanges{.removed = {"a.so"}, .added = {"b.so"}});
    CHECK(out.versions.added == Texts{"libc.so.6 GLIBC_2.34"});
    CHECK(out.archs == NameChanges{.removed = {"8.0"}, .added = {"9.0+PTX"}});
    CHECK(out.breaks());
}

TEST_CASE("schemas and sections", "[check][diff]") {
    const Library library = test::library_of({});
    const AbiSide before{.object = &*library.object,
                         .sections = {{".text", 10}, {".data", 4}},
                         .schemas = {"f(Tensor x) -> Tensor", "g() -> ()"}};
    const AbiSide after{.object = &*library.object,
                        .sections = {{".text", 12}, {".data", 4}, {".nv_fatbin", 9}},
                        .schemas = {"f(Tensor x, int n=1) -> Tensor", "g() -> ()"}};
    const AbiDiff out = diff_abi(before, after);
    CHECK(out.schemas == NameChanges{.removed = {"f(Tensor x) -> Tensor"},
                                     .added = {"f(Tensor x, int n=1) -> Tensor"}});
    CHECK(out.sections == std::vector<SectionChange>{{".nv_fatbin", 0, 9}, {".text", 10, 12}});
    CHECK(out.breaks());
    CHECK_FALSE(diff_abi({.object = &*library.object}, {.object = &*library.object}).breaks());
}

} // namespace
} // namespace kb::check
