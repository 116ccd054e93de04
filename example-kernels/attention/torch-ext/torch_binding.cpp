// SPDX-License-Identifier: Apache-2.0
//
// Checks arguments, allocates results, registers the operators. No arithmetic here.
#include "torch_binding.h"

#include "../attention_common/attention.h"
#include "registration.h"

#include <sstream>
#include <stdexcept>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <vector>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;

namespace {

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    throw std::runtime_error(text.str());
}

attention::DType dtype_of(const Tensor& tensor, const char* name) {
    switch (tensor.scalar_type()) {
    case ScalarType::Float:
        return attention::DType::f32;
    case ScalarType::Half:
        return attention::DType::f16;
    case ScalarType::BFloat16:
        return attention::DType::bf16;
    default:
        fail(name,
             ": expected float32, float16 or bfloat16, got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
}

void require_device(const Tensor& tensor, const char* name, const Tensor& q) {
    if (!(tensor.device() == q.device())) {
        fail(name, ": must be on the device of q");
    }
}

// The dimensions count from the end: row -3, head -2, head_dim -1.
attention::Strides strides_of(const Tensor& tensor, const char* name) {
    const std::int64_t dims = tensor.dim();
    if (tensor.size(dims - 1) > 1 && tensor.stride(dims - 1) != 1) {
        fail(name, ": the last dimension must be contiguous");
    }
    return {dims == 4 ? tensor.stride(0) : 0, tensor.stride(dims - 3), tensor.stride(dims - 2)};
}

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
    if (tensor.size(dims - 1) != q.size(dims - 1)) {
        fail(name, ": must have the head dimension of q");
    }
    for (std::int64_t d = 0; d < dims; ++d) {
        if (tensor.size(d) != k.size(d)) {
            fail(name, ": must have the shape of k");
        }
    }
    const std::int64_t heads_kv = tensor.size(dims - 2);
    if (heads_kv == 0 ? q.size(dims - 2) != 0 : q.size(dims - 2) % heads_kv != 0) {
        fail(name, ": its number of heads must divide that of q");
    }
}

#if defined(CUDA_KERNEL)

void run(const attention::Problem& problem, const attention::Buffers& buffers, const Tensor& q) {
    const auto device = q.get_device_index();
    const torch::stable::accelerator::DeviceGuard guard(device);
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
    if (const char* error = attention::forward_cuda(problem, buffers, stream)) {
        fail("CUDA launch failed: ", error);
    }
}

#else

void run(const attention::Problem& problem,
         const attention::Buffers& buffers,
         const Tensor& /*q*/) {
    constexpr std::int64_t kQueriesPerTask = 16;
    torch::stable::parallel_for(0,
                                problem.batch * problem.heads * problem.max_seqlen_q,
                                kQueriesPerTask,
                                [&](std::int64_t begin, std::int64_t end) {
                                    attention::forward_cpu(problem, buffers, begin, end);
                                });
}

#endif

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
                                             double softcap) {
    const bool packed = cu_seqlens_q.has_value();
    if (packed != cu_seqlens_k.has_value()) {
        fail("cu_seqlens_k: must be given together with cu_seqlens_q");
    }
    const std::int64_t dims = packed ? 3 : 4;
    if (q.dim() != dims) {
        fail("q: expected ",
             packed ? "[total, heads, head_dim]" : "[batch, seqlen, heads, head_dim]");
    }
    attention::Problem problem{};
    problem.dtype = dtype_of(q, "q");
    problem.head_dim = q.size(dims - 1);
    if (problem.head_dim < 1 || problem.head_dim > attention::kMaxHeadDim) {
        fail("q: the head dimension must be 1 ... ", attention::kMaxHeadDim);
    }
    if (!(softcap >= 0.0)) {
        fail("softcap: must not be negative");
    }
    check_key_or_value(k, "k", q, k);
    check_key_or_value(v, "v", q, k);
    problem.heads = q.size(dims - 2);
    problem.heads_kv = k.size(dims - 2);
    if (packed) {
        check_offsets(*cu_seqlens_q, "cu_seqlens_q", q, q.size(0), max_seqlen_q, "max_seqlen_q");
        check_offsets(*cu_seqlens_k, "cu_seqlens_k", q, k.size(0), max_seqlen_k, "max_seqlen_k");
        if (cu_seqlens_q->size(0) != cu_seqlens_k->size(0)) {
            fail("cu_seqlens_k: must have the length of cu_seqlens_q");
        }
        problem.batch = cu_seqlens_q->size(0) - 1;
        problem.max_seqlen_q = max_seqlen_q;
        problem.max_seqlen_k = max_seqlen_k;
        problem.total_q = q.size(0);
    } else {
        problem.batch = q.size(0);
        problem.max_seqlen_q = q.size(1);
        problem.max_seqlen_k = k.size(1);
        problem.total_q = problem.batch * problem.max_seqlen_q;
    }
    problem.window_left = window_left;
    problem.window_right = causal ? 0 : window_right;
    problem.scale = static_cast<float>(softmax_scale);
    problem.softcap = static_cast<float>(softcap);

    const auto q_sizes = q.sizes();
    Tensor out =
        torch::stable::new_empty(q, std::vector<std::int64_t>(q_sizes.begin(), q_sizes.end()));
    Tensor lse = torch::stable::new_empty(
        q,
        packed ? std::vector<std::int64_t>{problem.heads, problem.total_q}
               : std::vector<std::int64_t>{problem.batch, problem.heads, problem.max_seqlen_q},
        ScalarType::Float);

    attention::Buffers buffers{};
    buffers.q = q.const_data_ptr();
    buffers.k = k.const_data_ptr();
    buffers.v = v.const_data_ptr();
    buffers.out = out.mutable_data_ptr();
    buffers.lse = static_cast<float*>(lse.mutable_data_ptr());
    if (packed) {
        buffers.seqlens_q = static_cast<const std::int32_t*>(cu_seqlens_q->const_data_ptr());
        buffers.seqlens_k = static_cast<const std::int32_t*>(cu_seqlens_k->const_data_ptr());
    }
    buffers.q_strides = strides_of(q, "q");
    buffers.k_strides = strides_of(k, "k");
    buffers.v_strides = strides_of(v, "v");
    buffers.out_strides = strides_of(out, "out");
    if (problem.batch != 0 && problem.heads != 0 && problem.max_seqlen_q != 0) {
        run(problem, buffers, q);
    }
    return {out, lse};
}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
    ops.def("attention_forward(Tensor q, Tensor k, Tensor v, Tensor? cu_seqlens_q,"
            " Tensor? cu_seqlens_k, SymInt max_seqlen_q, SymInt max_seqlen_k,"
            " float softmax_scale, bool causal, int window_left, int window_right,"
            " float softcap) -> (Tensor, Tensor)");
}

#if defined(CUDA_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
#else
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
#endif
    ops.impl("attention_forward", TORCH_BOX(&attention_forward));
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
