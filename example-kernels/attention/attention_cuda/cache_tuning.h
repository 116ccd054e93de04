// SPDX-License-Identifier: Apache-2.0
//
// Tile sizes of the attention over a cache, as data. Measured on sm_90 only.
#pragma once

#include "../attention_common/cache.h"
#include "tuning.h"

namespace attention {

struct CacheShape {
    int keys;        // of a step, a fourth for each warp
    int depth;       // entries of the ring; an entry: a step's keys or values
    int blocks;      // that share a multiprocessor of sm_90
    int wide_blocks; // the same for blocks of 16 rows
};

constexpr int cache_padded_dim(std::int64_t head_dim) {
    return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256;
}

constexpr CacheShape cache_shape(CacheFormat format, int padded_dim) {
    if (format == CacheFormat::plain) {
        return padded_dim == 64    ? CacheShape{64, 6, 3, 3}
               : padded_dim == 128 ? CacheShape{64, 4, 3, 3}
                                   : CacheShape{64, 2, 2, 2};
    }
    if (format == CacheFormat::fp8) {
        return padded_dim == 64    ? CacheShape{64, 6, 4, 3}
               : padded_dim == 128 ? CacheShape{64, 4, 4, 3}
                                   : CacheShape{64, 4, 2, 2};
    }
    if (format == CacheFormat::fp4 && padded_dim == 128) {
        return {128, 4, 3, 2};
    }
    return padded_dim == 64    ? CacheShape{128, 4, 4, 3}
           : padded_dim == 128 ? CacheShape{64, 8, 3, 3}
                               : CacheShape{64, 8, 2, 2};
}

// The rows (queries of heads that share their keys) of a block.
constexpr std::int64_t cache_block_rows(const Problem& problem) {
    return problem.max_seqlen_q * problem.heads <= 8 * problem.heads_kv ? 8 : 16;
}

template <CacheFormat kFormat, int kDim>
struct CacheTile {
    static constexpr CacheFormat format = kFormat;
    static constexpr int head_dim = kDim;
    static constexpr CacheShape shape = cache_shape(format, head_dim);
    static constexpr int keys = shape.keys;
    static constexpr int depth = shape.depth;
    static constexpr int warp_keys = keys / kWarps;
    // Beside a short row lie those of other heads, which other blocks read at about the same time;
    // but fp8 is slower so.
    static constexpr int prefetch = format == CacheFormat::fp8 ? 128 : 256;
    static constexpr int row_bytes = static_cast<int>(cache_row_bytes_of(format, head_dim));
    // Behind a row of int4: its scales, 4 bytes for 32 channels or more. Else nothing, against
    // bank conflicts.
    static constexpr int row_stride =
        row_bytes + (format == CacheFormat::int4 && head_dim == 256 ? 32 : 16);
    static constexpr int ring_bytes = depth * keys * row_stride;
    static constexpr int shared_bytes =
        ring_bytes + 16 * (head_dim + kPadding) * 2 + 2 * kWarps * 16 * 4;
    // The warps' sums take the ring's place in the end. sm_86 and sm_89 have 99 KiB.
    static_assert(kWarps * 16 * (head_dim + 8) * 4 <= ring_bytes && shared_bytes <= 99 * 1024);
};

} // namespace attention
