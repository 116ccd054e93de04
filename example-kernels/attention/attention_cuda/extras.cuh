// SPDX-License-Identifier: Apache-2.0
//
// What only some models have, for the tiles of a tensor core product (mma.cuh).
#pragma once

#include "../attention_common/dropout.h"
#include "tuning.h"

namespace attention {

// ALiBi of one head, in units of log2. `level` is the key that a query is level with.
struct Bias {
    float slope;

    __device__ __forceinline__ Bias(const Extras& extras, std::int64_t batch, std::int64_t head)
        : slope(slope_of(extras, batch, head) * 1.44269504088896340736F) {}

    __device__ __forceinline__ float operator()(std::int64_t level, std::int64_t key) const {
        return slope == 0.0F ? 0.0F : -slope * fabsf(static_cast<float>(level - key));
    }
};

// Which elements of a lane's tiles are kept: bit 4 n + e for element e of tile n. Rows are queries
// row and row + 8 (row % 16 < 8), columns the keys first_key + 8 n + {0, 1}, the first one even.
template <int kTiles>
__device__ __forceinline__ std::uint32_t
kept_of_queries(const Dropout& dropout, std::int64_t row, std::int64_t first_key) {
    static_assert(kTiles <= 8);
    if (dropout.threshold == 0) {
        return 0xffffffffU;
    }
    std::uint32_t kept = 0;
#pragma unroll 1
    for (int n = 0; n < kTiles; ++n) {
        const Random4 numbers = dropout.four(row, first_key + n * 8);
        for (int e = 0; e < 4; ++e) {
            kept |= (numbers.word[e] >= dropout.threshold ? 1U : 0U) << (4 * n + e);
        }
    }
    return kept;
}

// The same with keys as rows and queries as columns, in any place.
template <int kTiles>
__device__ __forceinline__ std::uint32_t
kept_of_keys(const Dropout& dropout, std::int64_t key, std::int64_t first_row) {
    static_assert(kTiles <= 8);
    if (dropout.threshold == 0) {
        return 0xffffffffU;
    }
    std::uint32_t kept = 0;
#pragma unroll 1
    for (int i = 0; i < kTiles * 4; ++i) {
        const float factor = dropout.factor(first_row + i / 4 * 8 + i % 2, key + (i % 4) / 2 * 8);
        kept |= (factor != 0.0F ? 1U : 0U) << i;
    }
    return kept;
}

__device__ __forceinline__ float
kept_factor(const Dropout& dropout, std::uint32_t kept, int tile, int element) {
    return (kept >> (4 * tile + element) & 1U) != 0 ? dropout.grow : 0.0F;
}

// Adds the sink's weight to `lse`; returns what the result shrinks by.
__device__ __forceinline__ float add_sink(const Extras& extras, std::int64_t head, float& lse) {
    if (extras.sinks == nullptr) {
        return 1.0F;
    }
    const float sink = extras.sinks[head];
    if (sink == -INFINITY) { // a head without one
        return 1.0F;
    }
    const float most = fmaxf(lse, sink);
    const float both = most + logf(expf(lse - most) + expf(sink - most));
    const float factor = expf(lse - both);
    lse = both;
    return factor;
}

} // namespace attention
