// SPDX-License-Identifier: Apache-2.0
//
// The forward launcher.
#include "launch.h"
#include "norm_forward.cuh"
#include "norm_forward_scalar.cuh"

namespace rownorm {
namespace {

constexpr Work work_of(Kind kind) {
    switch (kind) {
    case Kind::layer:
        return Work::layer;
    case Kind::add_rms:
        return Work::add;
    default:
        return Work::rms;
    }
}

template <typename Number, Kind K>
void launch(const Problem& problem, const ForwardBuffers& buffers, cudaStream_t stream) {
    Spread s{0, 0, 0, 0, 0};
    if (vectors_fit<Number>(problem, buffers)) {
        s = forward_spread(work_of(K),
                           problem.cols / kVector<Number>,
                           problem.rows,
                           rows_are_even(problem, buffers),
                           has_clusters(forward_rows<Number, K, 8, 1, 1024>));
    }
    if (s.threads == 0) {
        forward_scalar<Number, K>
            <<<static_cast<unsigned>(problem.rows), kScalarThreads, 0, stream>>>(problem, buffers);
        return;
    }
    const ForwardLaunch how = forward_launch(problem, s, s.threads);
    with_holding(s, [&](auto vectors, auto rows, auto threads) {
        launch(forward_rows<Number, K, vectors(), rows(), threads()>,
               how.grid,
               how.block,
               0,
               s.ranks,
               stream,
               problem,
               buffers,
               s.ranks,
               s.slice,
               how.ahead);
    });
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
