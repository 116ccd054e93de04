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
// Rows that do not fit, odd sizes and odd addresses: norm_forward_scalar.cuh.
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

// The same in mode llama with weights of the rows' type.
template <typename Number>
__device__ __forceinline__ Vector scale_llama(const Vector& x, float rstd, const Vector& weight) {
    float value[kVector<Number>];
    unpack<Number>(x, value);
#pragma unroll
    for (int i = 0; i < kVector<Number>; ++i) {
        value[i] *= rstd;
    }
    Vector result = pack<Number>(value);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        result.word[w] = Number::product(result.word[w], weight.word[w]);
    }
    return result;
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

// Whether every tensor has one stride between its rows.
inline bool rows_are_even(const Problem& problem, const ForwardBuffers& b) {
    bool even = true;
    for (const Tensor2d& t : {Tensor2d{b.x, b.x_rows},
                              Tensor2d{b.residual, b.residual_rows},
                              Tensor2d{b.y, b.y_rows},
                              Tensor2d{b.sum, b.sum_rows}}) {
        even = even && (t.data == nullptr || t.rows.inner >= problem.rows);
    }
    return even;
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

// How many values a row's statistics need.
template <Kind K>
constexpr int kStatistics = K == Kind::layer ? 2 : 1;
template <Kind K, int R>
using ForwardTotals = RowTotals<kStatistics<K> * R, 2>;
template <Kind K, int R>
using ForwardSums = RowSums<kStatistics<K> * R, 2>;

// The R rows of a thread. With more than one, every tensor has one stride between its rows.
template <int R>
struct ThreadRows {
    std::int64_t first;
    int step;
    int left; // rows there are from the first one on, or many

    __device__ ThreadRows(const Problem& problem, int ranks)
        : first(static_cast<std::int64_t>(blockIdx.x / static_cast<unsigned>(ranks)) * R *
                    blockDim.y +
                threadIdx.y),
          step(static_cast<int>(blockDim.y)) {
        const std::int64_t rest = problem.rows - first;
        left = rest < (1 << 30) ? static_cast<int>(rest) : 1 << 30;
    }

    __device__ __forceinline__ bool live(int r) const { return r * step < left; }

    __device__ __forceinline__ std::int64_t row(int r) const { return first + r * step; }
};

// Where they start in a tensor, counted in vectors from `base`: once computed, the division is
// over.
template <typename Number, int R, typename V>
struct RowStarts {
    V* base;
    std::int64_t step;

    template <typename Data>
    __device__ RowStarts(Data* data, const Rows& layout, const ThreadRows<R>& rows, int column)
        : base(vectors_at<Number>(
                   data, R == 1 ? layout.offset(rows.first) : rows.first * layout.inner_stride) +
               column),
          step(R == 1 ? 0 : rows.step * (layout.inner_stride / kVector<Number>)) {}

    __device__ __forceinline__ V* operator()(int r) const { return base + r * step; }
};

template <typename Number, int R>
using Source = RowStarts<Number, R, const Vector>;
template <typename Number, int R>
using Target = RowStarts<Number, R, Vector>;

// Adds the residual to R rows of x, and stores the sums.
template <typename Number, int N, int R, typename ForEach>
__device__ __forceinline__ void add_residual(const ForwardBuffers& buffers,
                                             const Share& share,
                                             const ThreadRows<R>& rows,
                                             bool streamed,
                                             const ForEach& for_each,
                                             Vector (&x)[R][N]) {
    constexpr int kV = kVector<Number>;
    constexpr int kAtOnce = N < 4 ? N : 4; // more residual vectors would not fit in registers
    constexpr int kRowsAtOnce = R < 4 / kAtOnce ? R : 4 / kAtOnce;
    const int stride = static_cast<int>(blockDim.x);
    const Source<Number, R> residual(buffers.residual, buffers.residual_rows, rows, share.first);
    const Target<Number, R> sum(buffers.sum, buffers.sum_rows, rows, share.first);
#pragma unroll
    for (int first = 0; first < N * R; first += kAtOnce * kRowsAtOnce) {
        Vector others[kRowsAtOnce][kAtOnce];
        const int first_n = first % N;
        const int first_r = first / N;
        const auto in_turn = [&](const auto& body) {
            for_each([&](int r, int n) {
                if (n >= first_n && n < first_n + kAtOnce && r >= first_r &&
                    r < first_r + kRowsAtOnce) {
                    body(r, n, others[r - first_r][n - first_n]);
                }
            });
        };
        in_turn([&](int r, int n, Vector& other) { other = load_once(residual(r) + n * stride); });
        in_turn([&](int r, int n, const Vector& other) {
            float a[kV];
            float b[kV];
            unpack<Number>(x[r][n], a);
            unpack<Number>(other, b);
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                a[i] += b[i];
            }
            x[r][n] = pack<Number>(a);
            store(sum(r) + n * stride, x[r][n], streamed);
        });
    }
}

