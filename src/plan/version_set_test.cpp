// SPDX-License-Identifier: Apache-2.0
#include "plan/selection.hpp"
#include "support/catch.hpp"

#include <string>

namespace kb::plan {

namespace {

Version v(std::string_view text) {
    return Version::parse(text).value();
}

} // namespace

TEST_CASE("a condition holds for the versions it describes", "[plan][selection]") {
    const auto [condition, version, expected] = GENERATE(table<std::string, std::string, bool>({
        {"13", "13.0", true},
        {"13", "13.2", true},
        {"13", "12.6", false},
        {"13.*", "13.2", true},
        {"13.0", "13.0", true},
        {"13.0", "13.2", false},
        {"13.0.2", "13.0", true},
        {">=2.12", "2.12", true},
        {">=2.12", "2.9", false},
        {"<=2.12", "2.12", true},
        {">2.12", "2.12", false},
        {"<2.12", "2.11", true},
        {"==2.12", "2.12", true},
        {"==2", "2.12", false},
        {"!=2.12", "2.12", false},
        {"!=2.12", "2.13", true},
        {">=2.11,<2.13", "2.12", true},
        {">=2.11,<2.13", "2.13", false},
        {">=2.11,!=2.12", "2.12", false},
        // Bare versions are alternatives.
        {"2.11,2.13", "2.11", true},
        {"2.11,2.13", "2.12", false},
        {"2.11, 2.13", "2.13", true},
        {"2.*,<2.12", "2.11", true},
        {"2.*,<2.12", "2.13", false},
    }));
    CAPTURE(condition, version);
    const auto set = VersionSet::parse(condition);
    REQUIRE(set.has_value());
    CHECK(set->contains(v(version)) == expected);
}

TEST_CASE("no condition holds for every version", "[plan][selection]") {
    CHECK(VersionSet{}.contains(v("2.11")));
    CHECK(VersionSet{}.is_any());
    CHECK_FALSE(VersionSet{}.names(v("2.11")));
}

TEST_CASE("only an exact version is asked for by name", "[plan][selection]") {
    CHECK(VersionSet::parse("13.2")->names(v("13.2")));
    CHECK(VersionSet::parse("==13.2")->names(v("13.2")));
    CHECK(VersionSet::parse("12.6,13.2")->names(v("13.2")));
    CHECK_FALSE(VersionSet::parse("13")->names(v("13.2")));
    CHECK_FALSE(VersionSet::parse("13.*")->names(v("13.2")));
    CHECK_FALSE(VersionSet::parse(">=13.2")->names(v("13.2")));
}

TEST_CASE("a malformed condition is named with the form", "[plan][selection]") {
    for (const char* text : {"", "x", ">=", "13.", "13.x", "=>13", "13,,12", "~=13", "13.*.*"}) {
        CAPTURE(text);
        const auto set = VersionSet::parse(text);
        REQUIRE_FALSE(set.has_value());
        CHECK(set.error().message.find("op one of >= <= > < == !=") != std::string::npos);
    }
}

} // namespace kb::plan
