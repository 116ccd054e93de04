// SPDX-License-Identifier: Apache-2.0
//
// Backward for 16-bit elements on tensor cores: two kernels, each of which owns what it writes, so
// there are no atomics and the sums have one order. The price is that S and dP are computed twice.
//
//   grad_q:          a block owns 64 queries and steps over the keys they see
//                      S = Q K',  dP = dO V',   dS = P (dP - delta),   dQ += dS K
//   grad_k, grad_v:  a block owns 64 keys and steps over the queries that see them, of every head
//                    that reads the keys' head; all products are transposed, keys are the rows
//                      S' = K Q',  dP' = V dO',  dV += P' dO,           dK += dS' Q
//
// P and dS stay in registers: the result tile of one product is an operand of the next (mma.cuh).
#pragma once

#include "extras.cuh"
#include "tile.cuh"

namespace attention {

// z p and ds of attention.h for one pair. `product` is dot(q, k), `bias` what ALiBi adds, `kept` is
// z; lse_log2 and bias are in units of log2.
struct ScoreGradient {
    float scale;
    float softcap;

    __device__ __forceinline__ void operator()(float product,
                                               float lse_log2,
                                               float grad_product,
                                               float delta,
                                               bool visible,
                                               float bias,
                                               float kept,
                                               float& p,
                                               float& ds) const {
        float s = product * scale;
        float slope = 1.0F;
        if (softcap > 0.0F) {
            const float t = tanhf(s / softcap);
            s = softcap * t;
            slope = 1.0F - t * t;
        }
        p = visible ? exp2f(s * kLog2E + bias - lse_log2) : 0.0F;
        ds = visible ? p * (kept * grad_product - delta) * slope : 0.0F;
        p *= kept;
    }
};

// Columns [low, high) of a step of `width` that begins at `first` lie in `range`.
struct VisibleColumns {
    int low;
    int high;

    __device__ __forceinline__ VisibleColumns(const Range& range, std::int64_t first, int width) {
        const std::int64_t from = range.begin - first;
        const std::int64_t to = range.end - first;
        low = from > 0 ? static_cast<int>(from < width ? from : width) : 0;
        high = to < width ? static_cast<int>(to > 0 ? to : 0) : width;
    }

