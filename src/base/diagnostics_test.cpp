// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.hpp"

#include "support/catch.hpp"

#include <array>

namespace kb {
namespace {

Span at(std::uint32_t line, std::uint32_t column, std::uint32_t end_column) {
    return {.file = "build.toml",
            .line = line,
            .column = column,
            .end_line = line,
            .end_column = end_column};
}

TEST_CASE("a diagnostic prints place, message, id, excerpt and notes", "[base][diagnostics]") {
    const Diagnostic d{Severity::error,
                       "unknown-key",
                       at(2, 1, 9),
                       "'licence' is not a key of [general]",
                       {"did you mean 'license'?"}};
    CHECK(to_text(d) == "build.toml:2:1: error: 'licence' is not a key of [general] "
                        "[unknown-key]\nnote: did you mean 'license'?\n");
    CHECK(to_text(d, "[general]\nlicence = 1\n") ==
          "build.toml:2:1: error: 'licence' is not a key of [general] [unknown-key]\n"
          " 2 | licence = 1\n"
          "   | ^~~~~~~~\n"
          "note: did you mean 'license'?\n");
}

TEST_CASE("a mistake without a place begins with its severity", "[base][diagnostics]") {
    CHECK(to_text({Severity::error, "bad-name", {}, "'1' is no name", {}}) ==
          "error: '1' is no name [bad-name]\n");
}

TEST_CASE("the caret counts code points and survives places past the text", "[base][diagnostics]") {
    const Diagnostic accents{Severity::warning, "x", at(1, 5, 6), "m", {}};
    CHECK(to_text(accents, "\xC3\xA4\xC3\xB6\xC3\xBC = 1\n") ==
          "build.toml:1:5: warning: m [x]\n 1 | \xC3\xA4\xC3\xB6\xC3\xBC = 1\n   |     ^\n");
    CHECK(to_text({Severity::error, "x", at(9, 9, 99), "m", {}}, "one line") ==
          "build.toml:9:9: error: m [x]\n");
    CHECK(to_text({Severity::error, "x", at(1, 90, 99), "m", {}}, "one") ==
          "build.toml:1:90: error: m [x]\n 1 | one\n   |    ^\n");
}

TEST_CASE("diagnostics sort by place and drop doubles", "[base][diagnostics]") {
    Diagnostics d;
    d.error("b", at(3, 1, 2), "later");
    d.warning("a", at(1, 1, 2), "first");
    d.error("b", at(3, 1, 2), "later");
    d.sort();
    REQUIRE(d.items().size() == 2);
    CHECK(d.items()[0].message == "first");
    CHECK(d.has_errors());
}

TEST_CASE("--strict turns warnings into errors", "[base][diagnostics]") {
    Diagnostics d;
    d.warning("a", at(1, 1, 2), "m");
    CHECK_FALSE(d.has_errors());
    d.promote_warnings();
    CHECK(d.has_errors());
}

TEST_CASE("nearest finds a misspelling and nothing far", "[base][diagnostics]") {
    constexpr std::array<std::string_view, 4> kKeys{
        "cuda-capabilities", "cuda-flags", "src", "include"};
    CHECK(nearest("cuda-capabilites", kKeys) == "cuda-capabilities");
    CHECK(nearest("Src", kKeys) == "src");
    CHECK(nearest("scr", kKeys) == "src");
    CHECK_FALSE(nearest("homepage", kKeys));
    CHECK_FALSE(nearest("", kKeys));
    CHECK_FALSE(nearest(std::string(10000, 'a'), kKeys));
}

} // namespace
} // namespace kb
