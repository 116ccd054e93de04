// SPDX-License-Identifier: Apache-2.0
//
// The readable version: a row at a time, sums over interleaved lanes in a fixed order. Where the
// processor has AVX2 or AVX-512, the loops of rows_simd.h do the same in vectors.
#include "../norm_common/norm.h"

#include "float16.h"
#include "rows.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace rownorm {
namespace {

// term(0) + ... + term(n - 1); the lanes let the compiler use vector registers.
template <int kLanes = kRowLanes, typename Term>
float sum(std::int64_t n, const Term& term) {
    float lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
            lanes[lane] += term(i + lane);
        }
    }
    for (int lane = 0; i < n; ++i, ++lane) {
        lanes[lane] += term(i);
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) {
            lanes[lane] += lanes[lane + width];
        }
    }
    return lanes[0];
}

// A weight or bias vector; a missing one reads as `absent`.
template <typename Number>
struct Parameter {
    const void* data;
    bool is_f32;
    float absent;

    float operator[](std::int64_t i) const {
        if (data == nullptr) {
            return absent;
        }
        return is_f32 ? static_cast<const float*>(data)[i]
                      : Number::widen(static_cast<const typename Number::Storage*>(data)[i]);
    }
};

template <typename Number>
Parameter<Number> weight_of(const Problem& problem, const void* data) {
    const float absent = problem.mode == Mode::gemma ? 0.0F : 1.0F;
    return {data, problem.weight_dtype == DType::f32, absent};
}

template <typename Number>
const typename Number::Storage* at(const void* base, const Rows& rows, std::int64_t row) {
    return static_cast<const typename Number::Storage*>(base) + rows.offset(row);
}

template <typename Number>
typename Number::Storage* at(void* base, const Rows& rows, std::int64_t row) {
    return static_cast<typename Number::Storage*>(base) + rows.offset(row);
}

template <typename Number>
void forward_row(const Problem& problem, const ForwardBuffers& buffers, std::int64_t row) {
    using Storage = typename Number::Storage;
    const std::int64_t n = problem.cols;
    const Storage* x = at<Number>(buffers.x, buffers.x_rows, row);
    Storage* y = at<Number>(buffers.y, buffers.y_rows, row);
    const auto weight = weight_of<Number>(problem, buffers.weight);

    if (problem.kind == Kind::add_rms) {
        const Storage* residual = at<Number>(buffers.residual, buffers.residual_rows, row);
        Storage* total = at<Number>(buffers.sum, buffers.sum_rows, row);
        for (std::int64_t i = 0; i < n; ++i) {
            total[i] = Number::narrow(Number::widen(x[i]) + Number::widen(residual[i]));
        }
        x = total;
    }
    const auto value = [x](std::int64_t i) {
        return Number::widen(x[i]);
    };

    if (problem.kind == Kind::layer) {
        const Parameter<Number> bias{buffers.bias, problem.weight_dtype == DType::f32, 0.0F};
        const float mean = sum(n, value) / static_cast<float>(n);
        const float variance = sum(n,
                                   [&](std::int64_t i) {
                                       const float centred = value(i) - mean;
                                       return centred * centred;
                                   }) /
                               static_cast<float>(n);
        const float rstd = 1.0F / std::sqrt(variance + problem.eps);
        for (std::int64_t i = 0; i < n; ++i) {
            y[i] = Number::narrow((value(i) - mean) * rstd * weight[i] + bias[i]);
        }
        if (buffers.mean != nullptr) {
            buffers.mean[row] = mean;
        }
        if (buffers.rstd != nullptr) {
            buffers.rstd[row] = rstd;
        }
        return;
    }

    const float square =
        sum(n, [&](std::int64_t i) { return value(i) * value(i); }) / static_cast<float>(n);
    const float rstd = 1.0F / std::sqrt(square + problem.eps);
    for (std::int64_t i = 0; i < n; ++i) {
        const float normed = value(i) * rstd;
        switch (problem.mode) {
        case Mode::torch:
            y[i] = Number::narrow(normed * weight[i]);
            break;
        case Mode::llama:
            y[i] = Number::narrow(Number::round(normed) * weight[i]);
            break;
        case Mode::gemma:
            y[i] = Number::narrow(normed * (1.0F + weight[i]));
            break;
        }
    }
    if (buffers.rstd != nullptr) {
        buffers.rstd[row] = rstd;
    }
}

// scale of a row, or of a group of it, whose values are v[0] ... v[n - 1]
template <typename Number>
float scale_of(const typename Number::Storage* v, std::int64_t n, const float* bound) {
    float largest = 0.0F;
    for (std::int64_t i = 0; i < n; ++i) {
        largest = std::fmax(largest, std::fabs(Number::widen(v[i])));
    }
    if (bound != nullptr) {
        largest = std::fmin(largest, *bound);
    }
    return std::fmax(largest / kLargestQuantum, kSmallestScale);
}

