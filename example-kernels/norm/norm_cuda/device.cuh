// SPDX-License-Identifier: Apache-2.0
//
// What both kernels are made of: element types, vectors, parameters, the row reduction.
#pragma once

#include "../norm_common/norm.h"
#include "tuning.h"

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace rownorm {

// 16 bytes of elements, kept packed: unpacked 16-bit values would take a register each.
struct alignas(kVectorBytes) Vector {
    std::uint32_t word[4];
};

struct Float32 {
    using Storage = float;

    static __device__ __forceinline__ float widen(Storage v) { return v; }

    static __device__ __forceinline__ Storage narrow(float v) { return v; }

    static __device__ __forceinline__ void unpack(std::uint32_t word, float (&out)[1]) {
        out[0] = __uint_as_float(word);
    }

    static __device__ __forceinline__ std::uint32_t pack(const float (&in)[1]) {
        return __float_as_uint(in[0]);
    }

    static __device__ __forceinline__ std::uint32_t product(std::uint32_t a, std::uint32_t b) {
        return __float_as_uint(__uint_as_float(a) * __uint_as_float(b));
    }

    // The larger of a and |b|.
    static __device__ __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
        return __float_as_uint(fmaxf(__uint_as_float(a), fabsf(__uint_as_float(b))));
    }
};

struct Float16 {
    using Storage = __half;

    static __device__ __forceinline__ float widen(Storage v) { return __half2float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2half_rn(v); }

    static __device__ __forceinline__ void unpack(std::uint32_t word, float (&out)[2]) {
        const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&word));
        out[0] = pair.x;
        out[1] = pair.y;
    }

    static __device__ __forceinline__ std::uint32_t pack(const float (&in)[2]) {
        const __half2 pair = __floats2half2_rn(in[0], in[1]);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }

    // The products of two words' values, rounded: exact products, as those of fp32 would be.
    static __device__ __forceinline__ std::uint32_t product(std::uint32_t a, std::uint32_t b) {
        const __half2 pair =
            __hmul2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }

    // The larger of a and |b|, for every value of the words.
    static __device__ __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
        const __half2 pair = __hmax2(*reinterpret_cast<const __half2*>(&a),
                                     __habs2(*reinterpret_cast<const __half2*>(&b)));
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }
};

struct BFloat16 {
    using Storage = __nv_bfloat16;

    static __device__ __forceinline__ float widen(Storage v) { return __bfloat162float(v); }

    static __device__ __forceinline__ Storage narrow(float v) { return __float2bfloat16_rn(v); }

    static __device__ __forceinline__ void unpack(std::uint32_t word, float (&out)[2]) {
        out[0] = __uint_as_float(word << 16);
        out[1] = __uint_as_float(word & 0xffff0000U);
    }

    static __device__ __forceinline__ std::uint32_t pack(const float (&in)[2]) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(in[0], in[1]);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }

    // The products of two words' values, rounded: exact products, as those of fp32 would be.
    static __device__ __forceinline__ std::uint32_t product(std::uint32_t a, std::uint32_t b) {
        const __nv_bfloat162 pair = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                            *reinterpret_cast<const __nv_bfloat162*>(&b));
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }

    // The larger of a and |b|, for every value of the words.
    static __device__ __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
        const __nv_bfloat162 pair = __hmax2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                            __habs2(*reinterpret_cast<const __nv_bfloat162*>(&b)));
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }
};

// How many elements a vector holds, and a word of it.
template <typename Number>
constexpr int kVector = kVectorBytes / static_cast<int>(sizeof(typename Number::Storage));
template <typename Number>
constexpr int kPerWord = kVector<Number> / 4;

template <typename Number>
__device__ __forceinline__ void unpack(const Vector& vector, float (&out)[kVector<Number>]) {
    constexpr int kW = kPerWord<Number>;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        float part[kW];
        Number::unpack(vector.word[w], part);
#pragma unroll
        for (int i = 0; i < kW; ++i) {
            out[w * kW + i] = part[i];
        }
    }
}

template <typename Number>
__device__ __forceinline__ Vector pack(const float (&in)[kVector<Number>]) {
    constexpr int kW = kPerWord<Number>;
    Vector vector;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        float part[kW];
#pragma unroll
        for (int i = 0; i < kW; ++i) {
            part[i] = in[w * kW + i];
        }
        vector.word[w] = Number::pack(part);
    }
    return vector;
}

// Rounds to the element type, by conversions of pairs: they run at several times the rate of single
// ones.
template <typename Number, int V>
__device__ __forceinline__ void round_all(float (&v)[V]) {
    if constexpr (V == 1) {
        v[0] = Number::widen(Number::narrow(v[0]));
    } else {
        unpack<Number>(pack<Number>(v), v);
    }
}

