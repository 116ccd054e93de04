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

// What the sm_90a kernels compute; the rest is for the code that every GPU runs.
bool fits_hopper(const Problem& problem) {
    constexpr std::int64_t kMost = std::int64_t{1} << 30; // lengths and tiles are ints there
    return problem.dtype != DType::f32 && problem.head_dim == problem.head_dim_v &&
           problem.scale > 0.0F && problem.max_seqlen_k > 0 && problem.total_k > 0 &&
           problem.max_seqlen_q < kMost && problem.max_seqlen_k < kMost &&
           problem.batch * problem.heads < kMost / (problem.max_seqlen_q / 64 + 1);
}

bool hopper_serves(const Problem& problem, const Buffers& buffers) {
    return fits_hopper(problem) && is_plain(buffers.extras) &&
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

bool hopper_serves(const Problem& problem, const BackwardBuffers& buffers) {
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    return fits_hopper(problem) && is_plain(buffers.extras) && problem.head_dim <= 128 &&
           problem.softcap == 0.0F && problem.max_seqlen_q > 0 &&
           problem.batch * problem.heads < kMost / (problem.max_seqlen_k / 128 + 1) &&
           vectors_fit(problem,
                       {{buffers.q, buffers.q_strides},
                        {buffers.k, buffers.k_strides},
                        {buffers.v, buffers.v_strides},
                        {buffers.out, buffers.out_strides},
                        {buffers.grad_out, buffers.grad_out_strides},
                        {buffers.grad_q, buffers.grad_q_strides},
                        {buffers.grad_k, buffers.grad_k_strides},
                        {buffers.grad_v, buffers.grad_v_strides}}) &&
           on_sm_90();
}

cudaError_t
backward_any_gpu(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    if (problem.max_seqlen_q != 0) { // else nothing sees the keys: their gradients are written
        const cudaError_t error = backward_delta(problem, buffers, stream);
        if (error != cudaSuccess) {
            return error;
        }
    }
    const std::int64_t width = widest_head(problem);
    return problem.dtype == DType::f32 ? backward_f32(problem, buffers, stream)
           : width <= 64               ? backward_d64(problem, buffers, stream)
           : width <= 128              ? backward_d128(problem, buffers, stream)
                                       : backward_d256(problem, buffers, stream);
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

std::int64_t backward_workspace_bytes(const Problem& problem, const BackwardBuffers& buffers) {
    if (!hopper_serves(problem, buffers)) {
        return 0;
    }
    const bool packed = buffers.offsets.q != nullptr;
    return problem.head_dim <= 64 ? backward_hopper_workspace_d64(problem, packed)
                                  : backward_hopper_workspace_d128(problem, packed);
}

const char* backward_cuda(const Problem& problem, const BackwardBuffers& buffers, void* stream) {
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    cudaError_t error = cudaErrorNotSupported;
    if (buffers.workspace != nullptr && hopper_serves(problem, buffers)) {
        error = (problem.head_dim <= 64 ? backward_hopper_d64
                                        : backward_hopper_d128)(problem, buffers, cuda_stream);
    }
    if (error == cudaErrorNotSupported) {
        error = backward_any_gpu(problem, buffers, cuda_stream);
    }
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace attention
