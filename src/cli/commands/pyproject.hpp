// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "cli/exit_code.hpp"
#include "cli/services.hpp"
#include "plan/source_snapshot.hpp"
#include "project/project.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kb::cli {

/// What create-pyproject, clean-pyproject and generate have in common.
struct PyprojectOptions {
    std::string directory = ".";
    std::optional<std::string> target{};
    std::optional<std::string> unique_id{};
    std::optional<std::string> kernel_sha{};
    bool kernel_dirty = false;
    bool force = false;
    bool dry_run = false;
};

/// The id becomes part of a file name, a C identifier and a Python name; a bad one is printed.
[[nodiscard]] bool check_unique_id(const PyprojectOptions& options, Terminal& terminal);

/// Writes the CMake and setup.py project to the target (default: the project), prints what was done
/// or what is in the way.
[[nodiscard]] ExitCode write_pyproject(const project::Project& project,
                                       const plan::SourceSnapshot& snapshot,
                                       const PyprojectOptions& options,
                                       const Services& services);

/// Brings the generated files of `target` to `files` and prints what was done.
[[nodiscard]] ExitCode apply_generated(const Services& services,
                                       const sys::Path& target,
                                       const std::vector<FileImage>& files,
                                       const PyprojectOptions& options);

} // namespace kb::cli
