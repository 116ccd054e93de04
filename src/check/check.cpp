// SPDX-License-Identifier: Apache-2.0
#include "check/check.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <iterator>

namespace kb::check {

namespace {

bool agrees(std::string_view wanted, std::string_view found) {
    return wanted.empty() || wanted == found;
}

} // namespace

std::string suppression_for(const CheckInput& input, const Finding& finding) {
    for (const Suppression& suppression : input.suppressions) {
        if (suppression.check == finding.check && agrees(suppression.variant, input.variant) &&
            agrees(suppression.library, finding.library) &&
            agrees(suppression.subject, finding.subject)) {
            return suppression.reason;
        }
    }
    return {};
}

namespace {

/// Completes a finding with what the check did not say.
void complete(const CheckInput& input, const Verdict& verdict, Finding& finding) {
    finding.library = verdict.library;
    finding.check = verdict.check;
    finding.subject = escape_control(finding.subject);
    finding.found = escape_control(finding.found);
    finding.message = escape_control(finding.message);
    finding.suppressed = suppression_for(input, finding);
}

/// Adds the verdict and the findings.
void record(const CheckInput& input, Report& report, Verdict verdict, Looked looked) {
    for (Finding& finding : looked.findings) {
        complete(input, verdict, finding);
    }
    const auto open = std::ranges::count_if(looked.findings, &Finding::counts);
    if (open > 0) {
        verdict.outcome = Outcome::failed;
    } else if (!looked.not_checked.empty()) {
        verdict.outcome = Outcome::not_checked;
        verdict.reason = escape_control(looked.not_checked);
    } else {
        verdict.outcome = Outcome::passed;
        verdict.reason = looked.findings.empty()
                             ? escape_control(looked.note)
                             : counted(looked.findings.size(), "finding") + " suppressed";
    }
    report.findings.insert(report.findings.end(),
                           std::make_move_iterator(looked.findings.begin()),
                           std::make_move_iterator(looked.findings.end()));
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

bool is_wanted(const CheckInput& input, std::string_view id) {
    return input.only.empty() || std::ranges::find(input.only, id) != input.only.end();
}

void run_on_library(const CheckInput& input,
                    const Library& library,
                    std::span<const Check> checks,
                    Report& report) {
    if (!library.object) {
        record(input,
               report,
               {.library = library.path, .check = "read"},
               {.not_checked = library.unread_reason.empty() ? "the file could not be read"
                                                             : library.unread_reason});
        return;
    }
    for (const Check& check : checks) {
        if (check.library == nullptr || !is_wanted(input, check.id) ||
            !check.applies(input.promise, *library.object)) {
            continue;
        }
        auto reason = missing_fact(check, *library.object);
        record(input,
               report,
               {.library = library.path, .check = std::string{check.id}},
               reason ? Looked{.not_checked = std::move(*reason)} : check.library(input, library));
    }
}

} // namespace

Report run(const CheckInput& input, std::span<const Check> checks) {
    Report report{.variant = input.variant};
    for (const Library& library : input.libraries) {
        run_on_library(input, library, checks, report);
    }
    for (const Check& check : checks) {
        if (check.variant != nullptr && is_wanted(input, check.id) &&
            check.applies_to_variant(input.promise)) {
            record(input, report, {.check = std::string{check.id}}, check.variant(input));
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
