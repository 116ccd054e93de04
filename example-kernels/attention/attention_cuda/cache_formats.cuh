// SPDX-License-Identifier: Apache-2.0
//
// The products of a warp's queries with its keys, and of the weights with its values, for each
// format of a cache. `rows` are the warp's rows of a step in shared memory.
//
// query_column and value_column: where a format keeps channel c of the queries, and which channel
// of the result column c of tile n is. The channels of a product may be in any order, if it is the
// same on both sides.
#pragma once

#include "cache_codes.cuh"
#include "cache_tuning.h"
#include "tile.cuh"

#include <type_traits>

namespace attention {

// How many channels of a row share a scale, and how many scales a row has.
struct Groups {
    int size;
    int count;
};

// Elements of the queries' own dtype.
template <typename Element, int kDim>
struct PlainFormat {
    using Number = Element;
    using Tile = CacheTile<CacheFormat::plain, kDim>;
    using Storage = typename Number::Storage;

    static __device__ __forceinline__ int query_column(int channel) { return channel; }

    static __device__ __forceinline__ int value_column(int tile, int column) {
        return tile * 8 + column;
    }

    template <int kTiles>
    static __device__ __forceinline__ void multiply_keys(float (&s)[kTiles][4],
                                                         const Storage* q_tile,
                                                         const unsigned char* rows,
                                                         const Groups& /*groups*/) {
        multiply_rows<Number, kDim>(s, q_tile, reinterpret_cast<const Storage*>(rows), 0);
    }

    template <int kTiles>
    static __device__ __forceinline__ void multiply_values(float (&o)[kDim / 8][4],
                                                           const float (&p)[kTiles][4],
                                                           const unsigned char* rows,
                                                           const Groups& /*groups*/) {
        multiply_weights<Number, kDim>(o, p, reinterpret_cast<const Storage*>(rows));
    }
};

// Codes, widened to fp16 on the way to the tensor cores. A lane takes neighbouring channels of a
// row, by vectors: of keys a fourth, of values an eighth.
template <typename Codes, CacheFormat kFormat, int kDim>
struct QuantizedFormat {
    using Number = Float16;
    using Tile = CacheTile<kFormat, kDim>;
    using Storage = Number::Storage;

    static constexpr int kKeyChannels = kDim / 4;
    static constexpr int kKeyWords = kKeyChannels / Codes::per_word;
    static constexpr int kValueChannels = kDim / 8;
    static constexpr int kValueWords = kValueChannels / Codes::per_word;
    static constexpr int kPairs = Codes::per_word / 2; // of a word of keys
    static constexpr int kSteps = kPairs / 2;          // products for a word of keys
    // Scales for the channels of a lane.
    static constexpr int kKeyScales =
        Codes::groups_at_once != 0 && kKeyChannels > Codes::groups_at_once
            ? kKeyChannels / Codes::groups_at_once
            : 1;
    using Scale = typename Codes::Scale;

    static __device__ __forceinline__ int query_column(int channel) {
        const int lane = channel / kKeyChannels;
        const int word = channel % kKeyChannels / Codes::per_word;
        const int place = channel % Codes::per_word;
        // The pair and the half of it with this channel.
        const int pair = word * kPairs + (Codes::neighbours ? place / 2 : place % kPairs);
        const int half = Codes::neighbours ? place % 2 : place / kPairs;
        return pair / 2 * 16 + pair % 2 * 8 + 2 * lane + half;
    }

    static __device__ __forceinline__ int value_column(int tile, int column) {
        return column * kValueChannels + tile;
    }

    template <int kWords>
    static __device__ __forceinline__ void load_words(std::uint32_t (&words)[kWords],
                                                      const unsigned char* source) {
        using Vector = std::conditional_t<kWords % 4 == 0,
                                          uint4,
                                          std::conditional_t<kWords == 2, uint2, std::uint32_t>>;
        constexpr int kVectors = kWords * 4 / static_cast<int>(sizeof(Vector));
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
            *reinterpret_cast<Vector*>(&words[i * (kWords / kVectors)]) =
                reinterpret_cast<const Vector*>(source)[i];
        }
    }

