// SPDX-License-Identifier: Apache-2.0
//
// Where the keys, or values, of one sequence and head lie, and how they travel to shared memory.
#pragma once

#include "../attention_common/cache.h"
#include "cache_tuning.h"
#include "tile.cuh"

namespace attention {

// Tensors of rows that lie at the same places: codes, and their scales. In bytes.
struct CacheRows {
    const unsigned char* base; // of the head; without pages, of the sequence's first key
    std::int64_t row_stride;
    std::int64_t page_stride;
    std::uint32_t row_bytes; // the strides again, if they fit (CachePlan::vectors)
    std::uint32_t page_bytes;
};

// One head's keys, or values, of one sequence; all counts fit in 31 bits.
struct CacheHead {
    CacheRows codes;
    CacheRows scales;
    const std::int32_t* page; // of the sequence; null: no pages
    unsigned page_size;
    unsigned page_shift; // if it is a power of 2, else 32
    unsigned first;      // row of the first key, counted in pages
    int width;           // bytes of a row of codes
    int scale_bytes;     // of a row

    struct Place {
        std::int64_t page;
        std::int64_t row;
    };

    __device__ __forceinline__ Place place(int key) const {
        if (page == nullptr) {
            return {0, key};
        }
        const unsigned at = first + static_cast<unsigned>(key);
        const unsigned number = page_shift < 32 ? at >> page_shift : at / page_size;
        return {page[number], at - number * page_size};
    }

    static __device__ __forceinline__ const unsigned char* at(const CacheRows& rows,
                                                              const Place& place) {
        return rows.base + place.page * rows.page_stride + place.row * rows.row_stride;
    }
};

__device__ __forceinline__ CacheRows cache_rows(const void* data,
                                                const Strides& strides,
                                                int element_bytes,
                                                const CacheLayout& cache,
                                                std::int64_t batch,
                                                std::int64_t head) {
    std::int64_t first = head * strides.head;
    if (cache.pages == nullptr) {
        first += (cache.index == nullptr ? batch : cache.index[batch]) * strides.batch +
                 cache_first(cache, batch) * strides.row;
    }
    return {static_cast<const unsigned char*>(data) + first * element_bytes,
            strides.row * element_bytes,
            strides.batch * element_bytes,
            static_cast<std::uint32_t>(strides.row * element_bytes),
            static_cast<std::uint32_t>(strides.batch * element_bytes)};
}

template <CacheFormat kFormat>
__device__ __forceinline__ CacheHead cache_head(const void* data,
                                                const Strides& strides,
                                                const void* scales,
                                                const Strides& scale_strides,
                                                const CacheLayout& cache,
                                                std::int64_t batch,
                                                std::int64_t head,
                                                int head_dim,
                                                int group) {
    constexpr int kElement = kFormat == CacheFormat::plain ? 2 : 1;
    CacheHead h{};
    h.codes = cache_rows(data, strides, kElement, cache, batch, head);
    h.width = static_cast<int>(cache_row_bytes_of(kFormat, head_dim));
    if constexpr (cache_scale_bytes_of(kFormat) != 0) {
        h.scales = cache_rows(scales, scale_strides, 1, cache, batch, head);
        h.scale_bytes = head_dim / group * static_cast<int>(cache_scale_bytes_of(kFormat));
    }
    if (cache.pages != nullptr) {
        h.page = cache.pages + batch * cache.pages_per_sequence;
        h.page_size = static_cast<unsigned>(cache.page_size);
        h.page_shift = (h.page_size & (h.page_size - 1)) == 0 ? __ffs(h.page_size) - 1 : 32;
        h.first = static_cast<unsigned>(cache_first(cache, batch));
    }
    return h;
}

// A warp fills its rows of a step, Tile::warp_keys of them, with keys first_key ..., with zeros
// from `length` on. One row at a time: the last steps, and what cannot be read by vectors.
template <typename Tile>
__device__ __forceinline__ void
load_cache_rows_singly(unsigned char* rows, const CacheHead& head, int first_key, int length) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
    for (int row = 0; row < Tile::warp_keys; ++row) {
        const bool valid = first_key + row < length;
        const CacheHead::Place place = valid ? head.place(first_key + row) : CacheHead::Place{};
        const unsigned char* source = CacheHead::at(head.codes, place);
        unsigned char* target = rows + row * Tile::row_stride;
#pragma unroll 1
        for (int i = lane; i < Tile::row_bytes; i += 32) {
            target[i] = valid && i < head.width ? source[i] : 0;
        }
        if (lane < head.scale_bytes) {
            target[Tile::row_bytes + lane] = valid ? CacheHead::at(head.scales, place)[lane] : 0;
        }
    }
}

// The same by vectors: 16 bytes a lane. kPaged: the pages have 2^n rows. kWhole: no row lies behind
// `length`.
template <typename Tile, bool kPaged, bool kWhole>
__device__ __forceinline__ void
load_cache_vectors(unsigned char* rows, const CacheHead& head, int first_key, int length) {
    constexpr int kChunks = Tile::row_bytes / 16;
    constexpr int kRowsAtOnce = 32 / kChunks;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int chunk = lane % kChunks;
    const bool in_row = chunk * 16 < head.width;
    unsigned char* target = rows + lane / kChunks * Tile::row_stride;
    const unsigned char* codes = head.codes.base + (in_row ? chunk * 16 : 0);
    const unsigned char* scales = head.scales.base + chunk * 4;
#pragma unroll
    for (int i = 0; i < Tile::warp_keys / kRowsAtOnce; ++i) {
        const int key = first_key + lane / kChunks + i * kRowsAtOnce;
        const bool valid = kWhole || key < length;
        auto row = static_cast<unsigned>(kWhole || valid ? key : 0);
        std::uint64_t code_at = 0;
        std::uint64_t scale_at = 0;
        if constexpr (kPaged) {
            row += head.first;
            const auto page = static_cast<unsigned>(valid ? head.page[row >> head.page_shift] : 0);
            row &= head.page_size - 1;
            code_at = std::uint64_t{page} * head.codes.page_bytes;
            scale_at = std::uint64_t{page} * head.scales.page_bytes;
        }
        code_at += std::uint64_t{row} * head.codes.row_bytes;
        copy_async_stream<Tile::prefetch>(
            target + chunk * 16, valid ? codes + code_at : codes, valid && in_row);
        if constexpr (cache_scale_bytes_of(Tile::format) != 0) {
            // The lane of chunk c also brings bytes 4 c ... of the scales: never more than chunks.
            scale_at += std::uint64_t{row} * head.scales.row_bytes;
            copy_async_word(target + Tile::row_bytes + 4 * chunk,
                            valid ? scales + scale_at : head.scales.base,
                            valid,
                            4 * chunk < head.scale_bytes);
        }
        target += kRowsAtOnce * Tile::row_stride;
    }
}

template <typename Tile>
__device__ __forceinline__ void load_cache_rows(
    unsigned char* rows, const CacheHead& head, int first_key, int length, bool vectors) {
    const bool whole = first_key + Tile::warp_keys <= length;
    if (!vectors || (head.page != nullptr && head.page_shift >= 32)) {
        load_cache_rows_singly<Tile>(rows, head, first_key, length);
    } else if (head.page != nullptr) {
        whole ? load_cache_vectors<Tile, true, true>(rows, head, first_key, length)
              : load_cache_vectors<Tile, true, false>(rows, head, first_key, length);
    } else {
        whole ? load_cache_vectors<Tile, false, true>(rows, head, first_key, length)
              : load_cache_vectors<Tile, false, false>(rows, head, first_key, length);
    }
}

} // namespace attention
