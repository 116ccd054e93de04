# SPDX-License-Identifier: Apache-2.0
"""Activation functions that write into a tensor of the caller, and layers made of them."""

import torch

from . import autograd, layers
from ._ops import ops


def silu_and_mul(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = silu(x[..., :d]) * x[..., d:]"""
    ops.silu_and_mul(out, x)
    return out


def mul_and_silu(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = x[..., :d] * silu(x[..., d:])"""
    ops.mul_and_silu(out, x)
    return out


def gelu_and_mul(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = gelu(x[..., :d]) * x[..., d:], gelu with erf"""
    ops.gelu_and_mul(out, x)
    return out


def gelu_tanh_and_mul(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = gelu(x[..., :d]) * x[..., d:], gelu with tanh"""
    ops.gelu_tanh_and_mul(out, x)
    return out


def fatrelu_and_mul(out: torch.Tensor, x: torch.Tensor, threshold: float = 0.0) -> torch.Tensor:
    """out = (x[..., :d] if above the threshold, else 0) * x[..., d:]"""
    ops.fatrelu_and_mul(out, x, threshold)
    return out


def gelu(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = x * Phi(x), with erf"""
    ops.gelu(out, x)
    return out


def silu(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = x * sigmoid(x)"""
    ops.silu(out, x)
    return out


def gelu_tanh(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = gelu(x) by the tanh approximation, one rounding"""
    ops.gelu_tanh(out, x)
    return out


def gelu_fast(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The tanh approximation as Transformers' FastGELU evaluates it, one rounding per step"""
    ops.gelu_fast(out, x)
    return out


def gelu_new(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The tanh approximation as Transformers' NewGELU evaluates it, one rounding per step"""
    ops.gelu_new(out, x)
    return out


def gelu_quick(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = x * sigmoid(1.702 * x)"""
    ops.gelu_quick(out, x)
    return out


def relu2(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """out = relu(x) ** 2"""
    ops.relu2(out, x)
    return out


def swigluoai_and_mul(
    out: torch.Tensor, x: torch.Tensor, alpha: float = 1.702, limit: float = 7.0
) -> torch.Tensor:
    """out = (clamp(x[..., 1::2], -limit, limit) + 1) * g * sigmoid(alpha * g) with
    g = min(x[..., ::2], limit): the clamped SwiGLU of gpt-oss, operands interleaved"""
    ops.swigluoai_and_mul(out, x, alpha, limit)
    return out


def silu_and_mul_quant(out: torch.Tensor, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """out = silu_and_mul(x) * (1 / scale), saturated at 448, in float8_e4m3fn"""
    ops.silu_and_mul_fp8(out, x, scale)
    return out


__all__ = [
    "silu_and_mul",
    "mul_and_silu",
    "gelu_and_mul",
    "gelu_tanh_and_mul",
    "fatrelu_and_mul",
    "swigluoai_and_mul",
    "silu_and_mul_quant",
    "relu2",
    "gelu_fast",
    "gelu_new",
    "gelu_quick",
    "gelu_tanh",
    "silu",
    "gelu",
    "autograd",
    "layers",
]
