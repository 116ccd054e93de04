// SPDX-License-Identifier: Apache-2.0
#include "check/report.hpp"

#include "support/catch.hpp"

namespace kb::check {
namespace {

TEST_CASE("a report passes only when every look was taken or excused by name", "[check]") {
    Report report{.variant = "v"};
    CHECK(report.passed()); // nothing to look at
    report.verdicts.push_back({.library = "a.so", .check = "needed", .outcome = Outcome::passed});
    CHECK(report.passed());
    report.verdicts.push_back(
        {.library = "a.so", .check = "hygiene", .outcome = Outcome::not_checked, .reason = "r"});
    CHECK_FALSE(report.passed());
    report.verdicts.back().allowed = true;
    CHECK(report.passed());
    report.verdicts.back().outcome = Outcome::failed;
    CHECK_FALSE(report.passed());
    report.verdicts.pop_back();
    report.findings.push_back({.check = "needed"});
    CHECK_FALSE(report.passed());
}

} // namespace
} // namespace kb::check
