// SPDX-License-Identifier: Apache-2.0
//
// Backward for 16-bit elements on sm_90a: one kernel of five products, where the code for every GPU
// has seven, and two small ones around it (backward_hopper_passes.cuh).
//
// A block stays and takes one tile after another: 128 keys of one head of one sequence, 64 per
// consumer warpgroup, and steps over the queries that see them, of every head that reads the keys'
// head. Keys are the rows, so that P' and dS' are register operands:
//
//   S' = K Q'    dP' = V dO'    dV += P' dO    dK += dS' Q    dQ = dS K
//
// dS' of both warpgroups goes through shared memory to dQ, whose sum over the tiles is in memory.
// While a warpgroup takes exponentials and score gradients its tensor cores have work:
//
//   tensor cores   dQ(n-1)  S'(n)  dK(n-1)   dP'(n)    dV(n)          dQ(n)  S'(n+1)  dK(n)
//   the others              dQ to memory  half of P'  rest of P'  dS'(n) to shared memory
//
// The sums have one order, without atomics: the tiles of a head add to a block of queries in the
// order of their keys, each waits for its turn. The first one writes, so nothing has to be cleared.
// Tiles are taken, and their queries stepped over from the last to the first, in an order that
// makes the waiting rare: a tile's predecessor was taken before it and is some steps ahead.
#pragma once

#include "../attention_common/attention.h"
#include "hopper_tile.cuh"
#include "tile.cuh"

#include <cuda_runtime.h>
#include <type_traits>

namespace attention {

struct HopperBackwardMaps {
    CUtensorMap q, k, v, grad_out;
};

// What the host computes once. All lengths fit in 31 bits. The queries of a sequence and head are
// divided into blocks, one a step; the workspace has for each block the sum of grad_q, the
// statistics and whose turn it is.
struct HopperBackwardPlan {
    int tiles;
    int key_tiles; // of a sequence
    int query_blocks;
    int heads_kv;
    int heads_per_kv;
    int all_heads;     // batch * heads_kv
    int heads_at_once; // whose tiles are taken in turn
    int window_left;   // < 0: no limit
    int window_right;
    int blocks_per_head; // of all sequences
    float* sums;         // [block][warpgroup][register / 4][thread][4]
    float* statistics;   // [block][lse in units of log2, delta][query]
    int* turns;          // [block]: how many tiles have added
    int* next_tile;
};

struct HopperBackwardSequence {
    int q_first;
    int k_first;
    int q_length;
    int k_length;
    int first_block; // of a head
};

template <typename Tiling>
__device__ __forceinline__ HopperBackwardSequence backward_sequence(int batch,
                                                                    const HopperBackwardPlan& plan,
                                                                    const Problem& problem,
                                                                    const Offsets& offsets) {
    HopperBackwardSequence s{};
    if (offsets.q == nullptr) {
        s.q_length = static_cast<int>(problem.max_seqlen_q);
        s.k_length = static_cast<int>(problem.max_seqlen_k);
        s.first_block = batch * plan.query_blocks;
    } else {
        s.q_first = offsets.q[batch];
        s.k_first = offsets.k[batch];
        s.q_length = offsets.q[batch + 1] - s.q_first;
        s.k_length = offsets.k[batch + 1] - s.k_first;
        s.first_block = s.q_first / Tiling::queries + batch; // apart, wherever the ends are
    }
    return s;
}

// The keys that any query of a block sees; empty if end <= begin.
template <typename Tiling>
__device__ __forceinline__ void keys_of_block(int block,
                                              const HopperBackwardSequence& s,
                                              const HopperBackwardPlan& plan,
                                              int& begin,
                                              int& end) {
    const int level = block * Tiling::queries + s.k_length - s.q_length;
    const int last = min(level + Tiling::queries, s.k_length) - 1;
    begin = plan.window_left < 0 ? 0 : max(0, level - plan.window_left);
    end = plan.window_right < 0 ? s.k_length : min(s.k_length, last + plan.window_right + 1);
}

// A tile, and the blocks of queries that see any of its keys.
struct HopperBackwardWork {
    HopperBackwardSequence sequence;
    int first_key;
    int tile; // of the sequence
    int head_kv;
    int batch;
    int step_begin;
    int step_end;
};

template <typename Tiling>
__device__ __forceinline__ HopperBackwardWork backward_work(int tile,
                                                            const HopperBackwardPlan& plan,
                                                            const Problem& problem,
                                                            const Offsets& offsets) {
    HopperBackwardWork w{};
    const int group_tiles = plan.heads_at_once * plan.key_tiles;
    const int group = tile / group_tiles;
    const int first_head = group * plan.heads_at_once;
    const int heads = min(plan.heads_at_once, plan.all_heads - first_head);
    const int within = tile - group * group_tiles;
    w.tile = within / heads;
    const int batch_head = first_head + within - w.tile * heads;
    w.batch = batch_head / plan.heads_kv;
    w.head_kv = batch_head - w.batch * plan.heads_kv;
    w.first_key = w.tile * Tiling::keys;
    w.sequence = backward_sequence<Tiling>(w.batch, plan, problem, offsets);
    const HopperBackwardSequence& s = w.sequence;
    const int shift = s.k_length - s.q_length;
    const int last_key = min(w.first_key + Tiling::keys, s.k_length) - 1;
    const int begin = plan.window_right < 0 ? 0 : max(0, w.first_key - shift - plan.window_right);
    const int end = plan.window_left < 0 ? s.q_length
                                         : min(s.q_length, last_key - shift + plan.window_left + 1);
    w.step_begin = begin / Tiling::queries;
    w.step_end = end > begin && w.first_key < s.k_length
                     ? min((end + Tiling::queries - 1) / Tiling::queries, plan.query_blocks)
                     : w.step_begin;
    return w;
}

constexpr int kEndless = 1 << 30; // beyond every row

// Where the next use of a ring of kStages goes. A barrier of its end is waited for with the parity
// of the use before, which a new barrier counts as over.
template <int kStages>
struct RingPlace {
    int stage = 0;
    int parity = 0;

