// SPDX-License-Identifier: Apache-2.0
//
// Attention of a few new queries over a cache of keys and values: the launcher interface, and
// where a key lies.
#pragma once

#include "attention.h"

namespace attention {

// Where the keys of a sequence are. Key j of sequence b is row first(b) + j of the sequence's
// place in the cache; that place is the batch row index(b), or the pages that a table names.
struct CacheLayout {
    const std::int32_t* lengths; // [batch], rows in use; null: all
    const std::int32_t* index;   // [batch], the batch row of the cache; null: its own
    const std::int32_t* first;   // [batch], rows before the first key; null: none
    const std::int32_t* pages;   // [batch, pages_per_sequence], batch rows; null: no pages
    std::int64_t appended;       // added to every length
    std::int64_t pages_per_sequence;
    std::int64_t page_size; // rows of a batch row of the cache
};

// How a cache holds its numbers. A key or value is
//   plain  an element of the queries' dtype
//   fp8    e4m3, one byte
//   int4   (code - zero) * scale: codes 0 ... 15, channel 2 i in the low half of byte i, channel
//          2 i + 1 in the high half; each `group` channels of a row have a pair (scale, zero) of
//          fp16, zero an integer 0 ... 15
//   fp4    e2m1, two a byte as in int4, times the scale of its group in one byte: e4m3 for 16
//          channels (NVFP4), or e8m0, a power of 2, for 32 (MXFP4)
// times the descale of its sequence and head.
enum class CacheFormat : std::uint8_t { plain, fp8, int4, fp4 };

// Of head h of sequence b at b * batch + h * head; null: 1.
struct Descale {
    const float* data;
    std::int64_t batch;
    std::int64_t head;
};

struct Quantization {
    CacheFormat format;
    std::int64_t group; // int4, fp4: channels of a scale; divides head_dim
    bool powers;        // fp4: the scales are e8m0
    Descale k_descale, v_descale;
    void* k_scales; // int4, fp4: where the rows of codes are
    void* v_scales;
    Strides k_scale_strides, v_scale_strides; // in bytes; the scales of a row are contiguous
};

ATTENTION_INLINE constexpr std::int64_t cache_row_bytes_of(CacheFormat format,
                                                           std::int64_t channels) {
    return format == CacheFormat::plain ? 2 * channels
           : format == CacheFormat::fp8 ? channels
                                        : channels / 2;
}

// What a group's scales take.
ATTENTION_INLINE constexpr std::int64_t cache_scale_bytes_of(CacheFormat format) {
    return format == CacheFormat::int4 ? 4 : format == CacheFormat::fp4 ? 1 : 0;
}

ATTENTION_INLINE float descale_of(const Descale& descale, std::int64_t batch, std::int64_t head) {
    return descale.data == nullptr ? 1.0F
                                   : descale.data[batch * descale.batch + head * descale.head];
}

// heads, lengths and masks as for the forward; max_seqlen_k is the number of rows that a sequence
// may have in the cache.
struct CacheBuffers {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;         // [batch, heads, seqlen_q]
    float* partial_out; // [splits, batch * heads * seqlen_q, padded head_dim]; null for one split
    float* partial_lse; // [splits, batch * heads * seqlen_q]
    CacheLayout cache;
    Strides q_strides, k_strides, v_strides, out_strides; // codes: of k and v in bytes
    Quantization quantization;
    Extras extras;
};

// New keys and values, written behind the rows in use, in the cache's format. Rows beyond the
// capacity are dropped.
struct AppendBuffers {
    const void* k_new; // [batch, rows, heads_kv, head_dim]
    const void* v_new;
    void* k;
    void* v;
    CacheLayout cache;
    std::int64_t rows;
    Strides k_new_strides, v_new_strides, k_strides, v_strides;
    Quantization quantization;
};

ATTENTION_INLINE std::int64_t cache_first(const CacheLayout& cache, std::int64_t batch) {
    return cache.first == nullptr ? 0 : cache.first[batch];
}

ATTENTION_INLINE Sequence cache_sequence(const Problem& problem,
                                         const CacheLayout& cache,
                                         std::int64_t batch) {
    Sequence s{};
    s.batch = batch;
    s.q_length = problem.max_seqlen_q;
    std::int64_t rows = problem.max_seqlen_k;
    if (cache.lengths != nullptr && cache.lengths[batch] + cache.appended < rows) {
        rows = cache.lengths[batch] + cache.appended;
    }
    s.k_length = rows - cache_first(cache, batch);
    s.k_length = s.k_length > 0 ? s.k_length : 0;
    s.lse_first = batch * problem.heads * problem.max_seqlen_q;
    s.lse_head_stride = problem.max_seqlen_q;
    return s;
}

// The element at which `row` of the place of sequence `batch` begins.
ATTENTION_INLINE std::int64_t cache_at(const CacheLayout& cache,
                                       const Strides& strides,
                                       std::int64_t batch,
                                       std::int64_t head,
                                       std::int64_t row) {
    std::int64_t place = cache.index == nullptr ? batch : cache.index[batch];
    if (cache.pages != nullptr) {
        const std::int64_t page = row / cache.page_size;
        place = cache.pages[batch * cache.pages_per_sequence + page];
        row -= page * cache.page_size;
    }
    return place * strides.batch + row * strides.row + head * strides.head;
}

// CPU: work items [begin, end) of batch * heads * max_seqlen_q queries, and of batch * heads_kv *
// rows new rows.
void cache_forward_cpu(const Problem& problem,
                       const CacheBuffers& buffers,
                       std::int64_t begin,
                       std::int64_t end);
void cache_append_cpu(const Problem& problem,
                      const AppendBuffers& buffers,
                      std::int64_t begin,
                      std::int64_t end);

// CUDA, 16-bit dtypes. The keys of a sequence are shared among `splits` blocks, whose results are
// combined afterwards; at most kMostSplits.
constexpr std::int64_t kMostSplits = 128;

// The split count for the device at hand; `wanted` > 0 overrides it.
std::int64_t cache_splits_cuda(const Problem& problem, CacheFormat format, std::int64_t wanted);
// The columns of a row of partial_out.
std::int64_t cache_padded_dim_cuda(const Problem& problem);
const char* cache_forward_cuda(const Problem& problem,
                               const CacheBuffers& buffers,
                               std::int64_t splits,
                               void* stream);
const char* cache_append_cuda(const Problem& problem, const AppendBuffers& buffers, void* stream);

} // namespace attention
