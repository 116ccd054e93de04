// SPDX-License-Identifier: Apache-2.0
//
// Checks arguments, allocates results, registers the operators. No arithmetic here.
#include "torch_binding.h"

#include "../norm_common/norm.h"
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

const void* data_or_null(const OptionalTensor& tensor) {
    return tensor ? tensor->const_data_ptr() : nullptr;
}

rownorm::Mode mode_of(const std::string& mode) {
    if (mode == "torch") {
        return rownorm::Mode::torch;
    }
    if (mode == "llama") {
        return rownorm::Mode::llama;
    }
    if (mode == "gemma") {
        return rownorm::Mode::gemma;
    }
    fail("mode: expected torch, llama or gemma, got '", mode, "'");
}

rownorm::DType dtype_of(const Tensor& tensor, const char* name) {
    switch (tensor.scalar_type()) {
    case ScalarType::Float:
        return rownorm::DType::f32;
    case ScalarType::Half:
        return rownorm::DType::f16;
    case ScalarType::BFloat16:
        return rownorm::DType::bf16;
    default:
        fail(name,
             ": expected float32, float16 or bfloat16, got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
}

std::vector<std::int64_t> sizes_of(const Tensor& tensor) {
    const auto sizes = tensor.sizes();
    return {sizes.begin(), sizes.end()};
}

void require_device(const Tensor& tensor, const char* name, const Tensor& input) {
    if (!(tensor.device() == input.device())) {
        fail(name, ": must be on the device of input");
    }
}

// The same device, dtype and shape as `input`.
void require_like(const Tensor& tensor, const char* name, const Tensor& input) {
    require_device(tensor, name, input);
    if (tensor.scalar_type() != input.scalar_type()) {
        fail(name,
             ": must have the dtype of input (",
             torch::headeronly::toString(input.scalar_type()),
             "), got ",
             torch::headeronly::toString(tensor.scalar_type()));
    }
    if (sizes_of(tensor) != sizes_of(input)) {
        fail(name, ": must have the shape of input");
    }
}

// The layout of the rows of `tensor`: its leading dimensions seen as at most two strides.
rownorm::Rows rows_of(const Tensor& tensor, const char* name) {
    const std::int64_t last = tensor.dim() - 1;
    if (tensor.size(last) > 1 && tensor.stride(last) != 1) {
        fail(name, ": the last dimension must be contiguous");
    }
    rownorm::Rows rows;
    int levels = 0;
    std::int64_t outer_size = 1;
    for (std::int64_t d = last - 1; d >= 0; --d) {
        const std::int64_t size = tensor.size(d);
        const std::int64_t stride = tensor.stride(d);
        if (size == 1) {
            continue;
        }
        if (levels == 0) {
            rows.inner = size;
            rows.inner_stride = stride;
            levels = 1;
        } else if (levels == 1 && stride == rows.inner * rows.inner_stride) {
            rows.inner *= size;
        } else if (levels == 1) {
            outer_size = size;
            rows.outer_stride = stride;
            levels = 2;
        } else if (stride == outer_size * rows.outer_stride) {
            outer_size *= size;
        } else {
            fail(name, ": the leading dimensions must have at most two strides between them");
        }
    }
    return rows;
}

rownorm::Problem problem_of(const Tensor& input,
                            rownorm::Kind kind,
                            rownorm::Mode mode,
                            const OptionalTensor& weight,
                            const OptionalTensor& bias,
                            double epsilon) {
    const rownorm::DType dtype = dtype_of(input, "input");
    if (input.dim() == 0) {
        fail("input: must have at least one dimension");
    }
    const std::int64_t cols = input.size(input.dim() - 1);
    std::int64_t rows = 1;
    for (std::int64_t d = 0; d + 1 < input.dim(); ++d) {
        rows *= input.size(d);
    }
    const auto check = [&](const OptionalTensor& parameter, const char* name) {
        if (!parameter) {
            return;
        }
        require_device(*parameter, name, input);
        if (sizes_of(*parameter) != std::vector<std::int64_t>{cols}) {
            fail(name, ": expected shape [", cols, "], the last dimension of input");
        }
        if (!parameter->is_contiguous()) {
            fail(name, ": must be contiguous");
        }
        const rownorm::DType parameter_dtype = dtype_of(*parameter, name);
        if (parameter_dtype != dtype && parameter_dtype != rownorm::DType::f32) {
            fail(name, ": must have the dtype of input or float32");
        }
    };
    check(weight, "weight");
    check(bias, "bias");
    if (weight && bias && weight->scalar_type() != bias->scalar_type()) {
        fail("bias: must have the dtype of weight");
    }
    rownorm::DType parameter_dtype = dtype;
    if (weight) {
        parameter_dtype = dtype_of(*weight, "weight");
    } else if (bias) {
        parameter_dtype = dtype_of(*bias, "bias");
    }
    return {rows, cols, kind, mode, dtype, parameter_dtype, static_cast<float>(epsilon)};
}

// fp32, one value per row of `input`.
Tensor new_statistic(const Tensor& input) {
    std::vector<std::int64_t> sizes = sizes_of(input);
    sizes.pop_back();
    return torch::stable::new_empty(input, sizes, ScalarType::Float);
}

Tensor new_like(const Tensor& input) {
    return torch::stable::new_empty(input, sizes_of(input));
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

void forward(const rownorm::Problem& problem,
             const rownorm::ForwardBuffers& buffers,
             const Tensor& input) {
    if (problem.rows != 0 && problem.cols != 0) {
        on_current_stream(
            input, [&](void* stream) { return rownorm::forward_cuda(problem, buffers, stream); });
    }
}

void quantized(const rownorm::Problem& problem,
               const rownorm::ForwardBuffers& buffers,
               rownorm::Scaling scaling,
               const rownorm::QuantBuffers& quant,
               const Tensor& input) {
    if (problem.rows != 0 && problem.cols != 0) {
        on_current_stream(input, [&](void* stream) {
            return rownorm::quantized_cuda(problem, buffers, scaling, quant, stream);
        });
    }
}

void backward(const rownorm::Problem& problem,
              rownorm::BackwardBuffers& buffers,
              const Tensor& input) {
    on_current_stream(input, [&](void* stream) {
        const bool parameters = buffers.grad_weight != nullptr || buffers.grad_bias != nullptr;
        const std::int64_t rows = parameters ? rownorm::partial_rows(problem) : 0;
        const std::int64_t planes = problem.kind == rownorm::Kind::layer ? 2 : 1;
        Tensor partials = torch::stable::new_empty(
            input, std::vector<std::int64_t>{planes, rows, problem.cols}, ScalarType::Float);
        buffers.partials = static_cast<float*>(partials.mutable_data_ptr());
        return rownorm::backward_cuda(problem, buffers, stream);
    });
}

#else

constexpr std::int64_t kElementsPerTask = 16384;

std::int64_t grain(std::int64_t elements_per_item) {
    return elements_per_item >= kElementsPerTask ? 1 : kElementsPerTask / elements_per_item;
}

void forward(const rownorm::Problem& problem,
             const rownorm::ForwardBuffers& buffers,
             const Tensor& /*input*/) {
    if (problem.rows == 0 || problem.cols == 0) {
        return;
    }
    torch::stable::parallel_for(
        0, problem.rows, grain(problem.cols), [&](std::int64_t begin, std::int64_t end) {
            rownorm::forward_cpu(problem, buffers, begin, end);
        });
}

void quantized(const rownorm::Problem& problem,
               const rownorm::ForwardBuffers& buffers,
               rownorm::Scaling scaling,
               const rownorm::QuantBuffers& quant,
               const Tensor& /*input*/) {
    if (problem.rows == 0 || problem.cols == 0) {
        return;
    }
    torch::stable::parallel_for(
        0, problem.rows, grain(problem.cols), [&](std::int64_t begin, std::int64_t end) {
            rownorm::quantized_cpu(problem, buffers, scaling, quant, begin, end);
        });
}

void backward(const rownorm::Problem& problem,
              rownorm::BackwardBuffers& buffers,
              const Tensor& /*input*/) {
    torch::stable::parallel_for(
        0, problem.rows, grain(problem.cols), [&](std::int64_t begin, std::int64_t end) {
            rownorm::backward_rows_cpu(problem, buffers, begin, end);
        });
    if (buffers.grad_weight != nullptr || buffers.grad_bias != nullptr) {
        torch::stable::parallel_for(
            0, problem.cols, grain(problem.rows), [&](std::int64_t begin, std::int64_t end) {
                rownorm::backward_columns_cpu(problem, buffers, begin, end);
            });
    }
}

#endif

// A contiguous float32 tensor of `count` values on the device of `input`.
void require_scales(const Tensor& tensor,
                    const char* name,
                    std::int64_t count,
                    const Tensor& input) {
    require_device(tensor, name, input);
    std::int64_t found = 1;
    for (const std::int64_t size : sizes_of(tensor)) {
        found *= size;
    }
    if (tensor.scalar_type() != ScalarType::Float || !tensor.is_contiguous() || found != count) {
        fail(name, ": expected a contiguous float32 tensor of ", count, " elements");
    }
}

rownorm::Scaling scaling_of(const std::string& scaling) {
    if (scaling == "per_token") {
        return rownorm::Scaling::per_token;
    }
    if (scaling == "per_group") {
        return rownorm::Scaling::per_group;
    }
    fail("scaling: expected per_token or per_group, got '", scaling, "'");
}

// Fills in what the four quantising operators have in common, and runs.
void run_quantized(const rownorm::Problem& problem,
                   const Tensor& out,
                   const Tensor& input,
                   const OptionalTensor& residual,
                   const OptionalTensor& weight,
                   rownorm::Scaling scaling,
                   rownorm::QuantBuffers quant) {
    require_device(out, "out", input);
    if (out.scalar_type() != ScalarType::Float8_e4m3fn) {
        fail("out: must be float8_e4m3fn, got ", torch::headeronly::toString(out.scalar_type()));
    }
    if (sizes_of(out) != sizes_of(input) || !out.is_contiguous()) {
        fail("out: must be contiguous and have the shape of input");
    }
    rownorm::ForwardBuffers buffers{};
    buffers.x = input.const_data_ptr();
    buffers.x_rows = rows_of(input, "input");
    buffers.weight = data_or_null(weight);
    if (residual) {
        require_like(*residual, "residual", input);
        buffers.sum = residual->mutable_data_ptr();
        buffers.sum_rows = rows_of(*residual, "residual");
        buffers.residual = buffers.sum;
        buffers.residual_rows = buffers.sum_rows;
    }
    quant.out = out.mutable_data_ptr();
    quantized(problem, buffers, scaling, quant, input);
}

void run_static(const Tensor& out,
                const Tensor& input,
                const OptionalTensor& residual,
                const OptionalTensor& weight,
                const Tensor& scale,
                double epsilon,
                const std::string& mode) {
    const rownorm::Kind kind = residual ? rownorm::Kind::add_rms : rownorm::Kind::rms;
    const rownorm::Problem problem =
        problem_of(input, kind, mode_of(mode), weight, std::nullopt, epsilon);
    require_scales(scale, "scale", 1, input);
    rownorm::QuantBuffers quant{};
    quant.scale = static_cast<const float*>(scale.const_data_ptr());
    run_quantized(problem, out, input, residual, weight, rownorm::Scaling::per_tensor, quant);
}

void run_dynamic(const Tensor& out,
                 const Tensor& scales,
                 const Tensor& input,
                 const OptionalTensor& residual,
                 const OptionalTensor& weight,
                 const OptionalTensor& bound,
                 double epsilon,
                 const std::string& mode,
                 const std::string& scaling) {
    const rownorm::Kind kind = residual ? rownorm::Kind::add_rms : rownorm::Kind::rms;
    const rownorm::Problem problem =
        problem_of(input, kind, mode_of(mode), weight, std::nullopt, epsilon);
    const rownorm::Scaling how = scaling_of(scaling);
    std::int64_t count = problem.rows;
    if (how == rownorm::Scaling::per_group) {
        if (problem.cols % rownorm::kGroup != 0) {
            fail("input: the last dimension must be a multiple of ", rownorm::kGroup);
        }
        if (bound) {
            fail("bound: only with per_token scales");
        }
        count *= problem.cols / rownorm::kGroup;
    }
    require_scales(scales, "scales", count, input);
    if (bound) {
        require_scales(*bound, "bound", 1, input);
    }
    rownorm::QuantBuffers quant{};
    quant.scales = static_cast<float*>(scales.mutable_data_ptr());
    quant.bound = static_cast<const float*>(data_or_null(bound));
    run_quantized(problem, out, input, residual, weight, how, quant);
}

struct Gradients {
    Tensor input;
    Tensor weight;
    Tensor bias;
};

Gradients run_backward(const rownorm::Problem& problem,
                       const Tensor& grad_out,
                       const OptionalTensor& grad_sum,
                       const Tensor& input,
                       const OptionalTensor& weight,
                       const OptionalTensor& mean,
                       const Tensor& rstd,
                       bool weight_grad) {
    require_like(grad_out, "grad_out", input);
    if (grad_sum) {
        require_like(*grad_sum, "grad_sum", input);
    }
    const auto check_statistic = [&](const Tensor& statistic, const char* name) {
        require_device(statistic, name, input);
        std::vector<std::int64_t> expected = sizes_of(input);
        expected.pop_back();
        if (statistic.scalar_type() != ScalarType::Float || sizes_of(statistic) != expected ||
            !statistic.is_contiguous()) {
            fail(name, ": expected the contiguous float32 tensor that the forward returned");
        }
    };
    check_statistic(rstd, "rstd");
    if (mean) {
        check_statistic(*mean, "mean");
    }
    const bool is_layer = problem.kind == rownorm::Kind::layer;
    const ScalarType parameter_type =
        problem.weight_dtype == rownorm::DType::f32 ? ScalarType::Float : input.scalar_type();
    const std::vector<std::int64_t> parameter_sizes{weight_grad ? problem.cols : 0};
    const std::vector<std::int64_t> bias_sizes{weight_grad && is_layer ? problem.cols : 0};
    Gradients result{new_like(input),
                     torch::stable::new_empty(input, parameter_sizes, parameter_type),
                     torch::stable::new_empty(input, bias_sizes, parameter_type)};
    if (problem.cols == 0) {
        return result;
    }
    if (problem.rows == 0) {
        torch::stable::zero_(result.weight);
        torch::stable::zero_(result.bias);
        return result;
    }
    rownorm::BackwardBuffers buffers{};
    buffers.grad_y = grad_out.const_data_ptr();
    buffers.grad_y_rows = rows_of(grad_out, "grad_out");
    if (grad_sum) {
        buffers.grad_sum = grad_sum->const_data_ptr();
        buffers.grad_sum_rows = rows_of(*grad_sum, "grad_sum");
    }
    buffers.x = input.const_data_ptr();
    buffers.x_rows = rows_of(input, "input");
    buffers.weight = data_or_null(weight);
    buffers.mean = static_cast<const float*>(data_or_null(mean));
    buffers.rstd = static_cast<const float*>(rstd.const_data_ptr());
    buffers.grad_x = result.input.mutable_data_ptr();
    buffers.grad_x_rows = rows_of(result.input, "grad_input");
    if (weight_grad) {
        buffers.grad_weight = result.weight.mutable_data_ptr();
        buffers.grad_bias = is_layer ? result.bias.mutable_data_ptr() : nullptr;
    }
    backward(problem, buffers, input);
    return result;
}

} // namespace

void rms_norm(Tensor& out,
              const Tensor& input,
              const OptionalTensor& weight,
              double epsilon,
              std::string mode) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::rms, mode_of(mode), weight, std::nullopt, epsilon);
    require_like(out, "out", input);
    rownorm::ForwardBuffers buffers{};
    buffers.x = input.const_data_ptr();
    buffers.x_rows = rows_of(input, "input");
    buffers.weight = data_or_null(weight);
    buffers.y = out.mutable_data_ptr();
    buffers.y_rows = rows_of(out, "out");
    forward(problem, buffers, input);
}

