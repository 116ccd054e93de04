// SPDX-License-Identifier: Apache-2.0
//
// From the numbers of a quantised cache to pairs of fp16, in registers.
//
// A word has `per_word` codes. from_row: a pair is two channels of one row. from_rows: a pair is
// one channel of two rows; pair i is channel i of the word.
#pragma once

#include "../attention_common/cache.h"

#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace attention {

__device__ __forceinline__ std::uint32_t bits_of(__half2 pair) {
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ __forceinline__ __half2 pair_of(std::uint32_t bits) {
    return *reinterpret_cast<const __half2*>(&bits);
}

// e4m3: fp16 holds each of its numbers.
struct Codes8 {
    static constexpr int per_word = 4;
    static constexpr int least_group = 0; // no scales
    static constexpr bool scale_a_row = false;

    struct Scale {};

    static constexpr bool neighbours = true; // a pair of one row: channels 2 i and 2 i + 1

    static __device__ __forceinline__ Scale scale_of(std::uint32_t, std::uint32_t) { return {}; }

    static __device__ __forceinline__ std::uint32_t widen(std::uint32_t two) {
        const __half2_raw pair =
            __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(two), __NV_E4M3);
        return bits_of(__half2(pair));
    }

    static __device__ __forceinline__ void
    from_row(std::uint32_t* pairs, std::uint32_t word, const Scale&) {
        pairs[0] = widen(word & 0xffffU);
        pairs[1] = widen(word >> 16);
    }

    static __device__ __forceinline__ void
    from_rows(std::uint32_t (&pairs)[4], std::uint32_t first, std::uint32_t second, const Scale&) {
        const std::uint32_t low = __byte_perm(first, second, 0x5140);
        const std::uint32_t high = __byte_perm(first, second, 0x7362);
        pairs[0] = widen(low & 0xffffU);
        pairs[1] = widen(low >> 16);
        pairs[2] = widen(high & 0xffffU);
        pairs[3] = widen(high >> 16);
    }
};

// 4 bits with a scale and a zero point: set in the low bits of the fp16 number 1024 a code c
// makes 1024 + c, four bits higher in the number 64 it makes 64 + c; the subtraction is exact.
struct Codes4 {
    static constexpr int per_word = 8;
    static constexpr int least_group = 32; // channels that share a scale
    static constexpr bool scale_a_row = false;

    struct Scale {
        __half2 scale;
        __half2 from_1024; // -(1024 + zero)
        __half2 from_64;
    };

    static constexpr bool neighbours = false; // but channels i and i + 4

    // For pairs of rows with these (scale, zero) each.
    static __device__ __forceinline__ Scale scale_of(std::uint32_t first, std::uint32_t second) {
        const __half2 zero = pair_of(__byte_perm(first, second, 0x7632));
        return {pair_of(__byte_perm(first, second, 0x5410)),
                __hsub2(__float2half2_rn(-1024.0F), zero),
                __hsub2(__float2half2_rn(-64.0F), zero)};
    }

    // word & mask | bits, in one instruction.
    static __device__ __forceinline__ __half2 set_below(std::uint32_t word,
                                                        std::uint32_t mask,
                                                        std::uint32_t bits) {
        std::uint32_t result;
        asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(bits));
        return pair_of(result);
    }

    // Codes 0 and 1 of each half of the word.
    static __device__ __forceinline__ void
    widen(std::uint32_t& even, std::uint32_t& odd, std::uint32_t word, const Scale& s) {
        const __half2 low = set_below(word, 0x000f000fU, 0x64006400U);
        const __half2 high = set_below(word, 0x00f000f0U, 0x54005400U);
        even = bits_of(__hmul2(__hadd2(low, s.from_1024), s.scale));
        odd = bits_of(__hmul2(__hadd2(high, s.from_64), s.scale));
    }

    static __device__ __forceinline__ void
    from_row(std::uint32_t* pairs, std::uint32_t word, const Scale& s) {
        widen(pairs[0], pairs[1], word, s);
        widen(pairs[2], pairs[3], word >> 8, s);
    }

    static __device__ __forceinline__ void from_rows(std::uint32_t (&pairs)[8],
                                                     std::uint32_t first,
                                                     std::uint32_t second,
                                                     const Scale& s) {
        const std::uint32_t low = __byte_perm(first, second, 0x5410);
        const std::uint32_t high = __byte_perm(first, second, 0x7632);
        widen(pairs[0], pairs[1], low, s);
        widen(pairs[2], pairs[3], low >> 8, s);
        widen(pairs[4], pairs[5], high, s);
        widen(pairs[6], pairs[7], high >> 8, s);
    }
};

