# SPDX-License-Identifier: Apache-2.0
"""Fakes for torch.compile, and the gradient."""

import torch

from ._ops import add_op_namespace_prefix, ops


@torch.library.register_fake(add_op_namespace_prefix("attention_forward"))
def _(q, k, v, cu_seqlens_q, *rest):
    *shape, heads, _ = q.shape  # [batch, rows] or [total]
    lse = (shape[0], heads, shape[1]) if cu_seqlens_q is None else (heads, shape[0])
    out = q.new_empty((*shape, heads, v.shape[-1]))
    return out, q.new_empty(lse, dtype=torch.float32)


@torch.library.register_fake(add_op_namespace_prefix("attention_backward"))
def _(grad_out, q, k, v, out, lse, *rest):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


@torch.library.register_fake(add_op_namespace_prefix("cache_forward"))
def _(q, k_cache, v_cache, *rest):
    batch, rows, heads, _ = q.shape
    width = v_cache.shape[-1] * (2 if v_cache.dtype == torch.uint8 else 1)
    out = q.new_empty((batch, rows, heads, width))
    return out, q.new_empty((batch, heads, rows), dtype=torch.float32)


@torch.library.register_fake(add_op_namespace_prefix("cache_append"))
def _(k_cache, v_cache, k, v, cache_seqlens, *rest):
    pass


def _setup_context(ctx, inputs, output):
    q, k, v, cu_seqlens_q, cu_seqlens_k, *rest, slopes, sinks, ctx.dropout_p, rng_state = inputs
    out, lse = output
    ctx.rest = rest
    ctx.mark_non_differentiable(lse)
    ctx.save_for_backward(
        q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, slopes, sinks, rng_state
    )


def _gradient_of_sinks(grad_out, out, lse, sinks, cu_seqlens_q):
    """A sink is a score whose value is 0: its gradient is -sum exp(sink - lse) dot(grad_out, out)."""
    products = (grad_out.float() * out.float()).sum(-1).transpose(-1, -2)  # like lse
    weights = torch.where(lse == -torch.inf, 0.0, torch.exp(sinks[:, None] - lse))
    terms = weights * products
    if cu_seqlens_q is not None:  # rows outside every sequence were never written
        row = torch.arange(terms.shape[-1], device=terms.device)
        terms = torch.where(row < cu_seqlens_q[-1], terms, 0.0)
    return -terms.sum(-1) if terms.dim() == 2 else -terms.sum((0, 2))


def _backward(ctx, grad_out, _):
    q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, slopes, sinks, rng_state = ctx.saved_tensors
    if grad_out.stride(-1) != 1:
        grad_out = grad_out.contiguous()
    grads = ops.attention_backward(
        grad_out,
        q,
        k,
        v,
        out,
        lse,
        cu_seqlens_q,
        cu_seqlens_k,
        *ctx.rest,
        slopes,
        ctx.dropout_p,
        rng_state,
    )
    grad_sinks = None
    if sinks is not None and ctx.needs_input_grad[13]:
        grad_sinks = _gradient_of_sinks(grad_out, out, lse, sinks, cu_seqlens_q)
    return (*grads, *[None] * 10, grad_sinks, None, None)


torch.library.register_autograd(
    add_op_namespace_prefix("attention_forward"), _backward, setup_context=_setup_context
)