void layer_norm(Tensor& out,
                const Tensor& input,
                const OptionalTensor& weight,
                const OptionalTensor& bias,
                double epsilon) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::layer, rownorm::Mode::torch, weight, bias, epsilon);
    require_like(out, "out", input);
    rownorm::ForwardBuffers buffers{};
    buffers.x = input.const_data_ptr();
    buffers.x_rows = rows_of(input, "input");
    buffers.weight = data_or_null(weight);
    buffers.bias = data_or_null(bias);
    buffers.y = out.mutable_data_ptr();
    buffers.y_rows = rows_of(out, "out");
    forward(problem, buffers, input);
}

void fused_add_rms_norm(Tensor& input,
                        Tensor& residual,
                        const OptionalTensor& weight,
                        double epsilon,
                        std::string mode) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::add_rms, mode_of(mode), weight, std::nullopt, epsilon);
    require_like(residual, "residual", input);
    rownorm::ForwardBuffers buffers{};
    buffers.y = input.mutable_data_ptr();
    buffers.y_rows = rows_of(input, "input");
    buffers.x = buffers.y;
    buffers.x_rows = buffers.y_rows;
    buffers.sum = residual.mutable_data_ptr();
    buffers.sum_rows = rows_of(residual, "residual");
    buffers.residual = buffers.sum;
    buffers.residual_rows = buffers.sum_rows;
    buffers.weight = data_or_null(weight);
    forward(problem, buffers, input);
}

