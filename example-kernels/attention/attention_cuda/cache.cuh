// SPDX-License-Identifier: Apache-2.0
//
// Attention over a cache for 16-bit queries: a few queries, many keys, so the time is that of
// reading the keys and values once.
//
// A block: one head of keys, a range of its keys (a split), 8 or 16 rows. A row is a query of one
// of the heads that share the keys, so that these are read once for all of them. Steps of
// Tile::keys keys travel through a ring in shared memory, keys and values in turns; of a step each
// warp has its own fourth, with a softmax of its own, and the four are merged at the end. If there
// is more than one split, a second kernel merges these.
#pragma once

#include "../attention_common/cache.h"
#include "cache_formats.cuh"
#include "cache_merge.cuh"
#include "cache_rows.cuh"
#include "cache_tuning.h"
#include "tile.cuh"

#include <cuda_runtime.h>

namespace attention {

template <typename Number>
__device__ __forceinline__ typename Number::Storage
load_element(DType dtype, const void* data, std::int64_t at) {
    return dtype == DType::f16
               ? Number::narrow(__half2float(static_cast<const __half*>(data)[at]))
               : Number::narrow(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]));
}

// What one query does with its scores before the softmax.
struct QueryScores {
    int begin; // of the keys that it sees
    int end;
    int level;   // the key that the query is level with
    float slope; // in units of log2
};

// The scores and weights of a warp's keys in one step, for the queries of a thread: column e of
// tile n. A thread has keys g and g + 8 of each tile of rows (mma.cuh).
template <int kKeyTiles, int kQueryTiles>
struct OnlineSoftmax {
    float highest[kQueryTiles][2];
    float total[kQueryTiles][2]; // of this thread's keys

    // The highest may fall behind the truth by this, in units of log2: the weights, times a scale,
    // stay small enough for 16 bits, and the sums need not be scaled in most steps.
    static constexpr float kSlack = 4.0F;

    __device__ __forceinline__ OnlineSoftmax() {
#pragma unroll
        for (int i = 0; i < 2 * kQueryTiles; ++i) {
            highest[i / 2][i % 2] = -INFINITY;
            total[i / 2][i % 2] = 0.0F;
        }
    }

    // The scores become multiples of log2; key: of the thread's first score.
    static __device__ __forceinline__ void adjust(float (&s)[kKeyTiles][kQueryTiles][4],
                                                  const QueryScores (&queries)[kQueryTiles][2],
                                                  int key,
                                                  bool capped,
                                                  float to_tanh,
                                                  float to_log2) {
#pragma unroll
        for (int m = 0; m < kKeyTiles; ++m) {
#pragma unroll
            for (int i = 0; i < 4 * kQueryTiles; ++i) {
                float& value = s[m][i / 4][i % 4];
                const QueryScores& query = queries[i / 4][i % 2];
                const int at = key + m * 16 + i % 4 / 2 * 8;
                value = (capped ? tanhf(value * to_tanh) : value) * to_log2;
                value -= query.slope * static_cast<float>(abs(query.level - at));
                value = at >= query.begin && at < query.end ? value : -INFINITY;
            }
        }
    }

    // The scores become weights. `o` is scaled if need be.
    template <int kTiles>
    __device__ __forceinline__ void weigh(float (&s)[kKeyTiles][kQueryTiles][4],
                                          float to_log2,
                                          float (&o)[kTiles][kQueryTiles][4]) {
        float step_highest[kQueryTiles][2];
        bool behind = false;
#pragma unroll
        for (int i = 0; i < 2 * kQueryTiles; ++i) {
            float value = -INFINITY;
#pragma unroll
            for (int m = 0; m < kKeyTiles; ++m) {
                value = fmaxf(value, fmaxf(s[m][i / 2][i % 2], s[m][i / 2][2 + i % 2]));
            }
            step_highest[i / 2][i % 2] = value * to_log2;
            behind = behind || value * to_log2 > highest[i / 2][i % 2] + kSlack;
        }
        if (__any_sync(0xffffffffU, behind)) {
            raise(step_highest, o);
        }
#pragma unroll
        for (int i = 0; i < 2 * kQueryTiles; ++i) {
            const float mine = highest[i / 2][i % 2];
            const float base = mine == -INFINITY ? 0.0F : mine;
#pragma unroll
            for (int m = 0; m < 2 * kKeyTiles; ++m) {
                float& value = s[m / 2][i / 2][m % 2 * 2 + i % 2];
                value = fast_exp2(fmaf(value, to_log2, -base));
                total[i / 2][i % 2] += value;
            }
        }
    }