    __device__ __forceinline__ RingPlace next() const {
        return stage + 1 == kStages ? RingPlace{0, parity ^ 1} : RingPlace{stage + 1, parity};
    }
};

// Shared memory, as addresses of the shared window.
template <typename Tiling>
struct HopperBackwardShared {
    std::uint32_t base; // a multiple of 1024

    __device__ std::uint32_t k() const { return base; }

    __device__ std::uint32_t v() const { return base + Tiling::key_bytes; }

    __device__ std::uint32_t q(int stage) const {
        return base + 2 * Tiling::key_bytes + stage * Tiling::query_bytes;
    }

    __device__ std::uint32_t grad_out(int stage) const { return q(Tiling::query_stages + stage); }

    // Score gradients, [key][query], as panels of 64 queries.
    __device__ std::uint32_t weights(int stage) const {
        return grad_out(2) + stage * Tiling::weight_bytes;
    }

    // grad_q of one warpgroup, in the layout of HopperBackwardPlan::sums.
    __device__ std::uint32_t sum(int group) const {
        return weights(2) + group * (Tiling::sum_bytes / Tiling::groups);
    }

    __device__ std::uint32_t statistics(int stage) const {
        return sum(Tiling::groups) + stage * Tiling::statistic_bytes;
    }

    __device__ std::uint32_t barrier(int i) const {
        return statistics(Tiling::query_stages) + i * 8;
    }

    __device__ std::uint32_t grad_out_full(int stage) const { return barrier(stage); }

    __device__ std::uint32_t grad_out_empty(int stage) const { return barrier(2 + stage); }

    __device__ std::uint32_t tile_full(int slot) const { return barrier(4 + slot); }

    __device__ std::uint32_t tile_empty(int slot) const { return barrier(6 + slot); }

    __device__ std::uint32_t sum_full(int parity) const { return barrier(8 + parity); }

    __device__ std::uint32_t sum_empty() const { return barrier(10); }

    __device__ std::uint32_t k_full() const { return barrier(11); }

    __device__ std::uint32_t v_full() const { return barrier(12); }

    __device__ std::uint32_t keys_empty() const { return barrier(13); }

    __device__ std::uint32_t q_full(int stage) const { return barrier(14 + stage); }

    __device__ std::uint32_t q_empty(int stage) const {
        return barrier(14 + Tiling::query_stages + stage);
    }

