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
constexpr int kMinThreadsPerSm = 1024; // forward: so many are to be resident (64 registers each)
constexpr int kBlockThreads = 128;     // rows that need fewer threads share a block
constexpr int kScalarThreads = 256;    // the element-by-element kernels: one row a block
constexpr int kFinalizeColumns = 32;   // the column sums: 32 columns by 8 rows a block
constexpr int kFinalizeRows = 8;

struct Spread {
    int threads;            // 0: the row does not fit in registers
    int vectors_per_thread; // 1, 2, 4 or 8
};

struct SpreadLimits {
    std::int64_t wide_rows;     // up to so many rows, spread each over as many threads as possible
    int vectors_per_thread;     // otherwise so many vectors a thread, once 8 threads work on a row
    int max_vectors_per_thread; // more are not compiled
    int max_threads;
    int max_threads_at_most_vectors; // the same with max_vectors_per_thread
};

constexpr SpreadLimits kForwardLimits{256, 4, 8, 512, 1024};
constexpr SpreadLimits kBackwardLimits{0, 2, 4, 512, 512};

// Backward: persistent blocks, so that the parameter gradients stay in registers over many rows.
constexpr int kBackwardThreadsPerSm = 512;
// At least so many rows for every partial sum: its traffic stays small beside the rows'.
constexpr int kRowsPerPartial = 16;

constexpr Spread spread(std::int64_t vectors, std::int64_t rows, const SpreadLimits& limits) {
    int per_thread = 1;
    if (rows > limits.wide_rows) {
        while (per_thread < limits.vectors_per_thread && vectors > 8 * per_thread) {
            per_thread *= 2;
        }
    }
    while (per_thread < limits.max_vectors_per_thread &&
           vectors > static_cast<std::int64_t>(per_thread) * limits.max_threads) {
        per_thread *= 2;
    }
    const int most = per_thread == limits.max_vectors_per_thread
                         ? limits.max_threads_at_most_vectors
                         : limits.max_threads;
    int threads = 4;
    while (threads < most && static_cast<std::int64_t>(threads) * per_thread < vectors) {
        threads *= 2;
    }
    if (static_cast<std::int64_t>(threads) * per_thread < vectors) {
        return {0, 0};
    }
    return {threads, per_thread};
}

static_assert(spread(16, 10000, kForwardLimits).threads == 8);
static_assert(spread(512, 10000, kForwardLimits).threads == 128);
static_assert(spread(8192, 10000, kForwardLimits).vectors_per_thread == 8);
static_assert(spread(8193, 10000, kForwardLimits).threads == 0);

} // namespace rownorm
