// SPDX-License-Identifier: Apache-2.0
#include "forward.h"
#include "forward_hopper_launch.cuh"

namespace attention {

namespace {

template <typename Number>
cudaError_t launch(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    // Short sequences under a mask: with smaller tiles less of them is masked.
    constexpr std::int64_t kShort = 1024;
    return problem.max_seqlen_q <= kShort && problem.window_right >= 0
               ? launch_hopper<Number, HopperTile64Short>(problem, buffers, stream)
               : launch_hopper<Number, HopperTile64>(problem, buffers, stream);
}

} // namespace

cudaError_t
forward_hopper_d64(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    return problem.dtype == DType::f16 ? launch<Float16>(problem, buffers, stream)
                                       : launch<BFloat16>(problem, buffers, stream);
}

} // namespace attention
