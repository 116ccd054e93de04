# SPDX-License-Identifier: Apache-2.0
"""Fakes for torch.compile, gradients, and the differentiable functions."""

from typing import Optional, Tuple

import torch

from ._ops import add_op_namespace_prefix, ops


def _statistic(input):
    return input.new_empty(input.shape[:-1], dtype=torch.float32)


@torch.library.register_fake(add_op_namespace_prefix("rms_norm"))
def _(out, input, weight, epsilon, weight_mode):
    return None


@torch.library.register_fake(add_op_namespace_prefix("layer_norm"))
def _(out, input, weight, bias, epsilon):
    return None


@torch.library.register_fake(add_op_namespace_prefix("fused_add_rms_norm"))
def _(input, residual, weight, epsilon, weight_mode):
    return None


def _nothing(*args):
    return None


for _name in ("rms_norm", "fused_add_rms_norm"):
    for _scaling in ("static", "dynamic"):
        torch.library.register_fake(add_op_namespace_prefix(f"{_name}_{_scaling}_fp8"))(_nothing)


@torch.library.register_fake(add_op_namespace_prefix("rms_norm_forward"))
def _(input, weight, epsilon, weight_mode):
    return input.new_empty(input.shape), _statistic(input)


@torch.library.register_fake(add_op_namespace_prefix("add_rms_norm_forward"))
def _(input, residual, weight, epsilon, weight_mode):
    return input.new_empty(input.shape), input.new_empty(input.shape), _statistic(input)


@torch.library.register_fake(add_op_namespace_prefix("rms_norm_backward"))
def _(grad_out, grad_sum, input, weight, rstd, weight_mode, weight_grad):
    dtype = input.dtype if weight is None else weight.dtype
    size = input.shape[-1] if weight_grad else 0
    return input.new_empty(input.shape), input.new_empty((size,), dtype=dtype)


@torch.library.register_fake(add_op_namespace_prefix("layer_norm_forward"))
def _(input, weight, bias, epsilon):
    return input.new_empty(input.shape), _statistic(input), _statistic(input)


@torch.library.register_fake(add_op_namespace_prefix("layer_norm_backward"))
def _(grad_out, input, weight, mean, rstd, weight_grad):
    dtype = input.dtype if weight is None else weight.dtype
    size = input.shape[-1] if weight_grad else 0
    return (
        input.new_empty(input.shape),
        input.new_empty((size,), dtype=dtype),
        input.new_empty((size,), dtype=dtype),
    )


def _rms_setup(ctx, inputs, output):
    input, weight, _, ctx.mode = inputs
    _, rstd = output
    ctx.mark_non_differentiable(rstd)
    ctx.save_for_backward(input, weight, rstd)


def _rms_backward(ctx, grad_out, _):
    input, weight, rstd = ctx.saved_tensors
    wanted = ctx.needs_input_grad[1]
    grad_input, grad_weight = ops.rms_norm_backward(
        grad_out.contiguous(), None, input, weight, rstd, ctx.mode, wanted
    )
    return grad_input, grad_weight if wanted else None, None, None


torch.library.register_autograd(
    add_op_namespace_prefix("rms_norm_forward"), _rms_backward, setup_context=_rms_setup
)


def _add_rms_setup(ctx, inputs, output):
    _, _, weight, _, ctx.mode = inputs
    _, total, rstd = output
    ctx.mark_non_differentiable(rstd)
    ctx.save_for_backward(total, weight, rstd)


def _add_rms_backward(ctx, grad_out, grad_sum, _):
    total, weight, rstd = ctx.saved_tensors
    wanted = ctx.needs_input_grad[2]
    grad_input, grad_weight = ops.rms_norm_backward(
        grad_out.contiguous(), grad_sum.contiguous(), total, weight, rstd, ctx.mode, wanted
    )
    return grad_input, grad_input, grad_weight if wanted else None, None, None


torch.library.register_autograd(
    add_op_namespace_prefix("add_rms_norm_forward"),
    _add_rms_backward,
    setup_context=_add_rms_setup,
)


def _layer_setup(ctx, inputs, output):
    input, weight, bias, _ = inputs
    _, mean, rstd = output
    ctx.mark_non_differentiable(mean, rstd)
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.save_for_backward(input, weight, mean, rstd)


def _layer_backward(ctx, grad_out, _mean, _rstd):
    input, weight, mean, rstd = ctx.saved_tensors
    weight_wanted, bias_wanted = ctx.needs_input_grad[1:3]
    grad_input, grad_weight, grad_bias = ops.layer_norm_backward(
        grad_out.contiguous(), input, weight, mean, rstd, weight_wanted or bias_wanted
    )
    return (
        grad_input,
        grad_weight if weight_wanted else None,
        grad_bias.to(ctx.bias_dtype) if bias_wanted else None,
        None,
    )


torch.library.register_autograd(
    add_op_namespace_prefix("layer_norm_forward"), _layer_backward, setup_context=_layer_setup
)


def _rows(x: torch.Tensor) -> torch.Tensor:
    """x itself if its last dimension is contiguous and it has at most three, else a copy."""
    return x if x.dim() <= 3 and x.stride(-1) == 1 else x.contiguous()


def rms_norm(
    x: torch.Tensor, weight: Optional[torch.Tensor], eps: float, mode: str = "llama"
) -> torch.Tensor:
    return ops.rms_norm_forward(_rows(x), weight, eps, mode)[0]


def add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: Optional[torch.Tensor],
    eps: float,
    mode: str = "llama",
) -> Tuple[torch.Tensor, torch.Tensor]:
    """The norm of x + residual, and x + residual."""
    out, total, _ = ops.add_rms_norm_forward(_rows(x), _rows(residual), weight, eps, mode)
    return out, total


def layer_norm(
    x: torch.Tensor,
    weight: Optional[torch.Tensor],
    bias: Optional[torch.Tensor],
    eps: float,
) -> torch.Tensor:
    return ops.layer_norm_forward(_rows(x), weight, bias, eps)[0]
