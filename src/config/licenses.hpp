// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace kb::config {

/// Licence ids that the hub or SPDX knows, lower case, sorted.
[[nodiscard]] std::span<const std::string_view> known_licenses();

} // namespace kb::config
