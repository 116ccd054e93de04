// SPDX-License-Identifier: Apache-2.0
//
// Checks arguments, allocates results, registers the operators. No arithmetic here.
#include "torch_binding.h"

#include "../activation_common/activation.h"
#include "registration.h"

#include <array>
#include <sstream>
#include <stdexcept>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <utility>
#include <vector>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace {

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    throw std::runtime_error(text.str());
}

struct Row {
    const char* name;
    activation::Function function;
    activation::Form form;
};

// In the order of `Op`.
constexpr std::array<Row, 13> kOps{{
    {"silu_and_mul", activation::Function::silu, activation::Form::gate_first},
    {"mul_and_silu", activation::Function::silu, activation::Form::gate_last},
    {"gelu_and_mul", activation::Function::gelu, activation::Form::gate_first},
    {"gelu_tanh_and_mul", activation::Function::gelu_tanh, activation::Form::gate_first},
    {"fatrelu_and_mul", activation::Function::fatrelu, activation::Form::gate_first},
    {"silu", activation::Function::silu, activation::Form::unary},
    {"gelu", activation::Function::gelu, activation::Form::unary},
    {"gelu_tanh", activation::Function::gelu_tanh, activation::Form::unary},
    {"gelu_fast", activation::Function::gelu_fast, activation::Form::unary},
    {"gelu_new", activation::Function::gelu_new, activation::Form::unary},
    {"gelu_quick", activation::Function::gelu_quick, activation::Form::unary},
    {"relu2", activation::Function::relu2, activation::Form::unary},
    {"swigluoai_and_mul", activation::Function::swiglu_oai, activation::Form::interleaved},
}};

const Row& row_of(const std::string& function) {
    for (const Row& row : kOps) {
        if (function == row.name) {
            return row;
        }
    }
    fail("function: there is no activation '", function, "'");
}

