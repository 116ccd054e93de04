// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/variants.hpp"

#include "base/text.hpp"
#include "build/inspect.hpp"
#include "check/report_formats.hpp"
#include "check/report_json.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "project/project.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace kb::cli {

namespace {

/// Findings of one check of one library that are shown; the rest is counted.
constexpr std::size_t kShown = 20;
constexpr std::uint64_t kMaxSettings = 1UL << 20U;

std::string place_of(std::string_view library) {
    return library.empty() ? std::string{} : fmt::format("{}: ", escape_control(library));
}

void render_finding(const check::Finding& finding, bool with_next, std::string& out) {
    if (!finding.counts()) {
        out += fmt::format("  {}suppressed ({}): {} [{}]\n",
                           place_of(finding.library),
                           escape_control(finding.suppressed),
                           finding.message,
                           finding.check);
        return;
    }
    out += fmt::format("  {}{} [{}]\n", place_of(finding.library), finding.message, finding.check);
    if (with_next && !finding.next_step.empty()) {
        out += fmt::format("    next: {}\n", finding.next_step);
    }
}

void render_findings(const check::Report& report, std::string& out) {
    std::size_t i = 0;
    while (i < report.findings.size()) {
        const check::Finding& first = report.findings[i];
        std::size_t end = i;
        while (end < report.findings.size() && report.findings[end].library == first.library &&
               report.findings[end].check == first.check) {
            ++end;
        }
        const std::size_t shown = std::min(end, i + kShown);
        for (std::size_t k = i; k < shown; ++k) {
            const bool last_of_step =
                k + 1 == shown || report.findings[k + 1].next_step != report.findings[k].next_step;
            render_finding(report.findings[k], last_of_step, out);
        }
        if (shown < end) {
            out += fmt::format("  {}and {} more [{}]; --json lists all\n",
                               place_of(first.library),
                               end - shown,
                               first.check);
        }
        i = end;
    }
}

std::size_t count(const check::Report& report, check::Outcome outcome) {
    return static_cast<std::size_t>(
        std::ranges::count(report.verdicts, outcome, &check::Verdict::outcome));
}

std::string summary(const check::Report& report) {
    std::set<std::string_view> libraries;
    for (const check::Verdict& verdict : report.verdicts) {
        if (!verdict.library.empty()) {
            libraries.insert(verdict.library);
        }
    }
    std::string looked = counted(report.verdicts.size(), "check");
    if (!libraries.empty()) {
        looked += libraries.size() == 1 ? std::string{" on 1 library"}
                                        : fmt::format(" on {} libraries", libraries.size());
    }
    if (report.passed()) {
        return report.verdicts.empty() ? "passed (nothing to check)" : "passed (" + looked + ")";
    }
    const auto open = std::ranges::count_if(report.findings, &check::Finding::counts);
    std::string out = "FAILED (" + counted(static_cast<std::size_t>(open), "finding");
    if (const std::size_t refused = count(report, check::Outcome::not_checked); refused > 0) {
        out += fmt::format(", {} not checked", refused);
    }
    return out + "; " + looked + ")";
}

bool know_checks(const std::vector<check::Suppression>& suppressions, Terminal& terminal) {
    std::vector<std::string_view> known;
    for (const check::Check& check : check::all_checks()) {
        known.push_back(check.id);
    }
    for (const check::Suppression& suppression : suppressions) {
        if (std::ranges::find(known, std::string_view{suppression.check}) == known.end()) {
            terminal.err(fmt::format("error: {} suppresses '{}', which is no check of libraries\n"
                                     "note: the checks are {}\n",
                                     config::kProjectSettingsFile,
                                     escape_control(suppression.check),
                                     fmt::join(known, ", ")));
            return false;
        }
    }
    return true;
}

} // namespace

bool are_checks(std::span<const std::string> ids,
                std::span<const std::string_view> more,
                Terminal& terminal) {
    std::vector<std::string_view> known{"read"};
    for (const check::Check& check : check::all_checks()) {
        known.push_back(check.id);
    }
    known.insert(known.end(), more.begin(), more.end());
    for (const std::string& id : ids) {
        if (std::ranges::find(known, std::string_view{id}) == known.end()) {
            terminal.err(fmt::format("error: no check is called '{}'\n"
                                     "note: the checks are {}\n",
                                     escape_control(id),
                                     fmt::join(known, ", ")));
            return false;
        }
    }
    return true;
}

