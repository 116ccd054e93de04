// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <torch/csrc/stable/tensor.h>
#include <tuple>

// In every function: a missing weight is 1 (mode gemma: 0), a missing bias is 0; `mode` is
// "torch", "llama" or "gemma" (norm_common/norm.h says what they mean).

void rms_norm(torch::stable::Tensor& out,
              const torch::stable::Tensor& input,
              const std::optional<torch::stable::Tensor>& weight,
              double epsilon,
              std::string mode);

void layer_norm(torch::stable::Tensor& out,
                const torch::stable::Tensor& input,
                const std::optional<torch::stable::Tensor>& weight,
                const std::optional<torch::stable::Tensor>& bias,
                double epsilon);

// In place: residual becomes input + residual, input becomes its norm.
void fused_add_rms_norm(torch::stable::Tensor& input,
                        torch::stable::Tensor& residual,
                        const std::optional<torch::stable::Tensor>& weight,
                        double epsilon,
                        std::string mode);

// -> out, rstd
std::tuple<torch::stable::Tensor, torch::stable::Tensor>
rms_norm_forward(const torch::stable::Tensor& input,
                 const std::optional<torch::stable::Tensor>& weight,
                 double epsilon,
                 std::string mode);

// -> out, sum, rstd
std::tuple<torch::stable::Tensor, torch::stable::Tensor, torch::stable::Tensor>
add_rms_norm_forward(const torch::stable::Tensor& input,
                     const torch::stable::Tensor& residual,
                     const std::optional<torch::stable::Tensor>& weight,
                     double epsilon,
                     std::string mode);

// -> grad_input, grad_weight (empty unless weight_grad). grad_sum is added to grad_input.
std::tuple<torch::stable::Tensor, torch::stable::Tensor>
rms_norm_backward(const torch::stable::Tensor& grad_out,
                  const std::optional<torch::stable::Tensor>& grad_sum,
                  const torch::stable::Tensor& input,
                  const std::optional<torch::stable::Tensor>& weight,
                  const torch::stable::Tensor& rstd,
                  std::string mode,
                  bool weight_grad);

// -> out, mean, rstd
std::tuple<torch::stable::Tensor, torch::stable::Tensor, torch::stable::Tensor>
layer_norm_forward(const torch::stable::Tensor& input,
                   const std::optional<torch::stable::Tensor>& weight,
                   const std::optional<torch::stable::Tensor>& bias,
                   double epsilon);

// -> grad_input, grad_weight, grad_bias (the last two empty unless weight_grad)
std::tuple<torch::stable::Tensor, torch::stable::Tensor, torch::stable::Tensor>
layer_norm_backward(const torch::stable::Tensor& grad_out,
                    const torch::stable::Tensor& input,
                    const std::optional<torch::stable::Tensor>& weight,
                    const torch::stable::Tensor& mean,
                    const torch::stable::Tensor& rstd,
                    bool weight_grad);

// RMS norm with float8_e4m3fn results; norm_common/norm.h says how the scales come about. In the
// fused ones residual becomes input + residual. `scaling` is "per_token" or "per_group".
void rms_norm_static_fp8(torch::stable::Tensor& out,
                         const torch::stable::Tensor& input,
                         const std::optional<torch::stable::Tensor>& weight,
                         const torch::stable::Tensor& scale,
                         double epsilon,
                         std::string mode);

void fused_add_rms_norm_static_fp8(torch::stable::Tensor& out,
                                   torch::stable::Tensor& residual,
                                   const torch::stable::Tensor& input,
                                   const std::optional<torch::stable::Tensor>& weight,
                                   const torch::stable::Tensor& scale,
                                   double epsilon,
                                   std::string mode);

void rms_norm_dynamic_fp8(torch::stable::Tensor& out,
                          torch::stable::Tensor& scales,
                          const torch::stable::Tensor& input,
                          const std::optional<torch::stable::Tensor>& weight,
                          const std::optional<torch::stable::Tensor>& bound,
                          double epsilon,
                          std::string mode,
                          std::string scaling);

void fused_add_rms_norm_dynamic_fp8(torch::stable::Tensor& out,
                                    torch::stable::Tensor& scales,
                                    torch::stable::Tensor& residual,
                                    const torch::stable::Tensor& input,
                                    const std::optional<torch::stable::Tensor>& weight,
                                    const std::optional<torch::stable::Tensor>& bound,
                                    double epsilon,
                                    std::string mode,
                                    std::string scaling);
