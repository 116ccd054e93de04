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

void check_like(const Tensor& tensor,
                const char* name,
                const Tensor& model,
                const char* model_name) {
    require_device(tensor, name, model);
    if (tensor.scalar_type() != model.scalar_type()) {
        fail(name,
             ": must have the dtype of ",
             model_name,
             " (",
             torch::headeronly::toString(model.scalar_type()),
             "), got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
    if (tensor.dim() != 4) {
        fail(name, ": must have 4 dimensions");
    }
    if (tensor.size(3) != model.size(3)) {
        fail(name, ": must have the head dimension of ", model_name);
    }
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
    check_like(place.k_cache, "k_cache", model, model_name);
    check_like(place.v_cache, "v_cache", model, model_name);
    if (sizes_of(place.k_cache) != sizes_of(place.v_cache)) {
        fail("v_cache: must have the shape of k_cache");
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

std::int64_t capacity_of(const Place& place) {
    const std::int64_t rows = place.k_cache.size(1);
    return place.block_table ? place.block_table->size(1) * rows : rows;
}

attention::CacheLayout layout_of(const Place& place, std::int64_t appended) {
    const auto data = [](const OptionalTensor& tensor) {
        return tensor ? static_cast<const std::int32_t*>(tensor->const_data_ptr()) : nullptr;
    };
    attention::CacheLayout layout{};
    layout.lengths = data(place.seqlens);
    layout.index = data(place.batch_idx);
    layout.first = data(place.leftpad);
    layout.pages = data(place.block_table);
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
        if (used < 0 || used > capacity) {
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
    const std::int64_t splits = attention::cache_splits_cuda(problem, num_splits);
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
                                         int64_t num_splits) {
    const Place place{k_cache, v_cache, cache_seqlens, cache_batch_idx, cache_leftpad, block_table};
    attention::Problem problem = problem_of(q, place);
    if (!(softcap >= 0.0)) {
        fail("softcap: must not be negative");
    }
    if (num_splits < 0) {
        fail("num_splits: must not be negative");
    }
    problem.window_left = window_left;
    problem.window_right = causal ? 0 : window_right;
    problem.scale = static_cast<float>(softmax_scale);
    problem.softcap = static_cast<float>(softcap);
    attention::CacheBuffers buffers{};
    buffers.cache = layout_of(place, appended);
#if !defined(CUDA_KERNEL)
    check_values(place, buffers.cache, problem.batch);
#endif
    Tensor out = torch::stable::new_empty(q, sizes_of(q));
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
                  const OptionalTensor& block_table) {
    if (k.dim() != 4) {
        fail("k: expected [batch, rows, heads, head_dim]");
    }
    check_like(v, "v", k, "k");
    if (sizes_of(v) != sizes_of(k)) {
        fail("v: must have the shape of k");
    }
    const OptionalTensor seqlens = cache_seqlens;
    const OptionalTensor none;
    const Place place{k_cache, v_cache, seqlens, cache_batch_idx, none, block_table};
    check_place(place, k, "k");
    if (k.size(2) != k_cache.size(2)) {
        fail("k: must have the heads of k_cache");
    }
    attention::Problem problem{};
    problem.dtype = dtype_of(k, "k");
    problem.batch = k.size(0);
    problem.heads_kv = k.size(2);
    problem.head_dim = k.size(3);
    problem.max_seqlen_k = capacity_of(place);
    attention::AppendBuffers buffers{};
    buffers.cache = layout_of(place, k.size(1));
#if !defined(CUDA_KERNEL)
    check_values(place, buffers.cache, problem.batch);
#endif
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
