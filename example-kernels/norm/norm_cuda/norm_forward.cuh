// SPDX-License-Identifier: Apache-2.0
//
// Forward. The usual kernel reads every row once and keeps it in registers, packed:
//
//      one block: blockDim.y rows, blockDim.x threads a row
//      row 0   | t0 t1 t2 ... | t0 t1 t2 ... |  ...  N vectors a thread, blockDim.x apart
//      row 1   | t0 t1 t2 ... | t0 t1 t2 ... |  ...
//
// The other one serves rows that do not fit, odd sizes and odd addresses: one row a block,
// element by element, re-reading the row from the cache.
#pragma once

#include "device.cuh"

namespace rownorm {

template <typename Number>
__device__ __forceinline__ float scale_rms(float x, float rstd, float weight, Mode mode) {
    const float normed = x * rstd;
    if (mode == Mode::llama) {
        return rounded<Number>(normed) * weight;
    }
    return normed * (mode == Mode::gemma ? 1.0F + weight : weight);
}

template <typename Number, Kind K, int N, int kMaxThreads>
__global__ void __launch_bounds__(kMaxThreads)
    forward_rows(const Problem problem, const ForwardBuffers buffers) {
    using Storage = typename Number::Storage;
    using P = Pack<Number>;
    constexpr int kV = kVector<Number>;
    __shared__ RowSumStorage<1> storage[2];

    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const bool live = row < problem.rows; // the others still meet at the barriers
    const int packs = static_cast<int>(problem.cols / kV);
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const float count = static_cast<float>(problem.cols);

    P x[N];
    if (live) {
        const P* source = reinterpret_cast<const P*>(static_cast<const Storage*>(buffers.x) +
                                                     buffers.x_rows.offset(row));
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const int pack = static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x);
            if (pack < packs) {
                x[n] = source[pack];
            }
        }
        if constexpr (K == Kind::add_rms) {
            const P* residual = reinterpret_cast<const P*>(
                static_cast<const Storage*>(buffers.residual) + buffers.residual_rows.offset(row));
            P* sum = reinterpret_cast<P*>(static_cast<Storage*>(buffers.sum) +
                                          buffers.sum_rows.offset(row));
            P r[N];
#pragma unroll
            for (int n = 0; n < N; ++n) {
                const int pack = static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x);
                if (pack < packs) {
                    r[n] = residual[pack];
                }
            }
#pragma unroll
            for (int n = 0; n < N; ++n) {
                const int pack = static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x);
                if (pack < packs) {
#pragma unroll
                    for (int i = 0; i < kV; ++i) {
                        x[n].item[i] = Number::narrow(Number::widen(x[n].item[i]) +
                                                      Number::widen(r[n].item[i]));
                    }
                    sum[pack] = x[n];
                }
            }
        }
    }

    // Applies term(value) to every element this thread holds and sums over the row.
    const auto total = [&](RowSumStorage<1>& scratch, const auto& term) {
        float value[1] = {0.0F};
        if (live) {
#pragma unroll
            for (int n = 0; n < N; ++n) {
                if (static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x) < packs) {
#pragma unroll
                    for (int i = 0; i < kV; ++i) {
                        value[0] += term(Number::widen(x[n].item[i]));
                    }
                }
            }
        }
        row_sum(value, scratch);
        return value[0];
    };

    float mean = 0.0F;
    if constexpr (K == Kind::layer) {
        mean = total(storage[0], [](float v) { return v; }) / count;
    }
    const float square =
        total(storage[1], [mean](float v) { return (v - mean) * (v - mean); }) / count;
    const float rstd = 1.0F / sqrtf(square + problem.eps);
    if (!live) {
        return;
    }

    P* y = reinterpret_cast<P*>(static_cast<Storage*>(buffers.y) + buffers.y_rows.offset(row));
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const int pack = static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x);
        if (pack < packs) {
            float weight[kV];
            const float absent = problem.mode == Mode::gemma ? 0.0F : 1.0F;
            load_parameter<Number>(
                buffers.weight, weight_f32, static_cast<std::int64_t>(pack) * kV, absent, weight);
            P result;
            if constexpr (K == Kind::layer) {
                float bias[kV];
                load_parameter<Number>(
                    buffers.bias, weight_f32, static_cast<std::int64_t>(pack) * kV, 0.0F, bias);
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    const float centred = Number::widen(x[n].item[i]) - mean;
                    result.item[i] = Number::narrow(centred * rstd * weight[i] + bias[i]);
                }
            } else {
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    const float value = Number::widen(x[n].item[i]);
                    result.item[i] =
                        Number::narrow(scale_rms<Number>(value, rstd, weight[i], problem.mode));
                }
            }
            y[pack] = result;
        }
    }
    if (threadIdx.x == 0) {
        if (K == Kind::layer && buffers.mean != nullptr) {
            buffers.mean[row] = mean;
        }
        if (buffers.rstd != nullptr) {
            buffers.rstd[row] = rstd;
        }
    }
}

template <typename Number, Kind K>
__global__ void __launch_bounds__(kScalarThreads)
    forward_scalar(const Problem problem, const ForwardBuffers buffers) {
    using Storage = typename Number::Storage;
    __shared__ RowSumStorage<1> storage[2];
    const std::int64_t row = blockIdx.x;
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const float count = static_cast<float>(problem.cols);

    const Storage* x = static_cast<const Storage*>(buffers.x) + buffers.x_rows.offset(row);
    Storage* y = static_cast<Storage*>(buffers.y) + buffers.y_rows.offset(row);
    if constexpr (K == Kind::add_rms) {
        const Storage* residual =
            static_cast<const Storage*>(buffers.residual) + buffers.residual_rows.offset(row);
        Storage* sum = static_cast<Storage*>(buffers.sum) + buffers.sum_rows.offset(row);
        for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
            sum[i] = Number::narrow(Number::widen(x[i]) + Number::widen(residual[i]));
        }
        x = sum; // each thread reads back only what it wrote
    }

    float mean = 0.0F;
    if constexpr (K == Kind::layer) {
        float total[1] = {0.0F};
        for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
            total[0] += Number::widen(x[i]);
        }
        row_sum(total, storage[0]);
        mean = total[0] / count;
    }
    float square[1] = {0.0F};
    for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
        const float centred = Number::widen(x[i]) - mean;
        square[0] += centred * centred;
    }
    row_sum(square, storage[1]);
    const float rstd = 1.0F / sqrtf(square[0] / count + problem.eps);

    for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
        float weight[1];
        const float absent = problem.mode == Mode::gemma ? 0.0F : 1.0F;
        load_parameter<Number>(buffers.weight, weight_f32, i, absent, weight);
        if constexpr (K == Kind::layer) {
            float bias[1];
            load_parameter<Number>(buffers.bias, weight_f32, i, 0.0F, bias);
            y[i] = Number::narrow((Number::widen(x[i]) - mean) * rstd * weight[0] + bias[0]);
        } else {
            y[i] = Number::narrow(
                scale_rms<Number>(Number::widen(x[i]), rstd, weight[0], problem.mode));
        }
    }
    if (threadIdx.x == 0) {
        if (K == Kind::layer && buffers.mean != nullptr) {
            buffers.mean[row] = mean;
        }
        if (buffers.rstd != nullptr) {
            buffers.rstd[row] = rstd;
        }
    }
}

} // namespace rownorm
