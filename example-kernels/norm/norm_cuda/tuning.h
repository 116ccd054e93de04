// SPDX-License-Identifier: Apache-2.0
//
// Launch parameters as data: how a row is spread over threads.
//
// A row of `vectors` 16-byte vectors is read by `threads` threads (a power of two), which keep
// `vectors_per_thread` vectors each in registers. Measured on sm_90 only.
#pragma once

#include <cstdint>

namespace rownorm {

constexpr int kVectorBytes = 16;
constexpr int kBlockThreads = 128;   // backward_rows: rows that need fewer share a block
constexpr int kScalarThreads = 256;  // the element-by-element kernels: one row a block
constexpr int kFinalizeColumns = 32; // the column sums: 32 columns a block
constexpr int kFinalizeRows = 32;    // by 32 threads down the partial sums,
constexpr int kColumnRows = 8;       // by 8 down the rows themselves
constexpr int kMaxRanks = 8;         // blocks in a cluster

// Forward.
constexpr int kForwardThreadsPerSm = 1024; // so many are to be resident (64 registers each)
constexpr int kForwardBlockThreads = 64;   // rows that need fewer share a block
constexpr int kEarlyParameters = 4;        // so many vectors of them travel while a row is summed
constexpr std::int64_t kFewRows = 256;     // spread over as many threads as possible
constexpr std::int64_t kPrefetchBytes = 2048; // rows as long as this are prefetched, once there are
constexpr std::int64_t kPrefetchRounds = 4;   // so many times as many rows as are resident

// Backward: persistent blocks, so that the parameter gradients stay in registers over many rows.
constexpr int kRingThreads = 512; // at most so many a block, and so many resident (128 registers)
constexpr int kRingVectors = 2;
constexpr int kRingStages = 4;
constexpr int kRingBlockThreads = 128; // rows that need fewer share a block
// At least so many rows for every partial sum: its traffic stays small beside the rows'.
constexpr int kRowsPerPartial = 16;
// Without clusters, and for rows with two strides: rows in registers, four vectors a thread.
constexpr int kBackwardThreadsPerSm = 512;
constexpr int kBackwardVectors = 4;

struct Spread {
    int threads;            // 0: the row does not fit in registers
    int vectors_per_thread; // 1, 4 or 8
    int ranks;              // blocks that share a row
    int slice;              // vectors of one of them
};

constexpr int threads_for(std::int64_t vectors, int per_thread) {
    const auto need = static_cast<int>((vectors + per_thread - 1) / per_thread);
    if (need > 32) {
        return (need + 31) / 32 * 32;
    }
    int threads = 4;
    while (threads < need) {
        threads *= 2;
    }
    return threads;
}

// `vectors` a row; `operands` of them are read, one or two.
constexpr Spread
forward_spread(std::int64_t vectors, std::int64_t rows, int operands, bool has_clusters) {
    int per_thread = operands == 1 && vectors >= 64 ? 8 : 4;
    if (rows <= kFewRows) {
        per_thread = vectors <= 512 ? 1 : 4;
    }
    if (vectors > 4 * 512) {
        per_thread = 8;
    }
    const int most = per_thread == 8 ? 1024 : 512;
    int ranks = 1;
    while (ranks < kMaxRanks && vectors > static_cast<std::int64_t>(ranks) * most * per_thread) {
        ranks *= 2;
    }
    if (vectors > static_cast<std::int64_t>(ranks) * most * per_thread ||
        (ranks > 1 && !has_clusters)) {
        return {0, 0, 0, 0};
    }
    const auto slice = static_cast<int>((vectors + ranks - 1) / ranks);
    return {threads_for(slice, per_thread), per_thread, ranks, slice};
}

// Backward through the ring.
constexpr Spread ring_spread(std::int64_t vectors, bool has_clusters) {
    int ranks = 1;
    while (ranks < kMaxRanks &&
           vectors > static_cast<std::int64_t>(ranks) * kRingThreads * kRingVectors) {
        ranks *= 2;
    }
    if (vectors > static_cast<std::int64_t>(ranks) * kRingThreads * kRingVectors ||
        (ranks > 1 && !has_clusters)) {
        return {0, 0, 0, 0};
    }
    const auto slice = static_cast<int>((vectors + ranks - 1) / ranks);
    return {threads_for(slice, kRingVectors), kRingVectors, ranks, slice};
}

// Backward without it: a power of two of threads.
constexpr Spread register_spread(std::int64_t vectors) {
    int threads = 4;
    while (threads < 512 && static_cast<std::int64_t>(threads) * kBackwardVectors < vectors) {
        threads *= 2;
    }
    const bool fits = static_cast<std::int64_t>(threads) * kBackwardVectors >= vectors;
    return {fits ? threads : 0, kBackwardVectors, 1, static_cast<int>(vectors)};
}

static_assert(forward_spread(512, 10000, 2, false).threads == 128);
static_assert(forward_spread(8192, 10000, 1, false).threads == 1024);
static_assert(forward_spread(8193, 10000, 1, false).threads == 0);
static_assert(forward_spread(16384, 10, 1, true).ranks == 2);
static_assert(ring_spread(1025, true).ranks == 2);

} // namespace rownorm
