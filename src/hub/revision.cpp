// SPDX-License-Identifier: Apache-2.0
#include "hub/revision.hpp"

#include "base/text.hpp"
#include "hub/percent.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::hub {

namespace {

constexpr std::size_t kMaxRef = 200;
constexpr std::string_view kHeads = "refs/heads/";
constexpr std::string_view kTags = "refs/tags/";
constexpr std::string_view kPulls = "refs/pr/";

Error bad_ref(std::string_view name, std::string_view why) {
    return {.code = ErrorCode::corrupt,
            .message = fmt::format(
                "'{}' is not a name of a revision: {}", escape_control(name.substr(0, 120)), why)};
}

bool is_forbidden_char(char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F ||
           std::string_view{"~^:?*[\\\"'<>|"}.find(c) != std::string_view::npos;
}

/// The rules of git-check-ref-format(1), and a few quotes that no client needs.
Result<void> check_ref_text(std::string_view name) {
    if (name.empty() || name.size() > kMaxRef) {
        return bad_ref(name, "it must have 1 to 200 bytes");
    }
    if (!is_valid_utf8(name)) {
        return bad_ref("(bytes)", "it is not valid UTF-8");
    }
    if (std::ranges::any_of(name, is_forbidden_char)) {
        return bad_ref(name, "white space, quotes and ~^:?*[\\<>| are not allowed");
    }
    if (name.find("..") != std::string_view::npos || name.find("@{") != std::string_view::npos ||
        name == "@") {
        return bad_ref(name, "'..', '@{' and '@' alone are not allowed");
    }
    for (const std::string_view segment : split(name, '/')) {
        if (segment.empty() || segment.starts_with('.') || segment.ends_with('.') ||
            segment.ends_with(".lock")) {
            return bad_ref(name, "a part of it is empty, begins or ends with '.' or is a '.lock'");
        }
    }
    if (name.starts_with('-')) {
        return bad_ref(name, "it must not begin with '-'");
    }
    return {};
}

Result<void> check_short_name(std::string_view name) {
    KB_TRY(check_ref_text(name));
    if (is_commit_id(to_lower(name))) {
        return bad_ref(name, "clients would take 40 hex digits for a commit");
    }
    if (name == "HEAD" || name.starts_with("refs/")) {
        return bad_ref(name, "'HEAD' and names below 'refs/' are taken");
    }
    return {};
}

std::string_view prefix(RefKind kind) {
    switch (kind) {
    case RefKind::heads:
        return kHeads;
    case RefKind::tags:
        return kTags;
    case RefKind::pr:
        return kPulls;
    }
    return kHeads;
}

} // namespace

bool is_commit_id(std::string_view text) {
    return text.size() == 40 && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

Result<RefName> RefName::branch(std::string_view name) {
    KB_TRY(check_short_name(name));
    return RefName{RefKind::heads, std::string{name}};
}

Result<RefName> RefName::tag(std::string_view name) {
    KB_TRY(check_short_name(name));
    return RefName{RefKind::tags, std::string{name}};
}

RefName RefName::pull_request(std::uint64_t number) {
    return RefName{RefKind::pr, fmt::format("{}", number)};
}

Result<RefName> RefName::parse_full(std::string_view text) {
    if (text.starts_with(kHeads)) {
        return branch(text.substr(kHeads.size()));
    }
    if (text.starts_with(kTags)) {
        return tag(text.substr(kTags.size()));
    }
    if (text.starts_with(kPulls)) {
        const auto number = parse_unsigned(text.substr(kPulls.size()));
        if (number && *number > 0 && pull_request(*number).full() == text) {
            return pull_request(*number);
        }
    }
    return bad_ref(text, "it must begin with 'refs/heads/', 'refs/tags/' or 'refs/pr/<number>'");
}

std::string RefName::full() const {
    return std::string{prefix(kind_)} + name_;
}

Result<Revision> Revision::parse(std::string_view text) {
    KB_TRY(check_ref_text(text));
    return Revision{text == "HEAD" ? std::string{"main"} : std::string{text}};
}

std::string Revision::encoded() const {
    return encode_segment(text_);
}

} // namespace kb::hub
