// SPDX-License-Identifier: Apache-2.0
//
// The launcher interface: plain pointers and sizes, no framework and no toolkit header.
// torch-ext/ fills these structures after checking the tensors; each backend folder
// implements its part.
#pragma once

#include <cstdint>

namespace activation {

enum class DType : std::uint8_t { f32, f16, bf16 };

enum class Function : std::uint8_t {
    silu,
    gelu,
    gelu_tanh,
    gelu_fast,
    gelu_new,
    gelu_quick,
    fatrelu,
    relu2,
    swiglu_oai
};

// How one row of the input becomes one row of the output; `cols` is the width of the output.
//   unary       out = act(x)        the whole tensor is one row: rows is 1
//   gate_first  out = act(a) * b    an input row is a, then b: 2 * cols elements
//   gate_last   out = a * act(b)    the same
//   interleaved out = f(a, b)       an input row is a0, b0, a1, b1, ...
enum class Form : std::uint8_t { unary, gate_first, gate_last, interleaved };

// What some functions take beside their operands.
struct Scalars {
    float first;  // fatrelu: the threshold; swiglu_oai: alpha
    float second; // swiglu_oai: the limit
};

struct Shape {
    std::int64_t rows;
    std::int64_t cols;
};

struct Activation {
    Function function;
    Form form;
    DType dtype;
    Scalars scalars;
};

struct ForwardBuffers {
    void* out;     // rows x cols
    const void* x; // rows x (1 or 2) * cols
};

struct BackwardBuffers {
    void* grad_x;         // like x
    const void* grad_out; // rows x cols
    const void* x;        // rows x (1 or 2) * cols
};

// CPU: processes elements [begin, end) of the rows x cols output; safe to call from many
// threads on disjoint ranges.
void forward_cpu(const Activation& activation,
                 const ForwardBuffers& buffers,
                 Shape shape,
                 std::int64_t begin,
                 std::int64_t end);
void backward_cpu(const Activation& activation,
                  const BackwardBuffers& buffers,
                  Shape shape,
                  std::int64_t begin,
                  std::int64_t end);

// silu(a) * b as silu_and_mul rounds it, times 1 / scale, as 8-bit floats (e4m3, saturated at 448).
struct QuantBuffers {
    void* out;          // rows x cols bytes
    const void* x;      // rows x 2 * cols
    const float* scale; // one value
};

void silu_and_mul_fp8_cpu(
    DType dtype, const QuantBuffers& buffers, Shape shape, std::int64_t begin, std::int64_t end);

// CUDA: enqueues on `stream` (a cudaStream_t) of the current device. Returns nullptr, or the
// text of the launch error.
const char* forward_cuda(const Activation& activation,
                         const ForwardBuffers& buffers,
                         Shape shape,
                         void* stream);
const char* backward_cuda(const Activation& activation,
                          const BackwardBuffers& buffers,
                          Shape shape,
                          void* stream);

const char*
silu_and_mul_fp8_cuda(DType dtype, const QuantBuffers& buffers, Shape shape, void* stream);

} // namespace activation
