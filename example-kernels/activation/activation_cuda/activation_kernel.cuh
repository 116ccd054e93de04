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

    static __device__ __forceinline__ float widen(Storage v) { return __half2float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2half_rn(v); }

    static __device__ __forceinline__ float round(float v) { return widen(narrow(v)); }

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

    static __device__ __forceinline__ float widen(Storage v) { return __bfloat162float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2bfloat16_rn(v); }

    static __device__ __forceinline__ float round(float v) { return widen(narrow(v)); }

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

template <Function F, Form M, typename Number, typename Unit, int U>
__global__ void forward_kernel(typename Number::Storage* __restrict__ out,
                               const typename Number::Storage* __restrict__ x,
                               std::int64_t rows,
                               std::int64_t packs,
                               float threshold) {
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
                a[u] = a_row[column];
                if constexpr (M != Form::unary) {
                    b[u] = b_row[column];
                }
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
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    av[i] = forward_element<F, M, Number>(av[i], bv[i], threshold);
                }
                out_row[column] = Unit::pack(av);
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
                                float threshold) {
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
                grad[u] = grad_row[column];
                a[u] = a_row[column];
                if constexpr (M != Form::unary) {
                    b[u] = b_row[column];
                }
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
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const Gradients g =
                        backward_element<F, M, Number>(gv[i], av[i], bv[i], threshold);
                    av[i] = g.a;
                    bv[i] = g.b;
                }
                grad_a_row[column] = Unit::pack(av);
                if constexpr (M != Form::unary) {
                    grad_b_row[column] = Unit::pack(bv);
                }
            }
        }
    }
}

} // namespace activation
