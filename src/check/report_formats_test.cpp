// SPDX-License-Identifier: Apache-2.0
#include "check/report_formats.hpp"

#include "support/catch.hpp"

namespace kb::check {
namespace {

Report report() {
    return {.variant = "torch-cpu",
            .verdicts = {{.library = "a b.so", .check = "hygiene", .outcome = Outcome::passed},
                         {.library = "a b.so", .check = "needed", .outcome = Outcome::failed},
                         {.library = "c.so", .check = "read", .reason = "truncated"},
                         {.library = "d.so",
                          .check = "device-code",
                          .reason = "compressed",
                          .allowed = true}},
            .findings = {{.library = "a b.so",
                          .check = "needed",
                          .subject = "libx.so",
                          .message = "needs 'libx.so' & <more>\x01",
                          .next_step = "link it"},
                         {.library = "a b.so",
                          .check = "needed",
                          .subject = "liby.so",
                          .message = "needs 'liby.so'",
                          .suppressed = "in every driver"}}};
}

const document::Node& at(const document::Node& array, std::size_t index) {
    REQUIRE(index < array.as_array().size());
    return array.as_array()[index];
}

TEST_CASE("SARIF has a result for everything that is not a pass", "[check][formats]") {
    const std::vector<Report> reports{report()};
    const document::Node sarif = to_sarif(reports, "1.2.3");
    CHECK(sarif.text_or("version") == "2.1.0");
    const document::Node& run = at(*sarif.find("runs"), 0);
    const document::Node& driver = *run.find("tool")->find("driver");
    CHECK(driver.text_or("semanticVersion") == "1.2.3");
    std::string rules;
    for (const document::Node& rule : driver.find("rules")->as_array()) {
        rules += rule.text_or("id") + " ";
    }
    CHECK(rules == "device-code hygiene needed read ");
    const document::Node& results = *run.find("results");
    REQUIRE(results.as_array().size() == 4);
    const document::Node& first = at(results, 0);
    CHECK(first.text_or("ruleId") == "needed");
    CHECK(first.text_or("level") == "error");
    CHECK(first.find("suppressions") == nullptr);
    const document::Node& place = at(*first.find("locations"), 0);
    CHECK(place.find("physicalLocation")->find("artifactLocation")->text_or("uri") ==
          "torch-cpu/a%20b.so");
    CHECK(at(*place.find("logicalLocations"), 0).text_or("fullyQualifiedName") == "libx.so");
    CHECK(at(*at(results, 1).find("suppressions"), 0).text_or("justification") ==
          "in every driver");
    CHECK(at(results, 2).find("message")->text_or("text") == "not checked: truncated");
    CHECK(at(results, 2).text_or("kind") == "fail");
    CHECK(at(results, 3).text_or("kind") == "open");
    CHECK(at(results, 3).text_or("level") == "none");
}

TEST_CASE("JUnit has a case for each verdict", "[check][formats]") {
    const std::vector<Report> reports{report()};
    CHECK(to_junit(reports) ==
          R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="2" skipped="1">
  <testsuite name="torch-cpu" tests="4" failures="2" skipped="1">
    <testcase classname="torch-cpu/a b.so" name="hygiene"/>
    <testcase classname="torch-cpu/a b.so" name="needed">
      <failure type="finding" message="needs 'libx.so' &amp; &lt;more&gt;?">needs 'libx.so' &amp; &lt;more&gt;?
  next: link it
</failure>
      <system-out>suppressed (in every driver): needs 'liby.so'
</system-out>
    </testcase>
    <testcase classname="torch-cpu/c.so" name="read">
      <failure type="not-checked" message="truncated">truncated</failure>
    </testcase>
    <testcase classname="torch-cpu/d.so" name="device-code">
      <skipped message="compressed"/>
    </testcase>
  </testsuite>
</testsuites>
)");
}

} // namespace
} // namespace kb::check
