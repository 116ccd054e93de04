// SPDX-License-Identifier: Apache-2.0
#include "cache.cuh"
#include "cache_kernels.h"

namespace attention {

cudaError_t
cache_d64(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream) {
    return problem.dtype == DType::f16
               ? launch_cache<Float16, CacheTile64>(problem, buffers, splits, stream)
               : launch_cache<BFloat16, CacheTile64>(problem, buffers, splits, stream);
}

} // namespace attention
