// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "build/learnt.hpp"
#include "build/work_list.hpp"
#include "build/workspace.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace kb::build {

/// What a build would run and need, without hits of the compiler cache.
struct Estimate {
    std::size_t compilations = 0;
    std::size_t links = 0;
    /// Steps of these that never ran in this project: their cost is that of their class.
    std::size_t unmeasured = 0;
    double cpu_seconds = 0;
    /// Of the largest compilers that may run at a time, within the build's memory.
    std::uint64_t peak_bytes = 0;
    /// Objects, libraries and packages that are not there yet.
    std::uint64_t disk_bytes = 0;
    /// Packages of all variants of the plan, before the registry says what it has.
    std::uint64_t upload_bytes = 0;
};

struct EstimateInput {
    const plan::Plan& plan;
    const WorkList& work;
    const CostTable& steps;
    const CostTable& classes;
    unsigned jobs = 1;
    std::uint64_t memory_bytes = 0;
    /// Whether an output ("tu/<id>.o", "link/...") is there from an earlier build.
    std::function<bool(std::string_view)> is_made{};
};

/// Pure but for `is_made`.
[[nodiscard]] Estimate estimate(const EstimateInput& input);

} // namespace kb::build
