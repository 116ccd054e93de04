// SPDX-License-Identifier: Apache-2.0
//
// Where the keys, or values, of one sequence and head lie, and how they travel to shared memory.
#pragma once

#include "../attention_common/cache.h"
#include "cache_tuning.h"
#include "tile.cuh"

namespace attention {

// Tensors of rows that lie at the same places: codes, and of int4 their scales. In bytes.
struct CacheRows {
    const unsigned char* base; // of the head; without pages, of the sequence's first key
    std::int64_t row_stride;
    std::int64_t page_stride;
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
    int groups;          // scales of a row

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
            strides.batch * element_bytes};
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
    h.width = kFormat == CacheFormat::int4 ? head_dim / 2 : head_dim * kElement;
    if constexpr (kFormat == CacheFormat::int4) {
        h.scales = cache_rows(scales, scale_strides, 2, cache, batch, head);
        h.groups = head_dim / group;
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
// from `length` on. Without `vectors` the addresses are not multiples of 16 bytes.
template <typename Tile>
__device__ __forceinline__ void load_cache_rows(
    unsigned char* rows, const CacheHead& head, int first_key, int length, bool vectors) {
    constexpr int kStride = Tile::row_stride;
    constexpr int kChunks = Tile::row_bytes / 16;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    // The lane of chunk c also brings the scale of group c: a group has two chunks or more, or
    // is the whole row.
    const auto load_scale =
        [&](unsigned char* row, const CacheHead::Place& place, bool valid, int chunk) {
            if (Tile::format == CacheFormat::int4 && chunk < head.groups) {
                copy_async_word(row + Tile::row_bytes + 4 * chunk,
                                valid ? CacheHead::at(head.scales, place) + 4 * chunk
                                      : head.scales.base,
                                valid);
            }
        };
    if (vectors) {
        constexpr int kRowsAtOnce = 32 / kChunks;
        const int chunk = lane % kChunks;
        unsigned char* target = rows + lane / kChunks * kStride + chunk * 16;
#pragma unroll 8
        for (int i = 0; i < Tile::warp_keys / kRowsAtOnce; ++i) {
            const int key = first_key + lane / kChunks + i * kRowsAtOnce;
            const bool valid = key < length;
            const bool copied = valid && chunk * 16 < head.width;
            const CacheHead::Place place = valid ? head.place(key) : CacheHead::Place{};
            copy_async_stream<Tile::row_bytes>(
                target,
                copied ? CacheHead::at(head.codes, place) + chunk * 16 : head.codes.base,
                copied);
            load_scale(target - chunk * 16, place, valid, chunk);
            target += kRowsAtOnce * kStride;
        }
        return;
    }
    for (int row = 0; row < Tile::warp_keys; ++row) {
        const bool valid = first_key + row < length;
        const CacheHead::Place place = valid ? head.place(first_key + row) : CacheHead::Place{};
        const unsigned char* source = CacheHead::at(head.codes, place);
        for (int i = lane; i < Tile::row_bytes; i += 32) {
            rows[row * kStride + i] = valid && i < head.width ? source[i] : 0;
        }
        load_scale(rows + row * kStride, place, valid, lane);
    }
}

} // namespace attention
