// SPDX-License-Identifier: Apache-2.0
//
// Versions of the row loops for one instruction set. All add in the same order and none contracts
// a product and a sum, so all give the same bits.
#pragma once

#include "../norm_common/norm.h"

namespace rownorm {

constexpr int kRowLanes = 64;    // interleaved sums along a row
constexpr int kColumnLanes = 16; // interleaved sums down a column

// What every row needs, prepared once: cols values each.
struct RowParameters {
    const float* weight; // the factor: gemma's 1 is added
    const float* bias;   // layer only
};

struct RowLoops {
    // Rows [begin, end).
    void (*forward)(
        const Problem&, const ForwardBuffers&, const RowParameters&, std::int64_t, std::int64_t);
    void (*backward)(
        const Problem&, const BackwardBuffers&, const RowParameters&, std::int64_t, std::int64_t);
    // Columns [begin, end): the sums for grad_weight and grad_bias, fp32, from `begin` on.
    void (*columns)(
        const Problem&, const BackwardBuffers&, float*, float*, std::int64_t, std::int64_t);
};

// The best loops that this processor has; null: the portable ones of norm.cpp serve.
const RowLoops* row_loops();

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
const RowLoops& row_loops_avx2();
const RowLoops& row_loops_avx512();
#endif

} // namespace rownorm
