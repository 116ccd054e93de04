// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb {

std::optional<Version> Version::parse(std::string_view text) {
    std::vector<std::uint64_t> components;
    for (const std::string_view part : split(text, '.')) {
        const auto value = parse_unsigned(part);
        if (!value) {
            return std::nullopt;
        }
        components.push_back(*value);
    }
    return Version{std::move(components)};
}

std::string Version::to_text() const {
    std::string text; // part of every path and name of a plan: no format is parsed for it
    for (const std::uint64_t component : components_) {
        text += text.empty() ? "" : ".";
        text += fmt::format_int{component}.str();
    }
    return text;
}

std::strong_ordering Version::operator<=>(const Version& other) const {
    const std::size_t n = std::max(components_.size(), other.components_.size());
    for (std::size_t i = 0; i < n; ++i) {
        if (const auto order = component(i) <=> other.component(i);
            order != std::strong_ordering::equal) {
            return order;
        }
    }
    return std::strong_ordering::equal;
}

} // namespace kb
