// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "sys/file_system.hpp"

#include <string_view>

namespace kb::sys {

/// "<doing> '<path>': <errno in words>". Adds to error_from_errno() what only file operations meet:
/// a full disk, an existing file and a link in the way are `denied`.
[[nodiscard]] Error file_error(int errno_value, std::string_view doing, const Path& path);

/// Body of FileSystem::remove_tree().
Result<void> remove_tree_by_descriptor(const Path& path);

} // namespace kb::sys
