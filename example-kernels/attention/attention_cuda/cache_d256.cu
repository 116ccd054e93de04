// SPDX-License-Identifier: Apache-2.0
#include "cache.cuh"
#include "cache_kernels.h"

namespace attention {

cudaError_t
cache_d256(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream) {
    return launch_cache_format<256>(problem, buffers, splits, stream);
}

} // namespace attention
