// SPDX-License-Identifier: Apache-2.0
//
// Attention over a cache for 16-bit elements: a few queries, many keys, so the time is that of
// reading the keys and values once.
//
// A block: one head of keys, a range of its keys (a split), 16 rows. A row is a query of one of the
// heads that share the keys, so that these are read once for all of them. Steps of kKeys keys
// travel through a ring in shared memory, keys and values in turns; of a step each warp has its
// own 16 keys, with a softmax of its own, and the four are merged at the end. If there is more than
// one split, a second kernel merges these.
#pragma once

#include "../attention_common/cache.h"
#include "cache_tuning.h"
#include "tile.cuh"

#include <cuda_runtime.h>

namespace attention {

struct CachePlan {
    int splits;
    int row_blocks;
    bool vectors;
    bool query_vectors;
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

// One head's keys, or values, of one sequence; all counts fit in 31 bits.
template <typename Storage>
struct CacheHead {
    const Storage* base;      // of the head; without pages, of the sequence's first key
    const std::int32_t* page; // of the sequence; null: no pages
    std::int64_t row_stride;
    std::int64_t page_stride;
    unsigned page_size;
    unsigned page_shift; // if it is a power of 2, else 32
    unsigned first;      // row of the first key, counted in pages

    const __device__ __forceinline__ Storage* row(int key) const {
        if (page == nullptr) {
            return base + key * row_stride;
        }
        const unsigned at = first + static_cast<unsigned>(key);
        const unsigned number = page_shift < 32 ? at >> page_shift : at / page_size;
        return base + page[number] * page_stride + (at - number * page_size) * row_stride;
    }
};

template <typename Storage>
__device__ __forceinline__ CacheHead<Storage> cache_head(const void* data,
                                                         const Strides& strides,
                                                         const CacheLayout& cache,
                                                         std::int64_t batch,
                                                         std::int64_t head) {
    CacheHead<Storage> h{};
    h.base = static_cast<const Storage*>(data) + head * strides.head;
    h.row_stride = strides.row;
    const std::int64_t first = cache_first(cache, batch);
    if (cache.pages == nullptr) {
        h.base += (cache.index == nullptr ? batch : cache.index[batch]) * strides.batch +
                  first * strides.row;
    } else {
        h.page = cache.pages + batch * cache.pages_per_sequence;
        h.page_stride = strides.batch;
        h.page_size = static_cast<unsigned>(cache.page_size);
        h.page_shift = (h.page_size & (h.page_size - 1)) == 0 ? __ffs(cache.page_size) - 1 : 32;
        h.first = static_cast<unsigned>(first);
    }
    return h;
}

// Fills the rows of a tile with keys first_key ..., with zeros from `length` on.
template <typename Number, int kHeadDim>
__device__ __forceinline__ void load_cache_rows(typename Number::Storage* tile,
                                                const CacheHead<typename Number::Storage>& head,
                                                int first_key,
                                                int length,
                                                int head_dim,
                                                bool vectors) {
    constexpr int kStride = kHeadDim + kPadding;
    constexpr int kChunks = kHeadDim / 8;
    constexpr int kRowStep = kThreads / kChunks;
    static_assert(kThreads % kChunks == 0 && kCacheKeys % kRowStep == 0);
    if (vectors) {
        const int column = static_cast<int>(threadIdx.x) % kChunks * 8;
        const int row = static_cast<int>(threadIdx.x) / kChunks;
        typename Number::Storage* target = tile + row * kStride + column;
#pragma unroll 8
        for (int i = 0; i < kCacheKeys / kRowStep; ++i) {
            const int key = first_key + row + i * kRowStep;
            const bool valid = key < length && column < head_dim;
            copy_async_stream(
                target + i * kRowStep * kStride, valid ? head.row(key) + column : head.base, valid);
        }
        return;
    }
    for (int i = static_cast<int>(threadIdx.x); i < kCacheKeys * kHeadDim; i += kThreads) {
        const int key = first_key + i / kHeadDim;
        const int column = i % kHeadDim;
        tile[i / kHeadDim * kStride + column] =
            key < length && column < head_dim ? head.row(key)[column] : Number::zero();
    }
}

// Merges the warps' sums over their keys, divides, and writes the block's rows.
template <typename Number, int kHeadDim>
__device__ __forceinline__ void merge_warps(float (&o)[kHeadDim / 8][4],
                                            const float (&highest)[2],
                                            const float (&total)[2],
                                            float* sums,       // [warps, 16, kHeadDim + 8]
                                            float* statistics, // [2, warps, 16]
                                            const Problem& problem,
                                            const CacheBuffers& buffers,
                                            const CachePlan& plan,
                                            const Sequence& sequence,
                                            std::int64_t head_kv,
                                            int first_row,
                                            int split) {
    constexpr int kStride = kHeadDim + 8;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int g = lane / 4;
    const int t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float all = total[h];
        all += __shfl_xor_sync(0xffffffffU, all, 1);
        all += __shfl_xor_sync(0xffffffffU, all, 2);
        if (t == 0) {
            statistics[warp * 16 + g + 8 * h] = highest[h];
            statistics[(kWarps + warp) * 16 + g + 8 * h] = all;
        }
    }
    __syncthreads(); // also: everybody is done with the ring, which `sums` overlays
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float most = -INFINITY;
        for (int w = 0; w < kWarps; ++w) {
            most = fmaxf(most, statistics[w * 16 + g + 8 * h]);
        }
        const float factor = most == -INFINITY ? 0.0F : exp2f(highest[h] - most);
#pragma unroll
        for (int n = 0; n < kHeadDim / 8; ++n) {
            *reinterpret_cast<float2*>(sums + (warp * 16 + g + 8 * h) * kStride + n * 8 + 2 * t) =
                make_float2(o[n][2 * h] * factor, o[n][2 * h + 1] * factor);
        }
    }
    __syncthreads();
    const int group = static_cast<int>(problem.heads / problem.heads_kv);
    const int rows = static_cast<int>(problem.max_seqlen_q) * group;
    const std::int64_t all_rows = problem.batch * problem.heads * problem.max_seqlen_q;
    for (int row = warp; row < 16 && first_row + row < rows; row += kWarps) {
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
        const float inverse = all == 0.0F ? 0.0F : 1.0F / all;
        const float lse = all == 0.0F ? -INFINITY : (most + log2f(all)) * kLn2;
        const int position = (first_row + row) / group;
        const std::int64_t head = head_kv * group + (first_row + row) % group;
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
            } else if (column < problem.head_dim) {
                static_cast<typename Number::Storage*>(
                    buffers.out)[sequence.batch * buffers.out_strides.batch +
                                 position * buffers.out_strides.row +
                                 head * buffers.out_strides.head + column] =
                    Number::narrow(sum * inverse);
            }
        }
    }
}

