// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.hpp"

#include <string>
#include <vector>

namespace kb::cli {

/// Parses `arguments` (without the program's name) and runs the command. Usage errors print the
/// reason, the nearest command or option, and the help to ask for; exit code 2.
ExitCode run(const std::vector<std::string>& arguments, const Services& services);

} // namespace kb::cli
