// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "document/node.hpp"

#include <optional>
#include <string_view>

namespace kb::config {

/// What a project says to this program alone, in kernel-builder.toml beside build.toml: other tools
/// refuse a build.toml with keys of ours.
struct ProjectSettings {
    /// Importing the kernel needs KERNELS_EXPERIMENTAL=1, and its metadata say so.
    bool experimental = false;

    bool operator==(const ProjectSettings&) const = default;
};

inline constexpr std::string_view kProjectSettingsFile = "kernel-builder.toml";

/// Reads "kernel-builder/project/1" strictly: a key that this version does not know is an error,
/// for it would be left undone. Nothing when there was an error.
[[nodiscard]] std::optional<ProjectSettings> read_project_settings(const document::Node& root,
                                                                   Diagnostics& diagnostics);

} // namespace kb::config
