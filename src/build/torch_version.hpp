// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/version.hpp"

#include <optional>
#include <string_view>

namespace kb::build {

/// The numbers in front of what Python packages call their version: 2.10.0 of
/// "2.10.0.dev20251001+cu128", 2.9.0 of "2.9.0a0+git123". Nothing when it begins with none.
[[nodiscard]] std::optional<Version> leading_version(std::string_view text);

} // namespace kb::build
