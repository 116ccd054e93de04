// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.hpp"
#include "plan/selection.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kb::cli {

/// The selection flags, the same on list-variants, generate, build, lock, fetch and upload.
struct SelectionOptions {
    std::string torch{};
    std::string cuda{};
    std::string rocm{};
    std::string arch{};
    std::string backend{};
    std::string platform{};
    std::vector<std::string> variants{};
    bool latest = false;
    bool all_rows = false;

    /// Rows that point into this object.
    [[nodiscard]] std::vector<OptionRow> rows();
    /// True when any flag was given.
    [[nodiscard]] bool any() const;
};

/// The platforms of named variants are asked for with them. Each bad flag is a diagnostic
/// ("bad-selection") with the form that was expected.
std::optional<plan::Selection> resolve(const SelectionOptions& options, Diagnostics& diagnostics);

/// For commands that make one platform's variants: `host` when none was asked for, by --platform or
/// by the name of a variant. More than one is a diagnostic ("bad-selection").
void choose_platform(plan::Selection& selection,
                     const backend::Platform& host,
                     Diagnostics& diagnostics);

} // namespace kb::cli
