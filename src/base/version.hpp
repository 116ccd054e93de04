// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
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

    explicit Version(const std::vector<std::uint64_t>& components);

    /// Digits and dots only: "12.6", "2.11.0". Nothing for "", "1.", "a", overflow.
    [[nodiscard]] static std::optional<Version> parse(std::string_view text);

    /// Number of components; 0 for no version at all.
    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] bool empty() const { return size_ == 0; }

    /// Component `i`, 0 where there is none.
    [[nodiscard]] std::uint64_t component(std::size_t i) const {
        if (large_) {
            return i < size_ ? (*large_)[i] : 0;
        }
        return i < kSmall ? (small_ >> (kBits * (kSmall - 1 - i))) & kMask : 0;
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
    static constexpr std::size_t kSmall = 4;
    static constexpr unsigned kBits = 16;
    static constexpr std::uint64_t kMask = (1U << kBits) - 1;

    // Plans copy and compare versions by the ten thousand: up to four components below 65536 are
    // one number, the first one on top.
    std::uint64_t small_ = 0;
    std::size_t size_ = 0;
    /// All components of any other version; else none.
    std::shared_ptr<const std::vector<std::uint64_t>> large_;
};

} // namespace kb
