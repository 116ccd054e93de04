// SPDX-License-Identifier: Apache-2.0
//
// The row loops over vectors of kWidth floats. Included by one file for each instruction set, which
// defines kWidth and the conversions of 16-bit values before.
#include "float16.h"
#include "rows.h"

#include <cmath>
#include <cstring>

namespace rownorm {
namespace {

typedef float Floats __attribute__((vector_size(4 * kWidth)));
typedef std::uint32_t Words __attribute__((vector_size(4 * kWidth)));
typedef std::int32_t Ints __attribute__((vector_size(4 * kWidth)));
constexpr int kSums = kRowLanes / kWidth;

template <typename To, typename From>
To as(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

Floats load(const float* p) {
    Floats v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <typename Number>
struct Wide;

template <>
struct Wide<Float32> {
    static Floats load(const float* p) { return rownorm::load(p); }

    static void store(float* p, const Floats& v) { std::memcpy(p, &v, sizeof v); }

    static Floats round(const Floats& v) { return v; }
};

template <>
struct Wide<BFloat16> {
    static Floats load(const std::uint16_t* p) { return as<Floats>(widen_bfloat(p)); }

    static Words rounded(const Floats& v) { // in the upper halves
        const Words bits = as<Words>(v);
        const Words nearest = bits + 0x7fffU + ((bits >> 16) & 1U);
        const Words nan = as<Words>(as<Ints>(bits & 0x7fffffffU) > 0x7f800000);
        return (nearest & ~nan) | ((bits | 0x00400000U) & nan);
    }

    static void store(std::uint16_t* p, const Floats& v) { narrow_words(p, rounded(v) >> 16); }

    static Floats round(const Floats& v) { return as<Floats>(rounded(v) & 0xffff0000U); }
};

template <>
struct Wide<Float16> {
    static Floats load(const std::uint16_t* p) { return as<Floats>(widen_half(p)); }

    static void store(std::uint16_t* p, const Floats& v) { narrow_half(p, v); }

    static Floats round(const Floats& v) {
        std::uint16_t half[kWidth];
        narrow_half(half, v);
        return as<Floats>(widen_half(half));
    }
};

// kRowLanes interleaved sums along a row.
struct RowSum {
    Floats lanes[kSums] = {};

    // Adds one(i) for the values from i on, which make no whole round of the lanes.
    template <typename One>
    float finish(std::int64_t i, std::int64_t n, const One& one) const {
        float sums[kRowLanes];
        std::memcpy(sums, lanes, sizeof sums);
        for (int lane = 0; i < n; ++i, ++lane) {
            sums[lane] += one(i);
        }
        for (int width = kRowLanes / 2; width > 0; width /= 2) {
            for (int lane = 0; lane < width; ++lane) {
                sums[lane] += sums[lane + width];
            }
        }
        return sums[0];
    }
};

// The sum of vector(i) for whole rounds of vectors and one(i) for the rest.
template <typename Vector, typename One>
float row_sum(std::int64_t n, const Vector& vector, const One& one) {
    RowSum sum;
    const std::int64_t whole = n / kRowLanes * kRowLanes;
    for (std::int64_t i = 0; i < whole; i += kRowLanes) {
        for (int s = 0; s < kSums; ++s) {
            sum.lanes[s] += vector(i + s * kWidth);
        }
    }
    return sum.finish(whole, n, one);
}

struct TwoSums {
    float first;
    float second;
};

// Two such sums in one pass.
template <typename Vector, typename One, typename OtherVector, typename OtherOne>
TwoSums row_sums(std::int64_t n,
                 const Vector& vector,
                 const One& one,
                 const OtherVector& other_vector,
                 const OtherOne& other_one) {
    RowSum first;
    RowSum second;
    const std::int64_t whole = n / kRowLanes * kRowLanes;
    for (std::int64_t i = 0; i < whole; i += kRowLanes) {
        for (int s = 0; s < kSums; ++s) {
            first.lanes[s] += vector(i + s * kWidth);
            second.lanes[s] += other_vector(i + s * kWidth);
        }
    }
    return {first.finish(whole, n, one), second.finish(whole, n, other_one)};
}

// Calls vector(i) for whole vectors, one(i) for the rest.
template <typename Vector, typename One>
void over(std::int64_t n, const Vector& vector, const One& one) {
    std::int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
        vector(i);
    }
    for (; i < n; ++i) {
        one(i);
    }
}

template <typename Number>
void forward_row(const Problem& problem,
                 const ForwardBuffers& buffers,
                 const RowParameters& parameters,
                 std::int64_t row) {
    using Storage = typename Number::Storage;
    using W = Wide<Number>;
    const std::int64_t n = problem.cols;
    const auto count = static_cast<float>(n);
    const Storage* x = static_cast<const Storage*>(buffers.x) + buffers.x_rows.offset(row);
    Storage* y = static_cast<Storage*>(buffers.y) + buffers.y_rows.offset(row);
    const float* weight = parameters.weight;
    const float* bias = parameters.bias;
    if (problem.kind == Kind::add_rms) {
        const Storage* residual =
            static_cast<const Storage*>(buffers.residual) + buffers.residual_rows.offset(row);
        Storage* total = static_cast<Storage*>(buffers.sum) + buffers.sum_rows.offset(row);
        over(
            n,
            [&](std::int64_t i) { W::store(total + i, W::load(x + i) + W::load(residual + i)); },
            [&](std::int64_t i) {
                total[i] = Number::narrow(Number::widen(x[i]) + Number::widen(residual[i]));
            });
        x = total;
    }
    float mean = 0.0F;
    if (problem.kind == Kind::layer) {
        mean = row_sum(
                   n,
                   [&](std::int64_t i) { return W::load(x + i); },
                   [&](std::int64_t i) { return Number::widen(x[i]); }) /
               count;
    }
    const float square = row_sum(
                             n,
                             [&](std::int64_t i) {
                                 const Floats centred = W::load(x + i) - mean;
                                 return centred * centred;
                             },
                             [&](std::int64_t i) {
                                 const float centred = Number::widen(x[i]) - mean;
                                 return centred * centred;
                             }) /
                         count;
    const float rstd = 1.0F / std::sqrt(square + problem.eps);
    if (problem.kind == Kind::layer) {
        over(
            n,
            [&](std::int64_t i) {
                W::store(y + i, (W::load(x + i) - mean) * rstd * load(weight + i) + load(bias + i));
            },
            [&](std::int64_t i) {
                y[i] = Number::narrow((Number::widen(x[i]) - mean) * rstd * weight[i] + bias[i]);
            });
        if (buffers.mean != nullptr) {
            buffers.mean[row] = mean;
        }
    } else if (problem.mode == Mode::llama) {
        over(
            n,
            [&](std::int64_t i) {
                W::store(y + i, W::round(W::load(x + i) * rstd) * load(weight + i));
            },
            [&](std::int64_t i) {
                y[i] = Number::narrow(Number::round(Number::widen(x[i]) * rstd) * weight[i]);
            });
    } else {
        over(
            n,
            [&](std::int64_t i) { W::store(y + i, W::load(x + i) * rstd * load(weight + i)); },
            [&](std::int64_t i) { y[i] = Number::narrow(Number::widen(x[i]) * rstd * weight[i]); });
    }
    if (buffers.rstd != nullptr) {
        buffers.rstd[row] = rstd;
    }
}

template <typename Number>
void backward_row(const Problem& problem,
                  const BackwardBuffers& buffers,
                  const RowParameters& parameters,
                  std::int64_t row) {
    using Storage = typename Number::Storage;
    using W = Wide<Number>;
    const std::int64_t n = problem.cols;
    const auto count = static_cast<float>(n);
    const Storage* x = static_cast<const Storage*>(buffers.x) + buffers.x_rows.offset(row);
    const Storage* dy =
        static_cast<const Storage*>(buffers.grad_y) + buffers.grad_y_rows.offset(row);
    const Storage* extra =
        buffers.grad_sum == nullptr
            ? nullptr
            : static_cast<const Storage*>(buffers.grad_sum) + buffers.grad_sum_rows.offset(row);
    Storage* dx = static_cast<Storage*>(buffers.grad_x) + buffers.grad_x_rows.offset(row);
    const float* weight = parameters.weight;
    const bool centred = problem.kind == Kind::layer;
    const float mean = centred ? buffers.mean[row] : 0.0F;
    const float rstd = buffers.rstd[row];

    const auto g = [&](std::int64_t i) {
        return W::load(dy + i) * load(weight + i);
    };
    const auto g_one = [&](std::int64_t i) {
        return Number::widen(dy[i]) * weight[i];
    };
    const auto xhat = [&](std::int64_t i) {
        return (W::load(x + i) - mean) * rstd;
    };
    const auto xhat_one = [&](std::int64_t i) {
        return (Number::widen(x[i]) - mean) * rstd;
    };
    const auto both = [&](std::int64_t i) {
        return g(i) * xhat(i);
    };
    const auto both_one = [&](std::int64_t i) {
        return g_one(i) * xhat_one(i);
    };
    const TwoSums sums =
        centred ? row_sums(n, both, both_one, g, g_one) : TwoSums{row_sum(n, both, both_one), 0.0F};
    const float projection = sums.first / count;
    const float shift = sums.second / count;
    over(
        n,
        [&](std::int64_t i) {
            Floats value = rstd * (g(i) - shift - xhat(i) * projection);
            if (extra != nullptr) {
                value += W::load(extra + i);
            }
            W::store(dx + i, value);
        },
        [&](std::int64_t i) {
            float value = rstd * (g_one(i) - shift - xhat_one(i) * projection);
            if (extra != nullptr) {
                value += Number::widen(extra[i]);
            }
            dx[i] = Number::narrow(value);
        });
}

// So many columns at a time: long pieces of the rows, while the sums stay in the L1 cache.
constexpr int kColumnBlock = 256;

// `columns` columns, a multiple of kWidth, from `column` on: kColumnLanes interleaved sums down the
// rows.
template <typename Number>
void backward_columns(const Problem& problem,
                      const BackwardBuffers& buffers,
                      std::int64_t column,
                      int columns,
                      float* weight_sums,
                      float* bias_sums) {
    using Storage = typename Number::Storage;
    using W = Wide<Number>;
    constexpr int kVectors = kColumnBlock / kWidth;
    Floats w[kColumnLanes][kVectors] = {};
    Floats b[kColumnLanes][kVectors] = {};
    const int vectors = columns / kWidth;
    for (std::int64_t row = 0; row < problem.rows; ++row) {
        const Storage* x =
            static_cast<const Storage*>(buffers.x) + buffers.x_rows.offset(row) + column;
        const Storage* dy =
            static_cast<const Storage*>(buffers.grad_y) + buffers.grad_y_rows.offset(row) + column;
        const float mean = problem.kind == Kind::layer ? buffers.mean[row] : 0.0F;
        const float rstd = buffers.rstd[row];
        Floats* w_lane = w[row % kColumnLanes];
        Floats* b_lane = b[row % kColumnLanes];
        for (int k = 0; k < vectors; ++k) {
            w_lane[k] += W::load(dy + k * kWidth) * ((W::load(x + k * kWidth) - mean) * rstd);
        }
        if (buffers.grad_bias != nullptr) {
            for (int k = 0; k < vectors; ++k) {
                b_lane[k] += W::load(dy + k * kWidth);
            }
        }
    }
    for (int width = kColumnLanes / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) {
            for (int k = 0; k < vectors; ++k) {
                w[lane][k] += w[lane + width][k];
                b[lane][k] += b[lane + width][k];
            }
        }
    }
    std::memcpy(weight_sums, w[0], static_cast<std::size_t>(columns) * sizeof(float));
    std::memcpy(bias_sums, b[0], static_cast<std::size_t>(columns) * sizeof(float));
}

// Calls body with a value of the number type that `dtype` names.
template <typename Body>
void with_type(DType dtype, const Body& body) {
    switch (dtype) {
    case DType::f32:
        return body(Float32{});
    case DType::f16:
        return body(Float16{});
    case DType::bf16:
        return body(BFloat16{});
    }
}

void forward_rows(const Problem& problem,
                  const ForwardBuffers& buffers,
                  const RowParameters& parameters,
                  std::int64_t begin,
                  std::int64_t end) {
    with_type(problem.dtype, [&](auto number) {
        for (std::int64_t row = begin; row < end; ++row) {
            forward_row<decltype(number)>(problem, buffers, parameters, row);
        }
    });
}

void backward_rows(const Problem& problem,
                   const BackwardBuffers& buffers,
                   const RowParameters& parameters,
                   std::int64_t begin,
                   std::int64_t end) {
    with_type(problem.dtype, [&](auto number) {
        for (std::int64_t row = begin; row < end; ++row) {
            backward_row<decltype(number)>(problem, buffers, parameters, row);
        }
    });
}

// end - begin is a multiple of 64.
void backward_column_blocks(const Problem& problem,
                            const BackwardBuffers& buffers,
                            float* weight_sums,
                            float* bias_sums,
                            std::int64_t begin,
                            std::int64_t end) {
    with_type(problem.dtype, [&](auto number) {
        for (std::int64_t column = begin; column < end; column += kColumnBlock) {
            const std::int64_t rest = end - column;
            backward_columns<decltype(number)>(problem,
                                               buffers,
                                               column,
                                               rest < kColumnBlock ? static_cast<int>(rest)
                                                                   : kColumnBlock,
                                               weight_sums + (column - begin),
                                               bias_sums + (column - begin));
        }
    });
}

const RowLoops kLoops{&forward_rows, &backward_rows, &backward_column_blocks};

} // namespace
} // namespace rownorm
