// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "document/node.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::config {

/// A finding of the binary checks that the author lets be, with the reason. What is not given
/// (empty) means any.
struct Suppression {
    std::string check{};
    std::string variant{};
    std::string library{};
    std::string subject{};
    std::string reason{};

    bool operator==(const Suppression&) const = default;
};

/// What a project says to this program alone, in kernel-builder.toml beside build.toml: other tools
/// refuse a build.toml with keys of ours.
struct ProjectSettings {
    /// Importing the kernel needs KERNELS_EXPERIMENTAL=1, and its metadata say so.
    bool experimental = false;

    /// In the order of the file.
    std::vector<Suppression> suppressions{};

    bool operator==(const ProjectSettings&) const = default;
};

inline constexpr std::string_view kProjectSettingsFile = "kernel-builder.toml";

/// Reads "kernel-builder/project/1" strictly: a key that this version does not know is an error,
/// for it would be left undone. Nothing when there was an error.
[[nodiscard]] std::optional<ProjectSettings> read_project_settings(const document::Node& root,
                                                                   Diagnostics& diagnostics);

} // namespace kb::config
