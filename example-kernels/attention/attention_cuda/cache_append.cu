// SPDX-License-Identifier: Apache-2.0
//
// New keys and values, written to a cache in its format.
#include "../attention_common/cache.h"
#include "mma.cuh"
#include "tuning.h"

#include <cuda_fp8.h>
#include <cuda_runtime.h>

namespace attention {

namespace {

// The rows of a cache's keys, or values, and the new ones.
struct AppendedRows {
    const void* from;
    Strides from_strides;
    void* to;
    Strides to_strides;
    void* scales;
    Strides scale_strides;
    int width;
    Descale descale;
};

__device__ __forceinline__ float to_float(float value) {
    return value;
}

__device__ __forceinline__ float to_float(__half value) {
    return __half2float(value);
}

__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
    return __bfloat162float(value);
}

// A warp: the codes of `count` numbers, each divided by `descale`, and their pair (scale, zero).
// The scale lets the numbers, and 0, fit between code 0 and code 15.
template <typename Element>
__device__ void append_int4_group(
    const Element* values, int count, float descale, unsigned char* codes, __half* pair) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float low = 0.0F;
    float high = 0.0F;
    for (int i = lane; i < count; i += 32) {
        const float value = __fdiv_rn(to_float(values[i]), descale);
        low = fminf(low, value);
        high = fmaxf(high, value);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        low = fminf(low, __shfl_xor_sync(0xffffffffU, low, step));
        high = fmaxf(high, __shfl_xor_sync(0xffffffffU, high, step));
    }
    const __half half_scale = __float2half_rn(fminf(__fdiv_rn(high - low, 15.0F), 65504.0F));
    const float scale = __half2float(half_scale);
    const float zero =
        scale == 0.0F ? 0.0F : fminf(fmaxf(rintf(__fdiv_rn(-low, scale)), 0.0F), 15.0F);
    if (lane == 0) {
        pair[0] = half_scale;
        pair[1] = __float2half_rn(zero);
    }
    const auto code = [&](int i) {
        const float value = __fdiv_rn(to_float(values[i]), descale);
        const float steps = scale == 0.0F ? 0.0F : rintf(__fdiv_rn(value, scale)) + zero;
        return static_cast<unsigned>(fminf(fmaxf(steps, 0.0F), 15.0F));
    };
    for (int i = lane; i < count / 2; i += 32) {
        codes[i] = static_cast<unsigned char>(code(2 * i) | code(2 * i + 1) << 4);
    }
}

// To the nearest number of e2m1, of two the one with an even code; beyond 6: 6.
__device__ __forceinline__ unsigned narrow_e2m1(float value) {
    const float magnitude = fabsf(value);
    const int code = (magnitude > 0.25F) + (magnitude >= 0.75F) + (magnitude > 1.25F) +
                     (magnitude >= 1.75F) + (magnitude > 2.5F) + (magnitude >= 3.5F) +
                     (magnitude > 5.0F);
    return static_cast<unsigned>(code) | (signbit(value) ? 8U : 0U);
}

// The same for e2m1. The scale makes the largest number 6 (e4m3), or less than 8 (e8m0).
template <typename Element>
__device__ void append_fp4_group(const Element* values,
                                 int count,
                                 float descale,
                                 bool powers,
                                 unsigned char* codes,
                                 unsigned char* scale) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float highest =
        lane < count ? fabsf(__fdiv_rn(to_float(values[lane]), descale)) : 0.0F; // count <= 32
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, step));
    }
    unsigned bits = 0;
    float factor = 0.0F;
    if (powers) {
        bits = static_cast<unsigned>(
            min(max(static_cast<int>(__float_as_uint(highest) >> 23) - 2, 0), 254));
        factor = __uint_as_float(bits == 0 ? 0x00400000U : bits << 23);
    } else {
        bits = __nv_cvt_float_to_fp8(__fdiv_rn(highest, 6.0F), __NV_SATFINITE, __NV_E4M3);
        factor = __half2float(
            __half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), __NV_E4M3)));
    }
    if (lane == 0) {
        *scale = static_cast<unsigned char>(bits);
    }
    const auto code = [&](int i) {
        return factor == 0.0F
                   ? 0U
                   : narrow_e2m1(__fdiv_rn(__fdiv_rn(to_float(values[i]), descale), factor));
    };
    if (lane < count / 2) {
        codes[lane] = static_cast<unsigned char>(code(2 * lane) | code(2 * lane + 1) << 4);
    }
}

