// SPDX-License-Identifier: Apache-2.0
#include "backend/xpu/xpu_rules.hpp"

#include "backend/noarch/noarch_rules.hpp"

#include <array>

namespace kb::backend {

namespace {

constexpr std::array<std::string_view, 2> kDefinitions{"XPU_KERNEL", "USE_XPU"};
constexpr std::array<std::string_view, 11> kDeviceFlags{"-fsycl",
                                                        "-fhonor-nans",
                                                        "-fhonor-infinities",
                                                        "-fno-associative-math",
                                                        "-fno-approx-func",
                                                        "-foffload-fp32-prec-div",
                                                        "-foffload-fp32-prec-sqrt",
                                                        "-fno-sycl-instrument-device-code",
                                                        "--offload-compress",
                                                        "-fsycl-targets=spir64_gen,spir64",
                                                        "-fPIC"};
constexpr std::array<std::string_view, 2> kRuntime{"sycl", "dnnl"};

/// Every C++ file of an xpu section may hold device code.
SourceKind xpu_source_kind(const RelPath& path) {
    const SourceKind kind = common_source_kind(path);
    return kind == SourceKind::cxx && path.extension() != ".c" ? SourceKind::sycl : kind;
}

std::vector<std::string> xpu_torch_libraries(TorchBinding binding) {
    if (binding == TorchBinding::stable) {
        return {"torch", "torch_cpu", "torch_xpu"};
    }
    return {"torch", "torch_cpu", "torch_xpu", "c10", "c10_xpu"};
}

} // namespace

BackendRules xpu_rules() {
    return BackendRules{.id = BackendId::xpu,
                        .title = "XPU",
                        .device_code = DeviceCode::spirv,
                        .definitions = kDefinitions,
                        .source_kind = xpu_source_kind,
                        .choose_archs = choose_no_archs,
                        .arch_flags = no_arch_flags,
                        .device_flags = kDeviceFlags,
                        .usable_flags = all_flags,
                        .torch_libraries = xpu_torch_libraries,
                        .runtime_libraries = kRuntime};
}

} // namespace kb::backend
