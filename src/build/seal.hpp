// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "build/workspace.hpp"
#include "check/check.hpp"
#include "check/report.hpp"
#include "package/metadata.hpp"
#include "plan/plan.hpp"
#include "project/project.hpp"

#include <string>
#include <vector>

namespace kb::build {

/// What is the same for all variants of one build.
struct SealContext {
    sys::FileSystem& fs;
    const Workspace& workspace;
    const project::Project& project;
    const plan::SourceSnapshot& snapshot;
    const plan::Plan& plan;
    /// Without the fields of the variant (build key).
    package::Provenance provenance{};
    std::vector<std::string> allow_unchecked{};
    /// For the statement: what was pinned.
    const plan::Lock& lock;
};

/// Stages the package of a variant whose library is linked: Python files, `_ops.py`, library. The
/// stage is made anew.
Result<void> assemble(const SealContext& context, const plan::PlannedVariant& variant);

/// Looks at what was staged and compares it with what the plan promised.
Result<check::Report> check_stage(const SealContext& context, const plan::PlannedVariant& variant);

/// The promise of a plan in the words of the checks.
[[nodiscard]] check::Promise promise_of(const plan::PlannedVariant& variant);

/// Writes metadata.json with archs and digest, exchanges the stage with `build/<variant>`, and
/// writes the provenance statement and the bill of materials beside `build/`.
/// Returns the digest of the package's file list, for the record.
Result<digest::Digest> seal(const SealContext& context, const plan::PlannedVariant& variant);

} // namespace kb::build
