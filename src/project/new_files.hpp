// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/result.hpp"
#include "project/generated.hpp"
#include "sys/file_system.hpp"

#include <span>
#include <string>
#include <vector>

namespace kb::project {

/// Files of `images` that are there already, as paths below `root`, sorted; a link counts wherever
/// it points.
[[nodiscard]] Result<std::vector<std::string>>
existing_files(sys::FileSystem& fs, const sys::Path& root, std::span<const FileImage> images);

/// Writes a new project, all files or none: everything is staged beside its target, then renamed,
/// and undone when a step fails. `denied` lists the files that are in the way unless forced.
Result<void> write_new_files(sys::FileSystem& fs,
                             const sys::Path& root,
                             std::span<const FileImage> images,
                             Force force);

} // namespace kb::project