// (x - mean) * rstd * weight + bias. In 16 bits a row's mean is too near to its values, as these
// are coarse, for mean * rstd to cost precision.
template <typename Number, int V>
__device__ __forceinline__ void scale_layer(
    float (&x)[V], float mean, float rstd, const float (&weight)[V], const float (&bias)[V]) {
    const float offset = -mean * rstd;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        const float normed =
            kPerWord<Number> == 2 ? fmaf(x[i], rstd, offset) : (x[i] - mean) * rstd;
        x[i] = fmaf(normed, weight[i], bias[i]);
    }
}

// The norm of this thread's part of R rows; calls emit(r, n, v, vector) for the results, which it
// holds as the n-th vector of its r-th row and which are vector v of that row.
template <typename Number, Kind K, int N, int R, typename Emit>
__device__ __forceinline__ void normalise(const Problem& problem,
                                          const ForwardBuffers& buffers,
                                          int ranks,
                                          int slice,
                                          int ahead,
                                          const ForwardSums<K, R>& sums,
                                          const Emit& emit) {
    constexpr int kV = kVector<Number>;
    constexpr int kSums = kStatistics<K>;
    const ThreadRows<R> rows(problem, ranks);
    const int vectors = static_cast<int>(problem.cols / kV);
    const Share share = share_of(ranks, slice, vectors, N);
    const bool streamed = ahead != 0;
    const int stride = static_cast<int>(blockDim.x);
    const bool weight_f32 = problem.weight_dtype == DType::f32;
    const float part = 1.0F / static_cast<float>(problem.cols);
    // Calls body(r, n) for every vector that this thread holds. Threads without a row still meet
    // the others at the barriers.
    const auto for_each = [&](const auto& body) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
            for (int r = 0; r < R; ++r) {
                if (n < share.count && rows.live(r)) {
                    body(r, n);
                }
            }
        }
    };

    const Source<Number, R> source(buffers.x, buffers.x_rows, rows, share.first);
    Vector x[R][N];
    for_each([&](int r, int n) { x[r][n] = load_once(source(r) + n * stride); });
    // A block that starts later finds its row in the L2 cache.
    if (ahead != 0 && threadIdx.x == 0 && share.count > 0 && rows.first + ahead < problem.rows) {
        const int rest = vectors - share.first;
        const int bytes = (rest < slice ? rest : slice) * kVectorBytes;
        const auto bring = [&](const void* base, const Rows& layout) {
            prefetch(vectors_at<Number>(base, layout.offset(rows.first + ahead)) + share.first,
                     bytes);
        };
        bring(buffers.x, buffers.x_rows);
        if constexpr (K == Kind::add_rms) {
            bring(buffers.residual, buffers.residual_rows);
        }
    }
    // The layer norm sums x - centre and its square.
    float centre[R] = {};
    if constexpr (K == Kind::layer) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if (stride <= 32 && ranks == 1) {
                centre[r] = __shfl_sync(0xffffffffU, centre_of<Number>(x[r][0]), 0, stride);
            } else if (rows.live(r)) {
                centre[r] = centre_of<Number>(load_once(source(r) - share.first));
            }
        }
    }
    if constexpr (K == Kind::add_rms) {
        add_residual<Number>(buffers, share, rows, streamed, for_each, x);
    }
    // Asked for before the sums, so that they travel meanwhile.
    constexpr bool kEarly = N * (K == Kind::layer ? 2 : 1) <= kEarlyParameters;
    const Parameters<Number, kEarly ? N : 0> weight(
        buffers.weight, weight_f32, problem.mode == Mode::gemma ? 0.0F : 1.0F, share);
    const Parameters<Number, kEarly ? N : 0> bias(
        K == Kind::layer ? buffers.bias : nullptr, weight_f32, 0.0F, share);

    float sum[kSums * R] = {};
    for_each([&](int r, int n) {
        float value[kV];
        unpack<Number>(x[r][n], value);
#pragma unroll
        for (int i = 0; i < kV; ++i) {
            if constexpr (K == Kind::layer) {
                const float shifted = value[i] - centre[r];
                sum[kSums * r] += shifted;
                sum[kSums * r + kSums - 1] += shifted * shifted;
            } else {
                sum[r] += value[i] * value[i];
            }
        }
    });
    sums.ready();
    sums.post(sum, 0);
    sums.wait(0);
    sums.collect(sum, 0);
    float mean[R] = {};
    float rstd[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
        float square = sum[kSums * r + kSums - 1] * part;
        if constexpr (K == Kind::layer) {
            const float shift = sum[kSums * r] * part;
            mean[r] = centre[r] + shift;
            square -= shift * shift;
            square = square < 0.0F ? 0.0F : square; // NaN stays
        }
        rstd[r] = rsqrtf(square + problem.eps);
    }

