// SPDX-License-Identifier: Apache-2.0
//
// The launcher interface: plain pointers, sizes and strides; no framework, no toolkit header.
// torch-ext/ fills these structures after checking the tensors; each backend folder
// implements its part.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define NORM_INLINE __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define NORM_INLINE inline __attribute__((always_inline))
#else
#define NORM_INLINE inline
#endif

namespace rownorm {

enum class DType : std::uint8_t { f32, f16, bf16 };

// What is computed for one row x of n elements, all in fp32:
//   rms      x * rstd * w                   rstd = 1 / sqrt(mean(x^2) + eps)
//   add_rms  s = round(x + residual); then rms of s; s is a result too
//   layer    (x - mean) * rstd * w + b      rstd = 1 / sqrt(mean((x - mean)^2) + eps)
enum class Kind : std::uint8_t { rms, add_rms, layer };

// How rms applies the weight. `round` is rounding to the element type.
//   torch  round(x * rstd * w)
//   llama  round(round(x * rstd) * w)
//   gemma  round(x * rstd * (1 + w))
enum class Mode : std::uint8_t { torch, llama, gemma };

// Where the rows of a tensor lie, in elements: row r starts at
//   (r / inner) * outer_stride + (r % inner) * inner_stride.
// Two levels serve a head dimension inside a packed QKV tensor; one level has inner = rows.
struct Rows {
    std::int64_t inner = 1;
    std::int64_t outer_stride = 0;
    std::int64_t inner_stride = 0;

    NORM_INLINE std::int64_t offset(std::int64_t row) const {
        const std::int64_t outer = row < inner ? 0 : row / inner;
        return outer * outer_stride + (row - outer * inner) * inner_stride;
    }
};

struct Problem {
    std::int64_t rows;
    std::int64_t cols;
    Kind kind;
    Mode mode;
    DType dtype;        // of everything but the fields below
    DType weight_dtype; // of weight and bias: `dtype` or f32
    float eps;
};

struct ForwardBuffers {
    const void* x;
    const void* residual; // add_rms only
    const void* weight;   // may be null: 1 (gemma: 0)
    const void* bias;     // layer only; may be null
    void* y;
    void* sum;   // add_rms only; may be `residual`; y may be x
    float* mean; // layer only; may be null
    float* rstd; // may be null
    Rows x_rows, residual_rows, y_rows, sum_rows;
};

struct BackwardBuffers {
    const void* grad_y;
    const void* grad_sum; // gradient of add_rms's second result, added to grad_x; may be null
    const void* x;        // add_rms: the sum
    const void* weight;   // may be null
    const float* mean;    // layer only
    const float* rstd;
    void* grad_x;
    void* grad_weight; // weight_dtype; null: not wanted
    void* grad_bias;   // weight_dtype; null: not wanted
    float* partials;   // CUDA: partial_rows() * cols floats, twice for layer
    Rows grad_y_rows, grad_sum_rows, x_rows, grad_x_rows;
};

// How rms and add_rms become 8-bit floats (e4m3): q = e4m3(value * (1 / scale)), saturated at 448,
// where value is what the norm would have stored, rounded to the element type.
//   per_tensor  the scale is given
//   per_token   scale = largest |value| of the row / 448, at least 1 / (448 * 512)
//   per_group   the same for every kGroup elements of a row
enum class Scaling : std::uint8_t { per_tensor, per_token, per_group };
constexpr std::int64_t kGroup = 128;
constexpr float kLargestQuantum = 448.0F;
constexpr float kSmallestScale = 1.0F / (kLargestQuantum * 512.0F);

struct QuantBuffers {
    void* out;          // rows x cols bytes
    const float* scale; // per_tensor only
    float* scales;      // per_token: rows; per_group: rows x cols / kGroup
    const float* bound; // per_token: values count as at most this; may be null
};

// CPU: rows [begin, end), or for the parameter gradients columns [begin, end). Safe to call from
// many threads on disjoint ranges; the result does not depend on how the range is cut.
void forward_cpu(const Problem& problem,
                 const ForwardBuffers& buffers,
                 std::int64_t begin,
                 std::int64_t end);
// `buffers` without y.
void quantized_cpu(const Problem& problem,
                   const ForwardBuffers& buffers,
                   Scaling scaling,
                   const QuantBuffers& quant,
                   std::int64_t begin,
                   std::int64_t end);
void backward_rows_cpu(const Problem& problem,
                       const BackwardBuffers& buffers,
                       std::int64_t begin,
                       std::int64_t end);
void backward_columns_cpu(const Problem& problem,
                          const BackwardBuffers& buffers,
                          std::int64_t begin,
                          std::int64_t end);

// CUDA: enqueues on `stream` (a cudaStream_t) of the current device. Returns nullptr, or the
// text of the launch error.
const char* forward_cuda(const Problem& problem, const ForwardBuffers& buffers, void* stream);
const char* quantized_cuda(const Problem& problem,
                           const ForwardBuffers& buffers,
                           Scaling scaling,
                           const QuantBuffers& quant,
                           void* stream);
const char* backward_cuda(const Problem& problem, const BackwardBuffers& buffers, void* stream);
// Rows of the fp32 workspace in which backward_cuda gathers the parameter gradients.
std::int64_t partial_rows(const Problem& problem);

} // namespace rownorm
