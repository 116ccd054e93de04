// SPDX-License-Identifier: Apache-2.0
//
// Attention over a cache for 16-bit queries: a few queries, many keys, so the time is that of
// reading the keys and values once.
//
// A block: one head of keys, a range of its keys (a split), 16 rows. A row is a query of one of the
// heads that share the keys, so that these are read once for all of them. Steps of Tile::keys keys
// travel through a ring in shared memory, keys and values in turns; of a step each warp has its
// own fourth, with a softmax of its own, and the four are merged at the end. If there is more than
// one split, a second kernel merges these.
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

// What one row of queries does with its scores before the softmax.
struct RowScores {
    int begin; // of the keys that it sees
    int end;
    int level;   // of the key that the query is level with
    float slope; // in units of log2

    // Row h of a thread: its scores are s[.][2 h] and s[.][2 h + 1], of the keys first_key,
    // first_key
    // + 1, + 8, + 9 ...; they become multiples of log2.
    template <int kTiles>
    __device__ __forceinline__ void adjust(float (&s)[kTiles][4],
                                           int h,
                                           int first_key,
                                           bool capped,
                                           float to_tanh,
                                           float to_log2) const {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                float& value = s[n][2 * h + c];
                const int key = first_key + n * 8 + c;
                value = (capped ? tanhf(value * to_tanh) : value) * to_log2;
                value -= slope * static_cast<float>(abs(level - key));
                value = key >= begin && key < end ? value : -INFINITY;
            }
        }
    }
};

// One step of the online softmax for row h of a thread: s becomes the weights. Returns what the
// sums so far shrink by.
template <int kTiles>
__device__ __forceinline__ float
soften(float (&s)[kTiles][4], int h, float to_log2, float& highest, float& total) {
    float step_highest = -INFINITY;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
        step_highest = fmaxf(step_highest, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
    }
    step_highest = fmaxf(step_highest, __shfl_xor_sync(0xffffffffU, step_highest, 1));
    step_highest = fmaxf(step_highest, __shfl_xor_sync(0xffffffffU, step_highest, 2));
    const float before = highest;
    highest = fmaxf(before, step_highest * to_log2);
    const float base = highest == -INFINITY ? 0.0F : highest;
    const float shrink = exp2f(before - base);
    total *= shrink;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            float& value = s[n][2 * h + c];
            value = exp2f(fmaf(value, to_log2, -base));
            total += value;
        }
    }
    return shrink;
}