    // The pair (scale, zero) of a row for `channel`.
    static __device__ __forceinline__ std::uint32_t
    scale_bits(const unsigned char* row, int channel, const Groups& groups) {
        if constexpr (kFormat != CacheFormat::int4) {
            return 0;
        }
        return reinterpret_cast<const std::uint32_t*>(
            row + Tile::row_bytes)[min(channel / groups.size, groups.count - 1)];
    }

    template <int kTiles>
    static __device__ __forceinline__ void multiply_keys(float (&s)[kTiles][4],
                                                         const Storage* q_tile,
                                                         const unsigned char* rows,
                                                         const Groups& groups) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int t = lane % 4;
        const Storage* q_row = q_tile + lane % 16 * (kDim + kPadding) + lane / 16 * 8;
        const unsigned char* row = rows + lane / 4 * Tile::row_stride;
        std::uint32_t words[kTiles][kKeyWords];
        Scale scale[kTiles][kKeyScales];
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
            load_words(words[n], row + t * (kKeyWords * 4));
#pragma unroll
            for (int i = 0; i < kKeyScales; ++i) {
                const std::uint32_t bits = scale_bits(row, t * kKeyChannels + i * 32, groups);
                scale[n][i] = Codes::scale_of(bits, bits);
            }
            row += 8 * Tile::row_stride;
        }
#pragma unroll
        for (int word = 0; word < kKeyWords; ++word) {
            std::uint32_t a[kSteps][4];
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                load_matrices(a[step], q_row + (word * kSteps + step) * 16);
            }
#pragma unroll
            for (int n = 0; n < kTiles; ++n) {
                std::uint32_t pairs[kPairs];
                Codes::from_row(pairs, words[n][word], scale[n][word * kKeyScales / kKeyWords]);
#pragma unroll
                for (int step = 0; step < kSteps; ++step) {
                    Number::multiply_add(s[n], a[step], pairs[2 * step], pairs[2 * step + 1]);
                }
            }
        }
    }

    template <int kTiles>
    static __device__ __forceinline__ void multiply_values(float (&o)[kDim / 8][4],
                                                           const float (&p)[kTiles][4],
                                                           const unsigned char* rows,
                                                           const Groups& groups) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int g = lane / 4;
        const int t = lane % 4;
#pragma unroll
        for (int step = 0; step < kTiles; step += 2) {
            const std::uint32_t weights[4] = {Number::pack(p[step][0], p[step][1]),
                                              Number::pack(p[step][2], p[step][3]),
                                              Number::pack(p[step + 1][0], p[step + 1][1]),
                                              Number::pack(p[step + 1][2], p[step + 1][3])};
            std::uint32_t words[4][kValueWords];
            std::uint32_t bits[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int key = step * 8 + 2 * t + i % 2 + i / 2 * 8;
                const unsigned char* row = rows + key * Tile::row_stride;
                load_words(words[i], row + g * (kValueWords * 4));
                bits[i] = scale_bits(row, g * kValueChannels, groups);
            }
            const Scale low = Codes::scale_of(bits[0], bits[1]);
            const Scale high = Codes::scale_of(bits[2], bits[3]);
#pragma unroll
            for (int word = 0; word < kValueWords; ++word) {
                std::uint32_t b0[Codes::per_word];
                std::uint32_t b1[Codes::per_word];
                Codes::from_rows(b0, words[0][word], words[1][word], low);
                Codes::from_rows(b1, words[2][word], words[3][word], high);
#pragma unroll
                for (int i = 0; i < Codes::per_word; ++i) {
                    Number::multiply_add(o[word * Codes::per_word + i], weights, b0[i], b1[i]);
                }
            }
        }
    }
};

template <int kDim>
using Fp8Format = QuantizedFormat<Codes8, CacheFormat::fp8, kDim>;
template <int kDim>
using Int4Format = QuantizedFormat<Codes4, CacheFormat::int4, kDim>;

} // namespace attention
