// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "check/cxx_names.hpp"
#include "check/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace kb::check {

namespace {

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
    if (torch_use(name) != TorchUse::unstable) {
        return std::nullopt;
    }
    const std::string text = readable(name);
    return Finding{.subject = std::string{name},
                   .policy = policy_name(target),
                   .found = text,
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
