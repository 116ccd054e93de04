// SPDX-License-Identifier: Apache-2.0
//
// The two products of a warp's keys and values with its queries and weights, for each format of a
// cache: keys, and channels of the values, are the rows of the results, queries the columns. A
// group of 8 queries is a tile of columns; a group of 16 keys of a step, or of 16 channels, one of
// rows. `rows` are the warp's rows of a step in shared memory.
//
// query_column and value_channel: where a format keeps channel c of the queries, and which channel
// row r of tile m of the result is. The channels of a product may be in any order, if it is the
// same on both sides.
#pragma once

#include "cache_codes.cuh"
#include "cache_rows.cuh"
#include "cache_tuning.h"
#include "tile.cuh"

#include <type_traits>

namespace attention {

// Where a lane's scales are, in bytes from the begin of a row; its channels may have some.
struct ScalePlaces {
    int key[4];
    int value[2];
    bool powers; // fp4
};

// The queries of one step of 16 channels, as the right operand: tile n of 8 queries is b[n]. Two
// steps at once by one instruction.
template <int kQueryTiles, int kDim, typename Storage>
__device__ __forceinline__ void
load_queries(std::uint32_t (&b)[2][kQueryTiles][2], const Storage* q_tile, int step) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < kQueryTiles; ++n) {
        std::uint32_t r[4];
        load_matrices(r,
                      q_tile + (n * 8 + lane % 8) * (kDim + kPadding) + step * 16 + lane / 8 * 8);
        b[0][n][0] = r[0];
        b[0][n][1] = r[1];
        b[1][n][0] = r[2];
        b[1][n][1] = r[3];
    }
}

// Sums over the channels of a thread's queries (column e of tile n); all of them, and those in odd
// pairs. Only for codes with a scale a row.
template <int kQueryTiles>
struct QuerySums {
    float all[kQueryTiles][2];
    float odd[kQueryTiles][2];
};

// Elements of the queries' own dtype.
template <typename Element, int kDim>
struct PlainFormat {
    using Number = Element;
    using Tile = CacheTile<CacheFormat::plain, kDim>;
    using Storage = typename Number::Storage;

    static __device__ __forceinline__ int query_column(int channel) { return channel; }

    static __device__ __forceinline__ int value_channel(int tile, int row) {
        return tile * 16 + row;
    }

    static __device__ __forceinline__ ScalePlaces scale_places(const Quantization&,
                                                               const CacheHead&,
                                                               const CacheHead&) {
        return {};
    }

    template <int kQueryTiles>
    static __device__ __forceinline__ QuerySums<kQueryTiles> query_sums(const Storage*) {
        return {};
    }

    // What the weight of key 8 i + g is to be multiplied by.
    static __device__ __forceinline__ float weight_factor(const unsigned char*, int) {
        return 1.0F;
    }

    // s[m][n] += keys of tile m times queries of tile n.
    template <int kKeyTiles, int kQueryTiles>
    static __device__ __forceinline__ void multiply_keys(float (&s)[kKeyTiles][kQueryTiles][4],
                                                         const Storage* q_tile,
                                                         const unsigned char* rows,
                                                         const ScalePlaces& /*places*/,
                                                         const QuerySums<kQueryTiles>& /*sums*/) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const unsigned char* row = rows + lane % 16 * Tile::row_stride + lane / 16 * 16;
#pragma unroll
        for (int d = 0; d < kDim / 16; d += 2) {
            std::uint32_t b[2][kQueryTiles][2];
            load_queries<kQueryTiles, kDim>(b, q_tile, d);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
#pragma unroll
                for (int m = 0; m < kKeyTiles; ++m) {
                    std::uint32_t a[4];
                    load_matrices(a, row + m * 16 * Tile::row_stride + (d + half) * 32);
#pragma unroll
                    for (int n = 0; n < kQueryTiles; ++n) {
                        Number::multiply_add(s[m][n], a, b[half][n][0], b[half][n][1]);
                    }
                }
            }
        }
    }

    // o[m][n] += channels of tile m of the values times weights of tile n, over a step's keys.
    template <int kKeyTiles, int kQueryTiles>
    static __device__ __forceinline__ void
    multiply_values(float (&o)[kDim / 16][kQueryTiles][4],
                    const std::uint32_t (&p)[kKeyTiles][kQueryTiles][2],
                    const unsigned char* rows,
                    const ScalePlaces& /*places*/) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const unsigned char* row =
            rows + (lane / 16 * 8 + lane % 8) * Tile::row_stride + lane / 8 % 2 * 16;
