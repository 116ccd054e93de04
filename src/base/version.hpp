// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb {

/// A dotted list of numbers. Compared as integer lists without trailing zeros ("12" == "12.0"); the
/// text keeps the components as written, so that "3.0" stays two components.
class Version {
public:
    Version() = default;

    explicit Version(std::vector<std::uint64_t> components) : components_{std::move(components)} {}

    /// Digits and dots only: "12.6", "2.11.0". Nothing for "", "1.", "a", overflow.
    [[nodiscard]] static std::optional<Version> parse(std::string_view text);

    [[nodiscard]] const std::vector<std::uint64_t>& components() const { return components_; }

    /// Component `i`, 0 where there is none.
    [[nodiscard]] std::uint64_t component(std::size_t i) const {
        return i < components_.size() ? components_[i] : 0;
    }

    [[nodiscard]] std::uint64_t major() const { return component(0); }

    [[nodiscard]] std::uint64_t minor() const { return component(1); }

    /// The first two components, padded with 0.
    [[nodiscard]] Version major_minor() const { return Version{{major(), minor()}}; }

    [[nodiscard]] std::string to_text() const;

    std::strong_ordering operator<=>(const Version& other) const;

    bool operator==(const Version& other) const {
        return (*this <=> other) == std::strong_ordering::equal;
    }

private:
    std::vector<std::uint64_t> components_;
};

} // namespace kb
