// SPDX-License-Identifier: Apache-2.0
//
// The backward launcher.
#include "norm_backward.cuh"

#include <algorithm>
#include <cuda_runtime.h>
#include <initializer_list>

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

int multiprocessors() {
    int device = 0;
    int count = 1;
    if (cudaGetDevice(&device) == cudaSuccess) {
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    }
    return count;
}

Spread backward_spread(const Problem& problem) {
    const int element = problem.dtype == DType::f32 ? 4 : 2;
    const std::int64_t bytes = problem.cols * element;
    return spread((bytes + kVectorBytes - 1) / kVectorBytes, problem.rows, kBackwardLimits);
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

template <typename Number, bool kCentred>
void launch(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    const bool parameters = buffers.grad_weight != nullptr || buffers.grad_bias != nullptr;
    const auto column_blocks =
        static_cast<unsigned>((problem.cols + kFinalizeColumns - 1) / kFinalizeColumns);
    const dim3 column_threads(kFinalizeColumns, kFinalizeRows);
    const Spread s = backward_spread(problem);
    std::int64_t partial_rows = 0;
    if (s.threads != 0 && vectors_fit<Number>(problem, buffers)) {
        partial_rows = persistent_blocks(problem, s);
        const dim3 block(static_cast<unsigned>(s.threads),
                         static_cast<unsigned>(rows_per_block(s)));
        const auto grid = static_cast<unsigned>(partial_rows);
        const auto enqueue = [&](auto kernel) {
            kernel<<<grid, block, 0, stream>>>(problem, buffers);
        };
        switch (s.vectors_per_thread) {
        case 1:
            enqueue(backward_rows<Number, kCentred, 1>);
            break;
        case 2:
            enqueue(backward_rows<Number, kCentred, 2>);
            break;
        default:
            enqueue(backward_rows<Number, kCentred, 4>);
            break;
        }
    } else {
        partial_rows = column_chunks(problem);
        backward_scalar<Number, kCentred>
            <<<static_cast<unsigned>(problem.rows), kScalarThreads, 0, stream>>>(problem, buffers);
        if (parameters) {
            const dim3 grid(column_blocks, static_cast<unsigned>(partial_rows));
            column_partials<Number, kCentred>
                <<<grid, column_threads, 0, stream>>>(problem, buffers);
        }
    }
    if (parameters) {
        finalize<Number><<<dim3(column_blocks, kCentred ? 2 : 1), column_threads, 0, stream>>>(
            problem, buffers, partial_rows);
    }
}

template <typename Number>
void launch(const Problem& problem, const BackwardBuffers& buffers, cudaStream_t stream) {
    if (problem.kind == Kind::layer) {
        launch<Number, true>(problem, buffers, stream);
    } else {
        launch<Number, false>(problem, buffers, stream);
    }
}

} // namespace

std::int64_t partial_rows(const Problem& problem) {
    return std::max(persistent_blocks(problem, backward_spread(problem)), column_chunks(problem));
}

const char* backward_cuda(const Problem& problem, const BackwardBuffers& buffers, void* stream) {
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    switch (problem.dtype) {
    case DType::f32:
        launch<Float32>(problem, buffers, cuda_stream);
        break;
    case DType::f16:
        launch<Float16>(problem, buffers, cuda_stream);
        break;
    case DType::bf16:
        launch<BFloat16>(problem, buffers, cuda_stream);
        break;
    }
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace rownorm