    __device__ __forceinline__ bool operator()(int column) const {
        return column >= low && column < high;
    }
};

template <typename Number, typename Tiling>
__global__ void __launch_bounds__(kThreads) backward_queries_mma(const Problem problem,
                                                                 const BackwardBuffers buffers,
                                                                 int query_blocks,
                                                                 bool vectors) {
    using Storage = typename Number::Storage;
    constexpr int kHeadDim = Tiling::head_dim;
    constexpr int kStep = Tiling::step;
    constexpr int kStride = kHeadDim + kPadding;
    constexpr int kTiles = kStep / 8;
    extern __shared__ __align__(16) unsigned char shared[];
    auto* q_tile = reinterpret_cast<Storage*>(shared);
    Storage* grad_tile = q_tile + kQueries * kStride;
    Storage* k_tile = grad_tile + kQueries * kStride;
    Storage* v_tile = k_tile + kStep * kStride;

    const int query_block = query_blocks - 1 - static_cast<int>(blockIdx.x) % query_blocks;
    const std::int64_t batch_head = blockIdx.x / query_blocks;
    const std::int64_t head = batch_head % problem.heads;
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const Sequence sequence = sequence_of(problem, buffers.offsets, batch_head / problem.heads);
    const std::int64_t first_query = static_cast<std::int64_t>(query_block) * kQueries;
    if (first_query >= sequence.q_length) {
        return;
    }
    const std::int64_t last_query =
        (first_query + kQueries < sequence.q_length ? first_query + kQueries : sequence.q_length) -
        1;
    const int head_dim = static_cast<int>(problem.head_dim);
    const int head_dim_v = static_cast<int>(problem.head_dim_v);
    const auto* k =
        static_cast<const Storage*>(buffers.k) + keys_at(sequence, buffers.k_strides, head_kv);
    const auto* v =
        static_cast<const Storage*>(buffers.v) + keys_at(sequence, buffers.v_strides, head_kv);

    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * kRowsPerWarp;
    Range range[2]; // of the two rows of this thread
    float lse_log2[2];
    float delta[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const std::int64_t row = first_query + warp_row + lane / 4 + 8 * h;
        range[h] = visible_keys(problem, sequence, row);
        const bool exists = row < sequence.q_length;
        const std::int64_t at = statistics_at(sequence, head) + row;
        lse_log2[h] = exists ? buffers.lse[at] * kLog2E : 0.0F;
        delta[h] = exists ? buffers.delta[at] : 0.0F;
    }
    const std::int64_t keys_begin =
        visible_keys(problem, sequence, first_query).begin / kStep * kStep;
    const std::int64_t keys_end = visible_keys(problem, sequence, last_query).end;
    const ScoreGradient gradient{problem.scale, problem.softcap};
    const Bias bias(buffers.extras, sequence.batch, head);
    const Dropout dropout = dropout_of(buffers.extras, problem, sequence.batch, head);
    const std::int64_t row = first_query + warp_row + lane / 4;
    const std::int64_t level = row + sequence.k_length - sequence.q_length;

    load_tile<Number, kQueries, kHeadDim>(q_tile,
                                          static_cast<const Storage*>(buffers.q) +
                                              queries_at(sequence, buffers.q_strides, head),
                                          buffers.q_strides.row,
                                          first_query,
                                          sequence.q_length,
                                          head_dim,
                                          vectors);
    load_tile<Number, kQueries, kHeadDim>(grad_tile,
                                          static_cast<const Storage*>(buffers.grad_out) +
                                              queries_at(sequence, buffers.grad_out_strides, head),
                                          buffers.grad_out_strides.row,
                                          first_query,
                                          sequence.q_length,
                                          head_dim_v,
                                          vectors);
    commit_copies(); // also if there is no key: the tile is written again below
    float grad_q[kHeadDim / 8][4] = {};
    for (std::int64_t key = keys_begin; key < keys_end; key += kStep) {
        load_tile<Number, kStep, kHeadDim>(
            k_tile, k, buffers.k_strides.row, key, sequence.k_length, head_dim, vectors);
        load_tile<Number, kStep, kHeadDim>(
            v_tile, v, buffers.v_strides.row, key, sequence.k_length, head_dim_v, vectors);
        commit_copies();
        wait_copies<0>();
        __syncthreads();
        float s[kTiles][4] = {};
        float ds[kTiles][4] = {};
        multiply_rows<Number, kHeadDim>(s, q_tile, k_tile, warp_row);
        multiply_rows<Number, kHeadDim>(ds, grad_tile, v_tile, warp_row);
        const std::uint32_t kept = kept_of_queries<kTiles>(dropout, row, key + lane % 4 * 2);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const VisibleColumns visible(range[h], key, kStep);
#pragma unroll
            for (int n = 0; n < kTiles; ++n) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    float p;
                    float& value = ds[n][2 * h + c];
                    const int column = n * 8 + lane % 4 * 2 + c;
                    gradient(s[n][2 * h + c],
                             lse_log2[h],
                             value,
                             delta[h],
                             visible(column),
                             bias(level + 8 * h, key + column),
                             kept_factor(dropout, kept, n, 2 * h + c),
                             p,
                             value);
                }
            }
        }
        multiply_weights<Number, kHeadDim>(grad_q, ds, k_tile);
        __syncthreads(); // everybody is done with the keys and values
    }
    wait_copies<0>();
    __syncthreads();
    accumulators_to_tile<Number, kHeadDim>(q_tile, grad_q, warp_row, problem.scale);
    __syncwarp();
    store_warp_rows<Number, kHeadDim>(static_cast<Storage*>(buffers.grad_q) +
                                          queries_at(sequence, buffers.grad_q_strides, head),
                                      q_tile,
                                      buffers.grad_q_strides.row,
                                      first_query,
                                      sequence.q_length,
                                      warp_row,
                                      head_dim,
                                      vectors);
}

