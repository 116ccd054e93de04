// SPDX-License-Identifier: Apache-2.0
#include "forward.h"
#include "forward_hopper_launch.cuh"

namespace attention {

cudaError_t
forward_hopper_d64(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    return problem.dtype == DType::f16
               ? launch_hopper<Float16, HopperTile64>(problem, buffers, stream)
               : launch_hopper<BFloat16, HopperTile64>(problem, buffers, stream);
}

} // namespace attention
