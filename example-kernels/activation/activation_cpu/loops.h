// SPDX-License-Identifier: Apache-2.0
//
// Versions of the loops for one instruction set. Every element is computed alone, and all versions
// use the same operations, so they give the same bits.
#pragma once

#include "../activation_common/activation.h"

namespace activation {

struct Loops {
    // Elements [begin, end) of the output.
    void (*forward)(
        const Activation&, const ForwardBuffers&, Shape, std::int64_t begin, std::int64_t end);
    void (*backward)(
        const Activation&, const BackwardBuffers&, Shape, std::int64_t begin, std::int64_t end);
};

// The best loops that this processor has; null: the plain ones of activation.cpp serve.
const Loops* loops();

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
const Loops& loops_avx2();
const Loops& loops_avx512();
#endif

} // namespace activation
