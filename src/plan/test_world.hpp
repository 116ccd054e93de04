// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/plan.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kb::plan::test {

/// Reads a build.toml that must be right.
[[nodiscard]] config::Config config_of(std::string_view toml);
/// Scans files given as path and text.
[[nodiscard]] SourceSnapshot
snapshot_of(const std::vector<std::pair<std::string, std::string>>& files);
/// Pins every requirement of a matrix with invented digests.
[[nodiscard]] Lock lock_for(const SupportMatrix& matrix);

/// A kernel with a binding and a torch-free device file, of one torch version each.
extern const std::string_view kAotToml;
/// The same against the stable ABI 2.11.
extern const std::string_view kStableToml;
[[nodiscard]] SourceSnapshot norm_snapshot();

/// plan::make over values that it keeps; the test fails on any error.
struct World {
    config::Config config{};
    SupportMatrix matrix = default_support_matrix();
    SourceSnapshot snapshot = norm_snapshot();
    Lock lock = lock_for(default_support_matrix());
    Selection selection{};
    Diagnostics diagnostics{};

    [[nodiscard]] std::optional<Plan> try_plan();
    [[nodiscard]] Plan plan();
};

} // namespace kb::plan::test
