// SPDX-License-Identifier: Apache-2.0
//
// One query at a time: what the forward, the backward and the cache share.
#pragma once

#include "../attention_common/attention.h"
#include "../attention_common/dropout.h"
#include "float16.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace attention {

using Row = std::array<float, kMaxHeadDim>;

// Row `row` of the tensor whose rows for this sequence and head begin at element `first`.
template <typename Number>
void load_row(const void* base,
              std::int64_t first,
              const Strides& strides,
              std::int64_t row,
              std::int64_t count,
              Row& out) {
    const auto* source =
        static_cast<const typename Number::Storage*>(base) + first + row * strides.row;
    for (std::int64_t i = 0; i < count; ++i) {
        out[static_cast<std::size_t>(i)] = Number::widen(source[i]);
    }
}

template <typename Number>
void store_row(void* base,
               std::int64_t first,
               const Strides& strides,
               std::int64_t row,
               std::int64_t count,
               const Row& value,
               float factor) {
    auto* target = static_cast<typename Number::Storage*>(base) + first + row * strides.row;
    for (std::int64_t i = 0; i < count; ++i) {
        target[i] = Number::narrow(value[static_cast<std::size_t>(i)] * factor);
    }
}

inline void add_scaled(Row& sum, float factor, const Row& value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        sum[i] += factor * value[i];
    }
}

// Eight interleaved sums, so that the compiler can use vector registers.
inline float dot(const Row& a, const Row& b, std::size_t count) {
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

inline float capped_score(const Problem& problem, float product) {
    const float s = problem.scale * product;
    return problem.softcap > 0.0F ? problem.softcap * std::tanh(s / problem.softcap) : s;
}

// One query of one head.
struct Query {
    const Sequence& sequence;
    std::int64_t head;
    std::int64_t row;
    Range keys; // that it sees
    float slope;
    Dropout dropout;
};

inline Query query_of(const Problem& problem,
                      const Extras& extras,
                      const Sequence& sequence,
                      std::int64_t head,
                      std::int64_t row) {
    return {sequence,
            head,
            row,
            visible_keys(problem, sequence, row),
            slope_of(extras, sequence.batch, head),
            dropout_of(extras, problem, sequence.batch, head)};
}

// What ALiBi adds to the score.
inline float
position_bias(const Sequence& sequence, float slope, std::int64_t row, std::int64_t key) {
    const std::int64_t level = row + sequence.k_length - sequence.q_length;
    return -slope * static_cast<float>(std::abs(level - key));
}

// The sum of the values that a query sees, not yet divided.
struct Attended {
    Row sum{};
    float highest = -std::numeric_limits<float>::infinity();
    float total = 0.0F;
};

// load_key(j, row) and load_value(j, row) widen key j.
template <typename LoadKey, typename LoadValue>
Attended attend(const Problem& problem,
                const Query& query,
                const Row& q,
                const LoadKey& load_key,
                const LoadValue& load_value,
                std::vector<float>& scores) {
    Attended result;
    Row other{};
    scores.clear();
    for (std::int64_t key = query.keys.begin; key < query.keys.end; ++key) {
        load_key(key, other);
        const float product = dot(q, other, static_cast<std::size_t>(problem.head_dim));
        scores.push_back(capped_score(problem, product) +
                         position_bias(query.sequence, query.slope, query.row, key));
        result.highest = std::max(result.highest, scores.back());
    }
    for (std::int64_t key = query.keys.begin; key < query.keys.end; ++key) {
        const float p =
            std::exp(scores[static_cast<std::size_t>(key - query.keys.begin)] - result.highest);
        result.total += p;
        load_value(key, other);
        add_scaled(result.sum,
                   p * query.dropout.factor(query.row, key),
                   other,
                   static_cast<std::size_t>(problem.head_dim_v));
    }
    return result;
}

// Writes the result of one query, and its log-sum-exp.
template <typename Number, typename AnyBuffers>
void store_attended(const Problem& problem,
                    const AnyBuffers& b,
                    const Query& query,
                    const Attended& attended) {
    const bool sees_a_key = query.keys.begin < query.keys.end;
    float lse = sees_a_key ? attended.highest + std::log(attended.total)
                           : -std::numeric_limits<float>::infinity();
    float factor = sees_a_key ? 1.0F / attended.total : 0.0F;
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    if (b.extras.sinks != nullptr && b.extras.sinks[query.head] != kNone) {
        const float sink = b.extras.sinks[query.head];
        const float most = std::max(lse, sink);
        const float both = most + std::log(std::exp(lse - most) + std::exp(sink - most));
        factor *= std::exp(lse - both);
        lse = both;
    }
    store_row<Number>(b.out,
                      queries_at(query.sequence, b.out_strides, query.head),
                      b.out_strides,
                      query.row,
                      problem.head_dim_v,
                      attended.sum,
                      factor);
    b.lse[statistics_at(query.sequence, query.head) + query.row] = lse;
}

// Splits work item `item` of batch x heads x rows.
struct Item {
    std::int64_t batch;
    std::int64_t head;
    std::int64_t row;
};

inline Item split(std::int64_t item, std::int64_t heads, std::int64_t rows) {
    return {item / rows / heads, item / rows % heads, item % rows};
}

// Calls body with a value of the number type that `dtype` names.
template <typename Body>
void with_number(DType dtype, const Body& body) {
    switch (dtype) {
    case DType::f32:
        return body(Float32{});
    case DType::f16:
        return body(Float16{});
    case DType::bf16:
        return body(BFloat16{});
    }
}

} // namespace attention
