// SPDX-License-Identifier: Apache-2.0
//
// The readable version: one loop, one element at a time. Where the processor has AVX2 or AVX-512,
// the loops of loops_simd.h do the same in vectors.
#include "../activation_common/activation.h"

#include "../activation_common/functions.h"
#include "float16.h"
#include "loops.h"
#include "rows.h"

#include <cstdlib>
#include <cstring>

namespace activation {
namespace {

template <typename Number>
struct ForwardVisitor {
    using Storage = typename Number::Storage;
    ForwardBuffers buffers;
    Shape shape;
    Scalars scalars;
    std::int64_t begin, end;

    template <Function F, Form M>
    void run() const {
        for_each_row_piece(
            shape, begin, end, [&](std::int64_t row, std::int64_t from, std::int64_t to) {
                Storage* out = static_cast<Storage*>(buffers.out) + row * shape.cols;
                const Storage* a =
                    static_cast<const Storage*>(buffers.x) + row * kHalves<M> * shape.cols;
                const Storage* b = a + second_operand<M>(shape);
                for (std::int64_t i = from; i < to; ++i) {
                    const std::int64_t at = i * kStep<M>;
                    out[i] = Number::narrow(forward_element<F, M, Number, PlainMath>(
                        Number::widen(a[at]), Number::widen(b[at]), scalars));
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
        for_each_row_piece(
            shape, begin, end, [&](std::int64_t row, std::int64_t from, std::int64_t to) {
                const std::int64_t offset = row * kHalves<M> * shape.cols;
                const Storage* grad =
                    static_cast<const Storage*>(buffers.grad_out) + row * shape.cols;
                const Storage* a = static_cast<const Storage*>(buffers.x) + offset;
                const Storage* b = a + second_operand<M>(shape);
                Storage* grad_a = static_cast<Storage*>(buffers.grad_x) + offset;
                Storage* grad_b = grad_a + second_operand<M>(shape);
                for (std::int64_t i = from; i < to; ++i) {
                    const std::int64_t at = i * kStep<M>;
                    const Gradients<float> g =
                        backward_element<F, M, Number, PlainMath>(Number::widen(grad[i]),
                                                                  Number::widen(a[at]),
                                                                  Number::widen(b[at]),
                                                                  scalars);
                    grad_a[at] = Number::narrow(g.a);
                    if constexpr (M != Form::unary) {
                        grad_b[at] = Number::narrow(g.b);
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
    with_number(activation.dtype, [&](auto number) {
        visit(activation,
              Visitor<decltype(number)>{buffers, shape, activation.scalars, begin, end});
    });
}

} // namespace

const Loops* loops() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    static const Loops* const best = []() -> const Loops* {
        const char* asked = std::getenv("ACTIVATION_CPU"); // for tests: avx2 or portable
        const auto is = [asked](const char* name) {
            return asked != nullptr && std::strcmp(asked, name) == 0;
        };
        __builtin_cpu_init();
        if (is("portable") || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
            !__builtin_cpu_supports("f16c")) {
            return nullptr;
        }
        const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        return wide && !is("avx2") ? &loops_avx512() : &loops_avx2();
    }();
    return best;
#else
    return nullptr;
#endif
}

void forward_cpu(const Activation& activation,
                 const ForwardBuffers& buffers,
                 Shape shape,
                 std::int64_t begin,
                 std::int64_t end) {
    if (const Loops* best = loops()) {
        return best->forward(activation, buffers, shape, begin, end);
    }
    run<ForwardVisitor>(activation, buffers, shape, begin, end);
}

void backward_cpu(const Activation& activation,
                  const BackwardBuffers& buffers,
                  Shape shape,
                  std::int64_t begin,
                  std::int64_t end) {
    if (const Loops* best = loops()) {
        return best->backward(activation, buffers, shape, begin, end);
    }
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
    with_number(dtype, [&](auto number) {
        silu_and_mul_fp8<decltype(number)>(buffers, shape, begin, end);
    });
}

} // namespace activation