    // The weights as the right operand of the product with the values, which are in `rows`.
    template <typename Format>
    static __device__ __forceinline__ void pack(std::uint32_t (&p)[kKeyTiles][kQueryTiles][2],
                                                const float (&s)[kKeyTiles][kQueryTiles][4],
                                                const unsigned char* rows) {
#pragma unroll
        for (int i = 0; i < 2 * kKeyTiles; ++i) {
            const float factor = Format::weight_factor(rows, i);
#pragma unroll
            for (int n = 0; n < kQueryTiles; ++n) {
                const float* pair = &s[i / 2][n][i % 2 * 2];
                p[i / 2][n][i % 2] =
                    transposed(Format::Number::pack(pair[0] * factor, pair[1] * factor));
            }
        }
    }

private:
    template <int kTiles>
    __device__ __forceinline__ void raise(const float (&step_highest)[kQueryTiles][2],
                                          float (&o)[kTiles][kQueryTiles][4]) {
#pragma unroll
        for (int i = 0; i < 2 * kQueryTiles; ++i) {
            float& mine = highest[i / 2][i % 2];
            float value = fmaxf(mine, step_highest[i / 2][i % 2]);
#pragma unroll
            for (int step = 4; step < 32; step *= 2) {
                value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, step));
            }
            const float shrink = value == -INFINITY ? 1.0F : fast_exp2(mine - value);
            mine = value;
            total[i / 2][i % 2] *= shrink;
#pragma unroll
            for (int m = 0; m < kTiles; ++m) {
                o[m][i / 2][i % 2] *= shrink;
                o[m][i / 2][2 + i % 2] *= shrink;
            }
        }
    }
};

