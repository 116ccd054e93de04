// SPDX-License-Identifier: Apache-2.0
//
// Backward where the ring of norm_backward_ring.cuh does not serve: no clusters for a long row, two
// strides between the rows, odd sizes. Blocks are persistent: block b takes the row groups b, b +
// gridDim.x, ... and keeps its part of the parameter gradients in registers until the end,
//
//      rows       block 0   block 1   ...      each block: one fp32 row of partial sums
//      group 0    *                            finalize: partials -> grad_weight, grad_bias
//      group 1              *
//      ...                            *
//      group G    *                            (G = gridDim.x)
//
// so x and grad_y are read once. The sums are added in an order that depends on the sizes and
// on the number of multiprocessors only: the same bits in every run.
#pragma once

#include "device.cuh"

namespace rownorm {

// The factor of a row's elements; the formulas are at backward_row in norm_cpu/norm.cpp.
__device__ __forceinline__ float effective_weight(float weight, Mode mode) {
    return mode == Mode::gemma ? 1.0F + weight : weight;
}

template <typename Number, bool kCentred, int N>
__global__ void __launch_bounds__(512)
    backward_rows(const Problem problem, const BackwardBuffers buffers) {
    constexpr int kV = kVector<Number>;
    constexpr int kSums = kCentred ? 2 : 1;
    constexpr bool kPrefetch = N <= 2; // the next row travels while this one is reduced
    __shared__ RowSumStorage<kSums> storage[2];
    __shared__ float columns[kBlockThreads * N * kV];

    const int vectors = static_cast<int>(problem.cols / kV);
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const float count = static_cast<float>(problem.cols);
    const float absent = problem.mode == Mode::gemma ? 0.0F : 1.0F;
    const std::int64_t groups = (problem.rows + blockDim.y - 1) / blockDim.y;

    // Calls body(n, v) for every vector v of a row that this thread holds as its n-th.
    const auto for_each = [&](bool live, const auto& body) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const int v = static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x);
            if (live && v < vectors) {
                body(n, v);
            }
        }
    };
    const auto load = [&](std::int64_t row, Vector(&x)[N], Vector(&dy)[N]) {
        const Vector* x_row = vectors_at<Number>(buffers.x, buffers.x_rows.offset(row));
        const Vector* dy_row = vectors_at<Number>(buffers.grad_y, buffers.grad_y_rows.offset(row));
        for_each(row < problem.rows, [&](int n, int v) {
            x[n] = load_once(x_row + v);
            dy[n] = load_once(dy_row + v);
        });
    };

    float grad_weight[N][kV] = {};
    float grad_bias[kCentred ? N : 1][kV] = {};
    Vector x[N];
    Vector dy[N];
    if constexpr (kPrefetch) {
        load(static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y, x, dy);
    }
    int turn = 0;
    for (std::int64_t group = blockIdx.x; group < groups; group += gridDim.x, turn ^= 1) {
        const std::int64_t row = group * blockDim.y + threadIdx.y;
        const bool live = row < problem.rows;
        if constexpr (!kPrefetch) {
            load(row, x, dy);
        }
        const float mean = kCentred && live ? buffers.mean[row] : 0.0F;
        const float rstd = live ? buffers.rstd[row] : 0.0F;
        float sums[kSums] = {};
        for_each(live, [&](int n, int v) {
            float grad[kV];
            float xhat[kV];
            float weight[kV];
            unpack<Number>(dy[n], grad);
            unpack<Number>(x[n], xhat);
            load_parameter<Number>(
                buffers.weight, weight_f32, static_cast<std::int64_t>(v) * kV, absent, weight);
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                xhat[i] = (xhat[i] - mean) * rstd;
                const float g = grad[i] * effective_weight(weight[i], problem.mode);
                sums[0] += g * xhat[i];
                grad_weight[n][i] += grad[i] * xhat[i];
                if constexpr (kCentred) {
                    sums[1] += g;
                    grad_bias[n][i] += grad[i];
                }
            }
        });
        Vector next_x[kPrefetch ? N : 1];
        Vector next_dy[kPrefetch ? N : 1];
        if constexpr (kPrefetch) {
            load(row + static_cast<std::int64_t>(gridDim.x) * blockDim.y, next_x, next_dy);
        }
        row_sum(sums, storage[turn]);
        const float projection = sums[0] / count;
        const float shift = kCentred ? sums[kSums - 1] / count : 0.0F;
        const Vector* extra_row =
            buffers.grad_sum == nullptr
                ? nullptr
                : vectors_at<Number>(buffers.grad_sum, buffers.grad_sum_rows.offset(row));
        Vector* dx_row = vectors_at<Number>(buffers.grad_x, buffers.grad_x_rows.offset(row));
        for_each(live, [&](int n, int v) {
            float grad[kV];
            float xhat[kV];
            float weight[kV];
            unpack<Number>(dy[n], grad);
            unpack<Number>(x[n], xhat);
            load_parameter<Number>(
                buffers.weight, weight_f32, static_cast<std::int64_t>(v) * kV, absent, weight);
            float value[kV];
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                const float g = grad[i] * effective_weight(weight[i], problem.mode);
                value[i] = rstd * (g - shift - (xhat[i] - mean) * rstd * projection);
            }
            if (extra_row != nullptr) {
                float extra[kV];
                unpack<Number>(load_once(extra_row + v), extra);
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    value[i] += extra[i];
                }
            }
            dx_row[v] = pack<Number>(value);
        });
        if constexpr (kPrefetch) {
#pragma unroll
            for (int n = 0; n < N; ++n) {
                x[n] = next_x[n];
                dy[n] = next_dy[n];
            }
        }
    }

    // Adds up the block's row groups and stores one row of partial sums.
    const auto store = [&](const auto& value, float* partial) {
        if (blockDim.y > 1) {
            __syncthreads();
#pragma unroll
            for (int n = 0; n < N; ++n) {
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
                    columns[(n * kV + i) * kBlockThreads + thread] = value[n][i];
                }
            }
            __syncthreads();
        }
        if (threadIdx.y != 0) {
            return;
        }
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const int v = static_cast<int>(threadIdx.x) + n * static_cast<int>(blockDim.x);
            if (v < vectors) {
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    float total = value[n][i];
                    for (unsigned y = 1; y < blockDim.y; ++y) {
                        total +=
                            columns[(n * kV + i) * kBlockThreads + y * blockDim.x + threadIdx.x];
                    }
                    partial[v * kV + i] = total;
                }
            }
        }
    };
    float* partial = buffers.partials + static_cast<std::int64_t>(blockIdx.x) * problem.cols;
    if (buffers.grad_weight != nullptr) {
        store(grad_weight, partial);
    }
    if constexpr (kCentred) {
        if (buffers.grad_bias != nullptr) {
            store(grad_bias, partial + static_cast<std::int64_t>(gridDim.x) * problem.cols);
        }
    }
}

