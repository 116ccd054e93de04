// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"

namespace kb::cli {

std::vector<std::unique_ptr<Command>> make_commands() {
    std::vector<std::unique_ptr<Command>> commands;
    return commands;
}

} // namespace kb::cli