template <typename Format, int kQueryTiles>
__global__ void __launch_bounds__(kThreads,
                                  kQueryTiles == 1 ? Format::Tile::shape.blocks
                                                   : Format::Tile::shape.wide_blocks)
    cache_mma(const Problem problem, const CacheBuffers buffers, const CachePlan plan) {
    using Tile = typename Format::Tile;
    using Number = typename Format::Number;
    constexpr int kHeadDim = Tile::head_dim;
    constexpr int kSlot = Tile::keys * Tile::row_stride;
    constexpr int kRows = 8 * kQueryTiles;
    constexpr int kKeyTiles = Tile::warp_keys / 16;
    extern __shared__ __align__(16) unsigned char shared[];
    auto* q_tile = reinterpret_cast<typename Number::Storage*>(shared + Tile::ring_bytes);
    auto* statistics = reinterpret_cast<float*>(q_tile + 16 * (kHeadDim + kPadding));

    const int split = static_cast<int>(blockIdx.x) % plan.splits;
    const int place = static_cast<int>(blockIdx.x) / plan.splits;
    const int heads_kv = static_cast<int>(problem.heads_kv);
    const int first_row = place % plan.row_blocks * kRows;
    const std::int64_t head_kv = place / plan.row_blocks % heads_kv;
    const std::int64_t batch = place / plan.row_blocks / heads_kv;
    allow_next_kernel();
    const Sequence sequence = cache_sequence(problem, buffers.cache, batch);
    const Quantization& quantization = buffers.quantization;
    const int group = static_cast<int>(problem.heads) / heads_kv;
    const int rows = static_cast<int>(problem.max_seqlen_q) * group;
    const auto keys = cache_head<Tile::format>(buffers.k,
                                               buffers.k_strides,
                                               quantization.k_scales,
                                               quantization.k_scale_strides,
                                               buffers.cache,
                                               batch,
                                               head_kv,
                                               static_cast<int>(problem.head_dim),
                                               static_cast<int>(quantization.group));
    const auto values = cache_head<Tile::format>(buffers.v,
                                                 buffers.v_strides,
                                                 quantization.v_scales,
                                                 quantization.v_scale_strides,
                                                 buffers.cache,
                                                 batch,
                                                 head_kv,
                                                 static_cast<int>(problem.head_dim_v),
                                                 static_cast<int>(quantization.group));
    const ScalePlaces places = Format::scale_places(quantization, keys, values);
    const int length = static_cast<int>(sequence.k_length);

    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int last_row = (first_row + kRows < rows ? first_row + kRows : rows) - 1;
    // The steps of this split.
    const auto begin_of = [&](int row) {
        return static_cast<int>(visible_keys(problem, sequence, row / group).begin);
    };
    const auto end_of = [&](int row) {
        return static_cast<int>(visible_keys(problem, sequence, row / group).end);
    };
    const int all_begin = begin_of(first_row) / Tile::keys;
    const int all_end = (max(end_of(last_row), 0) + Tile::keys - 1) / Tile::keys;
    const int share = (max(all_end - all_begin, 0) + plan.splits - 1) / plan.splits;
    const int begin = all_begin + split * share;
    const int steps = max(min(begin + share, all_end) - begin, 0);
    // The keys that all rows see, and what each of this thread's queries sees.
    const int common_begin = begin_of(last_row);
    const int common_end = end_of(first_row);
    QueryScores queries[kQueryTiles][2];
#pragma unroll
    for (int i = 0; i < 2 * kQueryTiles; ++i) {
        const int row = first_row + i / 2 * 8 + lane % 4 * 2 + i % 2;
        QueryScores& query = queries[i / 2][i % 2];
        query.begin = begin_of(row);
        query.end = end_of(row);
        query.level = row / group + length - static_cast<int>(sequence.q_length);
        query.slope = row < rows
                          ? slope_of(buffers.extras, batch, head_kv * group + row % group) * kLog2E
                          : 0.0F;
    }
    const bool capped = problem.softcap > 0.0F;
    const float scale = problem.scale * descale_of(quantization.k_descale, batch, head_kv);
    const float to_log2 = capped ? problem.softcap * kLog2E : scale * kLog2E;
    const float to_tanh = capped ? scale / problem.softcap : 0.0F;
    // Else the softmax scales the scores itself, if only by a positive number.
    const bool always_adjusted = capped || buffers.extras.slopes != nullptr || !(to_log2 > 0.0F);

    const auto query = [&](int row) {
        return batch * buffers.q_strides.batch + row / group * buffers.q_strides.row +
               (head_kv * group + row % group) * buffers.q_strides.head;
    };
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kHeadDim; i += kThreads) {
        const int row = first_row + i / kHeadDim;
        const int channel = i % kHeadDim;
        q_tile[i / kHeadDim * (kHeadDim + kPadding) + Format::query_column(channel)] =
            row < rows && channel < problem.head_dim
                ? load_element<Number>(problem.dtype, buffers.q, query(row) + channel)
                : Number::zero();
    }
    // Half of the ring's slots are for keys. A warp loads what it reads, so it waits for nobody.
    constexpr int kAhead = Tile::depth / 2;
    unsigned char* ring = shared + warp * Tile::warp_keys * Tile::row_stride;
    const auto load = [&](const CacheHead& head, int step, int slot) {
        if (step < steps) {
            load_cache_rows<Tile>(ring + slot * kSlot,
                                  head,
                                  (begin + step) * Tile::keys + warp * Tile::warp_keys,
                                  length,
                                  plan.vectors);
        }
        commit_copies();
    };
    const auto load_keys = [&](int step) {
        load(keys, step, 2 * (step % kAhead));
    };
    const auto load_values = [&](int step) {
        load(values, step, 2 * (step % kAhead) + 1);
    };
