// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/exit_code.hpp"
#include "cli/services.hpp"

#include <string>

namespace kb::cli {

struct DiagnoseRequest {
    /// As the user named it.
    std::string what{};
    /// The Python that is to load it.
    std::string python = "python3";
    bool json = false;
};

/// 'doctor WHAT': why it does not load on this machine. `failed` when something does not.
ExitCode diagnose(const DiagnoseRequest& request, const Services& services);

} // namespace kb::cli
