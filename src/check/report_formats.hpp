// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/report.hpp"
#include "document/node.hpp"

#include <span>
#include <string>
#include <string_view>

namespace kb::check {

/// SARIF 2.1.0, one run: a rule for each check that said something, a result for each finding and
/// for each refused look. Places are "variant/library". Suppressed findings are results with a
/// suppression, refused looks that were allowed are of the kind "open".
[[nodiscard]] document::Node to_sarif(std::span<const Report> reports,
                                      std::string_view tool_version);

/// JUnit: a suite for each variant, a case for each verdict. A refused look is a failure of the
/// type "not-checked", or skipped when it was allowed by name.
[[nodiscard]] std::string to_junit(std::span<const Report> reports);

} // namespace kb::check