#pragma unroll 1
    for (int i = 0; i < kAhead; ++i) {
        load_keys(i);
        if (i + 1 < kAhead) {
            load_values(i);
        }
    }
    float o[kHeadDim / 16][kQueryTiles][4] = {};
    OnlineSoftmax<kKeyTiles, kQueryTiles> softmax;
    __syncthreads(); // the queries are here
    const auto sums = Format::template query_sums<kQueryTiles>(q_tile);
    for (int step = 0; step < steps; ++step) {
        wait_copies<Tile::depth - 2>();
        __syncwarp(); // the keys are here; the warp is done with the values before them
        load_values(step + kAhead - 1);
        const unsigned char* slot = ring + 2 * (step % kAhead) * kSlot;
        float s[kKeyTiles][kQueryTiles][4] = {};
        Format::multiply_keys(s, q_tile, slot, places, sums);
        const int key = (begin + step) * Tile::keys + warp * Tile::warp_keys;
        const bool adjusted =
            always_adjusted || key < common_begin || key + Tile::warp_keys > common_end;
        if (adjusted) {
            softmax.adjust(s, queries, key + lane / 4, capped, to_tanh, to_log2);
        }
        softmax.weigh(s, adjusted ? 1.0F : to_log2, o);
        wait_copies<Tile::depth - 2>();
        __syncwarp(); // the values are here; the warp is done with the keys
        load_keys(step + kAhead);
        std::uint32_t p[kKeyTiles][kQueryTiles][2];
        softmax.template pack<Format>(p, s, slot + kSlot);
        Format::multiply_values(o, p, slot + kSlot, places);
    }
    wait_copies<0>();
    __syncthreads();
    merge_warps<Format, kQueryTiles>(o,
                                     softmax.highest,
                                     softmax.total,
                                     reinterpret_cast<float*>(shared),
                                     statistics,
                                     problem,
                                     buffers,
                                     plan,
                                     sequence,
                                     head_kv,
                                     descale_of(quantization.v_descale, batch, head_kv),
                                     first_row,
                                     split);
}

