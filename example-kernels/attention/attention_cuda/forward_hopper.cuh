// SPDX-License-Identifier: Apache-2.0
//
// Forward for 16-bit elements on sm_90a.
//
// A block stays and takes one tile after another: 64 queries per consumer warpgroup, of one head of
// one sequence. One thread of the last warpgroup, the producer, takes the tile's number and has
// the copy engine bring queries, keys and values; two steps of keys and two of values are in
// flight. A consumer has S, P and O in registers and, in one step, keeps the tensor cores busy
// with the scores of this step and the values of the last while it takes the softmax of this one:
//
//   tensor cores    S(n) = Q K(n)    O += P(n+1) V(n+1)       S(n-1) = ...
//   the others                       softmax of S(n)   P(n)   softmax ...
//
// Steps run from the last key to the first: the masked ones come first, the rest has no mask.
#pragma once

#include "../attention_common/attention.h"
#include "hopper_tile.cuh"
#include "tile.cuh"

#include <cuda_runtime.h>

namespace attention {

struct HopperMaps {
    CUtensorMap q, k, v;
};

// What the host computes once. All lengths fit in 31 bits.
struct HopperPlan {
    int tiles;
    int query_tiles; // of a sequence
    int heads;
    int heads_per_kv;
    int all_heads;     // batch * heads
    int heads_at_once; // whose keys and values share the L2 cache; the longest tiles of these first
    int window_left;   // < 0: no limit
    int window_right;
    bool descending;
    int* next_tile; // null: a block takes every gridDim.x-th
};

// A tile, and the steps of keys that any of its queries sees.
struct HopperWork {
    int first_query;
    int head;
    int batch;
    int q_first;
    int k_first;
    int q_length;
    int k_length;
    int step_begin;
    int step_end;
};

template <typename Tiling>
__device__ __forceinline__ HopperWork
work_of(int tile, const HopperPlan& plan, const Problem& problem, const Offsets& offsets) {
    HopperWork w{};
    const int group_tiles = plan.heads_at_once * plan.query_tiles;
    const int group = tile / group_tiles;
    const int first_head = group * plan.heads_at_once;
    const int heads = min(plan.heads_at_once, plan.all_heads - first_head);
    const int within = tile - group * group_tiles;
    const int up = within / heads;
    const int batch_head = first_head + within - up * heads;
    w.batch = batch_head / plan.heads;
    w.head = batch_head - w.batch * plan.heads;
    w.first_query = (plan.descending ? plan.query_tiles - 1 - up : up) * Tiling::queries;
    w.q_length = static_cast<int>(problem.max_seqlen_q);
    w.k_length = static_cast<int>(problem.max_seqlen_k);
    if (offsets.q != nullptr) {
        w.q_first = offsets.q[w.batch];
        w.k_first = offsets.k[w.batch];
        w.q_length = offsets.q[w.batch + 1] - w.q_first;
        w.k_length = offsets.k[w.batch + 1] - w.k_first;
    }
    const int level = w.first_query + w.k_length - w.q_length;
    const int last = min(level + Tiling::queries, w.k_length) - 1; // level of the last query
    const int begin = plan.window_left < 0 ? 0 : max(0, level - plan.window_left);
    const int end =
        plan.window_right < 0 ? w.k_length : min(w.k_length, last + plan.window_right + 1);
    w.step_begin = begin / Tiling::keys;
    w.step_end = end > begin ? (end + Tiling::keys - 1) / Tiling::keys : w.step_begin;
    return w;
}

// Shared memory, as addresses of the shared window.
template <typename Tiling>
struct HopperShared {
    static constexpr int kQueryBytes = Tiling::queries * Tiling::head_dim * 2;
    static constexpr int kStepBytes = Tiling::keys * Tiling::head_dim * 2;
    std::uint32_t base; // a multiple of 1024

    __device__ std::uint32_t q(int stage) const { return base + stage * kQueryBytes; }

    __device__ std::uint32_t k(int stage) const {
        return base + Tiling::query_tiles * kQueryBytes + stage * kStepBytes;
    }

