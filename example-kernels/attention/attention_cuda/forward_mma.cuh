// SPDX-License-Identifier: Apache-2.0
//
// Forward for 16-bit elements on tensor cores, online softmax.
//
//                 keys ->  one step: Tiling::keys columns
//              +--------+--------+--------+
//   queries    | S = QK |        |        |   a block: one head of one sequence, 64 queries;
//     |   w0   |  then  |  ...   |  ...   |   warp w owns rows 16 w ... 16 w + 15 and all columns,
//     v   w1   | O += PV|        |        |   S and P never leave its registers
//         ...  +--------+--------+--------+
//
// One buffer for keys and one for values: the next keys travel while P V is computed, the values
// while Q K is.
#pragma once

#include "../attention_common/attention.h"
#include "extras.cuh"
#include "tile.cuh"

#include <cuda_runtime.h>

namespace attention {

template <typename Number, typename Tiling>
__global__ void __launch_bounds__(kThreads)
    forward_mma(const Problem problem, const Buffers buffers, int query_blocks, bool vectors) {
    using Storage = typename Number::Storage;
    constexpr int kHeadDim = Tiling::head_dim;
    constexpr int kKeys = Tiling::keys;
    constexpr int kStride = kHeadDim + kPadding;
    constexpr int kDepthSteps = kHeadDim / 16; // of Q K
    constexpr int kKeyTiles = kKeys / 8;       // C tiles of S
    constexpr int kValueTiles = kHeadDim / 8;  // C tiles of O
    extern __shared__ __align__(16) unsigned char shared[];
    auto* q_tile = reinterpret_cast<Storage*>(shared);
    Storage* k_tile = q_tile + kQueries * kStride;
    Storage* v_tile = k_tile + kKeys * kStride;

    // The last queries first: under a causal mask they have the most keys.
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
    const auto* q =
        static_cast<const Storage*>(buffers.q) + queries_at(sequence, buffers.q_strides, head);
    const auto* k =
        static_cast<const Storage*>(buffers.k) + keys_at(sequence, buffers.k_strides, head_kv);
    const auto* v =
        static_cast<const Storage*>(buffers.v) + keys_at(sequence, buffers.v_strides, head_kv);

    // The keys that any query of the block sees, in whole steps.
    const std::int64_t keys_begin =
        visible_keys(problem, sequence, first_query).begin / kKeys * kKeys;
    const std::int64_t keys_end = visible_keys(problem, sequence, last_query).end;

    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * kRowsPerWarp;
    const int g = lane / 4;
    const int t = lane % 4;
    Range range[2]; // of the two rows of this thread
    range[0] = visible_keys(problem, sequence, first_query + warp_row + g);
    range[1] = visible_keys(problem, sequence, first_query + warp_row + g + 8);

    // Scores are kept in units of log2; with a softcap they pass through tanh first.
    const bool capped = problem.softcap > 0.0F;
    const float to_log2 = capped ? problem.softcap * kLog2E : problem.scale * kLog2E;
    const float to_tanh = capped ? problem.scale / problem.softcap : 0.0F;

    const Bias bias(buffers.extras, sequence.batch, head);
    const Dropout dropout = dropout_of(buffers.extras, problem, sequence.batch, head);
    const std::int64_t level = first_query + warp_row + g + sequence.k_length - sequence.q_length;

    float o[kValueTiles][4] = {};
    float highest[2] = {-INFINITY, -INFINITY};
    float total[2] = {0.0F, 0.0F};

    load_tile<Number, kQueries, kHeadDim>(
        q_tile, q, buffers.q_strides.row, first_query, sequence.q_length, head_dim, vectors);
    if (keys_begin < keys_end) {
        load_tile<Number, kKeys, kHeadDim>(
            k_tile, k, buffers.k_strides.row, keys_begin, sequence.k_length, head_dim, vectors);
    }
    commit_copies();

    std::uint32_t q_fragment[Tiling::queries_in_registers ? kDepthSteps : 1][4];
    const Storage* q_row = q_tile + (warp_row + lane % 16) * kStride + lane / 16 * 8;

    for (std::int64_t key = keys_begin; key < keys_end; key += kKeys) {
        wait_copies<0>();
        __syncthreads(); // keys are here; everybody is done with the values
        load_tile<Number, kKeys, kHeadDim>(
            v_tile, v, buffers.v_strides.row, key, sequence.k_length, head_dim_v, vectors);
        commit_copies();
        if (Tiling::queries_in_registers && key == keys_begin) {
#pragma unroll
            for (int d = 0; d < kDepthSteps; ++d) {
                load_matrices(q_fragment[Tiling::queries_in_registers ? d : 0], q_row + d * 16);
            }
        }

        float s[kKeyTiles][4] = {};
#pragma unroll
        for (int d = 0; d < kDepthSteps; ++d) {
            if constexpr (!Tiling::queries_in_registers) {
                load_matrices(q_fragment[0], q_row + d * 16);
            }
#pragma unroll
            for (int n = 0; n < kKeyTiles; n += 2) {
                std::uint32_t b[4];
                const int row = n * 8 + lane / 16 * 8 + lane % 8;
                load_matrices(b, k_tile + row * kStride + d * 16 + lane / 8 % 2 * 8);
                const auto& a = q_fragment[Tiling::queries_in_registers ? d : 0];
                Number::multiply_add(s[n], a, b[0], b[1]);
                Number::multiply_add(s[n + 1], a, b[2], b[3]);
            }
        }
        __syncthreads(); // everybody is done with the keys
        if (key + kKeys < keys_end) {
            load_tile<Number, kKeys, kHeadDim>(k_tile,
                                               k,
                                               buffers.k_strides.row,
                                               key + kKeys,
                                               sequence.k_length,
                                               head_dim,
                                               vectors);
        }
        commit_copies();

        const std::uint32_t kept =
            kept_of_queries<kKeyTiles>(dropout, first_query + warp_row + g, key + 2 * t);
        // Row h of this thread: its scores are s[.][2 h] and s[.][2 h + 1].
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            // The visible columns of this step.
            const std::int64_t from = range[h].begin - key;
            const std::int64_t to = range[h].end - key;
            const int low = from > 0 ? static_cast<int>(from < kKeys ? from : kKeys) : 0;
            const int high = to < kKeys ? static_cast<int>(to > 0 ? to : 0) : kKeys;
            const bool masked = low > 0 || high < kKeys;
            float step_highest = -INFINITY;
#pragma unroll
            for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    float& value = s[n][2 * h + c];
                    const int column = n * 8 + 2 * t + c;
                    value = (capped ? tanhf(value * to_tanh) : value) * to_log2;
                    value += bias(level + 8 * h, key + column);
                    if (masked) {
                        value = column >= low && column < high ? value : -INFINITY;
                    }
                    step_highest = fmaxf(step_highest, value);
                }
            }
            step_highest = fmaxf(step_highest, __shfl_xor_sync(0xffffffffU, step_highest, 1));
            step_highest = fmaxf(step_highest, __shfl_xor_sync(0xffffffffU, step_highest, 2));
            const float before = highest[h];
            highest[h] = fmaxf(before, step_highest);
            // A row without a visible key so far: any finite base gives exp2(-inf) = 0.
            const float base = highest[h] == -INFINITY ? 0.0F : highest[h];
            const float shrink = exp2f(before - base);
            total[h] *= shrink;
#pragma unroll
            for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    float& value = s[n][2 * h + c];
                    value = exp2f(value - base);
                    total[h] += value;
                    value *= kept_factor(dropout, kept, n, 2 * h + c);
                }
            }
