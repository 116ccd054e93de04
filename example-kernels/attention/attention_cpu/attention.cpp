// SPDX-License-Identifier: Apache-2.0
//
// The readable version and the oracle of the tests: one query at a time, all scores in memory,
// fp32 throughout, one rounding at the end.
#include "../attention_common/attention.h"

#include "../attention_common/cache.h"
#include "float16.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace attention {
namespace {

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

void add_scaled(Row& sum, float factor, const Row& value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        sum[i] += factor * value[i];
    }
}

// Eight interleaved sums, so that the compiler can use vector registers.
float dot(const Row& a, const Row& b, std::size_t count) {
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

float score(const Problem& problem, float product) {
    const float s = problem.scale * product;
    return problem.softcap > 0.0F ? problem.softcap * std::tanh(s / problem.softcap) : s;
}

// The sum of the values that `q` sees, not yet divided.
struct Attended {
    Row sum{};
    float highest = -std::numeric_limits<float>::infinity();
    float total = 0.0F;
};

// key_at(j) and value_at(j): the element at which the row of key j begins.
template <typename Number, typename KeyAt, typename ValueAt>
Attended attend(const Problem& problem,
                const Row& q,
                const Range& keys,
                const void* k,
                const void* v,
                const KeyAt& key_at,
                const ValueAt& value_at,
                std::vector<float>& scores) {
    const auto dim = static_cast<std::size_t>(problem.head_dim);
    const Strides none{};
    Attended result;
    Row other{};
    scores.clear();
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        load_row<Number>(k, key_at(key), none, 0, problem.head_dim, other);
        scores.push_back(score(problem, dot(q, other, dim)));
        result.highest = std::max(result.highest, scores.back());
    }
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        const float p =
            std::exp(scores[static_cast<std::size_t>(key - keys.begin)] - result.highest);
        result.total += p;
        load_row<Number>(v, value_at(key), none, 0, problem.head_dim, other);
        add_scaled(result.sum, p, other, dim);
    }
    return result;
}

// Writes the result of one query, and its log-sum-exp.
template <typename Number, typename AnyBuffers>
void store_attended(const Problem& problem,
                    const AnyBuffers& b,
                    const Sequence& sequence,
                    std::int64_t head,
                    std::int64_t row,
                    const Range& keys,
                    const Attended& attended) {
    const bool sees_a_key = keys.begin < keys.end;
    store_row<Number>(b.out,
                      queries_at(sequence, b.out_strides, head),
                      b.out_strides,
                      row,
                      problem.head_dim,
                      attended.sum,
                      sees_a_key ? 1.0F / attended.total : 0.0F);
    b.lse[statistics_at(sequence, head) + row] = sees_a_key
                                                     ? attended.highest + std::log(attended.total)
                                                     : -std::numeric_limits<float>::infinity();
}

template <typename Number>
void forward_query(const Problem& problem,
                   const Buffers& b,
                   const Sequence& sequence,
                   std::int64_t head,
                   std::int64_t row,
                   std::vector<float>& scores) {
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const std::int64_t k_first = keys_at(sequence, b.k_strides, head_kv);
    const std::int64_t v_first = keys_at(sequence, b.v_strides, head_kv);
    const Range keys = visible_keys(problem, sequence, row);
    Row q{};
    load_row<Number>(
        b.q, queries_at(sequence, b.q_strides, head), b.q_strides, row, problem.head_dim, q);
    const Attended attended = attend<Number>(
        problem,
        q,
        keys,
        b.k,
        b.v,
        [&](std::int64_t key) { return k_first + key * b.k_strides.row; },
        [&](std::int64_t key) { return v_first + key * b.v_strides.row; },
        scores);
    store_attended<Number>(problem, b, sequence, head, row, keys, attended);
}

template <typename Number>
void cache_query(const Problem& problem,
                 const CacheBuffers& b,
                 std::int64_t batch,
                 std::int64_t head,
                 std::int64_t row,
                 std::vector<float>& scores) {
    const Sequence sequence = cache_sequence(problem, b.cache, batch);
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const std::int64_t first = cache_first(b.cache, batch);
    const Range keys = visible_keys(problem, sequence, row);
    Row q{};
    load_row<Number>(
        b.q, queries_at(sequence, b.q_strides, head), b.q_strides, row, problem.head_dim, q);
    const Attended attended = attend<Number>(
        problem,
        q,
        keys,
        b.k,
        b.v,
        [&](std::int64_t key) {
            return cache_at(b.cache, b.k_strides, batch, head_kv, first + key);
        },
        [&](std::int64_t key) {
            return cache_at(b.cache, b.v_strides, batch, head_kv, first + key);
        },
        scores);
    store_attended<Number>(problem, b, sequence, head, row, keys, attended);
}

