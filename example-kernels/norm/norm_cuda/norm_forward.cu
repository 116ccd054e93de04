// SPDX-License-Identifier: Apache-2.0
//
// The forward launcher.
#include "launch.h"
#include "norm_forward.cuh"

namespace rownorm {
namespace {

template <typename Number, Kind K>
void launch(const Problem& problem, const ForwardBuffers& buffers, cudaStream_t stream) {
    Spread s{0, 0, 0, 0};
    if (vectors_fit<Number>(problem, buffers)) {
        s = forward_spread(problem.cols / kVector<Number>,
                           problem.rows,
                           K == Kind::add_rms ? 2 : 1,
                           has_clusters(forward_rows<Number, K, 8, 1024>));
    }
    if (s.threads == 0) {
        forward_scalar<Number, K>
            <<<static_cast<unsigned>(problem.rows), kScalarThreads, 0, stream>>>(problem, buffers);
        return;
    }
    const int rows = s.threads < kForwardBlockThreads ? kForwardBlockThreads / s.threads : 1;
    const dim3 block(static_cast<unsigned>(s.threads), static_cast<unsigned>(rows));
    const auto grid = static_cast<unsigned>((problem.rows + rows - 1) / rows * s.ranks);
    const auto ahead =
        s.ranks == 1
            ? static_cast<int>(rows_ahead(
                  problem, problem.cols / kVector<Number> * kVectorBytes, s.threads * rows, rows))
            : 0;
    const auto enqueue = [&](auto kernel) {
        launch(kernel, grid, block, 0, s.ranks, stream, problem, buffers, s.ranks, s.slice, ahead);
    };
    switch (s.vectors_per_thread) {
    case 1:
        return enqueue(forward_rows<Number, K, 1, 512>);
    case 4:
        return enqueue(forward_rows<Number, K, 4, 512>);
    default:
        return enqueue(forward_rows<Number, K, 8, 1024>);
    }
}

template <typename Number>
void launch(const Problem& problem, const ForwardBuffers& buffers, cudaStream_t stream) {
    switch (problem.kind) {
    case Kind::rms:
        return launch<Number, Kind::rms>(problem, buffers, stream);
    case Kind::add_rms:
        return launch<Number, Kind::add_rms>(problem, buffers, stream);
    case Kind::layer:
        return launch<Number, Kind::layer>(problem, buffers, stream);
    }
}

} // namespace

const char* forward_cuda(const Problem& problem, const ForwardBuffers& buffers, void* stream) {
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
