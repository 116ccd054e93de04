// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstdint>

namespace kb::cli {

/// Exit codes are API (ADR 0009).
enum class ExitCode : std::uint8_t {
    ok = 0,
    failed = 1,        ///< a build or a check failed
    usage = 2,         ///< the command line is wrong
    configuration = 3, ///< build.toml or another file of the author is wrong
    toolchain = 4,     ///< a pinned input, the store or the sandbox is not to be had
    remote = 5,        ///< upload or registry
    bug = 70,
    interrupted = 130,
};

/// The code of a failed Result: `cancelled` is always 130, everything else what the command says.
[[nodiscard]] inline ExitCode exit_code_for(const Error& error, ExitCode otherwise) {
    return error.code == ErrorCode::cancelled ? ExitCode::interrupted : otherwise;
}

} // namespace kb::cli
