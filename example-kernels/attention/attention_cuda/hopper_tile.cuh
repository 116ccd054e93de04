// SPDX-License-Identifier: Apache-2.0
//
// What the Hopper kernels share: rings of tiles, the products of whole tiles, masks, and the way of
// accumulators to memory.
#pragma once

#include "hopper.cuh"

namespace attention {

// ------------------------------------------------------------------------- rings

// The parity of the n-th use of a ring of two.
__device__ __forceinline__ int ring_parity(int n) {
    return n >> 1 & 1;
}

// Waits until the n-th use of a ring may begin: the use before the last is over.
__device__ __forceinline__ void wait_free(std::uint32_t barrier, int n) {
    if (n >= 2) {
        barrier_wait(barrier, ring_parity(n) ^ 1);
    }
}

// Rows of one head as panels of 64 columns; the barrier also waits for `more` bytes.
template <int kRows, int kHeadDim>
__device__ __forceinline__ void copy_rows(std::uint32_t shared,
                                          const CUtensorMap& map,
                                          std::uint32_t full,
                                          int row,
                                          int head,
                                          int batch,
                                          int more = 0) {
    barrier_expect(full, kRows * kHeadDim * 2 + more);
#pragma unroll
    for (int panel = 0; panel < kHeadDim / kPanel; ++panel) {
        copy_box(
            shared + panel * kRows * kPanelRowBytes, map, full, panel * kPanel, row, head, batch);
    }
}

// ------------------------------------------------------------------------- products

// C = A B': 64 rows of a tile of kRows rows times kColumns rows of one of kColumnRows rows, summed
// over their kDepth columns.
template <typename Number, int kRows, int kColumns, int kDepth, int kColumnRows = kColumns>
__device__ __forceinline__ void
issue_rows_by_rows(float (&c)[kColumns / 2], std::uint32_t a, std::uint32_t b) {
    pin(c);
    product_begin();
#pragma unroll
    for (int d = 0; d < kDepth / 16; ++d) {
        const int panel = d * 16 / kPanel;
        const int inside = d * 32 % kPanelRowBytes;
        Product<Number, kColumns>::shared_by_shared(
            c,
            operand(a + panel * kRows * kPanelRowBytes + inside, 16),
            operand(b + panel * kColumnRows * kPanelRowBytes + inside, 16),
            d > 0);
    }
    product_commit();
}

// C += A B, or = if !add: 64 rows in registers, pairs of elements, times a tile of kParts * kDepth
// rows and kColumns columns.
template <typename Number, int kDepth, int kColumns, int kParts>
__device__ __forceinline__ void issue_registers_by_tile(float (&c)[kColumns / 2],
                                                        std::uint32_t (&a)[kParts][kDepth / 4],
                                                        std::uint32_t b,
                                                        bool add) {
    pin(c);
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
        pin(a[i]);
    }
    product_begin();
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
#pragma unroll
        for (int n = 0; n < kDepth / 16; ++n) {
            Product<Number, kColumns>::registers_by_shared(
                c,
                a[i] + 4 * n,
                operand(b + (i * kDepth + n * 16) * kPanelRowBytes,
                        kParts * kDepth * kPanelRowBytes),
                i > 0 || n > 0 || add);
        }
    }
    product_commit();
}

// C = A' B: the 64 columns of a panel times the 64 of another, summed over their kDepth rows.
template <typename Number, int kDepth>
__device__ __forceinline__ void
issue_panel_by_panel(float (&c)[kPanel / 2], std::uint32_t a, std::uint32_t b) {
    pin(c);
    product_begin();
#pragma unroll
    for (int n = 0; n < kDepth / 16; ++n) {
        Product<Number, kPanel>::columns_by_columns(c,
                                                    operand(a + n * 16 * kPanelRowBytes, 16),
                                                    operand(b + n * 16 * kPanelRowBytes, 16),
                                                    n > 0);
    }
    product_commit();
}

// ------------------------------------------------------------------------- elements

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// -infinity where the column is not in [begin, end) of its row; the columns are `first_column` and
// following.
template <int kScores>
__device__ __forceinline__ void
mask_scores(float (&s)[kScores], const int (&begin)[2], const int (&end)[2], int first_column) {
    const int first = first_column + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int low = begin[h] - first;
        const int high = end[h] - first;
#pragma unroll
        for (int j = 0; j < kScores / 4; ++j) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                float& value = s[4 * j + 2 * h + c];
                value = 8 * j + c >= low && 8 * j + c < high ? value : -INFINITY;
            }
        }
    }
}

// Rows from first_row on of a tile become zeros: behind the end of a packed sequence they are
// another's, perhaps not finite, and 0 * inf would spoil a sum. By kThreads threads, the first of
// the block; to be published, and waited for.
template <int kRows, int kHeadDim, int kThreads>
__device__ __forceinline__ void clear_rows(std::uint32_t tile, int first_row) {
    constexpr int kPieces = kPanelRowBytes / 16;
    const int pieces = (kRows - first_row) * kPieces;
    for (int i = static_cast<int>(threadIdx.x); i < pieces * (kHeadDim / kPanel); i += kThreads) {
        const int panel = i / pieces;
        asm volatile(
            "st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(
                tile + (panel * kRows + first_row) * kPanelRowBytes + (i - panel * pieces) * 16),
            "r"(0)
            : "memory");
    }
}

// Four lanes have four words each of four 16-byte pieces; lane t gets piece t.
__device__ __forceinline__ uint4 gather_piece(std::uint32_t r0,
                                              std::uint32_t r1,
                                              std::uint32_t r2,
                                              std::uint32_t r3) {
    const bool odd = (threadIdx.x & 1) != 0;
    const bool upper = (threadIdx.x & 2) != 0;
    const std::uint32_t x = __shfl_xor_sync(0xffffffffU, odd ? r0 : r1, 1);
    const std::uint32_t y = __shfl_xor_sync(0xffffffffU, odd ? r2 : r3, 1);
    const std::uint32_t a0 = odd ? x : r0;
    const std::uint32_t a1 = odd ? r1 : x;
    const std::uint32_t b0 = odd ? y : r2;
    const std::uint32_t b1 = odd ? r3 : y;
    const std::uint32_t c0 = __shfl_xor_sync(0xffffffffU, upper ? a0 : b0, 2);
    const std::uint32_t c1 = __shfl_xor_sync(0xffffffffU, upper ? a1 : b1, 2);
    return upper ? make_uint4(c0, c1, b0, b1) : make_uint4(a0, a1, c0, c1);
}

// Writes this thread's part of kColumns columns of its rows g and g + 8, times their factors.
template <typename Number, int kColumns>
__device__ __forceinline__ void store_rows(const float (&values)[kColumns / 2],
                                           const float (&factor)[2],
                                           typename Number::Storage* const (&rows)[2],
                                           const bool (&inside)[2],
                                           int head_dim) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int j = 0; j < kColumns / 8; j += 4) {
            std::uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                words[i] = Number::pack(values[4 * (j + i) + 2 * h] * factor[h],
                                        values[4 * (j + i) + 2 * h + 1] * factor[h]);
            }
            const uint4 piece = gather_piece(words[0], words[1], words[2], words[3]);
            const int column = (j + t) * 8;
            if (inside[h] && column < head_dim) {
                *reinterpret_cast<uint4*>(rows[h] + column) = piece;
            }
        }
    }
}

} // namespace attention
