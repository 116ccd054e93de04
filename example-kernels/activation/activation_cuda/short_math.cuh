// SPDX-License-Identifier: Apache-2.0
//
// The element types, and the arithmetic that serves where the result has 16 bits.
#pragma once

#include "../activation_common/functions.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace activation {

struct Float32 {
    using Storage = float;
    static constexpr bool kShort = false;

    static __device__ __forceinline__ float widen(Storage v) { return v; }

    static __device__ __forceinline__ Storage narrow(float v) { return v; }

    static __device__ __forceinline__ float round(float v) { return v; }

    static __device__ __forceinline__ void unpack(std::uint32_t word, float (&out)[1]) {
        out[0] = __uint_as_float(word);
    }

    static __device__ __forceinline__ std::uint32_t pack(const float (&in)[1]) {
        return __float_as_uint(in[0]);
    }
};

struct Float16 {
    using Storage = __half;
    using Pair = __half2;
    static constexpr bool kShort = true; // 16 bits: ShortMath serves

    static __device__ __forceinline__ float widen(Storage v) { return __half2float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2half_rn(v); }

    // By the conversion of a pair, which runs at several times the rate of the single one.
    static __device__ __forceinline__ float round(float v) {
        return __low2float(__floats2half2_rn(v, 0.0F));
    }

    static __device__ __forceinline__ void unpack(std::uint32_t word, float (&out)[2]) {
        const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&word));
        out[0] = pair.x;
        out[1] = pair.y;
    }

    static __device__ __forceinline__ std::uint32_t pack(const float (&in)[2]) {
        const __half2 pair = __floats2half2_rn(in[0], in[1]);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }
};

struct BFloat16 {
    using Storage = __nv_bfloat16;
    using Pair = __nv_bfloat162;
    static constexpr bool kShort = true;

    static __device__ __forceinline__ float widen(Storage v) { return __bfloat162float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2bfloat16_rn(v); }

    static __device__ __forceinline__ float round(float v) {
        return __low2float(__floats2bfloat162_rn(v, 0.0F));
    }

    static __device__ __forceinline__ void unpack(std::uint32_t word, float (&out)[2]) {
        out[0] = __uint_as_float(word << 16);
        out[1] = __uint_as_float(word & 0xffff0000U);
    }

    static __device__ __forceinline__ std::uint32_t pack(const float (&in)[2]) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(in[0], in[1]);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }
};

__device__ __forceinline__ float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

__device__ __forceinline__ float reciprocal(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

constexpr float kLog2E = 1.4426950408889634f;

// Where the result has 16 bits: errors far below half a unit of it, at a fraction of the
// instructions; results below 2^-126 are 0. The gated functions do not use it: they are equal to
// PyTorch's bit for bit.
struct ShortMath {
    static __device__ __forceinline__ float exp(float x) { return power_of_two(x * kLog2E); }

    static __device__ __forceinline__ float sigmoid(float x) { return reciprocal(1.0f + exp(-x)); }

    static __device__ __forceinline__ float swish(float x, float y) { return x * sigmoid(y); }

    static __device__ __forceinline__ float one_plus_tanh(float x) {
        return 2.0f * sigmoid(2.0f * x);
    }

    // Absolute error below 2^-21: what is left of it once 1 is added and 16 bits are kept.
    static __device__ __forceinline__ float tanh(float x) {
        return 1.0f - 2.0f * sigmoid(-2.0f * x);
    }

    // erfc(a / sqrt(2)) for a >= 0: exp(-a^2 / 2) times a polynomial in 1 / (1 + p a) fitted to
    // erfcx; relative error below 2^-17.
    static __device__ __forceinline__ float upper_tail(float a) {
        const float t = reciprocal(1.0f + (0.44f * kSqrtHalf) * a);
        float tail = -0.14612611f;
        tail = tail * t + 0.35071058f;
        tail = tail * t + 0.04066900f;
        tail = tail * t + 0.26361722f;
        tail = tail * t + 0.24256248f;
        tail = tail * t + 0.24856161f;
        return tail * t * power_of_two(a * (a * (-0.5f * kLog2E)));
    }

    static __device__ __forceinline__ float twice_cdf(float x) {
        const float tail = upper_tail(fabsf(x));
        return x < 0.0f ? tail : 2.0f - tail;
    }
};

// The steps of a formula that rounds at every one, on pairs of 16 bits: the operators of the type
// round their exact results once, as fp32 and then the type would do.
template <typename Number>
struct PairSteps {
    using Pair = typename Number::Pair;

    static __device__ __forceinline__ Pair product(Pair a, Pair b) { return __hmul2_rn(a, b); }

    static __device__ __forceinline__ Pair sum(Pair a, Pair b) { return __hadd2_rn(a, b); }

    static __device__ __forceinline__ Pair scaled(float factor, Pair a) {
        return each(a, [factor](float v) { return factor * v; });
    }

    static __device__ __forceinline__ Pair scaled_exactly(float factor, Pair a) {
        return product(both(factor), a);
    }

    static __device__ __forceinline__ Pair plus_exactly(float term, Pair a) {
        return sum(both(term), a);
    }

    static __device__ __forceinline__ Pair tanh(Pair a) {
        return each(a, [](float v) { return ShortMath::tanh(v); });
    }

private:
    template <typename Body>
    static __device__ __forceinline__ Pair each(Pair a, const Body& body) {
        float v[2];
        Number::unpack(*reinterpret_cast<const std::uint32_t*>(&a), v);
        const float result[2] = {body(v[0]), body(v[1])};
        const std::uint32_t word = Number::pack(result);
        return *reinterpret_cast<const Pair*>(&word);
    }

    static __device__ __forceinline__ Pair both(float v) {
        return {Number::narrow(v), Number::narrow(v)};
    }
};

} // namespace activation