    __device__ std::uint32_t v(int stage) const { return k(2 + stage); }

    __device__ std::uint32_t barrier(int i) const { return k(4) + i * 8; }

    __device__ std::uint32_t q_full(int stage) const { return barrier(stage); }

    __device__ std::uint32_t q_empty(int stage) const { return barrier(2 + stage); }

    __device__ std::uint32_t k_full(int stage) const { return barrier(4 + stage); }

    __device__ std::uint32_t k_empty(int stage) const { return barrier(6 + stage); }

    __device__ std::uint32_t v_full(int stage) const { return barrier(8 + stage); }

    __device__ std::uint32_t v_empty(int stage) const { return barrier(10 + stage); }

    __device__ std::uint32_t tile_full(int slot) const { return barrier(12 + slot); }

    __device__ std::uint32_t tile_empty(int slot) const { return barrier(14 + slot); }

    __device__ std::uint32_t tile(int slot) const { return barrier(16) + slot * 4; }
};

// ------------------------------------------------------------------------- producer

// By one thread.
template <typename Tiling>
__device__ __forceinline__ void produce(const HopperMaps& maps,
                                        const Problem& problem,
                                        const Offsets& offsets,
                                        const HopperPlan& plan,
                                        const HopperShared<Tiling>& shared) {
    constexpr int kDim = Tiling::head_dim;
    int tile = static_cast<int>(blockIdx.x);
    int uses = 0;  // of the key ring, the value ring has as many
    int tiles = 0; // that were loaded
    for (int turn = 0;; ++turn) {
        const int slot = turn & 1;
        wait_free(shared.tile_empty(slot), turn);
        const int number = tile < plan.tiles ? tile : -1;
        asm volatile("st.shared.s32 [%0], %1;" ::"r"(shared.tile(slot)), "r"(number) : "memory");
        barrier_arrive(shared.tile_full(slot));
        if (number < 0) {
            return;
        }
        const HopperWork work = work_of<Tiling>(tile, plan, problem, offsets);
        const int head_kv = work.head / plan.heads_per_kv;
        const int batch = offsets.q == nullptr ? work.batch : 0;
        const bool any = work.first_query < work.q_length && work.step_begin < work.step_end;
        const auto keys = [&](int step, int use) {
            wait_free(shared.k_empty(use & 1), use);
            copy_rows<Tiling::keys, kDim>(shared.k(use & 1),
                                          maps.k,
                                          shared.k_full(use & 1),
                                          work.k_first + step * Tiling::keys,
                                          head_kv,
                                          batch);
        };
        if (any) {
            keys(work.step_end - 1, uses);
            const int stage = tiles % Tiling::query_tiles;
            if (tiles >= Tiling::query_tiles) {
                barrier_wait(shared.q_empty(stage), (tiles / Tiling::query_tiles & 1) ^ 1);
            }
            copy_rows<Tiling::queries, kDim>(shared.q(stage),
                                             maps.q,
                                             shared.q_full(stage),
                                             work.q_first + work.first_query,
                                             work.head,
                                             batch);
            ++tiles;
            for (int step = work.step_end - 1; step >= work.step_begin; --step, ++uses) {
                if (step > work.step_begin) {
                    keys(step - 1, uses + 1);
                }
                wait_free(shared.v_empty(uses & 1), uses);
                copy_rows<Tiling::keys, kDim>(shared.v(uses & 1),
                                              maps.v,
                                              shared.v_full(uses & 1),
                                              work.k_first + step * Tiling::keys,
                                              head_kv,
                                              batch);
            }
        }
        tile = plan.next_tile == nullptr
                   ? tile + static_cast<int>(gridDim.x)
                   : atomicAdd(plan.next_tile, 1) + static_cast<int>(gridDim.x);
    }
}

// ------------------------------------------------------------------------- consumers

// The two rows of a thread: row g and row g + 8 of its warp.
struct HopperRows {
    float highest[2] = {-INFINITY, -INFINITY}; // base of the exponentials, in the units of S
    float total[2] = {0.0F, 0.0F};             // of this thread's columns
    int begin[2];                              // the visible keys
    int end[2];
};

// s = tanh(s * factor); exact enough for 16 bits, and cheap.
template <int kScores>
__device__ __forceinline__ void cap_scores(float (&s)[kScores], float factor) {
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
        s[i] = 1.0F - __fdividef(2.0F, 1.0F + exp2_fast(s[i] * (2.0F * kLog2E * factor)));
    }
}