// e2m1 with a scale, which comes here as fp16 in the low half. Of an fp16 number that is one of
// these the low byte is 0, so that a table has all of their high bytes.
struct Codes4F {
    static constexpr int per_word = 8;
    static constexpr int least_group = 16;
    static constexpr bool scale_a_row = false;
    static constexpr bool neighbours = true;

    struct Scale {
        __half2 scale;
    };

    static __device__ __forceinline__ Scale scale_of(std::uint32_t first, std::uint32_t second) {
        return {pair_of(__byte_perm(first, second, 0x5410))};
    }

    // The high bytes of the four codes in the low half.
    static __device__ __forceinline__ std::uint32_t high_bytes(std::uint32_t codes) {
        const std::uint32_t magnitudes = __byte_perm(0x3e3c3800U, 0x46444240U, codes & 0x7777U);
        std::uint32_t signs; // bytes 0xff where a code is negative, else 0x80
        asm("prmt.b32 %0, %1, %1, %2;" : "=r"(signs) : "r"(0x80808080U), "r"(codes));
        return magnitudes | (signs << 1 & 0x80808080U);
    }

    // The pairs of bytes 0 1 and 2 3.
    static __device__ __forceinline__ void
    widen(std::uint32_t* pairs, std::uint32_t bytes, const Scale& s) {
        pairs[0] = bits_of(__hmul2(pair_of(__byte_perm(bytes, 0, 0x1404)), s.scale));
        pairs[1] = bits_of(__hmul2(pair_of(__byte_perm(bytes, 0, 0x3424)), s.scale));
    }

    static __device__ __forceinline__ void
    from_row(std::uint32_t* pairs, std::uint32_t word, const Scale& s) {
        widen(pairs, high_bytes(word), s);
        widen(pairs + 2, high_bytes(word >> 16), s);
    }

    static __device__ __forceinline__ void from_rows(std::uint32_t (&pairs)[8],
                                                     std::uint32_t first,
                                                     std::uint32_t second,
                                                     const Scale& s) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::uint32_t a = high_bytes(first >> (16 * half));
            const std::uint32_t b = high_bytes(second >> (16 * half));
            widen(pairs + 4 * half, __byte_perm(a, b, 0x5140), s);
            widen(pairs + 4 * half + 2, __byte_perm(a, b, 0x7362), s);
        }
    }
};

// The same as Codes4 if a row has one scale: the products take it afterwards, and the zero points
// of keys.
struct Codes4Row {
    static constexpr int per_word = Codes4::per_word;
    static constexpr int least_group = 0;
    static constexpr bool scale_a_row = true;
    static constexpr bool neighbours = Codes4::neighbours;
    // Codes of keys in odd pairs are kept as 64 + c.
    static constexpr float odd_excess = 64.0F;

    using Scale = Codes4::Scale;

    static __device__ __forceinline__ Scale scale_of(std::uint32_t first, std::uint32_t second) {
        return Codes4::scale_of(first, second);
    }

    static __device__ __forceinline__ void
    from_row(std::uint32_t* pairs, std::uint32_t word, const Scale&) {
        const __half2 from_1024 = __float2half2_rn(-1024.0F);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const std::uint32_t half = word >> (8 * i);
            pairs[2 * i] =
                bits_of(__hadd2(Codes4::set_below(half, 0x000f000fU, 0x64006400U), from_1024));
            pairs[2 * i + 1] = bits_of(Codes4::set_below(half, 0x00f000f0U, 0x54005400U));
        }
    }

    static __device__ __forceinline__ void from_rows(std::uint32_t (&pairs)[8],
                                                     std::uint32_t first,
                                                     std::uint32_t second,
                                                     const Scale& s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t four = __byte_perm(first, second, i < 2 ? 0x5410 : 0x7632);
            const std::uint32_t half = four >> (8 * (i % 2));
            pairs[2 * i] =
                bits_of(__hadd2(Codes4::set_below(half, 0x000f000fU, 0x64006400U), s.from_1024));
            pairs[2 * i + 1] =
                bits_of(__hadd2(Codes4::set_below(half, 0x00f000f0U, 0x54005400U), s.from_64));
        }
    }
};

} // namespace attention
