// SPDX-License-Identifier: Apache-2.0
#include "check/cxx_names.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace kb::check {

namespace {

constexpr std::size_t kMaxMangled = 4096;
constexpr std::array<std::string_view, 4> kUnstable{"c10::", "at::", "torch::", "caffe2::"};
// Entities in these are compiled from headers into the library itself and made to stay.
constexpr std::array<std::string_view, 2> kStable{"torch::stable::", "torch::headeronly::"};

bool is_identifier(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool starts_with_stable(std::string_view text) {
    return std::ranges::any_of(kStable,
                               [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// Whether a namespace of torch's C++ interface occurs anywhere in the text: in the entity ("vtable
/// for c10::..."), its template arguments or its parameters.
bool names_unstable(std::string_view text) {
    for (const std::string_view prefix : kUnstable) {
        std::size_t at = text.find(prefix);
        while (at != std::string_view::npos) {
            // "::at::" below another namespace is somebody else's.
            const bool whole = at == 0 || (!is_identifier(text[at - 1]) && text[at - 1] != ':');
            if (whole && !starts_with_stable(text.substr(at))) {
                return true;
            }
            at = text.find(prefix, at + 1);
        }
    }
    return false;
}

/// The entity itself lies in one of these namespaces, as nearly all do: told by how the name
/// begins, without reading it. Never true for torch::, which has stable parts.
bool is_in_unstable_namespace(std::string_view name) {
    constexpr std::array<std::string_view, 3> kBeginnings{"3c10", "2at", "6caffe2"};
    if (!name.starts_with("_ZN")) {
        return false;
    }
    const std::string_view path =
        name.substr(std::min(name.find_first_not_of("rVKRO", 3), name.size()));
    return std::ranges::any_of(
        kBeginnings, [&](std::string_view beginning) { return path.starts_with(beginning); });
}

} // namespace

std::optional<std::string> demangle(std::string_view name) {
    if (!name.starts_with("_Z") || name.size() > kMaxMangled) {
        return std::nullopt;
    }
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text{
        abi::__cxa_demangle(std::string{name}.c_str(), nullptr, nullptr, &status), &std::free};
    return status == 0 && text ? std::optional<std::string>{text.get()} : std::nullopt;
}

std::string readable(std::string_view name) {
    auto text = demangle(name);
    return text ? std::move(*text) : std::string{name};
}

bool may_be_torch(std::string_view name) {
    return name.starts_with("_Z") &&
           (is_in_unstable_namespace(name) || name.contains("3c10") || name.contains("2at") ||
            name.contains("5torch") || name.contains("6caffe2"));
}

TorchUse torch_use(std::string_view name) {
    if (is_in_unstable_namespace(name)) {
        return TorchUse::unstable;
    }
    if (!may_be_torch(name)) {
        return TorchUse::none;
    }
    const auto text = demangle(name);
    if (!text) {
        return TorchUse::unstable;
    }
    if (starts_with_stable(*text)) {
        return TorchUse::stable;
    }
    return names_unstable(*text) ? TorchUse::unstable : TorchUse::none;
}

} // namespace kb::check