template <typename Number>
void quantized_row(const Problem& problem,
                   const ForwardBuffers& buffers,
                   Scaling scaling,
                   const QuantBuffers& quant,
                   std::int64_t row) {
    using Storage = typename Number::Storage;
    forward_row<Number>(problem, buffers, row);
    const auto* value = static_cast<const Storage*>(buffers.y);
    const std::int64_t group = scaling == Scaling::per_group ? kGroup : problem.cols;
    const std::int64_t groups = problem.cols / group;
    auto* out = static_cast<std::uint8_t*>(quant.out) + row * problem.cols;
    for (std::int64_t g = 0; g < groups; ++g) {
        float scale = 0.0F;
        if (scaling == Scaling::per_tensor) {
            scale = *quant.scale;
        } else {
            scale = scale_of<Number>(value + g * group, group, quant.bound);
            quant.scales[row * groups + g] = scale;
        }
        const float inverse = 1.0F / scale;
        for (std::int64_t i = g * group; i < (g + 1) * group; ++i) {
            out[i] = to_e4m3(Number::widen(value[i]) * inverse);
        }
    }
}

// g = grad_y * w;  grad_x = rstd * (g - mean(g * xhat) * xhat [layer: - mean(g)]) + grad_sum
template <typename Number>
void backward_row(const Problem& problem, const BackwardBuffers& buffers, std::int64_t row) {
    using Storage = typename Number::Storage;
    const std::int64_t n = problem.cols;
    const Storage* x = at<Number>(buffers.x, buffers.x_rows, row);
    const Storage* grad_y = at<Number>(buffers.grad_y, buffers.grad_y_rows, row);
    const Storage* grad_sum = buffers.grad_sum == nullptr
                                  ? nullptr
                                  : at<Number>(buffers.grad_sum, buffers.grad_sum_rows, row);
    Storage* grad_x = at<Number>(buffers.grad_x, buffers.grad_x_rows, row);
    const auto weight = weight_of<Number>(problem, buffers.weight);
    const float offset = problem.mode == Mode::gemma ? 1.0F : 0.0F;
    const bool centred = problem.kind == Kind::layer;
    const float mean = centred ? buffers.mean[row] : 0.0F;
    const float rstd = buffers.rstd[row];

    const auto g = [&](std::int64_t i) {
        return Number::widen(grad_y[i]) * (offset + weight[i]);
    };
    const auto xhat = [&](std::int64_t i) {
        return (Number::widen(x[i]) - mean) * rstd;
    };
    const auto count = static_cast<float>(n);
    const float projection = sum(n, [&](std::int64_t i) { return g(i) * xhat(i); }) / count;
    const float shift = centred ? sum(n, g) / count : 0.0F;
    for (std::int64_t i = 0; i < n; ++i) {
        float value = rstd * (g(i) - shift - xhat(i) * projection);
        if (grad_sum != nullptr) {
            value += Number::widen(grad_sum[i]);
        }
        grad_x[i] = Number::narrow(value);
    }
}

template <typename Number>
void store_parameter(const Problem& problem, void* data, std::int64_t i, float value) {
    if (problem.weight_dtype == DType::f32) {
        static_cast<float*>(data)[i] = value;
    } else {
        static_cast<typename Number::Storage*>(data)[i] = Number::narrow(value);
    }
}

// grad_weight = sum over rows of grad_y * xhat;  grad_bias = sum over rows of grad_y
template <typename Number>
void backward_column(const Problem& problem, const BackwardBuffers& buffers, std::int64_t column) {
    const auto grad_y = [&](std::int64_t row) {
        return Number::widen(at<Number>(buffers.grad_y, buffers.grad_y_rows, row)[column]);
    };
    if (buffers.grad_weight != nullptr) {
        const float total = sum<kColumnLanes>(problem.rows, [&](std::int64_t row) {
            const float mean = problem.kind == Kind::layer ? buffers.mean[row] : 0.0F;
            const float x = Number::widen(at<Number>(buffers.x, buffers.x_rows, row)[column]);
            return grad_y(row) * ((x - mean) * buffers.rstd[row]);
        });
        store_parameter<Number>(problem, buffers.grad_weight, column, total);
    }
    if (buffers.grad_bias != nullptr) {
        store_parameter<Number>(
            problem, buffers.grad_bias, column, sum<kColumnLanes>(problem.rows, grad_y));
    }
}

// Calls body with a value of the number type that `dtype` names.
template <typename Body>
void with_number(DType dtype, const Body& body) {
    switch (dtype) {
    case DType::f32:
        return body(Float32{});
    case DType::f16:
        return body(Float16{});
    case DType::bf16:
        return body(BFloat16{});
    }
}

// The weights and biases as the row loops take them, in fp32.
struct WideParameters {
    std::vector<float> weight;
    std::vector<float> bias;

