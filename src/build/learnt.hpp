// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "build/tokens.hpp"
#include "plan/plan.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace kb::build {

/// What one step took when it ran last, or what steps of its class take on the average.
struct Cost {
    std::uint64_t peak_bytes = 0;
    double cpu_seconds = 0;
    /// Of what it left: object, library or package.
    std::uint64_t bytes = 0;
    /// How many runs the average is of.
    std::uint64_t runs = 1;

    bool operator==(const Cost&) const = default;
};

/// Costs by step ("cxx a.cpp torch", "link <variant>") or by class ("cxx", "cuda").
using CostTable = std::map<std::string, Cost>;

/// Lines "<key>\t<peak bytes>\t<cpu ms>\t<bytes>\t<runs>"; what cannot be read is left out, and of
/// a line that ends after the peak the rest is 0.
[[nodiscard]] CostTable parse_costs(std::string_view text);
[[nodiscard]] std::string write_costs(const CostTable& table);

/// What the compiler is likely to need for the same source again, whatever torch or flags. Device
/// code counts by its architectures.
[[nodiscard]] std::string step_key(const plan::Tu& tu);
[[nodiscard]] std::string link_key(const plan::PlannedVariant& variant);
/// The class that stands in for a step that never ran: kind of source, and whether it sees torch.
[[nodiscard]] std::string class_key(const plan::Tu& tu);

/// Both tables after one more run; `size_of` is what the step left, 0 when unknown.
void learn_step(const plan::Tu& tu,
                const LaunchRecord& run,
                std::uint64_t bytes,
                CostTable& steps,
                CostTable& classes);
void learn_link(const plan::PlannedVariant& variant,
                const Cost& cost,
                CostTable& steps,
                CostTable& classes);

/// The step's own cost, else that of its class, else a guess; `runs` is 0 for what never ran here.
[[nodiscard]] Cost cost_of(const plan::Tu& tu, const CostTable& steps, const CostTable& classes);
[[nodiscard]] Cost
cost_of(const plan::PlannedVariant& variant, const CostTable& steps, const CostTable& classes);

/// Empty when there is none.
CostTable load_costs(sys::FileSystem& fs, const sys::Path& path);
Result<void> save_costs(sys::FileSystem& fs, const sys::Path& path, const CostTable& table);

/// Seconds of the last run of each output in Ninja's log ("# ninja log v5").
[[nodiscard]] std::map<std::string, double> parse_ninja_log(std::string_view text);

} // namespace kb::build