template <typename Number, typename Tiling>
__global__ void __launch_bounds__(kThreads, Tiling::blocks)
    cache_mma(const Problem problem, const CacheBuffers buffers, const CachePlan plan) {
    using Storage = typename Number::Storage;
    constexpr int kHeadDim = Tiling::head_dim;
    constexpr int kStride = kHeadDim + kPadding;
    constexpr int kSlot = kCacheKeys * kStride;
    extern __shared__ __align__(16) unsigned char shared[];
    auto* ring = reinterpret_cast<Storage*>(shared);
    Storage* q_tile = ring + Tiling::depth * kSlot;
    auto* statistics = reinterpret_cast<float*>(q_tile + 16 * kStride);

    const int split = static_cast<int>(blockIdx.x) % plan.splits;
    const int place = static_cast<int>(blockIdx.x) / plan.splits;
    const int heads_kv = static_cast<int>(problem.heads_kv);
    const int first_row = place % plan.row_blocks * 16;
    const std::int64_t head_kv = place / plan.row_blocks % heads_kv;
    const std::int64_t batch = place / plan.row_blocks / heads_kv;
    allow_next_kernel();
    const Sequence sequence = cache_sequence(problem, buffers.cache, batch);
    const int group = static_cast<int>(problem.heads) / heads_kv;
    const int rows = static_cast<int>(problem.max_seqlen_q) * group;
    const int head_dim = static_cast<int>(problem.head_dim);
    const auto* q = static_cast<const Storage*>(buffers.q);
    const auto keys =
        cache_head<Storage>(buffers.k, buffers.k_strides, buffers.cache, batch, head_kv);
    const auto values =
        cache_head<Storage>(buffers.v, buffers.v_strides, buffers.cache, batch, head_kv);
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
    const int all_begin = begin_of(first_row) / kCacheKeys;
    const int all_end = (max(end_of(last_row), 0) + kCacheKeys - 1) / kCacheKeys;
    const int share = (max(all_end - all_begin, 0) + plan.splits - 1) / plan.splits;
    const int begin = all_begin + split * share;
    const int steps = max(min(begin + share, all_end) - begin, 0);
    const int visible_begin[2] = {begin_of(first_row + g), begin_of(first_row + g + 8)};
    const int visible_end[2] = {end_of(first_row + g), end_of(first_row + g + 8)};
    const bool capped = problem.softcap > 0.0F;
    const float to_log2 = capped ? problem.softcap * kLog2E : problem.scale * kLog2E;
    const float to_tanh = capped ? problem.scale / problem.softcap : 0.0F;

    // The queries travel with the first keys.
    const auto query = [&](int row) {
        return q + batch * buffers.q_strides.batch + row / group * buffers.q_strides.row +
               (head_kv * group + row % group) * buffers.q_strides.head;
    };
    if (plan.query_vectors) {
#pragma unroll
        for (int i = 0; i < kHeadDim / 8 * 16 / kThreads; ++i) {
            const int at = static_cast<int>(threadIdx.x) + i * kThreads;
            const int row = first_row + at / (kHeadDim / 8);
            const int column = at % (kHeadDim / 8) * 8;
            const bool valid = row < rows && column < head_dim;
            copy_async(q_tile + at / (kHeadDim / 8) * kStride + column,
                       query(min(row, rows - 1)) + (valid ? column : 0),
                       valid);
        }
    } else {
        for (int i = static_cast<int>(threadIdx.x); i < 16 * kHeadDim; i += kThreads) {
            const int row = first_row + i / kHeadDim;
            const int column = i % kHeadDim;
            q_tile[i / kHeadDim * kStride + column] =
                row < rows && column < head_dim ? query(row)[column] : Number::zero();
        }
    }
    // Half of the ring's slots are for keys.
    constexpr int kAhead = Tiling::depth / 2;
    const auto load = [&](const CacheHead<Storage>& head, int step, int slot) {
        if (step < steps) {
            load_cache_rows<Number, kHeadDim>(ring + slot * kSlot,
                                              head,
                                              (begin + step) * kCacheKeys,
                                              length,
                                              head_dim,
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
    float s[2][4];
    float highest[2] = {-INFINITY, -INFINITY};
    float total[2] = {0.0F, 0.0F};
    const Storage* q_row = q_tile + lane % 16 * kStride + lane / 16 * 8;
    for (int step = 0; step < steps; ++step) {
        wait_copies<Tiling::depth - 2>();
        __syncthreads(); // the keys are here; everybody is done with the values before them
        load_values(step + kAhead - 1);
        const Storage* tile = ring + 2 * (step % kAhead) * kSlot + warp * 16 * kStride;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                s[n][c] = 0.0F;
            }
        }
        const Storage* k_row = tile + (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
#pragma unroll
        for (int d = 0; d < kHeadDim / 16; ++d) {
            std::uint32_t a[4];
            std::uint32_t b[4];
            load_matrices(a, q_row + d * 16);
            load_matrices(b, k_row + d * 16);
            Number::multiply_add(s[0], a, b[0], b[1]);
            Number::multiply_add(s[1], a, b[2], b[3]);
        }
        const int key = (begin + step) * kCacheKeys + warp * 16;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float step_highest = -INFINITY;
#pragma unroll
            for (int n = 0; n < 2; ++n) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    float& value = s[n][2 * h + c];
                    const int column = key + n * 8 + 2 * t + c;
                    value = (capped ? tanhf(value * to_tanh) : value) * to_log2;
                    value =
                        column >= visible_begin[h] && column < visible_end[h] ? value : -INFINITY;
                    step_highest = fmaxf(step_highest, value);
                }
            }
            step_highest = fmaxf(step_highest, __shfl_xor_sync(0xffffffffU, step_highest, 1));
            step_highest = fmaxf(step_highest, __shfl_xor_sync(0xffffffffU, step_highest, 2));
            const float before = highest[h];
            highest[h] = fmaxf(before, step_highest);
            const float base = highest[h] == -INFINITY ? 0.0F : highest[h];
            const float shrink = exp2f(before - base);
            total[h] *= shrink;
#pragma unroll
            for (int n = 0; n < 2; ++n) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    float& value = s[n][2 * h + c];
                    value = exp2f(value - base);
                    total[h] += value;
                }
            }
            if (__any_sync(0xffffffffU, shrink != 1.0F)) {
#pragma unroll
                for (int n = 0; n < kHeadDim / 8; ++n) {
                    o[n][2 * h] *= shrink;
                    o[n][2 * h + 1] *= shrink;
                }
            }
        }
        wait_copies<Tiling::depth - 2>();
        __syncthreads(); // the values are here; everybody is done with the keys
        load_keys(step + kAhead);
        multiply_weights<Number, kHeadDim>(o, s, tile + kSlot);
    }
    wait_copies<0>();
    __syncthreads();
    merge_warps<Number, kHeadDim>(o,
                                  highest,
                                  total,
                                  reinterpret_cast<float*>(shared),
                                  statistics,
                                  problem,
                                  buffers,
                                  plan,
                                  sequence,
                                  head_kv,
                                  first_row,
                                  split);
}

