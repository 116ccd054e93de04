// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_rules.hpp"

#include "backend/noarch/noarch_rules.hpp"

#include <array>

namespace kb::backend {

namespace {

constexpr std::array<std::string_view, 1> kDefinitions{"CPU_KERNEL"};

} // namespace

BackendRules cpu_rules() {
    return BackendRules{.id = BackendId::cpu,
                        .title = "CPU",
                        .definitions = kDefinitions,
                        .source_kind = common_source_kind,
                        .choose_archs = choose_no_archs,
                        .arch_flags = no_arch_flags,
                        .usable_flags = all_flags,
                        .torch_libraries = host_torch_libraries};
}

} // namespace kb::backend