template <typename Number, typename Tiling, bool kGradK, bool kGradV>
__global__ void __launch_bounds__(kThreads) backward_keys_mma(const Problem problem,
                                                              const BackwardBuffers buffers,
                                                              int key_blocks,
                                                              bool vectors) {
    using Storage = typename Number::Storage;
    constexpr int kHeadDim = Tiling::head_dim;
    constexpr int kStep = Tiling::step;
    constexpr int kStride = kHeadDim + kPadding;
    constexpr int kTiles = kStep / 8;
    extern __shared__ __align__(16) unsigned char shared[];
    auto* k_tile = reinterpret_cast<Storage*>(shared);
    Storage* v_tile = k_tile + kKeys * kStride;
    Storage* q_tile = v_tile + kKeys * kStride;
    Storage* grad_tile = q_tile + kStep * kStride;

    const int key_block = static_cast<int>(blockIdx.x) % key_blocks;
    const std::int64_t batch_head = blockIdx.x / key_blocks;
    const std::int64_t head_kv = batch_head % problem.heads_kv;
    const std::int64_t group = problem.heads / problem.heads_kv;
    const Sequence sequence = sequence_of(problem, buffers.offsets, batch_head / problem.heads_kv);
    const std::int64_t first_key = static_cast<std::int64_t>(key_block) * kKeys;
    if (first_key >= sequence.k_length) {
        return;
    }
    const std::int64_t last_key =
        (first_key + kKeys < sequence.k_length ? first_key + kKeys : sequence.k_length) - 1;
    const int head_dim = static_cast<int>(problem.head_dim);
    const int head_dim_v = static_cast<int>(problem.head_dim_v);

    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * kRowsPerWarp;
    Range range[2]; // of the two keys of this thread
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        range[h] = visible_queries(problem, sequence, first_key + warp_row + lane / 4 + 8 * h);
    }
    const std::int64_t queries_begin =
        visible_queries(problem, sequence, first_key).begin / kStep * kStep;
    const std::int64_t queries_end = visible_queries(problem, sequence, last_key).end;
    const ScoreGradient gradient{problem.scale, problem.softcap};
    const std::int64_t key = first_key + warp_row + lane / 4;
    const std::int64_t behind = sequence.k_length - sequence.q_length;

    load_tile<Number, kKeys, kHeadDim>(k_tile,
                                       static_cast<const Storage*>(buffers.k) +
                                           keys_at(sequence, buffers.k_strides, head_kv),
                                       buffers.k_strides.row,
                                       first_key,
                                       sequence.k_length,
                                       head_dim,
                                       vectors);
    if constexpr (kGradK) {
        load_tile<Number, kKeys, kHeadDim>(v_tile,
                                           static_cast<const Storage*>(buffers.v) +
                                               keys_at(sequence, buffers.v_strides, head_kv),
                                           buffers.v_strides.row,
                                           first_key,
                                           sequence.k_length,
                                           head_dim_v,
                                           vectors);
    }
    commit_copies(); // also if there is no query: the tile is written again below
    float grad_k[kGradK ? kHeadDim / 8 : 1][4] = {};
    float grad_v[kGradV ? kHeadDim / 8 : 1][4] = {};
    for (std::int64_t head = head_kv * group; head < (head_kv + 1) * group; ++head) {
        const auto* q =
            static_cast<const Storage*>(buffers.q) + queries_at(sequence, buffers.q_strides, head);
        const auto* grad_out = static_cast<const Storage*>(buffers.grad_out) +
                               queries_at(sequence, buffers.grad_out_strides, head);
        const float* lse = buffers.lse + statistics_at(sequence, head);
        const float* delta = buffers.delta + statistics_at(sequence, head);
        const Bias bias(buffers.extras, sequence.batch, head);
        const Dropout dropout = dropout_of(buffers.extras, problem, sequence.batch, head);
        for (std::int64_t query = queries_begin; query < queries_end; query += kStep) {
            load_tile<Number, kStep, kHeadDim>(
                q_tile, q, buffers.q_strides.row, query, sequence.q_length, head_dim, vectors);
            load_tile<Number, kStep, kHeadDim>(grad_tile,
                                               grad_out,
                                               buffers.grad_out_strides.row,
                                               query,
                                               sequence.q_length,
                                               head_dim_v,
                                               vectors);
            commit_copies();
            wait_copies<0>();
            __syncthreads();
            float s[kTiles][4] = {};
            float ds[kTiles][4] = {};
            multiply_rows<Number, kHeadDim>(s, k_tile, q_tile, warp_row);
            if constexpr (kGradK) {
                multiply_rows<Number, kHeadDim>(ds, v_tile, grad_tile, warp_row);
            }
            const VisibleColumns visible[2] = {{range[0], query, kStep}, {range[1], query, kStep}};
            const std::uint32_t kept = kept_of_keys<kTiles>(dropout, key, query + lane % 4 * 2);
#pragma unroll
            for (int n = 0; n < kTiles; ++n) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const int column = n * 8 + lane % 4 * 2 + c;
                    const bool exists = query + column < sequence.q_length;
                    const float lse_log2 = exists ? lse[query + column] * kLog2E : 0.0F;
                    const float row_delta = kGradK && exists ? delta[query + column] : 0.0F;
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        float& value = s[n][2 * h + c];
                        float& grad = ds[n][2 * h + c];
                        gradient(value,
                                 lse_log2,
                                 grad,
                                 row_delta,
                                 visible[h](column),
                                 bias(query + column + behind, key + 8 * h),
                                 kept_factor(dropout, kept, n, 2 * h + c),
                                 value,
                                 grad);
                    }
                }
            }
            if constexpr (kGradV) {
                multiply_weights<Number, kHeadDim>(grad_v, s, grad_tile);
            }
            if constexpr (kGradK) {
                multiply_weights<Number, kHeadDim>(grad_k, ds, q_tile);
            }
            __syncthreads(); // everybody is done with the queries
        }
    }
    wait_copies<0>();
    __syncthreads();
    // Through shared memory, a warp's own rows.
    const auto store =
        [&](const auto& value, float factor, void* base, const Strides& strides, int width) {
            accumulators_to_tile<Number, kHeadDim>(k_tile, value, warp_row, factor);
            __syncwarp();
            store_warp_rows<Number, kHeadDim>(static_cast<Storage*>(base) +
                                                  keys_at(sequence, strides, head_kv),
                                              k_tile,
                                              strides.row,
                                              first_key,
                                              sequence.k_length,
                                              warp_row,
                                              width,
                                              vectors);
            __syncwarp();
        };
    if constexpr (kGradK) {
        store(grad_k, problem.scale, buffers.grad_k, buffers.grad_k_strides, head_dim);
    }
    if constexpr (kGradV) {
        store(grad_v, 1.0F, buffers.grad_v, buffers.grad_v_strides, head_dim_v);
    }
}

