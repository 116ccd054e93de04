// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_rules.hpp"
#include "backend/cuda/cuda_rules.hpp"
#include "backend/metal/metal_rules.hpp"
#include "backend/noarch/noarch_rules.hpp"
#include "backend/rocm/rocm_rules.hpp"
#include "backend/rules.hpp"
#include "backend/xpu/xpu_rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kb::backend {

std::span<const BackendRules> all_rules() {
    // A row per backend, in the order of BackendId.
    static const std::array<BackendRules, 8> kTable{noarch_rules(BackendId::cann, "CANN"),
                                                    cpu_rules(),
                                                    cuda_rules(),
                                                    metal_rules(),
                                                    noarch_rules(BackendId::neuron, "Neuron"),
                                                    rocm_rules(),
                                                    noarch_rules(BackendId::tpu, "TPU"),
                                                    xpu_rules()};
    return kTable;
}

const BackendRules& rules_of(BackendId id) {
    return all_rules()[std::to_underlying(id)];
}

SourceKind common_source_kind(const RelPath& path) {
    constexpr std::array<std::string_view, 4> kSources{".c", ".cc", ".cpp", ".cxx"};
    constexpr std::array<std::string_view, 11> kHeaders{
        ".h", ".hh", ".hpp", ".hxx", ".cuh", ".inc", ".inl", ".ipp", ".tpp", ".tcc", ".def"};
    const std::string_view extension = path.extension();
    if (std::ranges::find(kSources, extension) != kSources.end()) {
        return SourceKind::cxx;
    }
    if (std::ranges::find(kHeaders, extension) != kHeaders.end()) {
        return SourceKind::header;
    }
    return SourceKind::other;
}

std::string_view to_text(SourceKind kind) {
    constexpr std::array<std::string_view, 7> kNames{
        "header", "cxx", "cuda", "hip", "sycl", "metal", "other"};
    return kNames[std::to_underlying(kind)];
}

std::string_view to_text(DeviceCode kind) {
    constexpr std::array<std::string_view, 5> kNames{"none", "cubin", "hsaco", "metallib", "spirv"};
    return kNames[std::to_underlying(kind)];
}

} // namespace kb::backend