    __device__ std::uint32_t tile(int slot) const {
        return barrier(14 + 2 * Tiling::query_stages) + slot * 4;
    }
};

// The number of the next tile, < 0: there is none. A warp's leader calls release.
template <typename Tiling>
__device__ __forceinline__ int next_tile(const HopperBackwardShared<Tiling>& shared, int turn) {
    barrier_wait(shared.tile_full(turn & 1), ring_parity(turn));
    int tile;
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(tile) : "r"(shared.tile(turn & 1)) : "memory");
    return tile;
}

__device__ __forceinline__ std::int64_t
block_at(const HopperBackwardPlan& plan, const HopperBackwardSequence& s, int head, int block) {
    return std::int64_t{head} * plan.blocks_per_head + s.first_block + block;
}

// ------------------------------------------------------------------------- producer

// By one thread.
template <typename Tiling>
__device__ __forceinline__ void produce_backward(const HopperBackwardMaps& maps,
                                                 const Problem& problem,
                                                 const Offsets& offsets,
                                                 const HopperBackwardPlan& plan,
                                                 const HopperBackwardShared<Tiling>& shared) {
    constexpr int kDim = Tiling::head_dim;
    int tile = static_cast<int>(blockIdx.x);
    RingPlace<Tiling::query_stages> q;
    int uses = 0;  // of the ring of grad_out
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
        const HopperBackwardWork work = backward_work<Tiling>(tile, plan, problem, offsets);
        const HopperBackwardSequence& s = work.sequence;
        const int batch = offsets.q == nullptr ? work.batch : 0;
        bool first = true;
        for (int h = 0; h < plan.heads_per_kv; ++h) {
            const int head = work.head_kv * plan.heads_per_kv + h;
            for (int step = work.step_end - 1; step >= work.step_begin; --step, ++uses) {
                const int stage = uses & 1;
                const int row = s.q_first + step * Tiling::queries;
                barrier_wait(shared.q_empty(q.stage), q.parity ^ 1);
                copy_rows<Tiling::queries, kDim>(shared.q(q.stage),
                                                 maps.q,
                                                 shared.q_full(q.stage),
                                                 row,
                                                 head,
                                                 batch,
                                                 Tiling::statistic_bytes);
                copy_bytes(shared.statistics(q.stage),
                           plan.statistics + block_at(plan, s, head, step) * (2 * Tiling::queries),
                           shared.q_full(q.stage),
                           Tiling::statistic_bytes);
                q = q.next();
                if (first) {
                    first = false;
                    if (tiles > 0) {
                        barrier_wait(shared.keys_empty(), (tiles - 1) & 1);
                    }
                    const int key = s.k_first + work.first_key;
                    copy_rows<Tiling::keys, kDim>(
                        shared.k(), maps.k, shared.k_full(), key, work.head_kv, batch);
                    copy_rows<Tiling::keys, kDim>(
                        shared.v(), maps.v, shared.v_full(), key, work.head_kv, batch);
                    ++tiles;
                }
                wait_free(shared.grad_out_empty(stage), uses);
                copy_rows<Tiling::queries, kDim>(shared.grad_out(stage),
                                                 maps.grad_out,
                                                 shared.grad_out_full(stage),
                                                 row,
                                                 head,
                                                 batch);
            }
        }
        tile = atomicAdd(plan.next_tile, 1) + static_cast<int>(gridDim.x);
    }
}

// ------------------------------------------------------------------------- grad_q

