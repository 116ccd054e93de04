// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include "support/catch.hpp"

namespace kb {
namespace {

TEST_CASE("split keeps empty pieces", "[base][text]") {
    CHECK(split("a,,b", ',') == std::vector<std::string_view>{"a", "", "b"});
    CHECK(split("", ',') == std::vector<std::string_view>{""});
}

TEST_CASE("numbers are digits only and do not overflow", "[base][text]") {
    CHECK(parse_unsigned("18446744073709551615") == 18446744073709551615ULL);
    CHECK_FALSE(parse_unsigned("18446744073709551616"));
    CHECK_FALSE(parse_unsigned("-1"));
    CHECK_FALSE(parse_unsigned("+1"));
    CHECK_FALSE(parse_unsigned(" 1"));
    CHECK_FALSE(parse_unsigned(""));
}

TEST_CASE("natural order compares runs of digits as numbers", "[base][text]") {
    CHECK(natural_less("sm_90", "sm_100"));
    CHECK(natural_less("9.0", "9.0a"));
    CHECK(natural_less("8.0", "10.0"));
    CHECK_FALSE(natural_less("10.0", "10.0"));
    CHECK(natural_less("01", "1") != natural_less("1", "01"));
}

TEST_CASE("UTF-8 is judged by the table of the standard", "[base][text]") {
    CHECK(is_valid_utf8("plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"));
    for (const std::string bad :
         {"\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
        CHECK_FALSE(is_valid_utf8(bad));
    }
}

TEST_CASE("control characters are shown, not sent", "[base][text]") {
    CHECK(escape_control("a\x1b[31mb\n") == "a\\x1b[31mb\\x0a");
}

TEST_CASE("lists, counts and sizes read as English", "[base][text]") {
    const std::vector<std::string> names{"a", "b", "c"};
    CHECK(quoted_list(names) == "'a', 'b' and 'c'");
    CHECK(counted(1, "file") == "1 file");
    CHECK(counted(0, "file") == "0 files");
    CHECK(human_bytes(999) == "999 B");
    CHECK(human_bytes(1'500'000) == "1.5 MB");
    CHECK(replace_all("a-b-c", "-", "__") == "a__b__c");
    CHECK(trim(" \t x \n") == "x");
}

} // namespace
} // namespace kb
