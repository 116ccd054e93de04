// SPDX-License-Identifier: Apache-2.0
#include "backend/requirement.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::backend {

namespace {

constexpr std::array<std::string_view, 7> kProviders{
    "wheel", "deb", "conda", "archive", "git", "stub", "host"};

/// Names go into file names and messages: no white space, no separators of the id itself.
bool is_word(std::string_view text, std::string_view forbidden) {
    return !text.empty() && std::ranges::all_of(text, [&](char c) {
        return c > ' ' && c < '\x7f' && forbidden.find(c) == std::string_view::npos;
    });
}

/// Debian policy 5.6.1.
bool is_debian_name(std::string_view text) {
    const auto is_alphanumeric = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    };
    return text.size() >= 2 && is_alphanumeric(text.front()) &&
           std::ranges::all_of(text, [&](char c) {
               return is_alphanumeric(c) || c == '+' || c == '-' || c == '.';
           });
}

/// What is wrong with name and version; "" when nothing is. pip and apt-get take a word with '/'
/// for a path and one with '-' in front for an option.
std::string_view fault_of(const Requirement& requirement) {
    if (!is_word(requirement.name, "@#") || !is_word(requirement.version, "@#/")) {
        return "the name or the version is malformed";
    }
    if (requirement.name.front() == '-' || requirement.version.front() == '-') {
        return "the name or the version begins with '-'";
    }
    if (requirement.provider == "deb" && !is_debian_name(requirement.name)) {
        return "no Debian package has such a name";
    }
    const bool may_be_path = requirement.provider == "git" || requirement.provider == "archive";
    return !may_be_path && requirement.name.find('/') != std::string::npos ? "the name holds a '/'"
                                                                           : std::string_view{};
}

} // namespace

std::string Requirement::id() const {
    return fmt::format("{}/{}@{}{}{}", provider, name, version, slice.empty() ? "" : "#", slice);
}

Result<Requirement> Requirement::parse(std::string_view id) {
    const auto fail = [&](std::string_view what) {
        return Error{ErrorCode::corrupt,
                     fmt::format("'{}' is not a requirement: {} (expected "
                                 "provider/name@version#slice)",
                                 escape_control(id),
                                 what),
                     {}};
    };
    const std::size_t slash = id.find('/');
    if (slash == std::string_view::npos) {
        return fail("it has no provider");
    }
    Requirement requirement{.provider = std::string{id.substr(0, slash)}};
    if (std::ranges::find(kProviders, requirement.provider) == kProviders.end()) {
        return fail("the provider is unknown");
    }
    std::string_view rest = id.substr(slash + 1);
    if (const std::size_t hash = rest.find('#'); hash != std::string_view::npos) {
        requirement.slice = rest.substr(hash + 1);
        rest = rest.substr(0, hash);
        if (!is_word(requirement.slice, "#@")) {
            return fail("the slice is empty or malformed");
        }
    }
    const std::size_t at = rest.find('@');
    if (at == std::string_view::npos) {
        return fail("it has no version");
    }
    requirement.name = rest.substr(0, at);
    requirement.version = rest.substr(at + 1);
    if (const std::string_view fault = fault_of(requirement); !fault.empty()) {
        return fail(fault);
    }
    return requirement;
}

} // namespace kb::backend
