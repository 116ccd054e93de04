// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/check.hpp"
#include "check/report.hpp"
#include "cli/exit_code.hpp"
#include "cli/services.hpp"
#include "project/variant_dirs.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the commands share that look at finished variants.
namespace kb::cli {

/// A directory as the user named it, from the current one.
[[nodiscard]] sys::Path resolve_directory(const std::string& argument, const Services& services);

/// The finished variants of a directory, or the exit code when there are none.
class FoundVariants {
public:
    FoundVariants(project::Discovery discovery) : discovery_{std::move(discovery)} {}

    FoundVariants(ExitCode code) : code_{code} {}

    explicit operator bool() const { return discovery_.has_value(); }

    const project::Discovery& operator*() const { return *discovery_; }

    const project::Discovery* operator->() const { return &*discovery_; }

    /// `usage` for what is no directory, `failed` for one without variants.
    [[nodiscard]] ExitCode code() const { return code_; }

private:
    std::optional<project::Discovery> discovery_{};
    ExitCode code_ = ExitCode::ok;
};

/// The reason why there are none is printed. Places that were passed over are named on stderr.
[[nodiscard]] FoundVariants find_variants(const std::string& argument, const Services& services);

/// The project that `argument` is, or that holds it as its build/, as a variant or as the library
/// of one; nothing without one.
[[nodiscard]] std::optional<sys::Path> find_project_around(const std::string& argument,
                                                           const Services& services);

/// build::machine_places of that project; none without one.
[[nodiscard]] std::vector<std::string> find_machine_places(const std::string& argument,
                                                           const Services& services);

/// Suppressions of that project.
/// None without a project; nothing after an error, which is printed.
[[nodiscard]] std::optional<std::vector<check::Suppression>>
find_suppressions(const std::string& argument, const Services& services);

/// Whether each of `ids` is the name of a check of libraries, or one of `more`; else the error,
/// with all names, is printed.
[[nodiscard]] bool are_checks(std::span<const std::string> ids,
                              std::span<const std::string_view> more,
                              Terminal& terminal);

/// How reports are printed.
enum class ReportFormat : std::uint8_t { text, json, sarif, junit };

/// "text", "json", "sarif", "junit"; for another word nothing, and the error is printed.
[[nodiscard]] std::optional<ReportFormat> parse_report_format(const std::string& word,
                                                              Terminal& terminal);
/// Prints the reports whole, on stdout.
void render_reports(std::span<const check::Report> reports,
                    ReportFormat format,
                    Terminal& terminal);

/// A verdict line for the variant, then a line for each finding and each refused look.
void render_report(const check::Report& report, Terminal& terminal);

/// "2 of 3 variants failed" on stderr, and the exit code.
ExitCode conclude(std::span<const check::Report> reports, Terminal& terminal);

} // namespace kb::cli
