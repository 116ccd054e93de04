// SPDX-License-Identifier: Apache-2.0
#include "forward.h"
#include "forward_mma.cuh"

namespace attention {

cudaError_t forward_d256(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    return problem.dtype == DType::f16 ? launch_mma<Float16, Tile256>(problem, buffers, stream)
                                       : launch_mma<BFloat16, Tile256>(problem, buffers, stream);
}

} // namespace attention
