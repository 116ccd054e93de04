// SPDX-License-Identifier: Apache-2.0
//
// Backward. x and grad_y are read once, and every block keeps its columns' part of the parameter
// gradients in registers over all its rows,
//
//      rows       unit 0    unit 1    ...      unit: a block, or a cluster of blocks; it makes
//      group 0    *                            one fp32 row of partial sums
//      group 1              *                  finalize: partials -> grad_weight, grad_bias
//      ...                            *
//      group U    *                            (U = ring.units)
//
// The row groups of a unit pass through a ring in shared memory:
//
//      slot of the ring    | group i     | ... | group i + L | group i + L + 1 ... i + S - 1 |
//      in turn i           | write it    |     | sum it      | arriving ...                  |
//
// Every thread copies, reads and reuses its own places of the ring only, so the data need no
// barrier; the one barrier of a turn is for the sums, which have L - 1 turns to travel. The sums
// are added in an order that depends on the sizes and on the device only: the same bits in every
// run.
#pragma once

#include "row_sums.cuh"

namespace rownorm {

// How a row is spread and which rows a unit takes. The block is row threads by group_rows threads.
struct Ring {
    int ranks;      // blocks that share a row, a power of two: the cluster size
    int slice;      // vectors of a row that one of them holds
    int group_rows; // rows side by side in a block
    int units;      // unit u takes groups u, u + units, ...
};

// A thread's place in its rows of a tensor, one after the other.
template <typename Number>
struct RowWalk {
    Vector* place;
    std::int64_t step;

    __device__ RowWalk(const void* base, const Rows& layout, int first_row, int rows, int first)
        : place(vectors_at<Number>(const_cast<void*>(base), first_row * layout.inner_stride) +
                first),
          step(rows * (layout.inner_stride / kVector<Number>)) {}

    __device__ __forceinline__ Vector* next() {
        Vector* const here = place;
        place += step;
        return here;
    }
};

// (x - mean) * rstd; in 16 bits mean * rstd is small enough for one step (see scale_layer).
template <typename Number, bool kCentred>
__device__ __forceinline__ float normed(float x, float mean, float rstd) {
    if (!kCentred) {
        return x * rstd;
    }
    return kPerWord<Number> == 2 ? fmaf(x, rstd, -mean * rstd) : (x - mean) * rstd;
}

// Shared memory of one block: S * 2 * N * threads vectors. Rows and strides are counted in 32 bits;
// every tensor has one stride between its rows.
template <typename Number, bool kCentred, int N, int S, int L, int T>
__global__ void __launch_bounds__(T, 1)
    backward_ring(const Problem problem, const BackwardBuffers buffers, const Ring ring) {
    constexpr int kV = kVector<Number>;
    constexpr int kSums = kCentred ? 2 : 1;
    using Slots = Places<S, 2, N>;
    extern __shared__ Vector memory[];
    static_assert(S >= L + 2, "a slot arrives while the others are worked on");
    __shared__ RowTotals<kSums, 2 * L> totals;

    const RowSums<kSums, 2 * L> sums(totals, ring.ranks);
    const Slots slots(memory);
    const Share share = share_of(ring.ranks, ring.slice, static_cast<int>(problem.cols / kV), N);
    const int stride = static_cast<int>(blockDim.x);
    const float part = 1.0F / static_cast<float>(problem.cols);

    const int rows = static_cast<int>(problem.rows);
    const int unit = static_cast<int>(blockIdx.x) / ring.ranks;
    const int groups = (rows + ring.group_rows - 1) / ring.group_rows;
    const int turns = (groups - unit + ring.units - 1) / ring.units;
    const int step = ring.units * ring.group_rows;
    const int first_row = unit * ring.group_rows + static_cast<int>(threadIdx.y);
    // In so many turns this thread has a row.
    const int own_turns = first_row + (turns - 1) * step < rows ? turns : turns - 1;
    // Calls body(n) for this thread's vectors if it has a row in turn `turn`.
    const auto for_each = [&](int turn, const auto& body) {
        const int count = turn < own_turns ? share.count : 0;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (n < count) {
                body(n);
            }
        }
    };
    const auto walk = [&](auto* base, const Rows& layout) {
        return RowWalk<Number>{base, layout, first_row, step, share.first};
    };
    RowWalk<Number> x_walk = walk(buffers.x, buffers.x_rows);
    RowWalk<Number> dy_walk = walk(buffers.grad_y, buffers.grad_y_rows);
    const auto fetch = [&](int turn, unsigned slot) {
        const Vector* x = x_walk.next();
        const Vector* dy = dy_walk.next();
        for_each(turn, [&](int n) {
            copy_async(Slots::at(slot, 0, n), x + n * stride);
            copy_async(Slots::at(slot, 1, n), dy + n * stride);
        });
        commit_copies();
    };
#pragma unroll 1
    for (int turn = 0; turn < S; ++turn) {
        fetch(turn, slots.first + turn * Slots::kSlot);
    }

