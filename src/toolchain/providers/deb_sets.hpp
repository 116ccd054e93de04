// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/requirement.hpp"

#include <span>
#include <string>
#include <string_view>

namespace kb::toolchain {

/// Packages that belong together under one name. Unpacked, never installed: a package is here
/// because a program needs its files, not because a dependency field says so.
struct DebSet {
    std::string_view name{};
    std::string_view version{};
    std::span<const std::string_view> packages{};
    /// Suite and component of the Debian archive when they are not those of Debian 12 that every
    /// configuration lists: "trixie" and "non-free". Both empty: the user's lists as they are.
    std::string_view suite{};
    std::string_view component{};

    /// "gcc-12": the slice of its members.
    [[nodiscard]] std::string id() const;
};

/// The set that a requirement names ("deb/gcc@12"), nullptr when there is none.
[[nodiscard]] const DebSet* find_deb_set(const backend::Requirement& requirement);
/// The same by the slice of a member.
[[nodiscard]] const DebSet* find_deb_set(std::string_view id);

} // namespace kb::toolchain
