// SPDX-License-Identifier: Apache-2.0
//
// Forward for fp32 without tensor cores, any alignment. A warp owns four queries; in a step of 32
// keys each lane computes the scores of one key, then the lanes share the head dimension:
//
//        keys: lane 0 ... lane 31           head dimension: lane, lane + 32, ...
//   q0 | s s s s ...                   o0 | o o o ...
//   q1 | ...              then         o1 | ...
#include "../attention_common/attention.h"
#include "extras.cuh"
#include "forward.h"
#include "tuning.h"

namespace attention {
namespace {

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads)
    forward_f32_kernel(const Problem problem, const Buffers buffers, int query_blocks) {
    constexpr int kColumns = kHeadDim / 32;  // of O, per lane
    constexpr int kKeyStride = kHeadDim + 1; // lanes read different rows: no bank conflict
    extern __shared__ float tile[];
    float* q_tile = tile;
    float* k_tile = q_tile + kF32Queries * kHeadDim;
    float* v_tile = k_tile + kF32Keys * kKeyStride;

    const int query_block = query_blocks - 1 - static_cast<int>(blockIdx.x) % query_blocks;
    const std::int64_t batch_head = blockIdx.x / query_blocks;
    const std::int64_t head = batch_head % problem.heads;
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const Sequence sequence = sequence_of(problem, buffers.offsets, batch_head / problem.heads);
    const std::int64_t first_query = static_cast<std::int64_t>(query_block) * kF32Queries;
    if (first_query >= sequence.q_length) {
        return;
    }
    const std::int64_t last_query =
        (first_query + kF32Queries < sequence.q_length ? first_query + kF32Queries
                                                       : sequence.q_length) -
        1;
    const int head_dim = static_cast<int>(problem.head_dim);
    const auto* q =
        static_cast<const float*>(buffers.q) + queries_at(sequence, buffers.q_strides, head);
    const auto* k =
        static_cast<const float*>(buffers.k) + keys_at(sequence, buffers.k_strides, head_kv);
    const auto* v =
        static_cast<const float*>(buffers.v) + keys_at(sequence, buffers.v_strides, head_kv);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * kF32RowsPerWarp;

    const auto load = [&](float* target,
                          int stride,
                          const float* source,
                          std::int64_t row_stride,
                          int rows,
                          std::int64_t first,
                          std::int64_t length,
                          std::int64_t width) {
        for (int i = static_cast<int>(threadIdx.x); i < rows * kHeadDim; i += kThreads) {
            const int row = i / kHeadDim;
            const int column = i % kHeadDim;
            const bool valid = first + row < length && column < width;
            target[row * stride + column] =
                valid ? source[(first + row) * row_stride + column] : 0.0F;
        }
    };
    load(q_tile,
         kHeadDim,
         q,
         buffers.q_strides.row,
         kF32Queries,
         first_query,
         sequence.q_length,
         head_dim);

    Range range[kF32RowsPerWarp];
#pragma unroll
    for (int r = 0; r < kF32RowsPerWarp; ++r) {
        range[r] = visible_keys(problem, sequence, first_query + warp_row + r);
    }
    const float slope = slope_of(buffers.extras, sequence.batch, head);
    const Dropout dropout = dropout_of(buffers.extras, problem, sequence.batch, head);
    const std::int64_t first_level = first_query + warp_row + sequence.k_length - sequence.q_length;
    float o[kF32RowsPerWarp][kColumns] = {};
    float highest[kF32RowsPerWarp];
    float total[kF32RowsPerWarp] = {};
#pragma unroll
    for (int r = 0; r < kF32RowsPerWarp; ++r) {
        highest[r] = -INFINITY;
    }

    const std::int64_t keys_begin =
        visible_keys(problem, sequence, first_query).begin / kF32Keys * kF32Keys;
    const std::int64_t keys_end = visible_keys(problem, sequence, last_query).end;
    for (std::int64_t key = keys_begin; key < keys_end; key += kF32Keys) {
        __syncthreads();
        load(k_tile,
             kKeyStride,
             k,
             buffers.k_strides.row,
             kF32Keys,
             key,
             sequence.k_length,
             head_dim);
        load(v_tile,
             kHeadDim,
             v,
             buffers.v_strides.row,
             kF32Keys,
             key,
             sequence.k_length,
             problem.head_dim_v);
        __syncthreads();

        float s[kF32RowsPerWarp] = {};
        for (int d = 0; d < head_dim; ++d) {
            const float key_value = k_tile[lane * kKeyStride + d];
#pragma unroll
            for (int r = 0; r < kF32RowsPerWarp; ++r) {
                s[r] += q_tile[(warp_row + r) * kHeadDim + d] * key_value;
            }
        }
#pragma unroll
        for (int r = 0; r < kF32RowsPerWarp; ++r) {
            s[r] *= problem.scale;
            if (problem.softcap > 0.0F) {
                s[r] = problem.softcap * tanhf(s[r] / problem.softcap);
            }
            if (slope != 0.0F) {
                s[r] -= slope * fabsf(static_cast<float>(first_level + r - key - lane));
            }
            if (key + lane < range[r].begin || key + lane >= range[r].end) {
                s[r] = -INFINITY;
            }
            float step_highest = s[r];
#pragma unroll
            for (int offset = 16; offset > 0; offset /= 2) {
                step_highest =
                    fmaxf(step_highest, __shfl_xor_sync(0xffffffffU, step_highest, offset));
            }
            const float before = highest[r];
            highest[r] = fmaxf(before, step_highest);
            const float base = highest[r] == -INFINITY ? 0.0F : highest[r];
            const float shrink = expf(before - base);
            s[r] = expf(s[r] - base);
            total[r] = total[r] * shrink + s[r]; // this lane's keys
            s[r] *= dropout.factor(first_query + warp_row + r, key + lane);
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
                o[r][c] *= shrink;
            }
        }
        for (int step = 0; step < kF32Keys; ++step) {
            float p[kF32RowsPerWarp];
#pragma unroll
            for (int r = 0; r < kF32RowsPerWarp; ++r) {
                p[r] = __shfl_sync(0xffffffffU, s[r], step);
            }
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
                const float value = v_tile[step * kHeadDim + c * 32 + lane];
#pragma unroll
                for (int r = 0; r < kF32RowsPerWarp; ++r) {
                    o[r][c] += p[r] * value;
                }
            }
        }
    }

    auto* out = static_cast<float*>(buffers.out) + queries_at(sequence, buffers.out_strides, head);
