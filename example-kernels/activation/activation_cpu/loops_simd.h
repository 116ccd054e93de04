// SPDX-License-Identifier: Apache-2.0
//
// The loops over vectors of kWidth floats. Included by one file for each instruction set, which
// defines the vectors, their fused multiplication and addition, and the conversions before.
#include "../activation_common/functions.h"
#include "float16.h"
#include "loops.h"
#include "rows.h"

#include <cstring>
#include <type_traits>

namespace activation {
namespace {

template <typename To, typename From>
To as(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

inline Floats all(float v) {
    return Floats{} + v;
}

// c[0] + c[1] x + ...
template <int N>
Floats polynomial(const float (&c)[N], Floats x) {
    Floats sum = all(c[N - 1]);
    for (int i = N - 2; i >= 0; --i) {
        sum = multiply_add(sum, x, all(c[i]));
    }
    return sum;
}

// 1 + r + r^2 q(r)
template <int N>
Floats exp_near_zero(const float (&q)[N], Floats r) {
    return 1.0f + multiply_add(polynomial(q, r), r * r, r);
}

// Adding it to a small number rounds to a whole one, n, and leaves n in the lowest bits.
constexpr float kMagic = 12582912.0f; // 1.5 * 2^23
constexpr float kLog2E = 1.4426950408889634f;

// erfc(a / sqrt(2)) for a >= 0 as exp(-a^2 / 2) times a polynomial in 1 / (1 + kErfcPole a) fitted
// to erfcx.
constexpr float kErfcPole = 0.35f;

// Twice the normal distribution function from the upper tail of |x|.
inline Floats both_tails(Floats x, Floats tail) {
    return x < 0.0f ? tail : 2.0f - tail;
}

inline Floats magnitude(Floats x) {
    return as<Floats>(as<Words>(x) & 0x7fffffffu);
}

// For 32 bits: errors of a few units of the last place; results below 2^-125 are 0.
struct VectorMath {
    // 2^n exp(r) for x = n ln 2 + r
    static Floats exp(Floats x) {
        constexpr float kLn2High = 0.693359375f;
        constexpr float kLn2Low = -2.12194440e-4f;
        constexpr float kLast = 88.722832f; // beyond, the result is infinite
        constexpr float kFirst = -87.336544f;
        constexpr float kQ[] = {0.5f,
                                0.1666666716337204f,
                                0.041666463017463684f,
                                0.008333285339176655f,
                                0.0013933753361925483f,
                                0.00019907733076252043f};
        const Floats t = multiply_add(x, all(kLog2E), all(kMagic));
        const Floats n = t - kMagic;
        const Floats r = multiply_add(n, all(-kLn2Low), multiply_add(n, all(-kLn2High), x));
        // n may be 128: half of 2^n, doubled.
        const Floats power = as<Floats>((as<Words>(t) << 23) + 0x3f000000u);
        const Floats result = exp_near_zero(kQ, r) * power * 2.0f;
        return x > kLast ? all(INFINITY) : (x < kFirst ? all(0.0f) : result);
    }

    static Floats sigmoid(Floats x) { return 1.0f / (1.0f + exp(-x)); }

    static Floats swish(Floats x, Floats y) { return x / (1.0f + exp(-y)); }

    static Floats one_plus_tanh(Floats x) { return 2.0f / (1.0f + exp(-2.0f * x)); }

    static Floats tanh(Floats x) { return one_plus_tanh(x) - 1.0f; }

    static Floats twice_cdf(Floats x) {
        constexpr float kErfcx[] = {0.2792428135871887f,
                                    0.2797238230705261f,
                                    0.23966512084007263f,
                                    0.21101848781108856f,
                                    -0.046225689351558685f,
                                    0.3183572590351105f,
                                    -0.5114364624023438f,
                                    0.28794732689857483f,
                                    -0.05829267576336861f};
        const Floats a = magnitude(x);
        const Floats t = 1.0f / multiply_add(a, all(kErfcPole), all(1.0f));
        return both_tails(x, polynomial(kErfcx, t) * t * exp(-0.5f * a * a));
    }
};

// For 16 bits: errors below 2^-16, fewer operations, no division.
struct ShortVectorMath {
    static constexpr float kFar = 87.0f;

    // x is limited to [-kFar, kFar].
    static Floats exp_within(Floats x) {
        constexpr float kLn2 = 0.6931471805599453f;
        constexpr float kQ[] = {0.49999746680259705f,
                                0.1666652262210846f,
                                0.041834235191345215f,
                                0.008369239047169685f};
        x = all(kFar) < x ? all(kFar) : x;
        x = all(-kFar) > x ? all(-kFar) : x;
        const Floats t = multiply_add(x, all(kLog2E), all(kMagic));
        const Floats r = multiply_add(t - kMagic, all(-kLn2), x);
        const Floats power = as<Floats>((as<Words>(t) << 23) + 0x3f800000u);
        return exp_near_zero(kQ, r) * power;
    }

    static Floats exp(Floats x) { return x < -kFar ? all(0.0f) : exp_within(x); }

    // Of a number from 1 to 2^126: a guess by the exponent, then Newton's steps.
    static Floats reciprocal(Floats x) {
        Floats y = as<Floats>(0x7ef311c7u - as<Words>(x));
        for (int i = 0; i < 3; ++i) {
            y = multiply_add(y, multiply_add(-x, y, all(1.0f)), y);
        }
        return y;
    }

    static Floats sigmoid(Floats x) {
        const Floats result = reciprocal(1.0f + exp_within(-x));
        return x < -kFar ? all(0.0f) : result;
    }

    static Floats swish(Floats x, Floats y) { return x * sigmoid(y); }

    static Floats one_plus_tanh(Floats x) { return 2.0f * sigmoid(2.0f * x); }

    static Floats tanh(Floats x) { return one_plus_tanh(x) - 1.0f; }

    static Floats twice_cdf(Floats x) {
        constexpr float kErfcx[] = {0.27953040599823f,
                                    0.2742040157318115f,
                                    0.28302207589149475f,
                                    0.028697144240140915f,
                                    0.4042738676071167f,
                                    -0.3545103371143341f,
                                    0.0847812071442604f};
        Floats a = magnitude(x);
        a = all(30.0f) < a ? all(30.0f) : a; // beyond, the tail is 0
        const Floats t = reciprocal(multiply_add(a, all(kErfcPole), all(1.0f)));
        return both_tails(x, polynomial(kErfcx, t) * t * exp(-0.5f * a * a));
    }
};

// The element types, as vectors.
template <typename Number>
struct Wide;

template <>
struct Wide<Float32> {
    using Storage = float;
    using Math = VectorMath;

    static Floats load(const float* p) {
        Floats v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }

    static void store(float* p, Floats v) { std::memcpy(p, &v, sizeof v); }

    static Floats round(Floats v) { return v; }
};

template <>
struct Wide<BFloat16> {
    using Storage = std::uint16_t;
    using Math = ShortVectorMath;

    static Floats load(const std::uint16_t* p) { return as<Floats>(widen_words(p) << 16); }

    static Words rounded(Floats v) { // in the upper halves
        // A NaN here has a lower half of zeros, as those of the operands and of the processor have.
        const Words bits = as<Words>(v);
        return bits + 0x7fffu + ((bits >> 16) & 1u);
    }

    static void store(std::uint16_t* p, Floats v) { narrow_words(p, rounded(v) >> 16); }

    static Floats round(Floats v) { return as<Floats>(rounded(v) & 0xffff0000u); }
};

template <>
struct Wide<Float16> {
    using Storage = std::uint16_t;
    using Math = ShortVectorMath;

    static Floats load(const std::uint16_t* p) { return widen_half(p); }

    static void store(std::uint16_t* p, Floats v) { narrow_half(p, v); }

    static Floats round(Floats v) { return round_half(v); }
};

// `count` values, kWidth at most, `step` apart, and zeros after them.
template <typename W, int kStride>
Floats load_some(const typename W::Storage* p, int count) {
    if (kStride == 1 && count == kWidth) {
        return W::load(p);
    }
    typename W::Storage some[kWidth] = {};
    for (int i = 0; i < count; ++i) {
        some[i] = p[i * kStride];
    }
    return W::load(some);
}

template <typename W, int kStride>
void store_some(typename W::Storage* p, int count, Floats v) {
    if (kStride == 1 && count == kWidth) {
        return W::store(p, v);
    }
    typename W::Storage some[kWidth];
    W::store(some, v);
    for (int i = 0; i < count; ++i) {
        p[i * kStride] = some[i];
    }
}

// Calls body(column, count) for the vectors of [from, to).
template <typename Body>
void for_each_vector(std::int64_t from, std::int64_t to, const Body& body) {
    std::int64_t i = from;
    for (; i + kWidth <= to; i += kWidth) {
        body(i, std::integral_constant<int, kWidth>{});
    }
    if (i < to) {
        body(i, static_cast<int>(to - i));
    }
}

template <typename W>
struct ForwardVisitor {
    using Storage = typename W::Storage;
    ForwardBuffers buffers;
    Shape shape;
    Scalars scalars;
    std::int64_t begin, end;

    template <Function F, Form M>
    void run() const {
        constexpr int kStride = static_cast<int>(kStep<M>);
        const auto piece = [&](std::int64_t row, std::int64_t from, std::int64_t to) {
            Storage* out = static_cast<Storage*>(buffers.out) + row * shape.cols;
            const Storage* a =
                static_cast<const Storage*>(buffers.x) + row * kHalves<M> * shape.cols;
            const Storage* b = a + second_operand<M>(shape);
            for_each_vector(from, to, [&](std::int64_t i, auto count) {
                const Floats first = load_some<W, kStride>(a + i * kStride, count);
                const Floats second =
                    M == Form::unary ? first : load_some<W, kStride>(b + i * kStride, count);
                store_some<W, 1>(
                    out + i,
                    count,
                    forward_element<F, M, W, typename W::Math>(first, second, scalars));
            });
        };
        for_each_row_piece(shape, begin, end, piece);
    }
};

template <typename W>
struct BackwardVisitor {
    using Storage = typename W::Storage;
    BackwardBuffers buffers;
    Shape shape;
    Scalars scalars;
    std::int64_t begin, end;

    template <Function F, Form M>
    void run() const {
        constexpr int kStride = static_cast<int>(kStep<M>);
        const auto piece = [&](std::int64_t row, std::int64_t from, std::int64_t to) {
            const std::int64_t offset = row * kHalves<M> * shape.cols;
            const Storage* grad = static_cast<const Storage*>(buffers.grad_out) + row * shape.cols;
            const Storage* a = static_cast<const Storage*>(buffers.x) + offset;
            const Storage* b = a + second_operand<M>(shape);
            Storage* grad_a = static_cast<Storage*>(buffers.grad_x) + offset;
            Storage* grad_b = grad_a + second_operand<M>(shape);
            for_each_vector(from, to, [&](std::int64_t i, auto count) {
                const Floats first = load_some<W, kStride>(a + i * kStride, count);
                const Floats second =
                    M == Form::unary ? first : load_some<W, kStride>(b + i * kStride, count);
                const Gradients<Floats> g = backward_element<F, M, W, typename W::Math>(
                    load_some<W, 1>(grad + i, count), first, second, scalars);
                store_some<W, kStride>(grad_a + i * kStride, count, g.a);
                if constexpr (M != Form::unary) {
                    store_some<W, kStride>(grad_b + i * kStride, count, g.b);
                }
            });
        };
        for_each_row_piece(shape, begin, end, piece);
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
              Visitor<Wide<decltype(number)>>{buffers, shape, activation.scalars, begin, end});
    });
}

void forward(const Activation& activation,
             const ForwardBuffers& buffers,
             Shape shape,
             std::int64_t begin,
             std::int64_t end) {
    run<ForwardVisitor>(activation, buffers, shape, begin, end);
}

void backward(const Activation& activation,
              const BackwardBuffers& buffers,
              Shape shape,
              std::int64_t begin,
              std::int64_t end) {
    run<BackwardVisitor>(activation, buffers, shape, begin, end);
}

const Loops kLoops{&forward, &backward};

} // namespace
} // namespace activation
