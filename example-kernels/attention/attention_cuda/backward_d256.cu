// SPDX-License-Identifier: Apache-2.0
#include "backward.h"
#include "backward_mma.cuh"

namespace attention {

cudaError_t
backward_d256(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    return problem.dtype == DType::f16
               ? launch_backward_mma<Float16, BackwardTile256>(problem, buffers, stream)
               : launch_backward_mma<BFloat16, BackwardTile256>(problem, buffers, stream);
}

} // namespace attention
