// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/rules.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace kb::backend {

/// Backends that only Python kernels have (cann, neuron, tpu): nothing is compiled.
[[nodiscard]] BackendRules noarch_rules(BackendId id, std::string_view title);

/// For backends without architectures: keeps nothing, refuses what is asked for.
[[nodiscard]] ArchChoice choose_no_archs(std::span<const std::string> requested,
                                         const ToolkitArchs& toolkit);
[[nodiscard]] std::vector<std::string> no_arch_flags(std::span<const std::string> archs);
/// All flags, whatever the toolkit.
[[nodiscard]] std::vector<std::string> all_flags(std::span<const std::string> flags,
                                                 const Version& toolkit);
/// torch, torch_cpu and, for the versioned interface, c10.
[[nodiscard]] std::vector<std::string> host_torch_libraries(TorchBinding binding);

} // namespace kb::backend
