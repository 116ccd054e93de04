// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "build/estimate.hpp"
#include "build/ninja_run.hpp"
#include "build/record.hpp"
#include "build/tokens.hpp"
#include "build/work_list.hpp"
#include "check/report.hpp"
#include "plan/plan.hpp"
#include "project/git_state.hpp"
#include "project/project.hpp"
#include "sandbox/level.hpp"
#include "sys/clock.hpp"
#include "toolchain/toolchain.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// The machine, borrowed.
struct BuildServices {
    sys::FileSystem& fs;
    sys::ProcessRunner& processes;
    sys::Clock& clock;
    const sys::EnvironmentMap& environment;
};

struct BuildOptions {
    sys::Path store{};
    sandbox::Level level = sandbox::Level::namespaces;
    unsigned jobs = 1;
    std::uint64_t memory_bytes = 0;
    bool fail_fast = false;
    bool use_cache = true;
    toolchain::FetchOptions fetch{};
    std::vector<std::string> allow_unchecked{};
    /// This program, for sandbox levels that need it.
    sys::Path self{};
};

/// What a build tells while it runs; every member may be empty.
struct BuildEvents {
    /// "fetching toolchains", "compiling 12 units for 6 variants": one line a stage.
    std::function<void(std::string_view)> on_stage{};
    std::function<void(const NinjaProgress&)> on_progress{};
};

/// How one variant ended in this run.
struct VariantResult {
    std::string variant{};
    Outcome outcome = Outcome::built;
    std::vector<std::string> failures{};
    std::optional<check::Report> report{};
};

/// One failed compile or link: what it was and the tail of what the compiler said.
struct StepFailure {
    std::string what{};
    std::vector<std::string> variants{};
    std::string text{};
};

struct BuildReport {
    /// Stale variants in plan order.
    std::vector<VariantResult> variants{};
    std::vector<std::string> fresh{};
    std::vector<StepFailure> failures{};
    /// Of the steps that ran; a hit of the cache repeats them, an object that is there does not.
    std::vector<StepWarning> warnings{};
    /// Compiler runs of this build, slowest first; hits of the cache do not run.
    std::vector<LaunchRecord> compiled{};
    std::size_t objects_wanted = 0;
    double seconds = 0;

    [[nodiscard]] bool ok() const;
};

/// Everything a build needs, decided.
struct BuildInput {
    const project::Project& project;
    const plan::SourceSnapshot& snapshot;
    const plan::Plan& plan;
    const plan::Lock& lock;
    project::GitState git{};
};

/// Last record and soundness of each variant of the plan.
Result<std::vector<VariantState>>
read_states(const BuildServices& services, const project::Project& project, const plan::Plan& plan);

/// What run() would take, from what earlier builds of this project took, else from the table of
/// classes beside the store. Needs no toolchain and writes nothing.
Estimate foresee(const BuildServices& services,
                 const BuildInput& input,
                 const WorkList& work,
                 const BuildOptions& options);

/// The table of classes: "learnt" beside the store, as ccache is.
[[nodiscard]] sys::Path costs_beside(const sys::Path& store);

/// Builds the stale variants: provision, materialise, one Ninja run in the sandbox, then per
/// variant whose library exists assemble, check, seal, record. Variants that cannot be finished do
/// not hold up others. An Error means that nothing could be started or that the run was interrupted
/// (`cancelled`); finished objects and packages stay.
Result<BuildReport> run(const BuildInput& input,
                        const WorkList& work,
                        const BuildOptions& options,
                        const BuildServices& services,
                        const BuildEvents& events);

} // namespace kb::build