// S becomes P = exp2((S - base) * to_log2). The base follows the highest score only when that has
// grown by more than 2^8: then, and for the whole warp, true is returned and O has to be multiplied
// by `shrink`. The result does not depend on the base.
template <int kScores>
__device__ __forceinline__ bool
softmax_step(float (&s)[kScores], HopperRows& rows, float to_log2, float (&shrink)[2]) {
    constexpr float kMostGrowth = 8.0F;
    float next[2];
    bool grown = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float highest = s[2 * h];
#pragma unroll
        for (int j = 0; j < kScores / 4; ++j) {
            highest = fmaxf(highest, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
        }
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, 2));
        next[h] = fmaxf(rows.highest[h], highest);
        grown = grown || (next[h] - rows.highest[h]) * to_log2 > kMostGrowth;
    }
    grown = __any_sync(0xffffffffU, grown) != 0;
    if (grown) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float base = next[h] == -INFINITY ? 0.0F : next[h];
            shrink[h] = exp2_fast((rows.highest[h] - base) * to_log2);
            rows.highest[h] = next[h];
            rows.total[h] *= shrink[h];
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        // A row without a visible key so far: any finite base gives exp2(-inf) = 0.
        const float base = rows.highest[h] == -INFINITY ? 0.0F : rows.highest[h] * to_log2;
        float sums[2] = {rows.total[h], 0.0F};
#pragma unroll
        for (int j = 0; j < kScores / 4; ++j) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                float& value = s[4 * j + 2 * h + c];
                value = exp2_fast(fmaf(value, to_log2, -base));
                sums[c] += value;
            }
        }
        rows.total[h] = sums[0] + sums[1];
    }
    return grown;
}

template <typename Number, int kScores>
__device__ __forceinline__ void round_weights(std::uint32_t (&p)[kScores / 2],
                                              const float (&s)[kScores]) {
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) {
        p[i] = Number::pack(s[2 * i], s[2 * i + 1]);
    }
}

// The result and the log-sum-exp of one tile.
template <typename Number, typename Tiling>
__device__ __forceinline__ void store_result(float (&o)[Tiling::head_dim / 2],
                                             HopperRows& rows,
                                             float to_log2,
                                             const HopperWork& work,
                                             const Problem& problem,
                                             const Buffers& buffers) {
    const int t = static_cast<int>(threadIdx.x) % 4;
    const bool packed = buffers.offsets.q != nullptr;
    float inverse[2];
    typename Number::Storage* out[2];
    bool inside[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float total = rows.total[h];
        total += __shfl_xor_sync(0xffffffffU, total, 1);
        total += __shfl_xor_sync(0xffffffffU, total, 2);
        inverse[h] = total == 0.0F ? 0.0F : 1.0F / total;
        const int row = work.first_query + static_cast<int>(threadIdx.x) / 32 * 16 +
                        static_cast<int>(threadIdx.x) % 32 / 4 + 8 * h;
        inside[h] = row < work.q_length;
        if (t == 0 && inside[h]) {
            const std::int64_t at =
                packed ? work.head * problem.total_q + work.q_first
                       : (std::int64_t{work.batch} * problem.heads + work.head) * work.q_length;
            buffers.lse[at + row] =
                total == 0.0F ? -INFINITY : (rows.highest[h] * to_log2 + log2f(total)) * kLn2;
        }
        out[h] = static_cast<typename Number::Storage*>(buffers.out) +
                 (packed ? 0 : work.batch * buffers.out_strides.batch) +
                 (std::int64_t{work.q_first} + row) * buffers.out_strides.row +
                 work.head * buffers.out_strides.head;
    }
    store_rows<Number, Tiling::head_dim>(
        o, inverse, out, inside, static_cast<int>(problem.head_dim));
}

