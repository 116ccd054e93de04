// SPDX-License-Identifier: Apache-2.0
#include "check/check.hpp"

#include "check/report_json.hpp"
#include "document/json.hpp"
#include "support/check_inputs.hpp"

#include <algorithm>

namespace kb::check {
namespace {

Promise promise() {
    return {.variant = test::variant_of("torch-stable-abi211-cpu-x86_64-linux"),
            .manylinux = "manylinux_2_28",
            .python_abi = Version{{3, 9}},
            .torch_stable_abi = Version{{2, 11}}};
}

test::ElfSpec dirty() {
    return {.needed = {"libc.so.6", "libtorch.so", "libcudart.so.13"},
            .symbols = {{.name = "PyUnicode_AsUTF8"},
                        {.name = "forgotten"},
                        {.name = "_ZTVN3c1010TensorImplE"},
                        {.name = "f", .version = "GLIBC_2.34", .library = "libc.so.6"}},
            .exec_stack = true};
}

TEST_CASE("ids of the table are distinct words and each row can look", "[check]") {
    std::vector<std::string_view> ids;
    for (const Check& check : all_checks()) {
        ids.push_back(check.id);
        CHECK_FALSE(check.title.empty());
        CHECK((check.library != nullptr) == (check.applies != nullptr));
        CHECK((check.variant != nullptr) == (check.applies_to_variant != nullptr));
        CHECK((check.library != nullptr) != (check.variant != nullptr));
    }
    std::ranges::sort(ids);
    CHECK(std::ranges::adjacent_find(ids) == ids.end());
}

TEST_CASE("a clean library passes every check, a dirty one fails each", "[check]") {
    const test::ElfSpec clean{.needed = {"libc.so.6", "libtorch_cpu.so"},
                              .symbols = {{.name = "aoti_torch_get_data_ptr"}}};
    const Report good = run(test::input_of(clean, promise()), all_checks());
    CHECK(good.passed());
    CHECK(good.verdicts.size() == 9);
    const Report bad = run(test::input_of(dirty(), promise()), all_checks());
    CHECK_FALSE(bad.passed());
    for (const char* id :
         {"manylinux", "python-abi", "torch-stable-abi", "needed", "imports", "hygiene"}) {
        CAPTURE(id);
        CHECK(std::ranges::count(bad.findings, std::string{id}, &Finding::check) == 1);
    }
}

TEST_CASE("a file that could not be read fails unless it is allowed by name", "[check]") {
    CheckInput input{.promise = promise()};
    input.libraries.push_back({.path = "x.so", .unread_reason = "the file is empty"});
    Report report = run(input, all_checks());
    CHECK_FALSE(report.passed());
    const auto read = std::ranges::find(report.verdicts, "read", &Verdict::check);
    REQUIRE(read != report.verdicts.end());
    CHECK(read->reason == "the file is empty");
    input.allow_unchecked = {"read"};
    CHECK(run(input, all_checks()).passed());
}

TEST_CASE("a suppressed finding is told and does not count", "[check]") {
    CheckInput input = test::input_of(dirty(), promise());
    input.variant = "v";
    input.only = {"hygiene", "needed"};
    input.suppressions = {{.check = "hygiene", .library = "_k.abi3.so", .reason = "known"},
                          {.check = "needed", .subject = "another", .reason = "unused"}};
    Report report = run(input, all_checks());
    REQUIRE(report.findings.size() == 2);
    CHECK(report.findings[0].suppressed == "known");
    CHECK(report.findings[1].suppressed.empty());
    REQUIRE(report.verdicts.size() == 2);
    CHECK(report.verdicts[0].outcome == Outcome::passed);
    CHECK(report.verdicts[0].reason == "1 finding suppressed");
    CHECK(report.verdicts[1].outcome == Outcome::failed);
    CHECK_FALSE(report.passed());
    input.suppressions.push_back({.check = "needed", .variant = "v", .reason = "shipped apart"});
    CHECK(run(input, all_checks()).passed());
    const auto read = report_from_json(to_json(run(input, all_checks())));
    REQUIRE(read);
    CHECK(read->passed());
}

TEST_CASE("a report does not depend on the order of libraries", "[check]") {
    CheckInput ab{.promise = promise()};
    ab.libraries.push_back(test::library_of(dirty(), "a.so"));
    ab.libraries.push_back(test::library_of(dirty(), "b.so"));
    CheckInput ba{.promise = promise()};
    ba.libraries.push_back(test::library_of(dirty(), "b.so"));
    ba.libraries.push_back(test::library_of(dirty(), "a.so"));
    CHECK(run(ab, all_checks()) == run(ba, all_checks()));
}

TEST_CASE("a report survives JSON", "[check]") {
    CheckInput input = test::input_of(dirty(), promise());
    input.libraries.push_back({.path = "x.so", .unread_reason = "r"});
    input.allow_unchecked = {"read"};
    const Report report = run(input, all_checks());
    const std::vector<Report> reports{report};
    const document::Node json = to_json(reports);
    CHECK(json.text_or("schema") == "kernel-builder/report/1");
    const auto parsed =
        document::parse_json(document::write_json(json.find("variants")->as_array()[0]), {});
    REQUIRE(parsed);
    const auto read = report_from_json(*parsed);
    REQUIRE(read);
    CHECK(*read == report);
    CHECK_FALSE(report_from_json(document::Node::table()));
}

} // namespace
} // namespace kb::check
