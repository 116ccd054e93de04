// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/rules.hpp"

namespace kb::backend {

/// NVIDIA GPUs through nvcc, or clang where a toolkit has none.
[[nodiscard]] BackendRules cuda_rules();

} // namespace kb::backend