#pragma unroll
        for (int step = 0; step < kKeyTiles; ++step) {
#pragma unroll
            for (int m = 0; m < kDim / 16; ++m) {
                std::uint32_t a[4];
                load_matrices_transposed(a, row + step * 16 * Tile::row_stride + m * 32);
#pragma unroll
                for (int n = 0; n < kQueryTiles; ++n) {
                    Number::multiply_add(o[m][n], a, p[step][n][0], p[step][n][1]);
                }
            }
        }
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
    static constexpr int kSteps = kPairs / 2;          // of 16 channels, for a word of keys

    // Scales for the channels of a lane.
    static constexpr int scales_for(int channels) {
        return Codes::least_group != 0 && channels > Codes::least_group
                   ? channels / Codes::least_group
                   : 1;
    }

    static constexpr int kKeyScales = scales_for(kKeyChannels);
    static constexpr int kValueScales = scales_for(kValueChannels);
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

    static __device__ __forceinline__ int value_channel(int tile, int row) {
        return row % 8 * kValueChannels + 2 * tile + row / 8;
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

    static __device__ __forceinline__ ScalePlaces scale_places(const Quantization& quantization,
                                                               const CacheHead& keys,
                                                               const CacheHead& values) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        ScalePlaces places{};
        places.powers = quantization.powers;
        if constexpr (cache_scale_bytes_of(kFormat) != 0) {
            constexpr int kBytes = static_cast<int>(cache_scale_bytes_of(kFormat));
            const int group = static_cast<int>(quantization.group);
            const auto place = [&](int channel, const CacheHead& head) {
                return Tile::row_bytes + min(channel / group * kBytes, head.scale_bytes - kBytes);
            };
#pragma unroll
            for (int i = 0; i < kKeyScales; ++i) {
                places.key[i] = place(lane % 4 * kKeyChannels + i * Codes::least_group, keys);
            }
#pragma unroll
            for (int i = 0; i < kValueScales; ++i) {
                places.value[i] = place(lane / 4 * kValueChannels + i * Codes::least_group, values);
            }
        }
        return places;
    }

    // The scale at a place of a row: a pair (scale, zero), or a scale as fp16.
    static __device__ __forceinline__ std::uint32_t
    scale_bits(const unsigned char* row, int place, bool powers) {
        if constexpr (kFormat == CacheFormat::int4) {
            return *reinterpret_cast<const std::uint32_t*>(row + place);
        } else if constexpr (kFormat == CacheFormat::fp4) {
            const std::uint32_t byte = row[place];
            const __half scale = powers ? __float2half_rn(__uint_as_float(byte << 23))
                                        : __low2half(pair_of(Codes8::widen(byte)));
            return __half_as_ushort(scale);
        }
        return 0;
    }

    template <int kQueryTiles>
    static __device__ __forceinline__ QuerySums<kQueryTiles> query_sums(const Storage* q_tile) {
        QuerySums<kQueryTiles> sums{};
        if constexpr (Codes::scale_a_row) {
            const int lane = static_cast<int>(threadIdx.x) % 32;
            const int g = lane / 4;
#pragma unroll
            for (int i = 0; i < 2 * kQueryTiles; ++i) {
                const Storage* query =
                    q_tile + (i / 2 * 8 + lane % 4 * 2 + i % 2) * (kDim + kPadding);
                float mine = 0.0F; // of 16 channels 2g and 2g + 1: g from 4 on has odd pairs
                for (int c = 2 * g; c < kDim; c += 16) {
                    const float2 two = __half22float2(*reinterpret_cast<const __half2*>(query + c));
                    mine += two.x + two.y;
                }
                float odd = g >= 4 ? mine : 0.0F;
#pragma unroll
                for (int step = 4; step < 32; step *= 2) {
                    mine += __shfl_xor_sync(0xffffffffU, mine, step);
                    odd += __shfl_xor_sync(0xffffffffU, odd, step);
                }
                sums.all[i / 2][i % 2] = mine;
                sums.odd[i / 2][i % 2] = odd;
            }
        }
        return sums;
    }

    static __device__ __forceinline__ float weight_factor(const unsigned char* rows, int i) {
        if constexpr (!Codes::scale_a_row) {
            return 1.0F;
        }
        const int row = i * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
        return __low2float(
            pair_of(scale_bits(rows + row * Tile::row_stride, Tile::row_bytes, false)));
    }

    // The products so far are with the codes themselves: takes the zero point, and the scale.
    template <int kKeyTiles, int kQueryTiles>
    static __device__ __forceinline__ void scale_products(float (&s)[kKeyTiles][kQueryTiles][4],
                                                          const unsigned char* rows,
                                                          const QuerySums<kQueryTiles>& sums) {
        const int g = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
        for (int i = 0; i < 2 * kKeyTiles; ++i) {
            const float2 scale = __half22float2(
                pair_of(scale_bits(rows + (i * 8 + g) * Tile::row_stride, Tile::row_bytes, false)));
#pragma unroll
            for (int n = 0; n < kQueryTiles; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& value = s[i / 2][n][i % 2 * 2 + e];
                    value = scale.x * fmaf(-scale.y, sums.all[n][e], value);
                }
            }
        }
    }

    template <int kKeyTiles, int kQueryTiles>
    static __device__ __forceinline__ void multiply_keys(float (&s)[kKeyTiles][kQueryTiles][4],
                                                         const Storage* q_tile,
                                                         const unsigned char* rows,
                                                         const ScalePlaces& places,
                                                         const QuerySums<kQueryTiles>& sums) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if constexpr (Codes::scale_a_row) {
#pragma unroll
            for (int i = 0; i < 4 * kKeyTiles * kQueryTiles; ++i) {
                const int n = i / 4 % kQueryTiles;
                s[i / 4 / kQueryTiles][n][i % 4] = -Codes::odd_excess * sums.odd[n][i % 2];
            }
        }
        // Half h of tile m: key 8 h + g.
        std::uint32_t words[kKeyTiles][2][kKeyWords];
        Scale scale[kKeyTiles][2][kKeyScales];