activation::DType dtype_of(const Tensor& tensor, const char* name) {
    switch (tensor.scalar_type()) {
    case ScalarType::Float:
        return activation::DType::f32;
    case ScalarType::Half:
        return activation::DType::f16;
    case ScalarType::BFloat16:
        return activation::DType::bf16;
    default:
        fail(name,
             ": expected float32, float16 or bfloat16, got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
}

void require_contiguous(const Tensor& tensor, const char* name) {
    if (!tensor.is_contiguous()) {
        fail(name, ": must be contiguous");
    }
}

void require_like(const Tensor& tensor, const char* name, const Tensor& input) {
    if (!(tensor.device() == input.device())) {
        fail(name, ": must be on the device of input");
    }
    if (tensor.scalar_type() != input.scalar_type()) {
        fail(name,
             ": must have the dtype of input (",
             torch::headeronly::toString(input.scalar_type()),
             "), got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
    require_contiguous(tensor, name);
}

// The shape of the result for `input`.
std::vector<std::int64_t> output_sizes(const Tensor& input, activation::Form form) {
    const auto sizes = input.sizes();
    std::vector<std::int64_t> result(sizes.begin(), sizes.end());
    if (form != activation::Form::unary) {
        if (result.empty() || result.back() % 2 != 0) {
            fail("input: the last dimension must be even, it holds the two halves");
        }
        result.back() /= 2;
    }
    return result;
}

void require_sizes(const Tensor& tensor,
                   const char* name,
                   const std::vector<std::int64_t>& expected) {
    const auto sizes = tensor.sizes();
    if (std::vector<std::int64_t>(sizes.begin(), sizes.end()) == expected) {
        return;
    }
    std::ostringstream text;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        text << (i == 0 ? "" : ", ") << expected[i];
    }
    fail(name, ": expected shape [", text.str(), "]");
}

activation::Shape shape_of(const std::vector<std::int64_t>& out_sizes, activation::Form form) {
    std::int64_t count = 1;
    for (const std::int64_t size : out_sizes) {
        count *= size;
    }
    if (form == activation::Form::unary || count == 0) {
        return {1, count};
    }
    return {count / out_sizes.back(), out_sizes.back()};
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

void forward(const activation::Activation& what,
             Tensor& out,
             const Tensor& input,
             activation::Shape shape) {
    const activation::ForwardBuffers buffers{out.mutable_data_ptr(), input.const_data_ptr()};
    on_current_stream(input, [&](void* stream) {
        return activation::forward_cuda(what, buffers, shape, stream);
    });
}

void backward(const activation::Activation& what,
              Tensor& grad_x,
              const Tensor& grad_out,
              const Tensor& input,
              activation::Shape shape) {
    const activation::BackwardBuffers buffers{
        grad_x.mutable_data_ptr(), grad_out.const_data_ptr(), input.const_data_ptr()};
    on_current_stream(input, [&](void* stream) {
        return activation::backward_cuda(what, buffers, shape, stream);
    });
}

void quantized(activation::DType dtype,
               const activation::QuantBuffers& buffers,
               activation::Shape shape,
               const Tensor& input) {
    on_current_stream(input, [&](void* stream) {
        return activation::silu_and_mul_fp8_cuda(dtype, buffers, shape, stream);
    });
}

#else

constexpr std::int64_t kElementsPerTask = 16384;

void forward(const activation::Activation& what,
             Tensor& out,
             const Tensor& input,
             activation::Shape shape) {
    const activation::ForwardBuffers buffers{out.mutable_data_ptr(), input.const_data_ptr()};
    torch::stable::parallel_for(
        0, shape.rows * shape.cols, kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
            activation::forward_cpu(what, buffers, shape, begin, end);
        });
}

void backward(const activation::Activation& what,
              Tensor& grad_x,
              const Tensor& grad_out,
              const Tensor& input,
              activation::Shape shape) {
    const activation::BackwardBuffers buffers{
        grad_x.mutable_data_ptr(), grad_out.const_data_ptr(), input.const_data_ptr()};
    torch::stable::parallel_for(
        0, shape.rows * shape.cols, kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
            activation::backward_cpu(what, buffers, shape, begin, end);
        });
}

void quantized(activation::DType dtype,
               const activation::QuantBuffers& buffers,
               activation::Shape shape,
               const Tensor& /*input*/) {
    torch::stable::parallel_for(
        0, shape.rows * shape.cols, kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
            activation::silu_and_mul_fp8_cpu(dtype, buffers, shape, begin, end);
        });
}

#endif

activation::Scalars scalars_of(double first, double second) {
    return {static_cast<float>(first), static_cast<float>(second)};
}

void run_out(const Row& row, Tensor& out, const Tensor& input, activation::Scalars scalars) {
    const activation::Activation what{row.function, row.form, dtype_of(input, "input"), scalars};
    require_contiguous(input, "input");
    require_like(out, "out", input);
    const std::vector<std::int64_t> sizes = output_sizes(input, row.form);
    require_sizes(out, "out", sizes);
    const activation::Shape shape = shape_of(sizes, row.form);
    if (shape.cols != 0) {
        forward(what, out, input, shape);
    }
}

} // namespace

template <Op op>
void activation_out(Tensor& out, const Tensor& input) {
    run_out(kOps[static_cast<std::size_t>(op)], out, input, {});
}

void fatrelu_and_mul(Tensor& out, const Tensor& input, double threshold) {
    run_out(kOps[static_cast<std::size_t>(Op::fatrelu_and_mul)],
            out,
            input,
            scalars_of(threshold, 0.0));
}

void swigluoai_and_mul(Tensor& out, const Tensor& input, double alpha, double limit) {
    run_out(kOps[static_cast<std::size_t>(Op::swigluoai_and_mul)],
            out,
            input,
            scalars_of(alpha, limit));
}

void silu_and_mul_fp8(Tensor& out, const Tensor& input, const Tensor& scale) {
    const activation::DType dtype = dtype_of(input, "input");
    require_contiguous(input, "input");
    if (!(out.device() == input.device()) || !(scale.device() == input.device())) {
        fail("out, scale: must be on the device of input");
    }
    if (out.scalar_type() != ScalarType::Float8_e4m3fn) {
        fail("out: must be float8_e4m3fn, got ", torch::headeronly::toString(out.scalar_type()));
    }
    require_contiguous(out, "out");
    const std::vector<std::int64_t> sizes = output_sizes(input, activation::Form::gate_first);
    require_sizes(out, "out", sizes);
    if (scale.scalar_type() != ScalarType::Float || scale.numel() != 1) {
        fail("scale: expected a float32 tensor of one element");
    }
    const activation::Shape shape = shape_of(sizes, activation::Form::gate_first);
    if (shape.cols == 0) {
        return;
    }
    const activation::QuantBuffers buffers{out.mutable_data_ptr(),
                                           input.const_data_ptr(),
                                           static_cast<const float*>(scale.const_data_ptr())};
    quantized(dtype, buffers, shape, input);
}

