// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "plan/plan.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kb::generate {

/// A read-only directory of the sandbox: where it appears, and where it lies on this machine.
struct ScriptMount {
    /// "/usr", "/toolchain/cuda-13.0".
    std::string place{};
    std::string directory{};

    auto operator<=>(const ScriptMount&) const = default;
};

/// Everything that a hermetic command finds in its environment, sorted by name.
[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> hermetic_environment();

/// The same where there are no mounts: programs come from the view, temporary files and HOME lie in
/// "<work>/tmp", which the caller makes.
[[nodiscard]] std::vector<std::pair<std::string, std::string>>
host_environment(std::string_view view, std::string_view work);

struct ScriptInput {
    const plan::Plan& plan;
    /// Which variants of the plan; in the plan's order whatever the order here.
    std::span<const backend::VariantName> variants{};
    /// Toolchain roots as composed on this machine.
    std::vector<ScriptMount> mounts{};
    /// For sandbox levels without mounts: the directory of this machine that holds the fixed places
    /// (host_paths.hpp), and the level's name. Empty: the places themselves, entered by bubblewrap.
    std::string view{};
    std::string level{};
};

/// build.ninja, with one edge a distinct TU of the variants, one link a variant and a target named
/// after each variant; and build.sh, which runs Ninja on it inside the bubblewrap line that it
/// spells out (with a view: without any). Both stand in the work folder. Commands are prefixed with
/// the words of the environment variable `kb_launch`, empty unless `build` sets it.
[[nodiscard]] std::vector<FileImage> script_files(const ScriptInput& input);

} // namespace kb::generate
