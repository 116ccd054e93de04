// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox/level.hpp"
#include "sandbox/spec.hpp"

#include <string>
#include <vector>

namespace kb::sandbox {

/// What the levels need of the host.
struct ConfineTools {
    /// PATH of this process: where bwrap, unshare, mount and chroot are looked up.
    std::string path_variable{};
    /// This program; it applies landlock to itself before it runs the command (`confine` in the
    /// hidden commands).
    sys::Path self{};
    /// An empty directory of ours for the level chroot.
    sys::Path scratch{};
};

/// The process that runs the spec at this level, ready for a ProcessRunner. `unsupported` names the
/// missing program and the package that has it. At every level the process gets a new session
/// keyring. At landlock and plain the inside paths must be the host's (has_fixed_paths()).
Result<sys::ProcessSpec> confine(const SandboxSpec& spec, Level level, const ConfineTools& tools);

/// The bubblewrap command line of a spec, without the program's own path.
[[nodiscard]] std::vector<std::string> bwrap_arguments(const SandboxSpec& spec);
/// The script and arguments that enter a chroot with the mounts of a spec (needs root).
[[nodiscard]] std::vector<std::string> chroot_arguments(const SandboxSpec& spec,
                                                        const sys::Path& scratch);

} // namespace kb::sandbox