// Reads a row's vector once: it should not push the weights out of the L1 cache. Volatile keeps it
// before a store to the same place.
__device__ __forceinline__ Vector load_once(const Vector* source) {
    Vector v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "l"(source)
                 : "memory");
    return v;
}

// Reads a vector that other threads read too and nobody writes: with one instruction, which the
// compiler would not do by itself where the words are used apart.
__device__ __forceinline__ Vector load_parameters(const Vector* source) {
    const uint4 words = __ldg(reinterpret_cast<const uint4*>(source));
    return {{words.x, words.y, words.z, words.w}};
}

// Brings `bytes`, a multiple of 16, into the L2 cache.
__device__ __forceinline__ void prefetch([[maybe_unused]] const Vector* source,
                                         [[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes));
#endif
}

// With `streamed` the L2 cache gives the line up first: for results too large to stay there anyway.
__device__ __forceinline__ void store(Vector* target, const Vector& v, bool streamed) {
    if (streamed) {
        asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(target),
                     "r"(v.word[0]),
                     "r"(v.word[1]),
                     "r"(v.word[2]),
                     "r"(v.word[3])
                     : "memory");
    } else {
        *target = v;
    }
}

// The row of `base` that starts at element `offset`, as vectors.
template <typename Number>
const __device__ __forceinline__ Vector* vectors_at(const void* base, std::int64_t offset) {
    return reinterpret_cast<const Vector*>(static_cast<const typename Number::Storage*>(base) +
                                           offset);
}

template <typename Number>
__device__ __forceinline__ Vector* vectors_at(void* base, std::int64_t offset) {
    return reinterpret_cast<Vector*>(static_cast<typename Number::Storage*>(base) + offset);
}

// V consecutive weights or biases, starting at element `column`; null reads as `absent`.
template <typename Number, int V>
__device__ __forceinline__ void
load_parameter(const void* data, bool is_f32, std::int64_t column, float absent, float (&out)[V]) {
    if (data == nullptr) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            out[i] = absent;
        }
    } else if (is_f32) {
        const float* source = static_cast<const float*>(data) + column;
        if constexpr (V == 1) {
            out[0] = source[0];
        } else {
#pragma unroll
            for (int i = 0; i < V; i += 4) {
                const float4 part = __ldg(reinterpret_cast<const float4*>(source + i));
                out[i] = part.x;
                out[i + 1] = part.y;
                out[i + 2] = part.z;
                out[i + 3] = part.w;
            }
        }
    } else {
        if constexpr (V == 1) {
            out[0] = Number::widen(static_cast<const typename Number::Storage*>(data)[column]);
        } else {
            static_assert(V == kVector<Number>);
            unpack<Number>(load_parameters(vectors_at<Number>(data, column)), out);
        }
    }
}

template <typename Number>
__device__ __forceinline__ void
store_parameter(void* data, bool is_f32, std::int64_t column, float value) {
    if (is_f32) {
        static_cast<float*>(data)[column] = value;
    } else {
        static_cast<typename Number::Storage*>(data)[column] = Number::narrow(value);
    }
}

// Shared memory of one row_sum: K values of up to 32 warps.
template <int K>
struct RowSumStorage {
    float warp[K][32];
};

// Sums each of K values over the blockDim.x threads of the row; every thread gets the sums. The
// order of additions depends on blockDim.x alone. All threads of the block must call it.
// blockDim.x is a power of two; two calls in a row need different storage.
template <int K>
__device__ __forceinline__ void row_sum(float (&value)[K], RowSumStorage<K>& storage) {
    const int row_threads = static_cast<int>(blockDim.x);
    const int in_warp = row_threads < warpSize ? row_threads : warpSize;
    for (int offset = in_warp / 2; offset > 0; offset /= 2) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            value[k] += __shfl_xor_sync(0xffffffffU, value[k], offset);
        }
    }
    if (row_threads <= warpSize) {
        return;
    }
    const int row_warps = row_threads / warpSize;
    const int first_warp = static_cast<int>(threadIdx.y) * row_warps;
    if (threadIdx.x % warpSize == 0) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            storage.warp[k][first_warp + static_cast<int>(threadIdx.x) / warpSize] = value[k];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; ++k) {
        float total = 0.0F;
        for (int warp = 0; warp < row_warps; ++warp) {
            total += storage.warp[k][first_warp + warp];
        }
        value[k] = total;
    }
}

} // namespace rownorm
