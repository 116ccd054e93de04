// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kb::store {

/// The content of an .xz, .gz, .zst or .bz2 file. Refused as `corrupt`: anything else, a cut-off
/// file, and more than `max_bytes` of content.
[[nodiscard]] Result<std::string> decompress(std::string_view packed, std::uint64_t max_bytes);

} // namespace kb::store