// One warp a row: out = sum_s exp(lse_s - lse) partial_s.
template <typename Number, int kHeadDim>
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
    const float inverse = all == 0.0F ? 0.0F : 1.0F / all;
    if (lane == 0) {
        buffers.lse[row] = all == 0.0F ? -INFINITY : base + logf(all);
    }
    const std::int64_t position = row % problem.max_seqlen_q;
    const std::int64_t head = row / problem.max_seqlen_q % problem.heads;
    const std::int64_t batch = row / problem.max_seqlen_q / problem.heads;
    auto* out = static_cast<typename Number::Storage*>(buffers.out) +
                batch * buffers.out_strides.batch + position * buffers.out_strides.row +
                head * buffers.out_strides.head;
#pragma unroll
    for (int c = 0; c < kHeadDim / 32; ++c) {
        if (lane + 32 * c < problem.head_dim) {
            out[lane + 32 * c] = Number::narrow(sum[c] * inverse);
        }
    }
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

template <typename Number, typename Tiling>
cudaError_t
launch_cache(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream) {
    CachePlan plan{};
    plan.splits = splits;
    const std::int64_t rows = problem.max_seqlen_q * (problem.heads / problem.heads_kv);
    const std::int64_t row_blocks = (rows + 15) / 16;
    plan.row_blocks = static_cast<int>(row_blocks);
    plan.vectors =
        vectors_fit(problem, {{buffers.k, buffers.k_strides}, {buffers.v, buffers.v_strides}});
    plan.query_vectors = vectors_fit(problem, {{buffers.q, buffers.q_strides}});
    const std::int64_t blocks = problem.batch * problem.heads_kv * row_blocks * splits;
    const std::int64_t all_rows = problem.batch * problem.heads * problem.max_seqlen_q;
    if (blocks > 0x7fffffff || all_rows / kWarps > 0x7ffffffe || rows > 0x7fffffff - 16 ||
        problem.max_seqlen_k > 0x7fffffff - 2 * kCacheKeys) {
        return cudaErrorInvalidConfiguration;
    }
    const auto kernel = cache_mma<Number, Tiling>;
    if (const cudaError_t error = allow_shared(kernel, Tiling::shared_bytes);
        error != cudaSuccess) {
        return error;
    }
    kernel<<<static_cast<unsigned>(blocks), kThreads, Tiling::shared_bytes, stream>>>(
        problem, buffers, plan);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess || splits == 1) {
        return error;
    }
    return launch_after(cache_combine<Number, Tiling::head_dim>,
                        static_cast<unsigned>((all_rows + kWarps - 1) / kWarps),
                        stream,
                        problem,
                        buffers,
                        splits);
}

} // namespace attention