// By the warpgroups of consumers; threadIdx.x counts them from 0.
template <typename Number, typename Tiling>
__device__ __forceinline__ void consume(const Problem& problem,
                                        const Buffers& buffers,
                                        const HopperPlan& plan,
                                        const HopperShared<Tiling>& shared) {
    constexpr int kStep = Tiling::keys;
    constexpr int kThreads = Tiling::groups * 128; // all consumers
    constexpr int kTurnThreads = 256;
    const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 128, 0);
    const bool leader = threadIdx.x % 32 == 0;
    const bool capped = problem.softcap > 0.0F;
    const float to_log2 = (capped ? problem.softcap : problem.scale) * kLog2E;
    const float to_tanh = capped ? problem.scale / problem.softcap : 0.0F;
    const int my_turn = 2 + group;
    const int next_turn = 2 + (group + 1) % Tiling::groups;
    const auto release = [&](std::uint32_t barrier) {
        __syncwarp();
        if (leader) {
            barrier_arrive(barrier);
        }
    };
    if (Tiling::turns && group == 0) {
        group_arrive(my_turn, kTurnThreads);
    }

    int uses = 0;  // of the key ring
    int tiles = 0; // that were not empty
    for (int turn = 0;; ++turn) {
        const int slot = turn & 1;
        barrier_wait(shared.tile_full(slot), ring_parity(turn));
        int tile;
        asm volatile("ld.shared.s32 %0, [%1];" : "=r"(tile) : "r"(shared.tile(slot)) : "memory");
        release(shared.tile_empty(slot));
        if (tile < 0) {
            return;
        }
        const HopperWork work = work_of<Tiling>(tile, plan, problem, buffers.offsets);
        if (work.first_query >= work.q_length) {
            continue;
        }
        HopperRows rows;
        float o[Tiling::head_dim / 2];
        if (work.step_begin >= work.step_end) {
#pragma unroll
            for (float& value : o) {
                value = 0.0F;
            }
            store_result<Number, Tiling>(o, rows, to_log2, work, problem, buffers);
            continue;
        }
        // Level of this warpgroup's first query; from it, whole steps that need no mask.
        const int level = work.first_query + group * 64 + work.k_length - work.q_length;
        const auto begin_of = [&](int at) {
            return plan.window_left < 0 ? 0 : max(0, at - plan.window_left);
        };
        const auto end_of = [&](int at) {
            return plan.window_right < 0 ? work.k_length
                                         : min(work.k_length, at + plan.window_right + 1);
        };
        const int whole_begin = begin_of(level + 63);
        const int whole_end = end_of(level);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int at = level + static_cast<int>(threadIdx.x) % 128 / 32 * 16 +
                           static_cast<int>(threadIdx.x) % 32 / 4 + 8 * h;
            rows.begin[h] = begin_of(at);
            rows.end[h] = end_of(at);
        }
        float s[kStep / 2];
        std::uint32_t p[1][kStep / 4];
        float shrink[2];
        const auto weigh = [&](int step) {
            if (capped) {
                cap_scores(s, to_tanh);
            }
            if (step * kStep < whole_begin || (step + 1) * kStep > whole_end) {
                mask_scores(s, rows.begin, rows.end, step * kStep);
            }
            return softmax_step(s, rows, to_log2, shrink);
        };

        int step = work.step_end - 1;
        const int q_stage = tiles % Tiling::query_tiles;
        const std::uint32_t q = shared.q(q_stage) + group * 64 * kPanelRowBytes;
        barrier_wait(shared.q_full(q_stage), tiles / Tiling::query_tiles & 1);
        barrier_wait(shared.k_full(uses & 1), ring_parity(uses));
        issue_rows_by_rows<Number, Tiling::queries, kStep, Tiling::head_dim>(
            s, q, shared.k(uses & 1));
        product_wait<0>();
        pin(s);
        release(shared.k_empty(uses & 1));
        weigh(step);
        round_weights<Number>(p[0], s);
        if (buffers.offsets.q != nullptr && (step + 1) * kStep > work.k_length) {
            barrier_wait(shared.v_full(uses & 1), ring_parity(uses));
            clear_rows<kStep, Tiling::head_dim, kThreads>(shared.v(uses & 1),
                                                          work.k_length - step * kStep);
            publish_shared();
            group_wait(1, kThreads);
        }
        bool add = false;
        for (--step; step >= work.step_begin; --step) {
            const int next = uses + 1;
            barrier_wait(shared.k_full(next & 1), ring_parity(next));
            if (Tiling::turns) {
                group_wait(my_turn, kTurnThreads);
            }
            issue_rows_by_rows<Number, Tiling::queries, kStep, Tiling::head_dim>(
                s, q, shared.k(next & 1));
            barrier_wait(shared.v_full(uses & 1), ring_parity(uses));
            issue_registers_by_tile<Number, kStep, Tiling::head_dim, 1>(
                o, p, shared.v(uses & 1), add);
            if (Tiling::turns) {
                group_arrive(next_turn, kTurnThreads);
            }
            product_wait<1>();
            pin(s);
            release(shared.k_empty(next & 1));
            const bool grown = weigh(step);
            product_wait<0>();
            pin(o);
            pin(p[0]);
            pin(s);
            release(shared.v_empty(uses & 1));
            round_weights<Number>(p[0], s);
            if (grown) {
#pragma unroll
                for (int i = 0; i < Tiling::head_dim / 2; ++i) {
                    o[i] *= shrink[i / 2 % 2];
                }
            }
            add = true;
            uses = next;
        }
        release(shared.q_empty(q_stage));
        barrier_wait(shared.v_full(uses & 1), ring_parity(uses));
        issue_registers_by_tile<Number, kStep, Tiling::head_dim, 1>(o, p, shared.v(uses & 1), add);
        product_wait<0>();
        pin(o);
        release(shared.v_empty(uses & 1));
        ++uses;
        ++tiles;
        store_result<Number, Tiling>(o, rows, to_log2, work, problem, buffers);
    }
}

