// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal.hpp"
#include "sys/clock.hpp"
#include "sys/file_system.hpp"
#include "sys/process.hpp"

namespace kb::cli {

/// The world as main hands it to a command. Below cli a function takes the members it uses, never
/// this struct.
struct Services {
    sys::FileSystem& fs;
    sys::ProcessRunner& processes;
    sys::Clock& clock;
    const sys::EnvironmentMap& environment;
    Terminal& terminal;
    sys::Path current_directory{};
    /// This program, for children that run it again.
    sys::Path self{};
};

} // namespace kb::cli