// Launches a kernel that begins with wait_for_last_kernel().
template <typename... Parameters, typename... Arguments>
cudaError_t launch_after(void (*kernel)(Parameters...),
                         unsigned blocks,
                         cudaStream_t stream,
                         const Arguments&... arguments) {
    cudaFuncAttributes code{};
    const cudaError_t error = cudaFuncGetAttributes(&code, kernel);
    if (error != cudaSuccess) {
        return error;
    }
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = kThreads;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = code.ptxVersion >= 90 ? 1 : 0; // else it has no wait
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// Whether every row can be read by 16-byte vectors, with strides of 32 bits.
inline bool cache_vectors_fit(const Problem& problem, const CacheBuffers& buffers) {
    const Quantization& quantization = buffers.quantization;
    const auto fits = [&](const Strides& strides, std::int64_t element) {
        constexpr std::int64_t kMost = 0x7fffffff;
        return strides.batch * element <= kMost && strides.row * element <= kMost &&
               strides.batch >= 0 && strides.row >= 0;
    };
    const auto aligned = [&](const void* data, const Strides& strides, std::int64_t head_dim) {
        const int element = quantization.format == CacheFormat::plain ? 2 : 1;
        const std::int64_t width = cache_row_bytes_of(quantization.format, head_dim);
        return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && width % 16 == 0 &&
               strides.batch * element % 16 == 0 && strides.row * element % 16 == 0 &&
               strides.head * element % 16 == 0 && fits(strides, element);
    };
    const auto scales_fit = [&](const void* data, const Strides& strides, std::int64_t head_dim) {
        const std::int64_t bytes = cache_scale_bytes_of(quantization.format);
        return bytes == 0 ||
               (reinterpret_cast<std::uintptr_t>(data) % 4 == 0 &&
                head_dim / quantization.group * bytes % 4 == 0 && strides.batch % 4 == 0 &&
                strides.row % 4 == 0 && strides.head % 4 == 0 && fits(strides, 1));
    };
    return aligned(buffers.k, buffers.k_strides, problem.head_dim) &&
           aligned(buffers.v, buffers.v_strides, problem.head_dim_v) &&
           scales_fit(quantization.k_scales, quantization.k_scale_strides, problem.head_dim) &&
           scales_fit(quantization.v_scales, quantization.v_scale_strides, problem.head_dim_v);
}

template <typename Format, int kQueryTiles>
cudaError_t
launch_cache(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream) {
    using Tile = typename Format::Tile;
    CachePlan plan{};
    plan.splits = splits;
    const std::int64_t rows = problem.max_seqlen_q * (problem.heads / problem.heads_kv);
    const std::int64_t row_blocks = (rows + 8 * kQueryTiles - 1) / (8 * kQueryTiles);
    plan.row_blocks = static_cast<int>(row_blocks);
    plan.vectors = cache_vectors_fit(problem, buffers);
    const std::int64_t blocks = problem.batch * problem.heads_kv * row_blocks * splits;
    const std::int64_t all_rows = problem.batch * problem.heads * problem.max_seqlen_q;
    if (blocks > 0x7fffffff || all_rows / kWarps > 0x7ffffffe || rows > 0x7fffffff - 16 ||
        problem.max_seqlen_k > 0x7fffffff - 2 * Tile::keys) {
        return cudaErrorInvalidConfiguration;
    }
    const auto kernel = cache_mma<Format, kQueryTiles>;
    if (const cudaError_t error = allow_shared(kernel, Tile::shared_bytes); error != cudaSuccess) {
        return error;
    }
    kernel<<<static_cast<unsigned>(blocks), kThreads, Tile::shared_bytes, stream>>>(
        problem, buffers, plan);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess || splits == 1) {
        return error;
    }
    return launch_after(cache_combine<Tile::head_dim>,
                        static_cast<unsigned>((all_rows + kWarps - 1) / kWarps),
                        stream,
                        problem,
                        buffers,
                        splits);
}

// By the number of queries that share a head of keys.
template <typename Format>
cudaError_t launch_cache_rows(const Problem& problem,
                              const CacheBuffers& buffers,
                              int splits,
                              cudaStream_t stream) {
    return cache_block_rows(problem) == 8
               ? launch_cache<Format, 1>(problem, buffers, splits, stream)
               : launch_cache<Format, 2>(problem, buffers, splits, stream);
}

// By the format, and the dtype of a plain one.
template <int kDim>
cudaError_t launch_cache_format(const Problem& problem,
                                const CacheBuffers& buffers,
                                int splits,
                                cudaStream_t stream) {
    switch (buffers.quantization.format) {
    case CacheFormat::fp8:
        return launch_cache_rows<Fp8Format<kDim>>(problem, buffers, splits, stream);
    case CacheFormat::fp4:
        return launch_cache_rows<Fp4Format<kDim>>(problem, buffers, splits, stream);
    case CacheFormat::int4:
        return buffers.quantization.group == problem.head_dim &&
                       problem.head_dim_v == problem.head_dim
                   ? launch_cache_rows<Int4RowFormat<kDim>>(problem, buffers, splits, stream)
                   : launch_cache_rows<Int4Format<kDim>>(problem, buffers, splits, stream);
    default:
        return problem.dtype == DType::f16
                   ? launch_cache_rows<PlainFormat<Float16, kDim>>(problem, buffers, splits, stream)
                   : launch_cache_rows<PlainFormat<BFloat16, kDim>>(
                         problem, buffers, splits, stream);
    }
}

} // namespace attention
