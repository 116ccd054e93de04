// SPDX-License-Identifier: Apache-2.0
//
// Checks the arguments of the functions over a cache and allocates their results.
#include "../attention_common/cache.h"
#include "arguments.h"
#include "torch_binding.h"

using namespace attention_binding;

namespace {

void check_vector(const OptionalTensor& tensor,
                  const char* name,
                  const Tensor& q,
                  std::int64_t dims,
                  std::int64_t batch) {
    if (!tensor) {
        return;
    }
    require_device(*tensor, name, q);
    if (tensor->scalar_type() != ScalarType::Int) {
        fail(name, ": expected int32, got ", torch::headeronly::toString(tensor->scalar_type()));
    }
    if (tensor->dim() != dims || tensor->size(0) != batch || !tensor->is_contiguous()) {
        fail(name,
             dims == 1 ? ": expected a contiguous vector with one number for each sequence"
                       : ": expected a contiguous matrix with one row for each sequence");
    }
}

bool is_fp8(const Tensor& tensor) {
    return tensor.scalar_type() == ScalarType::Float8_e4m3fn;
}

bool is_codes(const Tensor& tensor) {
    return tensor.scalar_type() == ScalarType::Byte;
}

// A cache of keys or values, for rows like those of `model`.
void check_cache(const Tensor& tensor,
                 const char* name,
                 const Tensor& model,
                 const char* model_name) {
    require_device(tensor, name, model);
    if (tensor.scalar_type() != model.scalar_type() && !is_fp8(tensor) && !is_codes(tensor)) {
        fail(name,
             ": must have the dtype of ",
             model_name,
             " (",
             torch::headeronly::toString(model.scalar_type()),
             "), or float8_e4m3fn, or uint8 for 4-bit codes; got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
    if (tensor.dim() != 4) {
        fail(name, ": must have 4 dimensions");
    }
}

std::int64_t channels_of(const Tensor& cache) {
    return is_codes(cache) ? 2 * cache.size(3) : cache.size(3);
}

// The arguments that say where the keys are.
struct Place {
    const Tensor& k_cache;
    const Tensor& v_cache;
    const OptionalTensor& seqlens;
    const OptionalTensor& batch_idx;
    const OptionalTensor& leftpad;
    const OptionalTensor& block_table;
};

// `model` is q or the new keys: [batch, ...].
void check_place(const Place& place, const Tensor& model, const char* model_name) {
    check_cache(place.k_cache, "k_cache", model, model_name);
    check_cache(place.v_cache, "v_cache", model, model_name);
    if (channels_of(place.k_cache) != model.size(3)) {
        fail("k_cache: must have the head dimension of ",
             model_name,
             is_codes(place.k_cache) ? ", two channels a byte" : "");
    }
    if (place.v_cache.scalar_type() != place.k_cache.scalar_type()) {
        fail("v_cache: must have the dtype of k_cache");
    }
    for (std::int64_t d = 0; d < 3; ++d) {
        if (place.k_cache.size(d) != place.v_cache.size(d)) {
            fail("v_cache: must have the shape of k_cache, but for the last dimension");
        }
    }
    const std::int64_t batch = model.size(0);
    check_vector(place.seqlens, "cache_seqlens", model, 1, batch);
    check_vector(place.batch_idx, "cache_batch_idx", model, 1, batch);
    check_vector(place.leftpad, "cache_leftpad", model, 1, batch);
    check_vector(place.block_table, "block_table", model, 2, batch);
    if (place.block_table && place.batch_idx) {
        fail("cache_batch_idx: not together with block_table, which names the places itself");
    }
    if (place.block_table && place.k_cache.size(1) == 0) {
        fail("k_cache: its pages have no rows");
    }
    if (!place.block_table && !place.batch_idx && place.k_cache.size(0) < batch) {
        fail("k_cache: has fewer sequences than ", model_name);
    }
}

// The arguments that say what the numbers of a quantised cache mean.
struct Meaning {
    const OptionalTensor& k_descale;
    const OptionalTensor& v_descale;
    const OptionalTensor& k_scale_blocks;
    const OptionalTensor& v_scale_blocks;
};

attention::Descale descale_of(const OptionalTensor& descale,
                              const char* name,
                              const Tensor& model,
                              const Tensor& cache) {
    if (!descale) {
        return {};
    }
    if (!is_fp8(cache) && !is_codes(cache)) {
        fail(name, ": only for a quantised cache");
    }
    require_float32(*descale, name, model);
    if (descale->dim() != 2 || descale->size(0) != model.size(0) ||
        descale->size(1) != cache.size(2)) {
        fail(name, ": expected [batch, heads of the cache]");
    }
    return {data_of<float>(descale), descale->stride(0), descale->stride(1)};
}

// What the scales of 4-bit codes say: of their format, and where they are.
struct ScaleBlocks {
    attention::CacheFormat format;
    bool powers;
    std::int64_t group;         // channels of a scale
    attention::Strides strides; // in bytes
};

// float16 [places, rows, heads, groups, 2]: int4; float8_e4m3fn or float8_e8m0fnu [places, rows,
// heads, groups]: fp4.
ScaleBlocks format_of_scales(const Tensor& scales, const char* name) {
    switch (scales.scalar_type()) {
    case ScalarType::Half:
        return {attention::CacheFormat::int4, false, 0, {}};
    case ScalarType::Float8_e4m3fn:
        return {attention::CacheFormat::fp4, false, 16, {}};
    case ScalarType::Float8_e8m0fnu:
        return {attention::CacheFormat::fp4, true, 32, {}};
    default:
        fail(name,
             ": expected float16 (int4), float8_e4m3fn (NVFP4) or float8_e8m0fnu (MXFP4), got ",
             torch::headeronly::toString(scales.scalar_type()));
    }
}

ScaleBlocks check_scales(const OptionalTensor& scales, const char* name, const Tensor& cache) {
    if (!is_codes(cache)) {
        if (scales) {
            fail(name, ": only for a cache of 4-bit codes");
        }
        return {is_fp8(cache) ? attention::CacheFormat::fp8 : attention::CacheFormat::plain,
                false,
                0,
                {}};
    }
    if (!scales) {
        fail(name, ": needed for a cache of 4-bit codes");
    }
    require_device(*scales, name, cache);
    ScaleBlocks result = format_of_scales(*scales, name);
    const bool pairs = result.format == attention::CacheFormat::int4;
    bool fit =
        scales->dim() == (pairs ? 5 : 4) && scales->size(3) > 0 && (!pairs || scales->size(4) == 2);
    for (std::int64_t d = 0; fit && d < 3; ++d) {
        fit = scales->size(d) == cache.size(d);
    }
    const std::int64_t groups = fit ? scales->size(3) : 1;
    const std::int64_t group = channels_of(cache) / groups;
    fit = fit && group * groups == channels_of(cache);
    if (pairs && (!fit || (groups > 1 && group % 32 != 0))) {
        fail(name,
             ": expected [places, rows, heads, groups, 2] of the cache, a group being the row or a"
             " multiple of 32 channels");
    }
    if (!pairs && (!fit || group != result.group)) {
        fail(name,
             ": expected [places, rows, heads, groups] of the cache, a group being ",
             result.group,
             " channels");
    }
    const std::int64_t bytes = pairs ? 2 : 1;
    if ((pairs && scales->stride(4) != 1) || (groups > 1 && scales->stride(3) != (pairs ? 2 : 1))) {
        fail(name, ": the scales of a row must be contiguous");
    }
    result.group = group;
    result.strides = {
        scales->stride(0) * bytes, scales->stride(1) * bytes, scales->stride(2) * bytes};
    if (pairs && (reinterpret_cast<std::uintptr_t>(scales->const_data_ptr()) % 4 != 0 ||
                  result.strides.batch % 4 != 0 || result.strides.row % 4 != 0 ||
                  result.strides.head % 4 != 0)) {
        fail(name, ": a pair must not be split over 4 bytes");
    }
    return result;
}

attention::Quantization
quantization_of(const Meaning& meaning, const Place& place, const Tensor& model) {
    const ScaleBlocks keys = check_scales(meaning.k_scale_blocks, "k_scale_blocks", place.k_cache);
    const ScaleBlocks values =
        check_scales(meaning.v_scale_blocks, "v_scale_blocks", place.v_cache);
    if (values.format != keys.format || values.powers != keys.powers ||
        values.group != keys.group) {
        fail("v_scale_blocks: must have the dtype and the group size of k_scale_blocks");
    }
    attention::Quantization result{};
    result.format = keys.format;
    result.powers = keys.powers;
    result.group = keys.group;
    result.k_scale_strides = keys.strides;
    result.v_scale_strides = values.strides;
    result.k_descale = descale_of(meaning.k_descale, "k_descale", model, place.k_cache);
    result.v_descale = descale_of(meaning.v_descale, "v_descale", model, place.v_cache);
    if (keys.group != 0) {
        // Written by the append alone.
        result.k_scales = const_cast<void*>(meaning.k_scale_blocks->const_data_ptr());
        result.v_scales = const_cast<void*>(meaning.v_scale_blocks->const_data_ptr());
    }
    return result;
}

std::int64_t capacity_of(const Place& place) {
    const std::int64_t rows = place.k_cache.size(1);
    return place.block_table ? place.block_table->size(1) * rows : rows;
}

attention::CacheLayout layout_of(const Place& place, std::int64_t appended) {
    attention::CacheLayout layout{};
    layout.lengths = data_of<std::int32_t>(place.seqlens);
    layout.index = data_of<std::int32_t>(place.batch_idx);
    layout.first = data_of<std::int32_t>(place.leftpad);
    layout.pages = data_of<std::int32_t>(place.block_table);
    layout.appended = appended;
    layout.pages_per_sequence = place.block_table ? place.block_table->size(1) : 0;
    layout.page_size = place.k_cache.size(1);
    return layout;
}

#if !defined(CUDA_KERNEL)

// On a GPU reading the values would synchronise; there they are the caller's promise.
void check_values(const Place& place, const attention::CacheLayout& layout, std::int64_t batch) {
    const std::int64_t capacity = capacity_of(place);
    const std::int64_t places = place.k_cache.size(0);
    for (std::int64_t b = 0; b < batch; ++b) {
        const std::int64_t used =
            layout.lengths == nullptr ? capacity : layout.lengths[b] + layout.appended;
        if (layout.lengths != nullptr && layout.lengths[b] < 0) {
            fail("cache_seqlens: sequence ", b, " has ", layout.lengths[b], " rows");
        }
        if (used > capacity) {
            fail("cache_seqlens: sequence ", b, " needs ", used, " rows of ", capacity);
        }
        if (layout.index != nullptr && (layout.index[b] < 0 || layout.index[b] >= places)) {
            fail("cache_batch_idx: sequence ", b, " is not in the cache");
        }
        if (layout.first != nullptr && layout.first[b] < 0) {
            fail("cache_leftpad: must not be negative");
        }
        const std::int64_t pages =
            layout.pages == nullptr ? 0 : (used + layout.page_size - 1) / layout.page_size;
        for (std::int64_t p = 0; p < pages; ++p) {
            const std::int32_t page = layout.pages[b * layout.pages_per_sequence + p];
            if (page < 0 || page >= places) {
                fail("block_table: page ", p, " of sequence ", b, " is not in the cache");
            }
        }
    }
}

#endif

attention::Problem problem_of(const Tensor& q, const Place& place) {
    if (q.dim() != 4) {
        fail("q: expected [batch, seqlen, heads, head_dim]");
    }
    attention::Problem problem{};
    problem.dtype = dtype_of(q, "q");
    problem.head_dim = q.size(3);
    if (problem.head_dim < 1 || problem.head_dim > attention::kMaxHeadDim) {
        fail("q: the head dimension must be 1 ... ", attention::kMaxHeadDim);
    }
    check_place(place, q, "q");
    problem.head_dim_v = channels_of(place.v_cache);
    if (problem.head_dim_v < 1 || problem.head_dim_v > attention::kMaxHeadDim) {
        fail("v_cache: the head dimension must be 1 ... ", attention::kMaxHeadDim);
    }
    problem.batch = q.size(0);
    problem.heads = q.size(2);
    problem.heads_kv = place.k_cache.size(2);
    problem.max_seqlen_q = q.size(1);
    problem.max_seqlen_k = capacity_of(place);
    problem.total_q = problem.batch * problem.max_seqlen_q;
    problem.total_k = problem.batch * problem.max_seqlen_k;
    if (problem.heads_kv == 0 ? problem.heads != 0 : problem.heads % problem.heads_kv != 0) {
        fail("k_cache: its number of heads must divide that of q");
    }
    return problem;
}

#if defined(CUDA_KERNEL)

void run(const attention::Problem& problem,
         attention::CacheBuffers& buffers,
         const Tensor& q,
         std::int64_t num_splits) {
    if (problem.dtype == attention::DType::f32) {
        fail("q: a cache on a GPU must be float16 or bfloat16, got Float");
    }
    const std::int64_t splits =
        attention::cache_splits_cuda(problem, buffers.quantization.format, num_splits);
    const std::int64_t rows = problem.batch * problem.heads * problem.max_seqlen_q;
    OptionalTensor partial_out;
    OptionalTensor partial_lse;
    if (splits > 1) {
        partial_out = torch::stable::new_empty(
            q, {splits, rows, attention::cache_padded_dim_cuda(problem)}, ScalarType::Float);
        partial_lse = torch::stable::new_empty(q, {splits, rows}, ScalarType::Float);
        buffers.partial_out = static_cast<float*>(partial_out->mutable_data_ptr());
        buffers.partial_lse = static_cast<float*>(partial_lse->mutable_data_ptr());
    }
    on_current_stream(q, [&](void* stream) {
        return attention::cache_forward_cuda(problem, buffers, splits, stream);
    });
}

#else

void run(const attention::Problem& problem,
         const attention::CacheBuffers& buffers,
         const Tensor& /*q*/,
         std::int64_t /*num_splits*/) {
    torch::stable::parallel_for(0,
                                problem.batch * problem.heads * problem.max_seqlen_q,
                                1,
                                [&](std::int64_t begin, std::int64_t end) {
                                    attention::cache_forward_cpu(problem, buffers, begin, end);
                                });
}

#endif

} // namespace

std::tuple<Tensor, Tensor> cache_forward(const Tensor& q,
                                         const Tensor& k_cache,
                                         const Tensor& v_cache,
                                         const OptionalTensor& cache_seqlens,
                                         const OptionalTensor& cache_batch_idx,
                                         const OptionalTensor& cache_leftpad,
                                         const OptionalTensor& block_table,
                                         int64_t appended,
                                         double softmax_scale,
                                         bool causal,
                                         int64_t window_left,
                                         int64_t window_right,
                                         double softcap,
                                         int64_t num_splits,
                                         const OptionalTensor& k_descale,
                                         const OptionalTensor& v_descale,
                                         const OptionalTensor& k_scale_blocks,
                                         const OptionalTensor& v_scale_blocks,
                                         const OptionalTensor& alibi_slopes,
                                         const OptionalTensor& sinks) {
    const Place place{k_cache, v_cache, cache_seqlens, cache_batch_idx, cache_leftpad, block_table};
    attention::Problem problem = problem_of(q, place);
    if (!(softcap >= 0.0)) {
        fail("softcap: must not be negative");
    }
    if (num_splits < 0) {
        fail("num_splits: must not be negative");
    }
    problem.window_left = window_of(window_left);
    problem.window_right = causal ? 0 : window_of(window_right);
    problem.scale = static_cast<float>(softmax_scale);
    problem.softcap = static_cast<float>(softcap);
    attention::CacheBuffers buffers{};
    buffers.cache = layout_of(place, appended);
    buffers.quantization =
        quantization_of({k_descale, v_descale, k_scale_blocks, v_scale_blocks}, place, q);
    buffers.extras = extras_of(q, alibi_slopes, sinks, problem.batch, problem.heads);
#if !defined(CUDA_KERNEL)
    check_values(place, buffers.cache, problem.batch);
#endif
    Tensor out = torch::stable::new_empty(
        q, {problem.batch, problem.max_seqlen_q, problem.heads, problem.head_dim_v});
    Tensor lse = torch::stable::new_empty(
        q, {problem.batch, problem.heads, problem.max_seqlen_q}, ScalarType::Float);
    buffers.q = q.const_data_ptr();
    buffers.k = k_cache.const_data_ptr();
    buffers.v = v_cache.const_data_ptr();
    buffers.out = out.mutable_data_ptr();
    buffers.lse = static_cast<float*>(lse.mutable_data_ptr());
    buffers.q_strides = strides_of(q, "q");
    buffers.k_strides = strides_of(k_cache, "k_cache");
    buffers.v_strides = strides_of(v_cache, "v_cache");
    buffers.out_strides = strides_of(out, "out");
    if (problem.batch != 0 && problem.heads != 0 && problem.max_seqlen_q != 0) {
        run(problem, buffers, q, num_splits);
    }
    return {out, lse};
}

void cache_append(Tensor k_cache,
                  Tensor v_cache,
                  const Tensor& k,
                  const Tensor& v,
                  const Tensor& cache_seqlens,
                  const OptionalTensor& cache_batch_idx,
                  const OptionalTensor& block_table,
                  const OptionalTensor& k_descale,
                  const OptionalTensor& v_descale,
                  const OptionalTensor& k_scale_blocks,
                  const OptionalTensor& v_scale_blocks) {
    if (k.dim() != 4) {
        fail("k: expected [batch, rows, heads, head_dim]");
    }
    require_device(v, "v", k);
    if (v.scalar_type() != k.scalar_type()) {
        fail("v: must have the dtype of k");
    }
    if (v.dim() != 4 || v.size(0) != k.size(0) || v.size(1) != k.size(1) ||
        v.size(2) != k.size(2)) {
        fail("v: must have the shape of k, but for the last dimension");
    }
    const OptionalTensor seqlens = cache_seqlens;
    const OptionalTensor none;
    const Place place{k_cache, v_cache, seqlens, cache_batch_idx, none, block_table};
    check_place(place, k, "k");
    if (v.size(3) != channels_of(v_cache)) {
        fail("v: must have the head dimension of v_cache");
    }
    if (k.size(2) != k_cache.size(2)) {
        fail("k: must have the heads of k_cache");
    }
    attention::Problem problem{};
    problem.dtype = dtype_of(k, "k");
    problem.batch = k.size(0);
    problem.heads_kv = k.size(2);
    problem.head_dim = k.size(3);
    problem.head_dim_v = v.size(3);
    problem.max_seqlen_k = capacity_of(place);
    attention::AppendBuffers buffers{};
    buffers.cache = layout_of(place, k.size(1));
#if !defined(CUDA_KERNEL)
    check_values(place, buffers.cache, problem.batch);
#endif
    buffers.quantization =
        quantization_of({k_descale, v_descale, k_scale_blocks, v_scale_blocks}, place, k);
    buffers.rows = k.size(1);
    buffers.k_new = k.const_data_ptr();
    buffers.v_new = v.const_data_ptr();
    buffers.k = k_cache.mutable_data_ptr();
    buffers.v = v_cache.mutable_data_ptr();
    buffers.k_new_strides = strides_of(k, "k");
    buffers.v_new_strides = strides_of(v, "v");
    buffers.k_strides = strides_of(k_cache, "k_cache");
    buffers.v_strides = strides_of(v_cache, "v_cache");
    const std::int64_t items = problem.batch * problem.heads_kv * buffers.rows;
    if (items == 0 || problem.head_dim == 0) {
        return;
    }
#if defined(CUDA_KERNEL)
    on_current_stream(
        k, [&](void* stream) { return attention::cache_append_cuda(problem, buffers, stream); });
#else
    torch::stable::parallel_for(0, items, 1, [&](std::int64_t begin, std::int64_t end) {
        attention::cache_append_cpu(problem, buffers, begin, end);
    });
#endif
}
