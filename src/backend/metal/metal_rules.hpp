// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/rules.hpp"

namespace kb::backend {

/// Apple GPUs: shaders become one embedded metallib.
[[nodiscard]] BackendRules metal_rules();

} // namespace kb::backend
