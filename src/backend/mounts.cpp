// SPDX-License-Identifier: Apache-2.0
#include "backend/mounts.hpp"

namespace kb::backend {

namespace {

std::string mount(std::string_view kind, std::string_view name) {
    return std::string{kToolchainMount}.append(kind).append(name);
}

} // namespace

std::string torch_mount(const Version& torch) {
    return mount("/torch-", torch.major_minor().to_text());
}

std::string cuda_mount(const Version& cuda) {
    return mount("/cuda-", cuda.major_minor().to_text());
}

std::string tvm_ffi_mount(const Version& tvm_ffi) {
    return mount("/tvm-ffi-", tvm_ffi.major_minor().to_text());
}

std::string dependency_mount(std::string_view name) {
    return mount("/", name);
}

} // namespace kb::backend
