// SPDX-License-Identifier: Apache-2.0
//
// RMS norm with 8-bit results: the norm of norm_forward.cuh, whose results stay in registers while
// the scale is found. Rows that do not fit take the element-by-element kernel.
#include "launch.h"
#include "norm_forward.cuh"

#include <cuda_fp8.h>

namespace rownorm {
namespace {

struct Quant {
    Scaling scaling;
    QuantBuffers buffers;
};

__device__ __forceinline__ std::uint8_t to_e4m3(float v) {
    return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);
}

template <int V>
__device__ __forceinline__ void store_e4m3(std::uint8_t* target, const float (&v)[V]) {
    std::uint16_t pairs[V / 2];
#pragma unroll
    for (int i = 0; i < V / 2; ++i) {
        pairs[i] = __nv_cvt_float2_to_fp8x2(
            make_float2(v[2 * i], v[2 * i + 1]), __NV_SATFINITE, __NV_E4M3);
    }
    if constexpr (V == 8) {
        *reinterpret_cast<uint2*>(target) = make_uint2(pairs[0] | std::uint32_t{pairs[1]} << 16,
                                                       pairs[2] | std::uint32_t{pairs[3]} << 16);
    } else {
        *reinterpret_cast<std::uint32_t*>(target) = pairs[0] | std::uint32_t{pairs[1]} << 16;
    }
}

__device__ __forceinline__ float scale_for(float largest, const float* bound) {
    if (bound != nullptr) {
        largest = fminf(largest, *bound);
    }
    // largest / kLargestQuantum, correctly rounded, without the general division.
    constexpr float kInverse = 1.0F / kLargestQuantum;
    const float quotient = largest * kInverse;
    const float rest = fmaf(-kLargestQuantum, quotient, largest);
    const float exact = isinf(quotient) ? quotient : fmaf(rest, kInverse, quotient);
    return fmaxf(exact, kSmallestScale);
}

// The largest value over `lanes` neighbouring lanes.
__device__ __forceinline__ float lane_max(float value, int lanes) {
    for (int offset = lanes / 2; offset > 0; offset /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, offset));
    }
    return value;
}

// The same over the block; all its threads must call it.
__device__ __forceinline__ float block_max(float value, float (&warps)[32]) {
    value = lane_max(value, 32);
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = value;
    }
    __syncthreads();
    return lane_max(threadIdx.x % 32 < blockDim.x / 32 ? warps[threadIdx.x % 32] : 0.0F, 32);
}

// The largest absolute value of some vectors.
template <typename Number>
class LargestValue {
public:
    __device__ __forceinline__ void add(const Vector& vector) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            word_ = Number::larger(word_, vector.word[w]);
        }
    }

    __device__ __forceinline__ float get() const {
        float v[kPerWord<Number>];
        Number::unpack(word_, v);
        float largest = v[0];
#pragma unroll
        for (int i = 1; i < kPerWord<Number>; ++i) {
            largest = fmaxf(largest, v[i]);
        }
        return largest;
    }

private:
    std::uint32_t word_ = 0;
};