std::optional<sys::Path> find_project_around(const std::string& argument,
                                             const Services& services) {
    sys::Path directory = resolve_directory(argument, services);
    const auto info = services.fs.stat(directory);
    if (!directory.has_filename() || (info && info->type == sys::FileType::regular)) {
        directory = directory.parent_path();
    }
    // At most two levels up: build/ and build/<variant>.
    for (int level = 0; level < 3 && !directory.empty(); ++level) {
        if (sys::exists(services.fs, directory / "build.toml")) {
            return directory;
        }
        directory = directory.parent_path();
    }
    return std::nullopt;
}

std::vector<std::string> find_machine_places(const std::string& argument,
                                             const Services& services) {
    const auto root = find_project_around(argument, services);
    return root ? build::machine_places(*root) : std::vector<std::string>{};
}

std::optional<std::vector<check::Suppression>> find_suppressions(const std::string& argument,
                                                                 const Services& services) {
    const auto root = find_project_around(argument, services);
    if (!root) {
        return std::vector<check::Suppression>{};
    }
    const sys::Path path = *root / config::kProjectSettingsFile;
    Result<std::string> text = services.fs.read_file(path, kMaxSettings);
    if (!text && text.error().code == ErrorCode::not_found) {
        return std::vector<check::Suppression>{};
    }
    if (!text) {
        render_error(text.error(), services.terminal);
        return std::nullopt;
    }
    Diagnostics diagnostics;
    const project::ProjectText source{.settings_name = path.string(), .settings_text = *text};
    const auto settings = project::judge_settings(source, diagnostics);
    render_diagnostics(diagnostics, {{path.string(), *text}}, services.terminal);
    if (!settings) {
        return std::nullopt;
    }
    std::vector<check::Suppression> out = build::suppressions_of(*settings);
    return know_checks(out, services.terminal) ? std::optional{std::move(out)} : std::nullopt;
}

std::optional<ReportFormat> parse_report_format(const std::string& word, Terminal& terminal) {
    constexpr std::array<std::string_view, 4> kWords{"text", "json", "sarif", "junit"};
    const auto found = std::ranges::find(kWords, std::string_view{word});
    if (found == kWords.end()) {
        terminal.err(fmt::format("error: '{}' is no format of a report\nnote: the formats are {}\n",
                                 escape_control(word),
                                 fmt::join(kWords, ", ")));
        return std::nullopt;
    }
    return static_cast<ReportFormat>(found - kWords.begin());
}

void render_reports(std::span<const check::Report> reports,
                    ReportFormat format,
                    Terminal& terminal) {
    switch (format) {
    case ReportFormat::text:
        for (const check::Report& report : reports) {
            render_report(report, terminal);
        }
        return;
    case ReportFormat::json:
        terminal.out(document::write_json(check::to_json(reports)));
        return;
    case ReportFormat::sarif:
        terminal.out(document::write_json(check::to_sarif(reports, KB_VERSION)));
        return;
    case ReportFormat::junit:
        terminal.out(check::to_junit(reports));
        return;
    }
}

sys::Path resolve_directory(const std::string& argument, const Services& services) {
    const sys::Path joined = services.current_directory / argument;
    return joined.lexically_normal();
}

FoundVariants find_variants(const std::string& argument, const Services& services) {
    const sys::Path directory = resolve_directory(argument, services);
    auto found = project::discover_variants(services.fs, directory);
    if (!found) {
        render_error(found.error(), services.terminal);
        const auto info = services.fs.stat(directory);
        const bool is_directory = info && info->type == sys::FileType::directory;
        return is_directory ? ExitCode::failed : ExitCode::usage;
    }
    for (const sys::Path& place : found->shadowed) {
        services.terminal.err(fmt::format(
            "note: using '{}'; '{}' holds variants too\n", found->place.string(), place.string()));
    }
    return std::move(*found);
}

void render_report(const check::Report& report, Terminal& terminal) {
    std::string out = fmt::format("{}: {}\n", escape_control(report.variant), summary(report));
    render_findings(report, out);
    for (const check::Verdict& verdict : report.verdicts) {
        if (verdict.outcome == check::Outcome::not_checked) {
            out += fmt::format("  {}not checked{}: {} [{}]\n",
                               place_of(verdict.library),
                               verdict.allowed ? " (allowed)" : "",
                               verdict.reason,
                               verdict.check);
        }
    }
    terminal.out(out);
}

ExitCode conclude(std::span<const check::Report> reports, Terminal& terminal) {
    const auto failed = std::ranges::count_if(
        reports, [](const check::Report& report) { return !report.passed(); });
    if (failed == 0) {
        return ExitCode::ok;
    }
    terminal.err(
        fmt::format("error: {} of {} failed\n", failed, counted(reports.size(), "variant")));
    return ExitCode::failed;
}

} // namespace kb::cli
