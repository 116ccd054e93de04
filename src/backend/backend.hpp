// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kb::backend {

/// Spelt and ordered as in the format (reference order of upstream: by name).
enum class BackendId : std::uint8_t { cann, cpu, cuda, metal, neuron, rocm, tpu, xpu };

inline constexpr std::array<BackendId, 8> kAllBackends{BackendId::cann,
                                                       BackendId::cpu,
                                                       BackendId::cuda,
                                                       BackendId::metal,
                                                       BackendId::neuron,
                                                       BackendId::rocm,
                                                       BackendId::tpu,
                                                       BackendId::xpu};

/// "cuda"
[[nodiscard]] std::string_view to_text(BackendId id);
/// Exact, lower case.
[[nodiscard]] std::optional<BackendId> parse_backend(std::string_view text);
/// Backends that a [kernel.*] section may name: cpu cuda metal rocm xpu.
[[nodiscard]] bool has_kernel_sections(BackendId id);
/// Backends whose variants carry a version in their name: cuda ("cu130"), rocm, xpu, cann.
[[nodiscard]] bool is_versioned(BackendId id);

} // namespace kb::backend
