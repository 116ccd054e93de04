// SPDX-License-Identifier: Apache-2.0
#include "build/estimate.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace kb::build {

namespace {

bool is_stale(const WorkList& work, const std::string& variant) {
    return std::ranges::find(work.stale, variant, &WorkItem::variant) != work.stale.end();
}

/// Units of the stale variants that have no object yet.
std::set<std::string_view> missing_units(const EstimateInput& input) {
    std::set<std::string_view> out;
    for (const plan::PlannedVariant& variant : input.plan.variants) {
        if (!is_stale(input.work, variant.name.text())) {
            continue;
        }
        for (const std::string_view id : variant.tus) {
            if (!input.is_made(input.plan.tu(id).object)) {
                out.insert(id);
            }
        }
    }
    return out;
}

void add_step(const Cost& cost, Estimate& out) {
    out.cpu_seconds += cost.cpu_seconds;
    out.unmeasured += cost.runs == 0 ? 1 : 0;
}

} // namespace

Estimate estimate(const EstimateInput& input) {
    Estimate out;
    std::vector<std::uint64_t> peaks;
    const std::set<std::string_view> units = missing_units(input);
    for (const plan::Tu& tu : input.plan.tus) {
        if (units.contains(tu.id)) {
            const Cost cost = cost_of(tu, input.steps, input.classes);
            add_step(cost, out);
            peaks.push_back(cost.peak_bytes);
            out.disk_bytes += cost.bytes;
            ++out.compilations;
        }
    }
    for (const plan::PlannedVariant& variant : input.plan.variants) {
        const Cost cost = cost_of(variant, input.steps, input.classes);
        out.upload_bytes += cost.bytes;
        if (!is_stale(input.work, variant.name.text())) {
            continue;
        }
        out.disk_bytes += cost.bytes; // the package; the link's output is about as large
        const bool relinks = !variant.link.output.empty() &&
                             (!input.is_made(variant.link.output) ||
                              std::ranges::any_of(variant.tus, [&](std::string_view id) {
                                  return units.contains(id);
                              }));
        if (relinks) {
            add_step(cost, out);
            out.disk_bytes += cost.bytes;
            ++out.links;
        }
    }
    std::ranges::sort(peaks, std::ranges::greater{});
    peaks.resize(std::min<std::size_t>(peaks.size(), input.jobs));
    for (const std::uint64_t peak : peaks) {
        out.peak_bytes += peak;
    }
    if (input.memory_bytes != 0 && !peaks.empty()) {
        // The launchers wait for memory; one compiler alone may always run.
        out.peak_bytes = std::min(out.peak_bytes, std::max(input.memory_bytes, peaks.front()));
    }
    return out;
}

} // namespace kb::build