#pragma unroll
    for (int n = 0; n < N; ++n) {
        if (n >= share.count) {
            continue;
        }
        const int v = share.first + n * stride;
        if (K != Kind::layer && problem.mode == Mode::llama && !weight.mixed()) {
            const Vector w = weight.packed(n, v);
#pragma unroll
            for (int r = 0; r < R; ++r) {
                if (rows.live(r)) {
                    emit(r, n, v, scale_llama<Number>(x[r][n], rstd[r], w));
                }
            }
            continue;
        }
        float w[kV];
        float b[kV];
        weight.get(n, v, w);
        if constexpr (K == Kind::layer) {
            bias.get(n, v, b);
        }
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if (!rows.live(r)) {
                continue;
            }
            float value[kV];
            unpack<Number>(x[r][n], value);
            if constexpr (K == Kind::layer) {
                scale_layer<Number>(value, mean[r], rstd[r], w, b);
            } else {
                scale_rms<Number>(value, rstd[r], w, problem.mode);
            }
            emit(r, n, v, pack<Number>(value));
        }
    }
    if (share.first == 0) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if (K == Kind::layer && buffers.mean != nullptr && rows.live(r)) {
                buffers.mean[rows.row(r)] = mean[r];
            }
            if (buffers.rstd != nullptr && rows.live(r)) {
                buffers.rstd[rows.row(r)] = rstd[r];
            }
        }
    }
}

template <typename Number, Kind K, int N, int R, int T>
__global__ void __launch_bounds__(T, kForwardThreadsPerSm / T) forward_rows(
    const Problem problem, const ForwardBuffers buffers, int ranks, int slice, int ahead) {
    __shared__ ForwardTotals<K, R> totals;
    const ThreadRows<R> rows(problem, ranks);
    const ForwardSums<K, R> sums(totals, ranks);
    const Target<Number, R> target(buffers.y, buffers.y_rows, rows, 0);
    normalise<Number, K, N, R>(
        problem, buffers, ranks, slice, ahead, sums, [&](int r, int, int v, const Vector& result) {
            store(target(r) + v, result, ahead != 0);
        });
}

} // namespace rownorm