    WideParameters(const Problem& problem, const void* weight_data, const void* bias_data)
        : weight(static_cast<std::size_t>(problem.cols)),
          bias(problem.kind == Kind::layer ? weight.size() : 0) {
        const float offset = problem.mode == Mode::gemma ? 1.0F : 0.0F;
        with_number(problem.dtype, [&](auto number) {
            using Number = decltype(number);
            const auto w = weight_of<Number>(problem, weight_data);
            const Parameter<Number> b{bias_data, problem.weight_dtype == DType::f32, 0.0F};
            for (std::size_t i = 0; i < weight.size(); ++i) {
                const auto at = static_cast<std::int64_t>(i);
                weight[i] = offset == 0.0F ? w[at] : offset + w[at];
            }
            for (std::size_t i = 0; i < bias.size(); ++i) {
                bias[i] = b[static_cast<std::int64_t>(i)];
            }
        });
    }

    RowParameters get() const { return {weight.data(), bias.data()}; }
};

} // namespace

const RowLoops* row_loops() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    static const RowLoops* const best = []() -> const RowLoops* {
        const char* asked = std::getenv("NORM_CPU"); // for tests: avx2 or portable
        const auto is = [asked](const char* name) {
            return asked != nullptr && std::strcmp(asked, name) == 0;
        };
        __builtin_cpu_init();
        if (is("portable")) {
            return nullptr;
        }
        if (!is("avx2") && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl")) {
            return &row_loops_avx512();
        }
        if (__builtin_cpu_supports("avx2")) { // no processor has it without F16C
            return &row_loops_avx2();
        }
        return nullptr;
    }();
    return best;
#else
    return nullptr;
#endif
}

void forward_cpu(const Problem& problem,
                 const ForwardBuffers& buffers,
                 std::int64_t begin,
                 std::int64_t end) {
    if (const RowLoops* loops = row_loops()) {
        const WideParameters parameters(problem, buffers.weight, buffers.bias);
        loops->forward(problem, buffers, parameters.get(), begin, end);
        return;
    }
    with_number(problem.dtype, [&](auto number) {
        for (std::int64_t row = begin; row < end; ++row) {
            forward_row<decltype(number)>(problem, buffers, row);
        }
    });
}

void quantized_cpu(const Problem& problem,
                   const ForwardBuffers& buffers,
                   Scaling scaling,
                   const QuantBuffers& quant,
                   std::int64_t begin,
                   std::int64_t end) {
    with_number(problem.dtype, [&](auto number) {
        using Number = decltype(number);
        // The norm of a row, in the element type; every row writes to the same place.
        std::vector<typename Number::Storage> values(static_cast<std::size_t>(problem.cols));
        ForwardBuffers here = buffers;
        here.y = values.data();
        here.y_rows = Rows{};
        for (std::int64_t row = begin; row < end; ++row) {
            quantized_row<Number>(problem, here, scaling, quant, row);
        }
    });
}

void backward_rows_cpu(const Problem& problem,
                       const BackwardBuffers& buffers,
                       std::int64_t begin,
                       std::int64_t end) {
    if (const RowLoops* loops = row_loops()) {
        const WideParameters parameters(problem, buffers.weight, nullptr);
        loops->backward(problem, buffers, parameters.get(), begin, end);
        return;
    }
    with_number(problem.dtype, [&](auto number) {
        for (std::int64_t row = begin; row < end; ++row) {
            backward_row<decltype(number)>(problem, buffers, row);
        }
    });
}

void backward_columns_cpu(const Problem& problem,
                          const BackwardBuffers& buffers,
                          std::int64_t begin,
                          std::int64_t end) {
    if (const RowLoops* loops = row_loops()) {
        const std::int64_t whole = begin + (end - begin) / 64 * 64;
        const auto size = static_cast<std::size_t>(whole - begin);
        std::vector<float> weight_sums(size);
        std::vector<float> bias_sums(size);
        loops->columns(problem, buffers, weight_sums.data(), bias_sums.data(), begin, whole);
        with_number(problem.dtype, [&](auto number) {
            using Number = decltype(number);
            for (std::int64_t column = begin; column < whole; ++column) {
                const auto at = static_cast<std::size_t>(column - begin);
                if (buffers.grad_weight != nullptr) {
                    store_parameter<Number>(problem, buffers.grad_weight, column, weight_sums[at]);
                }
                if (buffers.grad_bias != nullptr) {
                    store_parameter<Number>(problem, buffers.grad_bias, column, bias_sums[at]);
                }
            }
        });
        begin = whole; // the loop below takes the rest
    }
    with_number(problem.dtype, [&](auto number) {
        for (std::int64_t column = begin; column < end; ++column) {
            backward_column<decltype(number)>(problem, buffers, column);
        }
    });
}

} // namespace rownorm
