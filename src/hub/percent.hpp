// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace kb::hub {

/// For use as ONE path segment: all but RFC 3986 unreserved characters become %XX, '/' too.
[[nodiscard]] std::string encode_segment(std::string_view text);
/// Like encode_segment(), but '/' stays: for paths.
[[nodiscard]] std::string encode_path(std::string_view text);
/// Decodes %XX once; '+' stays '+'. `corrupt` for a broken escape or a NUL.
[[nodiscard]] Result<std::string> decode_percent(std::string_view text);

} // namespace kb::hub
