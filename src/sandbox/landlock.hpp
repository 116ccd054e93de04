// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <vector>

namespace kb::sandbox {

/// Highest landlock ABI of this kernel, 0 without landlock.
[[nodiscard]] int landlock_abi();

/// From now on this process and its children write only below `writable`. Cannot be undone. Reading
/// is not limited.
Result<void> apply_landlock(const std::vector<sys::Path>& writable);

} // namespace kb::sandbox