#pragma unroll
            for (int n = 0; n < kValueTiles; ++n) {
                o[n][2 * h] *= shrink;
                o[n][2 * h + 1] *= shrink;
            }
        }

        wait_copies<1>();
        __syncthreads(); // values are here
        multiply_weights<Number, kHeadDim>(o, s, v_tile);
    }
    wait_copies<0>();
    __syncthreads(); // the queries are in place even when there was no key

    // A thread has a quarter of its rows' sums.
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffffU, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffU, total[h], 2);
        float inverse = total[h] > 0.0F ? 1.0F / total[h] : (total[h] == 0.0F ? 0.0F : total[h]);
        float lse = total[h] == 0.0F ? -INFINITY : (highest[h] + log2f(total[h])) * kLn2;
        inverse *= add_sink(buffers.extras, head, lse);
        const int row = warp_row + g + 8 * h;
#pragma unroll
        for (int n = 0; n < kValueTiles; ++n) {
            *reinterpret_cast<std::uint32_t*>(q_tile + row * kStride + n * 8 + 2 * t) =
                Number::pack(o[n][2 * h] * inverse, o[n][2 * h + 1] * inverse);
        }
        if (t == 0 && first_query + row < sequence.q_length) {
            buffers.lse[statistics_at(sequence, head) + first_query + row] = lse;
        }
    }
    __syncwarp();

    store_warp_rows<Number, kHeadDim>(static_cast<Storage*>(buffers.out) +
                                          queries_at(sequence, buffers.out_strides, head),
                                      q_tile,
                                      buffers.out_strides.row,
                                      first_query,
                                      sequence.q_length,
                                      warp_row,
                                      head_dim_v,
                                      vectors);
}

template <typename Number, typename Tiling>
cudaError_t launch_mma(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    const bool vectors = vectors_fit(problem,
                                     {{buffers.q, buffers.q_strides},
                                      {buffers.k, buffers.k_strides},
                                      {buffers.v, buffers.v_strides},
                                      {buffers.out, buffers.out_strides}});
    constexpr int kBytes = Tiling::shared_bytes;
    const auto kernel = forward_mma<Number, Tiling>;
    if (const cudaError_t error = allow_shared(kernel, kBytes); error != cudaSuccess) {
        return error;
    }
    const std::int64_t query_blocks = (problem.max_seqlen_q + kQueries - 1) / kQueries;
    const std::int64_t blocks = query_blocks * problem.heads * problem.batch;
    if (blocks > 0x7fffffff) {
        return cudaErrorInvalidConfiguration;
    }
    kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(
        problem, buffers, static_cast<int>(query_blocks), vectors);
    return cudaGetLastError();
}

} // namespace attention
