// SPDX-License-Identifier: Apache-2.0
//
// What the tensor core kernels share: tiles of shared memory, products with them, and the launch of
// a kernel that needs them.
#pragma once

#include "../attention_common/attention.h"
#include "mma.cuh"
#include "tuning.h"

#include <cuda_runtime.h>
#include <initializer_list>

namespace attention {

constexpr float kLog2E = 1.44269504088896340736F;
constexpr float kLn2 = 0.69314718055994530942F;

// Copies rows [first, first + kRows) of `length` to shared memory, zeros beyond the end and beyond
// head_dim. Without `vectors` the addresses are not multiples of 16 bytes.
template <typename Number, int kRows, int kHeadDim>
__device__ __forceinline__ void load_tile(typename Number::Storage* tile,
                                          const typename Number::Storage* base,
                                          std::int64_t row_stride,
                                          std::int64_t first,
                                          std::int64_t length,
                                          int head_dim,
                                          bool vectors) {
    using Storage = typename Number::Storage;
    constexpr int kStride = kHeadDim + kPadding;
    if (vectors) {
        // A thread keeps its column and steps down the rows.
        constexpr int kChunks = kHeadDim / 8;
        constexpr int kRowStep = kThreads / kChunks;
        static_assert(kThreads % kChunks == 0 && kRows % kRowStep == 0);
        const int row = static_cast<int>(threadIdx.x) / kChunks;
        const int column = static_cast<int>(threadIdx.x) % kChunks * 8;
        const std::int64_t left = length - first - row; // rows from ours to the end
        const auto* source = base + (first + row) * row_stride + column;
        Storage* target = tile + row * kStride + column;
#pragma unroll
        for (int i = 0; i < kRows / kRowStep; ++i) {
            const bool valid = i * kRowStep < left && column < head_dim;
            copy_async(target + i * kRowStep * kStride, valid ? source : base, valid);
            source += kRowStep * row_stride;
        }
    } else {
        for (int i = static_cast<int>(threadIdx.x); i < kRows * kHeadDim; i += kThreads) {
            const int row = i / kHeadDim;
            const int column = i % kHeadDim;
            const bool valid = first + row < length && column < head_dim;
            tile[row * kStride + column] =
                valid ? base[(first + row) * row_stride + column] : Number::zero();
        }
    }
}

// A warp writes its kRowsPerWarp rows of the tile, which start at warp_row; row 0 of the tile is
// row `first` of the tensor.
template <typename Number, int kHeadDim>
__device__ __forceinline__ void store_warp_rows(typename Number::Storage* base,
                                                const typename Number::Storage* tile,
                                                std::int64_t row_stride,
                                                std::int64_t first,
                                                std::int64_t length,
                                                int warp_row,
                                                int head_dim,
                                                bool vectors) {
    constexpr int kChunks = kHeadDim / 8;
    constexpr int kStride = kHeadDim + kPadding;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < kRowsPerWarp * kChunks; i += 32) {
        const int row = warp_row + i / kChunks;
        const int column = i % kChunks * 8;
        if (first + row >= length || column >= head_dim) {
            continue;
        }
        typename Number::Storage* target = base + (first + row) * row_stride + column;
        const typename Number::Storage* source = tile + row * kStride + column;
        if (vectors) {
            *reinterpret_cast<uint4*>(target) = *reinterpret_cast<const uint4*>(source);
        } else {
            for (int c = 0; c < 8 && column + c < head_dim; ++c) {
                target[c] = source[c];
            }
        }
    }
}

// Puts a warp's 16 x kHeadDim accumulators, times `factor`, into its rows of the tile.
template <typename Number, int kHeadDim>
__device__ __forceinline__ void accumulators_to_tile(typename Number::Storage* tile,
                                                     const float (&c)[kHeadDim / 8][4],
                                                     int warp_row,
                                                     float factor) {
    constexpr int kStride = kHeadDim + kPadding;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    typename Number::Storage* target = tile + (warp_row + lane / 4) * kStride + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            *reinterpret_cast<std::uint32_t*>(target + 8 * h * kStride + n * 8) =
                Number::pack(c[n][2 * h] * factor, c[n][2 * h + 1] * factor);
        }
    }
}

// c[16 x 8 kTiles] += 16 rows of `a`, from warp_row, times the 8 kTiles rows of `b`, over kDepth.
template <typename Number, int kDepth, int kTiles>
__device__ __forceinline__ void multiply_rows(float (&c)[kTiles][4],
                                              const typename Number::Storage* a,
                                              const typename Number::Storage* b,
                                              int warp_row) {
    constexpr int kStride = kDepth + kPadding;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto* a_row = a + (warp_row + lane % 16) * kStride + lane / 16 * 8;
    const auto* b_row = b + (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
#pragma unroll
    for (int d = 0; d < kDepth; d += 16) {
        std::uint32_t left[4];
        load_matrices(left, a_row + d);
#pragma unroll
        for (int n = 0; n < kTiles; n += 2) {
            std::uint32_t right[4];
            load_matrices(right, b_row + n * 8 * kStride + d);
            Number::multiply_add(c[n], left, right[0], right[1]);
            Number::multiply_add(c[n + 1], left, right[2], right[3]);
        }
    }
}

// c[16 x kWidth] += w[16 x 8 kTiles], in registers, times the 8 kTiles rows of `b`.
template <typename Number, int kWidth, int kTiles>
__device__ __forceinline__ void multiply_weights(float (&c)[kWidth / 8][4],
                                                 const float (&w)[kTiles][4],
                                                 const typename Number::Storage* b) {
    constexpr int kStride = kWidth + kPadding;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto* b_row = b + lane % 16 * kStride + lane / 16 * 8;
#pragma unroll
    for (int step = 0; step < kTiles; step += 2) {
        const std::uint32_t left[4] = {Number::pack(w[step][0], w[step][1]),
                                       Number::pack(w[step][2], w[step][3]),
                                       Number::pack(w[step + 1][0], w[step + 1][1]),
                                       Number::pack(w[step + 1][2], w[step + 1][3])};
#pragma unroll
        for (int n = 0; n < kWidth / 8; n += 2) {
            std::uint32_t right[4];
            load_matrices_transposed(right, b_row + step * 8 * kStride + n * 8);
            Number::multiply_add(c[n], left, right[0], right[1]);
            Number::multiply_add(c[n + 1], left, right[2], right[3]);
        }
    }
}

struct TensorLayout {
    const void* data;
    Strides strides;
};

// Whether every row of every tensor can be read by 16-byte vectors.
inline bool vectors_fit(const Problem& problem, std::initializer_list<TensorLayout> tensors) {
    bool fit = problem.head_dim % 8 == 0 && problem.head_dim_v % 8 == 0;
    for (const TensorLayout& t : tensors) {
        fit = fit && reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0 &&
              t.strides.batch % 8 == 0 && t.strides.row % 8 == 0 && t.strides.head % 8 == 0;
    }
    return fit;
}

template <typename Kernel>
cudaError_t allow_shared(Kernel kernel, int bytes) {
    return bytes <= 48 * 1024
               ? cudaSuccess
               : cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

} // namespace attention
