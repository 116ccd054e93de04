// SPDX-License-Identifier: Apache-2.0
//
// What the bindings share: errors that name the argument, and the way from tensors to pointers.
#pragma once

#include "../attention_common/attention.h"

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
