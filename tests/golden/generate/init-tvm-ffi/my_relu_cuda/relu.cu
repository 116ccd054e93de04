// CUDA, and HIP after translation. Nothing of torch in here: see relu.h.
#include "../my_relu_common/relu.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace my_relu {

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 65535;

__device__ float to_float(float x) { return x; }

__device__ float to_float(__half x) { return __half2float(x); }

__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

__device__ void store(float* out, float x) { *out = x; }

__device__ void store(__half* out, float x) { *out = __float2half_rn(x); }

__device__ void store(__nv_bfloat16* out, float x) { *out = __float2bfloat16_rn(x); }

/// A grid-stride loop with 64-bit indices: any size, any grid.
template <typename T>
__global__ void relu_kernel(T* out, const T* in, std::int64_t count) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < count;
         i += stride) {
        const float x = to_float(in[i]);
        store(out + i, x < 0.0F ? 0.0F : x);
    }
}

template <typename T>
void launch(const ReluArgs& args, cudaStream_t stream) {
    const std::int64_t blocks = (args.count + kThreads - 1) / kThreads;
    relu_kernel<T><<<static_cast<unsigned>(std::min(blocks, kMaxBlocks)), kThreads, 0, stream>>>(
        static_cast<T*>(args.out), static_cast<const T*>(args.in), args.count);
}

} // namespace

void relu_cuda(const ReluArgs& args, void* stream) {
    if (args.count == 0) {
        return; // a grid of no blocks is refused
    }
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    switch (args.dtype) {
    case DType::f32:
        launch<float>(args, cuda_stream);
        break;
    case DType::f16:
        launch<__half>(args, cuda_stream);
        break;
    case DType::bf16:
        launch<__nv_bfloat16>(args, cuda_stream);
        break;
    }
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
        throw std::runtime_error(std::string{"relu: "} + cudaGetErrorString(error));
    }
}

} // namespace my_relu
