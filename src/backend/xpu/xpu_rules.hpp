// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/rules.hpp"

namespace kb::backend {

/// Intel GPUs through DPC++.
[[nodiscard]] BackendRules xpu_rules();

} // namespace kb::backend
