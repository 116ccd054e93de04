// SPDX-License-Identifier: Apache-2.0
//
// The host's part of the sm_90a backward: the workspace, the order of the tiles, the launches.
#pragma once

#include "backward_hopper_passes.cuh"
#include "hopper_launch.cuh"

namespace attention {

template <typename Tiling>
std::int64_t backward_blocks(const Problem& problem, bool packed) {
    const std::int64_t query_blocks =
        (problem.max_seqlen_q + Tiling::queries - 1) / Tiling::queries;
    return packed ? problem.total_q / Tiling::queries + problem.batch
                  : problem.batch * query_blocks;
}

// In the order of HopperBackwardPlan: the large parts first, all of them multiples of 16 bytes.
template <typename Tiling>
std::int64_t backward_workspace(const Problem& problem, bool packed) {
    const std::int64_t blocks = backward_blocks<Tiling>(problem, packed) * problem.heads;
    return blocks * (Tiling::sum_bytes + Tiling::statistic_bytes + 4) + 16;
}

template <typename Tiling>
HopperBackwardPlan plan_backward(const Problem& problem, const BackwardBuffers& buffers) {
    // A few tiles of a head at a time: they share its queries in the L2 cache, and the last of them
    // does not wait long for its turn to add.
    constexpr int kHeadsAtOnce = 32;
    HopperBackwardPlan plan{};
    plan.query_blocks =
        static_cast<int>((problem.max_seqlen_q + Tiling::queries - 1) / Tiling::queries);
    plan.key_tiles = static_cast<int>((problem.max_seqlen_k + Tiling::keys - 1) / Tiling::keys);
    plan.heads_kv = static_cast<int>(problem.heads_kv);
    plan.heads_per_kv = static_cast<int>(problem.heads / problem.heads_kv);
    plan.all_heads = static_cast<int>(problem.batch * problem.heads_kv);
    plan.tiles = plan.key_tiles * plan.all_heads;
    plan.window_left = narrow_window(problem, problem.window_left);
    plan.window_right = narrow_window(problem, problem.window_right);
    plan.heads_at_once = plan.all_heads < kHeadsAtOnce ? plan.all_heads : kHeadsAtOnce;
    const bool packed = buffers.offsets.q != nullptr;
    plan.blocks_per_head = static_cast<int>(backward_blocks<Tiling>(problem, packed));
    const std::int64_t blocks = std::int64_t{plan.blocks_per_head} * problem.heads;
    plan.sums = static_cast<float*>(buffers.workspace);
    plan.statistics = plan.sums + blocks * (Tiling::sum_bytes / 4);
    plan.turns = reinterpret_cast<int*>(plan.statistics + blocks * (2 * Tiling::queries));
    plan.next_tile = plan.turns + blocks;
    return plan;
}

// cudaErrorNotSupported: nothing was done, another path has to.
template <typename Number, typename Tiling>
cudaError_t launch_backward_hopper(const Problem& problem,
                                   const BackwardBuffers& buffers,
                                   cudaStream_t stream) {
    constexpr int kBytes = Tiling::shared_bytes;
    const auto kernel = backward_hopper<Number, Tiling>;
    const bool packed = buffers.offsets.q != nullptr;
    const std::int64_t batch = packed ? 1 : problem.batch;
    const MapShape q{
        problem.head_dim, packed ? problem.total_q : problem.max_seqlen_q, problem.heads, batch};
    const MapShape k{
        problem.head_dim, packed ? problem.total_k : problem.max_seqlen_k, problem.heads_kv, batch};
    HopperBackwardMaps maps{};
    const auto encode = [&](CUtensorMap& map,
                            const void* data,
                            const Strides& strides,
                            const MapShape& shape,
                            int rows) {
        return encode_map(map, problem.dtype, data, strides, shape, rows);
    };
    if (!encode(maps.q, buffers.q, buffers.q_strides, q, Tiling::queries) ||
        !encode(maps.k, buffers.k, buffers.k_strides, k, Tiling::keys) ||
        !encode(maps.v, buffers.v, buffers.v_strides, k, Tiling::keys) ||
        !encode(maps.grad_out, buffers.grad_out, buffers.grad_out_strides, q, Tiling::queries)) {
        return cudaErrorNotSupported;
    }
    if (allow_shared(kernel, kBytes) != cudaSuccess) {
        cudaGetLastError(); // the code for this chip was not compiled in
        return cudaErrorNotSupported;
    }
    const HopperBackwardPlan plan = plan_backward<Tiling>(problem, buffers);
    int multiprocessors = 0;
    if (const cudaError_t error = count_multiprocessors(multiprocessors); error != cudaSuccess) {
        return error;
    }
    const auto query_blocks =
        static_cast<unsigned>(plan.query_blocks * problem.batch * problem.heads);
    const int blocks = plan.tiles < multiprocessors ? plan.tiles : multiprocessors;
    prepare_backward<Number, Tiling>
        <<<query_blocks, kPassThreads, 0, stream>>>(problem, buffers, plan);
    kernel<<<static_cast<unsigned>(blocks), Tiling::threads, kBytes, stream>>>(
        maps, problem, buffers, plan);
    finish_backward<Number, Tiling>
        <<<query_blocks, kPassThreads, 0, stream>>>(problem, buffers, plan);
    return cudaGetLastError();
}

} // namespace attention
