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
//   with ALiBi: s = s - slope * |i' - j|
//   visible if  j >= i' - window_left   (window_left < 0: no limit)
//          and  j <= i' + window_right  (window_right < 0: no limit; causal is 0)
//   out_i = sum_j softmax(s)_j v_j;  lse_i = log(sum_j exp(s_j)) over the visible keys
//   with a sink, a score that has no value: lse_i = log(exp(sink) + sum_j exp(s_j)), and the
//   softmax divides by exp(lse_i)
// A query that sees no key gets out 0 and lse -infinity (the sink, if there is one).
struct Problem {
    std::int64_t batch;
    std::int64_t heads;        // of the queries
    std::int64_t heads_kv;     // divides heads; head h reads head h / (heads / heads_kv)
    std::int64_t head_dim;     // of queries and keys, 1 ... kMaxHeadDim
    std::int64_t head_dim_v;   // of values and results, likewise
    std::int64_t max_seqlen_q; // the length if it is the same for all, else the longest
    std::int64_t max_seqlen_k;
    std::int64_t total_q; // queries of all sequences together
    std::int64_t total_k; // keys, likewise
    std::int64_t window_left;
    std::int64_t window_right;
    float scale;
    float softcap; // 0: none
    DType dtype;
};

ATTENTION_INLINE std::int64_t widest_head(const Problem& problem) {
    return problem.head_dim > problem.head_dim_v ? problem.head_dim : problem.head_dim_v;
}

// In elements; the head dimension has stride 1. Packed (varlen) tensors have no batch stride.
struct Strides {
    std::int64_t batch;
    std::int64_t row;
    std::int64_t head;
};

// Packed sequences: batch + 1 offsets each, in rows. Both null: sequences of one length.
struct Offsets {
    const std::int32_t* q;
    const std::int32_t* k;
};

// What only some models have; all null: none of it. fp32 tensors.
struct Extras {
    const float* slopes; // ALiBi, of head h of sequence b at b * slopes_batch + h
    std::int64_t slopes_batch;
    const float* sinks;            // [heads]
    const std::int64_t* rng_state; // of the dropout: seed, offset
    float dropout;                 // the share of probabilities that become 0
};

ATTENTION_INLINE bool is_plain(const Extras& extras) {
    return extras.slopes == nullptr && extras.sinks == nullptr && extras.dropout == 0.0F;
}

ATTENTION_INLINE float slope_of(const Extras& extras, std::int64_t batch, std::int64_t head) {
    return extras.slopes == nullptr ? 0.0F : extras.slopes[batch * extras.slopes_batch + head];
}

struct Buffers {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;     // [batch, heads, seqlen_q], packed: [heads, total_q]
    int* next_tile; // workspace of one number on the device; CUDA only
    Offsets offsets;
    Strides q_strides, k_strides, v_strides, out_strides;
    Extras extras;
};

struct BackwardBuffers {
    const void* q;
    const void* k;
    const void* v;
    const void* out;
    const void* grad_out;
    const float* lse;
    float* delta; // workspace like lse
    void* grad_q;
    void* grad_k;
    void* grad_v;
    Offsets offsets;
    Strides q_strides, k_strides, v_strides, out_strides, grad_out_strides;
    Strides grad_q_strides, grad_k_strides, grad_v_strides;
    Extras extras;
    void* workspace = nullptr; // of backward_workspace_bytes; CUDA only
};

// One sequence of the batch: where it begins and how long it is.
struct Sequence {
    std::int64_t batch;
    std::int64_t q_first; // rows before it in a packed tensor
    std::int64_t k_first;
    std::int64_t q_length;
    std::int64_t k_length;
    std::int64_t lse_first; // of head 0
    std::int64_t lse_head_stride;
};

ATTENTION_INLINE Sequence sequence_of(const Problem& problem,
                                      const Offsets& offsets,
                                      std::int64_t batch) {
    Sequence s{};
    s.batch = batch;
    if (offsets.q == nullptr) {
        s.q_length = problem.max_seqlen_q;
        s.k_length = problem.max_seqlen_k;
        s.lse_first = batch * problem.heads * problem.max_seqlen_q;
        s.lse_head_stride = problem.max_seqlen_q;
    } else {
        s.q_first = offsets.q[batch];
        s.k_first = offsets.k[batch];
        s.q_length = offsets.q[batch + 1] - s.q_first;
        s.k_length = offsets.k[batch + 1] - s.k_first;
        s.lse_first = s.q_first;
        s.lse_head_stride = problem.total_q;
    }
    return s;
}

