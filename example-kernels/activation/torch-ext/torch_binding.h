// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <torch/csrc/stable/tensor.h>

// The operators that write into a tensor of the caller. `Op` names one row of the table in
// torch_binding.cpp.
enum class Op {
    silu_and_mul,
    mul_and_silu,
    gelu_and_mul,
    gelu_tanh_and_mul,
    fatrelu_and_mul,
    silu,
    gelu,
    gelu_tanh,
    gelu_fast,
    gelu_new,
    gelu_quick,
    relu2,
    swigluoai_and_mul,
};

template <Op op>
void activation_out(torch::stable::Tensor& out, const torch::stable::Tensor& input);

void fatrelu_and_mul(torch::stable::Tensor& out,
                     const torch::stable::Tensor& input,
                     double threshold);

// alpha 1.702 and limit 7 are gpt-oss's.
void swigluoai_and_mul(torch::stable::Tensor& out,
                       const torch::stable::Tensor& input,
                       double alpha,
                       double limit);

// silu_and_mul times 1 / scale as float8_e4m3fn.
void silu_and_mul_fp8(torch::stable::Tensor& out,
                      const torch::stable::Tensor& input,
                      const torch::stable::Tensor& scale);

// The pair that autograd uses; `function` is the name of an operator above, `first` and `second`
// its numbers (threshold; alpha and limit).
torch::stable::Tensor activation_forward(const torch::stable::Tensor& input,
                                         std::string function,
                                         double first,
                                         double second);
torch::stable::Tensor activation_backward(const torch::stable::Tensor& grad_out,
                                          const torch::stable::Tensor& input,
                                          std::string function,
                                          double first,
                                          double second);