// One row a block, element by element; the parameter gradients are the next kernel's.
template <typename Number, bool kCentred>
__global__ void __launch_bounds__(kScalarThreads)
    backward_scalar(const Problem problem, const BackwardBuffers buffers) {
    using Storage = typename Number::Storage;
    constexpr int kSums = kCentred ? 2 : 1;
    __shared__ RowSumStorage<kSums> storage;
    const std::int64_t row = blockIdx.x;
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const float count = static_cast<float>(problem.cols);
    const float absent = problem.mode == Mode::gemma ? 0.0F : 1.0F;
    const Storage* x = static_cast<const Storage*>(buffers.x) + buffers.x_rows.offset(row);
    const Storage* dy =
        static_cast<const Storage*>(buffers.grad_y) + buffers.grad_y_rows.offset(row);
    const float mean = kCentred ? buffers.mean[row] : 0.0F;
    const float rstd = buffers.rstd[row];
    const auto weighted = [&](std::int64_t i) {
        float weight[1];
        load_parameter<Number>(buffers.weight, weight_f32, i, absent, weight);
        return Number::widen(dy[i]) * effective_weight(weight[0], problem.mode);
    };
    const auto xhat = [&](std::int64_t i) {
        return (Number::widen(x[i]) - mean) * rstd;
    };

    float sums[kSums] = {};
    for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
        const float g = weighted(i);
        sums[0] += g * xhat(i);
        if constexpr (kCentred) {
            sums[1] += g;
        }
    }
    row_sum(sums, storage);
    const float projection = sums[0] / count;
    const float shift = kCentred ? sums[kSums - 1] / count : 0.0F;

    const Storage* extra =
        buffers.grad_sum == nullptr
            ? nullptr
            : static_cast<const Storage*>(buffers.grad_sum) + buffers.grad_sum_rows.offset(row);
    Storage* dx = static_cast<Storage*>(buffers.grad_x) + buffers.grad_x_rows.offset(row);
    for (std::int64_t i = threadIdx.x; i < problem.cols; i += blockDim.x) {
        float value = rstd * (weighted(i) - shift - xhat(i) * projection);
        if (extra != nullptr) {
            value += Number::widen(extra[i]);
        }
        dx[i] = Number::narrow(value);
    }
}

