// SPDX-License-Identifier: Apache-2.0
#include "backend/rocm/rocm_rules.hpp"

#include "backend/noarch/noarch_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::backend {

namespace {

constexpr std::array<std::string_view, 2> kDefinitions{"USE_ROCM=1", "ROCM_KERNEL"};
constexpr std::array<std::string_view, 1> kRuntime{"amdhip64"};

// Processor names of the AMDGPU compiler back end, GCN 2 and later (2026-11).
constexpr std::array<std::string_view, 48> kKnown{
    "gfx700",  "gfx701",  "gfx702",  "gfx703",  "gfx704",  "gfx705",  "gfx801",  "gfx802",
    "gfx803",  "gfx805",  "gfx810",  "gfx900",  "gfx902",  "gfx904",  "gfx906",  "gfx908",
    "gfx909",  "gfx90a",  "gfx90c",  "gfx940",  "gfx941",  "gfx942",  "gfx950",  "gfx1010",
    "gfx1011", "gfx1012", "gfx1013", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034",
    "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151",
    "gfx1152", "gfx1153", "gfx1200", "gfx1201", "gfx1250", "gfx1251", "gfx600",  "gfx601"};

SourceKind rocm_source_kind(const RelPath& path) {
    const std::string_view extension = path.extension();
    return extension == ".cu" || extension == ".hip" ? SourceKind::hip : common_source_kind(path);
}

std::vector<std::string> offload_flags(std::span<const std::string> archs) {
    std::vector<std::string> flags;
    for (const std::string& arch : archs) {
        flags.push_back(fmt::format("--offload-arch={}", arch));
    }
    return flags;
}

std::vector<std::string> rocm_torch_libraries(TorchBinding binding) {
    if (binding == TorchBinding::stable) {
        return {"torch", "torch_cpu", "torch_hip"};
    }
    return {"torch", "torch_cpu", "torch_hip", "c10", "c10_hip"};
}

} // namespace

ArchChoice choose_rocm_archs(std::span<const std::string> requested, const ToolkitArchs& toolkit) {
    if (requested.empty()) {
        return ArchChoice{.kept = toolkit.builds, .refused = {}};
    }
    ArchChoice choice;
    for (const std::string& arch : requested) {
        if (std::ranges::find(toolkit.builds, arch) != toolkit.builds.end()) {
            choice.kept.push_back(arch);
        } else {
            choice.refused.push_back(
                {arch, fmt::format("{} builds for no device of that name", toolkit.name)});
        }
    }
    std::ranges::sort(choice.kept);
    choice.kept.erase(std::unique(choice.kept.begin(), choice.kept.end()), choice.kept.end());
    std::ranges::sort(choice.refused);
    return choice;
}

std::span<const std::string_view> known_rocm_archs() {
    return kKnown;
}

BackendRules rocm_rules() {
    return BackendRules{.id = BackendId::rocm,
                        .title = "ROCm",
                        .device_code = DeviceCode::hsaco,
                        .definitions = kDefinitions,
                        .archs_key = "rocm-archs",
                        .source_kind = rocm_source_kind,
                        .choose_archs = choose_rocm_archs,
                        .arch_flags = offload_flags,
                        .usable_flags = all_flags,
                        .torch_libraries = rocm_torch_libraries,
                        .runtime_libraries = kRuntime};
}

} // namespace kb::backend
