// SPDX-License-Identifier: Apache-2.0
#include "backend/metal/metal_rules.hpp"

#include "backend/noarch/noarch_rules.hpp"

#include <array>

namespace kb::backend {

namespace {

constexpr std::array<std::string_view, 1> kDefinitions{"METAL_KERNEL"};
constexpr std::array<std::string_view, 2> kDeviceFlags{"-std=metal4.0", "-O2"};

SourceKind metal_source_kind(const RelPath& path) {
    const std::string_view extension = path.extension();
    if (extension == ".metal") {
        return SourceKind::metal;
    }
    return extension == ".mm" || extension == ".m" ? SourceKind::cxx : common_source_kind(path);
}

} // namespace

BackendRules metal_rules() {
    return BackendRules{.id = BackendId::metal,
                        .title = "Metal",
                        .device_code = DeviceCode::metallib,
                        .definitions = kDefinitions,
                        .source_kind = metal_source_kind,
                        .choose_archs = choose_no_archs,
                        .arch_flags = no_arch_flags,
                        .device_flags = kDeviceFlags,
                        .usable_flags = all_flags,
                        .torch_libraries = host_torch_libraries};
}

} // namespace kb::backend