// Partial sums over the rows of chunk blockIdx.y, 32 columns a block. Goes with backward_scalar.
template <typename Number, bool kCentred>
__global__ void __launch_bounds__(kFinalizeColumns* kColumnRows)
    column_partials(const Problem problem, const BackwardBuffers buffers) {
    using Storage = typename Number::Storage;
    __shared__ float sums[2][kColumnRows][kFinalizeColumns];
    const std::int64_t column =
        static_cast<std::int64_t>(blockIdx.x) * kFinalizeColumns + threadIdx.x;
    const std::int64_t chunk = (problem.rows + gridDim.y - 1) / gridDim.y;
    const std::int64_t begin = blockIdx.y * chunk;
    const std::int64_t end = begin + chunk < problem.rows ? begin + chunk : problem.rows;
    float weight_sum = 0.0F;
    float bias_sum = 0.0F;
    if (column < problem.cols) {
        for (std::int64_t row = begin + threadIdx.y; row < end; row += kColumnRows) {
            const float grad = Number::widen(static_cast<const Storage*>(
                buffers.grad_y)[buffers.grad_y_rows.offset(row) + column]);
            const float x = Number::widen(
                static_cast<const Storage*>(buffers.x)[buffers.x_rows.offset(row) + column]);
            const float mean = kCentred ? buffers.mean[row] : 0.0F;
            weight_sum += grad * ((x - mean) * buffers.rstd[row]);
            bias_sum += grad;
        }
    }
    sums[0][threadIdx.y][threadIdx.x] = weight_sum;
    sums[1][threadIdx.y][threadIdx.x] = bias_sum;
    __syncthreads();
    if (threadIdx.y >= (kCentred ? 2 : 1) || column >= problem.cols) {
        return;
    }
    float total = 0.0F; // threadIdx.y 0: the weight's gradient, 1: the bias's
    for (int i = 0; i < kColumnRows; ++i) {
        total += sums[threadIdx.y][i][threadIdx.x];
    }
    const std::int64_t plane = threadIdx.y * static_cast<std::int64_t>(gridDim.y) * problem.cols;
    buffers.partials[plane + blockIdx.y * problem.cols + column] = total;
}

// Adds up `partial_rows` rows of partial sums. blockIdx.y 0: the weight's gradient, 1: the bias's.
template <typename Number>
__global__ void __launch_bounds__(kFinalizeColumns* kFinalizeRows)
    finalize(const Problem problem, const BackwardBuffers buffers, int partial_rows) {
    __shared__ float sums[kFinalizeRows][kFinalizeColumns];
    void* out = blockIdx.y == 0 ? buffers.grad_weight : buffers.grad_bias;
    if (out == nullptr) {
        return;
    }
    const std::int64_t column =
        static_cast<std::int64_t>(blockIdx.x) * kFinalizeColumns + threadIdx.x;
    const float* plane = buffers.partials + blockIdx.y * partial_rows * problem.cols;
    float total = 0.0F;
    if (column < problem.cols) {
#pragma unroll 8
        for (int row = static_cast<int>(threadIdx.y); row < partial_rows;
             row += static_cast<int>(blockDim.y)) {
            total += plane[row * problem.cols + column];
        }
    }
    sums[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y != 0 || column >= problem.cols) {
        return;
    }
    for (int i = 1; i < static_cast<int>(blockDim.y); ++i) {
        total += sums[i][threadIdx.x];
    }
    store_parameter<Number>(out, problem.weight_dtype == DType::f32, column, total);
}

} // namespace rownorm
