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

// Where the operands of output column i lie in the two parts of an input row.
struct Operand {
    std::int64_t a;
    std::int64_t b;
};

template <Form M>
Operand operand(std::int64_t i) {
    return M == Form::interleaved ? Operand{2 * i, 2 * i} : Operand{i, i};
}

// Where the second part begins.
template <Form M>
std::int64_t second_operand(Shape shape) {
    switch (M) {
    case Form::unary:
        return 0;
    case Form::interleaved:
        return 1;
    default:
        return shape.cols;
    }
}

template <typename Number>
struct ForwardVisitor {
    using Storage = typename Number::Storage;
    ForwardBuffers buffers;
    Shape shape;
    Scalars scalars;
    std::int64_t begin, end;

    template <Function F, Form M>
    void run() const {
        const std::int64_t halves = M == Form::unary ? 1 : 2;
        for_each_row_piece(
            shape, begin, end, [&](std::int64_t row, std::int64_t from, std::int64_t to) {
                Storage* out = static_cast<Storage*>(buffers.out) + row * shape.cols;
                const Storage* a =
                    static_cast<const Storage*>(buffers.x) + row * halves * shape.cols;
                const Storage* b = a + second_operand<M>(shape);
                for (std::int64_t i = from; i < to; ++i) {
                    const Operand at = operand<M>(i);
                    out[i] = Number::narrow(forward_element<F, M, Number, PlainMath>(
                        Number::widen(a[at.a]), Number::widen(b[at.b]), scalars));
                }
            });
    }
};

template <typename Number>
struct BackwardVisitor {
    using Storage = typename Number::Storage;
    BackwardBuffers buffers;
    Shape shape;
    Scalars scalars;
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
                const Storage* b = a + second_operand<M>(shape);
                Storage* grad_a = static_cast<Storage*>(buffers.grad_x) + offset;
                Storage* grad_b = grad_a + second_operand<M>(shape);
                for (std::int64_t i = from; i < to; ++i) {
                    const Operand at = operand<M>(i);
                    const Gradients<float> g =
                        backward_element<F, M, Number, PlainMath>(Number::widen(grad[i]),
                                                                  Number::widen(a[at.a]),
                                                                  Number::widen(b[at.b]),
                                                                  scalars);
                    grad_a[at.a] = Number::narrow(g.a);
                    if constexpr (M != Form::unary) {
                        grad_b[at.b] = Number::narrow(g.b);
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
        return visit(activation, Visitor<Float32>{buffers, shape, activation.scalars, begin, end});
    case DType::f16:
        return visit(activation, Visitor<Float16>{buffers, shape, activation.scalars, begin, end});
    case DType::bf16:
        return visit(activation, Visitor<BFloat16>{buffers, shape, activation.scalars, begin, end});
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

namespace {

template <typename Number>
void silu_and_mul_fp8(const QuantBuffers& buffers,
                      Shape shape,
                      std::int64_t begin,
                      std::int64_t end) {
    using Storage = typename Number::Storage;
    const float inverse = 1.0f / *buffers.scale;
    for_each_row_piece(
        shape, begin, end, [&](std::int64_t row, std::int64_t from, std::int64_t to) {
            auto* out = static_cast<std::uint8_t*>(buffers.out) + row * shape.cols;
            const Storage* a = static_cast<const Storage*>(buffers.x) + row * 2 * shape.cols;
            const Storage* b = a + shape.cols;
            for (std::int64_t i = from; i < to; ++i) {
                const float value =
                    forward_element<Function::silu, Form::gate_first, Number, PlainMath>(
                        Number::widen(a[i]), Number::widen(b[i]), Scalars{});
                out[i] = to_e4m3(Number::round(value) * inverse);
            }
        });
}

} // namespace

void silu_and_mul_fp8_cpu(
    DType dtype, const QuantBuffers& buffers, Shape shape, std::int64_t begin, std::int64_t end) {
    switch (dtype) {
    case DType::f32:
        return silu_and_mul_fp8<Float32>(buffers, shape, begin, end);
    case DType::f16:
        return silu_and_mul_fp8<Float16>(buffers, shape, begin, end);
    case DType::bf16:
        return silu_and_mul_fp8<BFloat16>(buffers, shape, begin, end);
    }
}

} // namespace activation
