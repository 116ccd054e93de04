// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/rules.hpp"

namespace kb::backend {

/// AMD GPUs through hipcc; sources are CUDA that is converted first.
[[nodiscard]] BackendRules rocm_rules();

} // namespace kb::backend
