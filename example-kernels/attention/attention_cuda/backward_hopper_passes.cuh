// SPDX-License-Identifier: Apache-2.0
//
// Before and after the kernel of backward_hopper.cuh, a thread block for each of its blocks of
// queries: delta and log-sum-exp in the layout of its steps, all turns 0; the sum of grad_q to the
// tensor.
#pragma once

#include "backward_hopper.cuh"

namespace attention {

constexpr int kPassThreads = 256;

struct PassBlock {
    HopperBackwardSequence sequence;
    int block; // of the sequence
    int head;
    int batch;
    int first_query;
    bool exists;
};

template <typename Tiling>
__device__ __forceinline__ PassBlock pass_block(const Problem& problem,
                                                const BackwardBuffers& buffers,
                                                const HopperBackwardPlan& plan) {
    PassBlock p{};
    const int heads = static_cast<int>(problem.heads);
    const int batch_head = static_cast<int>(blockIdx.x) / plan.query_blocks;
    p.block = static_cast<int>(blockIdx.x) - batch_head * plan.query_blocks;
    p.batch = batch_head / heads;
    p.head = batch_head - p.batch * heads;
    p.sequence = backward_sequence<Tiling>(p.batch, plan, problem, buffers.offsets);
    p.first_query = p.block * Tiling::queries;
    p.exists = p.first_query < p.sequence.q_length;
    return p;
}

template <typename Number>
__device__ __forceinline__ float dot_piece(const uint4& a, const uint4& b) {
    const std::uint32_t x[4] = {a.x, a.y, a.z, a.w};
    const std::uint32_t y[4] = {b.x, b.y, b.z, b.w};
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 u = Number::unpack(x[i]);
        const float2 v = Number::unpack(y[i]);
        sum = fmaf(u.x, v.x, fmaf(u.y, v.y, sum));
    }
    return sum;
}

template <typename Number, typename Tiling>
__global__ void __launch_bounds__(kPassThreads) prepare_backward(const Problem problem,
                                                                 const BackwardBuffers buffers,
                                                                 const HopperBackwardPlan plan) {
    constexpr int kLanes = Tiling::head_dim / 8; // of a row
    constexpr int kRows = kPassThreads / kLanes; // at once
    const PassBlock p = pass_block<Tiling>(problem, buffers, plan);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *plan.next_tile = 0;
    }
    if (!p.exists) {
        return;
    }
    const std::int64_t at = block_at(plan, p.sequence, p.head, p.block);
    if (threadIdx.x == 0) {
        plan.turns[at] = 0;
    }
    const Sequence sequence = sequence_of(problem, buffers.offsets, p.batch);
    const auto* out = static_cast<const typename Number::Storage*>(buffers.out) +
                      queries_at(sequence, buffers.out_strides, p.head);
    const auto* grad = static_cast<const typename Number::Storage*>(buffers.grad_out) +
                       queries_at(sequence, buffers.grad_out_strides, p.head);
    const float* lse = buffers.lse + statistics_at(sequence, p.head);
    float* statistics = plan.statistics + at * (2 * Tiling::queries);
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
#pragma unroll
    for (int i = 0; i < Tiling::queries / kRows; ++i) {
        const int within = i * kRows + static_cast<int>(threadIdx.x) / kLanes;
        const std::int64_t row = p.first_query + within;
        const bool inside = row < p.sequence.q_length;
        float delta = 0.0F;
        if (inside && lane * 8 < problem.head_dim) {
            delta = dot_piece<Number>(
                *reinterpret_cast<const uint4*>(out + row * buffers.out_strides.row + lane * 8),
                *reinterpret_cast<const uint4*>(grad + row * buffers.grad_out_strides.row +
                                                lane * 8));
        }
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2) {
            delta += __shfl_xor_sync(0xffffffffU, delta, offset);
        }
        if (lane == 0) {
            // No key is visible, or no such query: every exponential becomes 0.
            const float value = inside ? lse[row] : -INFINITY;
            statistics[within] = value == -INFINITY ? INFINITY : value * kLog2E;
            statistics[Tiling::queries + within] = delta;
        }
    }
}

template <typename Number, typename Tiling>
__global__ void __launch_bounds__(kPassThreads) finish_backward(const Problem problem,
                                                                const BackwardBuffers buffers,
                                                                const HopperBackwardPlan plan) {
    static_assert(kPassThreads == 128 * Tiling::groups);
    const PassBlock p = pass_block<Tiling>(problem, buffers, plan);
    if (!p.exists) {
        return;
    }
    const int group = static_cast<int>(threadIdx.x) / 128;
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int column = Tiling::queries == 128 ? 0 : group * 64;
    const int first_row = Tiling::queries == 128 ? group * 64 : 0;
    int begin;
    int end;
    keys_of_block<Tiling>(p.block, p.sequence, plan, begin, end);
    float values[32] = {};
    if (end > begin) { // else no tile came here
        const auto* sum = reinterpret_cast<const float4*>(plan.sums) +
                          (block_at(plan, p.sequence, p.head, p.block) * Tiling::groups + group) *
                              (Tiling::sum_bytes / Tiling::groups / 16) +
                          thread;
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const float4 four = sum[r * 128];
            values[4 * r] = four.x;
            values[4 * r + 1] = four.y;
            values[4 * r + 2] = four.z;
            values[4 * r + 3] = four.w;
        }
    }
    const Sequence sequence = sequence_of(problem, buffers.offsets, p.batch);
    auto* grad_q = static_cast<typename Number::Storage*>(buffers.grad_q) +
                   queries_at(sequence, buffers.grad_q_strides, p.head) + column;
    const std::int64_t row = p.first_query + first_row + thread / 32 * 16 + thread % 32 / 4;
    const std::int64_t stride = buffers.grad_q_strides.row;
    store_rows<Number, 64>(values,
                           {problem.scale, problem.scale},
                           {grad_q + row * stride, grad_q + (row + 8) * stride},
                           {row < p.sequence.q_length, row + 8 < p.sequence.q_length},
                           static_cast<int>(problem.head_dim) - column);
}

} // namespace attention
