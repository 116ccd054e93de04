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

// d/dx of x * sigmoid(scale * x); the guard keeps the limits 0 and 1 for an infinite x.
ACTIVATION_INLINE float swish_derivative(float x, float scale) {
    const float s = 1.0f / (1.0f + expf(-scale * x));
    const float rest = 1.0f - s;
    return rest == 0.0f || s == 0.0f ? s : s * (1.0f + scale * x * rest);
}

// The two that round at every step, as the eager evaluation of their expressions does:
//   gelu_fast  0.5 * x * (1 + tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))
//   gelu_new   0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))
template <Function F, typename Number, typename Tanh>
ACTIVATION_INLINE float stepwise_gelu(float x, const Tanh& tanh) {
    float inner;
    if constexpr (F == Function::gelu_fast) {
        const float left = Number::round(x * kSqrtTwoOverPi);
        const float right = Number::round(1.0f + Number::round(Number::round(kCubic * x) * x));
        inner = Number::round(left * right);
    } else {
        const float cube = Number::round(Number::round(x * x) * x);
        const float sum = Number::round(x + Number::round(kCubic * cube));
        inner = Number::round(kSqrtTwoOverPi * sum);
    }
    const float t = Number::round(tanh(inner));
    return Number::round(0.5f * x) * Number::round(1.0f + t);
}

template <Function F, typename Number>
ACTIVATION_INLINE float apply(float x, [[maybe_unused]] Scalars scalars) {
    if constexpr (F == Function::silu) {
        return x / (1.0f + expf(-x));
    } else if constexpr (F == Function::gelu) {
        return x * 0.5f * (1.0f + erff(x * kSqrtHalf));
    } else if constexpr (F == Function::gelu_tanh) {
        const float inner = kSqrtTwoOverPi * (x + kCubic * (x * x * x));
        return 0.5f * x * (1.0f + tanhf(inner));
    } else if constexpr (F == Function::gelu_fast || F == Function::gelu_new) {
        return stepwise_gelu<F, Number>(x, [](float inner) { return tanhf(inner); });
    } else if constexpr (F == Function::gelu_quick) {
        return x / (1.0f + expf(-kQuick * x));
    } else if constexpr (F == Function::relu2) {
        return x <= 0.0f ? 0.0f : x * x;
    } else {
        static_assert(F == Function::fatrelu);
        return x <= scalars.first ? 0.0f : x; // a NaN passes through, as in torch's threshold
    }
}

template <Function F>
ACTIVATION_INLINE float derivative(float x, [[maybe_unused]] Scalars scalars) {
    if constexpr (F == Function::silu) {
        return swish_derivative(x, 1.0f);
    } else if constexpr (F == Function::gelu) {
        const float cdf = 0.5f * (1.0f + erff(x * kSqrtHalf));
        const float pdf = kInvSqrtTwoPi * expf(-0.5f * x * x);
        // x * pdf would be inf * 0 for an infinite x
        return pdf == 0.0f ? cdf : cdf + x * pdf;
    } else if constexpr (F == Function::gelu_tanh || F == Function::gelu_fast ||
                         F == Function::gelu_new) {
        const float square = x * x;
        const float t = tanhf(kSqrtTwoOverPi * (x + kCubic * square * x));
        const float slope = kSqrtTwoOverPi * (1.0f + 3.0f * kCubic * square);
        const float sech2 = 1.0f - t * t;
        const float tail = sech2 == 0.0f ? 0.0f : 0.5f * x * sech2 * slope;
        return 0.5f * (1.0f + t) + tail;
    } else if constexpr (F == Function::gelu_quick) {
        return swish_derivative(x, kQuick);
    } else if constexpr (F == Function::relu2) {
        return x <= 0.0f ? 0.0f : 2.0f * x;
    } else {
        static_assert(F == Function::fatrelu);
        return x <= scalars.first ? 0.0f : 1.0f;
    }
}

// The clamped SwiGLU: g = min(a, limit), u = clamp(b, -limit, limit);
// (u + 1) * g * sigmoid(alpha * g). A NaN passes through.
ACTIVATION_INLINE float clamp_above(float v, float limit) {
    return v > limit ? limit : v;
}

ACTIVATION_INLINE float clamp_both(float v, float limit) {
    return v < -limit ? -limit : clamp_above(v, limit);
}

ACTIVATION_INLINE float swiglu_oai(float a, float b, Scalars scalars) {
    const float g = clamp_above(a, scalars.second);
    const float u = clamp_both(b, scalars.second);
    return (u + 1.0f) * (g / (1.0f + expf(-scalars.first * g)));
}

struct Gradients {
    float a;
    float b; // unused by the unary form
};

// One output element. `b` is ignored by the unary form. The activation is rounded to the
// element type before the product, as two separate PyTorch operators would do.
template <Function F, Form M, typename Number>
ACTIVATION_INLINE float forward_element(float a, [[maybe_unused]] float b, Scalars scalars) {
    if constexpr (F == Function::swiglu_oai) {
        return swiglu_oai(a, b, scalars);
    } else if constexpr (M == Form::unary) {
        return apply<F, Number>(a, scalars);
    } else if constexpr (M == Form::gate_first) {
        return Number::round(apply<F, Number>(a, scalars)) * b;
    } else {
        return a * Number::round(apply<F, Number>(b, scalars));
    }
}

template <Function F, Form M, typename Number>
ACTIVATION_INLINE Gradients
backward_element(float grad, float a, [[maybe_unused]] float b, Scalars scalars) {
    if constexpr (F == Function::swiglu_oai) {
        const float g = clamp_above(a, scalars.second);
        const float u = clamp_both(b, scalars.second);
        const float inside_a = a > scalars.second ? 0.0f : 1.0f;
        const float inside_b = b > scalars.second || b < -scalars.second ? 0.0f : 1.0f;
        return {grad * (u + 1.0f) * swish_derivative(g, scalars.first) * inside_a,
                grad * (g / (1.0f + expf(-scalars.first * g))) * inside_b};
    } else if constexpr (M == Form::unary) {
        return {grad * derivative<F>(a, scalars), 0.0f};
    } else if constexpr (M == Form::gate_first) {
        return {grad * b * derivative<F>(a, scalars), grad * apply<F, Number>(a, scalars)};
    } else {
        return {grad * apply<F, Number>(b, scalars), grad * a * derivative<F>(b, scalars)};
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
