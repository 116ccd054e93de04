// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/version.hpp"

#include <string>
#include <string_view>

namespace kb::backend {

/// Places inside the sandbox, the same on every machine: compilers write them into objects. Flags
/// of a plan name these and nothing else.
inline constexpr std::string_view kSourceMount = "/src";
/// build.ninja, objects, keep directories, libraries; the only place that a compiler may write.
inline constexpr std::string_view kWorkMount = "/work";
/// CUDA sources of ROCm sections after their translation to HIP, laid out as below kSourceMount.
inline constexpr std::string_view kTranslatedMount = "/work/hip";
inline constexpr std::string_view kCacheMount = "/ccache";
/// Root of the host compiler: /usr/bin/g++ and its headers.
inline constexpr std::string_view kHostMount = "/usr";
inline constexpr std::string_view kToolchainMount = "/toolchain";
/// Link stubs of the manylinux baseline: libc.so, libstdc++.so, libstdc++_nonshared.a ...
inline constexpr std::string_view kStubsMount = "/toolchain/stubs";
/// Headers of the Python limited API: Python.h stands directly in it.
inline constexpr std::string_view kPythonMount = "/toolchain/python";

/// Seconds since 1970 that every clock-reading tool is given, and the mtime of every input file
/// (1980-01-01, the oldest time that a zip archive can hold).
inline constexpr long kSourceDateEpoch = 315532800;

/// "/toolchain/torch-2.11": include/ holds the headers, stubs/ the link stubs of its libraries.
[[nodiscard]] std::string torch_mount(const Version& torch);
/// "/toolchain/cuda-13.0": bin/nvcc, include/, lib/.
[[nodiscard]] std::string cuda_mount(const Version& cuda);
/// "/toolchain/rocm-5.7": bin/clang++, bin/cuda-to-hip-1, include/, amdgcn/, stubs/.
[[nodiscard]] std::string rocm_mount(const Version& rocm);
/// "/toolchain/tvm-ffi-0.1": include/.
[[nodiscard]] std::string tvm_ffi_mount(const Version& tvm_ffi);
/// "/toolchain/<name>" of a native dependency: "/toolchain/cutlass-3.6".
[[nodiscard]] std::string dependency_mount(std::string_view name);

} // namespace kb::backend
