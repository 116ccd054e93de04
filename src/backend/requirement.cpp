// SPDX-License-Identifier: Apache-2.0
#include "backend/requirement.hpp"

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

} // namespace

std::string Requirement::id() const {
    return fmt::format("{}/{}@{}{}{}", provider, name, version, slice.empty() ? "" : "#", slice);
}

Result<Requirement> Requirement::parse(std::string_view id) {
    const auto fail = [&](std::string_view what) {
        return Error{ErrorCode::corrupt,
                     fmt::format("'{}' is not a requirement: {} (expected "
                                 "provider/name@version#slice)",
                                 id,
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
    if (!is_word(requirement.name, "@#") || !is_word(requirement.version, "@#/")) {
        return fail("the name or the version is malformed");
    }
    return requirement;
}

} // namespace kb::backend
