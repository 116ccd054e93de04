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

TEST_CASE("a version is digits and dots", "[base][version]") {
    for (const char* bad :
         {"", ".", "1.", ".1", "1..2", "a", "1.a", "-1", "1 ", "99999999999999999999"}) {
        CAPTURE(bad);
        CHECK_FALSE(Version::parse(bad));
    }
}

} // namespace
} // namespace kb
