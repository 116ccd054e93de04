# SPDX-License-Identifier: Apache-2.0
"""RMSNorm and LayerNorm over the last dimension: into a tensor of the caller, fused with the
residual addition, with 8-bit results, and differentiable."""

from typing import List, Optional

import torch

from . import autograd, layers
from ._ops import ops
from .dropout import dropout_add_ln_bwd, dropout_add_ln_fwd
from .fp8 import (
    fused_add_rms_norm_static_fp8_quant,
    rms_norm_dynamic_per_token_quant,
    rms_norm_per_block_quant,
    rms_norm_static_fp8_quant,
)


def rms_norm(
    out: torch.Tensor,
    input: torch.Tensor,
    weight: Optional[torch.Tensor],
    epsilon: float,
    mode: str = "llama",
) -> None:
    """out = the RMS norm of input; `mode` says how the weight is applied (README)."""
    ops.rms_norm(out, input, weight, epsilon, mode)


def fused_add_rms_norm(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: Optional[torch.Tensor],
    epsilon: float,
    mode: str = "llama",
) -> None:
    """In place: residual += input, then input = the RMS norm of residual."""
    ops.fused_add_rms_norm(input, residual, weight, epsilon, mode)


def layer_norm(
    out: torch.Tensor,
    input: torch.Tensor,
    weight: Optional[torch.Tensor],
    bias: Optional[torch.Tensor],
    epsilon: float,
) -> None:
    """out = the layer norm of input."""
    ops.layer_norm(out, input, weight, bias, epsilon)


def apply_rms_norm(
    input: torch.Tensor, weight: Optional[torch.Tensor], eps: float
) -> List[torch.Tensor]:
    """[out, rstd], with the weight applied in fp32 (mode "torch")."""
    return list(ops.rms_norm_forward(input, weight, eps, "torch"))


def apply_rms_norm_backward(
    grad_output: torch.Tensor,
    input: torch.Tensor,
    weight: Optional[torch.Tensor],
    output: torch.Tensor,
    rstd: torch.Tensor,
    eps: float,
    input_requires_grad: bool = True,
    weight_requires_grad: bool = True,
) -> List[Optional[torch.Tensor]]:
    """[grad_input, grad_weight], None where not wanted. `output` and `eps` are not needed: the
    gradient follows from input and rstd."""
    del output, eps
    grad_input, grad_weight = ops.rms_norm_backward(
        grad_output, None, input, weight, rstd, "torch", weight_requires_grad
    )
    return [
        grad_input if input_requires_grad else None,
        grad_weight if weight_requires_grad else None,
    ]


__all__ = [
    "rms_norm",
    "fused_add_rms_norm",
    "layer_norm",
    "apply_rms_norm",
    "apply_rms_norm_backward",
    "rms_norm_static_fp8_quant",
    "fused_add_rms_norm_static_fp8_quant",
    "rms_norm_dynamic_per_token_quant",
    "rms_norm_per_block_quant",
    "dropout_add_ln_fwd",
    "dropout_add_ln_bwd",
    "autograd",
    "layers",
]
