// SPDX-License-Identifier: Apache-2.0
//
// The readable version and the oracle of the tests: one query at a time, all scores in memory,
// fp32 throughout, one rounding at the end.
#include "../attention_common/attention.h"

#include "float16.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace attention {
namespace {

template <typename Number>
void load_row(const void* base,
              std::int64_t offset,
              std::int64_t count,
              std::array<float, kMaxHeadDim>& out) {
    const auto* source = static_cast<const typename Number::Storage*>(base) + offset;
    for (std::int64_t i = 0; i < count; ++i) {
        out[static_cast<std::size_t>(i)] = Number::widen(source[i]);
    }
}

// Eight interleaved sums, so that the compiler can use vector registers.
float dot(const std::array<float, kMaxHeadDim>& a,
          const std::array<float, kMaxHeadDim>& b,
          std::size_t count) {
    constexpr std::size_t kLanes = 8;
    std::array<float, kLanes> lanes{};
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            lanes[lane] += a[i + lane] * b[i + lane];
        }
    }
    float total = 0.0F;
    for (const float lane : lanes) {
        total += lane;
    }
    for (; i < count; ++i) {
        total += a[i] * b[i];
    }
    return total;
}

template <typename Number>
void forward_query(const Problem& problem,
                   const Buffers& buffers,
                   const Sequence& sequence,
                   std::int64_t head,
                   std::int64_t row,
                   std::vector<float>& score) {
    using Row = std::array<float, kMaxHeadDim>;
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const KeyRange keys = visible_keys(problem, sequence, row);
    const auto dim = static_cast<std::size_t>(problem.head_dim);

    Row q{};
    Row other{};
    load_row<Number>(buffers.q,
                     sequence.q_offset + row * buffers.q_strides.row +
                         head * buffers.q_strides.head,
                     problem.head_dim,
                     q);
    score.clear();
    float highest = -std::numeric_limits<float>::infinity();
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        load_row<Number>(buffers.k,
                         sequence.k_offset + key * buffers.k_strides.row +
                             head_kv * buffers.k_strides.head,
                         problem.head_dim,
                         other);
        float s = problem.scale * dot(q, other, dim);
        if (problem.softcap > 0.0F) {
            s = problem.softcap * std::tanh(s / problem.softcap);
        }
        score.push_back(s);
        highest = std::max(highest, s);
    }

    Row sum{};
    float total = 0.0F;
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        const float p = std::exp(score[static_cast<std::size_t>(key - keys.begin)] - highest);
        total += p;
        load_row<Number>(buffers.v,
                         sequence.v_offset + key * buffers.v_strides.row +
                             head_kv * buffers.v_strides.head,
                         problem.head_dim,
                         other);
        for (std::size_t i = 0; i < dim; ++i) {
            sum[i] += p * other[i];
        }
    }

    auto* out = static_cast<typename Number::Storage*>(buffers.out) + sequence.out_offset +
                row * buffers.out_strides.row + head * buffers.out_strides.head;
    const bool sees_a_key = keys.begin < keys.end;
    for (std::size_t i = 0; i < dim; ++i) {
        out[i] = Number::narrow(sees_a_key ? sum[i] / total : 0.0F);
    }
    buffers.lse[sequence.lse_offset + head * sequence.lse_head_stride + row] =
        sees_a_key ? highest + std::log(total) : -std::numeric_limits<float>::infinity();
}

template <typename Number>
void forward(const Problem& problem, const Buffers& buffers, std::int64_t begin, std::int64_t end) {
    std::vector<float> score;
    for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t row = item % problem.max_seqlen_q;
        const std::int64_t head = item / problem.max_seqlen_q % problem.heads;
        const std::int64_t batch = item / problem.max_seqlen_q / problem.heads;
        const Sequence sequence = sequence_of(problem, buffers, batch);
        if (row < sequence.q_length) {
            forward_query<Number>(problem, buffers, sequence, head, row, score);
        }
    }
}

} // namespace

void forward_cpu(const Problem& problem,
                 const Buffers& buffers,
                 std::int64_t begin,
                 std::int64_t end) {
    switch (problem.dtype) {
    case DType::f32:
        return forward<Float32>(problem, buffers, begin, end);
    case DType::f16:
        return forward<Float16>(problem, buffers, begin, end);
    case DType::bf16:
        return forward<BFloat16>(problem, buffers, begin, end);
    }
}

} // namespace attention
