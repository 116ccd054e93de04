// SPDX-License-Identifier: Apache-2.0
//
// From the warps' sums over their keys to the result: merged in the block, and if the keys were
// shared among blocks, once more by a second kernel.
#pragma once

#include "../attention_common/cache.h"
#include "cache_tuning.h"
#include "extras.cuh"
#include "tile.cuh"

namespace attention {

struct CachePlan {
    int splits;
    int row_blocks;
    bool vectors;
};

// The kernel that merges is started while this one runs, so that its launch costs no time; it
// waits for the end of this one before it reads.
__device__ __forceinline__ void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void wait_for_last_kernel() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void
store_element(DType dtype, void* out, std::int64_t at, float value) {
    if (dtype == DType::f16) {
        static_cast<__half*>(out)[at] = Float16::narrow(value);
    } else {
        static_cast<__nv_bfloat16*>(out)[at] = BFloat16::narrow(value);
    }
}

// Merges the warps' sums over their keys, divides, and writes the block's rows. `o` has channels as
// rows and queries as columns (cache_formats.cuh); a thread has its queries' highest score, and its
// own share of their totals.
template <typename Format, int kQueryTiles>
__device__ __forceinline__ void merge_warps(float (&o)[Format::Tile::head_dim / 16][kQueryTiles][4],
                                            const float (&highest)[kQueryTiles][2],
                                            const float (&total)[kQueryTiles][2],
                                            float* sums,       // [warps, 16, head_dim + 8]
                                            float* statistics, // [2, warps, 16]
                                            const Problem& problem,
                                            const CacheBuffers& buffers,
                                            const CachePlan& plan,
                                            const Sequence& sequence,
                                            std::int64_t head_kv,
                                            float descale, // of the values
                                            int first_row,
                                            int split) {
    constexpr int kHeadDim = Format::Tile::head_dim;
    constexpr int kStride = kHeadDim + 8;
    constexpr int kRows = 8 * kQueryTiles;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int g = lane / 4;
#pragma unroll
    for (int i = 0; i < 2 * kQueryTiles; ++i) {
        const int query = i / 2 * 8 + lane % 4 * 2 + i % 2;
        float all = total[i / 2][i % 2];
#pragma unroll
        for (int step = 4; step < 32; step *= 2) {
            all += __shfl_xor_sync(0xffffffffU, all, step);
        }
        if (g == 0) {
            statistics[warp * 16 + query] = highest[i / 2][i % 2];
            statistics[(kWarps + warp) * 16 + query] = all;
        }
    }
    __syncthreads(); // also: everybody is done with the ring, which `sums` overlays
#pragma unroll
    for (int i = 0; i < 2 * kQueryTiles; ++i) {
        const int query = i / 2 * 8 + lane % 4 * 2 + i % 2;
        float most = -INFINITY;
        for (int w = 0; w < kWarps; ++w) {
            most = fmaxf(most, statistics[w * 16 + query]);
        }
        const float factor = most == -INFINITY ? 0.0F : exp2f(highest[i / 2][i % 2] - most);
        float* row = sums + (warp * 16 + query) * kStride;
#pragma unroll
        for (int m = 0; m < kHeadDim / 16; ++m) {
            row[Format::value_channel(m, g)] = o[m][i / 2][i % 2] * factor;
            row[Format::value_channel(m, g + 8)] = o[m][i / 2][2 + i % 2] * factor;
        }
    }
    __syncthreads();
    const int group = static_cast<int>(problem.heads / problem.heads_kv);
    const int rows = static_cast<int>(problem.max_seqlen_q) * group;
    const std::int64_t all_rows = problem.batch * problem.heads * problem.max_seqlen_q;
    for (int row = warp; row < kRows && first_row + row < rows; row += kWarps) {
        float most = -INFINITY;
        float all = 0.0F;
        for (int w = 0; w < kWarps; ++w) {
            most = fmaxf(most, statistics[w * 16 + row]);
        }
        for (int w = 0; w < kWarps; ++w) {
            const float mine = statistics[w * 16 + row];
            all +=
                mine == -INFINITY ? 0.0F : statistics[(kWarps + w) * 16 + row] * exp2f(mine - most);
        }
        // Scores that are not numbers have no highest, but a sum.
        for (int w = 0; w < kWarps; ++w) {
            const float sum = statistics[(kWarps + w) * 16 + row];
            all = sum == sum ? all : sum;
        }
        const int position = (first_row + row) / group;
        const std::int64_t head = head_kv * group + (first_row + row) % group;
        float inverse = all == 0.0F ? 0.0F : 1.0F / all;
        float lse = all == 0.0F ? -INFINITY : (most + log2f(all)) * kLn2;
        if (plan.splits == 1) {
            inverse *= add_sink(buffers.extras, head, lse);
        }
        inverse *= descale;
        const std::int64_t at = statistics_at(sequence, head) + position;
        if (lane == 0) {
            (plan.splits == 1 ? buffers.lse[at] : buffers.partial_lse[split * all_rows + at]) = lse;
        }
        for (int column = lane; column < kHeadDim; column += 32) {
            float sum = 0.0F;
            for (int w = 0; w < kWarps; ++w) {
                sum += sums[(w * 16 + row) * kStride + column];
            }
            if (plan.splits > 1) {
                buffers.partial_out[(split * all_rows + at) * kHeadDim + column] = sum * inverse;
            } else if (column < problem.head_dim_v) {
                store_element(problem.dtype,
                              buffers.out,
                              queries_at(sequence, buffers.out_strides, head) +
                                  position * buffers.out_strides.row + column,
                              sum * inverse);
            }
        }
    }
}

// One warp a row: out = sum_s exp(lse_s - lse) partial_s.
template <int kHeadDim>
__global__ void __launch_bounds__(kThreads)
    cache_combine(const Problem problem, const CacheBuffers buffers, int splits) {
    constexpr int kPerLane = static_cast<int>(kMostSplits) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t all_rows = problem.batch * problem.heads * problem.max_seqlen_q;
    const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + static_cast<int>(threadIdx.x) / 32;
    if (row >= all_rows) {
        return;
    }
    wait_for_last_kernel();
    float weight[kPerLane];
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int split = lane + 32 * i;
        weight[i] = split < splits ? buffers.partial_lse[split * all_rows + row] : -INFINITY;
        most = fmaxf(most, weight[i]);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, step));
    }
    const float base = most == -INFINITY ? 0.0F : most;
    float all = 0.0F;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        weight[i] = expf(weight[i] - base);
        all += weight[i];
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        all += __shfl_xor_sync(0xffffffffU, all, step);
    }
    float sum[kHeadDim / 32] = {};
    const float* partial = buffers.partial_out + row * kHeadDim + lane;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
