// SPDX-License-Identifier: Apache-2.0
//
// What both launchers ask of the device. The answers are kept: a call costs the host microseconds.
#pragma once

#include "../norm_common/norm.h"
#include "tuning.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cuda_runtime.h>

namespace rownorm {

constexpr int kMaxDevices = 64;

inline int current_device() {
    int device = 0;
    return cudaGetDevice(&device) == cudaSuccess && device < kMaxDevices ? device : 0;
}

inline int multiprocessors() {
    static std::array<std::atomic<int>, kMaxDevices> known{};
    const int device = current_device();
    if (known[device] == 0) {
        int count = 1;
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
        known[device] = count;
    }
    return known[device];
}

// How many rows later a row that is prefetched is read: half of those that are at work at once.
inline std::int64_t
rows_ahead(const Problem& problem, std::int64_t row_bytes, int block, int rows) {
    const std::int64_t resident =
        static_cast<std::int64_t>(multiprocessors()) * (kForwardThreadsPerSm / block) * rows;
    const bool pays = row_bytes >= kPrefetchBytes && problem.rows >= kPrefetchRounds * resident;
    return pays ? resident / 2 : 0;
}

// Whether the device has clusters and `kernel` was compiled for them.
template <typename Kernel>
bool has_clusters(Kernel kernel) {
    static std::array<std::atomic<int>, kMaxDevices> known{}; // 1: no, 2: yes
    const int device = current_device();
    if (known[device] == 0) {
        int major = 0;
        cudaFuncAttributes attributes{};
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
        const bool compiled =
            cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)) ==
                cudaSuccess &&
            attributes.ptxVersion >= 90;
        known[device] = major >= 9 && compiled ? 2 : 1;
    }
    return known[device] == 2;
}

template <typename... Parameters>
void launch(void (*kernel)(Parameters...),
            dim3 grid,
            dim3 block,
            std::size_t shared_bytes,
            int ranks,
            cudaStream_t stream,
            Parameters... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(ranks);
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
    config.attrs = &cluster;
    config.numAttrs = ranks > 1 ? 1 : 0;
    cudaLaunchKernelEx(&config, kernel, arguments...);
}

} // namespace rownorm
