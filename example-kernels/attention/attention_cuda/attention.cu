// SPDX-License-Identifier: Apache-2.0
//
// Picks the instantiation.
#include "backward.h"
#include "forward.h"
#include "tile.cuh"

namespace attention {

namespace {

bool on_sm_90() {
    int device = 0;
    int major = 0;
    int minor = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ==
               cudaSuccess &&
           major == 9 && minor == 0;
}

// What the sm_90a kernel computes; the rest is for the code that every GPU runs.
bool hopper_serves(const Problem& problem, const Buffers& buffers) {
    constexpr std::int64_t kMost = std::int64_t{1} << 30; // lengths and tiles are ints there
    return problem.dtype != DType::f32 && is_plain(buffers.extras) &&
           problem.head_dim == problem.head_dim_v && problem.scale > 0.0F &&
           problem.max_seqlen_k > 0 && problem.total_k > 0 && problem.max_seqlen_q < kMost &&
           problem.max_seqlen_k < kMost &&
           problem.batch * problem.heads < kMost / (problem.max_seqlen_q / 64 + 1) &&
           vectors_fit(problem,
                       {{buffers.q, buffers.q_strides},
                        {buffers.k, buffers.k_strides},
                        {buffers.v, buffers.v_strides},
                        {buffers.out, buffers.out_strides}}) &&
           on_sm_90();
}

using Forward = cudaError_t (*)(const Problem&, const Buffers&, cudaStream_t);

Forward hopper_of(std::int64_t head_dim) {
    return head_dim <= 64    ? forward_hopper_d64
           : head_dim <= 128 ? forward_hopper_d128
                             : forward_hopper_d256;
}

Forward any_gpu_of(const Problem& problem) {
    const std::int64_t width = widest_head(problem);
    return problem.dtype == DType::f32 ? forward_f32
           : width <= 64               ? forward_d64
           : width <= 128              ? forward_d128
                                       : forward_d256;
}

} // namespace

const char* forward_cuda(const Problem& problem, const Buffers& buffers, void* stream) {
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    cudaError_t error = cudaErrorNotSupported;
    if (hopper_serves(problem, buffers)) {
        error = hopper_of(problem.head_dim)(problem, buffers, cuda_stream);
    }
    if (error == cudaErrorNotSupported) {
        error = any_gpu_of(problem)(problem, buffers, cuda_stream);
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
    const std::int64_t width = widest_head(problem);
    if (problem.dtype == DType::f32) {
        error = backward_f32(problem, buffers, cuda_stream);
    } else if (width <= 64) {
        error = backward_d64(problem, buffers, cuda_stream);
    } else if (width <= 128) {
        error = backward_d128(problem, buffers, cuda_stream);
    } else {
        error = backward_d256(problem, buffers, cuda_stream);
    }
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace attention
