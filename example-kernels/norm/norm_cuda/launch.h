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
#include <type_traits>

namespace rownorm {

constexpr int kMaxDevices = 64;

template <int kValue>
using Constant = std::integral_constant<int, kValue>;

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

// How a launch of the forward kernels spreads the rows.
struct ForwardLaunch {
    Spread spread;
    dim3 grid;
    dim3 block;
    int ahead; // so many rows later is a row read that is prefetched; 0: none is
};

inline ForwardLaunch forward_launch(const Problem& problem, const Spread& s, int threads) {
    const int side = threads < kForwardBlockThreads ? kForwardBlockThreads / threads : 1;
    const int rows = side * s.rows_per_thread; // of a block
    const std::int64_t blocks = (problem.rows + rows - 1) / rows * s.ranks;
    // Half of the rows that are at work at once.
    const std::int64_t resident = static_cast<std::int64_t>(multiprocessors()) *
                                  (kForwardThreadsPerSm / (threads * side)) * rows / s.ranks;
    const bool pays =
        static_cast<std::int64_t>(s.slice) * s.ranks * kVectorBytes >= kPrefetchBytes &&
        problem.rows >= kPrefetchRounds * resident;
    return {s,
            dim3(static_cast<unsigned>(blocks)),
            dim3(static_cast<unsigned>(threads), static_cast<unsigned>(side)),
            pays ? static_cast<int>(resident / 2) : 0};
}

// Calls body with the numbers of vectors and rows of a thread, and with the threads of a block at
// most.
template <typename Body>
void with_holding(const Spread& s, const Body& body) {
    const auto is = [&](int vectors, int rows) {
        return s.vectors_per_thread == vectors && s.rows_per_thread == rows;
    };
    if (is(1, 1)) {
        return body(Constant<1>{}, Constant<1>{}, Constant<512>{});
    }
    if (is(1, 4)) {
        return body(Constant<1>{}, Constant<4>{}, Constant<512>{});
    }
    if (is(2, 2)) {
        return body(Constant<2>{}, Constant<2>{}, Constant<512>{});
    }
    if (is(4, 1)) {
        return body(Constant<4>{}, Constant<1>{}, Constant<1024>{});
    }
    return body(Constant<8>{}, Constant<1>{}, Constant<1024>{});
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
