# SPDX-License-Identifier: Apache-2.0
"""Layers for `kernelize`: no state but what the replaced module has, differentiable, traceable."""

import torch
from torch import nn

from .autograd import activation


class SiluAndMul(nn.Module):
    """silu(x[..., :d]) * x[..., d:]"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "silu_and_mul")


class MulAndSilu(nn.Module):
    """x[..., :d] * silu(x[..., d:])"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "mul_and_silu")


class GeluAndMul(nn.Module):
    """gelu(x[..., :d]) * x[..., d:], gelu with erf"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "gelu_and_mul")


class GeluTanhAndMul(nn.Module):
    """gelu(x[..., :d]) * x[..., d:], gelu with tanh"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "gelu_tanh_and_mul")


class FatreluAndMul(nn.Module):
    """fatrelu(x[..., :d]) * x[..., d:]; the replaced module may hold a `threshold`, else it is 0"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "fatrelu_and_mul", float(getattr(self, "threshold", 0.0)))


class Silu(nn.Module):
    """x * sigmoid(x)"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "silu")


class Gelu(nn.Module):
    """gelu with erf"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "gelu")


class GeluTanh(nn.Module):
    """gelu with tanh, one rounding"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "gelu_tanh")


class FastGELU(nn.Module):
    """Transformers' FastGELU"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "gelu_fast")


class NewGELU(nn.Module):
    """Transformers' NewGELU"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "gelu_new")


class QuickGELU(nn.Module):
    """x * sigmoid(1.702 * x)"""

    has_backward: bool = True
    can_torch_compile: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return activation(x, "gelu_quick")


__all__ = [
    "SiluAndMul",
    "MulAndSilu",
    "GeluAndMul",
    "GeluTanhAndMul",
    "FatreluAndMul",
    "Silu",
    "Gelu",
    "GeluTanh",
    "FastGELU",
    "NewGELU",
    "QuickGELU",
]
