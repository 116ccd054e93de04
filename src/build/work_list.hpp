// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "build/record.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

enum class PackageState : std::uint8_t { missing, changed, sound };

/// What is known of a variant before a build: the last record, and whether `build/<variant>` still
/// holds what that record says.
struct VariantState {
    std::string variant{};
    std::optional<Record> record{};
    PackageState package = PackageState::missing;
    /// Its metadata says that the sources had changes that no commit held.
    bool is_dirty = false;
    /// Statement and bill of materials lie in `.kernel-builder/provenance`.
    bool has_statement = true;
};

/// What git says of the sources now.
enum class Sources : std::uint8_t { unknown, committed };

struct WorkItem {
    std::string variant{};
    /// Why it is stale, for people: "never built", "the build key changed", ...
    std::string reason{};
    /// Lines of the key that differ ("- key old", "+ key new"), for --explain.
    std::string difference{};
};

/// The decision which variants to build.
struct WorkList {
    std::vector<WorkItem> stale{};
    std::vector<std::string> fresh{};
};

/// Pure. A variant is fresh when it was built with the same key, in a sandbox at least as strong as
/// `level`, its package is sound, its statement is there, and it does not say that `committed`
/// sources are not; everything in plan order.
[[nodiscard]] WorkList select_work(const plan::Plan& plan,
                                   std::span<const VariantState> states,
                                   std::string_view level,
                                   Sources sources = Sources::unknown);

} // namespace kb::build
