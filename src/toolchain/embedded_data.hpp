// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace kb::toolchain {

/// A file of data/ that is compiled in; nothing when there is none of that name.
[[nodiscard]] std::optional<std::string_view> embedded_data(std::string_view name);

} // namespace kb::toolchain
