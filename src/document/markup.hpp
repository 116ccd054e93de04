// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kb::document {

/// For text and for attribute values in double quotes, in HTML and XML. Control characters but line
/// end and tab, which XML cannot hold at all, become '?'.
[[nodiscard]] std::string escape_markup(std::string_view text);

} // namespace kb::document