#pragma unroll
        for (int i = 0; i < 2 * kKeyTiles; ++i) {
            const unsigned char* row = rows + (i * 8 + lane / 4) * Tile::row_stride;
            load_words(words[i / 2][i % 2], row + lane % 4 * (kKeyWords * 4));
#pragma unroll
            for (int group = 0; group < kKeyScales && !Codes::scale_a_row; ++group) {
                const std::uint32_t bits = scale_bits(row, places.key[group], places.powers);
                scale[i / 2][i % 2][group] = Codes::scale_of(bits, bits);
            }
        }
        constexpr int kWordsAtOnce = 2 / kSteps;
#pragma unroll
        for (int word = 0; word < kKeyWords; word += kWordsAtOnce) {
            std::uint32_t b[2][kQueryTiles][2];
            load_queries<kQueryTiles, kDim>(b, q_tile, word * kSteps);
#pragma unroll
            for (int m = 0; m < kKeyTiles; ++m) {
                std::uint32_t pairs[2][4]; // of two steps, for each half
#pragma unroll
                for (int half = 0; half < 2; ++half) {
#pragma unroll
                    for (int w = 0; w < kWordsAtOnce; ++w) {
                        Codes::from_row(&pairs[half][w * kPairs],
                                        words[m][half][word + w],
                                        scale[m][half][word * kKeyScales / kKeyWords]);
                    }
                }
#pragma unroll
                for (int step = 0; step < 2; ++step) {
                    const std::uint32_t a[4] = {pairs[0][2 * step],
                                                pairs[1][2 * step],
                                                pairs[0][2 * step + 1],
                                                pairs[1][2 * step + 1]};
#pragma unroll
                    for (int n = 0; n < kQueryTiles; ++n) {
                        Number::multiply_add(s[m][n], a, b[step][n][0], b[step][n][1]);
                    }
                }
            }
        }
        if constexpr (Codes::scale_a_row) {
            scale_products(s, rows, sums);
        }
    }

    template <int kKeyTiles, int kQueryTiles>
    static __device__ __forceinline__ void
    multiply_values(float (&o)[kDim / 16][kQueryTiles][4],
                    const std::uint32_t (&p)[kKeyTiles][kQueryTiles][2],
                    const unsigned char* rows,
                    const ScalePlaces& places) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int step = 0; step < kKeyTiles; ++step) {
            std::uint32_t words[4][kValueWords]; // of keys 2t, 2t+1, 2t+8, 2t+9
            Scale scale[2][kValueScales];        // of the first two keys, of the others
            const unsigned char* row = rows + (step * 16 + lane % 4 * 2) * Tile::row_stride;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const unsigned char* next = row + Tile::row_stride;
                load_words(words[2 * i], row + lane / 4 * (kValueWords * 4));
                load_words(words[2 * i + 1], next + lane / 4 * (kValueWords * 4));
#pragma unroll
                for (int group = 0; group < kValueScales; ++group) {
                    scale[i][group] =
                        Codes::scale_of(scale_bits(row, places.value[group], places.powers),
                                        scale_bits(next, places.value[group], places.powers));
                }
                row += 8 * Tile::row_stride;
            }
#pragma unroll
            for (int word = 0; word < kValueWords; ++word) {
                std::uint32_t first[Codes::per_word];
                std::uint32_t second[Codes::per_word];
                const int group = word * kValueScales / kValueWords;
                Codes::from_rows(first, words[0][word], words[1][word], scale[0][group]);
                Codes::from_rows(second, words[2][word], words[3][word], scale[1][group]);
#pragma unroll
                for (int i = 0; i < Codes::per_word; i += 2) {
                    const std::uint32_t a[4] = {first[i], first[i + 1], second[i], second[i + 1]};
                    const int m = (word * Codes::per_word + i) / 2;
#pragma unroll
                    for (int n = 0; n < kQueryTiles; ++n) {
                        Number::multiply_add(o[m][n], a, p[step][n][0], p[step][n][1]);
                    }
                }
            }
        }
    }
};

template <int kDim>
using Fp8Format = QuantizedFormat<Codes8, CacheFormat::fp8, kDim>;
template <int kDim>
using Fp4Format = QuantizedFormat<Codes4F, CacheFormat::fp4, kDim>;
template <int kDim>
using Int4Format = QuantizedFormat<Codes4, CacheFormat::int4, kDim>;
template <int kDim>
using Int4RowFormat = QuantizedFormat<Codes4Row, CacheFormat::int4, kDim>;

} // namespace attention
