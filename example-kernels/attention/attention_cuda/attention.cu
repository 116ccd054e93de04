// SPDX-License-Identifier: Apache-2.0
//
// Picks the instantiation.
#include "forward.h"

namespace attention {

const char* forward_cuda(const Problem& problem, const Buffers& buffers, void* stream) {
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    cudaError_t error = cudaSuccess;
    if (problem.dtype == DType::f32) {
        error = forward_f32(problem, buffers, cuda_stream);
    } else if (problem.head_dim <= 64) {
        error = forward_d64(problem, buffers, cuda_stream);
    } else if (problem.head_dim <= 128) {
        error = forward_d128(problem, buffers, cuda_stream);
    } else {
        error = forward_d256(problem, buffers, cuda_stream);
    }
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace attention
