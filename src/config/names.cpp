// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <algorithm>
#include <array>

namespace kb::config {

namespace {

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

using DependencyName = std::pair<NativeDependency, std::string_view>;

constexpr std::array<DependencyName, 11> kDependencyNames{{
    {NativeDependency::cutlass_2_10, "cutlass_2_10"},
    {NativeDependency::cutlass_3_5, "cutlass_3_5"},
    {NativeDependency::cutlass_3_6, "cutlass_3_6"},
    {NativeDependency::cutlass_3_8, "cutlass_3_8"},
    {NativeDependency::cutlass_3_9, "cutlass_3_9"},
    {NativeDependency::cutlass_4_0, "cutlass_4_0"},
    {NativeDependency::cutlass_4_4, "cutlass_4_4"},
    {NativeDependency::cutlass_4_5, "cutlass_4_5"},
    {NativeDependency::sycl_tla, "sycl_tla"},
    {NativeDependency::metal_cpp, "metal-cpp"},
    {NativeDependency::torch, "torch"},
}};

} // namespace

std::optional<KernelName> KernelName::parse(std::string_view text) {
    const auto legal = [](char c) {
        return is_lower(c) || is_digit(c) || c == '-';
    };
    if (text.size() < 2 || !is_lower(text.front()) || text.back() == '-' ||
        !std::ranges::all_of(text, legal)) {
        return std::nullopt;
    }
    return KernelName{std::string{text}};
}

std::vector<std::string> KernelName::rules() {
    return {"a name has at least two characters: lower-case letters, digits and dashes; it starts "
            "with a letter and does not end with a dash",
            "examples: 'my-kernel', 'relu2d', 'flash-attention'"};
}

std::string KernelName::module_name() const {
    std::string out = text_;
    std::ranges::replace(out, '-', '_');
    return out;
}

std::string_view to_text(NativeDependency dependency) {
    const auto* found = std::ranges::find(kDependencyNames, dependency, &DependencyName::first);
    return found->second;
}

std::optional<NativeDependency> parse_native_dependency(std::string_view text) {
    const auto* found = std::ranges::find(kDependencyNames, text, &DependencyName::second);
    if (found == kDependencyNames.end()) {
        return std::nullopt;
    }
    return found->first;
}

std::span<const std::string_view> native_dependency_names() {
    static const auto names = [] {
        std::array<std::string_view, kDependencyNames.size()> out{};
        std::ranges::transform(kDependencyNames, out.begin(), &DependencyName::second);
        return out;
    }();
    return names;
}

} // namespace kb::config
