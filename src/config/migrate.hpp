// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "base/span.hpp"
#include "config/config.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::config {

struct MigrationOptions {
    /// Licence id for a file of an edition that had none; not used when the file names one.
    std::optional<std::string> license{};
};

struct Migration {
    Edition from = Edition::v5;
    /// The file in edition 5; the text as it was when `from` is 5.
    std::string text{};
    /// What was changed, a line each, in file order.
    std::vector<std::string> changes{};
};

/// Rewrites a build.toml as edition 5 by edits in place: comments, order and formatting stay. A
/// file with any error is not migrated: the errors are reported and nothing is returned. The result
/// reads back as the same Config.
[[nodiscard]] std::optional<Migration> migrate(std::string_view text,
                                               const Origin& origin,
                                               const MigrationOptions& options,
                                               Diagnostics& diagnostics);

} // namespace kb::config
