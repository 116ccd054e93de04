// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "base/result.hpp"
#include "config/config.hpp"
#include "config/project_settings.hpp"
#include "plan/source_snapshot.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::project {

/// Ours inside a project: records, logs, work folder. Safe to delete.
inline constexpr std::string_view kStateDirectory = ".kernel-builder";

/// What was read of a project before anything was judged.
struct ProjectText {
    sys::Path root{};
    /// As messages call it: "build.toml", or "DIR/build.toml" when the user named a directory.
    std::string config_name{};
    std::string config_text{};
    /// kernel-builder.toml beside it, named in the same way; absent when there is none.
    std::string settings_name{};
    std::optional<std::string> settings_text{};
    /// All files but those of `build/`, `.kernel-builder/`, `.git/` and Python's caches, sorted.
    std::vector<RelPath> files{};
};

/// A project whose build.toml makes sense.
struct Project {
    ProjectText text{};
    config::Config config{};
    config::ProjectSettings settings{};

    [[nodiscard]] sys::Path root() const { return text.root; }

    [[nodiscard]] sys::Path state() const { return text.root / kStateDirectory; }
};

/// Reads `directory` as the user named it ("." or "" is the current one). `not_found` when it is no
/// directory or holds no build.toml: the message says which and what to do.
Result<ProjectText>
read_project(sys::FileSystem& fs, const sys::Path& current, std::string_view directory);
/// Parses and decodes build.toml and kernel-builder.toml; with `validate` also the semantic
/// findings.
enum class Validate : std::uint8_t { no, yes };
std::optional<Project> judge_project(ProjectText text, Validate validate, Diagnostics& diagnostics);

/// kernel-builder.toml alone: the defaults when it is absent, nothing after an error.
std::optional<config::ProjectSettings> judge_settings(const ProjectText& text,
                                                      Diagnostics& diagnostics);

/// Sources that build.toml declares and that exist, each once, with what their text needs, and the
/// files of the Python package. Missing and ill-spelt ones are left out: plan and validate report
/// them.
Result<plan::SourceSnapshot> read_snapshot(sys::FileSystem& fs, const Project& project);

/// "torch-ext/my_kernel": the Python package, relative to the root.
[[nodiscard]] RelPath package_directory(const config::Config& config);

/// Makes `.kernel-builder/` with a marker and an ignore file for git. `denied` when a directory of
/// that name without our marker is there.
Result<void> make_state_directory(sys::FileSystem& fs, const Project& project);
/// The same for a directory that is named itself.
Result<void> make_state_directory(sys::FileSystem& fs, const sys::Path& directory);

} // namespace kb::project
