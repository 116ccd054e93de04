// SPDX-License-Identifier: Apache-2.0
//
// What the launches of the Hopper kernels share: tensor maps, the size of the GPU.
#pragma once

#include "../attention_common/attention.h"
#include "hopper.cuh"

#include <cuda_runtime.h>

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

inline cudaError_t count_multiprocessors(int& count) {
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    return error != cudaSuccess
               ? error
               : cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
}

} // namespace attention
