// SPDX-License-Identifier: Apache-2.0
#include "toolchain/embedded_data.hpp"
#include "toolchain/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::toolchain {
namespace {

using backend::Requirement;

/// Requirements, and the first part of the name of their data.
struct Row {
    std::string_view name{};
    std::string_view version{};
    std::string_view data{};
};

constexpr std::array<Row, 2> kRows{
    {{"manylinux_2_28", "1", "manylinux_2_28"}, {"amdhip64", "5.7", "amdhip64-5.7"}}};

const Row* find_row(const Requirement& requirement) {
    const auto* found = std::ranges::find_if(kRows, [&](const Row& row) {
        return row.name == requirement.name && row.version == requirement.version &&
               requirement.slice.empty();
    });
    return found == kRows.end() ? nullptr : found;
}

std::string refusal(const Requirement& requirement) {
    return find_row(requirement) == nullptr ? "this kernel-builder makes no such stubs" : "";
}

/// The entry pins the symbol data that this program brings: another one would make other stubs.
Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& platform,
                                             const Machine& /*machine*/,
                                             const FetchOptions& /*options*/) {
    const Row* row = find_row(requirement);
    KB_ASSERT(row != nullptr, "refusal() was asked first");
    const std::string file = fmt::format("{}_{}.tsv", row->data, backend::to_text(platform.cpu));
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
