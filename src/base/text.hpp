// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb {

/// Without leading and trailing ASCII white space.
[[nodiscard]] std::string_view trim(std::string_view text);
/// Pieces between separators; n separators give n + 1 pieces, so "" gives one empty piece.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);
[[nodiscard]] std::string to_lower(std::string_view text);
/// ASCII digits only, whole text, no sign; nothing on overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_unsigned(std::string_view text);
[[nodiscard]] std::string
replace_all(std::string_view text, std::string_view from, std::string_view to);
/// Order in which "sm_90" < "sm_100": runs of digits compare as numbers.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);
/// Number of code points of UTF-8 text; stray continuation bytes are not counted.
[[nodiscard]] std::size_t count_code_points(std::string_view utf8);
[[nodiscard]] bool is_valid_utf8(std::string_view text);
/// Control characters as \xNN, so that foreign text cannot drive a terminal or forge a log line.
/// Tabs stay.
[[nodiscard]] std::string escape_control(std::string_view text);
/// "'a', 'b' and 'c'"
[[nodiscard]] std::string quoted_list(std::span<const std::string> names);
/// "1 file", "2 files"
[[nodiscard]] std::string counted(std::size_t n, std::string_view noun);
/// "12.3 MB", decimal units.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

} // namespace kb
