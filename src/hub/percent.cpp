// SPDX-License-Identifier: Apache-2.0
#include "hub/percent.hpp"

#include <fmt/format.h>

#include <optional>

namespace kb::hub {

namespace {

bool is_unreserved(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

std::string encode(std::string_view text, std::string_view keep) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (is_unreserved(c) || keep.find(c) != std::string_view::npos) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

std::optional<int> hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return std::nullopt;
}

} // namespace

std::string encode_segment(std::string_view text) {
    return encode(text, "");
}

std::string encode_path(std::string_view text) {
    return encode(text, "/");
}

Result<std::string> decode_percent(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
            const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
            if (!high || !low) {
                return Error{.code = ErrorCode::corrupt,
                             .message = "a '%' must be followed by two hex digits"};
            }
            c = static_cast<char>(*high * 16 + *low);
            i += 2;
        }
        if (c == '\0') {
            return Error{.code = ErrorCode::corrupt, .message = "a NUL character is not allowed"};
        }
        out += c;
    }
    return out;
}

} // namespace kb::hub
