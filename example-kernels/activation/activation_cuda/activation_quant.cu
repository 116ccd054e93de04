// SPDX-License-Identifier: Apache-2.0
//
// silu_and_mul with 8-bit results.
#include "../activation_common/activation.h"
#include "activation_kernel.cuh"
#include "tuning.h"

#include <algorithm>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

namespace activation {
namespace {

// A thread makes eight neighbouring results, or one where the rows are not made of eights.
template <typename Number, int V>
__global__ void __launch_bounds__(kTuning.threads_per_block)
    silu_and_mul_fp8(const QuantBuffers buffers, Shape shape) {
    using Storage = typename Number::Storage;
    using Unit = VectorUnit<Number>;
    using P = typename Unit::Packed;
    const std::int64_t column =
        (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
    if (column >= shape.cols) {
        return;
    }
    const float inverse = 1.0f / *buffers.scale;
    const auto result = [&](float a, float b) {
        return Number::round(forward_element<Function::silu, Form::gate_first, Number, PlainMath>(
                   a, b, Scalars{})) *
               inverse;
    };
    for (std::int64_t row = blockIdx.y; row < shape.rows; row += gridDim.y) {
        const Storage* a = static_cast<const Storage*>(buffers.x) + row * 2 * shape.cols + column;
        const Storage* b = a + shape.cols;
        auto* out = static_cast<std::uint8_t*>(buffers.out) + row * shape.cols + column;
        if constexpr (V == 1) {
            *out = __nv_cvt_float_to_fp8(
                result(Number::widen(*a), Number::widen(*b)), __NV_SATFINITE, __NV_E4M3);
        } else {
            constexpr int kParts = V / Unit::kElements;
            P a_packed[kParts];
            P b_packed[kParts];
#pragma unroll
            for (int p = 0; p < kParts; ++p) {
                a_packed[p] = load(reinterpret_cast<const P*>(a) + p);
                b_packed[p] = load(reinterpret_cast<const P*>(b) + p);
            }
            std::uint32_t words[V / 4] = {};
#pragma unroll
            for (int p = 0; p < kParts; ++p) {
                float av[Unit::kElements];
                float bv[Unit::kElements];
                Unit::unpack(a_packed[p], av);
                Unit::unpack(b_packed[p], bv);
#pragma unroll
                for (int i = 0; i < Unit::kElements; i += 2) {
                    const float2 pair =
                        make_float2(result(av[i], bv[i]), result(av[i + 1], bv[i + 1]));
                    const int at = p * Unit::kElements + i;
                    const std::uint32_t codes =
                        __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
                    words[at / 4] |= codes << (8 * (at % 4));
                }
            }
            *reinterpret_cast<uint2*>(out) = make_uint2(words[0], words[1]);
        }
    }
}

template <typename Number>
void launch(const QuantBuffers& buffers, Shape shape, cudaStream_t stream) {
    const auto aligned = [](const void* p, std::uintptr_t to) {
        return reinterpret_cast<std::uintptr_t>(p) % to == 0;
    };
    const bool whole = shape.cols % 8 == 0 && aligned(buffers.x, 16) && aligned(buffers.out, 8);
    const std::int64_t units = whole ? shape.cols / 8 : shape.cols;
    const auto threads = static_cast<unsigned>(kTuning.threads_per_block);
    const dim3 grid(static_cast<unsigned>((units + threads - 1) / threads),
                    static_cast<unsigned>(std::min<std::int64_t>(shape.rows, kMaxGridY)));
    if (whole) {
        silu_and_mul_fp8<Number, 8><<<grid, threads, 0, stream>>>(buffers, shape);
    } else {
        silu_and_mul_fp8<Number, 1><<<grid, threads, 0, stream>>>(buffers, shape);
    }
}

} // namespace

const char*
silu_and_mul_fp8_cuda(DType dtype, const QuantBuffers& buffers, Shape shape, void* stream) {
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    switch (dtype) {
    case DType::f32:
        launch<Float32>(buffers, shape, cuda_stream);
        break;
    case DType::f16:
        launch<Float16>(buffers, shape, cuda_stream);
        break;
    case DType::bf16:
        launch<BFloat16>(buffers, shape, cuda_stream);
        break;
    }
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace activation
