// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/process.hpp"

#include <string>
#include <string_view>

namespace kb::build {

/// What runs `program` in `python` so that it imports what the user's own programs import
/// (PYTHONPATH, packages of the user) but nothing that lies in the current directory: a downloaded
/// kernel may bring a 'json.py'. Compiles nothing to disk.
[[nodiscard]] sys::ProcessSpec python_child(const std::string& python,
                                            std::string_view program,
                                            const sys::EnvironmentMap& environment);

} // namespace kb::build
