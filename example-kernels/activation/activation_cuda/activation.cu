// SPDX-License-Identifier: Apache-2.0
//
// The launcher: picks the instantiation and the grid.
#include "../activation_common/activation.h"
#include "activation_kernel.cuh"
#include "tuning.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <initializer_list>

namespace activation {
namespace {

struct LaunchGrid {
    dim3 grid;
    dim3 block;
};

// `packs` units per row, `unroll` of them per thread.
LaunchGrid launch_grid(std::int64_t rows, std::int64_t packs, int unroll) {
    const auto ceil_div = [](std::int64_t a, std::int64_t b) {
        return (a + b - 1) / b;
    };
    std::int64_t tx = 1;
    if (packs <= static_cast<std::int64_t>(unroll) * 32) {
        while (tx * unroll < packs) {
            tx *= 2;
        }
    } else {
        // As few blocks as cover the row, and of these warps as even a share as possible.
        const std::int64_t tiles = ceil_div(packs, unroll * kTuning.threads_per_block);
        tx = ceil_div(ceil_div(packs, unroll * tiles), 32) * 32;
    }
    const std::int64_t ty = std::max<std::int64_t>(1, kTuning.threads_per_block / tx);
    const std::int64_t gx = ceil_div(packs, tx * unroll);
    const std::int64_t gy = std::min<std::int64_t>(ceil_div(rows, ty), kMaxGridY);
    return {dim3(static_cast<unsigned>(gx), static_cast<unsigned>(gy)),
            dim3(static_cast<unsigned>(tx), static_cast<unsigned>(ty))};
}

// How many leading columns whole vectors can serve. A gated row must consist of whole vectors, or
// its second half and the next row would be misaligned; the unary form is one long row, whose
// tail the scalar instantiation takes.
template <Form M, int V>
std::int64_t vector_columns(std::int64_t cols, std::initializer_list<const void*> pointers) {
    for (const void* pointer : pointers) {
        if (reinterpret_cast<std::uintptr_t>(pointer) % kTuning.vector_bytes != 0) {
            return 0;
        }
    }
    const std::int64_t whole = cols / V * V;
    return M == Form::unary || whole == cols ? whole : 0;
}

template <typename Storage>
bool is_streamed(Shape shape) {
    return shape.rows * shape.cols >= kStreamedBytes / static_cast<std::int64_t>(sizeof(Storage));
}

template <typename Number>
struct ForwardVisitor {
    using Storage = typename Number::Storage;
    ForwardBuffers buffers;
    Shape shape;
    Scalars scalars;
    cudaStream_t stream;

    template <Function F, Form M>
    void run() const {
        constexpr int kVector = VectorUnit<Number>::kElements;
        constexpr int kUnroll =
            M == Form::unary ? kTuning.vectors_per_thread : kTuning.gated_vectors_per_thread;
        auto* out = static_cast<Storage*>(buffers.out);
        const auto* x = static_cast<const Storage*>(buffers.x);
        const std::int64_t vector_cols = vector_columns<M, kVector>(shape.cols, {out, x});
        const bool streamed = is_streamed<Storage>(shape);
        const std::int64_t packs = vector_cols / kVector;
        const auto enqueue = [&](auto unroll) {
            const LaunchGrid g = launch_grid(shape.rows, packs, unroll());
            forward_kernel<F, M, Number, VectorUnit<Number>, unroll()>
                <<<g.grid, g.block, 0, stream>>>(out, x, shape.rows, packs, scalars, streamed);
        };
        if (M != Form::unary && shape.rows * packs >= kManyVectors) {
            enqueue(std::integral_constant<int, kTuning.many_vectors_per_thread>{});
        } else if (packs != 0) {
            enqueue(std::integral_constant<int, kUnroll>{});
        }
        if (const std::int64_t rest = shape.cols - vector_cols; rest != 0) {
            const LaunchGrid g = launch_grid(shape.rows, rest, kUnroll);
            forward_kernel<F, M, Number, ElementUnit<Number>, kUnroll>
                <<<g.grid, g.block, 0, stream>>>(
                    out + vector_cols, x + vector_cols, shape.rows, rest, scalars, false);
        }
    }
};

template <typename Number>
struct BackwardVisitor {
    using Storage = typename Number::Storage;
    BackwardBuffers buffers;
    Shape shape;
    Scalars scalars;
    cudaStream_t stream;

    template <Function F, Form M>
    void run() const {
        constexpr int kVector = VectorUnit<Number>::kElements;
        auto* grad_x = static_cast<Storage*>(buffers.grad_x);
        const auto* grad_out = static_cast<const Storage*>(buffers.grad_out);
        const auto* x = static_cast<const Storage*>(buffers.x);
        const std::int64_t vector_cols =
            vector_columns<M, kVector>(shape.cols, {grad_x, grad_out, x});
        const bool streamed = is_streamed<Storage>(shape);
        if (vector_cols != 0) {
            const std::int64_t packs = vector_cols / kVector;
            const LaunchGrid g = launch_grid(shape.rows, packs, 1);
            backward_kernel<F, M, Number, VectorUnit<Number>, 1><<<g.grid, g.block, 0, stream>>>(
                grad_x, grad_out, x, shape.rows, packs, scalars, streamed);
        }
        if (const std::int64_t rest = shape.cols - vector_cols; rest != 0) {
            const LaunchGrid g = launch_grid(shape.rows, rest, 1);
            backward_kernel<F, M, Number, ElementUnit<Number>, 1>
                <<<g.grid, g.block, 0, stream>>>(grad_x + vector_cols,
                                                 grad_out + vector_cols,
                                                 x + vector_cols,
                                                 shape.rows,
                                                 rest,
                                                 scalars,
                                                 false);
        }
    }
};

template <template <typename> class Visitor, typename Buffers>
const char* run(const Activation& activation, const Buffers& buffers, Shape shape, void* stream) {
    if (shape.rows == 0 || shape.cols == 0) {
        return nullptr;
    }
    auto* cuda_stream = static_cast<cudaStream_t>(stream);
    switch (activation.dtype) {
    case DType::f32:
        visit(activation, Visitor<Float32>{buffers, shape, activation.scalars, cuda_stream});
        break;
    case DType::f16:
        visit(activation, Visitor<Float16>{buffers, shape, activation.scalars, cuda_stream});
        break;
    case DType::bf16:
        visit(activation, Visitor<BFloat16>{buffers, shape, activation.scalars, cuda_stream});
        break;
    }
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace

const char* forward_cuda(const Activation& activation,
                         const ForwardBuffers& buffers,
                         Shape shape,
                         void* stream) {
    return run<ForwardVisitor>(activation, buffers, shape, stream);
}

const char* backward_cuda(const Activation& activation,
                          const BackwardBuffers& buffers,
                          Shape shape,
                          void* stream) {
    return run<BackwardVisitor>(activation, buffers, shape, stream);
}

} // namespace activation
