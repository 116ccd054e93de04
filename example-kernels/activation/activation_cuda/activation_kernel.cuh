// SPDX-License-Identifier: Apache-2.0
//
// Device code. The output is a rows x cols matrix; a block covers
//
//      columns ->
//   rows  +-----------------+-----------------+
//    |    | ty = 0: tx 0..n | unroll step 1   |   one tile: blockDim.y rows by
//    v    | ty = 1: tx 0..n |                 |   blockDim.x * U units (vectors, or elements)
//         +-----------------+-----------------+
//
// and steps down the rows by gridDim.y tiles, so no index needs a division. All loads of a
// thread are issued before the first use.
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
    static constexpr bool kShort = true; // 16 bits: short_apply serves

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

// What moves with one instruction: a 16-byte vector of packed words, or one element.
template <typename Number>
struct VectorUnit {
    static constexpr int kPerWord = 4 / static_cast<int>(sizeof(typename Number::Storage));
    static constexpr int kElements = 4 * kPerWord;

    struct alignas(16) Packed {
        std::uint32_t word[4];
    };

    static __device__ __forceinline__ void unpack(const Packed& packed, float (&out)[kElements]) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            float part[kPerWord];
            Number::unpack(packed.word[w], part);
#pragma unroll
            for (int i = 0; i < kPerWord; ++i) {
                out[w * kPerWord + i] = part[i];
            }
        }
    }

    static __device__ __forceinline__ Packed pack(const float (&in)[kElements]) {
        Packed packed;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            float part[kPerWord];
#pragma unroll
            for (int i = 0; i < kPerWord; ++i) {
                part[i] = in[w * kPerWord + i];
            }
            packed.word[w] = Number::pack(part);
        }
        return packed;
    }
};

template <typename Number>
struct ElementUnit {
    static constexpr int kElements = 1;
    using Packed = typename Number::Storage;

    static __device__ __forceinline__ void unpack(const Packed& packed, float (&out)[1]) {
        out[0] = Number::widen(packed);
    }

    static __device__ __forceinline__ Packed pack(const float (&in)[1]) {
        return Number::narrow(in[0]);
    }
};

// x / (1 + exp(-y)) to a few units of the 22nd bit.
__device__ __forceinline__ float short_swish(float x, float y) {
    return __fdividef(x, 1.0f + __expf(-y));
}

// gelu for results of 16 bits: max(x, 0) - |x| erfc(|x| / sqrt(2)) / 2, where erfc(z) is
// exp(-z^2) times a polynomial in 1 / (1 + p z) fitted to erfcx; relative error below 2^-17.
__device__ __forceinline__ float short_gelu(float x) {
    const float a = fminf(fabsf(x), 30.0f); // beyond, erfc is 0; an infinite a would give a NaN
    const float t = __fdividef(1.0f, 1.0f + (0.44f * kSqrtHalf) * a);
    float tail = -0.14612611f;
    tail = tail * t + 0.35071058f;
    tail = tail * t + 0.04066900f;
    tail = tail * t + 0.26361722f;
    tail = tail * t + 0.24256248f;
    tail = tail * t + 0.24856161f;
    const float result = fmaxf(x, 0.0f) - 0.5f * a * (tail * t * __expf(-0.5f * a * a));
    return isnan(x) ? x : result;
}

// tanh with an absolute error below 2^-21: what is left of it once 1 is added and 16 bits kept.
__device__ __forceinline__ float short_tanh(float x) {
    return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x));
}

// The unary functions where the result has 16 bits: the same values as apply() but for errors far
// below half a unit of the result, at a fraction of the instructions. The gated forms do not use
// it: they are equal to PyTorch's bit for bit.
template <Function F, typename Number>
__device__ __forceinline__ float short_apply(float x) {
    if constexpr (F == Function::silu) {
        return short_swish(x, x);
    } else if constexpr (F == Function::gelu_quick) {
        return short_swish(x, kQuick * x);
    } else if constexpr (F == Function::gelu) {
        return short_gelu(x);
    } else if constexpr (F == Function::gelu_tanh) {
        return short_swish(x, 2.0f * kSqrtTwoOverPi * (x + kCubic * (x * x * x)));
    } else if constexpr (F == Function::relu2) {
        return apply<F, Number>(x, Scalars{});
    } else {
        static_assert(F == Function::gelu_fast || F == Function::gelu_new);
        return stepwise_gelu<F, Number>(x, [](float inner) { return short_tanh(inner); });
    }
}

template <Function F, Form M, typename Number>
__device__ __forceinline__ float device_element(float a, float b, Scalars scalars) {
    if constexpr (M == Form::unary && Number::kShort) {
        return short_apply<F, Number>(a);
    } else {
        return forward_element<F, M, Number>(a, b, scalars);
    }
}

// Every input is read once: it should not take room in the L1 cache. Volatile, so that a load stays
// before the store to the same place when the caller works in place.
template <typename P>
__device__ __forceinline__ P load(const P* source) {
    if constexpr (sizeof(P) == 16) {
        P v;
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                     : "l"(source));
        return v;
    } else {
        return *source;
    }
}

template <typename P>
__device__ __forceinline__ void store(P* target, const P& v, bool streamed) {
    if constexpr (sizeof(P) == 16) {
        if (streamed) {
            asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(target),
                         "r"(v.word[0]),
                         "r"(v.word[1]),
                         "r"(v.word[2]),
                         "r"(v.word[3])
                         : "memory");
            return;
        }
    }
    *target = v;
}

