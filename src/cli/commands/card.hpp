// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/exit_code.hpp"
#include "cli/services.hpp"
#include "project/project.hpp"

#include <string>

namespace kb::cli {

/// CARD.md with the project's facts in it, or why not.
struct FilledCard {
    ExitCode code = ExitCode::ok;
    std::string text{};
};

/// Fills the project's CARD.md. What is wrong with it is printed; the code is `failed` for what
/// cannot be read and `configuration` for a mistake in CARD.md or build.toml.
[[nodiscard]] FilledCard fill_card(const project::Project& project, const Services& services);

/// The project has a card and says which repository it is for.
[[nodiscard]] bool wants_card(const project::Project& project, const Services& services);

} // namespace kb::cli
