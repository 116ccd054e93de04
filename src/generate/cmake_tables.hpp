// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generate/project_files.hpp"

#include <string>
#include <string_view>

namespace kb::generate {

/// A compiler flag as an item of a CMake option list: what generator expressions and lists would
/// take apart is spelt with their escapes.
[[nodiscard]] std::string cmake_flag(std::string_view flag);

/// "set(KB_...)" lines: definitions, device flags, libraries and stable ABI of each backend, torch
/// versions with their C++ standard, and per section and toolkit the architectures.
[[nodiscard]] std::string cmake_tables(const ProjectInput& input);
/// The kb_binding() call.
[[nodiscard]] std::string cmake_binding(const config::Config& config);
/// One kb_kernel() call a section, in file order, grouped by backend.
[[nodiscard]] std::string cmake_components(const config::Config& config);
/// Calls for the native libraries that the sections depend on.
[[nodiscard]] std::string cmake_dependencies(const ProjectInput& input);

} // namespace kb::generate
