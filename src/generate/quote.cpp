// SPDX-License-Identifier: Apache-2.0
#include "generate/quote.hpp"

#include "base/assert.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::generate {

namespace {

bool is_control(char c) {
    const auto u = static_cast<unsigned char>(c);
    return u < 0x20U || u == 0x7FU;
}

bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The escapes that JSON, TOML and Python share; `control` spells the other control characters.
std::string quote_common(std::string_view text, fmt::string_view control) {
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
        case '"':
            out += "\\\"";
            break;
        case '\\':
            out += "\\\\";
            break;
        case '\n':
            out += "\\n";
            break;
        case '\r':
            out += "\\r";
            break;
        case '\t':
            out += "\\t";
            break;
        default:
            if (is_control(c)) {
                out += fmt::format(fmt::runtime(control), static_cast<unsigned char>(c));
            } else {
                out += c;
            }
        }
    }
    return out + '"';
}

} // namespace

std::string quote_cmake(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        KB_ASSERT(c != '\0', "CMake has no spelling for NUL");
        if (c == '"' || c == '\\' || c == '$') {
            out += '\\';
        }
        out += c;
    }
    return out + '"';
}

std::string quote_cmake_item(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (c == ';') {
            escaped += '\\';
        }
        escaped += c;
    }
    return quote_cmake(escaped);
}

std::string quote_ninja_path(std::string_view text) {
    std::string out;
    for (const char c : text) {
        KB_ASSERT(c != '\n' && c != '\0', "Ninja has no spelling for line feed and NUL");
        if (c == '$' || c == ' ' || c == ':') {
            out += '$';
        }
        out += c;
    }
    return out;
}

std::string quote_ninja_value(std::string_view text) {
    std::string out;
    for (const char c : text) {
        KB_ASSERT(c != '\n' && c != '\0', "Ninja has no spelling for line feed and NUL");
        if (c == '$') {
            out += '$';
        }
        out += c;
    }
    // Leading white space of a value is dropped by the reader; '$ ' keeps it.
    if (out.starts_with(' ')) {
        out.insert(0, 1, '$');
    }
    return out;
}

std::string quote_shell(std::string_view text) {
    constexpr std::string_view kHarmless = "_-+=./:,@%";
    const bool bare = !text.empty() && std::ranges::all_of(text, [&](char c) {
        return is_alphanumeric(c) || kHarmless.find(c) != std::string_view::npos;
    });
    if (bare) {
        return std::string{text};
    }
    std::string out = "'";
    for (const char c : text) {
        KB_ASSERT(c != '\0', "the shell has no spelling for NUL");
        if (c == '\'') {
            out += "'\\''";
        } else {
            out += c;
        }
    }
    return out + '\'';
}

std::string quote_python(std::string_view text) {
    return quote_common(text, "\\x{:02x}");
}

std::string quote_json(std::string_view text) {
    return quote_common(text, "\\u{:04x}");
}

std::string quote_toml(std::string_view text) {
    return quote_common(text, "\\u{:04X}");
}

// Octal, because a hexadecimal escape swallows any digits that follow it.
std::string quote_c(std::string_view text) {
    return quote_common(text, "\\{:03o}");
}

} // namespace kb::generate
