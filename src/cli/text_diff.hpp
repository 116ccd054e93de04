// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kb::cli {

/// Unified diff with three lines of context; "" for equal texts. `name` stands in the head. For the
/// small files of authors: the differing middle must be below 4,000 lines on each side, a larger
/// one is shown as one replaced block.
[[nodiscard]] std::string
unified_diff(std::string_view name, std::string_view before, std::string_view after);

} // namespace kb::cli