// The results of normalise() stay in registers while their scales are found. Neighbouring lanes
// hold neighbouring vectors and a row has whole groups of lanes, so a group of elements is one of
// lanes. kGiven: the scale is given, so the results need not stay.
template <typename Number, Kind K, bool kGiven, int N, int R, int T>
__global__ void __launch_bounds__(T, kForwardThreadsPerSm / T)
    quantized_rows(const Problem problem,
                   const ForwardBuffers buffers,
                   const Quant quant,
                   int ranks,
                   int slice,
                   int ahead) {
    constexpr int kV = kVector<Number>;
    constexpr int kLanes = static_cast<int>(kGroup) / kV;
    __shared__ ForwardTotals<K, R> totals;
    const ForwardSums<K, R> sums(totals, ranks);
    const ThreadRows<R> rows(problem, ranks);
    const Share share = share_of(ranks, slice, static_cast<int>(problem.cols / kV), N);
    const auto store_scaled = [&](int r, int v, const Vector& result, float inverse) {
        float value[kV];
        unpack<Number>(result, value);
#pragma unroll
        for (int i = 0; i < kV; ++i) {
            value[i] *= inverse;
        }
        store_e4m3(static_cast<std::uint8_t*>(quant.buffers.out) + rows.row(r) * problem.cols +
                       static_cast<std::int64_t>(v) * kV,
                   value);
    };
    const auto normalise_into = [&](const auto& emit) {
        normalise<Number, K, N, R>(problem, buffers, ranks, slice, ahead, sums, emit);
    };
    if constexpr (kGiven) {
        const float inverse = 1.0F / *quant.buffers.scale;
        normalise_into(
            [&](int r, int, int v, const Vector& result) { store_scaled(r, v, result, inverse); });
        return;
    }
    Vector kept[R][N] = {};
    normalise_into([&](int r, int n, int, const Vector& result) { kept[r][n] = result; });
    float largest[R] = {};
    if (quant.scaling == Scaling::per_token) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            LargestValue<Number> all;
#pragma unroll
            for (int n = 0; n < N; ++n) {
                all.add(kept[r][n]);
            }
            largest[r] = all.get();
        }
        sums.post(largest, 1, Largest{});
        sums.wait(1);
        sums.collect(largest, 1, Largest{});
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
        float scale = 1.0F;
        if (quant.scaling == Scaling::per_token) {
            scale = scale_for(largest[r], quant.buffers.bound);
            if (share.first == 0 && rows.live(r)) {
                quant.buffers.scales[rows.row(r)] = scale;
            }
        }
        float inverse = 1.0F / scale;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const int v = share.first + n * static_cast<int>(blockDim.x);
            const bool held = n < share.count && rows.live(r);
            if (quant.scaling == Scaling::per_group) {
                LargestValue<Number> group;
                group.add(kept[r][n]);
                scale = scale_for(lane_max(group.get(), kLanes), nullptr);
                inverse = 1.0F / scale;
                if (held && v % kLanes == 0) {
                    quant.buffers.scales[rows.row(r) * (problem.cols / kGroup) + v / kLanes] =
                        scale;
                }
            }
            if (held) {
                store_scaled(r, v, kept[r][n], inverse);
            }
        }
    }
}

template <typename Number, Kind K>
__global__ void __launch_bounds__(kScalarThreads)
    quantized_scalar(const Problem problem, const ForwardBuffers buffers, const Quant quant) {
    using Storage = typename Number::Storage;
    __shared__ RowSumStorage<1> storage;
    __shared__ float warps[32];
    const std::int64_t row = blockIdx.x;
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const Storage* x = static_cast<const Storage*>(buffers.x) + buffers.x_rows.offset(row);
    if constexpr (K == Kind::add_rms) {
        const Storage* residual =
            static_cast<const Storage*>(buffers.residual) + buffers.residual_rows.offset(row);
        Storage* sum = static_cast<Storage*>(buffers.sum) + buffers.sum_rows.offset(row);
        for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
            sum[i] = Number::narrow(Number::widen(x[i]) + Number::widen(residual[i]));
        }
        __syncthreads(); // groups read what other threads wrote
        x = sum;
    }
    float square[1] = {0.0F};
    for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
        square[0] += Number::widen(x[i]) * Number::widen(x[i]);
    }
    row_sum(square, storage);
    const float rstd = rsqrtf(square[0] / static_cast<float>(problem.cols) + problem.eps);
    const auto value = [&](std::int64_t i) {
        float weight[1];
        const float absent = problem.mode == Mode::gemma ? 0.0F : 1.0F;
        load_parameter<Number>(buffers.weight, weight_f32, i, absent, weight);
        float result[1] = {Number::widen(x[i])};
        scale_rms<Number>(result, rstd, weight, problem.mode);
        return Number::widen(Number::narrow(result[0]));
    };
    std::uint8_t* out = static_cast<std::uint8_t*>(quant.buffers.out) + row * problem.cols;
    if (quant.scaling == Scaling::per_group) { // a warp a group
        const std::int64_t groups = problem.cols / kGroup;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (std::int64_t g = threadIdx.x / 32; g < groups; g += blockDim.x / 32) {
            float largest = 0.0F;
            for (int i = lane; i < kGroup; i += 32) {
                largest = fmaxf(largest, fabsf(value(g * kGroup + i)));
            }
            const float scale = scale_for(lane_max(largest, 32), nullptr);
            if (lane == 0) {
                quant.buffers.scales[row * groups + g] = scale;
            }
            for (int i = lane; i < kGroup; i += 32) {
                out[g * kGroup + i] = to_e4m3(value(g * kGroup + i) * (1.0F / scale));
            }
        }
        return;
    }
    float scale = 0.0F;
    if (quant.scaling == Scaling::per_tensor) {
        scale = *quant.buffers.scale;
    } else {
        float largest = 0.0F;
        for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
            largest = fmaxf(largest, fabsf(value(i)));
        }
        scale = scale_for(block_max(largest, warps), quant.buffers.bound);
        if (threadIdx.x == 0) {
            quant.buffers.scales[row] = scale;
        }
    }
    for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
        out[i] = to_e4m3(value(i) * (1.0F / scale));
    }
}

