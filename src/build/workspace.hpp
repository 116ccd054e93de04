// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/result.hpp"
#include "build/tokens.hpp"
#include "plan/plan.hpp"
#include "project/project.hpp"
#include "sandbox/level.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// `.kernel-builder/` of a project: where a build reads and writes.
struct Workspace {
    sys::Path state{};
    sandbox::Level level = sandbox::Level::namespaces;

    /// "work", or "work-<level>": objects of a weaker level are never linked by a stronger one.
    [[nodiscard]] sys::Path work() const { return state / named("work"); }

    /// The fixed places as links, for levels without mounts (toolchain::write_host_view).
    [[nodiscard]] sys::Path view() const { return state / named("view"); }

    /// Where compilers must not write: below the work folder only where a mount protects it.
    [[nodiscard]] sys::Path source() const {
        return sandbox::has_fixed_paths(level) ? work() / "source" : view() / "src";
    }

    [[nodiscard]] sys::Path launch() const { return work() / "launch"; }

    [[nodiscard]] sys::Path scratch() const { return state / "scratch"; }

    [[nodiscard]] sys::Path stage(std::string_view variant) const {
        return state / "stage" / variant;
    }

    [[nodiscard]] sys::Path record(std::string_view variant) const {
        return state / "record" / (std::string{variant} + ".json");
    }

    [[nodiscard]] sys::Path log(std::string_view name) const {
        return state / "log" / (std::string{name} + ".txt");
    }

    [[nodiscard]] sys::Path peaks() const { return state / "record" / "peaks"; }

    [[nodiscard]] sys::Path hashes() const { return state / "hashes"; }

    /// `name`, or "<name>-<level>" for a level below namespaces.
    [[nodiscard]] std::string named(std::string_view name) const {
        std::string out{name};
        if (level != sandbox::Level::namespaces) {
            out.append("-").append(sandbox::to_text(level));
        }
        return out;
    }
};

/// Puts exactly the snapshot's sources and the scripts into the work folder, all with the fixed
/// time. `corrupt` when a source changed since the snapshot was read. Objects of earlier runs stay:
/// they are named by what they were made of.
Result<void> materialise(sys::FileSystem& fs,
                         const Workspace& workspace,
                         const project::Project& project,
                         const plan::SourceSnapshot& snapshot,
                         std::span<const FileImage> scripts);

/// Memory that each object of the plan took when its source was compiled last, by the same kind of
/// compiler.
std::map<std::string, std::uint64_t>
read_peaks(sys::FileSystem& fs, const Workspace& workspace, const plan::Plan& plan);
/// Remembers what the compilers of a run took, for the steps of this project and for their classes
/// in the table beside the store.
Result<void> learn_costs(sys::FileSystem& fs,
                         const Workspace& workspace,
                         const sys::Path& classes_path,
                         const plan::Plan& plan,
                         std::span<const LaunchRecord> log);
/// The same for a variant's link and package.
Result<void> learn_package(sys::FileSystem& fs,
                           const Workspace& workspace,
                           const sys::Path& classes_path,
                           const plan::PlannedVariant& variant,
                           const sys::Path& package);

} // namespace kb::build
