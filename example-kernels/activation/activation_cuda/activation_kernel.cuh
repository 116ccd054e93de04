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

#include "short_math.cuh"

#include <type_traits>

namespace activation {

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

template <Form M, typename Number>
using ForwardMath = std::conditional_t<M == Form::unary && Number::kShort, ShortMath, PlainMath>;
// No gradient claims to equal PyTorch's bits.
template <typename Number>
using BackwardMath = std::conditional_t<Number::kShort, ShortMath, PlainMath>;

// The results of a unit.
template <Function F, Form M, typename Number, typename Unit>
__device__ __forceinline__ typename Unit::Packed
results(const typename Unit::Packed& a, const typename Unit::Packed& b, Scalars scalars) {
    constexpr int V = Unit::kElements;
    if constexpr (kStepwise<F> && Number::kShort && V > 1) {
        typename Unit::Packed out;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            using Pair = typename Number::Pair;
            const Pair result =
                stepwise_gelu<F, PairSteps<Number>>(*reinterpret_cast<const Pair*>(&a.word[w]));
            out.word[w] = *reinterpret_cast<const std::uint32_t*>(&result);
        }
        return out;
    } else {
        float av[V];
        float bv[V];
        Unit::unpack(a, av);
        Unit::unpack(M == Form::unary ? a : b, bv);
        if constexpr (M == Form::interleaved) {
            separate(av, bv);
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            av[i] = forward_element<F, M, Number, ForwardMath<M, Number>>(av[i], bv[i], scalars);
        }
        return Unit::pack(av);
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
                store(out_row + column, results<F, M, Number, Unit>(a[u], b[u], scalars), streamed);
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
                    const Gradients<float> g = backward_element<F, M, Number, BackwardMath<Number>>(
                        gv[i], av[i], bv[i], scalars);
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
