// SPDX-License-Identifier: Apache-2.0
//
// The cache's host part: instantiation and split count.
#include "cache_kernels.h"
#include "cache_tuning.h"

namespace attention {

namespace {

int multiprocessors() {
    int device = 0;
    int count = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
        return 1;
    }
    return count;
}

} // namespace

std::int64_t cache_splits_cuda(const Problem& problem, CacheFormat format, std::int64_t wanted) {
    const CacheShape shape = cache_shape(format, cache_padded_dim(widest_head(problem)));
    const std::int64_t steps = (problem.max_seqlen_k + shape.keys - 1) / shape.keys;
    if (wanted > 0) {
        return wanted < kMostSplits ? wanted : kMostSplits;
    }
    const std::int64_t group = problem.heads_kv == 0 ? 1 : problem.heads / problem.heads_kv;
    const std::int64_t rows = cache_block_rows(problem);
    const std::int64_t blocks =
        problem.batch * problem.heads_kv * ((problem.max_seqlen_q * group + rows - 1) / rows);
    const std::int64_t slots =
        std::int64_t{rows == 8 ? shape.blocks : shape.wide_blocks} * multiprocessors();
    // A split has two steps at least: both are in flight at once.
    const std::int64_t most = (steps + 1) / 2 < kMostSplits ? (steps + 1) / 2 : kMostSplits;
    // In steps of one block: the longest of all, and a fixed part for the start of each wave.
    constexpr std::int64_t kStart = 4;
    std::int64_t best = 1;
    std::int64_t least = 0;
    for (std::int64_t splits = 1; splits <= most; ++splits) {
        const std::int64_t waves = (blocks * splits + slots - 1) / slots;
        const std::int64_t cost = waves * ((steps + splits - 1) / splits + kStart);
        if (splits == 1 || cost * 20 < least * 19) { // fewer splits are less to combine
            best = splits;
            least = cost;
        }
    }
    return best;
}

std::int64_t cache_padded_dim_cuda(const Problem& problem) {
    return cache_padded_dim(widest_head(problem));
}

const char* cache_forward_cuda(const Problem& problem,
                               const CacheBuffers& buffers,
                               std::int64_t splits,
                               void* stream) {
    const int dim = cache_padded_dim(widest_head(problem));
    const auto run = dim == 64 ? cache_d64 : dim == 128 ? cache_d128 : cache_d256;
    const cudaError_t error =
        run(problem, buffers, static_cast<int>(splits), static_cast<cudaStream_t>(stream));
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace attention
