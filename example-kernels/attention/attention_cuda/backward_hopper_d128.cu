// SPDX-License-Identifier: Apache-2.0
#include "backward.h"
#include "backward_hopper_launch.cuh"

namespace attention {

std::int64_t backward_hopper_workspace_d128(const Problem& problem, bool packed) {
    return backward_workspace<HopperBackwardTile128>(problem, packed);
}

cudaError_t
backward_hopper_d128(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    return problem.dtype == DType::f16
               ? launch_backward_hopper<Float16, HopperBackwardTile128>(problem, buffers, stream)
               : launch_backward_hopper<BFloat16, HopperBackwardTile128>(problem, buffers, stream);
}

} // namespace attention
