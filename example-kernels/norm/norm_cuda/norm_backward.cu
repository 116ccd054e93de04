// SPDX-License-Identifier: Apache-2.0
//
// The backward launcher.
#include "launch.h"
#include "norm_backward.cuh"
#include "norm_backward_ring.cuh"

#include <algorithm>
#include <initializer_list>
#include <type_traits>

namespace rownorm {
namespace {

struct Tensor2d {
    const void* data;
    Rows rows;
};

template <typename Number>
bool vectors_fit(const Problem& problem, const BackwardBuffers& b) {
    constexpr int kV = kVector<Number>;
    const auto aligned = [](const void* p) {
        return reinterpret_cast<std::uintptr_t>(p) % kVectorBytes == 0;
    };
    bool fit = problem.cols % kV == 0 && aligned(b.weight);
    for (const Tensor2d& t : {Tensor2d{b.x, b.x_rows},
                              Tensor2d{b.grad_y, b.grad_y_rows},
                              Tensor2d{b.grad_sum, b.grad_sum_rows},
                              Tensor2d{b.grad_x, b.grad_x_rows}}) {
        fit = fit && aligned(t.data) && t.rows.outer_stride % kV == 0 &&
              t.rows.inner_stride % kV == 0;
    }
    return fit;
}

template <typename Number, bool kCentred>
constexpr auto kRingKernel =
    backward_ring<Number, kCentred, kRingVectors, kRingStages, kRingLag, kRingThreads>;

std::size_t ring_bytes(int threads) {
    return static_cast<std::size_t>(threads) * kRingStages * 2 * kRingVectors * kVectorBytes;
}

// Clusters (or blocks) of the ring that are resident at once; 0: it does not fit.
template <typename Number, bool kCentred>
int resident_units(int threads, int ranks) {
    const int device = current_device();
    // By warps of a block, or by ranks: 0: not asked yet, otherwise the answer plus one.
    static std::array<std::array<std::atomic<int>, 33 + kMaxRanks>, kMaxDevices> known{};
    std::atomic<int>& answer = known[device][ranks > 1 ? 32 + ranks : threads / 32];
    if (answer != 0) {
        return answer - 1;
    }
    const auto kernel = kRingKernel<Number, kCentred>;
    int units = 0;
    // A cluster is asked for at its largest, so that the answer serves all.
    const int asked = ranks > 1 ? kRingThreads : threads;
    cudaError_t status = cudaFuncSetAttribute(kernel,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(ring_bytes(kRingThreads)));
    if (status != cudaSuccess) { // a device with less shared memory
        cudaGetLastError();
        status = cudaFuncSetAttribute(kernel,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(ring_bytes(asked)));
    }
    if (status == cudaSuccess && ranks == 1) {
        status =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&units, kernel, asked, ring_bytes(asked));
        units *= multiprocessors();
    } else if (status == cudaSuccess) {
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(static_cast<unsigned>(multiprocessors() / ranks * ranks));
        config.blockDim = dim3(static_cast<unsigned>(asked));
        config.dynamicSmemBytes = ring_bytes(asked);
        cudaLaunchAttribute cluster{};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = static_cast<unsigned>(ranks);
        cluster.val.clusterDim.y = 1;
        cluster.val.clusterDim.z = 1;
        config.attrs = &cluster;
        config.numAttrs = 1;
        status = cudaOccupancyMaxActiveClusters(&units, kernel, &config);
    }
    if (status != cudaSuccess) {
        cudaGetLastError();
        units = 0;
    }
    answer = units + 1;
    return units;
}

struct RingPlan {
    Ring ring;
    int threads; // 0: the ring does not serve
};

template <typename Number, bool kCentred>
RingPlan ring_plan(const Problem& problem) {
    const std::int64_t vectors = (problem.cols + kVector<Number> - 1) / kVector<Number>;
    const Spread s = ring_spread(vectors, has_clusters(kRingKernel<Number, kCentred>));
    constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
    if (s.threads == 0 || problem.rows > kMostRows) {
        return {};
    }
    const int rows = ring_rows(s.threads, problem.rows, multiprocessors(), kCentred);
    const int resident = resident_units<Number, kCentred>(s.threads * rows, s.ranks);
    const std::int64_t groups = (problem.rows + rows - 1) / rows;
    const std::int64_t units =
        std::min({groups,
                  static_cast<std::int64_t>(resident),
                  std::max<std::int64_t>(multiprocessors(), problem.rows / kRowsPerPartial)});
    if (units == 0) {
        return {};
    }
    return {{s.ranks, s.slice, rows, static_cast<int>(units)}, s.threads};
}

// One stride between the rows, and small enough for 32 bits.
template <typename Number>
bool rows_are_even(const Problem& problem, const BackwardBuffers& b) {
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    bool even = true;
    for (const Tensor2d& t : {Tensor2d{b.x, b.x_rows},
                              Tensor2d{b.grad_y, b.grad_y_rows},
                              Tensor2d{b.grad_sum, b.grad_sum_rows},
                              Tensor2d{b.grad_x, b.grad_x_rows}}) {
        even = even && (t.data == nullptr || t.rows.inner >= problem.rows) &&
               t.rows.inner_stride / kVector<Number> < kMost;
    }
    return even;
}

int rows_per_block(const Spread& s) {
    return s.threads < kBlockThreads ? kBlockThreads / s.threads : 1;
}

// Blocks of backward_rows, each of which makes one row of partial sums.
std::int64_t persistent_blocks(const Problem& problem, const Spread& s) {
    if (s.threads == 0) {
        return 0;
    }
    const std::int64_t sms = multiprocessors();
    const int rows = rows_per_block(s);
    const std::int64_t groups = (problem.rows + rows - 1) / rows;
    const std::int64_t resident = sms * (kBackwardThreadsPerSm / (s.threads * rows));
    return std::min({groups, resident, std::max(sms, problem.rows / kRowsPerPartial)});
}

// Row chunks of column_partials.
std::int64_t column_chunks(const Problem& problem) {
    return std::min<std::int64_t>(256, (problem.rows + 63) / 64);
}

template <typename Number>
Spread registers_of(const Problem& problem) {
    return register_spread((problem.cols + kVector<Number> - 1) / kVector<Number>);
}

// Enqueues everything but the sum of the partial rows; returns how many of those there are.
template <typename Number, bool kCentred>
std::int64_t
launch_rows(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    const bool fit = vectors_fit<Number>(problem, buffers);
    if (fit && rows_are_even<Number>(problem, buffers)) {
        const RingPlan plan = ring_plan<Number, kCentred>(problem);
        if (plan.threads != 0) {
            launch(kRingKernel<Number, kCentred>,
                   dim3(static_cast<unsigned>(plan.ring.units * plan.ring.ranks)),
                   dim3(static_cast<unsigned>(plan.threads),
                        static_cast<unsigned>(plan.ring.group_rows)),
                   ring_bytes(plan.threads * plan.ring.group_rows),
                   plan.ring.ranks,
                   stream,
                   problem,
                   buffers,
                   plan.ring);
            return plan.ring.units;
        }
    }
    const Spread s = registers_of<Number>(problem);
    if (fit && s.threads != 0) {
        const std::int64_t blocks = persistent_blocks(problem, s);
        const dim3 block(static_cast<unsigned>(s.threads),
                         static_cast<unsigned>(rows_per_block(s)));
        backward_rows<Number, kCentred, kBackwardVectors>
            <<<static_cast<unsigned>(blocks), block, 0, stream>>>(problem, buffers);
        return blocks;
    }
    backward_scalar<Number, kCentred>
        <<<static_cast<unsigned>(problem.rows), kScalarThreads, 0, stream>>>(problem, buffers);
    const std::int64_t chunks = column_chunks(problem);
    if (buffers.grad_weight != nullptr || buffers.grad_bias != nullptr) {
        const auto blocks =
            static_cast<unsigned>((problem.cols + kFinalizeColumns - 1) / kFinalizeColumns);
        column_partials<Number, kCentred><<<dim3(blocks, static_cast<unsigned>(chunks)),
                                            dim3(kFinalizeColumns, kColumnRows),
                                            0,
                                            stream>>>(problem, buffers);
    }
    return chunks;
}

template <typename Number, bool kCentred>
void launch_all(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    const std::int64_t partial_rows = launch_rows<Number, kCentred>(problem, buffers, stream);
    if (buffers.grad_weight != nullptr || buffers.grad_bias != nullptr) {
        const auto blocks =
            static_cast<unsigned>((problem.cols + kFinalizeColumns - 1) / kFinalizeColumns);
        const int rows = partial_rows <= kFewPartials ? kFewFinalizeRows : kFinalizeRows;
        finalize<Number><<<dim3(blocks, kCentred ? 2 : 1),
                           dim3(kFinalizeColumns, static_cast<unsigned>(rows)),
                           0,
                           stream>>>(problem, buffers, static_cast<int>(partial_rows));
    }
}

// Calls body with a value of the number type and whether the rows are centred.
template <typename Body>
auto with_kernel(const Problem& problem, const Body& body) {
    const auto by_kind = [&](auto number) {
        return problem.kind == Kind::layer ? body(number, std::true_type{})
                                           : body(number, std::false_type{});
    };
    switch (problem.dtype) {
    case DType::f32:
        return by_kind(Float32{});
    case DType::f16:
        return by_kind(Float16{});
    default:
        return by_kind(BFloat16{});
    }
}

} // namespace

std::int64_t partial_rows(const Problem& problem) {
    return with_kernel(problem, [&](auto number, auto centred) {
        using Number = decltype(number);
        const std::int64_t ring = ring_plan<Number, decltype(centred)::value>(problem).ring.units;
        return std::max({ring,
                         persistent_blocks(problem, registers_of<Number>(problem)),
                         column_chunks(problem)});
    });
}

const char* backward_cuda(const Problem& problem, const BackwardBuffers& buffers, void* stream) {
    with_kernel(problem, [&](auto number, auto centred) {
        launch_all<decltype(number), decltype(centred)::value>(
            problem, buffers, static_cast<cudaStream_t>(stream));
    });
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace rownorm