template <typename Number, typename Tiling>
cudaError_t
launch_backward_mma(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    const bool vectors = vectors_fit(problem,
                                     {{buffers.q, buffers.q_strides},
                                      {buffers.k, buffers.k_strides},
                                      {buffers.v, buffers.v_strides},
                                      {buffers.grad_out, buffers.grad_out_strides},
                                      {buffers.grad_q, buffers.grad_q_strides},
                                      {buffers.grad_k, buffers.grad_k_strides},
                                      {buffers.grad_v, buffers.grad_v_strides}});
    constexpr int kBytes = Tiling::shared_bytes;
    // `rows` of every one of `heads` heads, kQueries (or kKeys, as many) a block.
    const auto launch = [&](auto kernel, std::int64_t rows, std::int64_t heads) {
        const std::int64_t row_blocks = (rows + kQueries - 1) / kQueries;
        const std::int64_t blocks = row_blocks * heads * problem.batch;
        if (blocks == 0) {
            return cudaSuccess;
        }
        if (blocks > 0x7fffffff) {
            return cudaErrorInvalidConfiguration;
        }
        if (const cudaError_t error = allow_shared(kernel, kBytes); error != cudaSuccess) {
            return error;
        }
        kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(
            problem, buffers, static_cast<int>(row_blocks), vectors);
        return cudaGetLastError();
    };
    cudaError_t error =
        launch(backward_queries_mma<Number, Tiling>, problem.max_seqlen_q, problem.heads);
    if (error != cudaSuccess) {
        return error;
    }
    if constexpr (Tiling::both_at_once) {
        return launch(
            backward_keys_mma<Number, Tiling, true, true>, problem.max_seqlen_k, problem.heads_kv);
    } else {
        error = launch(
            backward_keys_mma<Number, Tiling, true, false>, problem.max_seqlen_k, problem.heads_kv);
        return error != cudaSuccess ? error
                                    : launch(backward_keys_mma<Number, Tiling, false, true>,
                                             problem.max_seqlen_k,
                                             problem.heads_kv);
    }
}

} // namespace attention
