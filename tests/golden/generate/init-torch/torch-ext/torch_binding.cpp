// Checks arguments, finds stream and memory, registers the operator. No arithmetic here.
#include "../my_relu_common/relu.h"
#include "registration.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace {

my_relu::DType dtype_of(const Tensor& tensor) {
    switch (tensor.scalar_type()) {
    case ScalarType::Float:
        return my_relu::DType::f32;
    case ScalarType::Half:
        return my_relu::DType::f16;
    case ScalarType::BFloat16:
        return my_relu::DType::bf16;
    default:
        STD_TORCH_CHECK(false,
                        "relu: expected float32, float16 or bfloat16, got ",
                        torch::headeronly::toString(tensor.scalar_type()));
    }
    return my_relu::DType::f32; // not reached
}

/// What every backend needs; memory is not touched yet.
my_relu::ReluArgs checked(const Tensor& out, const Tensor& input) {
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

#if defined(CPU_KERNEL)
constexpr int64_t kGrain = 32768; // elements that are worth a thread

void run_relu(Tensor out, Tensor input) {
    const my_relu::ReluArgs args = checked(out, input);
    torch::stable::parallel_for(0, args.count, kGrain, [&](int64_t begin, int64_t end) {
        my_relu::relu_cpu(args, begin, end);
    });
}
#endif
#if defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
void run_relu(Tensor out, Tensor input) {
    const my_relu::ReluArgs args = checked(out, input);
    const int32_t device = input.get_device_index();
    const torch::stable::accelerator::DeviceGuard guard{device};
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
    my_relu::relu_cuda(args, stream);
}
#endif

} // namespace

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
    ops.def("relu(Tensor! out, Tensor input) -> ()");
}

#if defined(CPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
    ops.impl("relu", TORCH_BOX(&run_relu));
}
#endif
#if defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
    ops.impl("relu", TORCH_BOX(&run_relu));
}
#endif

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
