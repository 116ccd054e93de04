// SPDX-License-Identifier: Apache-2.0
#include "forward.h"
#include "forward_hopper_launch.cuh"

namespace attention {

cudaError_t
forward_hopper_d256(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    return problem.dtype == DType::f16
               ? launch_hopper<Float16, HopperTile256>(problem, buffers, stream)
               : launch_hopper<BFloat16, HopperTile256>(problem, buffers, stream);
}

} // namespace attention
