// SPDX-License-Identifier: Apache-2.0
//
// The instantiations, one translation unit each, so that they compile side by side.
#pragma once

#include "../attention_common/attention.h"

#include <cuda_runtime.h>

namespace attention {

cudaError_t forward_d64(const Problem& problem, const Buffers& buffers, cudaStream_t stream);
cudaError_t forward_d128(const Problem& problem, const Buffers& buffers, cudaStream_t stream);
cudaError_t forward_d256(const Problem& problem, const Buffers& buffers, cudaStream_t stream);
cudaError_t forward_f32(const Problem& problem, const Buffers& buffers, cudaStream_t stream);

// For sm_90a alone; cudaErrorNotSupported: nothing was done, one of the above has to.
cudaError_t forward_hopper_d64(const Problem& problem, const Buffers& buffers, cudaStream_t stream);
cudaError_t
forward_hopper_d128(const Problem& problem, const Buffers& buffers, cudaStream_t stream);
cudaError_t
forward_hopper_d256(const Problem& problem, const Buffers& buffers, cudaStream_t stream);

} // namespace attention
