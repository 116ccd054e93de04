// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/build_json.hpp"

#include "base/text.hpp"
#include "cli/render.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

document::Node json_of(const build::Estimate& estimate) {
    return document::Node::table({{"compilations", estimate.compilations},
                                  {"links", estimate.links},
                                  {"unmeasured", estimate.unmeasured},
                                  {"cpu-seconds", estimate.cpu_seconds},
                                  {"peak-bytes", estimate.peak_bytes},
                                  {"disk-bytes", estimate.disk_bytes},
                                  {"upload-bytes", estimate.upload_bytes}});
}

} // namespace

std::string text_of(const build::Estimate& estimate, unsigned jobs) {
    std::string text = fmt::format("would run {} and {}: about {} of CPU time, {} of memory at -j "
                                   "{}, {} of disk; {} to upload",
                                   counted(estimate.compilations, "compilation"),
                                   counted(estimate.links, "link"),
                                   human_seconds(estimate.cpu_seconds),
                                   human_bytes(estimate.peak_bytes),
                                   jobs,
                                   human_bytes(estimate.disk_bytes),
                                   human_bytes(estimate.upload_bytes));
    if (estimate.unmeasured != 0) {
        text += fmt::format(" ({} of these steps never ran here)", estimate.unmeasured);
    }
    return text + "\n";
}

document::Node
json_of(const build::WorkList& work, const plan::Plan& plan, const build::Estimate& estimate) {
    const plan::PlanCounts counts = plan::count(plan);
    document::Node stale = document::Node::array();
    for (const build::WorkItem& item : work.stale) {
        stale.push(document::Node::table(
            {{"variant", item.variant}, {"reason", item.reason}, {"difference", item.difference}}));
    }
    return document::Node::table({{"schema", "kernel-builder/build-plan/1"},
                                  {"variants", counts.variants},
                                  {"units", counts.tus_distinct},
                                  {"units-without-sharing", counts.tus_in_all},
                                  {"arch-compiles", counts.arch_compiles},
                                  {"links", counts.links},
                                  {"lock", plan.lock_origin},
                                  {"lock-digest", plan.lock_digest.hex()},
                                  {"stale", std::move(stale)},
                                  {"fresh", document::Node::strings(work.fresh)},
                                  {"prediction", json_of(estimate)}});
}

document::Node json_of(const build::BuildReport& report) {
    document::Node variants = document::Node::array();
    for (const build::VariantResult& v : report.variants) {
        variants.push(document::Node::table({{"variant", v.variant},
                                             {"outcome", build::to_text(v.outcome)},
                                             {"failures", document::Node::strings(v.failures)}}));
    }
    document::Node failures = document::Node::array();
    for (const build::StepFailure& f : report.failures) {
        failures.push(document::Node::table({{"what", f.what},
                                             {"variants", document::Node::strings(f.variants)},
                                             {"output", f.text}}));
    }
    document::Node warnings = document::Node::array();
    for (const build::StepWarning& w : report.warnings) {
        warnings.push(document::Node::table({{"what", w.what}, {"output", w.text}}));
    }
    return document::Node::table({{"schema", "kernel-builder/build/1"},
                                  {"variants", std::move(variants)},
                                  {"up-to-date", document::Node::strings(report.fresh)},
                                  {"failures", std::move(failures)},
                                  {"warnings", std::move(warnings)},
                                  {"units", report.objects_wanted},
                                  {"compiled", report.compiled.size()},
                                  {"seconds", report.seconds}});
}

document::Node json_of(const build::ReproduceReport& report) {
    document::Node differences = document::Node::array();
    for (const build::FileDifference& d : report.differences) {
        differences.push(document::Node::table(
            {{"file", d.file},
             {"section", d.section.empty() ? document::Node{} : document::Node{d.section}},
             {"offset", d.offset},
             {"what", d.what}}));
    }
    document::Node builds = document::Node::array();
    for (const build::BuildReport& built : report.builds) {
        builds.push(json_of(built));
    }
    document::Node kept = document::Node::array();
    for (const sys::Path& path : report.kept) {
        kept.push(document::Node{path.string()});
    }
    return document::Node::table({{"schema", "kernel-builder/reproducible/1"},
                                  {"variant", report.variant},
                                  {"reproducible", report.equal()},
                                  {"differences", std::move(differences)},
                                  {"builds", std::move(builds)},
                                  {"kept", std::move(kept)}});
}

} // namespace kb::cli
