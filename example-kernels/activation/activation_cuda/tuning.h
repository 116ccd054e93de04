// SPDX-License-Identifier: Apache-2.0
//
// Launch parameters as data; nothing else in this folder holds a tuned number.
#pragma once

#include <cstdint>

namespace activation {

struct Tuning {
    int vector_bytes;             // width of one load or store
    int threads_per_block;        // a power of two
    int vectors_per_thread;       // independent loads of one operand in flight, unary form
    int gated_vectors_per_thread; // the same for the gated forms, which read two operands,
    int many_vectors_per_thread;  // and where there are so many of them that blocks do not lack
};

// Measured on sm_90 only (docs/benchmarks); a memory-bound kernel is not sensitive to more.
constexpr Tuning kTuning{16, 128, 2, 2, 4};

// Results larger than this are written so that the L2 cache gives them up first.
constexpr std::int64_t kStreamedBytes = std::int64_t{32} << 20;

// Gated results of at least so many vectors count as many.
constexpr std::int64_t kManyVectors = std::int64_t{1} << 20;

constexpr int kMaxGridY = 65535;

} // namespace activation
