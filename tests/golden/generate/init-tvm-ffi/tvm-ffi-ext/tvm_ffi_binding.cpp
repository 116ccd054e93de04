// Checks arguments, finds stream and memory, exports the function. No arithmetic here.
#include "../my_relu_common/relu.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#if defined(CUDA_KERNEL)
#include <tvm/ffi/extra/cuda/device_guard.h>
#endif

using tvm::ffi::TensorView;

namespace {

my_relu::DType dtype_of(const TensorView& tensor) {
    const DLDataType type = tensor.dtype();
    if (type.lanes == 1 && type.code == kDLFloat && type.bits == 32) {
        return my_relu::DType::f32;
    }
    if (type.lanes == 1 && type.code == kDLFloat && type.bits == 16) {
        return my_relu::DType::f16;
    }
    if (type.lanes == 1 && type.code == kDLBfloat && type.bits == 16) {
        return my_relu::DType::bf16;
    }
    TVM_FFI_THROW(RuntimeError) << "relu: expected float32, float16 or bfloat16";
    return my_relu::DType::f32; // not reached
}

/// What every backend needs; memory is not touched yet.
my_relu::ReluArgs checked(const TensorView& out, const TensorView& input) {
    const DLDataType a = out.dtype();
    const DLDataType b = input.dtype();
    if (a.code != b.code || a.bits != b.bits || a.lanes != b.lanes) {
        TVM_FFI_THROW(RuntimeError) << "relu: out and input differ in type";
    }
    if (out.device().device_type != input.device().device_type ||
        out.device().device_id != input.device().device_id) {
        TVM_FFI_THROW(RuntimeError) << "relu: out and input are on different devices";
    }
    if (!out.IsContiguous() || !input.IsContiguous()) {
        TVM_FFI_THROW(RuntimeError) << "relu: out and input must be contiguous";
    }
    bool same_shape = out.ndim() == input.ndim();
    for (int32_t i = 0; same_shape && i < input.ndim(); ++i) {
        same_shape = out.size(i) == input.size(i);
    }
    if (!same_shape) {
        TVM_FFI_THROW(RuntimeError) << "relu: out and input differ in shape";
    }
    return {static_cast<char*>(out.data_ptr()) + out.byte_offset(),
            static_cast<const char*>(input.data_ptr()) + input.byte_offset(),
            input.numel(),
            dtype_of(input)};
}

void run_relu(TensorView out, TensorView input) {
    const my_relu::ReluArgs args = checked(out, input);
    const DLDevice device = input.device();
    switch (device.device_type) {
#if defined(CPU_KERNEL)
    case kDLCPU:
        my_relu::relu_cpu(args, 0, args.count);
        return;
#endif
#if defined(CUDA_KERNEL)
    case kDLCUDA: {
        const tvm::ffi::CUDADeviceGuard guard{device.device_id};
        void* stream = TVMFFIEnvGetStream(device.device_type, device.device_id);
        my_relu::relu_cuda(args, stream);
        return;
    }
#endif
    default:
        TVM_FFI_THROW(RuntimeError) << "relu: this build has no code for device type "
                                    << static_cast<int>(device.device_type);
    }
}

} // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu, run_relu)
