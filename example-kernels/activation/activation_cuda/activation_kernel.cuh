// SPDX-License-Identifier: Apache-2.0
//
// Device code. The output is a rows x cols matrix; a block covers
//
//      columns ->
//   rows  +-----------------+-----------------+
//    |    | ty = 0: tx 0..n | unroll step 1   |   one tile: blockDim.y rows by
//    v    | ty = 1: tx 0..n |                 |   blockDim.x * U vectors of V elements
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
};

struct Float16 {
    using Storage = __half;

    static __device__ __forceinline__ float widen(Storage v) { return __half2float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2half_rn(v); }

    static __device__ __forceinline__ float round(float v) { return widen(narrow(v)); }
};

struct BFloat16 {
    using Storage = __nv_bfloat16;

    static __device__ __forceinline__ float widen(Storage v) { return __bfloat162float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2bfloat16_rn(v); }

    static __device__ __forceinline__ float round(float v) { return widen(narrow(v)); }
};

// V elements that move with one instruction.
template <typename Storage, int V>
struct alignas(sizeof(Storage) * V) Pack {
    Storage item[V];
};

template <Function F, Form M, typename Number, int V, int U>
__global__ void forward_kernel(typename Number::Storage* __restrict__ out,
                               const typename Number::Storage* __restrict__ x,
                               std::int64_t rows,
                               std::int64_t packs,
                               float threshold) {
    using P = Pack<typename Number::Storage, V>;
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
                P result;
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const float av = Number::widen(a[u].item[i]);
                    const float bv = M == Form::unary ? 0.0f : Number::widen(b[u].item[i]);
                    result.item[i] =
                        Number::narrow(forward_element<F, M, Number>(av, bv, threshold));
                }
                out_row[column] = result;
            }
        }
    }
}

template <Function F, Form M, typename Number, int V, int U>
__global__ void backward_kernel(typename Number::Storage* __restrict__ grad_x,
                                const typename Number::Storage* __restrict__ grad_out,
                                const typename Number::Storage* __restrict__ x,
                                std::int64_t rows,
                                std::int64_t packs,
                                float threshold) {
    using P = Pack<typename Number::Storage, V>;
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
                P grad_a;
                P grad_b;
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const float bv = M == Form::unary ? 0.0f : Number::widen(b[u].item[i]);
                    const Gradients g = backward_element<F, M, Number>(
                        Number::widen(grad[u].item[i]), Number::widen(a[u].item[i]), bv, threshold);
                    grad_a.item[i] = Number::narrow(g.a);
                    if constexpr (M != Form::unary) {
                        grad_b.item[i] = Number::narrow(g.b);
                    }
                }
                grad_a_row[column] = grad_a;
                if constexpr (M != Form::unary) {
                    grad_b_row[column] = grad_b;
                }
            }
        }
    }
}

} // namespace activation
