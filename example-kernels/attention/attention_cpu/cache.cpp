// SPDX-License-Identifier: Apache-2.0
//
// The readable version of attention over a cache, in every format.
#include "../attention_common/cache.h"

#include "quantized.h"
#include "query.h"

namespace attention {
namespace {

// The keys, or the values, of a cache.
struct Rows {
    const void* data;
    Strides strides;
    const void* scales;
    Strides scale_strides;
    std::int64_t width;
    float descale;
};

// Widens the row of the cache that begins at element `at`, with its scales at `scales_at`.
template <typename Number>
void load_cache_row(const Quantization& quantization,
                    const Rows& rows,
                    std::int64_t at,
                    std::int64_t scales_at,
                    Row& row) {
    if (quantization.format == CacheFormat::plain) {
        load_row<Number>(rows.data, at, {}, 0, rows.width, row);
        return;
    }
    const auto* codes = static_cast<const std::uint8_t*>(rows.data) + at;
    const auto* scales = static_cast<const std::uint8_t*>(rows.scales) + scales_at;
    const Int4Row int4{codes, reinterpret_cast<const std::uint16_t*>(scales)};
    const Fp4Row fp4{codes, scales, quantization.powers};
    for (std::int64_t i = 0; i < rows.width; ++i) {
        const float value = quantization.format == CacheFormat::fp8 ? Float8::widen(codes[i])
                            : quantization.format == CacheFormat::fp4
                                ? fp4.at(i, quantization.group)
                                : int4.at(i, quantization.group);
        row[static_cast<std::size_t>(i)] = value * rows.descale;
    }
}

template <typename Number>
void cache_query(const Problem& problem,
                 const CacheBuffers& b,
                 std::int64_t batch,
                 std::int64_t head,
                 std::int64_t row,
                 std::vector<float>& scores) {
    const Quantization& quantization = b.quantization;
    const Sequence sequence = cache_sequence(problem, b.cache, batch);
    const std::int64_t head_kv = head / (problem.heads / problem.heads_kv);
    const std::int64_t first = cache_first(b.cache, batch);
    const Query query = query_of(problem, b.extras, sequence, head, row);
    const Rows keys{b.k,
                    b.k_strides,
                    quantization.k_scales,
                    quantization.k_scale_strides,
                    problem.head_dim,
                    descale_of(quantization.k_descale, batch, head_kv)};
    const Rows values{b.v,
                      b.v_strides,
                      quantization.v_scales,
                      quantization.v_scale_strides,
                      problem.head_dim_v,
                      descale_of(quantization.v_descale, batch, head_kv)};
    const auto load = [&](const Rows& rows, std::int64_t key, Row& target) {
        load_cache_row<Number>(quantization,
                               rows,
                               cache_at(b.cache, rows.strides, batch, head_kv, first + key),
                               cache_at(b.cache, rows.scale_strides, batch, head_kv, first + key),
                               target);
    };
    Row q{};
    load_row<Number>(
        b.q, queries_at(sequence, b.q_strides, head), b.q_strides, row, problem.head_dim, q);
    const Attended attended = attend(
        problem,
        query,
        q,
        [&](std::int64_t key, Row& target) { load(keys, key, target); },
        [&](std::int64_t key, Row& target) { load(values, key, target); },
        scores);
    store_attended<Number>(problem, b, query, attended);
}

// Writes one row of a new tensor behind the rows of the cache that are in use.
template <typename Number>
void append_row(const Problem& problem,
                const AppendBuffers& b,
                std::int64_t batch,
                std::int64_t head,
                std::int64_t row) {
    using Storage = typename Number::Storage;
    const Quantization& quantization = b.quantization;
    const std::int64_t at = b.cache.lengths[batch] + row;
    if (at < 0 || at >= problem.max_seqlen_k) {
        return;
    }
    const auto append = [&](const void* from,
                            const Strides& old,
                            void* to,
                            const Strides& place,
                            void* scales,
                            const Strides& scale_place,
                            std::int64_t width,
                            float descale) {
        const std::int64_t source = batch * old.batch + row * old.row + head * old.head;
        const std::int64_t target = cache_at(b.cache, place, batch, head, at);
        if (quantization.format == CacheFormat::plain) {
            std::copy_n(static_cast<const Storage*>(from) + source,
                        width,
                        static_cast<Storage*>(to) + target);
            return;
        }
        Row values{};
        load_row<Number>(from, source, {}, 0, width, values);
        auto* codes = static_cast<std::uint8_t*>(to) + target;
        for (std::int64_t i = 0; i < width; ++i) {
            float& value = values[static_cast<std::size_t>(i)];
            value /= descale;
            if (quantization.format == CacheFormat::fp8) {
                codes[i] = Float8::narrow(value);
            }
        }
        if (quantization.format == CacheFormat::fp8) {
            return;
        }
        auto* target_scales =
            static_cast<std::uint8_t*>(scales) + cache_at(b.cache, scale_place, batch, head, at);
        for (std::int64_t i = 0; i < width; i += quantization.group) {
            const float* group = &values[static_cast<std::size_t>(i)];
            if (quantization.format == CacheFormat::int4) {
                store_int4_group(group,
                                 quantization.group,
                                 codes + i / 2,
                                 reinterpret_cast<std::uint16_t*>(target_scales));
            } else {
                store_fp4_group(
                    group, quantization.group, quantization.powers, codes + i / 2, target_scales);
            }
            target_scales += cache_scale_bytes_of(quantization.format);
        }
    };
    append(b.k_new,
           b.k_new_strides,
           b.k,
           b.k_strides,
           quantization.k_scales,
           quantization.k_scale_strides,
           problem.head_dim,
           descale_of(quantization.k_descale, batch, head));
    append(b.v_new,
           b.v_new_strides,
           b.v,
           b.v_strides,
           quantization.v_scales,
           quantization.v_scale_strides,
           problem.head_dim_v,
           descale_of(quantization.v_descale, batch, head));
}

} // namespace

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

} // namespace attention
