// SPDX-License-Identifier: Apache-2.0
//
// Forward for rows that do not fit in registers, odd sizes and odd addresses: one row a block,
// element by element, re-reading the row from the cache.
#pragma once

#include "norm_forward.cuh"

namespace rownorm {

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
            float value[1] = {Number::widen(x[i])};
            scale_rms<Number>(value, rstd, weight, problem.mode);
            y[i] = Number::narrow(value[0]);
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
