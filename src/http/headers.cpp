// SPDX-License-Identifier: Apache-2.0
#include "http/headers.hpp"

#include <algorithm>

namespace kb::http {

namespace {

bool same_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_token_char(char c) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alphanumeric || std::string_view{"!#$%&'*+-.^_`|~"}.contains(c);
}

} // namespace

void Headers::set(std::string name, std::string value) {
    remove(name);
    add(std::move(name), std::move(value));
}

void Headers::remove(std::string_view name) {
    std::erase_if(fields_, [name](const Header& field) { return same_name(field.name, name); });
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
    for (const Header& field : fields_) {
        if (same_name(field.name, name)) {
            return field.value;
        }
    }
    return std::nullopt;
}

std::size_t Headers::count(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        fields_, [name](const Header& field) { return same_name(field.name, name); }));
}

bool is_header_name(std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, is_token_char);
}

bool is_header_value(std::string_view value) {
    return std::ranges::none_of(value, [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == '\x7f';
    });
}

} // namespace kb::http
