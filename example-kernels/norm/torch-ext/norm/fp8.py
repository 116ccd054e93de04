# SPDX-License-Identifier: Apache-2.0
"""RMS norm with float8_e4m3fn results: what rms_norm (or fused_add_rms_norm) gives, times the
reciprocal of a scale, saturated at 448."""

from typing import Optional

import torch

from ._ops import ops


def rms_norm_static_fp8_quant(
    out: torch.Tensor,
    input: torch.Tensor,
    weight: Optional[torch.Tensor],
    scale: torch.Tensor,
    epsilon: float,
    mode: str = "llama",
) -> None:
    """One scale for all, given: a float32 tensor of one element."""
    ops.rms_norm_static_fp8(out, input, weight, scale, epsilon, mode)


def fused_add_rms_norm_static_fp8_quant(
    out: torch.Tensor,
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: Optional[torch.Tensor],
    scale: torch.Tensor,
    epsilon: float,
    mode: str = "llama",
) -> None:
    """The same of residual += input, in place."""
    ops.fused_add_rms_norm_static_fp8(out, residual, input, weight, scale, epsilon, mode)


def _dynamic(out, input, weight, scales, epsilon, bound, residual, mode, scaling):
    if residual is None:
        ops.rms_norm_dynamic_fp8(out, scales, input, weight, bound, epsilon, mode, scaling)
    else:
        ops.fused_add_rms_norm_dynamic_fp8(
            out, scales, residual, input, weight, bound, epsilon, mode, scaling
        )


def rms_norm_dynamic_per_token_quant(
    out: torch.Tensor,
    input: torch.Tensor,
    weight: Optional[torch.Tensor],
    scales: torch.Tensor,
    epsilon: float,
    scale_ub: Optional[torch.Tensor] = None,
    residual: Optional[torch.Tensor] = None,
    mode: str = "llama",
) -> None:
    """A scale for every row, written to scales: its largest value (at most scale_ub) / 448. With a
    residual: residual += input first, in place."""
    _dynamic(out, input, weight, scales, epsilon, scale_ub, residual, mode, "per_token")


def rms_norm_per_block_quant(
    out: torch.Tensor,
    input: torch.Tensor,
    weight: Optional[torch.Tensor],
    scales: torch.Tensor,
    epsilon: float,
    residual: Optional[torch.Tensor] = None,
    mode: str = "llama",
) -> None:
    """A scale for every 128 elements of a row, written to scales [rows, size / 128]."""
    _dynamic(out, input, weight, scales, epsilon, None, residual, mode, "per_group")