__device__ __forceinline__ int load_acquire(const int* at) {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ __forceinline__ void store_release(int* at, int value) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// By two threads in turn, so that one step's sum is finished while the next one's begins: adds
// grad_q of every second step to the sum in memory, when the tiles before this one have done so.
template <typename Tiling>
__device__ __forceinline__ void add_query_gradients(const Problem& problem,
                                                    const Offsets& offsets,
                                                    const HopperBackwardPlan& plan,
                                                    const HopperBackwardShared<Tiling>& shared,
                                                    int parity) {
    int uses = 0;
    for (int turn = 0;; ++turn) {
        const int tile = next_tile(shared, turn);
        barrier_arrive(shared.tile_empty(turn & 1));
        if (tile < 0) {
            return;
        }
        const HopperBackwardWork work = backward_work<Tiling>(tile, plan, problem, offsets);
        for (int h = 0; h < plan.heads_per_kv; ++h) {
            const int head = work.head_kv * plan.heads_per_kv + h;
            for (int step = work.step_end - 1; step >= work.step_begin; --step, ++uses) {
                if ((uses & 1) != parity) {
                    continue;
                }
                const std::int64_t block = block_at(plan, work.sequence, head, step);
                int begin;
                int end;
                keys_of_block<Tiling>(step, work.sequence, plan, begin, end);
                const int my_turn = work.tile - begin / Tiling::keys;
                float* sum = plan.sums + block * (Tiling::sum_bytes / 4);
                while (my_turn != 0 && load_acquire(plan.turns + block) != my_turn) {
                }
                asm volatile("fence.proxy.async;" ::: "memory");
                barrier_wait(shared.sum_full(parity), ring_parity(uses));
                if (my_turn == 0) {
                    write_bytes(sum, shared.sum(0), Tiling::sum_bytes);
                } else {
                    add_floats(sum, shared.sum(0), Tiling::sum_bytes);
                }
                writes_commit();
                writes_wait_read();
                barrier_arrive(shared.sum_empty());
                writes_wait();
                store_release(plan.turns + block, my_turn + 1);
            }
        }
    }
}

// ------------------------------------------------------------------------- consumers

__device__ __forceinline__ float2 load_pair(std::uint32_t address) {
    float2 pair;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(pair.x), "=f"(pair.y)
                 : "r"(address)
                 : "memory");
    return pair;
}

// P' of columns 8 kBegin ... 8 kEnd - 1, rounded. `lse` is the address of the log-sum-exp of this
// thread's first column.
template <typename Number, int kBegin, int kEnd>
__device__ __forceinline__ void
weigh_columns(std::uint32_t (&p)[16], const float (&s)[32], std::uint32_t lse, float to_log2) {
#pragma unroll
    for (int j = kBegin; j < kEnd; ++j) {
        const float2 base = load_pair(lse + j * 32);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            p[2 * j + h] = Number::pack(exp2_fast(fmaf(s[4 * j + 2 * h], to_log2, -base.x)),
                                        exp2_fast(fmaf(s[4 * j + 2 * h + 1], to_log2, -base.y)));
        }
    }
}

// dS' = P' (dP' - delta), rounded, also to shared memory: `target` is where this lane's row of the
// first 16 columns goes.
template <typename Number>
__device__ __forceinline__ void score_gradients(std::uint32_t (&ds)[16],
                                                const std::uint32_t (&p)[16],
                                                const float (&dp)[32],
                                                std::uint32_t delta,
                                                std::uint32_t target) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const float2 base = load_pair(delta + j * 32);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float2 weight = Number::unpack(p[2 * j + h]);
            ds[2 * j + h] = Number::pack(weight.x * (dp[4 * j + 2 * h] - base.x),
                                         weight.y * (dp[4 * j + 2 * h + 1] - base.y));
        }
        if (j % 2 == 1) { // 16 columns are two of a row's eight pieces, which are swizzled
            store_matrices(target ^ (j / 2 * 32), ds + 2 * (j - 1));
        }
    }
}

// This thread's first row of a tile of keys; the other is 8 rows further.
__device__ __forceinline__ int my_row() {
    return static_cast<int>(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4);
}

// -infinity where the query, a column, does not see the key: row `row` or `row` + 8 of a tile that
// begins at `level` and has keys_left keys.
template <int kScores>
__device__ __forceinline__ void mask_queries(float (&s)[kScores],
                                             int row,
                                             int keys_left,
                                             int level,
                                             const HopperBackwardPlan& plan,
                                             int first_query) {
    int begin[2];
    int end[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int at = level + row + 8 * h;
        begin[h] = plan.window_right < 0 ? 0 : at - plan.window_right;
        end[h] = row + 8 * h >= keys_left ? 0
                 : plan.window_left < 0   ? kEndless
                                          : at + plan.window_left + 1;
    }
    mask_scores(s, begin, end, first_query);
}

