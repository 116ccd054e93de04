// SPDX-License-Identifier: Apache-2.0
//
// Picks the instantiation.
#include "backward.h"
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

const char* backward_cuda(const Problem& problem, const BackwardBuffers& buffers, void* stream) {
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    cudaError_t error = cudaSuccess;
    if (problem.max_seqlen_q !=
        0) { // else nothing sees the keys: their gradients are still written
        error = backward_delta(problem, buffers, cuda_stream);
    }
    if (error != cudaSuccess) {
        return cudaGetErrorString(error);
    }
    if (problem.dtype == DType::f32) {
        error = backward_f32(problem, buffers, cuda_stream);
    } else if (problem.head_dim <= 64) {
        error = backward_d64(problem, buffers, cuda_stream);
    } else if (problem.head_dim <= 128) {
        error = backward_d128(problem, buffers, cuda_stream);
    } else {
        error = backward_d256(problem, buffers, cuda_stream);
    }
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace attention
