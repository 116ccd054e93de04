// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kb {

using Bytes = std::span<const std::byte>;

[[nodiscard]] inline Bytes as_bytes(std::string_view text) {
    return std::as_bytes(std::span{text.data(), text.size()});
}

/// The same bytes as text; nothing is decoded.
[[nodiscard]] inline std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; // char may alias any bytes
}

} // namespace kb
