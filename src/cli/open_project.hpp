// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.hpp"
#include "cli/settings.hpp"
#include "plan/plan.hpp"
#include "project/project.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kb::cli {

/// Opens and judges a project and prints what is wrong with it; nothing then, and the command ends
/// with ExitCode::configuration. `strict` turns warnings into errors.
enum class Strict : std::uint8_t { no, yes };
std::optional<project::Project>
open_project(const std::string& directory, Strict strict, const Services& services);

/// The lock that a build of this project uses, and who gave it.
struct LockChoice {
    plan::Lock lock{};
    std::string origin{}; ///< "project" or "default"
};

/// The project's build.lock, else the default lock; a malformed one is printed.
std::optional<LockChoice> choose_lock(const project::Project& project, const Services& services);

/// Snapshot with the generated registration header added where the project has none.
Result<plan::SourceSnapshot> read_build_snapshot(const project::Project& project,
                                                 const Services& services);

/// Prints diagnostics with the excerpt of build.toml.
void render_for(const project::Project& project,
                const Diagnostics& diagnostics,
                const Services& services);

/// What kernel-builder.toml adds to every build key.
std::map<std::string, std::string> key_facts(const project::Project& project);

/// Platform of this machine; nothing for one that no variant is for.
std::optional<backend::Platform> host_platform();

} // namespace kb::cli
