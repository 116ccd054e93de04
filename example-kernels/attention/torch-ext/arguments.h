// SPDX-License-Identifier: Apache-2.0
//
// What the bindings share: errors that name the argument, and the way from tensors to pointers.
#pragma once

#include "../attention_common/attention.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <vector>

namespace attention_binding {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    throw std::runtime_error(text.str());
}

inline attention::DType dtype_of(const Tensor& tensor, const char* name) {
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

inline void require_device(const Tensor& tensor, const char* name, const Tensor& q) {
    if (!(tensor.device() == q.device())) {
        fail(name, ": must be on the device of q");
    }
}

// The dimensions count from the end: row -3, head -2, head_dim -1.
inline attention::Strides strides_of(const Tensor& tensor, const char* name) {
    const std::int64_t dims = tensor.dim();
    bool empty = false;
    for (std::int64_t d = 0; d < dims; ++d) {
        empty = empty || tensor.size(d) == 0;
    }
    if (!empty && tensor.size(dims - 1) > 1 && tensor.stride(dims - 1) != 1) {
        fail(name, ": the last dimension must be contiguous");
    }
    return {dims == 4 ? tensor.stride(0) : 0, tensor.stride(dims - 3), tensor.stride(dims - 2)};
}

// Null without a tensor.
template <typename Number>
const Number* data_of(const OptionalTensor& tensor) {
    return tensor ? static_cast<const Number*>(tensor->const_data_ptr()) : nullptr;
}

inline void require_float32(const Tensor& tensor, const char* name, const Tensor& q) {
    require_device(tensor, name, q);
    if (tensor.scalar_type() != ScalarType::Float) {
        fail(name, ": expected float32, got ", torch::headeronly::toString(tensor.scalar_type()));
    }
}

// ALiBi's slopes and the sinks of a call with these queries.
inline attention::Extras extras_of(const Tensor& q,
                                   const OptionalTensor& alibi_slopes,
                                   const OptionalTensor& sinks,
                                   std::int64_t batch,
                                   std::int64_t heads) {
    attention::Extras extras{};
    if (alibi_slopes) {
        require_float32(*alibi_slopes, "alibi_slopes", q);
        const std::int64_t dims = alibi_slopes->dim();
        if (dims < 1 || dims > 2 || alibi_slopes->size(dims - 1) != heads ||
            (dims == 2 && alibi_slopes->size(0) != batch) || !alibi_slopes->is_contiguous()) {
            fail("alibi_slopes: expected contiguous numbers [heads] or [batch, heads]");
        }
        extras.slopes = data_of<float>(alibi_slopes);
        extras.slopes_batch = dims == 2 ? heads : 0;
    }
    if (sinks) {
        require_float32(*sinks, "sinks", q);
        if (sinks->dim() != 1 || sinks->size(0) != heads || !sinks->is_contiguous()) {
            fail("sinks: expected contiguous numbers [heads]");
        }
        extras.sinks = data_of<float>(sinks);
    }
    return extras;
}

// Dropout of a call; rng_state: two int64, the seed and the offset.
// Rows to one side of a query: no sequence has more than 2^31, and sums of it stay in 64 bits.
inline std::int64_t window_of(std::int64_t rows) {
    return std::min<std::int64_t>(rows, std::numeric_limits<std::int32_t>::max());
}

inline void add_dropout(attention::Extras& extras,
                        const Tensor& q,
                        double dropout_p,
                        const OptionalTensor& rng_state) {
    // The kernels compute with the nearest float, and with 1 / (1 - p).
    if (!(dropout_p >= 0.0 && static_cast<float>(dropout_p) < 1.0F)) {
        fail("dropout_p: must be at least 0 and less than 1");
    }
    if (dropout_p == 0.0) {
        return;
    }
    if (!rng_state) {
        fail("rng_state: needed for dropout");
    }
    require_device(*rng_state, "rng_state", q);
    if (rng_state->scalar_type() != ScalarType::Long || rng_state->dim() != 1 ||
        rng_state->size(0) != 2 || !rng_state->is_contiguous()) {
        fail("rng_state: expected two contiguous int64");
    }
    extras.rng_state = data_of<std::int64_t>(rng_state);
    extras.dropout = static_cast<float>(dropout_p);
}

inline std::vector<std::int64_t> sizes_of(const Tensor& tensor) {
    const auto sizes = tensor.sizes();
    return {sizes.begin(), sizes.end()};
}

#if defined(CUDA_KERNEL)

// Runs `enqueue(stream)` on the device and the current stream of `tensor`.
template <typename Enqueue>
void on_current_stream(const Tensor& tensor, const Enqueue& enqueue) {
    const auto device = tensor.get_device_index();
    const torch::stable::accelerator::DeviceGuard guard(device);
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
    if (const char* error = enqueue(stream)) {
        fail("CUDA launch failed: ", error);
    }
}

#endif

} // namespace attention_binding
