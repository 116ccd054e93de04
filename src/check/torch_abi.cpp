// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "check/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace kb::check {

namespace {

constexpr std::size_t kMaxMangled = 4096;
constexpr std::array<std::string_view, 3> kUnstable{"c10::", "at::", "torch::"};
// Entities in these are compiled from headers into the library itself and made to stay.
constexpr std::array<std::string_view, 2> kStable{"torch::stable::", "torch::headeronly::"};

/// The name as a person wrote it; nothing when it is no C++ name.
std::optional<std::string> demangle(std::string_view name) {
    if (!name.starts_with("_Z") || name.size() > kMaxMangled) {
        return std::nullopt;
    }
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text{
        abi::__cxa_demangle(std::string{name}.c_str(), nullptr, nullptr, &status), &std::free};
    return status == 0 && text ? std::optional<std::string>{text.get()} : std::nullopt;
}

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

/// Cheap and without false negatives: only names that may be torch's are demangled.
bool may_be_torch(std::string_view name) {
    return name.starts_with("_Z") &&
           (name.contains("3c10") || name.contains("2at") || name.contains("5torch"));
}

std::string policy_name(const Version& target) {
    return fmt::format("torch stable ABI {}", target.to_text());
}

std::optional<Finding> check_symbol(const Version& target, std::string_view name) {
    if (const auto added = torch_shim_added(name)) {
        if (*added <= target) {
            return std::nullopt;
        }
        return Finding{.subject = std::string{name},
                       .policy = policy_name(target),
                       .found = fmt::format("torch {}", added->to_text()),
                       .allowed = fmt::format("torch {} and older", target.to_text()),
                       .message = fmt::format("'{}' came with torch {}, the promise is {}",
                                              name,
                                              added->to_text(),
                                              target.to_text()),
                       .next_step =
                           fmt::format("set TORCH_TARGET_VERSION to {} or promise torch {}",
                                       target.to_text(),
                                       added->to_text())};
    }
    if (!may_be_torch(name)) {
        return std::nullopt;
    }
    const auto readable = demangle(name);
    // What may be torch's and cannot be read is not let through.
    const std::string_view text = readable ? std::string_view{*readable} : name;
    if (readable && (starts_with_stable(text) || !names_unstable(text))) {
        return std::nullopt;
    }
    return Finding{.subject = std::string{name},
                   .policy = policy_name(target),
                   .found = std::string{text},
                   .allowed = "torch::stable, torch::headeronly and the C shim",
                   .message = fmt::format("'{}' is not in torch's stable ABI", text),
                   .next_step = "use torch::stable instead, or build without 'stable-abi'"};
}

bool applies(const Promise& promise, const binfmt::SharedObject&) {
    return promise.torch_stable_abi.has_value();
}

Looked look(const CheckInput& input, const Library& library) {
    Looked out;
    for (const binfmt::Symbol& symbol : library.object->imports) {
        if (auto finding = check_symbol(*input.promise.torch_stable_abi, symbol.name)) {
            out.findings.push_back(std::move(*finding));
        }
    }
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::symbols};

} // namespace

Check torch_abi_check() {
    return {.id = "torch-stable-abi",
            .title = "torch symbols are those of the promised stable ABI",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
