// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <vector>

namespace kb::sandbox {

/// Highest landlock ABI of this kernel, 0 without landlock.
[[nodiscard]] int landlock_abi();

/// From now on this process and its children write only `writable` (files and what is below
/// directories), use no TCP (landlock ABI 4), and reach neither abstract sockets nor, by signals,
/// processes outside (ABI 6). Cannot be undone. Reading is not limited.
Result<void> apply_landlock(const std::vector<sys::Path>& writable);

} // namespace kb::sandbox