Tensor activation_forward(const Tensor& input, std::string function, double first, double second) {
    const Row& row = row_of(function);
    Tensor out = torch::stable::new_empty(input, output_sizes(input, row.form));
    run_out(row, out, input, scalars_of(first, second));
    return out;
}

Tensor activation_backward(const Tensor& grad_out,
                           const Tensor& input,
                           std::string function,
                           double first,
                           double second) {
    const Row& row = row_of(function);
    const activation::Activation what{
        row.function, row.form, dtype_of(input, "input"), scalars_of(first, second)};
    require_contiguous(input, "input");
    require_like(grad_out, "grad_out", input);
    const std::vector<std::int64_t> sizes = output_sizes(input, row.form);
    require_sizes(grad_out, "grad_out", sizes);
    Tensor grad_input = torch::stable::empty_like(input);
    const activation::Shape shape = shape_of(sizes, row.form);
    if (shape.cols != 0) {
        backward(what, grad_input, grad_out, input, shape);
    }
    return grad_input;
}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
    ops.def("silu_and_mul(Tensor! out, Tensor input) -> ()");
    ops.def("mul_and_silu(Tensor! out, Tensor input) -> ()");
    ops.def("gelu_and_mul(Tensor! out, Tensor input) -> ()");
    ops.def("gelu_tanh_and_mul(Tensor! out, Tensor input) -> ()");
    ops.def("fatrelu_and_mul(Tensor! out, Tensor input, float threshold) -> ()");
    ops.def("silu(Tensor! out, Tensor input) -> ()");
    ops.def("gelu(Tensor! out, Tensor input) -> ()");
    ops.def("gelu_tanh(Tensor! out, Tensor input) -> ()");
    ops.def("gelu_fast(Tensor! out, Tensor input) -> ()");
    ops.def("gelu_new(Tensor! out, Tensor input) -> ()");
    ops.def("gelu_quick(Tensor! out, Tensor input) -> ()");
    ops.def("relu2(Tensor! out, Tensor input) -> ()");
    ops.def("swigluoai_and_mul(Tensor! out, Tensor input, float alpha, float limit) -> ()");
    ops.def("silu_and_mul_fp8(Tensor! out, Tensor input, Tensor scale) -> ()");
    ops.def("activation_forward(Tensor input, str function, float first, float second) -> Tensor");
    ops.def("activation_backward(Tensor grad_out, Tensor input, str function, float first,"
            " float second) -> Tensor");
}

#if defined(CUDA_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
#else
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
#endif
    ops.impl("silu_and_mul", TORCH_BOX(&activation_out<Op::silu_and_mul>));
    ops.impl("mul_and_silu", TORCH_BOX(&activation_out<Op::mul_and_silu>));
    ops.impl("gelu_and_mul", TORCH_BOX(&activation_out<Op::gelu_and_mul>));
    ops.impl("gelu_tanh_and_mul", TORCH_BOX(&activation_out<Op::gelu_tanh_and_mul>));
    ops.impl("fatrelu_and_mul", TORCH_BOX(&fatrelu_and_mul));
    ops.impl("silu", TORCH_BOX(&activation_out<Op::silu>));
    ops.impl("gelu", TORCH_BOX(&activation_out<Op::gelu>));
    ops.impl("gelu_tanh", TORCH_BOX(&activation_out<Op::gelu_tanh>));
    ops.impl("gelu_fast", TORCH_BOX(&activation_out<Op::gelu_fast>));
    ops.impl("gelu_new", TORCH_BOX(&activation_out<Op::gelu_new>));
    ops.impl("gelu_quick", TORCH_BOX(&activation_out<Op::gelu_quick>));
    ops.impl("relu2", TORCH_BOX(&activation_out<Op::relu2>));
    ops.impl("swigluoai_and_mul", TORCH_BOX(&swigluoai_and_mul));
    ops.impl("silu_and_mul_fp8", TORCH_BOX(&silu_and_mul_fp8));
    ops.impl("activation_forward", TORCH_BOX(&activation_forward));
    ops.impl("activation_backward", TORCH_BOX(&activation_backward));
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