// In the layout of HopperBackwardPlan::sums, `sum` is this thread's place.
__device__ __forceinline__ void store_sum(std::uint32_t sum, const float (&values)[32]) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(sum + r * 128 * 16),
                     "f"(values[4 * r]),
                     "f"(values[4 * r + 1]),
                     "f"(values[4 * r + 2]),
                     "f"(values[4 * r + 3])
                     : "memory");
    }
}

// The result of one tile.
template <typename Number, typename Tiling>
__device__ __forceinline__ void store_key_gradients(const float (&grad_k)[Tiling::head_dim / 2],
                                                    const float (&grad_v)[Tiling::head_dim / 2],
                                                    int tile,
                                                    const Problem& problem,
                                                    const BackwardBuffers& buffers,
                                                    const HopperBackwardPlan& plan) {
    const HopperBackwardWork work = backward_work<Tiling>(tile, plan, problem, buffers.offsets);
    const int row_key = work.first_key + my_row();
    const bool inside[2] = {row_key < work.sequence.k_length, row_key + 8 < work.sequence.k_length};
    const std::int64_t row = std::int64_t{work.sequence.k_first} + row_key;
    const std::int64_t batch = buffers.offsets.q == nullptr ? work.batch : 0;
    const auto store = [&](const float(&values)[Tiling::head_dim / 2],
                           float factor,
                           void* base,
                           const Strides& strides) {
        auto* first = static_cast<typename Number::Storage*>(base) + batch * strides.batch +
                      work.head_kv * strides.head + row * strides.row;
        store_rows<Number, Tiling::head_dim>(values,
                                             {factor, factor},
                                             {first, first + 8 * strides.row},
                                             inside,
                                             static_cast<int>(problem.head_dim));
    };
    store(grad_v, 1.0F, buffers.grad_v, buffers.grad_v_strides);
    store(grad_k, problem.scale, buffers.grad_k, buffers.grad_k_strides);
}

