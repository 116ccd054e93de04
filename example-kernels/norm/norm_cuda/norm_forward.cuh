// SPDX-License-Identifier: Apache-2.0
//
// Forward. The usual kernel reads every row once and keeps it in registers, packed:
//
//      one block: blockDim.y rows, blockDim.x threads a row
//      row 0   | t0 t1 t2 ... | t0 t1 t2 ... |  ...  N vectors a thread, blockDim.x apart
//      row 1   | t0 t1 t2 ... | t0 t1 t2 ... |  ...
//
// A row too long for one block is cut into `ranks` slices of `slice` vectors over a cluster. With
// many rows a block also brings a row into the L2 cache for a block that starts `ahead` rows later.
//
// The other kernel serves rows that do not fit, odd sizes and odd addresses: one row a block,
// element by element, re-reading the row from the cache.
#pragma once

#include "row_sums.cuh"

#include <initializer_list>

namespace rownorm {

template <typename Number, int V>
__device__ __forceinline__ void
scale_rms(float (&x)[V], float rstd, const float (&weight)[V], Mode mode) {
    const float offset = mode == Mode::gemma ? 1.0F : 0.0F;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        x[i] *= rstd;
    }
    if (mode == Mode::llama) {
        round_all<Number>(x);
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        x[i] *= weight[i] + offset;
    }
}

struct Tensor2d {
    const void* data;
    Rows rows;
};

template <typename Number>
inline bool vectors_fit(const Problem& problem, const ForwardBuffers& b) {
    constexpr int kV = kVector<Number>;
    const auto aligned = [](const void* p) {
        return reinterpret_cast<std::uintptr_t>(p) % kVectorBytes == 0;
    };
    bool fit = problem.cols % kV == 0 && aligned(b.weight) && aligned(b.bias);
    for (const Tensor2d& t : {Tensor2d{b.x, b.x_rows},
                              Tensor2d{b.residual, b.residual_rows},
                              Tensor2d{b.y, b.y_rows},
                              Tensor2d{b.sum, b.sum_rows}}) {
        fit = fit && aligned(t.data) && t.rows.outer_stride % kV == 0 &&
              t.rows.inner_stride % kV == 0;
    }
    return fit;
}

// A value near the row's mean, from the row's first vector: sums of squares around it do not lose
// the variance of a row that lies far from zero.
template <typename Number>
__device__ __forceinline__ float centre_of(const Vector& first) {
    float v[kVector<Number>];
    unpack<Number>(first, v);
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < kVector<Number>; ++i) {
        sum += v[i];
    }
    return sum * (1.0F / kVector<Number>);
}