template <typename Element, CacheFormat kFormat>
__device__ void append_row(const AppendBuffers& b,
                           const AppendedRows& rows,
                           std::int64_t batch,
                           std::int64_t head,
                           std::int64_t row,
                           std::int64_t at) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto* source = static_cast<const Element*>(rows.from) + batch * rows.from_strides.batch +
                         row * rows.from_strides.row + head * rows.from_strides.head;
    const std::int64_t target = cache_at(b.cache, rows.to_strides, batch, head, at);
    if constexpr (kFormat == CacheFormat::plain) {
        auto* out = static_cast<Element*>(rows.to) + target;
        for (int i = lane; i < rows.width; i += 32) {
            out[i] = source[i];
        }
    } else {
        const float descale = descale_of(rows.descale, batch, head);
        auto* out = static_cast<unsigned char*>(rows.to) + target;
        if constexpr (kFormat == CacheFormat::fp8) {
            for (int i = lane; i < rows.width; i += 32) {
                const float value = __fdiv_rn(to_float(source[i]), descale);
                out[i] = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
            }
        } else {
            const int group = static_cast<int>(b.quantization.group);
            auto* scales = static_cast<unsigned char*>(rows.scales) +
                           cache_at(b.cache, rows.scale_strides, batch, head, at);
            for (int i = 0; i < rows.width; i += group) {
                if constexpr (kFormat == CacheFormat::int4) {
                    append_int4_group(
                        source + i, group, descale, out + i / 2, reinterpret_cast<__half*>(scales));
                } else {
                    append_fp4_group(
                        source + i, group, descale, b.quantization.powers, out + i / 2, scales);
                }
                scales += cache_scale_bytes_of(kFormat);
            }
        }
    }
}

// A warp a row of keys and of values.
template <typename Element, CacheFormat kFormat>
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
    const Quantization& z = b.quantization;
    const AppendedRows keys{b.k_new,
                            b.k_new_strides,
                            b.k,
                            b.k_strides,
                            z.k_scales,
                            z.k_scale_strides,
                            static_cast<int>(problem.head_dim),
                            z.k_descale};
    const AppendedRows values{b.v_new,
                              b.v_new_strides,
                              b.v,
                              b.v_strides,
                              z.v_scales,
                              z.v_scale_strides,
                              static_cast<int>(problem.head_dim_v),
                              z.v_descale};
    append_row<Element, kFormat>(b, keys, batch, head, row, at);
    append_row<Element, kFormat>(b, values, batch, head, row, at);
}

using AppendKernel = void (*)(Problem, AppendBuffers);

template <typename Element>
AppendKernel kernel_of(CacheFormat format) {
    switch (format) {
    case CacheFormat::fp8:
        return append_rows<Element, CacheFormat::fp8>;
    case CacheFormat::int4:
        return append_rows<Element, CacheFormat::int4>;
    case CacheFormat::fp4:
        return append_rows<Element, CacheFormat::fp4>;
    default:
        return append_rows<Element, CacheFormat::plain>;
    }
}

} // namespace

const char* cache_append_cuda(const Problem& problem, const AppendBuffers& buffers, void* stream) {
    const std::int64_t items = problem.batch * buffers.rows * problem.heads_kv;
    if (items / kWarps > 0x7ffffffe) {
        return cudaGetErrorString(cudaErrorInvalidConfiguration);
    }
    const CacheFormat format = buffers.quantization.format;
    const AppendKernel kernel = problem.dtype == DType::f32   ? kernel_of<float>(format)
                                : problem.dtype == DType::f16 ? kernel_of<__half>(format)
                                                              : kernel_of<__nv_bfloat16>(format);
    kernel<<<static_cast<unsigned>((items + kWarps - 1) / kWarps),
             kThreads,
             0,
             static_cast<cudaStream_t>(stream)>>>(problem, buffers);
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace attention
