// SPDX-License-Identifier: Apache-2.0
//
// The launcher interface: plain pointers, sizes and strides; no framework, no toolkit header.
// torch-ext/ fills these structures after checking the tensors; each backend folder
// implements its part.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define ATTENTION_INLINE __host__ __device__ __forceinline__
#else
#define ATTENTION_INLINE inline
#endif

namespace attention {

enum class DType : std::uint8_t { f32, f16, bf16 };

constexpr std::int64_t kMaxHeadDim = 256;

// For query i and key j of one sequence and head, shifted so that the last query is level with
// the last key (i' = i + seqlen_k - seqlen_q):
//   s = scale * dot(q_i, k_j);  with softcap > 0: s = softcap * tanh(s / softcap)
//   visible if  j >= i' - window_left   (window_left < 0: no limit)
//          and  j <= i' + window_right  (window_right < 0: no limit; causal is 0)
//   out_i = sum_j softmax(s)_j v_j;  lse_i = log(sum_j exp(s_j)) over the visible keys
// A query that sees no key gets out 0 and lse -infinity.
struct Problem {
    std::int64_t batch;
    std::int64_t heads;        // of the queries
    std::int64_t heads_kv;     // divides heads; head h reads head h / (heads / heads_kv)
    std::int64_t head_dim;     // 1 ... kMaxHeadDim
    std::int64_t max_seqlen_q; // the length if it is the same for all, else the longest
    std::int64_t max_seqlen_k;
    std::int64_t total_q; // queries of all sequences together
    std::int64_t window_left;
    std::int64_t window_right;
    float scale;
    float softcap; // 0: none
    DType dtype;
};

// In elements; the head dimension has stride 1. Packed (varlen) tensors have no batch stride.
struct Strides {
    std::int64_t batch;
    std::int64_t row;
    std::int64_t head;
};

struct Buffers {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;                    // [batch, heads, seqlen_q], packed: [heads, total_q]
    const std::int32_t* seqlens_q; // packed: batch + 1 offsets of the sequences; else null
    const std::int32_t* seqlens_k;
    Strides q_strides, k_strides, v_strides, out_strides;
};

// One sequence of the batch: where it begins and how long it is.
struct Sequence {
    std::int64_t q_offset, k_offset, v_offset, out_offset; // elements
    std::int64_t q_length, k_length;
    std::int64_t lse_offset; // of head 0
    std::int64_t lse_head_stride;
};

ATTENTION_INLINE Sequence sequence_of(const Problem& problem,
                                      const Buffers& buffers,
                                      std::int64_t batch) {
    Sequence s{};
    if (buffers.seqlens_q == nullptr) {
        s.q_offset = batch * buffers.q_strides.batch;
        s.out_offset = batch * buffers.out_strides.batch;
        s.q_length = problem.max_seqlen_q;
        s.lse_offset = batch * problem.heads * problem.max_seqlen_q;
        s.lse_head_stride = problem.max_seqlen_q;
    } else {
        const std::int64_t first = buffers.seqlens_q[batch];
        s.q_offset = first * buffers.q_strides.row;
        s.out_offset = first * buffers.out_strides.row;
        s.q_length = buffers.seqlens_q[batch + 1] - first;
        s.lse_offset = first;
        s.lse_head_stride = problem.total_q;
    }
    if (buffers.seqlens_k == nullptr) {
        s.k_offset = batch * buffers.k_strides.batch;
        s.v_offset = batch * buffers.v_strides.batch;
        s.k_length = problem.max_seqlen_k;
    } else {
        const std::int64_t first = buffers.seqlens_k[batch];
        s.k_offset = first * buffers.k_strides.row;
        s.v_offset = first * buffers.v_strides.row;
        s.k_length = buffers.seqlens_k[batch + 1] - first;
    }
    return s;
}

// The keys that query `row` sees: [begin, end), empty if end <= begin.
struct KeyRange {
    std::int64_t begin;
    std::int64_t end;
};

ATTENTION_INLINE KeyRange visible_keys(const Problem& problem,
                                       const Sequence& sequence,
                                       std::int64_t row) {
    const std::int64_t level = row + sequence.k_length - sequence.q_length;
    KeyRange range{0, sequence.k_length};
    if (problem.window_left >= 0 && level - problem.window_left > range.begin) {
        range.begin = level - problem.window_left;
    }
    if (problem.window_right >= 0 && level + problem.window_right + 1 < range.end) {
        range.end = level + problem.window_right + 1;
    }
    return range;
}

// CPU: work items [begin, end) of batch * heads * max_seqlen_q, one query each. Safe to call from
// many threads on disjoint ranges.
void forward_cpu(const Problem& problem,
                 const Buffers& buffers,
                 std::int64_t begin,
                 std::int64_t end);

// CUDA: enqueues on `stream` (a cudaStream_t) of the current device. Returns nullptr, or the
// text of the launch error.
const char* forward_cuda(const Problem& problem, const Buffers& buffers, void* stream);

} // namespace attention
