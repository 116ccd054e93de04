// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <compare>
#include <string>
#include <string_view>

namespace kb::backend {

/// One thing that a variant needs from outside: provider "/" name "@" version ["#" slice], for
/// example "wheel/torch@2.11.0#include". Never a digest and never a url; the text is the id of its
/// entry in build.lock.
struct Requirement {
    /// wheel, deb, conda, archive, git, stub or host.
    std::string provider{};
    std::string name{};
    std::string version{};
    /// Which part of it; "" = the whole.
    std::string slice{};

    [[nodiscard]] std::string id() const;
    /// `corrupt` when the text is not of this form, names it and says which part. Names and
    /// versions become words of other programs' command lines: none begins with '-', only those of
    /// git and archive hold a '/', those of deb are Debian's.
    [[nodiscard]] static Result<Requirement> parse(std::string_view id);

    auto operator<=>(const Requirement&) const = default;
};

} // namespace kb::backend
