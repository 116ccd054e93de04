// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb {

Version::Version(const std::vector<std::uint64_t>& components) : size_{components.size()} {
    const auto is_small = [](std::uint64_t component) {
        return component <= kMask;
    };
    if (size_ > kSmall || !std::ranges::all_of(components, is_small)) {
        large_ = std::make_shared<const std::vector<std::uint64_t>>(components);
        return;
    }
    for (std::size_t i = 0; i < kSmall; ++i) {
        small_ = (small_ << kBits) | (i < size_ ? components[i] : 0);
    }
}

std::optional<Version> Version::parse(std::string_view text) {
    std::vector<std::uint64_t> components;
    for (const std::string_view part : split(text, '.')) {
        const auto value = parse_unsigned(part);
        if (!value) {
            return std::nullopt;
        }
        components.push_back(*value);
    }
    return Version{components};
}

std::string Version::to_text() const {
    std::string text; // part of every path and name of a plan: no format is parsed for it
    for (std::size_t i = 0; i < size_; ++i) {
        const fmt::format_int number{component(i)};
        text.append(i == 0 ? 0 : 1, '.').append(number.data(), number.size());
    }
    return text;
}

std::strong_ordering Version::operator<=>(const Version& other) const {
    if (!large_ && !other.large_) {
        return small_ <=> other.small_;
    }
    const std::size_t n = std::max(size_, other.size_);
    for (std::size_t i = 0; i < n; ++i) {
        if (const auto order = component(i) <=> other.component(i);
            order != std::strong_ordering::equal) {
            return order;
        }
    }
    return std::strong_ordering::equal;
}

} // namespace kb
