# SPDX-License-Identifier: Apache-2.0
"""Layers for `kernelize`: state comes from the replaced module, whose attributes are named by
the annotations; all are differentiable and traceable."""

import torch
from torch import nn

from .autograd import layer_norm, rms_norm


class RMSNorm(nn.Module):
    """x * rstd * weight in fp32, rounded once. Replaces modules that hold `variance_epsilon`."""

    has_backward: bool = True
    can_torch_compile: bool = True

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.variance_epsilon, "torch")


class LlamaRMSNorm(nn.Module):
    """x * rstd is rounded before the product with weight, as in Transformers' LlamaRMSNorm."""

    has_backward: bool = True
    can_torch_compile: bool = True

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.variance_epsilon, "llama")


class LayerNorm(nn.Module):
    """torch.nn.LayerNorm over the last dimension, bias included."""

    has_backward: bool = True
    can_torch_compile: bool = True

    weight: torch.Tensor
    bias: torch.Tensor
    eps: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return layer_norm(hidden_states, self.weight, self.bias, self.eps)


__all__ = ["RMSNorm", "LlamaRMSNorm", "LayerNorm"]
