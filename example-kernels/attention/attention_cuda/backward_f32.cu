// SPDX-License-Identifier: Apache-2.0
//
// Backward for fp32 without tensor cores, any alignment; the two kernels of backward_mma.cuh in the
// manner of forward_f32.cu: a warp owns four rows (queries, or keys), in a step each lane takes one
// of 32 rows of the other kind, then the lanes share the head dimension.
#include "../attention_common/dropout.h"
#include "backward.h"
#include "tuning.h"

namespace attention {
namespace {

constexpr int kRows = kF32RowsPerWarp;

// Rows [first, first + rows) of `length` to shared memory, zeros beyond the end and head_dim.
template <int kHeadDim>
__device__ __forceinline__ void load(float* target,
                                     int stride,
                                     const float* source,
                                     std::int64_t row_stride,
                                     int rows,
                                     std::int64_t first,
                                     std::int64_t length,
                                     int head_dim) {
    for (int i = static_cast<int>(threadIdx.x); i < rows * kHeadDim; i += kThreads) {
        const int row = i / kHeadDim;
        const int column = i % kHeadDim;
        const bool valid = first + row < length && column < head_dim;
        target[row * stride + column] = valid ? source[(first + row) * row_stride + column] : 0.0F;
    }
}

// Dot products of the warp's four rows of two tensors with the lane's row of two others.
template <int kHeadDim>
__device__ __forceinline__ void products(float (&first)[kRows],
                                         float (&second)[kRows],
                                         const float* own_first,
                                         const float* own_second,
                                         const float* lane_first,
                                         const float* lane_second,
                                         std::int64_t width) {
    for (int d = 0; d < width; ++d) { // beyond their own width the rows are 0
        const float a = lane_first[d];
        const float b = lane_second[d];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            first[r] += own_first[r * kHeadDim + d] * a;
            second[r] += own_second[r * kHeadDim + d] * b;
        }
    }
}

// sum[r][c] += weight[r] of lane i, times row i of the tile, for all 32 lanes.
template <int kColumns>
__device__ __forceinline__ void accumulate(float (&sum)[kRows][kColumns],
                                           const float (&weight)[kRows],
                                           const float* tile,
                                           int stride) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < 32; ++i) {
        float w[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            w[r] = __shfl_sync(0xffffffffU, weight[r], i);
        }
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
            const float value = tile[i * stride + c * 32 + lane];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                sum[r][c] += w[r] * value;
            }
        }
    }
}

template <int kColumns>
__device__ __forceinline__ void store(float* base,
                                      std::int64_t row_stride,
                                      std::int64_t first,
                                      std::int64_t length,
                                      const float (&sum)[kRows][kColumns],
                                      float factor,
                                      int head_dim) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
            const int column = c * 32 + lane;
            if (first + r < length && column < head_dim) {
                base[(first + r) * row_stride + column] = sum[r][c] * factor;
            }
        }
    }
}

// z p and ds of attention.h for one pair; `kept` is z.
__device__ __forceinline__ void score_gradient(const Problem& problem,
                                               float product,
                                               float lse,
                                               float grad_product,
                                               float delta,
                                               bool visible,
                                               float bias,
                                               float kept,
                                               float& p,
                                               float& ds) {
    float s = product * problem.scale;
    float slope = 1.0F;
    if (problem.softcap > 0.0F) {
        const float t = tanhf(s / problem.softcap);
        s = problem.softcap * t;
        slope = 1.0F - t * t;
    }
    p = visible ? expf(s + bias - lse) : 0.0F;
    ds = visible ? p * (kept * grad_product - delta) * slope : 0.0F;
    p *= kept;
}

