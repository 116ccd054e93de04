// SPDX-License-Identifier: Apache-2.0
//
// The host's part of the sm_90a forward: tensor maps, the order of the tiles, the launch.
#pragma once

#include "forward_hopper.cuh"

namespace attention {

// A driver function; the library is linked to the runtime alone. Null if there is none.
inline PFN_cuTensorMapEncodeTiled_v12000 find_map_encoder() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t error =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess
               ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)
               : nullptr;
}

struct MapShape {
    std::int64_t head_dim, rows, heads, batch;
};

// Boxes of 64 columns and `box_rows` rows of one head. False if the copy engine cannot address
// the tensor.
inline bool encode_map(CUtensorMap& map,
                       DType dtype,
                       const void* data,
                       const Strides& strides,
                       const MapShape& shape,
                       int box_rows) {
    static const auto encode = find_map_encoder();
    if (encode == nullptr) {
        return false;
    }
    const auto size = [](std::int64_t n) {
        return static_cast<cuuint64_t>(n);
    };
    // The stride of a dimension of one element is never used, but has to be a valid one.
    const auto bytes = [](std::int64_t stride, std::int64_t extent) {
        return static_cast<cuuint64_t>(extent == 1 ? 16 : stride * 2);
    };
    const cuuint64_t extents[4] = {
        size(shape.head_dim), size(shape.rows), size(shape.heads), size(shape.batch)};
    const cuuint64_t distances[3] = {bytes(strides.row, shape.rows),
                                     bytes(strides.head, shape.heads),
                                     bytes(strides.batch, shape.batch)};
    const cuuint32_t box[4] = {kPanel, static_cast<cuuint32_t>(box_rows), 1, 1};
    const cuuint32_t every[4] = {1, 1, 1, 1};
    return encode(&map,
                  dtype == DType::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                      : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                  4,
                  const_cast<void*>(data),
                  extents,
                  distances,
                  box,
                  every,
                  CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// A window so wide that it is none becomes -1, the rest fits in 31 bits.
inline int narrow_window(const Problem& problem, std::int64_t window) {
    return window < 0 || window >= problem.max_seqlen_q + problem.max_seqlen_k
               ? -1
               : static_cast<int>(window);
}

template <typename Tiling>
HopperPlan plan_hopper(const Problem& problem, const Buffers& buffers) {
    // Keys and values of the heads that are worked on together should stay in the L2 cache.
    constexpr std::int64_t kCacheBytes = 32 << 20;
    HopperPlan plan{};
    plan.query_tiles =
        static_cast<int>((problem.max_seqlen_q + Tiling::queries - 1) / Tiling::queries);
    plan.heads = static_cast<int>(problem.heads);
    plan.heads_per_kv = static_cast<int>(problem.heads / problem.heads_kv);
    plan.all_heads = static_cast<int>(problem.batch * problem.heads);
    plan.tiles = plan.query_tiles * plan.all_heads;
    plan.window_left = narrow_window(problem, problem.window_left);
    plan.window_right = narrow_window(problem, problem.window_right);
    plan.descending = plan.window_right >= 0;
    plan.heads_at_once = 1;
    if (plan.descending) {
        const std::int64_t bytes = problem.max_seqlen_k * problem.head_dim * 4 / plan.heads_per_kv;
        const std::int64_t fit = kCacheBytes / (bytes > 0 ? bytes : 1);
        plan.heads_at_once =
            static_cast<int>(fit < 1 ? 1 : (fit < plan.all_heads ? fit : plan.all_heads));
    }
    plan.next_tile = plan.descending || buffers.offsets.q != nullptr ? buffers.next_tile : nullptr;
    return plan;
}

// cudaErrorNotSupported: nothing was done, another path has to.
template <typename Number, typename Tiling>
cudaError_t launch_hopper(const Problem& problem, const Buffers& buffers, cudaStream_t stream) {
    constexpr int kBytes = Tiling::shared_bytes;
    const auto kernel = forward_hopper<Number, Tiling>;
    const bool packed = buffers.offsets.q != nullptr;
    const std::int64_t batch = packed ? 1 : problem.batch;
    const MapShape q{
        problem.head_dim, packed ? problem.total_q : problem.max_seqlen_q, problem.heads, batch};
    const MapShape k{
        problem.head_dim, packed ? problem.total_k : problem.max_seqlen_k, problem.heads_kv, batch};
    HopperMaps maps{};
    if (!encode_map(maps.q, problem.dtype, buffers.q, buffers.q_strides, q, Tiling::queries) ||
        !encode_map(maps.k, problem.dtype, buffers.k, buffers.k_strides, k, Tiling::keys) ||
        !encode_map(maps.v, problem.dtype, buffers.v, buffers.v_strides, k, Tiling::keys)) {
        return cudaErrorNotSupported;
    }
    if (allow_shared(kernel, kBytes) != cudaSuccess) {
        cudaGetLastError(); // the code for this chip was not compiled in
        return cudaErrorNotSupported;
    }
    HopperPlan plan = plan_hopper<Tiling>(problem, buffers);
    int device = 0;
    int multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) {
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    }
    const int blocks = plan.tiles < multiprocessors ? plan.tiles : multiprocessors;
    if (plan.tiles <= blocks) {
        plan.next_tile = nullptr;
    }
    if (error == cudaSuccess && plan.next_tile != nullptr) {
        error = cudaMemsetAsync(plan.next_tile, 0, sizeof(int), stream);
    }
    if (error != cudaSuccess) {
        return error;
    }
    kernel<<<static_cast<unsigned>(blocks), Tiling::threads, kBytes, stream>>>(
        maps, problem, buffers, plan);
    return cudaGetLastError();
}

} // namespace attention
