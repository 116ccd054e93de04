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
        scale == 0.0F ? 0.0F : std::min(std::max(std::nearbyint(-low / scale), 0.0F), 15.0F);
    pair[1] = Float16::narrow(zero);
    const auto code = [&](float value) {
        const float steps = scale == 0.0F ? 0.0F : std::nearbyint(value / scale) + zero;
        return static_cast<unsigned>(std::min(std::max(steps, 0.0F), 15.0F));
    };
    for (std::int64_t i = 0; i < count; i += 2) {
        codes[i / 2] = static_cast<std::uint8_t>(code(values[i]) | code(values[i + 1]) << 4);
    }
}

} // namespace attention