// What ALiBi adds to a score.
__device__ __forceinline__ float
bias_of(float slope, const Sequence& sequence, std::int64_t row, std::int64_t key) {
    const std::int64_t level = row + sequence.k_length - sequence.q_length;
    return slope == 0.0F ? 0.0F : -slope * fabsf(static_cast<float>(level - key));
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads)
    queries_kernel(const Problem problem, const BackwardBuffers buffers, int query_blocks) {
    constexpr int kStride = kHeadDim + 1; // lanes read different rows: no bank conflict
    extern __shared__ float tile[];
    float* q_tile = tile;
    float* grad_tile = q_tile + kF32Queries * kHeadDim;
    float* k_tile = grad_tile + kF32Queries * kHeadDim;
    float* v_tile = k_tile + kF32Keys * kStride;

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
    const int head_dim_v = static_cast<int>(problem.head_dim_v);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * kRows;
    load<kHeadDim>(q_tile,
                   kHeadDim,
                   static_cast<const float*>(buffers.q) +
                       queries_at(sequence, buffers.q_strides, head),
                   buffers.q_strides.row,
                   kF32Queries,
                   first_query,
                   sequence.q_length,
                   head_dim);
    load<kHeadDim>(grad_tile,
                   kHeadDim,
                   static_cast<const float*>(buffers.grad_out) +
                       queries_at(sequence, buffers.grad_out_strides, head),
                   buffers.grad_out_strides.row,
                   kF32Queries,
                   first_query,
                   sequence.q_length,
                   head_dim_v);
    Range range[kRows];
    float lse[kRows];
    float delta[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const std::int64_t row = first_query + warp_row + r;
        const std::int64_t at = statistics_at(sequence, head) + row;
        range[r] = visible_keys(problem, sequence, row);
        lse[r] = row < sequence.q_length ? buffers.lse[at] : 0.0F;
        delta[r] = row < sequence.q_length ? buffers.delta[at] : 0.0F;
    }
    const float slope = slope_of(buffers.extras, sequence.batch, head);
    const Dropout dropout = dropout_of(buffers.extras, problem, sequence.batch, head);
    float grad_q[kRows][kHeadDim / 32] = {};
    const std::int64_t begin =
        visible_keys(problem, sequence, first_query).begin / kF32Keys * kF32Keys;
    const std::int64_t end = visible_keys(problem, sequence, last_query).end;
    for (std::int64_t key = begin; key < end; key += kF32Keys) {
        __syncthreads();
        load<kHeadDim>(k_tile,
                       kStride,
                       static_cast<const float*>(buffers.k) +
                           keys_at(sequence, buffers.k_strides, head_kv),
                       buffers.k_strides.row,
                       kF32Keys,
                       key,
                       sequence.k_length,
                       head_dim);
        load<kHeadDim>(v_tile,
                       kStride,
                       static_cast<const float*>(buffers.v) +
                           keys_at(sequence, buffers.v_strides, head_kv),
                       buffers.v_strides.row,
                       kF32Keys,
                       key,
                       sequence.k_length,
                       head_dim_v);
        __syncthreads();
        float s[kRows] = {};
        float ds[kRows] = {};
        products<kHeadDim>(s,
                           ds,
                           q_tile + warp_row * kHeadDim,
                           grad_tile + warp_row * kHeadDim,
                           k_tile + lane * kStride,
                           v_tile + lane * kStride,
                           widest_head(problem));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const bool visible = key + lane >= range[r].begin && key + lane < range[r].end;
            const std::int64_t row = first_query + warp_row + r;
            score_gradient(problem,
                           s[r],
                           lse[r],
                           ds[r],
                           delta[r],
                           visible,
                           bias_of(slope, sequence, row, key + lane),
                           dropout.factor(row, key + lane),
                           s[r],
                           ds[r]);
        }
        accumulate(grad_q, ds, k_tile, kStride);
    }
    store(static_cast<float*>(buffers.grad_q) + queries_at(sequence, buffers.grad_q_strides, head),
          buffers.grad_q_strides.row,
          first_query + warp_row,
          sequence.q_length,
          grad_q,
          problem.scale,
          head_dim);
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const Problem problem, const BackwardBuffers buffers, int key_blocks) {
    constexpr int kStride = kHeadDim + 1;
    extern __shared__ float tile[];
    float* k_tile = tile;
    float* v_tile = k_tile + kF32Queries * kHeadDim;
    float* q_tile = v_tile + kF32Queries * kHeadDim;
    float* grad_tile = q_tile + kF32Keys * kStride;

    const int key_block = static_cast<int>(blockIdx.x) % key_blocks;
    const std::int64_t batch_head = blockIdx.x / key_blocks;
    const std::int64_t head_kv = batch_head % problem.heads_kv;
    const std::int64_t group = problem.heads / problem.heads_kv;
    const Sequence sequence = sequence_of(problem, buffers.offsets, batch_head / problem.heads_kv);
    const std::int64_t first_key = static_cast<std::int64_t>(key_block) * kF32Queries;
    if (first_key >= sequence.k_length) {
        return;
    }
    const std::int64_t last_key =
        (first_key + kF32Queries < sequence.k_length ? first_key + kF32Queries
                                                     : sequence.k_length) -
        1;
    const int head_dim = static_cast<int>(problem.head_dim);
    const int head_dim_v = static_cast<int>(problem.head_dim_v);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * kRows;
    load<kHeadDim>(k_tile,
                   kHeadDim,
                   static_cast<const float*>(buffers.k) +
                       keys_at(sequence, buffers.k_strides, head_kv),
                   buffers.k_strides.row,
                   kF32Queries,
                   first_key,
                   sequence.k_length,
                   head_dim);
    load<kHeadDim>(v_tile,
                   kHeadDim,
                   static_cast<const float*>(buffers.v) +
                       keys_at(sequence, buffers.v_strides, head_kv),
                   buffers.v_strides.row,
                   kF32Queries,
                   first_key,
                   sequence.k_length,
                   head_dim_v);
    Range range[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        range[r] = visible_queries(problem, sequence, first_key + warp_row + r);
    }
    float grad_k[kRows][kHeadDim / 32] = {};
    float grad_v[kRows][kHeadDim / 32] = {};
    const std::int64_t begin =
        visible_queries(problem, sequence, first_key).begin / kF32Keys * kF32Keys;
    const std::int64_t end = visible_queries(problem, sequence, last_key).end;
    for (std::int64_t head = head_kv * group; head < (head_kv + 1) * group; ++head) {
        const float slope = slope_of(buffers.extras, sequence.batch, head);
        const Dropout dropout = dropout_of(buffers.extras, problem, sequence.batch, head);
        for (std::int64_t query = begin; query < end; query += kF32Keys) {
            __syncthreads();
            load<kHeadDim>(q_tile,
                           kStride,
                           static_cast<const float*>(buffers.q) +
                               queries_at(sequence, buffers.q_strides, head),
                           buffers.q_strides.row,
                           kF32Keys,
                           query,
                           sequence.q_length,
                           head_dim);
            load<kHeadDim>(grad_tile,
                           kStride,
                           static_cast<const float*>(buffers.grad_out) +
                               queries_at(sequence, buffers.grad_out_strides, head),
                           buffers.grad_out_strides.row,
                           kF32Keys,
                           query,
                           sequence.q_length,
                           head_dim_v);
            __syncthreads();
            const std::int64_t row = query + lane;
            const std::int64_t at = statistics_at(sequence, head) + row;
            const float lse = row < sequence.q_length ? buffers.lse[at] : 0.0F;
            const float delta = row < sequence.q_length ? buffers.delta[at] : 0.0F;
            float p[kRows] = {};
            float ds[kRows] = {};
            products<kHeadDim>(p,
                               ds,
                               k_tile + warp_row * kHeadDim,
                               v_tile + warp_row * kHeadDim,
                               q_tile + lane * kStride,
                               grad_tile + lane * kStride,
                               widest_head(problem));
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const bool visible = row >= range[r].begin && row < range[r].end;
                const std::int64_t key = first_key + warp_row + r;
                score_gradient(problem,
                               p[r],
                               lse,
                               ds[r],
                               delta,
                               visible,
                               bias_of(slope, sequence, row, key),
                               dropout.factor(row, key),
                               p[r],
                               ds[r]);
            }
            accumulate(grad_v, p, grad_tile, kStride);
            accumulate(grad_k, ds, q_tile, kStride);
        }
    }
    store(static_cast<float*>(buffers.grad_k) + keys_at(sequence, buffers.grad_k_strides, head_kv),
          buffers.grad_k_strides.row,
          first_key + warp_row,
          sequence.k_length,
          grad_k,
          problem.scale,
          head_dim);
    store(static_cast<float*>(buffers.grad_v) + keys_at(sequence, buffers.grad_v_strides, head_kv),
          buffers.grad_v_strides.row,
          first_key + warp_row,
          sequence.k_length,
          grad_v,
          1.0F,
          head_dim_v);
}

template <int kHeadDim>
cudaError_t launch(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    constexpr int kBytes = f32_backward_shared_bytes(kHeadDim);
    const auto enqueue = [&](auto kernel, std::int64_t rows, std::int64_t heads) {
        const std::int64_t row_blocks = (rows + kF32Queries - 1) / kF32Queries;
        const std::int64_t blocks = row_blocks * heads * problem.batch;
        if (blocks == 0) {
            return cudaSuccess;
        }
        if (blocks > 0x7fffffff) {
            return cudaErrorInvalidConfiguration;
        }
        if (kBytes > 48 * 1024) {
            const cudaError_t error =
                cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
            if (error != cudaSuccess) {
                return error;
            }
        }
        kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(
            problem, buffers, static_cast<int>(row_blocks));
        return cudaGetLastError();
    };
    const cudaError_t error =
        enqueue(queries_kernel<kHeadDim>, problem.max_seqlen_q, problem.heads);
    return error != cudaSuccess
               ? error
               : enqueue(keys_kernel<kHeadDim>, problem.max_seqlen_k, problem.heads_kv);
}

} // namespace

cudaError_t
backward_f32(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
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
