// SPDX-License-Identifier: Apache-2.0
//
// The one definition of every activation and of its derivative, used by all backends.
//
// `Number` stands for the element type of the tensor: Number::round(v) is v rounded to that
// type and widened again. Where a formula rounds on the way, PyTorch's eager evaluation of the
// reference expression does so too. All other arithmetic is fp32, in the order PyTorch uses,
// which makes the gated CUDA operators equal to PyTorch's bit for bit.
#pragma once

#include "activation.h"

#include <cmath>

#if defined(__CUDACC__)
#define ACTIVATION_INLINE __host__ __device__ __forceinline__
#else
#define ACTIVATION_INLINE inline
#endif

namespace activation {

constexpr float kSqrtHalf = 0.70710678118654752f;      // sqrt(1/2)
constexpr float kSqrtTwoOverPi = 0.79788456080286536f; // sqrt(2/pi)
constexpr float kInvSqrtTwoPi = 0.39894228040143268f;  // 1/sqrt(2 pi)
constexpr float kCubic = 0.044715f;
constexpr float kQuick = 1.702f;

// What the formulas are made of, to full precision. Another `Math` may have other precision, or
// work on several values at once: then Real is a vector, and comparisons and ?: go element by
// element.
struct PlainMath {
    static ACTIVATION_INLINE float exp(float x) { return expf(x); }

    static ACTIVATION_INLINE float tanh(float x) { return tanhf(x); }

    static ACTIVATION_INLINE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

    // x * sigmoid(y)
    static ACTIVATION_INLINE float swish(float x, float y) { return x / (1.0f + expf(-y)); }

    // Twice the normal distribution function.
    static ACTIVATION_INLINE float twice_cdf(float x) { return 1.0f + erff(x * kSqrtHalf); }

    static ACTIVATION_INLINE float one_plus_tanh(float x) { return 1.0f + tanhf(x); }
};

// The steps of a formula that rounds at every one.
template <typename Number, typename Math>
struct PlainSteps {
    template <typename Real>
    static ACTIVATION_INLINE Real product(Real a, Real b) {
        return Number::round(a * b);
    }

    template <typename Real>
    static ACTIVATION_INLINE Real sum(Real a, Real b) {
        return Number::round(a + b);
    }

    template <typename Real>
    static ACTIVATION_INLINE Real scaled(float factor, Real a) {
        return Number::round(factor * a);
    }

    // These two for a constant that the type has.
    template <typename Real>
    static ACTIVATION_INLINE Real scaled_exactly(float factor, Real a) {
        return Number::round(factor * a);
    }

    template <typename Real>
    static ACTIVATION_INLINE Real plus_exactly(float term, Real a) {
        return Number::round(term + a);
    }

