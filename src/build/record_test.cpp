// SPDX-License-Identifier: Apache-2.0
#include "build/record.hpp"

#include "build/work_list.hpp"
#include "support/catch.hpp"

namespace kb::build {
namespace {

digest::KeyFile key(std::string_view sources) {
    digest::KeyFile out;
    out.set("sources", sources);
    return out;
}

Record built(std::string_view sources) {
    return {.variant = "torch-cpu",
            .key = key(sources),
            .package_digest = "d",
            .sandbox = "namespaces",
            .finished = "2026-01-01T00:00:00Z",
            .seconds = 1.5,
            .peak_bytes = 7,
            .log = "log/x",
            .failures = {"a", "b"}};
}

plan::Plan one_variant(std::string_view sources) {
    plan::Plan plan;
    plan.variants.push_back({.name = backend::VariantName::parse("torch-cpu").value()});
    plan.variants[0].key.lines = key(sources);
    return plan;
}

TEST_CASE("a record reads back as it was written", "[build][record]") {
    const Record record = built("1");
    const Record again = parse_record(write_record(record)).value();
    CHECK(again.variant == record.variant);
    CHECK(again.key.digest() == record.key.digest());
    CHECK(again.seconds == record.seconds);
    CHECK(again.peak_bytes == record.peak_bytes);
    CHECK(again.failures == record.failures);
    CHECK(write_record(again) == write_record(record));
}

TEST_CASE("a broken record is an error, not a fresh variant", "[build][record]") {
    for (const char* bad :
         {"",
          "{}",
          "[]",
          R"({"schema":"kernel-builder/record/1","variant":"x","outcome":"perhaps"})"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_record(bad));
    }
}

TEST_CASE("a variant is built again when anything that decides its bytes changed",
          "[build][work]") {
    struct Case {
        std::optional<Record> record;
        PackageState package;
        std::string reason; // empty: fresh
    };

    Record failed = built("1");
    failed.outcome = Outcome::check_failed;
    Record weak = built("1");
    weak.sandbox = "plain";
    const Case c = GENERATE_COPY(values<Case>(
        {{std::nullopt, PackageState::sound, "never built here"},
         {built("1"), PackageState::sound, ""},
         {built("0"), PackageState::sound, "what it is built from changed"},
         {built("1"), PackageState::missing, "its package is missing"},
         {built("1"), PackageState::changed, "its package was changed after the build"},
         {failed, PackageState::sound, "the last build ended with 'check-failed'"},
         {weak, PackageState::sound, "it was built at sandbox level 'plain'"}}));
    const std::vector<VariantState> states{
        {.variant = "torch-cpu", .record = c.record, .package = c.package}};
    const WorkList work = select_work(one_variant("1"), states, "namespaces");
    CAPTURE(c.reason);
    if (c.reason.empty()) {
        CHECK(work.fresh == std::vector<std::string>{"torch-cpu"});
        CHECK(work.stale.empty());
    } else {
        REQUIRE(work.stale.size() == 1);
        CHECK(work.stale[0].reason == c.reason);
    }
}

TEST_CASE("a variant whose statement was deleted is sealed again", "[build][work]") {
    const std::vector<VariantState> states{{.variant = "torch-cpu",
                                            .record = built("1"),
                                            .package = PackageState::sound,
                                            .has_statement = false}};
    const WorkList work = select_work(one_variant("1"), states, "namespaces");
    REQUIRE(work.stale.size() == 1);
    CHECK(work.stale[0].reason == "its statement is missing");
}

TEST_CASE("what says that its sources are not committed is made again when they are",
          "[build][work]") {
    const std::vector<VariantState> states{{.variant = "torch-cpu",
                                            .record = built("1"),
                                            .package = PackageState::sound,
                                            .is_dirty = true}};
    const plan::Plan plan = one_variant("1");
    CHECK(select_work(plan, states, "namespaces").stale.empty());
    const WorkList work = select_work(plan, states, "namespaces", Sources::committed);
    REQUIRE(work.stale.size() == 1);
    CHECK(work.stale[0].reason.contains("not committed"));
}

TEST_CASE("the lines that differ are named", "[build][work]") {
    const std::vector<VariantState> states{
        {.variant = "torch-cpu", .record = built("0"), .package = PackageState::sound}};
    CHECK(select_work(one_variant("1"), states, "namespaces").stale.at(0).difference ==
          "- sources 0\n+ sources 1\n");
}

} // namespace
} // namespace kb::build
