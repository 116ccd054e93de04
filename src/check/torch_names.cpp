// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "check/cxx_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::check {

namespace {

using binfmt::Binding;
using binfmt::Symbol;

bool applies(const Promise& promise, const binfmt::SharedObject& object) {
    return object.format == binfmt::Format::elf && promise.variant &&
           promise.variant->framework == backend::FrameworkId::torch;
}

bool exported_beside(const CheckInput& input, std::string_view name) {
    return std::ranges::any_of(input.libraries, [&](const Library& library) {
        return library.object && std::ranges::any_of(library.object->exports, [&](const Symbol& s) {
                   return s.name == name;
               });
    });
}

Finding missing(const Version& torch, std::string_view name) {
    const std::string text = readable(name);
    return {.subject = std::string{name},
            .policy = fmt::format("torch {}", torch.to_text()),
            .found = text,
            .allowed = fmt::format("what the libraries of torch {} export", torch.to_text()),
            .message = fmt::format("torch {} has no '{}'", torch.to_text(), text),
            .next_step = fmt::format("compile it with the headers of torch {} for this backend",
                                     torch.to_text())};
}

Looked look(const CheckInput& input, const Library& library) {
    Looked out;
    const Version& torch = input.promise.variant->framework_version;
    for (const Symbol& symbol : library.object->imports) {
        if (symbol.binding == Binding::weak || !may_be_torch(symbol.name)) {
            continue;
        }
        if (!input.torch_names.names) {
            if (torch_use(symbol.name) == TorchUse::unstable) {
                out.not_checked = input.torch_names.missing_reason;
                return out;
            }
            continue;
        }
        const bool known = std::ranges::binary_search(*input.torch_names.names, symbol.name);
        if (!known && torch_use(symbol.name) == TorchUse::unstable &&
            !exported_beside(input, symbol.name)) {
            out.findings.push_back(missing(torch, symbol.name));
        }
    }
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::symbols};

} // namespace

Check torch_names_check() {
    return {.id = "torch-symbols",
            .title = "every C++ symbol of torch is one that this torch exports",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