    template <typename Real>
    static ACTIVATION_INLINE Real tanh(Real a) {
        return Number::round(Math::tanh(a));
    }
};

// The two that round at every step, as the eager evaluation of their expressions does:
//   gelu_fast  0.5 * x * (1 + tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))
//   gelu_new   0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))
template <Function F>
constexpr bool kStepwise = F == Function::gelu_fast || F == Function::gelu_new;

template <Function F, typename Steps, typename Real>
ACTIVATION_INLINE Real stepwise_gelu(Real x) {
    static_assert(kStepwise<F>, "the others round once");
    Real inner;
    if constexpr (F == Function::gelu_fast) {
        const Real left = Steps::scaled(kSqrtTwoOverPi, x);
        const Real right = Steps::plus_exactly(1.0f, Steps::product(Steps::scaled(kCubic, x), x));
        inner = Steps::product(left, right);
    } else {
        const Real cube = Steps::product(Steps::product(x, x), x);
        inner = Steps::scaled(kSqrtTwoOverPi, Steps::sum(x, Steps::scaled(kCubic, cube)));
    }
    const Real both = Steps::plus_exactly(1.0f, Steps::tanh(inner));
    return Steps::product(Steps::scaled_exactly(0.5f, x), both);
}

template <Function F, typename Number, typename Math, typename Real>
ACTIVATION_INLINE Real apply(Real x, [[maybe_unused]] Scalars scalars) {
    if constexpr (F == Function::silu) {
        return Math::swish(x, x);
    } else if constexpr (F == Function::gelu) {
        return x * 0.5f * Math::twice_cdf(x);
    } else if constexpr (F == Function::gelu_tanh) {
        const Real inner = kSqrtTwoOverPi * (x + kCubic * (x * x * x));
        return 0.5f * x * Math::one_plus_tanh(inner);
    } else if constexpr (kStepwise<F>) {
        return stepwise_gelu<F, PlainSteps<Number, Math>>(x);
    } else if constexpr (F == Function::gelu_quick) {
        return Math::swish(x, kQuick * x);
    } else if constexpr (F == Function::relu2) {
        return x <= 0.0f ? 0.0f : x * x;
    } else {
        static_assert(F == Function::fatrelu);
        return x <= scalars.first ? 0.0f : x; // a NaN passes through, as in torch's threshold
    }
}

// d/dx of x * sigmoid(scale * x); the guard keeps the limits 0 and 1 for an infinite x.
template <typename Math, typename Real>
ACTIVATION_INLINE Real swish_derivative(Real x, float scale) {
    const Real s = Math::sigmoid(scale * x);
    const Real rest = 1.0f - s;
    return rest == 0.0f || s == 0.0f ? s : s * (1.0f + scale * x * rest);
}

template <Function F, typename Math, typename Real>
ACTIVATION_INLINE Real derivative(Real x, [[maybe_unused]] Scalars scalars) {
    if constexpr (F == Function::silu) {
        return swish_derivative<Math>(x, 1.0f);
    } else if constexpr (F == Function::gelu) {
        const Real cdf = 0.5f * Math::twice_cdf(x);
        const Real pdf = kInvSqrtTwoPi * Math::exp(-0.5f * x * x);
        // x * pdf would be inf * 0 for an infinite x
        return pdf == 0.0f ? cdf : cdf + x * pdf;
    } else if constexpr (F == Function::gelu_tanh || kStepwise<F>) {
        const Real square = x * x;
        const Real both = Math::one_plus_tanh(kSqrtTwoOverPi * (x + kCubic * square * x));
        const Real slope = kSqrtTwoOverPi * (1.0f + 3.0f * kCubic * square);
        const Real sech2 = both * (2.0f - both);
        const Real tail = sech2 == 0.0f ? sech2 : 0.5f * x * sech2 * slope;
        return 0.5f * both + tail;
    } else if constexpr (F == Function::gelu_quick) {
        return swish_derivative<Math>(x, kQuick);
    } else if constexpr (F == Function::relu2) {
        return x <= 0.0f ? 0.0f : 2.0f * x;
    } else {
        static_assert(F == Function::fatrelu);
        return x <= scalars.first ? 0.0f * x + 0.0f : 0.0f * x + 1.0f;
    }
}

// The clamped SwiGLU: g = min(a, limit), u = clamp(b, -limit, limit);
// (u + 1) * g * sigmoid(alpha * g). A NaN passes through.
template <typename Real>
ACTIVATION_INLINE Real clamp_above(Real v, float limit) {
    return v > limit ? limit : v;
}

template <typename Real>
ACTIVATION_INLINE Real clamp_both(Real v, float limit) {
    return v < -limit ? -limit : clamp_above(v, limit);
}

template <typename Real>
struct Gradients {
    Real a;
    Real b; // unused by the unary form
};

// One output element. `b` is ignored by the unary form. The activation is rounded to the
// element type before the product, as two separate PyTorch operators would do.
template <Function F, Form M, typename Number, typename Math, typename Real>
ACTIVATION_INLINE Real forward_element(Real a, [[maybe_unused]] Real b, Scalars scalars) {
    if constexpr (F == Function::swiglu_oai) {
        const Real g = clamp_above(a, scalars.second);
        const Real u = clamp_both(b, scalars.second);
        return (u + 1.0f) * Math::swish(g, scalars.first * g);
    } else if constexpr (M == Form::unary) {
        return apply<F, Number, Math>(a, scalars);
    } else if constexpr (M == Form::gate_first) {
        return Number::round(apply<F, Number, Math>(a, scalars)) * b;
    } else {
        return a * Number::round(apply<F, Number, Math>(b, scalars));
    }
}

template <Function F, Form M, typename Number, typename Math, typename Real>
ACTIVATION_INLINE Gradients<Real>
backward_element(Real grad, Real a, [[maybe_unused]] Real b, Scalars scalars) {
    if constexpr (F == Function::swiglu_oai) {
        const float limit = scalars.second;
        const Real g = clamp_above(a, limit);
        const Real u = clamp_both(b, limit);
        const Real by_a = grad * (u + 1.0f) * swish_derivative<Math>(g, scalars.first);
        const Real by_b = grad * Math::swish(g, scalars.first * g);
        return {a > limit ? 0.0f * by_a : by_a, b > limit || b < -limit ? 0.0f * by_b : by_b};
    } else if constexpr (M == Form::unary) {
        return {grad * derivative<F, Math>(a, scalars), Real{}};
    } else if constexpr (M == Form::gate_first) {
        return {grad * b * derivative<F, Math>(a, scalars),
                grad * apply<F, Number, Math>(a, scalars)};
    } else {
        return {grad * apply<F, Number, Math>(b, scalars),
                grad * a * derivative<F, Math>(b, scalars)};
    }
}

// Calls visitor.template run<F, M>() for the run-time pair. The gated forms exist for the
// functions that have a gated operator only; fatrelu exists gated only.
template <typename Visitor>
void visit(const Activation& activation, const Visitor& visitor) {
    const Form form = activation.form;
    switch (activation.function) {
    case Function::silu:
        if (form == Form::gate_first) {
            return visitor.template run<Function::silu, Form::gate_first>();
        }
        if (form == Form::gate_last) {
            return visitor.template run<Function::silu, Form::gate_last>();
        }
        return visitor.template run<Function::silu, Form::unary>();
    case Function::gelu:
        if (form == Form::gate_first) {
            return visitor.template run<Function::gelu, Form::gate_first>();
        }
        return visitor.template run<Function::gelu, Form::unary>();
    case Function::gelu_tanh:
        if (form == Form::gate_first) {
            return visitor.template run<Function::gelu_tanh, Form::gate_first>();
        }
        return visitor.template run<Function::gelu_tanh, Form::unary>();
    case Function::fatrelu:
        return visitor.template run<Function::fatrelu, Form::gate_first>();
    case Function::relu2:
        return visitor.template run<Function::relu2, Form::unary>();
    case Function::swiglu_oai:
        return visitor.template run<Function::swiglu_oai, Form::interleaved>();
    case Function::gelu_fast:
        return visitor.template run<Function::gelu_fast, Form::unary>();
    case Function::gelu_new:
        return visitor.template run<Function::gelu_new, Form::unary>();
    case Function::gelu_quick:
        return visitor.template run<Function::gelu_quick, Form::unary>();
    }
}

} // namespace activation
