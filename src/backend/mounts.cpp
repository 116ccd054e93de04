// SPDX-License-Identifier: Apache-2.0
#include "backend/mounts.hpp"

#include <fmt/format.h>

namespace kb::backend {

std::string torch_mount(const Version& torch) {
    return fmt::format("{}/torch-{}", kToolchainMount, torch.major_minor().to_text());
}

std::string cuda_mount(const Version& cuda) {
    return fmt::format("{}/cuda-{}", kToolchainMount, cuda.major_minor().to_text());
}

std::string tvm_ffi_mount(const Version& tvm_ffi) {
    return fmt::format("{}/tvm-ffi-{}", kToolchainMount, tvm_ffi.major_minor().to_text());
}

std::string dependency_mount(std::string_view name) {
    return fmt::format("{}/{}", kToolchainMount, name);
}

} // namespace kb::backend
