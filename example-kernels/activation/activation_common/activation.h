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
    fatrelu
};

// How one row of the input becomes one row of the output; `cols` is the width of the output.
//   unary       out = act(x)        the whole tensor is one row: rows is 1
//   gate_first  out = act(a) * b    an input row is a, then b: 2 * cols elements
//   gate_last   out = a * act(b)    the same
enum class Form : std::uint8_t { unary, gate_first, gate_last };

struct Shape {
    std::int64_t rows;
    std::int64_t cols;
};

struct Activation {
    Function function;
    Form form;
    DType dtype;
    float threshold; // fatrelu only
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

} // namespace activation
