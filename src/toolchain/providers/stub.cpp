// SPDX-License-Identifier: Apache-2.0
#include "toolchain/embedded_data.hpp"
#include "toolchain/provider.hpp"

#include <fmt/format.h>

namespace kb::toolchain {
namespace {

using backend::Requirement;

std::string refusal(const Requirement& requirement) {
    if (requirement.name == "manylinux_2_28" && requirement.version == "1" &&
        requirement.slice.empty()) {
        return {};
    }
    return "this kernel-builder makes no such stubs";
}

/// The entry pins the symbol data that this program brings: another one would make other stubs.
Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& platform,
                                             const Machine& /*machine*/,
                                             const FetchOptions& /*options*/) {
    const std::string file =
        fmt::format("{}_{}.tsv", requirement.name, backend::to_text(platform.cpu));
    const auto data = embedded_data(file);
    if (!data) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format(
                         "'{}' is not made for {}", requirement.id(), backend::to_text(platform))};
    }
    return std::vector{plan::LockEntry{.id = requirement.id(),
                                       .file = file,
                                       .platform = backend::to_text(platform),
                                       .size = data->size(),
                                       .sha256 = digest::sha256(*data)}};
}

Result<void> download(std::span<const plan::LockEntry> /*entries*/,
                      const sys::Path& /*directory*/,
                      const Machine& /*machine*/,
                      const FetchOptions& /*options*/) {
    return {};
}

store::UnpackRules rules(const Requirement& /*requirement*/) {
    return {};
}

} // namespace

Provider stub_provider() {
    return {.name = "stub",
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .rules = rules,
            .has_files = false};
}

} // namespace kb::toolchain