std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor& input,
                                            const OptionalTensor& weight,
                                            double epsilon,
                                            std::string mode) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::rms, mode_of(mode), weight, std::nullopt, epsilon);
    Tensor out = new_like(input);
    Tensor rstd = new_statistic(input);
    rownorm::ForwardBuffers buffers{};
    buffers.x = input.const_data_ptr();
    buffers.x_rows = rows_of(input, "input");
    buffers.weight = data_or_null(weight);
    buffers.y = out.mutable_data_ptr();
    buffers.y_rows = rows_of(out, "out");
    buffers.rstd = static_cast<float*>(rstd.mutable_data_ptr());
    forward(problem, buffers, input);
    return {out, rstd};
}

std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& input,
                                                        const Tensor& residual,
                                                        const OptionalTensor& weight,
                                                        double epsilon,
                                                        std::string mode) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::add_rms, mode_of(mode), weight, std::nullopt, epsilon);
    require_like(residual, "residual", input);
    Tensor out = new_like(input);
    Tensor sum = new_like(input);
    Tensor rstd = new_statistic(input);
    rownorm::ForwardBuffers buffers{};
    buffers.x = input.const_data_ptr();
    buffers.x_rows = rows_of(input, "input");
    buffers.residual = residual.const_data_ptr();
    buffers.residual_rows = rows_of(residual, "residual");
    buffers.weight = data_or_null(weight);
    buffers.y = out.mutable_data_ptr();
    buffers.y_rows = rows_of(out, "out");
    buffers.sum = sum.mutable_data_ptr();
    buffers.sum_rows = rows_of(sum, "sum");
    buffers.rstd = static_cast<float*>(rstd.mutable_data_ptr());
    forward(problem, buffers, input);
    return {out, sum, rstd};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad_out,
                                             const OptionalTensor& grad_sum,
                                             const Tensor& input,
                                             const OptionalTensor& weight,
                                             const Tensor& rstd,
                                             std::string mode,
                                             bool weight_grad) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::rms, mode_of(mode), weight, std::nullopt, 0.0);
    const Gradients g =
        run_backward(problem, grad_out, grad_sum, input, weight, std::nullopt, rstd, weight_grad);
    return {g.input, g.weight};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_forward(const Tensor& input,
                                                      const OptionalTensor& weight,
                                                      const OptionalTensor& bias,
                                                      double epsilon) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::layer, rownorm::Mode::torch, weight, bias, epsilon);
    Tensor out = new_like(input);
    Tensor mean = new_statistic(input);
    Tensor rstd = new_statistic(input);
    rownorm::ForwardBuffers buffers{};
    buffers.x = input.const_data_ptr();
    buffers.x_rows = rows_of(input, "input");
    buffers.weight = data_or_null(weight);
    buffers.bias = data_or_null(bias);
    buffers.y = out.mutable_data_ptr();
    buffers.y_rows = rows_of(out, "out");
    buffers.mean = static_cast<float*>(mean.mutable_data_ptr());
    buffers.rstd = static_cast<float*>(rstd.mutable_data_ptr());
    forward(problem, buffers, input);
    return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad_out,
                                                       const Tensor& input,
                                                       const OptionalTensor& weight,
                                                       const Tensor& mean,
                                                       const Tensor& rstd,
                                                       bool weight_grad) {
    const rownorm::Problem problem =
        problem_of(input, rownorm::Kind::layer, rownorm::Mode::torch, weight, std::nullopt, 0.0);
    const Gradients g =
        run_backward(problem, grad_out, std::nullopt, input, weight, mean, rstd, weight_grad);
    return {g.input, g.weight, g.bias};
}

