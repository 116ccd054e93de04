// SPDX-License-Identifier: Apache-2.0
//
// The host's part of the sm_90a forward: the order of the tiles, the launch.
#pragma once

#include "forward_hopper.cuh"
#include "hopper_launch.cuh"

namespace attention {

template <typename Tiling>
HopperPlan plan_hopper(const Problem& problem, const Buffers& buffers) {
    // Keys and values of the heads that are worked on together should stay in the L2 cache.
    constexpr std::int64_t kCacheBytes = 32 << 20;
    HopperPlan plan{};
    plan.query_tiles =
        static_cast<int>((problem.max_seqlen_q + Tiling::queries - 1) / Tiling::queries);
    plan.heads = static_cast<int>(problem.heads);
    plan.heads_per_kv = static_cast<int>(problem.heads / problem.heads_kv);
    plan.all_heads = static_cast<int>(problem.batch * problem.heads);
    plan.tiles = plan.query_tiles * plan.all_heads;
    plan.window_left = narrow_window(problem, problem.window_left);
    plan.window_right = narrow_window(problem, problem.window_right);
    plan.descending = plan.window_right >= 0;
    plan.heads_at_once = 1;
    if (plan.descending) {
        const std::int64_t bytes = problem.max_seqlen_k * problem.head_dim * 4 / plan.heads_per_kv;
        const std::int64_t fit = kCacheBytes / (bytes > 0 ? bytes : 1);
        plan.heads_at_once =
            static_cast<int>(fit < 1 ? 1 : (fit < plan.all_heads ? fit : plan.all_heads));
    }
    plan.next_tile = plan.descending || buffers.offsets.q != nullptr ? buffers.next_tile : nullptr;
    return plan;
}

// cudaErrorNotSupported: nothing was done, another path has to.
template <typename Number, typename Tiling>
cudaError_t launch_hopper(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    constexpr int kBytes = Tiling::shared_bytes;
    const auto kernel = forward_hopper<Number, Tiling>;
    const bool packed = buffers.offsets.q != nullptr;
    const std::int64_t batch = packed ? 1 : problem.batch;
    const MapShape q{
        problem.head_dim, packed ? problem.total_q : problem.max_seqlen_q, problem.heads, batch};
    const MapShape k{
        problem.head_dim, packed ? problem.total_k : problem.max_seqlen_k, problem.heads_kv, batch};
    HopperMaps maps{};
    if (!encode_map(maps.q, problem.dtype, buffers.q, buffers.q_strides, q, Tiling::queries) ||
        !encode_map(maps.k, problem.dtype, buffers.k, buffers.k_strides, k, Tiling::keys) ||
        !encode_map(maps.v, problem.dtype, buffers.v, buffers.v_strides, k, Tiling::keys)) {
        return cudaErrorNotSupported;
    }
    if (allow_shared(kernel, kBytes) != cudaSuccess) {
        cudaGetLastError(); // the code for this chip was not compiled in
        return cudaErrorNotSupported;
    }
    HopperPlan plan = plan_hopper<Tiling>(problem, buffers);
    int multiprocessors = 0;
    cudaError_t error = count_multiprocessors(multiprocessors);
    const int blocks = plan.tiles < multiprocessors ? plan.tiles : multiprocessors;
    if (plan.tiles <= blocks) {
        plan.next_tile = nullptr;
    }
    if (error == cudaSuccess && plan.next_tile != nullptr) {
        error = cudaMemsetAsync(plan.next_tile, 0, sizeof(int), stream);
    }
    if (error != cudaSuccess) {
        return error;
    }
    kernel<<<static_cast<unsigned>(blocks), Tiling::threads, kBytes, stream>>>(
        maps, problem, buffers, plan);
    return cudaGetLastError();
}

} // namespace attention
