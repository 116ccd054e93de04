// SPDX-License-Identifier: Apache-2.0
//
// Tile sizes of the attention over a cache, as data. Measured on sm_90 only.
#pragma once

#include "tuning.h"

namespace attention {

constexpr int kCacheKeys = 64; // of a step, 16 for each warp

template <int kDim, int kDepth, int kBlocksPerMultiprocessor>
struct CacheTile {
    static constexpr int head_dim = kDim;
    static constexpr int depth = kDepth; // entries of the ring; an entry: a step's keys or values
    // How many blocks share a multiprocessor of sm_90, for the choice of the split count.
    static constexpr int blocks = kBlocksPerMultiprocessor;
    static constexpr int ring_bytes = depth * kCacheKeys * (head_dim + kPadding) * 2;
    static constexpr int shared_bytes =
        ring_bytes + 16 * (head_dim + kPadding) * 2 + 2 * kWarps * 16 * 4;
    // The warps' sums take the ring's place in the end. sm_86 and sm_89 have 99 KiB.
    static_assert(kWarps * 16 * (head_dim + 8) * 4 <= ring_bytes && shared_bytes <= 99 * 1024);
};

using CacheTile64 = CacheTile<64, 6, 3>;
using CacheTile128 = CacheTile<128, 4, 3>;
using CacheTile256 = CacheTile<256, 2, 2>;

} // namespace attention