void rms_norm_static_fp8(Tensor& out,
                         const Tensor& input,
                         const OptionalTensor& weight,
                         const Tensor& scale,
                         double epsilon,
                         std::string mode) {
    run_static(out, input, std::nullopt, weight, scale, epsilon, mode);
}

void fused_add_rms_norm_static_fp8(Tensor& out,
                                   Tensor& residual,
                                   const Tensor& input,
                                   const OptionalTensor& weight,
                                   const Tensor& scale,
                                   double epsilon,
                                   std::string mode) {
    run_static(out, input, residual, weight, scale, epsilon, mode);
}

void rms_norm_dynamic_fp8(Tensor& out,
                          Tensor& scales,
                          const Tensor& input,
                          const OptionalTensor& weight,
                          const OptionalTensor& bound,
                          double epsilon,
                          std::string mode,
                          std::string scaling) {
    run_dynamic(out, scales, input, std::nullopt, weight, bound, epsilon, mode, scaling);
}

void fused_add_rms_norm_dynamic_fp8(Tensor& out,
                                    Tensor& scales,
                                    Tensor& residual,
                                    const Tensor& input,
                                    const OptionalTensor& weight,
                                    const OptionalTensor& bound,
                                    double epsilon,
                                    std::string mode,
                                    std::string scaling) {
    run_dynamic(out, scales, input, residual, weight, bound, epsilon, mode, scaling);
}

