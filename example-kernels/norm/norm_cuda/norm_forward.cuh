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
__global__ void __launch_bounds__(kMaxThreads, kMinThreadsPerSm / kMaxThreads)
    forward_rows(const Problem problem, const ForwardBuffers buffers) {
    constexpr int kV = kVector<Number>;
    __shared__ RowSumStorage<1> storage[2];

    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const bool live = row < problem.rows; // the others still meet at the barriers
    const int vectors = static_cast<int>(problem.cols / kV);
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const float count = static_cast<float>(problem.cols);

    // Calls body(n, v) for every vector v of the row that this thread holds as its n-th.
    const auto for_each = [&](const auto& body) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const int v = static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x);
            if (live && v < vectors) {
                body(n, v);
            }
        }
    };

    Vector x[N];
    const Vector* source = vectors_at<Number>(buffers.x, buffers.x_rows.offset(row));
    for_each([&](int n, int v) { x[n] = load_once(source + v); });
    if constexpr (K == Kind::add_rms) {
        constexpr int kAtOnce = N < 4 ? N : 4; // more residual vectors would not fit in registers
        const Vector* residual =
            vectors_at<Number>(buffers.residual, buffers.residual_rows.offset(row));
        Vector* sum = vectors_at<Number>(buffers.sum, buffers.sum_rows.offset(row));
#pragma unroll
        for (int first = 0; first < N; first += kAtOnce) {
            Vector r[kAtOnce];
            const auto in_turn = [&](const auto& body) {
                for_each([&](int n, int v) {
                    if (n >= first && n < first + kAtOnce) {
                        body(n, v);
                    }
                });
            };
            in_turn([&](int n, int v) { r[n - first] = load_once(residual + v); });
            in_turn([&](int n, int v) {
                float a[kV];
                float b[kV];
                unpack<Number>(x[n], a);
                unpack<Number>(r[n - first], b);
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    a[i] += b[i];
                }
                x[n] = pack<Number>(a);
                sum[v] = x[n];
            });
        }
    }

    // Sums term(value) over the elements of the row.
    const auto total = [&](RowSumStorage<1>& scratch, const auto& term) {
        float result[1] = {0.0F};
        for_each([&](int n, int) {
            float value[kV];
            unpack<Number>(x[n], value);
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                result[0] += term(value[i]);
            }
        });
        row_sum(result, scratch);
        return result[0];
    };
    float mean = 0.0F;
    if constexpr (K == Kind::layer) {
        mean = total(storage[0], [](float v) { return v; }) / count;
    }
    const float square =
        total(storage[1], [mean](float v) { return (v - mean) * (v - mean); }) / count;
    const float rstd = 1.0F / sqrtf(square + problem.eps);

    const float absent = problem.mode == Mode::gemma ? 0.0F : 1.0F;
    Vector* y = vectors_at<Number>(buffers.y, buffers.y_rows.offset(row));
    for_each([&](int n, int v) {
        const std::int64_t column = static_cast<std::int64_t>(v) * kV;
        float value[kV];
        float weight[kV];
        unpack<Number>(x[n], value);
        load_parameter<Number>(buffers.weight, weight_f32, column, absent, weight);
        if constexpr (K == Kind::layer) {
            float bias[kV];
            load_parameter<Number>(buffers.bias, weight_f32, column, 0.0F, bias);
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                value[i] = (value[i] - mean) * rstd * weight[i] + bias[i];
            }
        } else {
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                value[i] = scale_rms<Number>(value[i], rstd, weight[i], problem.mode);
            }
        }
        y[v] = pack<Number>(value);
    });
    if (live && threadIdx.x == 0) {
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
