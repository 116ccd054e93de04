// SPDX-License-Identifier: Apache-2.0
#include "backend/mounts.hpp"

#include <fmt/format.h>

namespace kb::backend {

namespace {

/// With one allocation: every compile and link command of a plan asks.
std::string mount(std::string_view kind, const Version& version) {
    const fmt::format_int major{version.major()};
    const fmt::format_int minor{version.minor()};
    std::string path;
    path.reserve(kToolchainMount.size() + kind.size() + major.size() + 1 + minor.size());
    path.append(kToolchainMount).append(kind);
    path.append(major.data(), major.size()).append(1, '.').append(minor.data(), minor.size());
    return path;
}

} // namespace

std::string torch_mount(const Version& torch) {
    return mount("/torch-", torch);
}

std::string cuda_mount(const Version& cuda) {
    return mount("/cuda-", cuda);
}

std::string rocm_mount(const Version& rocm) {
    return mount("/rocm-", rocm);
}

std::string tvm_ffi_mount(const Version& tvm_ffi) {
    return mount("/tvm-ffi-", tvm_ffi);
}

std::string dependency_mount(std::string_view name) {
    return std::string{kToolchainMount}.append("/").append(name);
}

} // namespace kb::backend
