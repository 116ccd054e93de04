// SPDX-License-Identifier: Apache-2.0
//
// Checks arguments, allocates results, registers the operators. No arithmetic here.
#include "torch_binding.h"

#include "../attention_common/attention.h"
#include "arguments.h"
#include "registration.h"

#include <torch/csrc/stable/library.h>

using namespace attention_binding;

namespace {

void check_offsets(const Tensor& offsets,
                   const char* name,
                   const Tensor& q,
                   std::int64_t total,
                   std::int64_t longest,
                   const char* longest_name) {
    require_device(offsets, name, q);
    if (offsets.scalar_type() != ScalarType::Int) {
        fail(name, ": expected int32, got ", torch::headeronly::toString(offsets.scalar_type()));
    }
    if (offsets.dim() != 1 || offsets.size(0) < 1 || !offsets.is_contiguous()) {
        fail(name, ": expected a contiguous vector of batch + 1 offsets");
    }
    if (longest < 0) {
        fail(longest_name, ": must not be negative");
    }
#if !defined(CUDA_KERNEL)
    // On a GPU reading the values would synchronise; there they are the caller's promise.
    const auto* values = static_cast<const std::int32_t*>(offsets.const_data_ptr());
    const std::int64_t batch = offsets.size(0) - 1;
    if (values[0] != 0 || values[batch] > total) {
        fail(name, ": must begin with 0 and end within the tensor");
    }
    for (std::int64_t i = 0; i < batch; ++i) {
        if (values[i + 1] < values[i]) {
            fail(name, ": must not decrease");
        }
        if (values[i + 1] - values[i] > longest) {
            fail(longest_name, ": is shorter than sequence ", i);
        }
    }
#else
    (void)total;
#endif
}

void check_key_or_value(const Tensor& tensor, const char* name, const Tensor& q, const Tensor& k) {
    require_device(tensor, name, q);
    if (tensor.scalar_type() != q.scalar_type()) {
        fail(name,
             ": must have the dtype of q (",
             torch::headeronly::toString(q.scalar_type()),
             "), got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
    const std::int64_t dims = q.dim();
    if (tensor.dim() != dims) {
        fail(name, ": must have ", dims, " dimensions, as q");
    }
    if (dims == 4 && tensor.size(0) != q.size(0)) {
        fail(name, ": must have the batch size of q");
    }
    for (std::int64_t d = 0; d < dims - 1; ++d) {
        if (tensor.size(d) != k.size(d)) {
            fail(name, ": must have the shape of k, but for the head dimension");
        }
    }
    const std::int64_t heads_kv = tensor.size(dims - 2);
    if (heads_kv == 0 ? q.size(dims - 2) != 0 : q.size(dims - 2) % heads_kv != 0) {
        fail(name, ": its number of heads must divide that of q");
    }
}

// What both operators take: the arguments of attention_forward, in its order. The backward needs
// no sinks: the log-sum-exp holds them.
struct Arguments {
    const Tensor& q;
    const Tensor& k;
    const Tensor& v;
    const OptionalTensor& cu_seqlens_q;
    const OptionalTensor& cu_seqlens_k;
    std::int64_t max_seqlen_q;
    std::int64_t max_seqlen_k;
    double softmax_scale;
    bool causal;
    std::int64_t window_left;
    std::int64_t window_right;
    double softcap;
    const OptionalTensor& alibi_slopes;
    const OptionalTensor& sinks;
    double dropout_p;
    const OptionalTensor& rng_state;
};

attention::Problem problem_of(const Arguments& a) {
    const bool packed = a.cu_seqlens_q.has_value();
    if (packed != a.cu_seqlens_k.has_value()) {
        fail("cu_seqlens_k: must be given together with cu_seqlens_q");
    }
    const std::int64_t dims = packed ? 3 : 4;
    if (a.q.dim() != dims) {
        fail("q: expected ",
             packed ? "[total, heads, head_dim]" : "[batch, seqlen, heads, head_dim]");
    }
    attention::Problem problem{};
    problem.dtype = dtype_of(a.q, "q");
    problem.head_dim = a.q.size(dims - 1);
    if (problem.head_dim < 1 || problem.head_dim > attention::kMaxHeadDim) {
        fail("q: the head dimension must be 1 ... ", attention::kMaxHeadDim);
    }
    if (!(a.softcap >= 0.0)) {
        fail("softcap: must not be negative");
    }
    check_key_or_value(a.k, "k", a.q, a.k);
    if (a.k.size(dims - 1) != problem.head_dim) {
        fail("k: must have the head dimension of q");
    }
    check_key_or_value(a.v, "v", a.q, a.k);
    problem.head_dim_v = a.v.size(dims - 1);
    if (problem.head_dim_v < 1 || problem.head_dim_v > attention::kMaxHeadDim) {
        fail("v: the head dimension must be 1 ... ", attention::kMaxHeadDim);
    }
    problem.heads = a.q.size(dims - 2);
    problem.heads_kv = a.k.size(dims - 2);
    if (packed) {
        const Tensor& offsets_q = *a.cu_seqlens_q;
        const Tensor& offsets_k = *a.cu_seqlens_k;
        check_offsets(offsets_q, "cu_seqlens_q", a.q, a.q.size(0), a.max_seqlen_q, "max_seqlen_q");
        check_offsets(offsets_k, "cu_seqlens_k", a.q, a.k.size(0), a.max_seqlen_k, "max_seqlen_k");
        if (offsets_q.size(0) != offsets_k.size(0)) {
            fail("cu_seqlens_k: must have the length of cu_seqlens_q");
        }
        problem.batch = offsets_q.size(0) - 1;
        problem.max_seqlen_q = a.max_seqlen_q;
        problem.max_seqlen_k = a.max_seqlen_k;
        problem.total_q = a.q.size(0);
        problem.total_k = a.k.size(0);
    } else {
        problem.batch = a.q.size(0);
        problem.max_seqlen_q = a.q.size(1);
        problem.max_seqlen_k = a.k.size(1);
        problem.total_q = problem.batch * problem.max_seqlen_q;
        problem.total_k = problem.batch * problem.max_seqlen_k;
    }
    problem.window_left = window_of(a.window_left);
    problem.window_right = a.causal ? 0 : window_of(a.window_right);
    problem.scale = static_cast<float>(a.softmax_scale);
    problem.softcap = static_cast<float>(a.softcap);
    return problem;
}

attention::Offsets offsets_of(const Arguments& a) {
    return {data_of<std::int32_t>(a.cu_seqlens_q), data_of<std::int32_t>(a.cu_seqlens_k)};
}

attention::Extras extras_of(const Arguments& a, const attention::Problem& problem) {
    attention::Extras extras =
        attention_binding::extras_of(a.q, a.alibi_slopes, a.sinks, problem.batch, problem.heads);
    add_dropout(extras, a.q, a.dropout_p, a.rng_state);
    return extras;
}

// The shape of the result: that of q, with the head dimension of v.
std::vector<std::int64_t> out_sizes(const Arguments& a) {
    std::vector<std::int64_t> sizes = sizes_of(a.q);
    sizes.back() = a.v.size(a.v.dim() - 1);
    return sizes;
}

// The shape of the log-sum-exp.
std::vector<std::int64_t> statistic_sizes(const attention::Problem& problem, bool packed) {
    return packed ? std::vector<std::int64_t>{problem.heads, problem.total_q}
                  : std::vector<std::int64_t>{problem.batch, problem.heads, problem.max_seqlen_q};
}

#if defined(CUDA_KERNEL)

void forward(const attention::Problem& problem,
             const attention::Buffers& buffers,
             const Tensor& q) {
    Tensor next_tile = torch::stable::new_empty(q, {1}, ScalarType::Int);
    attention::Buffers with_workspace = buffers;
    with_workspace.next_tile = static_cast<int*>(next_tile.mutable_data_ptr());
    on_current_stream(
        q, [&](void* stream) { return attention::forward_cuda(problem, with_workspace, stream); });
}

void backward(const attention::Problem& problem,
              const attention::BackwardBuffers& buffers,
              const Tensor& q) {
    attention::BackwardBuffers with_workspace = buffers;
    std::optional<Tensor> workspace;
    {
        const torch::stable::accelerator::DeviceGuard guard(q.get_device_index());
        const std::int64_t bytes = attention::backward_workspace_bytes(problem, buffers);
        if (bytes != 0) {
            workspace = torch::stable::new_empty(q, {bytes}, ScalarType::Byte);
            with_workspace.workspace = workspace->mutable_data_ptr();
        }
    }
    on_current_stream(
        q, [&](void* stream) { return attention::backward_cuda(problem, with_workspace, stream); });
}

#else

constexpr std::int64_t kRowsPerTask = 16;

void forward(const attention::Problem& problem,
             const attention::Buffers& buffers,
             const Tensor& /*q*/) {
    torch::stable::parallel_for(0,
                                problem.batch * problem.heads * problem.max_seqlen_q,
                                kRowsPerTask,
                                [&](std::int64_t begin, std::int64_t end) {
                                    attention::forward_cpu(problem, buffers, begin, end);
                                });
}

void backward(const attention::Problem& problem,
              const attention::BackwardBuffers& buffers,
              const Tensor& /*q*/) {
    torch::stable::parallel_for(0,
                                problem.batch * problem.heads * problem.max_seqlen_q,
                                kRowsPerTask,
                                [&](std::int64_t begin, std::int64_t end) {
                                    attention::backward_queries_cpu(problem, buffers, begin, end);
                                });
    torch::stable::parallel_for(0,
                                problem.batch * problem.heads_kv * problem.max_seqlen_k,
                                kRowsPerTask,
                                [&](std::int64_t begin, std::int64_t end) {
                                    attention::backward_keys_cpu(problem, buffers, begin, end);
                                });
}

#endif

std::tuple<Tensor, Tensor> run_forward(const Arguments& a) {
    const attention::Problem problem = problem_of(a);
    Tensor out = torch::stable::new_empty(a.q, out_sizes(a));
    Tensor lse = torch::stable::new_empty(
        a.q, statistic_sizes(problem, a.cu_seqlens_q.has_value()), ScalarType::Float);
    attention::Buffers buffers{};
    buffers.q = a.q.const_data_ptr();
    buffers.k = a.k.const_data_ptr();
    buffers.v = a.v.const_data_ptr();
    buffers.out = out.mutable_data_ptr();
    buffers.lse = static_cast<float*>(lse.mutable_data_ptr());
    buffers.offsets = offsets_of(a);
    buffers.q_strides = strides_of(a.q, "q");
    buffers.k_strides = strides_of(a.k, "k");
    buffers.v_strides = strides_of(a.v, "v");
    buffers.out_strides = strides_of(out, "out");
    buffers.extras = extras_of(a, problem);
    if (problem.batch != 0 && problem.heads != 0 && problem.max_seqlen_q != 0) {
        forward(problem, buffers, a.q);
    }
    return {out, lse};
}

void require_like_out(const Tensor& tensor, const char* name, const Arguments& a) {
    require_device(tensor, name, a.q);
    if (tensor.scalar_type() != a.q.scalar_type() || sizes_of(tensor) != out_sizes(a)) {
        fail(name, ": must have the dtype and the shape of the result");
    }
}

std::tuple<Tensor, Tensor, Tensor>
run_backward(const Tensor& grad_out, const Arguments& a, const Tensor& out, const Tensor& lse) {
    const attention::Problem problem = problem_of(a);
    const std::vector<std::int64_t> lse_sizes =
        statistic_sizes(problem, a.cu_seqlens_q.has_value());
    require_like_out(grad_out, "grad_out", a);
    require_like_out(out, "out", a);
    require_device(lse, "lse", a.q);
    if (lse.scalar_type() != ScalarType::Float || sizes_of(lse) != lse_sizes ||
        !lse.is_contiguous()) {
        fail("lse: expected the contiguous float32 tensor that the forward returned");
    }
    // Packed rows outside every sequence have no influence: their gradient is 0.
    const auto new_gradient = [&](const Tensor& tensor) {
        Tensor gradient = torch::stable::new_empty(tensor, sizes_of(tensor));
        if (a.cu_seqlens_q.has_value()) {
            torch::stable::zero_(gradient);
        }
        return gradient;
    };
    Tensor grad_q = new_gradient(a.q);
    Tensor grad_k = new_gradient(a.k);
    Tensor grad_v = new_gradient(a.v);
    Tensor delta = torch::stable::new_empty(a.q, lse_sizes, ScalarType::Float);
    attention::BackwardBuffers buffers{};
    buffers.q = a.q.const_data_ptr();
    buffers.k = a.k.const_data_ptr();
    buffers.v = a.v.const_data_ptr();
    buffers.out = out.const_data_ptr();
    buffers.grad_out = grad_out.const_data_ptr();
    buffers.lse = static_cast<const float*>(lse.const_data_ptr());
    buffers.delta = static_cast<float*>(delta.mutable_data_ptr());
    buffers.grad_q = grad_q.mutable_data_ptr();
    buffers.grad_k = grad_k.mutable_data_ptr();
    buffers.grad_v = grad_v.mutable_data_ptr();
    buffers.offsets = offsets_of(a);
    buffers.q_strides = strides_of(a.q, "q");
    buffers.k_strides = strides_of(a.k, "k");
    buffers.v_strides = strides_of(a.v, "v");
    buffers.out_strides = strides_of(out, "out");
    buffers.grad_out_strides = strides_of(grad_out, "grad_out");
    buffers.grad_q_strides = strides_of(grad_q, "grad_q");
    buffers.grad_k_strides = strides_of(grad_k, "grad_k");
    buffers.grad_v_strides = strides_of(grad_v, "grad_v");
    buffers.extras = extras_of(a, problem);
    if (problem.batch != 0 && problem.heads != 0) {
        backward(problem, buffers, a.q);
    }
    return {grad_q, grad_k, grad_v};
}

} // namespace

std::tuple<Tensor, Tensor> attention_forward(const Tensor& q,
                                             const Tensor& k,
                                             const Tensor& v,
                                             const OptionalTensor& cu_seqlens_q,
                                             const OptionalTensor& cu_seqlens_k,
                                             int64_t max_seqlen_q,
                                             int64_t max_seqlen_k,
                                             double softmax_scale,
                                             bool causal,
                                             int64_t window_left,
                                             int64_t window_right,
                                             double softcap,
                                             const OptionalTensor& alibi_slopes,
                                             const OptionalTensor& sinks,
                                             double dropout_p,
                                             const OptionalTensor& rng_state) {
    return run_forward({q,
                        k,
                        v,
                        cu_seqlens_q,
                        cu_seqlens_k,
                        max_seqlen_q,
                        max_seqlen_k,
                        softmax_scale,
                        causal,
                        window_left,
                        window_right,
                        softcap,
                        alibi_slopes,
                        sinks,
                        dropout_p,
                        rng_state});
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad_out,
                                                      const Tensor& q,
                                                      const Tensor& k,
                                                      const Tensor& v,
                                                      const Tensor& out,
                                                      const Tensor& lse,
                                                      const OptionalTensor& cu_seqlens_q,
                                                      const OptionalTensor& cu_seqlens_k,
                                                      int64_t max_seqlen_q,
                                                      int64_t max_seqlen_k,
                                                      double softmax_scale,
                                                      bool causal,
                                                      int64_t window_left,
                                                      int64_t window_right,
                                                      double softcap,
                                                      const OptionalTensor& alibi_slopes,
                                                      double dropout_p,
                                                      const OptionalTensor& rng_state) {
    const OptionalTensor no_sinks;
    const Arguments arguments{q,
                              k,
                              v,
                              cu_seqlens_q,
                              cu_seqlens_k,
                              max_seqlen_q,
                              max_seqlen_k,
                              softmax_scale,
                              causal,
                              window_left,
                              window_right,
                              softcap,
                              alibi_slopes,
                              no_sinks,
                              dropout_p,
                              rng_state};
    return run_backward(grad_out, arguments, out, lse);
}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
    ops.def("attention_forward(Tensor q, Tensor k, Tensor v, Tensor? cu_seqlens_q,"
            " Tensor? cu_seqlens_k, SymInt max_seqlen_q, SymInt max_seqlen_k,"
            " float softmax_scale, bool causal, int window_left, int window_right,"
            " float softcap, Tensor? alibi_slopes, Tensor? sinks, float dropout_p,"
            " Tensor? rng_state) -> (Tensor, Tensor)");
    ops.def("attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out,"
            " Tensor lse, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, SymInt max_seqlen_q,"
            " SymInt max_seqlen_k, float softmax_scale, bool causal, int window_left,"
            " int window_right, float softcap, Tensor? alibi_slopes, float dropout_p,"
            " Tensor? rng_state) -> (Tensor, Tensor, Tensor)");
    ops.def("cache_forward(Tensor q, Tensor k_cache, Tensor v_cache, Tensor? cache_seqlens,"
            " Tensor? cache_batch_idx, Tensor? cache_leftpad, Tensor? block_table, SymInt appended,"
            " float softmax_scale, bool causal, int window_left, int window_right, float softcap,"
            " int num_splits, Tensor? k_descale, Tensor? v_descale, Tensor? k_scale_blocks,"
            " Tensor? v_scale_blocks, Tensor? alibi_slopes, Tensor? sinks) -> (Tensor, Tensor)");
    ops.def("cache_append(Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v,"
            " Tensor cache_seqlens, Tensor? cache_batch_idx, Tensor? block_table,"
            " Tensor? k_descale, Tensor? v_descale, Tensor(c!)? k_scale_blocks,"
            " Tensor(d!)? v_scale_blocks) -> ()");
}

#if defined(CUDA_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
#else
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
#endif
    ops.impl("attention_forward", TORCH_BOX(&attention_forward));
    ops.impl("attention_backward", TORCH_BOX(&attention_backward));
    ops.impl("cache_forward", TORCH_BOX(&cache_forward));
    ops.impl("cache_append", TORCH_BOX(&cache_append));
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
