# SPDX-License-Identifier: Apache-2.0
"""Fakes for torch.compile and the differentiable form of every activation."""

import torch

from ._ops import add_op_namespace_prefix, ops

GATED = (
    "silu_and_mul",
    "mul_and_silu",
    "gelu_and_mul",
    "gelu_tanh_and_mul",
    "fatrelu_and_mul",
    "swigluoai_and_mul",
)
UNARY = ("silu", "gelu", "gelu_tanh", "gelu_fast", "gelu_new", "gelu_quick", "relu2")


def _fake_out(out, input, *numbers):
    return None


for _name in GATED + UNARY + ("silu_and_mul_fp8",):
    torch.library.register_fake(add_op_namespace_prefix(_name))(_fake_out)


@torch.library.register_fake(add_op_namespace_prefix("activation_forward"))
def _fake_forward(input, function, first, second):
    shape = list(input.shape)
    if function in GATED:
        shape[-1] = shape[-1] // 2
    return input.new_empty(shape)


@torch.library.register_fake(add_op_namespace_prefix("activation_backward"))
def _fake_backward(grad_out, input, function, first, second):
    return torch.empty_like(input)


def _setup_context(ctx, inputs, output):
    input, ctx.function, *ctx.numbers = inputs
    ctx.save_for_backward(input)


def _backward(ctx, grad_out):
    (input,) = ctx.saved_tensors
    grad_input = ops.activation_backward(
        grad_out.contiguous(), input, ctx.function, *ctx.numbers
    )
    return grad_input, None, None, None


torch.library.register_autograd(
    add_op_namespace_prefix("activation_forward"), _backward, setup_context=_setup_context
)


def activation(
    x: torch.Tensor, function: str, first: float = 0.0, second: float = 0.0
) -> torch.Tensor:
    """The differentiable activation; `function` is the name of one of this package's functions,
    `first` and `second` the numbers it takes (fatrelu's threshold; swigluoai's alpha and limit)."""
    return ops.activation_forward(x.contiguous(), function, first, second)
