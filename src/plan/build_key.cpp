// SPDX-License-Identifier: Apache-2.0
#include "plan/build_key.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::plan {

std::string key_word(std::string_view text) {
    const bool plain =
        std::ranges::none_of(text, [](char c) { return c <= ' ' || c == '\x7f' || c == '%'; });
    if (plain) {
        return std::string{text};
    }
    std::string word;
    word.reserve(text.size());
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte <= ' ' || byte == 0x7f || c == '%') {
            word += fmt::format("%{:02X}", byte);
        } else {
            word += c;
        }
    }
    return word;
}

} // namespace kb::plan
