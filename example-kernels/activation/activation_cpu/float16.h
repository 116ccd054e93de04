// SPDX-License-Identifier: Apache-2.0
//
// The three element types of the CPU kernels: how to widen one to fp32 and how to round fp32 to
// it (to nearest, ties to even). Written with integer operations only, so that no compiler or
// library support for 16-bit floats is needed.
#pragma once

#include "../activation_common/activation.h"

#include <cstdint>
#include <cstring>

namespace activation {
namespace { // several instruction sets include this: no symbol may be shared between them

inline float from_bits(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline std::uint32_t to_bits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct Float32 {
    using Storage = float;

    static float widen(Storage v) { return v; }

    static Storage narrow(float v) { return v; }

    static float round(float v) { return v; }
};

struct BFloat16 {
    using Storage = std::uint16_t;

    static float widen(Storage v) { return from_bits(std::uint32_t{v} << 16); }

    static Storage narrow(float v) {
        const std::uint32_t bits = to_bits(v);
        if ((bits & 0x7fffffffU) > 0x7f800000U) {
            return static_cast<Storage>((bits >> 16) | 0x0040U); // NaN stays a NaN
        }
        return static_cast<Storage>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
    }

    static float round(float v) { return widen(narrow(v)); }
};

struct Float16 {
    using Storage = std::uint16_t;

    static float widen(Storage v) {
        const std::uint32_t sign = std::uint32_t{v & 0x8000U} << 16;
        const std::uint32_t magnitude = v & 0x7fffU;
        if (magnitude >= 0x7c00U) { // infinity or NaN
            return from_bits(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
        }
        if (magnitude < 0x0400U) { // zero or subnormal: magnitude * 2^-24, exact
            const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;
            return from_bits(to_bits(value) | sign);
        }
        return from_bits(sign | ((magnitude << 13) + (112U << 23)));
    }

    static Storage narrow(float v) {
        const std::uint32_t bits = to_bits(v);
        const std::uint32_t sign = (bits >> 16) & 0x8000U;
        const std::uint32_t magnitude = bits & 0x7fffffffU;
        if (magnitude > 0x7f800000U) {
            return static_cast<Storage>(sign | 0x7e00U);
        }
        if (magnitude >= 0x477ff000U) { // rounds to 65520 or more: infinity
            return static_cast<Storage>(sign | 0x7c00U);
        }
        if (magnitude < 0x38800000U) { // below 2^-14: let the addition round to units of 2^-24
            const float shifted = from_bits(magnitude) + 0.5f;
            return static_cast<Storage>(sign | (to_bits(shifted) - 0x3f000000U));
        }
        const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
        return static_cast<Storage>(sign | ((rounded - (112U << 23)) >> 13));
    }

    static float round(float v) { return widen(narrow(v)); }
};

// Calls body with a value of the number type that `dtype` names.
template <typename Body>
void with_number(DType dtype, const Body& body) {
    switch (dtype) {
    case DType::f32:
        return body(Float32{});
    case DType::f16:
        return body(Float16{});
    case DType::bf16:
        return body(BFloat16{});
    }
}

// The 8-bit float e4m3 (no infinities), to nearest, ties to even, saturated at 448.
inline std::uint8_t to_e4m3(float v) {
    const std::uint32_t bits = to_bits(v);
    const std::uint32_t sign = (bits >> 24) & 0x80U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) {
        return static_cast<std::uint8_t>(sign | 0x7fU);
    }
    if (magnitude >= 0x43e00000U) { // 448 or more
        return static_cast<std::uint8_t>(sign | 0x7eU);
    }
    if (magnitude < 0x3c800000U) { // below 2^-6: let the addition round to units of 2^-9
        const float shifted = from_bits(magnitude) + 16384.0f;
        return static_cast<std::uint8_t>(sign | (to_bits(shifted) - 0x46800000U));
    }
    const std::uint32_t rounded = magnitude + 0x7ffffU + ((magnitude >> 20) & 1U);
    return static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120U << 3)));
}

} // namespace
} // namespace activation