template <typename Number, typename Tiling>
__global__ void __launch_bounds__(Tiling::threads, 1)
    forward_hopper(const __grid_constant__ HopperMaps maps,
                   const Problem problem,
                   const Buffers buffers,
                   const HopperPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) // else this unit was compiled for another chip, to be
                                       // skipped
    extern __shared__ unsigned char shared_memory[];
    HopperShared<Tiling> shared{(shared_address(shared_memory) + 1023U) & ~1023U};
    constexpr int kConsumers = Tiling::groups * 128;
    constexpr int kConsumerWarps = Tiling::groups * 4;
    if (threadIdx.x == kConsumers) {
        for (int i = 0; i < 2; ++i) {
            barrier_init(shared.q_full(i), 1);
            barrier_init(shared.q_empty(i), kConsumerWarps);
            barrier_init(shared.k_full(i), 1);
            barrier_init(shared.k_empty(i), kConsumerWarps);
            barrier_init(shared.v_full(i), 1);
            barrier_init(shared.v_empty(i), kConsumerWarps);
            barrier_init(shared.tile_full(i), 1);
            barrier_init(shared.tile_empty(i), kConsumerWarps);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        publish_shared();
    }
    __syncthreads();
    if (threadIdx.x >= kConsumers) {
        give_registers<Tiling::producer_registers>();
        if (threadIdx.x == kConsumers) {
            produce<Tiling>(maps, problem, buffers.offsets, plan, shared);
        }
    } else {
        take_registers<Tiling::consumer_registers>();
        consume<Number, Tiling>(problem, buffers, plan, shared);
    }
#endif
}

} // namespace attention