// Copies one row of a new tensor behind the rows of the cache that are in use.
template <typename Number>
void append_row(const Problem& problem,
                const AppendBuffers& b,
                std::int64_t batch,
                std::int64_t head,
                std::int64_t row) {
    using Storage = typename Number::Storage;
    const std::int64_t at = b.cache.lengths[batch] + row;
    if (at < 0 || at >= problem.max_seqlen_k) {
        return;
    }
    const auto copy = [&](const void* from, const Strides& old, void* to, const Strides& place) {
        const auto* source =
            static_cast<const Storage*>(from) + batch * old.batch + row * old.row + head * old.head;
        std::copy_n(source,
                    problem.head_dim,
                    static_cast<Storage*>(to) + cache_at(b.cache, place, batch, head, at));
    };
    copy(b.k_new, b.k_new_strides, b.k, b.k_strides);
    copy(b.v_new, b.v_new_strides, b.v, b.v_strides);
}

// p_ij and ds_ij of the formulas in attention.h.
struct Pair {
    float p;
    float ds;
};

Pair gradient_of_score(
    const Problem& problem, float product, float lse, float grad_product, float delta) {
    const float s = score(problem, product);
    const float p = std::exp(s - lse);
    const float t = problem.softcap > 0.0F ? s / problem.softcap : 0.0F;
    return {p, p * (grad_product - delta) * (1.0F - t * t)};
}

template <typename Number>
void backward_query(const Problem& problem,
                    const BackwardBuffers& b,
                    const Sequence& sequence,
                    std::int64_t head,
                    std::int64_t row) {
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const std::int64_t k_first = keys_at(sequence, b.k_strides, head_kv);
    const std::int64_t v_first = keys_at(sequence, b.v_strides, head_kv);
    const std::int64_t n = problem.head_dim;
    const auto dim = static_cast<std::size_t>(n);
    Row q{};
    Row out{};
    Row grad_out{};
    load_row<Number>(b.q, queries_at(sequence, b.q_strides, head), b.q_strides, row, n, q);
    load_row<Number>(b.out, queries_at(sequence, b.out_strides, head), b.out_strides, row, n, out);
    load_row<Number>(b.grad_out,
                     queries_at(sequence, b.grad_out_strides, head),
                     b.grad_out_strides,
                     row,
                     n,
                     grad_out);
    const float lse = b.lse[statistics_at(sequence, head) + row];
    const float delta = dot(grad_out, out, dim);
    b.delta[statistics_at(sequence, head) + row] = delta;

    Row k{};
    Row v{};
    Row sum{};
    const Range keys = visible_keys(problem, sequence, row);
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        load_row<Number>(b.k, k_first, b.k_strides, key, n, k);
        load_row<Number>(b.v, v_first, b.v_strides, key, n, v);
        const Pair pair =
            gradient_of_score(problem, dot(q, k, dim), lse, dot(grad_out, v, dim), delta);
        add_scaled(sum, pair.ds, k, dim);
    }
    store_row<Number>(b.grad_q,
                      queries_at(sequence, b.grad_q_strides, head),
                      b.grad_q_strides,
                      row,
                      n,
                      sum,
                      problem.scale);
}

