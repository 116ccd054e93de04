// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/environment.hpp"
#include "sys/process.hpp"

#include <optional>
#include <string>

namespace kb::project {

/// What git says of the project. Without `commit` the reason says why: no repository, no git, no
/// commit yet.
struct GitState {
    std::optional<std::string> commit{}; ///< 40 or 64 hex digits.
    /// Tracked files differ, or untracked ones that git does not ignore are there; `build/` and our
    /// own folder aside.
    bool is_dirty = false;
    std::string reason{};
};

GitState read_git_state(sys::ProcessRunner& processes,
                        const sys::EnvironmentMap& environment,
                        const sys::Path& directory);

} // namespace kb::project