// The argument is not called `mode`: PyTorch's functionalisation has a keyword of that name.
STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
    ops.def("rms_norm(Tensor! out, Tensor input, Tensor? weight, float epsilon, str weight_mode) "
            "-> ()");
    ops.def("layer_norm(Tensor! out, Tensor input, Tensor? weight, Tensor? bias, float epsilon)"
            " -> ()");
    ops.def("fused_add_rms_norm(Tensor! input, Tensor! residual, Tensor? weight, float epsilon,"
            " str weight_mode) -> ()");
    ops.def("rms_norm_forward(Tensor input, Tensor? weight, float epsilon, str weight_mode)"
            " -> (Tensor, Tensor)");
    ops.def("add_rms_norm_forward(Tensor input, Tensor residual, Tensor? weight, float epsilon,"
            " str weight_mode) -> (Tensor, Tensor, Tensor)");
    ops.def("rms_norm_backward(Tensor grad_out, Tensor? grad_sum, Tensor input, Tensor? weight,"
            " Tensor rstd, str weight_mode, bool weight_grad) -> (Tensor, Tensor)");
    ops.def("layer_norm_forward(Tensor input, Tensor? weight, Tensor? bias, float epsilon)"
            " -> (Tensor, Tensor, Tensor)");
    ops.def("layer_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor mean,"
            " Tensor rstd, bool weight_grad) -> (Tensor, Tensor, Tensor)");
    ops.def("rms_norm_static_fp8(Tensor! out, Tensor input, Tensor? weight, Tensor scale,"
            " float epsilon, str weight_mode) -> ()");
    ops.def("fused_add_rms_norm_static_fp8(Tensor! out, Tensor! residual, Tensor input,"
            " Tensor? weight, Tensor scale, float epsilon, str weight_mode) -> ()");
    ops.def("rms_norm_dynamic_fp8(Tensor! out, Tensor! scales, Tensor input, Tensor? weight,"
            " Tensor? bound, float epsilon, str weight_mode, str scaling) -> ()");
    ops.def("fused_add_rms_norm_dynamic_fp8(Tensor! out, Tensor! scales, Tensor! residual,"
            " Tensor input, Tensor? weight, Tensor? bound, float epsilon, str weight_mode,"
            " str scaling) -> ()");
}

#if defined(CUDA_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
#else
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
#endif
    ops.impl("rms_norm", TORCH_BOX(&rms_norm));
    ops.impl("layer_norm", TORCH_BOX(&layer_norm));
    ops.impl("fused_add_rms_norm", TORCH_BOX(&fused_add_rms_norm));
    ops.impl("rms_norm_forward", TORCH_BOX(&rms_norm_forward));
    ops.impl("add_rms_norm_forward", TORCH_BOX(&add_rms_norm_forward));
    ops.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
    ops.impl("layer_norm_forward", TORCH_BOX(&layer_norm_forward));
    ops.impl("layer_norm_backward", TORCH_BOX(&layer_norm_backward));
    ops.impl("rms_norm_static_fp8", TORCH_BOX(&rms_norm_static_fp8));
    ops.impl("fused_add_rms_norm_static_fp8", TORCH_BOX(&fused_add_rms_norm_static_fp8));
    ops.impl("rms_norm_dynamic_fp8", TORCH_BOX(&rms_norm_dynamic_fp8));
    ops.impl("fused_add_rms_norm_dynamic_fp8", TORCH_BOX(&fused_add_rms_norm_dynamic_fp8));
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