template <typename Number>
void backward_key(const Problem& problem,
                  const BackwardBuffers& b,
                  const Sequence& sequence,
                  std::int64_t head_kv,
                  std::int64_t key) {
    const std::int64_t group = problem.heads / problem.heads_kv;
    const std::int64_t n = problem.head_dim;
    const auto dim = static_cast<std::size_t>(n);
    Row k{};
    Row v{};
    load_row<Number>(b.k, keys_at(sequence, b.k_strides, head_kv), b.k_strides, key, n, k);
    load_row<Number>(b.v, keys_at(sequence, b.v_strides, head_kv), b.v_strides, key, n, v);
    Row q{};
    Row grad_out{};
    Row k_sum{};
    Row v_sum{};
    const Range queries = visible_queries(problem, sequence, key);
    for (std::int64_t head = head_kv * group; head < (head_kv + 1) * group; ++head) {
        const std::int64_t q_first = queries_at(sequence, b.q_strides, head);
        const std::int64_t grad_first = queries_at(sequence, b.grad_out_strides, head);
        const std::int64_t statistics = statistics_at(sequence, head);
        for (std::int64_t row = queries.begin; row < queries.end; ++row) {
            load_row<Number>(b.q, q_first, b.q_strides, row, n, q);
            load_row<Number>(b.grad_out, grad_first, b.grad_out_strides, row, n, grad_out);
            const Pair pair = gradient_of_score(problem,
                                                dot(q, k, dim),
                                                b.lse[statistics + row],
                                                dot(grad_out, v, dim),
                                                b.delta[statistics + row]);
            add_scaled(k_sum, pair.ds, q, dim);
            add_scaled(v_sum, pair.p, grad_out, dim);
        }
    }
    store_row<Number>(b.grad_k,
                      keys_at(sequence, b.grad_k_strides, head_kv),
                      b.grad_k_strides,
                      key,
                      n,
                      k_sum,
                      problem.scale);
    store_row<Number>(b.grad_v,
                      keys_at(sequence, b.grad_v_strides, head_kv),
                      b.grad_v_strides,
                      key,
                      n,
                      v_sum,
                      1.0F);
}

// Splits work item `item` of batch x heads x rows.
struct Item {
    std::int64_t batch;
    std::int64_t head;
    std::int64_t row;
};

Item split(std::int64_t item, std::int64_t heads, std::int64_t rows) {
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

} // namespace

void forward_cpu(const Problem& problem,
                 const Buffers& buffers,
                 std::int64_t begin,
                 std::int64_t end) {
    with_number(problem.dtype, [&](auto number) {
        std::vector<float> scores;
        for (std::int64_t i = begin; i < end; ++i) {
            const Item item = split(i, problem.heads, problem.max_seqlen_q);
            const Sequence sequence = sequence_of(problem, buffers.offsets, item.batch);
            if (item.row < sequence.q_length) {
                forward_query<decltype(number)>(
                    problem, buffers, sequence, item.head, item.row, scores);
            }
        }
    });
}

void cache_forward_cpu(const Problem& problem,
                       const CacheBuffers& buffers,
                       std::int64_t begin,
                       std::int64_t end) {
    with_number(problem.dtype, [&](auto number) {
        std::vector<float> scores;
        for (std::int64_t i = begin; i < end; ++i) {
            const Item item = split(i, problem.heads, problem.max_seqlen_q);
            cache_query<decltype(number)>(
                problem, buffers, item.batch, item.head, item.row, scores);
        }
    });
}

void cache_append_cpu(const Problem& problem,
                      const AppendBuffers& buffers,
                      std::int64_t begin,
                      std::int64_t end) {
    with_number(problem.dtype, [&](auto number) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Item item = split(i, problem.heads_kv, buffers.rows);
            append_row<decltype(number)>(problem, buffers, item.batch, item.head, item.row);
        }
    });
}

void backward_queries_cpu(const Problem& problem,
                          const BackwardBuffers& buffers,
                          std::int64_t begin,
                          std::int64_t end) {
    with_number(problem.dtype, [&](auto number) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Item item = split(i, problem.heads, problem.max_seqlen_q);
            const Sequence sequence = sequence_of(problem, buffers.offsets, item.batch);
            if (item.row < sequence.q_length) {
                backward_query<decltype(number)>(problem, buffers, sequence, item.head, item.row);
            }
        }
    });
}

void backward_keys_cpu(const Problem& problem,
                       const BackwardBuffers& buffers,
                       std::int64_t begin,
                       std::int64_t end) {
    with_number(problem.dtype, [&](auto number) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Item item = split(i, problem.heads_kv, problem.max_seqlen_k);
            const Sequence sequence = sequence_of(problem, buffers.offsets, item.batch);
            if (item.row < sequence.k_length) {
                backward_key<decltype(number)>(problem, buffers, sequence, item.head, item.row);
            }
        }
    });
}

} // namespace attention