// By the two warpgroups of consumers; threadIdx.x counts them from 0.
template <typename Number, typename Tiling>
__device__ __forceinline__ void consume_backward(const Problem& problem,
                                                 const BackwardBuffers& buffers,
                                                 const HopperBackwardPlan& plan,
                                                 HopperBackwardShared<Tiling> shared) {
    constexpr int kDim = Tiling::head_dim;
    constexpr int kStep = Tiling::queries;
    constexpr int kThreads = Tiling::groups * 128;
    constexpr int kParts = kStep / 64;
    constexpr int kPanelBytes = Tiling::keys * kPanelRowBytes;
    const bool packed = buffers.offsets.q != nullptr;
    const float to_log2 = problem.scale * kLog2E;
    // All that follows from these two is computed where it is needed: registers are short.
    int thread = static_cast<int>(threadIdx.x);
    const auto group = [&] {
        return thread / 128;
    };
    const auto my_keys = [&](std::uint32_t tile_of_keys) {
        return tile_of_keys + group() * 64 * kPanelRowBytes;
    };
    const auto release = [&](std::uint32_t barrier) {
        __syncwarp();
        if (thread % 32 == 0) {
            barrier_arrive(barrier);
        }
    };
    // Of a score gradient's 16 x 16: matrix lane / 8 is rows 8 (m % 2), columns 8 (m / 2).
    const auto my_weights = [&](int use) {
        const int lane = thread % 32;
        const int row = thread / 32 * 16 + lane / 8 % 2 * 8 + lane % 8;
        return shared.weights(use & 1) +
               static_cast<std::uint32_t>(row * kPanelRowBytes + (lane / 16 ^ lane % 8) * 16);
    };

    RingPlace<Tiling::query_stages> q;
    int uses = 0;  // of the other rings
    int tiles = 0; // that were not empty
    for (int turn = 0;; ++turn) {
        const int tile = next_tile(shared, turn);
        release(shared.tile_empty(turn & 1));
        if (tile < 0) {
            return;
        }
        const HopperBackwardWork work = backward_work<Tiling>(tile, plan, problem, buffers.offsets);
        const HopperBackwardSequence& sequence = work.sequence;
        if (work.first_key >= sequence.k_length) {
            continue;
        }
        float grad_k[kDim / 2] = {};
        float grad_v[kDim / 2] = {};
        if (work.step_begin >= work.step_end) {
            store_key_gradients<Number, Tiling>(grad_k, grad_v, tile, problem, buffers, plan);
            continue;
        }
        const int q_length = sequence.q_length;
        const int keys_left = sequence.k_length - work.first_key;
        const int level = work.first_key - (sequence.k_length - q_length); // of the first key
        // Waits for the queries of a step.
        const auto open = [&](const auto& place, int use, int step) {
            barrier_wait(shared.q_full(place.stage), place.parity);
            if (packed && (step + 1) * kStep > q_length) {
                barrier_wait(shared.grad_out_full(use & 1), ring_parity(use));
                clear_rows<kStep, kDim, kThreads>(shared.q(place.stage), q_length - step * kStep);
                clear_rows<kStep, kDim, kThreads>(shared.grad_out(use & 1),
                                                  q_length - step * kStep);
                publish_shared();
                group_wait(1, kThreads);
            }
        };
        barrier_wait(shared.k_full(), tiles & 1);
        if (packed && keys_left < Tiling::keys) {
            barrier_wait(shared.v_full(), tiles & 1);
            clear_rows<Tiling::keys, kDim, kThreads>(shared.k(), keys_left);
            clear_rows<Tiling::keys, kDim, kThreads>(shared.v(), keys_left);
            publish_shared();
            group_wait(1, kThreads);
        }
        // In parts of 64 queries: registers of a smaller array are free again earlier.
        float s[kParts][32];
        float dp[kParts][32];
        float dq[32];
        std::uint32_t p[kParts][16];
        std::uint32_t ds[kParts][16];
        int step = work.step_end - 1;
        const auto statistics = [&](int stage, int part) {
            return shared.statistics(stage) + (part * 64 + thread % 4 * 2) * 4;
        };
        const auto issue_scores = [&](int stage) {
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                issue_rows_by_rows<Number, Tiling::keys, 64, kDim, kStep>(
                    s[i], my_keys(shared.k()), shared.q(stage) + i * 64 * kPanelRowBytes);
            }
        };
        const auto issue_grads = [&](int part) {
            issue_rows_by_rows<Number, Tiling::keys, 64, kDim, kStep>(
                dp[part],
                my_keys(shared.v()),
                shared.grad_out(uses & 1) + part * 64 * kPanelRowBytes);
        };
        // Half of P': the rest follows when the next product has been issued.
        const auto begin_weights = [&](int stage) {
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                pin(s[i]);
            }
            const int first = group() * 64; // key of this warpgroup
            if (keys_left < first + 64 ||
                (plan.window_right >= 0 && step * kStep < level + first + 63 - plan.window_right) ||
                (plan.window_left >= 0 &&
                 (step + 1) * kStep > level + first + plan.window_left + 1)) {
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
                    mask_queries(s[i], my_row(), keys_left, level, plan, step * kStep + i * 64);
                }
            }
            weigh_columns<Number, 0, kParts == 1 ? 4 : 8>(
                p[0], s[0], statistics(stage, 0), to_log2);
        };
        const auto write_sum = [&] {
            pin(dq);
            if (uses > 0) {
                barrier_wait(shared.sum_empty(), (uses - 1) & 1);
            }
            store_sum(shared.sum(group()) + thread % 128 * 16, dq);
        };
        const auto publish_sum = [&] {
            publish_shared();
            release(shared.sum_full(uses & 1));
        };
        open(q, uses, step);
        issue_scores(q.stage);
        barrier_wait(shared.v_full(), tiles & 1);
        product_wait<0>();
        begin_weights(q.stage);
        const auto take_step = [&](auto last) {
            constexpr bool kLast = decltype(last)::value;
            // Else the compiler keeps what follows from these, the operands' descriptors of all
            // stages, in registers.
            asm volatile("" : "+r"(shared.base), "+r"(thread));
            const int stage = uses & 1;
            barrier_wait(shared.grad_out_full(stage), ring_parity(uses));
            issue_grads(0);
            weigh_columns<Number, kParts == 1 ? 4 : 0, 8>(
                p[kParts - 1], s[kParts - 1], statistics(q.stage, kParts - 1), to_log2);
            if constexpr (kParts > 1) {
                issue_grads(1);
            }
            issue_registers_by_tile<Number, 64, kDim, kParts>(
                grad_v, p, shared.grad_out(stage), true);
            product_wait<1>();
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                pin(dp[i]);
                score_gradients<Number>(ds[i],
                                        p[i],
                                        dp[i],
                                        statistics(q.stage, i) + kStep * 4,
                                        my_weights(uses) + i * kPanelBytes);
            }
            publish_shared();
            group_wait(1, kThreads);
            issue_panel_by_panel<Number, Tiling::keys>(
                dq,
                shared.weights(stage) + (kStep == 128 ? group() : 0) * kPanelBytes,
                shared.k() + (kStep == 128 ? 0 : group()) * kPanelBytes);
            product_wait<1>();
            pin(grad_v);
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                pin(p[i]);
            }
            release(shared.grad_out_empty(stage));
            if constexpr (!kLast) {
                if (step-- == work.step_begin) {
                    step = work.step_end - 1;
                }
                open(q.next(), uses + 1, step);
                issue_scores(q.next().stage);
            }
            issue_registers_by_tile<Number, 64, kDim, kParts>(grad_k, ds, shared.q(q.stage), true);
            if constexpr (kLast) {
                product_wait<1>();
                release(shared.keys_empty());
                write_sum();
                publish_sum();
            } else {
                product_wait<kParts + 1>();
                write_sum();
                product_wait<1>();
                begin_weights(q.next().stage);
                publish_sum();
            }
            product_wait<0>();
            pin(grad_k);
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                pin(ds[i]);
            }
            release(shared.q_empty(q.stage));
            q = q.next();
            ++uses;
        };
        for (int left = (work.step_end - work.step_begin) * plan.heads_per_kv; left > 1; --left) {
            take_step(std::false_type{});
        }
        take_step(std::true_type{});
        ++tiles;
        store_key_gradients<Number, Tiling>(grad_k, grad_v, tile, problem, buffers, plan);
    }
}

