// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"

#include "support/catch.hpp"

namespace kb {
namespace {

Version v(std::string_view text) {
    return Version::parse(text).value();
}

TEST_CASE("versions compare as numbers and ignore trailing zeros", "[base][version]") {
    CHECK(v("2.9") < v("2.10"));
    CHECK(v("12") == v("12.0"));
    CHECK(v("2") < v("2.0.1"));
    CHECK(v("2.0.1") < v("2.1"));
    CHECK(v("3.0").to_text() == "3.0");
    CHECK(v("13").major_minor().to_text() == "13.0");
}

TEST_CASE("a version may have any number of components", "[base][version]") {
    CHECK(v("1.2.3.4.5.6").to_text() == "1.2.3.4.5.6");
    CHECK(v("2.65536").to_text() == "2.65536");
    CHECK(v("2.65535") < v("2.65536"));
    CHECK(v("2.65536") < v("3"));
    CHECK(v("18446744073709551615").major() == UINT64_MAX);
    CHECK(v("1.2.3.4.5.6").component(5) == 6);
    CHECK(v("1.2.3.4.5.6").component(6) == 0);
    CHECK(v("1.2.3.4") < v("1.2.3.4.0.1"));
    CHECK(v("1.2.3.4") == v("1.2.3.4.0"));
    CHECK(Version{}.empty());
    CHECK(v("0").size() == 1);
}

TEST_CASE("a version is digits and dots", "[base][version]") {
    for (const char* bad :
         {"", ".", "1.", ".1", "1..2", "a", "1.a", "-1", "1 ", "99999999999999999999"}) {
        CAPTURE(bad);
        CHECK_FALSE(Version::parse(bad));
    }
}

} // namespace
} // namespace kb
