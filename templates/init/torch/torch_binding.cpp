// Checks arguments, finds stream and memory, registers the operator. No arithmetic here.
#include "../{{ module }}_common/relu.h"
#include "registration.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
{% if metal %}
#if defined(METAL_KERNEL)
#include <torch/csrc/inductor/aoti_torch/c/shim_mps.h>

#include <mutex>
#endif
{% endif %}
{% if rocm %}
#if defined(ROCM_KERNEL)
// torch's header declares it for CUDA alone.
extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream);
#endif
{% endif %}
{% if xpu %}
#if defined(XPU_KERNEL)
extern "C" AOTITorchError aoti_torch_get_current_xpu_stream(int32_t device_index, void** stream);
#endif
{% endif %}

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace {

{{ module }}::DType dtype_of(const Tensor& tensor) {
    switch (tensor.scalar_type()) {
    case ScalarType::Float:
        return {{ module }}::DType::f32;
    case ScalarType::Half:
        return {{ module }}::DType::f16;
    case ScalarType::BFloat16:
        return {{ module }}::DType::bf16;
    default:
        STD_TORCH_CHECK(false,
                        "relu: expected float32, float16 or bfloat16, got ",
                        torch::headeronly::toString(tensor.scalar_type()));
    }
    return {{ module }}::DType::f32; // not reached
}

/// What every backend needs; memory is not touched yet.
{{ module }}::ReluArgs checked(const Tensor& out, const Tensor& input) {
    STD_TORCH_CHECK(out.device() == input.device(), "relu: out and input are on different devices");
    STD_TORCH_CHECK(out.scalar_type() == input.scalar_type(), "relu: out and input differ in type");
    STD_TORCH_CHECK(out.is_contiguous() && input.is_contiguous(),
                    "relu: out and input must be contiguous");
    STD_TORCH_CHECK(out.dim() == input.dim(), "relu: out and input differ in shape");
    for (int64_t i = 0; i < input.dim(); ++i) {
        STD_TORCH_CHECK(out.size(i) == input.size(i), "relu: out and input differ in shape");
    }
    return {out.mutable_data_ptr(), input.const_data_ptr(), input.numel(), dtype_of(input)};
}

{% if cpu %}
#if defined(CPU_KERNEL)
constexpr int64_t kGrain = 32768; // elements that are worth a thread

void run_relu(Tensor out, Tensor input) {
    const {{ module }}::ReluArgs args = checked(out, input);
    torch::stable::parallel_for(0, args.count, kGrain, [&](int64_t begin, int64_t end) {
        {{ module }}::relu_cpu(args, begin, end);
    });
}
#endif
{% endif %}
{% if cuda or rocm %}
#if defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
void run_relu(Tensor out, Tensor input) {
    const {{ module }}::ReluArgs args = checked(out, input);
    const int32_t device = input.get_device_index();
    const torch::stable::accelerator::DeviceGuard guard{device};
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
    {{ module }}::relu_cuda(args, stream);
}
#endif
{% endif %}
{% if xpu %}
#if defined(XPU_KERNEL)
void run_relu(Tensor out, Tensor input) {
    const {{ module }}::ReluArgs args = checked(out, input);
    const int32_t device = input.get_device_index();
    const torch::stable::accelerator::DeviceGuard guard{device};
    void* queue = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_xpu_stream(device, &queue));
    {{ module }}::relu_xpu(args, queue);
}
#endif
{% endif %}
{% if metal %}
#if defined(METAL_KERNEL)
const char* function_name({{ module }}::DType dtype) {
    switch (dtype) {
    case {{ module }}::DType::f32:
        return "relu_float";
    case {{ module }}::DType::f16:
        return "relu_half";
    case {{ module }}::DType::bf16:
        return "relu_bfloat";
    }
    return ""; // not reached
}

/// Compiled once, kept to the end of the process.
AOTIMetalShaderLibraryHandle shaders() {
    static std::once_flag once;
    static AOTIMetalShaderLibraryHandle library = nullptr;
    std::call_once(once, [] {
        TORCH_ERROR_CODE_CHECK(
            aoti_torch_mps_create_shader_library({{ module }}::kReluShaders, &library));
    });
    return library;
}

struct Launch {
    AOTIMetalKernelFunctionHandle function;
    AtenTensorHandle out;
    AtenTensorHandle in;
    uint64_t count;
};

void run_relu(Tensor out, Tensor input) {
    const {{ module }}::ReluArgs args = checked(out, input);
    if (args.count == 0) {
        return;
    }
    AOTIMetalKernelFunctionHandle function = nullptr;
    TORCH_ERROR_CODE_CHECK(
        aoti_torch_mps_get_kernel_function(shaders(), function_name(args.dtype), &function));
    Launch launch{function, out.get(), input.get(), static_cast<uint64_t>(args.count)};
    TORCH_ERROR_CODE_CHECK(aoti_torch_mps_run_command_block(
        function,
        [](AOTIMetalKernelFunctionHandle handle, void* data) {
            const auto* l = static_cast<const Launch*>(data);
            TORCH_ERROR_CODE_CHECK(aoti_torch_mps_start_encoding(handle));
            TORCH_ERROR_CODE_CHECK(aoti_torch_mps_set_arg_tensor(handle, 0, l->out));
            TORCH_ERROR_CODE_CHECK(aoti_torch_mps_set_arg_tensor(handle, 1, l->in));
            TORCH_ERROR_CODE_CHECK(aoti_torch_mps_dispatch_single(handle, l->count));
        },
        &launch));
}
#endif
{% endif %}

} // namespace

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
    ops.def("relu(Tensor! out, Tensor input) -> ()");
}

{% if cpu %}
#if defined(CPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
    ops.impl("relu", TORCH_BOX(&run_relu));
}
#endif
{% endif %}
{% if cuda or rocm %}
#if defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
    ops.impl("relu", TORCH_BOX(&run_relu));
}
#endif
{% endif %}
{% if xpu %}
#if defined(XPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, XPU, ops) {
    ops.impl("relu", TORCH_BOX(&run_relu));
}
#endif
{% endif %}
{% if metal %}
#if defined(METAL_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, MPS, ops) {
    ops.impl("relu", TORCH_BOX(&run_relu));
}
#endif
{% endif %}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
