// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace kb {

namespace {

constexpr std::string_view kWhitespace = " \t\r\n\v\f";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

} // namespace

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kWhitespace);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kWhitespace) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::string to_lower(std::string_view text) {
    std::string out{text};
    std::ranges::transform(out, out.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return out;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
    std::string out;
    while (!from.empty()) {
        const std::size_t at = text.find(from);
        if (at == std::string_view::npos) {
            break;
        }
        out += text.substr(0, at);
        out += to;
        text.remove_prefix(at + from.size());
    }
    out += text;
    return out;
}

bool natural_less(std::string_view a, std::string_view b) {
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_digit(a[i]) && is_digit(b[j])) {
            const std::size_t i_end = std::min(a.find_first_not_of("0123456789", i), a.size());
            const std::size_t j_end = std::min(b.find_first_not_of("0123456789", j), b.size());
            std::string_view x = a.substr(i, i_end - i);
            std::string_view y = b.substr(j, j_end - j);
            x.remove_prefix(std::min(x.find_first_not_of('0'), x.size()));
            y.remove_prefix(std::min(y.find_first_not_of('0'), y.size()));
            if (x.size() != y.size()) {
                return x.size() < y.size();
            }
            if (x != y) {
                return x < y;
            }
            i = i_end;
            j = j_end;
        } else {
            if (a[i] != b[j]) {
                return a[i] < b[j];
            }
            ++i;
            ++j;
        }
    }
    if ((i < a.size()) != (j < b.size())) {
        return j < b.size();
    }
    return a < b; // equal as numbers ("01" and "1"): any fixed order
}

std::size_t count_code_points(std::string_view utf8) {
    return static_cast<std::size_t>(std::ranges::count_if(
        utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

namespace {

/// One row of Unicode 15, table 3-7: lead bytes and what the second byte may be; later bytes
/// are 80..BF.
struct Utf8Row {
    unsigned lead_low = 0;
    unsigned lead_high = 0;
    unsigned second_low = 0;
    unsigned second_high = 0;
    std::size_t length = 0;
};

constexpr std::array<Utf8Row, 8> kUtf8Rows{{{0xC2, 0xDF, 0x80, 0xBF, 2},
                                            {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                            {0xE1, 0xEC, 0x80, 0xBF, 3},
                                            {0xED, 0xED, 0x80, 0x9F, 3},
                                            {0xEE, 0xEF, 0x80, 0xBF, 3},
                                            {0xF0, 0xF0, 0x90, 0xBF, 4},
                                            {0xF1, 0xF3, 0x80, 0xBF, 4},
                                            {0xF4, 0xF4, 0x80, 0x8F, 4}}};

/// Length of the well-formed UTF-8 sequence at the start of `text`, 0 when it is malformed.
std::size_t utf8_sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return unsigned{static_cast<unsigned char>(text[i])};
    };
    if (byte(0) < 0x80) {
        return 1;
    }
    const auto row = std::ranges::find_if(kUtf8Rows, [&](const Utf8Row& r) {
        return byte(0) >= r.lead_low && byte(0) <= r.lead_high;
    });
    if (row == kUtf8Rows.end() || text.size() < row->length || byte(1) < row->second_low ||
        byte(1) > row->second_high) {
        return 0;
    }
    for (std::size_t i = 2; i < row->length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    return row->length;
}

} // namespace

bool is_valid_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_sequence_length(text);
        if (length == 0) {
            return false;
        }
        text.remove_prefix(length);
    }
    return true;
}

std::string escape_control(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\t') || byte == 0x7F) {
            out += fmt::format("\\x{:02x}", byte);
        } else {
            out += c;
        }
    }
    return out;
}

std::string quoted_list(std::span<const std::string> names) {
    std::string out;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i != 0) {
            out += i + 1 == names.size() ? " and " : ", ";
        }
        out += fmt::format("'{}'", names[i]);
    }
    return out;
}

std::string counted(std::size_t n, std::string_view noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string human_bytes(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1000.0 && unit + 1 < kUnits.size()) {
        value /= 1000.0;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} B", bytes)
                     : fmt::format("{:.1f} {}", value, kUnits.at(unit));
}

} // namespace kb
