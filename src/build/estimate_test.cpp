// SPDX-License-Identifier: Apache-2.0
#include "build/estimate.hpp"

#include "support/catch.hpp"

#include <set>

namespace kb::build {
namespace {

constexpr std::uint64_t kMiB = 1UL << 20U;

plan::Tu unit(std::string id, std::string_view source) {
    plan::Tu tu;
    tu.id = id;
    tu.source = RelPath::literal(source);
    tu.object = "tu/" + id + ".o";
    return tu;
}

plan::PlannedVariant variant(std::string_view name, Words tus) {
    return {.name = backend::VariantName::parse(name).value(),
            .tus = std::move(tus),
            .link = {.output = "link/" + std::string{name} + "/x.so"}};
}

const std::string kCpu = "torch-stable-abi211-cpu-x86_64-linux";
const std::string kCuda = "torch-stable-abi211-cu130-x86_64-linux";

/// Two variants that share unit "0a".
plan::Plan two_variants() {
    plan::Plan plan;
    plan.tus = {unit("0a", "a.cpp"), unit("0b", "b.cu"), unit("0c", "c.cpp")};
    plan.tus[1].kind = backend::SourceKind::cuda;
    plan.tus[1].archs = {"8.0", "9.0"};
    plan.variants = {variant(kCpu, {"0a", "0c"}), variant(kCuda, {"0a", "0b"})};
    return plan;
}

WorkList all_stale() {
    return {.stale = {{.variant = kCpu}, {.variant = kCuda}}};
}

TEST_CASE("costs read back as they were written", "[build][estimate]") {
    const CostTable table{
        {"cxx a.cpp torch", {.peak_bytes = 7, .cpu_seconds = 1.5, .bytes = 9, .runs = 3}},
        {"link v", {.peak_bytes = 1, .cpu_seconds = 0.25, .bytes = 2}}};
    CHECK(parse_costs(write_costs(table)) == table);
    // A file of an earlier version knew peaks only; what is no line is nothing.
    const CostTable old = parse_costs("cxx a.cpp\t42\nnonsense\nx\ty\n\t\t\n");
    REQUIRE(old.size() == 1);
    CHECK(old.at("cxx a.cpp").peak_bytes == 42);
}

TEST_CASE("a step that ran is foreseen as it was, by architecture", "[build][estimate]") {
    const plan::Plan plan = two_variants();
    CostTable steps;
    CostTable classes;
    learn_step(
        plan.tus[1],
        {.object = "tu/0b.o", .peak_bytes = 300 * kMiB, .user_seconds = 7, .system_seconds = 1},
        4000,
        steps,
        classes);
    const Cost same = cost_of(plan.tus[1], steps, classes);
    CHECK(same.cpu_seconds == Approx(8));
    CHECK(same.bytes == 4000);
    CHECK(same.peak_bytes == 300 * kMiB);
    CHECK(same.runs == 1);
    plan::Tu more = plan.tus[1];
    more.archs.emplace_back("10.0");
    CHECK(cost_of(more, steps, classes).cpu_seconds == Approx(12));
    // Another CUDA file that never ran is like it, and says that it was not measured.
    plan::Tu other = plan.tus[1];
    other.source = RelPath::literal("new.cu");
    CHECK(cost_of(other, steps, classes).cpu_seconds == Approx(8));
    CHECK(cost_of(other, steps, classes).runs == 0);
    // C++ is not.
    CHECK(cost_of(plan.tus[0], steps, classes).cpu_seconds == Approx(1.5));
}

TEST_CASE("a class is the average of its runs", "[build][estimate]") {
    const plan::Plan plan = two_variants();
    CostTable steps;
    CostTable classes;
    for (const double seconds : {1.0, 2.0, 6.0}) {
        learn_step(
            plan.tus[0],
            {.peak_bytes = static_cast<std::uint64_t>(seconds) * 100, .user_seconds = seconds},
            10,
            steps,
            classes);
    }
    CHECK(classes.at("cxx").cpu_seconds == Approx(3));
    CHECK(classes.at("cxx").peak_bytes == Approx(300));
    CHECK(classes.at("cxx").runs == 3);
    CHECK(steps.at("cxx a.cpp").cpu_seconds == Approx(6)); // a step is as it was last
}

TEST_CASE("an estimate counts what is missing, each once", "[build][estimate]") {
    const plan::Plan plan = two_variants();
    const CostTable steps{{"cxx a.cpp", {.peak_bytes = 100 * kMiB, .cpu_seconds = 2, .bytes = 10}},
                          {"cuda b.cu", {.peak_bytes = 300 * kMiB, .cpu_seconds = 5, .bytes = 20}},
                          {"cxx c.cpp", {.peak_bytes = 200 * kMiB, .cpu_seconds = 3, .bytes = 30}},
                          {"link " + kCpu, {.cpu_seconds = 1, .bytes = 1000}},
                          {"link " + kCuda, {.cpu_seconds = 1, .bytes = 2000}}};
    const CostTable none;
    std::set<std::string, std::less<>> made;
    const WorkList work = all_stale();
    EstimateInput input{.plan = plan,
                        .work = work,
                        .steps = steps,
                        .classes = none,
                        .jobs = 2,
                        .is_made = [&](std::string_view o) {
                            return made.contains(o);
                        }};
    const Estimate cold = estimate(input);
    CHECK(cold.compilations == 3);
    CHECK(cold.links == 2);
    CHECK(cold.unmeasured == 0);
    CHECK(cold.cpu_seconds == Approx(2 + 2 * 5 + 3 + 2));
    CHECK(cold.peak_bytes == 500 * kMiB);
    CHECK(cold.disk_bytes == 10 + 40 + 30 + 2 * 3000);
    CHECK(cold.upload_bytes == 3000);
    input.memory_bytes = 400 * kMiB;
    CHECK(estimate(input).peak_bytes == 400 * kMiB);
    input.memory_bytes = kMiB;
    CHECK(estimate(input).peak_bytes == 300 * kMiB);
    // Everything compiled and linked, one package gone.
    made = {"tu/0a.o", "tu/0b.o", "tu/0c.o", "link/" + kCpu + "/x.so", "link/" + kCuda + "/x.so"};
    const WorkList one{.stale = {{.variant = kCpu}}, .fresh = {kCuda}};
    const EstimateInput again{.plan = plan,
                              .work = one,
                              .steps = steps,
                              .classes = none,
                              .jobs = 2,
                              .is_made = input.is_made};
    CHECK(estimate(again).compilations == 0);
    CHECK(estimate(again).links == 0);
    CHECK(estimate(again).disk_bytes == 1000);
    CHECK(estimate(again).upload_bytes == 3000);
    // One object gone: its unit and the link.
    made.erase("tu/0c.o");
    CHECK(estimate(again).compilations == 1);
    CHECK(estimate(again).links == 1);
}

TEST_CASE("Ninja's log tells how long the last run of an output took", "[build][estimate]") {
    const auto seconds = parse_ninja_log("# ninja log v5\n"
                                         "0\t423\t17\ttu/a.o\tff\n"
                                         "10\t3900\t17\tlink/v/x.so\tff\n"
                                         "100\t350\t18\tlink/v/x.so\tff\n"
                                         "9\t3\t1\tbackwards\tff\ncut");
    REQUIRE(seconds.size() == 2);
    CHECK(seconds.at("tu/a.o") == Approx(0.423));
    CHECK(seconds.at("link/v/x.so") == Approx(0.25));
}

} // namespace
} // namespace kb::build
