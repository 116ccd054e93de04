// SPDX-License-Identifier: Apache-2.0
//
// The instantiations, one translation unit each.
#pragma once

#include "../attention_common/cache.h"

#include <cuda_runtime.h>

namespace attention {

cudaError_t
cache_d64(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream);
cudaError_t
cache_d128(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream);
cudaError_t
cache_d256(const Problem& problem, const CacheBuffers& buffers, int splits, cudaStream_t stream);

} // namespace attention
