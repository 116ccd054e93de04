// SPDX-License-Identifier: Apache-2.0
#include "http/url.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kb::http {

namespace {

Error bad_url(std::string_view why) {
    return Error{.code = ErrorCode::corrupt, .message = fmt::format("not an address: {}", why)};
}

bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_unreserved(char c) {
    return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_host(std::string_view host) {
    if (host.starts_with('[')) {
        return host.size() > 3 && host.ends_with(']') &&
               std::ranges::all_of(host.substr(1, host.size() - 2), [](char c) {
                   return hex_digit(c) >= 0 || c == ':' || c == '.';
               });
    }
    return !host.empty() && host.size() <= 255 &&
           std::ranges::all_of(host, [](char c) { return is_unreserved(c); });
}

/// Keys whose values select or page; any other may be a signature.
bool is_harmless_key(std::string_view key) {
    constexpr std::array<std::string_view, 8> kHarmless = {
        "recursive", "expand", "limit", "cursor", "create_pr", "include_prs", "blobs", "diff"};
    return std::ranges::find(kHarmless, key) != kHarmless.end();
}

std::string redacted_query(std::string_view query) {
    std::vector<std::string> parts;
    for (const std::string_view part : split(query, '&')) {
        const std::size_t equals = part.find('=');
        const std::string_view key = part.substr(0, equals);
        const bool shown =
            equals == std::string_view::npos ? part.size() < 16 : is_harmless_key(key);
        parts.push_back(
            shown ? std::string{part}
                  : fmt::format("{}=***", key.substr(0, std::min<std::size_t>(32, key.size()))));
    }
    return join(parts, "&");
}

/// "/a/./b/../c" to "/a/c", as RFC 3986 section 5.2.4.
std::string without_dots(std::string_view path) {
    std::vector<std::string> kept;
    const std::vector<std::string_view> segments = split(path.substr(1), '/');
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const bool last = i + 1 == segments.size();
        if (segments[i] == "..") {
            if (!kept.empty()) {
                kept.pop_back();
            }
        } else if (segments[i] != ".") {
            kept.emplace_back(segments[i]);
            continue;
        }
        if (last) {
            kept.emplace_back();
        }
    }
    return fmt::format("/{}", join(kept, "/"));
}

} // namespace

Result<Url> Url::parse(std::string_view text) {
    if (!std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; })) {
        return bad_url("it holds a space, a control or a non-ASCII character");
    }
    const std::size_t colon = text.find("://");
    if (colon == std::string_view::npos) {
        return bad_url("it does not begin with 'http://' or 'https://'");
    }
    Url url;
    url.scheme_ = to_lower(text.substr(0, colon));
    if (url.scheme_ != "http" && url.scheme_ != "https") {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("scheme '{}' is not supported, 'http' or 'https' is",
                                            escape_control(url.scheme_))};
    }
    text = text.substr(colon + 3);
    text = text.substr(0, text.find('#'));
    const std::size_t end = std::min(text.find_first_of("/?"), text.size());
    KB_TRY(url.take_authority(text.substr(0, end)));
    text = text.substr(end);
    const std::size_t question = text.find('?');
    url.path_ = text.substr(0, question);
    if (url.path_.empty()) {
        url.path_.push_back('/');
    }
    if (question != std::string_view::npos) {
        url.query_ = text.substr(question + 1);
    }
    return url;
}

Result<void> Url::take_authority(std::string_view authority) {
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
        user_info_ = Secret{std::string{authority.substr(0, at)}};
        authority = authority.substr(at + 1);
    }
    const std::size_t bracket = authority.rfind(']');
    const std::size_t colon = authority.rfind(':');
    const bool has_port =
        colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
    host_ = to_lower(has_port ? authority.substr(0, colon) : authority);
    if (!is_host(host_)) {
        return bad_url("its host name is missing or malformed");
    }
    if (has_port && colon + 1 < authority.size()) {
        const auto port = parse_unsigned(authority.substr(colon + 1));
        if (!port || *port == 0 || *port > 65535) {
            return bad_url("its port is not a number from 1 to 65535");
        }
        port_ = static_cast<std::uint16_t>(*port);
    }
    return {};
}

std::uint16_t Url::port() const {
    if (port_ != 0) {
        return port_;
    }
    return scheme_ == "https" ? 443 : 80;
}

std::string Url::origin() const {
    const bool own_port = port() == (scheme_ == "https" ? 443 : 80);
    return own_port ? fmt::format("{}://{}", scheme_, host_)
                    : fmt::format("{}://{}:{}", scheme_, host_, port());
}

bool Url::has_origin_of(const Url& other) const {
    return origin() == other.origin();
}

std::string Url::to_wire() const {
    return origin() + path_ + (query_.empty() ? "" : "?" + query_);
}

std::string Url::redacted() const {
    std::string out = origin();
    if (!user_info_.empty()) {
        out.insert(out.find("://") + 3, "***@");
    }
    out += path_;
    return query_.empty() ? out : out + "?" + redacted_query(query_);
}

Url Url::below(std::string_view tail) const {
    KB_ASSERT(tail.starts_with('/'), "a tail is written as an absolute path");
    Url url = *this;
    while (url.path_.ends_with('/')) {
        url.path_.pop_back();
    }
    const std::size_t question = tail.find('?');
    url.path_ += tail.substr(0, question);
    url.query_ = question == std::string_view::npos ? "" : std::string{tail.substr(question + 1)};
    return url;
}

Result<Url> Url::resolve(std::string_view reference) const {
    const std::string_view before_path = reference.substr(0, reference.find_first_of("/?#"));
    if (before_path.contains(':')) {
        return parse(reference);
    }
    if (reference.starts_with("//")) {
        return parse(scheme_ + ":" + std::string{reference});
    }
    std::string path = path_;
    if (reference.starts_with('/')) {
        path = reference;
    } else if (reference.starts_with('?')) {
        path += reference;
    } else if (!reference.empty() && !reference.starts_with('#')) {
        path = path.substr(0, path.rfind('/') + 1) + std::string{reference};
    } else if (!query_.empty()) {
        path += "?" + query_;
    }
    KB_TRY(Url url, parse(origin() + path));
    url.path_ = without_dots(url.path_);
    url.user_info_ = user_info_;
    return url;
}

} // namespace kb::http
