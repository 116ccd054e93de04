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
constexpr int kFewFinalizeRows = 8;  // by 8 down
constexpr int kFewPartials = 64;     // so many or fewer,
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
constexpr int kRingStages = 5;
constexpr int kRingLag = 2;            // so many turns later is a row written that was summed
constexpr int kRingBlockThreads = 128; // rows that need fewer share a block
// At least so many rows for every partial sum: its traffic stays small beside the rows'.
constexpr int kRowsPerPartial = 16;
// Without clusters, and for rows with two strides: rows in registers, four vectors a thread.
constexpr int kBackwardThreadsPerSm = 512;
constexpr int kBackwardVectors = 4;

struct Spread {
    int threads;            // of one row; 0: the row does not fit in registers
    int vectors_per_thread; // of one row
    int rows_per_thread;    // a thread holds vectors of so many rows
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

// How rows of up to `vectors` vectors are held. Short ones: several of them a thread, so that their
// loads are under way together and the parameters are unpacked once. Long ones: few threads with
// many vectors, or few vectors at a time where a second operand or the parameters need registers.
struct Holding {
    std::int64_t vectors;
    int vectors_per_thread;
    int rows_per_thread;
};

enum class Work : std::uint8_t { rms, add, layer, quantized };

constexpr Holding
holding(Work work, std::int64_t vectors, std::int64_t rows, bool even, bool has_clusters) {
    constexpr int kMost = 1024; // threads
    if (rows <= kFewRows && vectors <= 512) {
        return {512, 1, 1};
    }
    if (even && rows > kFewRows) {
        if (work != Work::layer && vectors <= (work == Work::quantized ? 16 : 32)) {
            return {32, 1, 4};
        }
        if (vectors <= 64) {
            return {64, 2, 2};
        }
    }
    const bool many = work == Work::layer || work == Work::quantized; // instructions an element
    const std::int64_t four = work == Work::layer ? 128 : 64;
    if (rows <= kFewRows || !many || vectors <= four) {
        const bool shared = work == Work::add && has_clusters;
        if (vectors <= 4 * kMost * (shared ? kMaxRanks : 1)) {
            return {4 * kMost, 4, 1};
        }
    }
    return {8 * kMost, 8, 1};
}

// `even`: every tensor has one stride between its rows.
constexpr Spread
forward_spread(Work work, std::int64_t vectors, std::int64_t rows, bool even, bool has_clusters) {
    const Holding hold = holding(work, vectors, rows, even, has_clusters);
    int ranks = 1;
    while (ranks < kMaxRanks && vectors > ranks * hold.vectors) {
        ranks *= 2;
    }
    if (vectors > ranks * hold.vectors || (ranks > 1 && !has_clusters)) {
        return {0, 0, 0, 0, 0};
    }
    std::int64_t part = (vectors + ranks - 1) / ranks;
    if (ranks > 1) {
        part = (part + 31) / 32 * 32; // whole groups of a quantised row
    }
    const auto slice = static_cast<int>(part);
    return {threads_for(slice, hold.vectors_per_thread),
            hold.vectors_per_thread,
            hold.rows_per_thread,
            ranks,
            slice};
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
        return {0, 0, 0, 0, 0};
    }
    const auto slice = static_cast<int>((vectors + ranks - 1) / ranks);
    return {threads_for(slice, kRingVectors), kRingVectors, 1, ranks, slice};
}

// Rows side by side in a block of the ring: a full block where there are many. Centred rows take
// more instructions: small blocks, whose waits do not coincide.
constexpr int ring_rows(int threads, std::int64_t rows, int multiprocessors, bool centred) {
    const int least = threads < kRingBlockThreads ? kRingBlockThreads / threads : 1;
    const int most = kRingThreads / threads;
    const std::int64_t share = rows / multiprocessors;
    return centred || share < least ? least : share < most ? static_cast<int>(share) : most;
}

// Backward without it: a power of two of threads.
constexpr Spread register_spread(std::int64_t vectors) {
    int threads = 4;
    while (threads < 512 && static_cast<std::int64_t>(threads) * kBackwardVectors < vectors) {
        threads *= 2;
    }
    const bool fits = static_cast<std::int64_t>(threads) * kBackwardVectors >= vectors;
    return {fits ? threads : 0, kBackwardVectors, 1, 1, static_cast<int>(vectors)};
}

static_assert(forward_spread(Work::add, 512, 10000, true, false).threads == 128);
static_assert(forward_spread(Work::rms, 8192, 10000, true, false).threads == 1024);
static_assert(forward_spread(Work::rms, 8193, 10000, true, false).threads == 0);
static_assert(forward_spread(Work::rms, 16384, 10, true, true).ranks == 2);
static_assert(forward_spread(Work::layer, 16, 10000, true, true).rows_per_thread == 2);
static_assert(forward_spread(Work::layer, 16, 10000, false, true).rows_per_thread == 1);
static_assert(ring_spread(1025, true).ranks == 2);

} // namespace rownorm
