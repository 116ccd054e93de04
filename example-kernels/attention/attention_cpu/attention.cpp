// SPDX-License-Identifier: Apache-2.0
//
// The readable version and the oracle of the tests: one query at a time, all scores in memory,
// fp32 throughout, one rounding at the end.
#include "../attention_common/attention.h"

#include "query.h"

namespace attention {
namespace {

template <typename Number>
void forward_query(const Problem& problem,
                   const Buffers& b,
                   const Query& query,
                   std::vector<float>& scores) {
    const std::int64_t head_kv = query.head / (problem.heads / problem.heads_kv);
    const std::int64_t k_first = keys_at(query.sequence, b.k_strides, head_kv);
    const std::int64_t v_first = keys_at(query.sequence, b.v_strides, head_kv);
    Row q{};
    load_row<Number>(b.q,
                     queries_at(query.sequence, b.q_strides, query.head),
                     b.q_strides,
                     query.row,
                     problem.head_dim,
                     q);
    const Attended attended = attend(
        problem,
        query,
        q,
        [&](std::int64_t key, Row& row) {
            load_row<Number>(b.k, k_first, b.k_strides, key, problem.head_dim, row);
        },
        [&](std::int64_t key, Row& row) {
            load_row<Number>(b.v, v_first, b.v_strides, key, problem.head_dim_v, row);
        },
        scores);
    store_attended<Number>(problem, b, query, attended);
}

// p_ij and ds_ij of the formulas in attention.h.
struct Pair {
    float p;
    float ds;
};

// `bias` is what ALiBi adds to the score, `kept` what the dropout multiplies the probability by.
Pair gradient_of_score(const Problem& problem,
                       float product,
                       float bias,
                       float kept,
                       float lse,
                       float grad_product,
                       float delta) {
    const float s = capped_score(problem, product);
    const float p = std::exp(s + bias - lse);
    const float t = problem.softcap > 0.0F ? s / problem.softcap : 0.0F;
    return {p * kept, p * (kept * grad_product - delta) * (1.0F - t * t)};
}

template <typename Number>
void backward_query(const Problem& problem, const BackwardBuffers& b, const Query& query) {
    const Sequence& sequence = query.sequence;
    const std::int64_t head = query.head;
    const std::int64_t row = query.row;
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const std::int64_t k_first = keys_at(sequence, b.k_strides, head_kv);
    const std::int64_t v_first = keys_at(sequence, b.v_strides, head_kv);
    const std::int64_t n = problem.head_dim;
    const std::int64_t n_v = problem.head_dim_v;
    const auto dim = static_cast<std::size_t>(n);
    const auto dim_v = static_cast<std::size_t>(n_v);
    Row q{};
    Row out{};
    Row grad_out{};
    load_row<Number>(b.q, queries_at(sequence, b.q_strides, head), b.q_strides, row, n, q);
    load_row<Number>(
        b.out, queries_at(sequence, b.out_strides, head), b.out_strides, row, n_v, out);
    load_row<Number>(b.grad_out,
                     queries_at(sequence, b.grad_out_strides, head),
                     b.grad_out_strides,
                     row,
                     n_v,
                     grad_out);
    const float lse = b.lse[statistics_at(sequence, head) + row];
    const float delta = dot(grad_out, out, dim_v);
    b.delta[statistics_at(sequence, head) + row] = delta;

    Row k{};
    Row v{};
    Row sum{};
    for (std::int64_t key = query.keys.begin; key < query.keys.end; ++key) {
        load_row<Number>(b.k, k_first, b.k_strides, key, n, k);
        load_row<Number>(b.v, v_first, b.v_strides, key, n_v, v);
        const Pair pair = gradient_of_score(problem,
                                            dot(q, k, dim),
                                            position_bias(sequence, query.slope, row, key),
                                            query.dropout.factor(row, key),
                                            lse,
                                            dot(grad_out, v, dim_v),
                                            delta);
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
    const std::int64_t n_v = problem.head_dim_v;
    const auto dim = static_cast<std::size_t>(n);
    const auto dim_v = static_cast<std::size_t>(n_v);
    Row k{};
    Row v{};
    load_row<Number>(b.k, keys_at(sequence, b.k_strides, head_kv), b.k_strides, key, n, k);
    load_row<Number>(b.v, keys_at(sequence, b.v_strides, head_kv), b.v_strides, key, n_v, v);
    Row q{};
    Row grad_out{};
    Row k_sum{};
    Row v_sum{};
    const Range queries = visible_queries(problem, sequence, key);
    for (std::int64_t head = head_kv * group; head < (head_kv + 1) * group; ++head) {
        const std::int64_t q_first = queries_at(sequence, b.q_strides, head);
        const std::int64_t grad_first = queries_at(sequence, b.grad_out_strides, head);
        const std::int64_t statistics = statistics_at(sequence, head);
        const float slope = slope_of(b.extras, sequence.batch, head);
        const Dropout dropout = dropout_of(b.extras, problem, sequence.batch, head);
        for (std::int64_t row = queries.begin; row < queries.end; ++row) {
            load_row<Number>(b.q, q_first, b.q_strides, row, n, q);
            load_row<Number>(b.grad_out, grad_first, b.grad_out_strides, row, n_v, grad_out);
            const Pair pair = gradient_of_score(problem,
                                                dot(q, k, dim),
                                                position_bias(sequence, slope, row, key),
                                                dropout.factor(row, key),
                                                b.lse[statistics + row],
                                                dot(grad_out, v, dim_v),
                                                b.delta[statistics + row]);
            add_scaled(k_sum, pair.ds, q, dim);
            add_scaled(v_sum, pair.p, grad_out, dim_v);
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
                      n_v,
                      v_sum,
                      1.0F);
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
                    problem,
                    buffers,
                    query_of(problem, buffers.extras, sequence, item.head, item.row),
                    scores);
            }
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
                backward_query<decltype(number)>(
                    problem,
                    buffers,
                    query_of(problem, buffers.extras, sequence, item.head, item.row));
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
