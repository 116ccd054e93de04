// SPDX-License-Identifier: Apache-2.0
#include "check/check.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace kb::check {

namespace {

/// Adds the verdict and completes the findings with what the check did not say.
void record(Report& report, std::string library, const Check& check, Looked looked) {
    Verdict verdict{.library = std::move(library), .check = std::string{check.id}};
    if (!looked.findings.empty()) {
        verdict.outcome = Outcome::failed;
    } else if (!looked.not_checked.empty()) {
        verdict.outcome = Outcome::not_checked;
        verdict.reason = escape_control(looked.not_checked);
    } else {
        verdict.outcome = Outcome::passed;
        verdict.reason = escape_control(looked.note);
    }
    for (Finding& finding : looked.findings) {
        finding.library = verdict.library;
        finding.check = verdict.check;
        finding.subject = escape_control(finding.subject);
        finding.found = escape_control(finding.found);
        finding.message = escape_control(finding.message);
        report.findings.push_back(std::move(finding));
    }
    report.verdicts.push_back(std::move(verdict));
}

std::optional<std::string> missing_fact(const Check& check, const binfmt::SharedObject& object) {
    for (const binfmt::Fact fact : check.needs) {
        if (const auto reason = object.gap(fact)) {
            return std::string{*reason};
        }
    }
    return std::nullopt;
}

void run_on_library(const CheckInput& input,
                    const Library& library,
                    std::span<const Check> checks,
                    Report& report) {
    if (!library.object) {
        record(report,
               library.path,
               Check{.id = "read"},
               {.not_checked = library.unread_reason.empty() ? "the file could not be read"
                                                             : library.unread_reason});
        return;
    }
    for (const Check& check : checks) {
        if (check.library == nullptr || !check.applies(input.promise, *library.object)) {
            continue;
        }
        if (auto reason = missing_fact(check, *library.object)) {
            record(report, library.path, check, {.not_checked = std::move(*reason)});
        } else {
            record(report, library.path, check, check.library(input, library));
        }
    }
}

} // namespace

Report run(const CheckInput& input, std::span<const Check> checks) {
    Report report{.variant = input.variant};
    for (const Library& library : input.libraries) {
        run_on_library(input, library, checks, report);
    }
    for (const Check& check : checks) {
        if (check.variant != nullptr && check.applies_to_variant(input.promise)) {
            record(report, "", check, check.variant(input));
        }
    }
    for (Verdict& verdict : report.verdicts) {
        verdict.allowed =
            verdict.outcome == Outcome::not_checked &&
            std::ranges::find(input.allow_unchecked, verdict.check) != input.allow_unchecked.end();
    }
    std::ranges::sort(report.verdicts);
    std::ranges::sort(report.findings);
    // Not std::ranges::unique: clang 14 cannot read its result.
    report.findings.erase(std::unique(report.findings.begin(), report.findings.end()),
                          report.findings.end());
    return report;
}

} // namespace kb::check
