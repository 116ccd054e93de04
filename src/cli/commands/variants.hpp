// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/report.hpp"
#include "cli/exit_code.hpp"
#include "cli/services.hpp"
#include "project/variant_dirs.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What the commands share that look at finished variants.
namespace kb::cli {

/// A directory as the user named it, from the current one.
[[nodiscard]] sys::Path resolve_directory(const std::string& argument, const Services& services);

/// The finished variants of a directory. Nothing when there are none: the reason is printed. Places
/// that were passed over are named on stderr.
[[nodiscard]] std::optional<project::Discovery> find_variants(const std::string& argument,
                                                              const Services& services);

/// A verdict line for the variant, then a line for each finding and each refused look.
void render_report(const check::Report& report, Terminal& terminal);

/// "2 of 3 variants failed" on stderr, and the exit code.
ExitCode conclude(std::span<const check::Report> reports, Terminal& terminal);

} // namespace kb::cli
