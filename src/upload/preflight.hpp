// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "package/verify.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::upload {

/// Why a package must not be published; each has its own flag.
enum class Refusal : std::uint8_t {
    dirty,          ///< --allow-dirty
    weak_sandbox,   ///< --allow-weak-sandbox
    unchecked,      ///< --allow-unchecked
    wrong_digest,   ///< --allow-wrong-digest
    mixed_versions, ///< --allow-mixed-versions
    experimental,   ///< --allow-experimental
};

/// "--allow-dirty" and so on.
[[nodiscard]] std::string_view flag_of(Refusal refusal);
/// Diagnostic id: "upload-dirty" and so on.
[[nodiscard]] std::string_view id_of(Refusal refusal);

/// What the checks said about a variant: nothing in `failed` is a pass.
struct CheckState {
    /// Names of the checks that failed or could not look.
    std::vector<std::string> failed{};
};

struct PreflightInput {
    std::span<const package::Package> packages{};
    /// Of each variant that was checked.
    std::map<std::string, CheckState> checked{};
    /// What is not true of the provenance statement of a variant.
    std::map<std::string, std::vector<check::Finding>> untrue_statements{};
    std::set<Refusal> allowed{};
};

/// PURE. Every reason against every package, each naming its flag; an allowed one is a warning. No
/// package at all, or one whose name no client would parse, is an error without a flag.
void preflight(const PreflightInput& input, Diagnostics& diagnostics);

/// The branch the packages belong to: "v<version>"; nothing when their versions differ.
[[nodiscard]] std::optional<std::string> version_branch(std::span<const package::Package> packages);

} // namespace kb::upload
