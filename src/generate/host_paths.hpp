// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/words.hpp"

#include <string>
#include <string_view>

namespace kb::generate {

/// Commands of a plan name the fixed places of the sandbox. Where a sandbox level has no mounts,
/// those places lie below a directory `view` of this machine, and a program of "/usr/bin" has its
/// script in "<view>/bin".

/// "/src/a.cpp" -> "<view>/src/a.cpp", "/usr/bin/g++" -> "<view>/bin/g++".
[[nodiscard]] std::string host_path(std::string_view path, std::string_view view);
/// One word of a command: a place counts at its start, after '=', ',' or ':', and right after -I,
/// -L, -B, -isystem, -iquote and -idirafter. Definitions (-D) are the author's text and stay.
[[nodiscard]] std::string host_word(std::string_view word, std::string_view view);
[[nodiscard]] Words host_command(const Words& command, std::string_view view);

} // namespace kb::generate
