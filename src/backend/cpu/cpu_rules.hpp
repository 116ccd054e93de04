// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/rules.hpp"

namespace kb::backend {

/// Host code only: no architectures, no device code.
[[nodiscard]] BackendRules cpu_rules();

} // namespace kb::backend
