// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_rules.hpp"

#include <fmt/format.h>

#include <array>

namespace kb::backend {

namespace {

constexpr std::array<std::string_view, 2> kDefinitions{"USE_CUDA=1", "CUDA_KERNEL"};
// torch's own flags for extensions, without its four that take operators and conversions of the
// half types away.
constexpr std::array<std::string_view, 3> kDeviceFlags{
    "--expt-relaxed-constexpr", "--expt-extended-lambda", "-DENABLE_FP8"};
constexpr std::array<std::string_view, 1> kRuntime{"cudart"};

SourceKind cuda_source_kind(const RelPath& path) {
    return path.extension() == ".cu" ? SourceKind::cuda : common_source_kind(path);
}

std::vector<std::string> gencode_flags(std::span<const std::string> archs) {
    std::vector<std::string> flags;
    for (const std::string& text : archs) {
        const auto arch = parse_cuda_arch(text);
        KB_ASSERT(arch.has_value(), "the arch choice keeps only what parses");
        const std::string number = arch->number();
        flags.push_back(fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number));
        if (arch->ptx) {
            flags.push_back(fmt::format("-gencode=arch=compute_{0},code=compute_{0}", number));
        }
    }
    return flags;
}

/// nvcc learnt this flag in 12.8; kernels that need it there list it for all toolkits.
std::vector<std::string> usable_cuda_flags(std::span<const std::string> flags,
                                           const Version& toolkit) {
    std::vector<std::string> usable;
    for (const std::string& flag : flags) {
        const bool too_new = flag.starts_with("-static-global-template-stub=") ||
                             flag.starts_with("--static-global-template-stub=");
        if (!too_new || toolkit >= Version{{12, 8}}) {
            usable.push_back(flag);
        }
    }
    return usable;
}

std::vector<std::string> cuda_torch_libraries(TorchBinding binding) {
    if (binding == TorchBinding::stable) {
        return {"torch", "torch_cpu", "torch_cuda"};
    }
    return {"torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda"};
}

} // namespace

BackendRules cuda_rules() {
    return BackendRules{.id = BackendId::cuda,
                        .title = "CUDA",
                        .device_code = DeviceCode::cubin,
                        .definitions = kDefinitions,
                        .archs_key = "cuda-capabilities",
                        .source_kind = cuda_source_kind,
                        .choose_archs = choose_cuda_archs,
                        .arch_flags = gencode_flags,
                        .device_flags = kDeviceFlags,
                        .usable_flags = usable_cuda_flags,
                        .torch_libraries = cuda_torch_libraries,
                        .runtime_libraries = kRuntime};
}

} // namespace kb::backend