template <typename Number, typename Tiling>
__global__ void __launch_bounds__(Tiling::threads, 1)
    backward_hopper(const __grid_constant__ HopperBackwardMaps maps,
                    const Problem problem,
                    const BackwardBuffers buffers,
                    const HopperBackwardPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) // else this unit was compiled for another chip, to be
                                       // skipped
    extern __shared__ unsigned char shared_memory[];
    const HopperBackwardShared<Tiling> shared{(shared_address(shared_memory) + 1023U) & ~1023U};
    constexpr int kConsumers = Tiling::groups * 128;
    constexpr int kConsumerWarps = Tiling::groups * 4;
    if (threadIdx.x == kConsumers) {
        for (int i = 0; i < 2; ++i) {
            barrier_init(shared.grad_out_full(i), 1);
            barrier_init(shared.grad_out_empty(i), kConsumerWarps);
            barrier_init(shared.sum_full(i), kConsumerWarps);
            barrier_init(shared.tile_full(i), 1);
            barrier_init(shared.tile_empty(i), kConsumerWarps + 2);
        }
        for (int i = 0; i < Tiling::query_stages; ++i) {
            barrier_init(shared.q_full(i), 1);
            barrier_init(shared.q_empty(i), kConsumerWarps);
        }
        barrier_init(shared.k_full(), 1);
        barrier_init(shared.v_full(), 1);
        barrier_init(shared.keys_empty(), kConsumerWarps);
        barrier_init(shared.sum_empty(), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        publish_shared();
    }
    __syncthreads();
    if (threadIdx.x >= kConsumers) {
        give_registers<Tiling::producer_registers>();
        const int warp = static_cast<int>(threadIdx.x) / 32 - kConsumerWarps;
        if (threadIdx.x % 32 == 0) {
            if (warp == 0) {
                produce_backward<Tiling>(maps, problem, buffers.offsets, plan, shared);
            } else if (warp <= 2) {
                add_query_gradients<Tiling>(problem, buffers.offsets, plan, shared, warp - 1);
            }
        }
    } else {
        take_registers<Tiling::consumer_registers>();
        consume_backward<Number, Tiling>(problem, buffers, plan, shared);
    }
#endif
}

} // namespace attention
