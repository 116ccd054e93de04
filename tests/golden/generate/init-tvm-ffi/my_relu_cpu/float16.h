// The 16-bit types as they lie in memory, and their conversions (round to nearest even). Written
// without compiler extensions, so that old compilers and every CPU give the same bits.
#pragma once

#include <cstdint>
#include <cstring>

namespace my_relu {

struct Half {
    std::uint16_t bits;
};

struct BFloat16 {
    std::uint16_t bits;
};

inline float float_from_bits(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline std::uint32_t bits_from_float(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float to_float(float x) { return x; }

inline float to_float(BFloat16 x) { return float_from_bits(std::uint32_t{x.bits} << 16U); }

inline float to_float(Half x) {
    const std::uint32_t sign = (std::uint32_t{x.bits} & 0x8000U) << 16U;
    const std::uint32_t magnitude = x.bits & 0x7FFFU;
    if (magnitude >= 0x7C00U) { // infinity or NaN
        return float_from_bits(sign | 0x7F800000U | (magnitude << 13U));
    }
    // Moving the exponent by a multiplication treats subnormal numbers like the others.
    const float value = float_from_bits(magnitude << 13U) * 0x1p112F;
    return float_from_bits(sign | bits_from_float(value));
}

template <typename T>
T from_float(float x);

template <>
inline float from_float<float>(float x) {
    return x;
}

template <>
inline BFloat16 from_float<BFloat16>(float x) {
    const std::uint32_t bits = bits_from_float(x);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) { // a NaN keeps its sign and becomes quiet
        return {static_cast<std::uint16_t>((bits >> 16U) | 0x0040U)};
    }
    const std::uint32_t odd = (bits >> 16U) & 1U;
    return {static_cast<std::uint16_t>((bits + 0x7FFFU + odd) >> 16U)};
}

template <>
inline Half from_float<Half>(float x) {
    const std::uint32_t bits = bits_from_float(x);
    const std::uint32_t sign = (bits >> 16U) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    std::uint32_t half = 0;
    if (magnitude > 0x7F800000U) { // a NaN becomes quiet
        half = 0x7E00U;
    } else if (magnitude >= 0x477FF000U) { // 65520 and above round to infinity
        half = 0x7C00U;
    } else if (magnitude >= 0x38800000U) { // normal
        const std::uint32_t odd = (magnitude >> 13U) & 1U;
        half = (magnitude - 0x38000000U + 0x0FFFU + odd) >> 13U;
    } else { // subnormal: adding 0.5 lets the hardware round at the right bit
        half = bits_from_float(float_from_bits(magnitude) + 0.5F) - 0x3F000000U;
    }
    return {static_cast<std::uint16_t>(sign | half)};
}

} // namespace my_relu