// The norm of this thread's part of a row; calls emit(row, n, v, vector) for the results, which it
// holds as its n-th vector and which are vector v of the row.
template <typename Number, Kind K, int N, typename Emit>
__device__ __forceinline__ void normalise(const Problem& problem,
                                          const ForwardBuffers& buffers,
                                          int ranks,
                                          int slice,
                                          int ahead,
                                          const Emit& emit) {
    constexpr int kV = kVector<Number>;
    constexpr int kSums = K == Kind::layer ? 2 : 1;
    __shared__ RowTotals<kSums> totals;

    const RowSums<kSums> sums(totals, ranks);
    const std::int64_t row =
        static_cast<std::int64_t>(blockIdx.x / static_cast<unsigned>(ranks)) * blockDim.y +
        threadIdx.y;
    const bool live = row < problem.rows; // the others still meet at the barriers
    Share share = share_of(ranks, slice, static_cast<int>(problem.cols / kV), N);
    if (!live) {
        share.count = 0;
    }
    const bool streamed = ahead != 0;
    const int stride = static_cast<int>(blockDim.x);
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const float part = 1.0F / static_cast<float>(problem.cols);
    // Calls body(n) for every vector of the row that this thread holds.
    const auto for_each = [&](const auto& body) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (n < share.count) {
                body(n);
            }
        }
    };

    Vector x[N];
    const std::int64_t x_row = live ? buffers.x_rows.offset(row) : 0;
    const Vector* source = vectors_at<Number>(buffers.x, x_row) + share.first;
    for_each([&](int n) { x[n] = load_once(source + n * stride); });
    // A block that starts later finds its row in the L2 cache.
    if (ahead != 0 && share.first == 0 && row + ahead < problem.rows) {
        const auto bytes = static_cast<int>(problem.cols / kV) * kVectorBytes;
        prefetch(vectors_at<Number>(buffers.x, buffers.x_rows.offset(row + ahead)), bytes);
        if constexpr (K == Kind::add_rms) {
            prefetch(
                vectors_at<Number>(buffers.residual, buffers.residual_rows.offset(row + ahead)),
                bytes);
        }
    }
    Vector first{};
    if (K == Kind::layer && live) {
        first = *vectors_at<Number>(buffers.x, x_row);
    }
    if constexpr (K == Kind::add_rms) {
        constexpr int kAtOnce = N < 4 ? N : 4; // more residual vectors would not fit in registers
        const std::int64_t residual_row = live ? buffers.residual_rows.offset(row) : 0;
        const std::int64_t sum_row = live ? buffers.sum_rows.offset(row) : 0;
        const Vector* residual = vectors_at<Number>(buffers.residual, residual_row) + share.first;
        Vector* sum = vectors_at<Number>(buffers.sum, sum_row) + share.first;
#pragma unroll
        for (int first = 0; first < N; first += kAtOnce) {
            Vector r[kAtOnce];
            const auto in_turn = [&](const auto& body) {
                for_each([&](int n) {
                    if (n >= first && n < first + kAtOnce) {
                        body(n);
                    }
                });
            };
            in_turn([&](int n) { r[n - first] = load_once(residual + n * stride); });
            in_turn([&](int n) {
                float a[kV];
                float b[kV];
                unpack<Number>(x[n], a);
                unpack<Number>(r[n - first], b);
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    a[i] += b[i];
                }
                x[n] = pack<Number>(a);
                store(sum + n * stride, x[n], streamed);
            });
        }
    }
    // Asked for before the sums, so that they travel meanwhile.
    constexpr bool kEarly = N * (K == Kind::layer ? 2 : 1) <= kEarlyParameters;
    const Parameters<Number, kEarly ? N : 0> weight(
        buffers.weight, weight_f32, problem.mode == Mode::gemma ? 0.0F : 1.0F, share);
    const Parameters<Number, kEarly ? N : 0> bias(
        K == Kind::layer ? buffers.bias : nullptr, weight_f32, 0.0F, share);

    // The layer norm sums x - centre and its square.
    float centre = 0.0F;
    if constexpr (K == Kind::layer) {
        centre = centre_of<Number>(first);
    }
    float sum[kSums] = {};
    for_each([&](int n) {
        float value[kV];
        unpack<Number>(x[n], value);
#pragma unroll
        for (int i = 0; i < kV; ++i) {
            if constexpr (K == Kind::layer) {
                const float shifted = value[i] - centre;
                sum[0] += shifted;
                sum[1] += shifted * shifted;
            } else {
                sum[0] += value[i] * value[i];
            }
        }
    });
    sums.ready();
    sums.post(sum, 0);
    sums.wait(0, 0);
    sums.collect(sum, 0);
    float mean = 0.0F;
    float square = sum[kSums - 1] * part;
    if constexpr (K == Kind::layer) {
        const float shift = sum[0] * part;
        mean = centre + shift;
        square -= shift * shift;
        square = square < 0.0F ? 0.0F : square; // NaN stays
    }
    const float rstd = rsqrtf(square + problem.eps);

    for_each([&](int n) {
        float value[kV];
        float w[kV];
        unpack<Number>(x[n], value);
        weight.get(n, share.first + n * stride, w);
        if constexpr (K == Kind::layer) {
            float b[kV];
            bias.get(n, share.first + n * stride, b);
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                value[i] = (value[i] - mean) * rstd * w[i] + b[i];
            }
        } else {
            scale_rms<Number>(value, rstd, w, problem.mode);
        }
        emit(row, n, share.first + n * stride, pack<Number>(value));
    });
    if (live && share.first == 0) {
        if (K == Kind::layer && buffers.mean != nullptr) {
            buffers.mean[row] = mean;
        }
        if (buffers.rstd != nullptr) {
            buffers.rstd[row] = rstd;
        }
    }
}

template <typename Number, Kind K, int N, int T>
__global__ void __launch_bounds__(T, kForwardThreadsPerSm / T) forward_rows(
    const Problem problem, const ForwardBuffers buffers, int ranks, int slice, int ahead) {
    const std::int64_t row =
        static_cast<std::int64_t>(blockIdx.x / static_cast<unsigned>(ranks)) * blockDim.y +
        threadIdx.y;
    Vector* y = vectors_at<Number>(buffers.y, row < problem.rows ? buffers.y_rows.offset(row) : 0);
    normalise<Number, K, N>(
        problem, buffers, ranks, slice, ahead, [&](std::int64_t, int, int v, const Vector& result) {
            store(y + v, result, ahead != 0);
        });
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
