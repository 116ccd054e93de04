// SPDX-License-Identifier: Apache-2.0
//
// Which probabilities a dropout keeps: a function of the seed and the place of the pair alone, so
// that every kernel, forward and backward, finds the same.
#pragma once

#include "attention.h"

namespace attention {

struct Random4 {
    std::uint32_t word[4];
};

// Philox 4x32 with 10 rounds.
ATTENTION_INLINE Random4 philox(std::uint64_t seed, Random4 counter) {
    auto low = static_cast<std::uint32_t>(seed);
    auto high = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t first = std::uint64_t{0xD2511F53U} * counter.word[0];
        const std::uint64_t second = std::uint64_t{0xCD9E8D57U} * counter.word[2];
        counter = {{static_cast<std::uint32_t>(second >> 32) ^ counter.word[1] ^ low,
                    static_cast<std::uint32_t>(second),
                    static_cast<std::uint32_t>(first >> 32) ^ counter.word[3] ^ high,
                    static_cast<std::uint32_t>(first)}};
        low += 0x9E3779B9U;
        high += 0xBB67AE85U;
    }
    return counter;
}

// The dropout of one head of one sequence.
struct Dropout {
    std::uint64_t seed;
    std::uint32_t offset;
    std::uint32_t head;      // counted over all sequences
    std::uint32_t threshold; // a number below it is dropped; 0: nothing is
    float grow;              // what the kept ones are multiplied by

    // The numbers of rows i and i + 8, keys j and j + 1, where i % 16 < 8 and j is even: of row
    // i + 8 h and key j + c in word[2 h + c]. A lane of a tensor core product has these four.
    ATTENTION_INLINE Random4 four(std::int64_t row, std::int64_t key) const {
        return philox(seed,
                      {{static_cast<std::uint32_t>(key / 2),
                        static_cast<std::uint32_t>(row / 16 * 8 + row % 8),
                        head,
                        offset}});
    }

    // 0, or `grow`.
    ATTENTION_INLINE float factor(std::int64_t row, std::int64_t key) const {
        if (threshold == 0) {
            return grow;
        }
        const Random4 numbers = four(row, key);
        return numbers.word[row % 16 / 8 * 2 + key % 2] >= threshold ? grow : 0.0F;
    }
};

ATTENTION_INLINE Dropout dropout_of(const Extras& extras,
                                    const Problem& problem,
                                    std::int64_t batch,
                                    std::int64_t head) {
    Dropout d{};
    d.grow = 1.0F;
    if (extras.dropout > 0.0F) {
        d.seed = static_cast<std::uint64_t>(extras.rng_state[0]);
        d.offset = static_cast<std::uint32_t>(extras.rng_state[1]);
        d.head = static_cast<std::uint32_t>(batch * problem.heads + head);
        d.threshold = static_cast<std::uint32_t>(extras.dropout * 4294967296.0F);
        d.grow = 1.0F / (1.0F - extras.dropout);
    }
    return d;
}

} // namespace attention
