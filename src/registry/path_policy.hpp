// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "hub/status.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// Why a repository does not take this path, or nothing. Beyond RelPath: names that git takes for
/// its own directory on any system, names that Windows cannot hold, over 64 levels.
[[nodiscard]] std::optional<std::string> path_objection(const RelPath& path);

/// The first two names of one directory that a file system without case cannot hold together.
[[nodiscard]] std::optional<std::pair<std::string, std::string>>
case_twins(const std::vector<std::string>& names);

} // namespace kb::registry
