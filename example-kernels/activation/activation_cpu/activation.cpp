// SPDX-License-Identifier: Apache-2.0
//
// The readable version: one loop, one element at a time.
#include "../activation_common/activation.h"

#include "../activation_common/functions.h"
#include "float16.h"

#include <algorithm>

namespace activation {
namespace {

// Splits the element range [begin, end) into pieces that stay inside one row and calls
// piece(row, first column, last column + 1).
template <typename Piece>
void for_each_row_piece(Shape shape, std::int64_t begin, std::int64_t end, const Piece& piece) {
    for (std::int64_t at = begin; at < end;) {
        const std::int64_t row = at / shape.cols;
        const std::int64_t from = at - row * shape.cols;
        const std::int64_t to = std::min(shape.cols, from + (end - at));
        piece(row, from, to);
        at += to - from;
    }
}

template <typename Number>
struct ForwardVisitor {
    using Storage = typename Number::Storage;
    ForwardBuffers buffers;
    Shape shape;
    float threshold;
    std::int64_t begin, end;

    template <Function F, Form M>
    void run() const {
        const std::int64_t halves = M == Form::unary ? 1 : 2;
        for_each_row_piece(
            shape, begin, end, [&](std::int64_t row, std::int64_t from, std::int64_t to) {
                Storage* out = static_cast<Storage*>(buffers.out) + row * shape.cols;
                const Storage* a =
                    static_cast<const Storage*>(buffers.x) + row * halves * shape.cols;
                const Storage* b = M == Form::unary ? a : a + shape.cols;
                for (std::int64_t i = from; i < to; ++i) {
                    out[i] = Number::narrow(forward_element<F, M, Number>(
                        Number::widen(a[i]), Number::widen(b[i]), threshold));
                }
            });
    }
};

template <typename Number>
struct BackwardVisitor {
    using Storage = typename Number::Storage;
    BackwardBuffers buffers;
    Shape shape;
    float threshold;
    std::int64_t begin, end;

    template <Function F, Form M>
    void run() const {
        const std::int64_t halves = M == Form::unary ? 1 : 2;
        for_each_row_piece(
            shape, begin, end, [&](std::int64_t row, std::int64_t from, std::int64_t to) {
                const std::int64_t offset = row * halves * shape.cols;
                const Storage* grad =
                    static_cast<const Storage*>(buffers.grad_out) + row * shape.cols;
                const Storage* a = static_cast<const Storage*>(buffers.x) + offset;
                const Storage* b = M == Form::unary ? a : a + shape.cols;
                Storage* grad_a = static_cast<Storage*>(buffers.grad_x) + offset;
                Storage* grad_b = grad_a + shape.cols;
                for (std::int64_t i = from; i < to; ++i) {
                    const Gradients g = backward_element<F, M, Number>(Number::widen(grad[i]),
                                                                       Number::widen(a[i]),
                                                                       Number::widen(b[i]),
                                                                       threshold);
                    grad_a[i] = Number::narrow(g.a);
                    if constexpr (M != Form::unary) {
                        grad_b[i] = Number::narrow(g.b);
                    }
                }
            });
    }
};

template <template <typename> class Visitor, typename Buffers>
void run(const Activation& activation,
         const Buffers& buffers,
         Shape shape,
         std::int64_t begin,
         std::int64_t end) {
    switch (activation.dtype) {
    case DType::f32:
        return visit(activation,
                     Visitor<Float32>{buffers, shape, activation.threshold, begin, end});
    case DType::f16:
        return visit(activation,
                     Visitor<Float16>{buffers, shape, activation.threshold, begin, end});
    case DType::bf16:
        return visit(activation,
                     Visitor<BFloat16>{buffers, shape, activation.threshold, begin, end});
    }
}

} // namespace

void forward_cpu(const Activation& activation,
                 const ForwardBuffers& buffers,
                 Shape shape,
                 std::int64_t begin,
                 std::int64_t end) {
    run<ForwardVisitor>(activation, buffers, shape, begin, end);
}

void backward_cpu(const Activation& activation,
                  const BackwardBuffers& buffers,
                  Shape shape,
                  std::int64_t begin,
                  std::int64_t end) {
    run<BackwardVisitor>(activation, buffers, shape, begin, end);
}

} // namespace activation