// Both operands of unit `column` of the output; interleaved ones are still mixed.
template <Form M, typename P>
__device__ __forceinline__ void
load_operands(const P* a_row, const P* b_row, std::int64_t column, P& a, P& b) {
    if constexpr (M == Form::interleaved) {
        a = load(a_row + 2 * column);
        b = load(a_row + 2 * column + 1);
    } else {
        a = load(a_row + column);
        if constexpr (M != Form::unary) {
            b = load(b_row + column);
        }
    }
}

// (a0 b0 a1 b1, a2 b2 a3 b3) to (a0 a1 a2 a3, b0 b1 b2 b3), and back.
template <int V>
__device__ __forceinline__ void separate(float (&a)[V], float (&b)[V]) {
    float first[V];
    float second[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        first[i] = 2 * i < V ? a[2 * i % V] : b[2 * i % V];
        second[i] = 2 * i + 1 < V ? a[(2 * i + 1) % V] : b[(2 * i + 1) % V];
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        a[i] = first[i];
        b[i] = second[i];
    }
}

template <int V>
__device__ __forceinline__ void interleave(float (&a)[V], float (&b)[V]) {
    float mixed[2 * V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        mixed[2 * i] = a[i];
        mixed[2 * i + 1] = b[i];
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        a[i] = mixed[i];
        b[i] = mixed[V + i];
    }
}

template <Function F, Form M, typename Number, typename Unit, int U>
__global__ void forward_kernel(typename Number::Storage* __restrict__ out,
                               const typename Number::Storage* __restrict__ x,
                               std::int64_t rows,
                               std::int64_t packs,
                               Scalars scalars,
                               bool streamed) {
    using P = typename Unit::Packed;
    constexpr int V = Unit::kElements;
    constexpr int kHalves = M == Form::unary ? 1 : 2;
    const std::int64_t first =
        static_cast<std::int64_t>(blockIdx.x) * (blockDim.x * U) + threadIdx.x;
    const std::int64_t row_step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;

    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
         row < rows;
         row += row_step) {
        const P* a_row = reinterpret_cast<const P*>(x) + row * kHalves * packs;
        const P* b_row = a_row + (kHalves - 1) * packs;
        P* out_row = reinterpret_cast<P*>(out) + row * packs;
        P a[U];
        P b[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const std::int64_t column = first + u * blockDim.x;
            if (column < packs) {
                load_operands<M>(a_row, b_row, column, a[u], b[u]);
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const std::int64_t column = first + u * blockDim.x;
            if (column < packs) {
                float av[V];
                float bv[V];
                Unit::unpack(a[u], av);
                Unit::unpack(M == Form::unary ? a[u] : b[u], bv);
                if constexpr (M == Form::interleaved) {
                    separate(av, bv);
                }
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    av[i] = device_element<F, M, Number>(av[i], bv[i], scalars);
                }
                store(out_row + column, Unit::pack(av), streamed);
            }
        }
    }
}

template <Function F, Form M, typename Number, typename Unit, int U>
__global__ void backward_kernel(typename Number::Storage* __restrict__ grad_x,
                                const typename Number::Storage* __restrict__ grad_out,
                                const typename Number::Storage* __restrict__ x,
                                std::int64_t rows,
                                std::int64_t packs,
                                Scalars scalars,
                                bool streamed) {
    using P = typename Unit::Packed;
    constexpr int V = Unit::kElements;
    constexpr int kHalves = M == Form::unary ? 1 : 2;
    const std::int64_t first =
        static_cast<std::int64_t>(blockIdx.x) * (blockDim.x * U) + threadIdx.x;
    const std::int64_t row_step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;

    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
         row < rows;
         row += row_step) {
        const P* grad_row = reinterpret_cast<const P*>(grad_out) + row * packs;
        const P* a_row = reinterpret_cast<const P*>(x) + row * kHalves * packs;
        const P* b_row = a_row + (kHalves - 1) * packs;
        P* grad_a_row = reinterpret_cast<P*>(grad_x) + row * kHalves * packs;
        P* grad_b_row = grad_a_row + (kHalves - 1) * packs;
        P grad[U];
        P a[U];
        P b[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const std::int64_t column = first + u * blockDim.x;
            if (column < packs) {
                grad[u] = load(grad_row + column);
                load_operands<M>(a_row, b_row, column, a[u], b[u]);
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const std::int64_t column = first + u * blockDim.x;
            if (column < packs) {
                float gv[V];
                float av[V];
                float bv[V];
                Unit::unpack(grad[u], gv);
                Unit::unpack(a[u], av);
                Unit::unpack(M == Form::unary ? a[u] : b[u], bv);
                if constexpr (M == Form::interleaved) {
                    separate(av, bv);
                }
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const Gradients g =
                        backward_element<F, M, Number>(gv[i], av[i], bv[i], scalars);
                    av[i] = g.a;
                    bv[i] = g.b;
                }
                if constexpr (M == Form::interleaved) {
                    interleave(av, bv);
                    store(grad_a_row + 2 * column, Unit::pack(av), streamed);
                    store(grad_a_row + 2 * column + 1, Unit::pack(bv), streamed);
                } else {
                    store(grad_a_row + column, Unit::pack(av), streamed);
                    if constexpr (M != Form::unary) {
                        store(grad_b_row + column, Unit::pack(bv), streamed);
                    }
                }
            }
        }
    }
}

} // namespace activation