    float weight[N][kV];
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const bool gemma = problem.mode == Mode::gemma;
        load_parameter<Number>(n < share.count ? buffers.weight : nullptr,
                               problem.weight_dtype == DType::f32,
                               static_cast<std::int64_t>(share.first + n * stride) * kV,
                               gemma ? 0.0F : 1.0F,
                               weight[n]);
#pragma unroll
        for (int i = 0; i < kV; ++i) {
            weight[n][i] += gemma ? 1.0F : 0.0F;
        }
    }
    float grad_weight[N][kV] = {};
    float grad_bias[kCentred ? N : 1][kV] = {};

    RowWalk<Number> dx_walk = walk(buffers.grad_x, buffers.grad_x_rows);
    // What is known of the groups turn ... turn + L; the newest is asked for a turn before.
    float rstd[L + 2] = {};
    float mean[L + 2] = {};
    const auto ask = [&](int turn, int at) {
        if (turn < own_turns) {
            const int row = first_row + turn * step;
            rstd[at] = buffers.rstd[row];
            if constexpr (kCentred) {
                mean[at] = buffers.mean[row];
            }
        }
    };
    ask(0, L);
    float under_way[L][kSums] = {}; // sums of the groups turn + 1 ..., as post left them
    float scale = 0.0F;             // grad_x = rstd * grad_y * weight + scale * x + shift
    float shift = 0.0F;
    sums.ready();

    unsigned newest = slots.first; // slot of group turn + L
    unsigned oldest = slots.first; // slot of group turn
#pragma unroll 1
    for (int turn = -L; turn < turns; ++turn) {
        ask(turn + L + 1, L + 1);
        wait_copies<S - 1 - L>();
        float sum[kSums] = {};
        for_each(turn + L, [&](int n) {
            float x[kV];
            float dy[kV];
            unpack<Number>(load_place(Slots::at(newest, 0, n)), x);
            unpack<Number>(load_place(Slots::at(newest, 1, n)), dy);
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                const float xhat = normed<Number, kCentred>(x[i], mean[L], rstd[L]);
                const float g = dy[i] * weight[n][i];
                sum[0] += g * xhat;
                grad_weight[n][i] += dy[i] * xhat;
                if constexpr (kCentred) {
                    sum[kSums - 1] += g;
                    grad_bias[n][i] += dy[i];
                }
            }
        });
        newest = slots.next(newest);
        if (turn + L < turns) {
            sums.post(sum, turn + L);
        }
#pragma unroll
        for (int k = 0; k < kSums; ++k) {
            under_way[L - 1][k] = sum[k];
        }
        if (turn >= 0) {
            Vector* dx = dx_walk.next();
            for_each(turn, [&](int n) {
                float x[kV];
                float dy[kV];
                unpack<Number>(load_place(Slots::at(oldest, 0, n)), x);
                unpack<Number>(load_place(Slots::at(oldest, 1, n)), dy);
#pragma unroll
                for (int i = 0; i < kV; ++i) {
                    const float rest = kCentred ? x[i] * scale + shift : x[i] * scale;
                    x[i] = dy[i] * weight[n][i] * rstd[0] + rest;
                }
                if (!kCentred && buffers.grad_sum != nullptr) {
                    const std::int64_t row = first_row + static_cast<std::int64_t>(turn) * step;
                    const Vector* extra =
                        vectors_at<Number>(buffers.grad_sum,
                                           row * buffers.grad_sum_rows.inner_stride) +
                        share.first;
                    unpack<Number>(load_once(extra + n * stride), dy);
#pragma unroll
                    for (int i = 0; i < kV; ++i) {
                        x[i] += dy[i];
                    }
                }
                dx[n * stride] = pack<Number>(x);
            });
            fetch(turn + S, oldest);
            oldest = slots.next(oldest);
        }
        if (turn + 1 >= 0 && turn + 1 < turns) {
            sums.wait(turn + 1);
            auto& sum = under_way[0];
            sums.collect(sum, turn + 1);
            const float projection = sum[0] * part * rstd[1];
            scale = -rstd[1] * projection;
            if constexpr (kCentred) {
                shift = rstd[1] * (mean[1] * projection - sum[kSums - 1] * part);
            }
        }
#pragma unroll
        for (int i = 0; i <= L; ++i) {
            rstd[i] = rstd[i + 1];
            mean[i] = mean[i + 1];
        }
#pragma unroll
        for (int i = 0; i + 1 < L; ++i) {
#pragma unroll
            for (int k = 0; k < kSums; ++k) {
                under_way[i][k] = under_way[i + 1][k];
            }
        }
    }
    wait_copies<0>();

    // Adds up the block's rows and stores the columns' partial sums; the ring is free now.
    float* columns = reinterpret_cast<float*>(memory);
    const int threads = static_cast<int>(blockDim.x * blockDim.y);
    const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    const auto store_columns = [&](const auto& value, float* partial) {
        __syncthreads();
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                columns[(n * kV + i) * threads + thread] = value[n][i];
            }
        }
        __syncthreads();
        if (threadIdx.y != 0) {
            return;
        }
#pragma unroll
        for (int n = 0; n < N; ++n) {
            if (n >= share.count) {
                return;
            }
            const int v = share.first + n * stride;
#pragma unroll
            for (int i = 0; i < kV; ++i) {
                float total = value[n][i];
                for (int y = 1; y < static_cast<int>(blockDim.y); ++y) {
                    total += columns[(n * kV + i) * threads + thread + y * stride];
                }
                partial[static_cast<std::int64_t>(v) * kV + i] = total;
            }
        }
    };
    float* partial = buffers.partials + static_cast<std::int64_t>(unit) * problem.cols;
    if (buffers.grad_weight != nullptr) {
        store_columns(grad_weight, partial);
    }
    if constexpr (kCentred) {
        if (buffers.grad_bias != nullptr) {
            store_columns(grad_bias,
                          partial + static_cast<std::int64_t>(ring.units) * problem.cols);
        }
    }
}

} // namespace rownorm
