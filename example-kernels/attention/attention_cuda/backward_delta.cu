// SPDX-License-Identifier: Apache-2.0
//
// delta = dot(grad_out, out) of every query and head: a warp each.
#include "backward.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace attention {
namespace {

constexpr int kWarpsPerBlock = 8;

__device__ float widen(float v) {
    return v;
}

__device__ float widen(__half v) {
    return __half2float(v);
}

__device__ float widen(__nv_bfloat16 v) {
    return __bfloat162float(v);
}

template <typename T>
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    delta_kernel(const Problem problem, const BackwardBuffers buffers) {
    const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.y;
    const std::int64_t row = item % problem.max_seqlen_q;
    const std::int64_t head = item / problem.max_seqlen_q % problem.heads;
    const std::int64_t batch = item / problem.max_seqlen_q / problem.heads;
    if (batch >= problem.batch) {
        return;
    }
    const Sequence sequence = sequence_of(problem, buffers.offsets, batch);
    if (row >= sequence.q_length) {
        return;
    }
    const T* out = static_cast<const T*>(buffers.out) +
                   queries_at(sequence, buffers.out_strides, head) + row * buffers.out_strides.row;
    const T* grad = static_cast<const T*>(buffers.grad_out) +
                    queries_at(sequence, buffers.grad_out_strides, head) +
                    row * buffers.grad_out_strides.row;
    float sum = 0.0F;
    for (int i = static_cast<int>(threadIdx.x); i < problem.head_dim_v; i += 32) {
        sum += widen(out[i]) * widen(grad[i]);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    }
    if (threadIdx.x == 0) {
        buffers.delta[statistics_at(sequence, head) + row] = sum;
    }
}

} // namespace

cudaError_t
backward_delta(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    const std::int64_t items = problem.batch * problem.heads * problem.max_seqlen_q;
    const std::int64_t blocks = (items + kWarpsPerBlock - 1) / kWarpsPerBlock;
    if (blocks > 0x7fffffff) {
        return cudaErrorInvalidConfiguration;
    }
    const auto grid = static_cast<unsigned>(blocks);
    const dim3 block(32, kWarpsPerBlock);
    switch (problem.dtype) {
    case DType::f32:
        delta_kernel<float><<<grid, block, 0, stream>>>(problem, buffers);
        break;
    case DType::f16:
        delta_kernel<__half><<<grid, block, 0, stream>>>(problem, buffers);
        break;
    case DType::bf16:
        delta_kernel<__nv_bfloat16><<<grid, block, 0, stream>>>(problem, buffers);
        break;
    }
    return cudaGetLastError();
}

} // namespace attention
