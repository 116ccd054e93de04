// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "check/report.hpp"
#include "document/node.hpp"

#include <span>

namespace kb::check {

/// {"schema": "kernel-builder/report/1", "passed", "variants": [{"name", "passed", "verdicts",
/// "findings"}]}; see schemas/report.schema.json.
[[nodiscard]] document::Node to_json(std::span<const Report> reports);
/// One element of "variants", for documents that hold a report.
[[nodiscard]] document::Node to_json(const Report& report);
/// Reads what to_json(const Report&) made; `corrupt` names the key that is wrong.
[[nodiscard]] Result<Report> report_from_json(const document::Node& node);

} // namespace kb::check
