// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rows of table.cpp; of no use elsewhere but in their tests.

#include "check/check.hpp"

namespace kb::check {

[[nodiscard]] Check manylinux_check();
[[nodiscard]] Check python_abi_check();
[[nodiscard]] Check torch_abi_check();
[[nodiscard]] Check torch_names_check();
[[nodiscard]] Check needed_check();
[[nodiscard]] Check imports_check();
[[nodiscard]] Check hygiene_check();
[[nodiscard]] Check host_paths_check();
[[nodiscard]] Check minimum_os_check();
[[nodiscard]] Check platform_check();
[[nodiscard]] Check libraries_check();
[[nodiscard]] Check device_code_check();

} // namespace kb::check
