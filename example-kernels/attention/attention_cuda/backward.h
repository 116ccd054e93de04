// SPDX-License-Identifier: Apache-2.0
//
// The instantiations, one translation unit each, so that they compile side by side.
#pragma once

#include "../attention_common/attention.h"

#include <cuda_runtime.h>

namespace attention {

// delta of attention.h, first; every dtype.
cudaError_t
backward_delta(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream);

cudaError_t
backward_d64(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream);
cudaError_t
backward_d128(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream);
cudaError_t
backward_d256(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream);
cudaError_t
backward_f32(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream);

// For sm_90a alone, with a workspace; cudaErrorNotSupported: nothing was done, one of the above has
// to. They compute delta themselves.
cudaError_t
backward_hopper_d64(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream);
cudaError_t
backward_hopper_d128(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream);
std::int64_t backward_hopper_workspace_d64(const Problem& problem, bool packed);
std::int64_t backward_hopper_workspace_d128(const Problem& problem, bool packed);

} // namespace attention
