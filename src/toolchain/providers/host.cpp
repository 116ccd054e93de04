// SPDX-License-Identifier: Apache-2.0
#include "toolchain/provider.hpp"

#include <fmt/format.h>

namespace kb::toolchain {
namespace {

using backend::Requirement;

Error not_taken(std::string_view id) {
    return {.code = ErrorCode::not_found,
            .message = fmt::format("'{}' is a toolkit installed on some machine: name it with "
                                   "--cuda-root",
                                   id)};
}

std::string refusal(const Requirement& requirement) {
    return requirement.name == "cuda" && requirement.slice.empty()
               ? ""
               : "only 'cuda' can be taken from an installation";
}

Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& /*platform*/,
                                             const Machine& /*machine*/,
                                             const FetchOptions& /*options*/) {
    return not_taken(requirement.id());
}

/// What was taken is in the store already.
Result<void> download(std::span<const plan::LockEntry> entries,
                      const sys::Path& /*directory*/,
                      const Machine& /*machine*/,
                      const FetchOptions& /*options*/) {
    return not_taken(entries.front().id);
}

store::ArchiveKind kind_of(std::string_view /*file*/) {
    return store::ArchiveKind::tar;
}

store::UnpackRules rules(const Requirement& /*requirement*/) {
    return {};
}

} // namespace

Provider host_provider() {
    return {.name = "host",
            .source = "--cuda-root",
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .archive = kind_of,
            .rules = rules};
}

} // namespace kb::toolchain