#pragma unroll 4
        for (int j = 0; j < 32 && 32 * i + j < splits; ++j) {
            const float w = __shfl_sync(0xffffffffU, weight[i], j);
#pragma unroll
            for (int c = 0; c < kHeadDim / 32; ++c) {
                sum[c] += w * partial[(32 * i + j) * all_rows * kHeadDim + 32 * c];
            }
        }
    }
    const std::int64_t position = row % problem.max_seqlen_q;
    const std::int64_t head = row / problem.max_seqlen_q % problem.heads;
    const std::int64_t batch = row / problem.max_seqlen_q / problem.heads;
    float inverse = all == 0.0F ? 0.0F : 1.0F / all;
    float lse = all == 0.0F ? -INFINITY : base + logf(all);
    inverse *= add_sink(buffers.extras, head, lse);
    if (lane == 0) {
        buffers.lse[row] = lse;
    }
    const std::int64_t at = batch * buffers.out_strides.batch + position * buffers.out_strides.row +
                            head * buffers.out_strides.head;
#pragma unroll
    for (int c = 0; c < kHeadDim / 32; ++c) {
        if (lane + 32 * c < problem.head_dim_v) {
            store_element(problem.dtype, buffers.out, at + lane + 32 * c, sum[c] * inverse);
        }
    }
}

} // namespace attention
