// SPDX-License-Identifier: Apache-2.0
#include "backend/rules.hpp"
#include "base/text.hpp"
#include "check/checks.hpp"
#include "check/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::check {

namespace {

using backend::BackendId;

constexpr std::string_view kAnyPolicy = "manylinux_2_28";

/// The loader itself, which policies do not list.
bool is_loader(std::string_view library) {
    return library.starts_with("ld-linux") || library == "ld64.so.1" || library == "ld64.so.2";
}

/// "libtorch_cpu.so" from "torch_cpu".
bool is_torch_library(BackendId backend, std::string_view library) {
    if (library == "libtorch_python.so") {
        return true;
    }
    const backend::BackendRules& rules = backend::rules_of(backend);
    const auto names = rules.torch_libraries(backend::TorchBinding::versioned);
    return std::ranges::any_of(
        names, [&](const std::string& name) { return library == fmt::format("lib{}.so", name); });
}

/// Libraries in the variant itself are found through $ORIGIN.
bool is_bundled(const CheckInput& input, std::string_view library) {
    return std::ranges::any_of(input.libraries, [&](const Library& other) {
        const std::string_view path = other.path;
        const bool named = other.object && other.object->soname == library;
        return named || path.substr(path.rfind('/') + 1) == library;
    });
}

bool is_allowed_for(BackendId backend, const Version& version, std::string_view library) {
    return is_torch_library(backend, library) ||
           runtime_libraries(backend, version).contains(library);
}

/// Says whose library it is when another backend or version would allow it.
std::string explain(const Promise& promise, std::string_view library) {
    if (library.starts_with("libcudart.so.") && promise.variant &&
        promise.variant->backend == BackendId::cuda) {
        return fmt::format("'{}' is not the CUDA runtime of {}",
                           library,
                           promise.variant->backend_version.to_text());
    }
    for (const BackendId id : backend::kAllBackends) {
        for (const std::uint64_t major : {5U, 6U, 7U, 11U, 12U, 13U}) {
            if (is_allowed_for(id, Version{{major}}, library)) {
                return fmt::format(
                    "needs '{}', which only {} machines have", library, backend::to_text(id));
            }
        }
    }
    return fmt::format("needs '{}', which not every machine has", library);
}

bool is_allowed(const CheckInput& input, const Names& system, std::string_view library) {
    const Promise& promise = input.promise;
    if (system.contains(library) || is_loader(library) || is_bundled(input, library) ||
        std::ranges::find(promise.allowed_needed, library) != promise.allowed_needed.end()) {
        return true;
    }
    if (!promise.variant) {
        return std::ranges::any_of(backend::kAllBackends, [&](BackendId id) {
            return is_torch_library(id, library) ||
                   std::ranges::any_of(std::array{5U, 6U, 7U, 11U, 12U, 13U}, [&](unsigned major) {
                       return runtime_libraries(id, Version{{major}}).contains(library);
                   });
        });
    }
    if (promise.variant->framework == backend::FrameworkId::tvm_ffi && library == "libtvm_ffi.so") {
        return true;
    }
    return is_allowed_for(promise.variant->backend, promise.variant->backend_version, library);
}

bool applies(const Promise&, const binfmt::SharedObject& object) {
    return object.format == binfmt::Format::elf;
}

Looked look(const CheckInput& input, const Library& library) {
    const std::string_view name =
        input.promise.manylinux.empty() ? kAnyPolicy : std::string_view{input.promise.manylinux};
    const auto policy = find_manylinux(name, library.object->architecture);
    if (!policy) {
        return {.not_checked = fmt::format("no policy is called '{}'", name)};
    }
    Looked out;
    for (const std::string_view needed : library.object->needed) {
        if (is_allowed(input, policy->libraries, needed)) {
            continue;
        }
        out.findings.push_back(
            {.subject = std::string{needed},
             .policy = std::string{policy->name},
             .found = std::string{needed},
             .allowed = "libraries of the system policy, of torch and of the backend's runtime",
             .message = explain(input.promise, needed),
             .next_step = "link it statically, or ship it in the variant and set the runpath to "
                          "'$ORIGIN'"});
    }
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::needed};

} // namespace

Check needed_check() {
    return {.id = "needed",
            .title = "needed libraries are on every machine that the variant is for",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
