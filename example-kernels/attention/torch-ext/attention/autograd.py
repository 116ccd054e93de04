# SPDX-License-Identifier: Apache-2.0
"""Fakes for torch.compile, and the gradient."""

import torch

from ._ops import add_op_namespace_prefix, ops


@torch.library.register_fake(add_op_namespace_prefix("attention_forward"))
def _(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    softmax_scale,
    causal,
    window_left,
    window_right,
    softcap,
):
    if cu_seqlens_q is None:
        batch, rows, heads, _ = q.shape
        lse = (batch, heads, rows)
    else:
        rows, heads, _ = q.shape
        lse = (heads, rows)
    return q.new_empty(q.shape), q.new_empty(lse, dtype=torch.float32)


@torch.library.register_fake(add_op_namespace_prefix("attention_backward"))
def _(grad_out, q, k, v, out, lse, *rest):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


@torch.library.register_fake(add_op_namespace_prefix("cache_forward"))
def _(q, *rest):
    batch, rows, heads, _ = q.shape
    return q.new_empty(q.shape), q.new_empty((batch, heads, rows), dtype=torch.float32)


@torch.library.register_fake(add_op_namespace_prefix("cache_append"))
def _(k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, block_table):
    pass


def _setup_context(ctx, inputs, output):
    q, k, v, cu_seqlens_q, cu_seqlens_k, *ctx.rest = inputs
    out, lse = output
    ctx.mark_non_differentiable(lse)
    ctx.save_for_backward(q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k)


def _backward(ctx, grad_out, _):
    q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k = ctx.saved_tensors
    if grad_out.stride(-1) != 1:
        grad_out = grad_out.contiguous()
    grads = ops.attention_backward(
        grad_out, q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, *ctx.rest
    )
    return (*grads, *[None] * 9)


torch.library.register_autograd(
    add_op_namespace_prefix("attention_forward"), _backward, setup_context=_setup_context
)