template <typename Format>
__global__ void __launch_bounds__(kThreads, Format::Tile::blocks)
    cache_mma(const Problem problem, const CacheBuffers buffers, const CachePlan plan) {
    using Tile = typename Format::Tile;
    using Number = typename Format::Number;
    constexpr int kHeadDim = Tile::head_dim;
    constexpr int kSlot = Tile::keys * Tile::row_stride;
    constexpr int kTiles = Tile::warp_keys / 8; // C tiles of a warp's scores
    extern __shared__ __align__(16) unsigned char shared[];
    auto* q_tile = reinterpret_cast<typename Number::Storage*>(shared + Tile::ring_bytes);
    auto* statistics = reinterpret_cast<float*>(q_tile + 16 * (kHeadDim + kPadding));

    const int split = static_cast<int>(blockIdx.x) % plan.splits;
    const int place = static_cast<int>(blockIdx.x) / plan.splits;
    const int heads_kv = static_cast<int>(problem.heads_kv);
    const int first_row = place % plan.row_blocks * 16;
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
    const Groups key_groups{static_cast<int>(quantization.group), keys.groups};
    const Groups value_groups{static_cast<int>(quantization.group), values.groups};
    const int length = static_cast<int>(sequence.k_length);

    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int g = lane / 4;
    const int t = lane % 4;
    const int last_row = (first_row + 16 < rows ? first_row + 16 : rows) - 1;
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
    // The keys that all rows see, and what each of this thread's two rows sees.
    const int common_begin = begin_of(last_row);
    const int common_end = end_of(first_row);
    RowScores scores[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = first_row + g + 8 * h;
        scores[h].begin = begin_of(row);
        scores[h].end = end_of(row);
        scores[h].level = row / group + length - static_cast<int>(sequence.q_length);
        scores[h].slope =
            row < rows ? slope_of(buffers.extras, batch, head_kv * group + row % group) * kLog2E
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
    for (int i = static_cast<int>(threadIdx.x); i < 16 * kHeadDim; i += kThreads) {
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
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
        load_keys(i);
        if (i + 1 < kAhead) {
            load_values(i);
        }
    }
    float o[kHeadDim / 8][4] = {};
    float highest[2] = {-INFINITY, -INFINITY};
    float total[2] = {0.0F, 0.0F};
    __syncthreads(); // the queries are here
    for (int step = 0; step < steps; ++step) {
        wait_copies<Tile::depth - 2>();
        __syncwarp(); // the keys are here; the warp is done with the values before them
        load_values(step + kAhead - 1);
        const unsigned char* slot = ring + 2 * (step % kAhead) * kSlot;
        float s[kTiles][4] = {};
        Format::multiply_keys(s, q_tile, slot, key_groups);
        const int key = (begin + step) * Tile::keys + warp * Tile::warp_keys;
        const bool adjusted =
            always_adjusted || key < common_begin || key + Tile::warp_keys > common_end;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if (adjusted) {
                scores[h].adjust(s, h, key + 2 * t, capped, to_tanh, to_log2);
            }
            const float shrink = soften(s, h, adjusted ? 1.0F : to_log2, highest[h], total[h]);
            if (__any_sync(0xffffffffU, shrink != 1.0F)) {
#pragma unroll
                for (int n = 0; n < kHeadDim / 8; ++n) {
                    o[n][2 * h] *= shrink;
                    o[n][2 * h + 1] *= shrink;
                }
            }
        }
        wait_copies<Tile::depth - 2>();
        __syncwarp(); // the values are here; the warp is done with the keys
        load_keys(step + kAhead);
        Format::multiply_values(o, s, slot + kSlot, value_groups);
    }
    wait_copies<0>();
    __syncthreads();
    merge_warps<Format>(o,
                        highest,
                        total,
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

// Whether every row can be read by 16-byte vectors.
inline bool cache_vectors_fit(const Problem& problem, const CacheBuffers& buffers) {
    const CacheFormat format = buffers.quantization.format;
    const auto fits = [&](const void* data, const Strides& strides, std::int64_t head_dim) {
        const int element = format == CacheFormat::plain ? 2 : 1;
        const std::int64_t width = format == CacheFormat::int4 ? head_dim / 2 : head_dim * element;
        return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && width % 16 == 0 &&
               strides.batch * element % 16 == 0 && strides.row * element % 16 == 0 &&
               strides.head * element % 16 == 0;
    };
    return fits(buffers.k, buffers.k_strides, problem.head_dim) &&
           fits(buffers.v, buffers.v_strides, problem.head_dim_v);
}

template <typename Format>
cudaError_t
launch_cache(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream) {
    using Tile = typename Format::Tile;
    CachePlan plan{};
    plan.splits = splits;
    const std::int64_t rows = problem.max_seqlen_q * (problem.heads / problem.heads_kv);
    const std::int64_t row_blocks = (rows + 15) / 16;
    plan.row_blocks = static_cast<int>(row_blocks);
    plan.vectors = cache_vectors_fit(problem, buffers);
    const std::int64_t blocks = problem.batch * problem.heads_kv * row_blocks * splits;
    const std::int64_t all_rows = problem.batch * problem.heads * problem.max_seqlen_q;
    if (blocks > 0x7fffffff || all_rows / kWarps > 0x7ffffffe || rows > 0x7fffffff - 16 ||
        problem.max_seqlen_k > 0x7fffffff - 2 * Tile::keys) {
        return cudaErrorInvalidConfiguration;
    }
    const auto kernel = cache_mma<Format>;
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

// By the format, and the dtype of a plain one.
template <int kDim>
cudaError_t launch_cache_of(const Problem& problem,
                            const CacheBuffers& buffers,
                            int splits,
                            cudaStream_t stream) {
    switch (buffers.quantization.format) {
    case CacheFormat::fp8:
        return launch_cache<Fp8Format<kDim>>(problem, buffers, splits, stream);
    case CacheFormat::int4:
        return launch_cache<Int4Format<kDim>>(problem, buffers, splits, stream);
    default:
        return problem.dtype == DType::f16
                   ? launch_cache<PlainFormat<Float16, kDim>>(problem, buffers, splits, stream)
                   : launch_cache<PlainFormat<BFloat16, kDim>>(problem, buffers, splits, stream);
    }
}

} // namespace attention
