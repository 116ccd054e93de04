// SPDX-License-Identifier: Apache-2.0
#include "backend/noarch/noarch_rules.hpp"

#include <fmt/format.h>

namespace kb::backend {

ArchChoice choose_no_archs(std::span<const std::string> requested, const ToolkitArchs& toolkit) {
    ArchChoice choice;
    for (const std::string& arch : requested) {
        choice.refused.push_back({arch, fmt::format("{} has no architectures", toolkit.name)});
    }
    return choice;
}

std::vector<std::string> no_arch_flags(std::span<const std::string> /*archs*/) {
    return {};
}

std::vector<std::string> all_flags(std::span<const std::string> flags, const Version& /*toolkit*/) {
    return {flags.begin(), flags.end()};
}

std::vector<std::string> host_torch_libraries(TorchBinding binding) {
    if (binding == TorchBinding::stable) {
        return {"torch", "torch_cpu"};
    }
    return {"torch", "torch_cpu", "c10"};
}

BackendRules noarch_rules(BackendId id, std::string_view title) {
    return BackendRules{.id = id,
                        .title = title,
                        .source_kind = common_source_kind,
                        .choose_archs = choose_no_archs,
                        .arch_flags = no_arch_flags,
                        .usable_flags = all_flags,
                        .torch_libraries = host_torch_libraries};
}

} // namespace kb::backend