#pragma unroll
    for (int r = 0; r < kF32RowsPerWarp; ++r) {
        const std::int64_t query = first_query + warp_row + r;
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) {
            total[r] += __shfl_xor_sync(0xffffffffU, total[r], offset);
        }
        if (query >= sequence.q_length) {
            continue;
        }
        const bool empty = range[r].begin >= range[r].end;
        float lse = empty ? -INFINITY : highest[r] + logf(total[r]);
        const float factor = add_sink(buffers.extras, head, lse) / total[r];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
            const int column = c * 32 + lane;
            if (column < problem.head_dim_v) {
                out[query * buffers.out_strides.row + column] = empty ? 0.0F : o[r][c] * factor;
            }
        }
        if (lane == 0) {
            buffers.lse[statistics_at(sequence, head) + query] = lse;
        }
    }
}

template <int kHeadDim>
cudaError_t launch(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    constexpr int kBytes = f32_shared_bytes(kHeadDim);
    const auto kernel = forward_f32_kernel<kHeadDim>;
    if (kBytes > 48 * 1024) {
        const cudaError_t error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
        if (error != cudaSuccess) {
            return error;
        }
    }
    const std::int64_t query_blocks = (problem.max_seqlen_q + kF32Queries - 1) / kF32Queries;
    const std::int64_t blocks = query_blocks * problem.heads * problem.batch;
    if (blocks > 0x7fffffff) {
        return cudaErrorInvalidConfiguration;
    }
    kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(
        problem, buffers, static_cast<int>(query_blocks));
    return cudaGetLastError();
}

} // namespace

cudaError_t forward_f32(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    const std::int64_t width = widest_head(problem);
    if (width <= 64) {
        return launch<64>(problem, buffers, stream);
    }
    if (width <= 128) {
        return launch<128>(problem, buffers, stream);
    }
    return launch<256>(problem, buffers, stream);
}

} // namespace attention
