// SPDX-License-Identifier: Apache-2.0
//
// The 8-bit and 4-bit formats of a cache: from and to fp32, one row at a time.
#pragma once

#include "../attention_common/cache.h"
#include "query.h"

namespace attention {

struct Float8 { // e4m3, without infinities

    static float widen(std::uint8_t v) {
        const std::uint32_t sign = std::uint32_t{v & 0x80U} << 24;
        const std::uint32_t magnitude = v & 0x7fU;
        if (magnitude == 0x7fU) {
            return from_bits(sign | 0x7fc00000U);
        }
        if (magnitude < 0x08U) { // zero or subnormal: magnitude * 2^-9, exact
            return from_bits(to_bits(static_cast<float>(magnitude) * 0.001953125F) | sign);
        }
        return from_bits(sign | ((magnitude << 20) + (120U << 23)));
    }

    // What is larger than the largest number becomes it.
    static std::uint8_t narrow(float v) {
        const std::uint32_t bits = to_bits(v);
        const std::uint32_t sign = (bits >> 24) & 0x80U;
        const std::uint32_t magnitude = bits & 0x7fffffffU;
        if (magnitude > 0x7f800000U) {
            return static_cast<std::uint8_t>(sign | 0x7fU);
        }
        if (magnitude >= 0x43e00000U) { // 448
            return static_cast<std::uint8_t>(sign | 0x7eU);
        }
        if (magnitude < 0x3c800000U) { // below 2^-6: let the addition round to units of 2^-9
            const float shifted = from_bits(magnitude) + 16384.0F;
            return static_cast<std::uint8_t>(sign | (to_bits(shifted) - 0x46800000U));
        }
        const std::uint32_t rounded = magnitude + 0x7ffffU + ((magnitude >> 20) & 1U);
        return static_cast<std::uint8_t>(sign | ((rounded - (120U << 23)) >> 20));
    }
};

// One row of an int4 cache: its codes and its pairs (scale, zero).
struct Int4Row {
    const std::uint8_t* codes;
    const std::uint16_t* scales;

    float at(std::int64_t channel, std::int64_t group) const {
        const std::uint8_t both = codes[channel / 2];
        const int code = channel % 2 == 0 ? both & 15 : both >> 4;
        const std::uint16_t* pair = scales + channel / group * 2;
        return (static_cast<float>(code) - Float16::widen(pair[1])) * Float16::widen(pair[0]);
    }
};

// e8m0: 2^(v - 127).
inline float widen_power(std::uint8_t v) {
    return v == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, v - 127);
}

// One row of an fp4 cache: its codes and the scales of its groups.
struct Fp4Row {
    const std::uint8_t* codes;
    const std::uint8_t* scales;
    bool powers;

    float at(std::int64_t channel, std::int64_t group) const {
        constexpr std::array<float, 8> kNumbers{0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
        const std::uint8_t both = codes[channel / 2];
        const unsigned code = channel % 2 == 0 ? both & 15U : both >> 4U;
        const float number = kNumbers[code & 7U];
        const std::uint8_t scale = scales[channel / group];
        return (code >= 8 ? -number : number) *
               (powers ? widen_power(scale) : Float8::widen(scale));
    }
};

// To the nearest number of e2m1, of two the one with an even code; beyond 6: 6.
inline unsigned narrow_e2m1(float value) {
    const float magnitude = std::fabs(value);
    const unsigned sign = std::signbit(value) ? 8U : 0U;
    const unsigned code = magnitude <= 0.25F   ? 0U
                          : magnitude < 0.75F  ? 1U
                          : magnitude <= 1.25F ? 2U
                          : magnitude < 1.75F  ? 3U
                          : magnitude <= 2.5F  ? 4U
                          : magnitude < 3.5F   ? 5U
                          : magnitude <= 5.0F  ? 6U
                                               : 7U;
    return sign | code;
}

// The scale makes the largest number of the group 6 (e4m3), or less than 8 (e8m0).
inline void store_fp4_group(const float* values,
                            std::int64_t count,
                            bool powers,
                            std::uint8_t* codes,
                            std::uint8_t* scale) {
    float highest = 0.0F;
    for (std::int64_t i = 0; i < count; ++i) {
        highest = std::max(highest, std::fabs(values[i]));
    }
    float factor = 0.0F;
    if (powers) {
        int exponent = 0;
        std::frexp(highest, &exponent); // highest in [2^(exponent - 1), 2^exponent)
        const int biased = std::min(std::max(exponent - 1 - 2 + 127, 0), 254);
        *scale = static_cast<std::uint8_t>(highest == 0.0F ? 0 : biased);
        factor = widen_power(*scale);
    } else {
        *scale = Float8::narrow(highest / 6.0F);
        factor = Float8::widen(*scale);
    }
    const auto code = [&](float value) {
        return factor == 0.0F ? 0U : narrow_e2m1(value / factor);
    };
    for (std::int64_t i = 0; i < count; i += 2) {
        codes[i / 2] = static_cast<std::uint8_t>(code(values[i]) | code(values[i + 1]) << 4U);
    }
}

// The scale lets the numbers of the group, and 0, fit between code 0 and code 15.
inline void store_int4_group(const float* values,
                             std::int64_t count,
                             std::uint8_t* codes,
                             std::uint16_t* pair) {
    float low = 0.0F;
    float high = 0.0F;
    for (std::int64_t i = 0; i < count; ++i) {
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
    }
    pair[0] = Float16::narrow(std::min((high - low) / 15.0F, 65504.0F));
    const float scale = Float16::widen(pair[0]);
    const float zero =
        scale == 0.0F ? 0.0F : std::min(std::max(0.0F, std::nearbyint(-low / scale)), 15.0F);
    pair[1] = Float16::narrow(zero);
    const auto code = [&](float value) {
        const float steps = scale == 0.0F ? 0.0F : std::nearbyint(value / scale) + zero;
        // In this order a NaN becomes 0.
        return static_cast<unsigned>(std::min(std::max(0.0F, steps), 15.0F));
    };
    for (std::int64_t i = 0; i < count; i += 2) {
        codes[i / 2] = static_cast<std::uint8_t>(code(values[i]) | code(values[i + 1]) << 4);
    }
}

} // namespace attention
