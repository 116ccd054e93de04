// SPDX-License-Identifier: Apache-2.0
#include "check/report.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace kb::check {

std::string_view to_text(Outcome outcome) {
    switch (outcome) {
    case Outcome::passed:
        return "passed";
    case Outcome::failed:
        return "failed";
    case Outcome::not_checked:
        return "not checked";
    }
    KB_ASSERT(false, "the switch names every outcome");
}

bool Report::passed() const {
    const bool clean = std::ranges::none_of(findings, &Finding::counts);
    return clean && std::ranges::all_of(verdicts, [](const Verdict& verdict) {
               return verdict.outcome == Outcome::passed ||
                      (verdict.outcome == Outcome::not_checked && verdict.allowed);
           });
}

} // namespace kb::check
