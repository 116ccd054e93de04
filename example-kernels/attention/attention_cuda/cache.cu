// SPDX-License-Identifier: Apache-2.0
//
// The cache's host part: instantiation, split count; and the kernel that appends.
#include "cache_kernels.h"
#include "cache_tuning.h"

namespace attention {

namespace {

int blocks_per_multiprocessor(const Problem& problem) {
    return problem.head_dim <= 64    ? CacheTile64::blocks
           : problem.head_dim <= 128 ? CacheTile128::blocks
                                     : CacheTile256::blocks;
}

int multiprocessors() {
    int device = 0;
    int count = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
        return 1;
    }
    return count;
}

// A warp a row of keys and of values.
template <typename Element>
__global__ void append_rows(const Problem problem, const AppendBuffers b) {
    const std::int64_t item = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
    if (item >= problem.batch * b.rows * problem.heads_kv) {
        return;
    }
    const std::int64_t head = item % problem.heads_kv;
    const std::int64_t row = item / problem.heads_kv % b.rows;
    const std::int64_t batch = item / problem.heads_kv / b.rows;
    const std::int64_t at = b.cache.lengths[batch] + row;
    if (at < 0 || at >= problem.max_seqlen_k) {
        return;
    }
    const auto copy =
        [&](const void* from, const Strides& from_strides, void* to, const Strides& to_strides) {
            const auto* source = static_cast<const Element*>(from) + batch * from_strides.batch +
                                 row * from_strides.row + head * from_strides.head;
            auto* target =
                static_cast<Element*>(to) + cache_at(b.cache, to_strides, batch, head, at);
            for (int i = static_cast<int>(threadIdx.x) % 32; i < problem.head_dim; i += 32) {
                target[i] = source[i];
            }
        };
    copy(b.k_new, b.k_new_strides, b.k, b.k_strides);
    copy(b.v_new, b.v_new_strides, b.v, b.v_strides);
}

} // namespace

std::int64_t cache_splits_cuda(const Problem& problem, std::int64_t wanted) {
    const std::int64_t steps = (problem.max_seqlen_k + kCacheKeys - 1) / kCacheKeys;
    if (wanted > 0) {
        return wanted < kMostSplits ? wanted : kMostSplits;
    }
    const std::int64_t group = problem.heads_kv == 0 ? 1 : problem.heads / problem.heads_kv;
    const std::int64_t blocks =
        problem.batch * problem.heads_kv * ((problem.max_seqlen_q * group + 15) / 16);
    const std::int64_t slots = std::int64_t{blocks_per_multiprocessor(problem)} * multiprocessors();
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
    return problem.head_dim <= 64 ? 64 : problem.head_dim <= 128 ? 128 : 256;
}

const char* cache_forward_cuda(const Problem& problem,
                               const CacheBuffers& buffers,
                               std::int64_t splits,
                               void* stream) {
    const auto run = problem.head_dim <= 64    ? cache_d64
                     : problem.head_dim <= 128 ? cache_d128
                                               : cache_d256;
    const cudaError_t error =
        run(problem, buffers, static_cast<int>(splits), static_cast<cudaStream_t>(stream));
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

const char* cache_append_cuda(const Problem& problem, const AppendBuffers& buffers, void* stream) {
    const std::int64_t items = problem.batch * buffers.rows * problem.heads_kv;
    if (items / kWarps > 0x7ffffffe) {
        return cudaGetErrorString(cudaErrorInvalidConfiguration);
    }
    const auto kernel =
        problem.dtype == DType::f32 ? append_rows<float> : append_rows<std::uint16_t>;
    kernel<<<static_cast<unsigned>((items + kWarps - 1) / kWarps),
             kThreads,
             0,
             static_cast<cudaStream_t>(stream)>>>(problem, buffers);
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace attention
