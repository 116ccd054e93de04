// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/process.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kb::sys {

/// The environment of this process, read once by main and handed down; nothing else calls getenv.
EnvironmentMap read_environment();

/// The value, or nothing when unset or empty.
std::optional<std::string> lookup(const EnvironmentMap& environment, std::string_view name);

} // namespace kb::sys