// The element at which the rows of `head` begin, in a tensor of queries or of keys. A packed
// tensor's batch stride is 0, another's first row is 0.
ATTENTION_INLINE std::int64_t
queries_at(const Sequence& s, const Strides& strides, std::int64_t head) {
    return s.batch * strides.batch + s.q_first * strides.row + head * strides.head;
}

ATTENTION_INLINE std::int64_t
keys_at(const Sequence& s, const Strides& strides, std::int64_t head) {
    return s.batch * strides.batch + s.k_first * strides.row + head * strides.head;
}

ATTENTION_INLINE std::int64_t statistics_at(const Sequence& s, std::int64_t head) {
    return s.lse_first + head * s.lse_head_stride;
}

// [begin, end), empty if end <= begin.
struct Range {
    std::int64_t begin;
    std::int64_t end;
};

// The keys that query `row` sees.
ATTENTION_INLINE Range visible_keys(const Problem& problem,
                                    const Sequence& sequence,
                                    std::int64_t row) {
    const std::int64_t level = row + sequence.k_length - sequence.q_length;
    Range range{0, sequence.k_length};
    if (problem.window_left >= 0 && level - problem.window_left > range.begin) {
        range.begin = level - problem.window_left;
    }
    if (problem.window_right >= 0 && level + problem.window_right + 1 < range.end) {
        range.end = level + problem.window_right + 1;
    }
    return range;
}

// The queries that see `key`: the same condition, solved for the query.
ATTENTION_INLINE Range visible_queries(const Problem& problem,
                                       const Sequence& sequence,
                                       std::int64_t key) {
    const std::int64_t level = key + sequence.q_length - sequence.k_length;
    Range range{0, sequence.q_length};
    if (problem.window_right >= 0 && level - problem.window_right > range.begin) {
        range.begin = level - problem.window_right;
    }
    if (problem.window_left >= 0 && level + problem.window_left + 1 < range.end) {
        range.end = level + problem.window_left + 1;
    }
    return range;
}

// The gradients, with p_ij = exp(s_ij - lse_i), delta_i = dot(grad_out_i, out_i), and z_ij what the
// dropout multiplies p_ij by in the forward (0, or 1 / (1 - dropout)):
//   grad_v_j = sum_i z_ij p_ij grad_out_i
//   ds_ij    = p_ij (z_ij dot(grad_out_i, v_j) - delta_i) [times 1 - (s_ij / softcap)^2]
//   grad_q_i = scale sum_j ds_ij k_j;   grad_k_j = scale sum_i ds_ij q_i
// Keys of one head gather from all query heads that read it.

// CPU: work items [begin, end), safe to call from many threads on disjoint ranges.
//   forward_cpu, backward_queries_cpu (grad_q, delta): batch * heads * max_seqlen_q queries
//   backward_keys_cpu (grad_k, grad_v; after all queries): batch * heads_kv * max_seqlen_k keys
void forward_cpu(const Problem& problem,
                 const Buffers& buffers,
                 std::int64_t begin,
                 std::int64_t end);
void backward_queries_cpu(const Problem& problem,
                          const BackwardBuffers& buffers,
                          std::int64_t begin,
                          std::int64_t end);
void backward_keys_cpu(const Problem& problem,
                       const BackwardBuffers& buffers,
                       std::int64_t begin,
                       std::int64_t end);

// CUDA: enqueues on `stream` (a cudaStream_t) of the current device. Returns nullptr, or the
// text of the launch error.
const char* forward_cuda(const Problem& problem, const Buffers& buffers, void* stream);
const char* backward_cuda(const Problem& problem, const BackwardBuffers& buffers, void* stream);

// What backward_cuda needs on the current device for these arguments, of which `delta` and
// `workspace` are not looked at; 0: no workspace, but delta.
std::int64_t backward_workspace_bytes(const Problem& problem, const BackwardBuffers& buffers);

} // namespace attention