template <typename Number, Kind K>
void launch(const Problem& problem,
            const ForwardBuffers& buffers,
            const Quant& quant,
            cudaStream_t stream) {
    constexpr int kLanes = static_cast<int>(kGroup) / kVector<Number>;
    Spread s{0, 0, 0, 0, 0};
    const bool aligned = reinterpret_cast<std::uintptr_t>(quant.buffers.out) % 8 == 0;
    if (aligned && vectors_fit<Number>(problem, buffers)) {
        s = forward_spread(Work::quantized,
                           problem.cols / kVector<Number>,
                           problem.rows,
                           rows_are_even(problem, buffers),
                           has_clusters(quantized_rows<Number, K, false, 8, 1, 1024>));
    }
    if (s.threads == 0) {
        quantized_scalar<Number, K>
            <<<static_cast<unsigned>(problem.rows), kScalarThreads, 0, stream>>>(
                problem, buffers, quant);
        return;
    }
    const bool grouped = quant.scaling == Scaling::per_group;
    const ForwardLaunch how =
        forward_launch(problem, s, grouped ? std::max(s.threads, kLanes) : s.threads);
    const auto enqueue = [&](auto kernel) {
        launch(kernel,
               how.grid,
               how.block,
               0,
               s.ranks,
               stream,
               problem,
               buffers,
               quant,
               s.ranks,
               s.slice,
               how.ahead);
    };
    with_holding(s, [&](auto vectors, auto rows, auto threads) {
        if (quant.scaling == Scaling::per_tensor) {
            enqueue(quantized_rows<Number, K, true, vectors(), rows(), threads()>);
        } else {
            enqueue(quantized_rows<Number, K, false, vectors(), rows(), threads()>);
        }
    });
}

template <typename Number>
void launch_kind(const Problem& problem,
                 const ForwardBuffers& buffers,
                 const Quant& quant,
                 cudaStream_t stream) {
    if (problem.kind == Kind::add_rms) {
        launch<Number, Kind::add_rms>(problem, buffers, quant, stream);
    } else {
        launch<Number, Kind::rms>(problem, buffers, quant, stream);
    }
}

} // namespace

const char* quantized_cuda(const Problem& problem,
                           const ForwardBuffers& buffers,
                           Scaling scaling,
                           const QuantBuffers& quant,
                           void* stream) {
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    const Quant what{scaling, quant};
    switch (problem.dtype) {
    case DType::f32:
        launch_kind<Float32>(problem, buffers, what, cuda_stream);
        break;
    case DType::f16:
        launch_kind<Float16>(problem, buffers, what, cuda_stream);
        break;
    case DType::bf16:
        launch_kind<BFloat16>(problem, buffers, what, cuda_stream);
        break;
    }
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace rownorm
