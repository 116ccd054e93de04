// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// The part of the URL standard (url.spec.whatwg.org) that decides whether a text is a URL at all:
// the format takes whatever such a parser takes. Nothing here normalises a URL.

namespace kb::config {

namespace {

constexpr std::array<std::string_view, 7> kSchemes{
    "https", "http", "git", "ssh", "git+ssh", "git+https", "git+http"};
/// Schemes whose host is a domain and must not be empty.
constexpr std::array<std::string_view, 5> kSpecialSchemes{"https", "http", "ftp", "ws", "wss"};

bool is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_control_or_space(char c) {
    return static_cast<unsigned char>(c) <= 0x20;
}

/// Without surrounding controls and spaces, and without any tab or newline.
std::string stripped(std::string_view text) {
    while (!text.empty() && is_control_or_space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_control_or_space(text.back())) {
        text.remove_suffix(1);
    }
    std::string out{text};
    std::erase_if(out, [](char c) { return c == '\t' || c == '\n' || c == '\r'; });
    return out;
}

/// Lower-case scheme, or "" when the text does not start with one.
std::string scheme_of(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0 || !is_alpha(text[0])) {
        return {};
    }
    const std::string_view scheme = text.substr(0, colon);
    const auto legal = [](char c) {
        return is_alpha(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
    };
    return std::ranges::all_of(scheme, legal) ? to_lower(scheme) : std::string{};
}

bool is_ipv4_number(std::string_view part) {
    if (part.starts_with("0x") || part.starts_with("0X")) {
        return std::ranges::all_of(part.substr(2), is_hex);
    }
    return !part.empty() && std::ranges::all_of(part, is_digit);
}

/// Value of a part of an IPv4 address; nothing when it is no number or too large.
std::optional<std::uint64_t> ipv4_number(std::string_view part) {
    std::uint64_t base = 10;
    if (part.starts_with("0x") || part.starts_with("0X")) {
        base = 16;
        part.remove_prefix(2);
    } else if (part.size() > 1 && part[0] == '0') {
        base = 8;
        part.remove_prefix(1);
    }
    std::uint64_t value = 0;
    for (const char c : part) {
        const char lower = to_lower(std::string_view{&c, 1})[0];
        const auto digit = static_cast<std::uint64_t>(is_digit(c) ? c - '0' : lower - 'a' + 10);
        if (!is_hex(c) || digit >= base) {
            return std::nullopt;
        }
        value = value * base + digit;
        if (value > 0xFFFFFFFFULL) {
            return std::nullopt;
        }
    }
    return value;
}

bool is_ipv4(std::vector<std::string_view> parts) {
    if (parts.size() > 4) {
        return false;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::optional<std::uint64_t> value = ipv4_number(parts[i]);
        const bool last = i + 1 == parts.size();
        const std::uint64_t limit = last ? 1ULL << (8 * (5 - parts.size())) : 256;
        if (parts[i].empty() || !value || *value >= limit) {
            return false;
        }
    }
    return true;
}

bool is_ipv6(std::string_view text) {
    const std::size_t gap = text.find("::");
    if (gap != std::string_view::npos && text.find("::", gap + 1) != std::string_view::npos) {
        return false;
    }
    std::size_t pieces = 0;
    const auto count = [&](std::string_view side, bool tail) {
        if (side.empty()) {
            return true;
        }
        const std::vector<std::string_view> parts = split(side, ':');
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (tail && i + 1 == parts.size() && parts[i].find('.') != std::string_view::npos) {
                pieces += 2;
                const auto octets = split(parts[i], '.');
                const bool decimal = std::ranges::all_of(octets, [](std::string_view octet) {
                    return !octet.empty() && std::ranges::all_of(octet, is_digit) &&
                           (octet.size() == 1 || octet[0] != '0');
                });
                return octets.size() == 4 && decimal && is_ipv4(octets);
            }
            if (parts[i].empty() || parts[i].size() > 4 || !std::ranges::all_of(parts[i], is_hex)) {
                return false;
            }
            ++pieces;
        }
        return true;
    };
    if (gap == std::string_view::npos) {
        return count(text, true) && pieces == 8;
    }
    return count(text.substr(0, gap), false) && count(text.substr(gap + 2), true) && pieces < 8;
}

bool is_forbidden_in_host(char c) {
    return c == '\0' || std::string_view{"\t\n\r #/:<>?@[\\]^|"}.find(c) != std::string_view::npos;
}

bool is_forbidden_in_domain(char c) {
    return is_forbidden_in_host(c) || c == '%' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::string percent_decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
            out += static_cast<char>(std::stoi(std::string{text.substr(i + 1, 2)}, nullptr, 16));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

/// Domain or IPv4 address. International names are taken when they are valid UTF-8; of encoded
/// labels only the obviously broken are refused.
bool is_domain(std::string_view raw) {
    const std::string text = to_lower(percent_decoded(raw));
    if (text.empty() || !is_valid_utf8(text) || std::ranges::any_of(text, is_forbidden_in_domain)) {
        return false;
    }
    std::vector<std::string_view> parts = split(text, '.');
    if (parts.size() > 1 && parts.back().empty()) {
        parts.pop_back();
    }
    const bool broken_label = std::ranges::any_of(
        parts, [](std::string_view part) { return part.starts_with("xn--") && part.size() < 6; });
    return !broken_label && (!is_ipv4_number(parts.back()) || is_ipv4(parts));
}

bool is_host(std::string_view host, bool special) {
    if (host.starts_with('[')) {
        return host.ends_with(']') && host.size() > 2 && is_ipv6(host.substr(1, host.size() - 2));
    }
    return special ? is_domain(host) : std::ranges::none_of(host, is_forbidden_in_host);
}

bool is_port(std::string_view text) {
    if (text.empty()) {
        return true;
    }
    const std::optional<std::uint64_t> port =
        std::ranges::all_of(text, is_digit) ? parse_unsigned(text) : std::nullopt;
    return port && *port <= 65535;
}

/// "user:password@host:port"
bool is_authority(std::string_view text, bool special) {
    const std::size_t at = text.rfind('@');
    const bool credentials = at != std::string_view::npos;
    const std::string_view place = credentials ? text.substr(at + 1) : text;
    const std::size_t bracket = place.rfind(']');
    const std::size_t from =
        place.starts_with('[') && bracket != std::string_view::npos ? bracket : 0;
    const std::size_t colon = place.find(':', from);
    const bool has_port = colon != std::string_view::npos;
    const std::string_view host = place.substr(0, colon);
    if (host.empty() && (special || credentials || has_port)) {
        return false;
    }
    return is_host(host, special) && (!has_port || is_port(place.substr(colon + 1)));
}

/// Whether the text is an absolute URL of this scheme.
bool is_url(std::string_view text, std::string_view scheme) {
    std::string_view rest = text.substr(scheme.size() + 1);
    const bool special = std::ranges::find(kSpecialSchemes, scheme) != kSpecialSchemes.end();
    if (special) {
        while (!rest.empty() && (rest.front() == '/' || rest.front() == '\\')) {
            rest.remove_prefix(1);
        }
        return is_authority(rest.substr(0, rest.find_first_of("/\\?#")), true);
    }
    if (!rest.starts_with("//")) {
        return true; // an opaque or rooted path
    }
    rest.remove_prefix(2);
    return is_authority(rest.substr(0, rest.find_first_of("/?#")), false);
}

} // namespace

std::optional<GitUrl> GitUrl::parse(std::string_view text, std::string& reason) {
    const std::string plain = stripped(text);
    const std::string scheme = scheme_of(plain);
    if (!scheme.empty() && is_url(plain, scheme)) {
        if (std::ranges::find(kSchemes, scheme) == kSchemes.end()) {
            const std::vector<std::string> known{kSchemes.begin(), kSchemes.end()};
            reason =
                fmt::format("git has no URL scheme '{}' here; use one of {}, or 'user@host:path'",
                            escape_control(scheme),
                            quoted_list(known));
            return std::nullopt;
        }
        return GitUrl{std::string{text}, plain};
    }
    // The short form of ssh: "user@host:path".
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() &&
        text[colon + 1] != '/') {
        const std::string_view host = text.substr(0, colon);
        std::string normal = fmt::format("ssh://{}/{}", host, text.substr(colon + 1));
        if (is_url(stripped(normal), "ssh")) {
            return GitUrl{std::string{text}, std::move(normal)};
        }
    }
    reason = fmt::format("'{}' is not a git URL", escape_control(text));
    return std::nullopt;
}

} // namespace kb::config
