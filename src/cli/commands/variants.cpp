// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/variants.hpp"

#include "base/text.hpp"
#include "cli/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kb::cli {

namespace {

/// Findings of one check of one library that are shown; the rest is counted.
constexpr std::size_t kShown = 20;

std::string place_of(std::string_view library) {
    return library.empty() ? std::string{} : fmt::format("{}: ", escape_control(library));
}

void render_finding(const check::Finding& finding, bool with_next, std::string& out) {
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
    std::string out = "FAILED (" + counted(report.findings.size(), "finding");
    if (const std::size_t refused = count(report, check::Outcome::not_checked); refused > 0) {
        out += fmt::format(", {} not checked", refused);
    }
    return out + "; " + looked + ")";
}

} // namespace

sys::Path resolve_directory(const std::string& argument, const Services& services) {
    const sys::Path joined = services.current_directory / argument;
    return joined.lexically_normal();
}

std::optional<project::Discovery> find_variants(const std::string& argument,
                                                const Services& services) {
    auto found = project::discover_variants(services.fs, resolve_directory(argument, services));
    if (!found) {
        render_error(found.error(), services.terminal);
        return std::nullopt;
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
