# SPDX-License-Identifier: Apache-2.0
"""The functions of flash-attn 2. What is not supported is refused by name, never ignored."""

from typing import Optional, Tuple, Union

import torch

from ._ops import ops

Result = Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor, None]]


def _attention(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    dropout_p,
    softmax_scale,
    causal,
    window_size,
    softcap,
    alibi_slopes,
    return_attn_probs,
    block_table=None,
) -> Result:
    if dropout_p != 0.0:
        raise NotImplementedError("dropout_p: dropout is not supported")
    if alibi_slopes is not None:
        raise NotImplementedError("alibi_slopes: ALiBi is not supported")
    if block_table is not None:
        raise NotImplementedError("block_table: a paged cache is not supported")
    if softmax_scale is None:
        softmax_scale = q.shape[-1] ** -0.5
    left, right = window_size
    out, lse = ops.attention_forward(
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        softmax_scale,
        causal,
        left,
        right,
        softcap,
    )
    return (out, lse, None) if return_attn_probs else out


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Optional[torch.Tensor] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Result:
    """q [batch, seqlen_q, heads, d], k and v [batch, seqlen_k, heads_kv, d] -> like q.

    With return_attn_probs also the log-sum-exp [batch, heads, seqlen_q] and None: the
    probabilities themselves are never formed."""
    del deterministic  # it always is
    return _attention(
        q,
        k,
        v,
        None,
        None,
        0,
        0,
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        return_attn_probs,
    )


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Optional[torch.Tensor] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Optional[torch.Tensor] = None,
) -> Result:
    """The sequences lie one after the other: q [total_q, heads, d], k and v [total_k, heads_kv,
    d]; sequence i is rows cu_seqlens[i] ... cu_seqlens[i + 1] - 1. The log-sum-exp is
    [heads, total_q]."""
    del deterministic  # it always is
    return _attention(
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        return_attn_probs,
        block_table,
    )


def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, *args, **kwargs) -> Result:
    """kv [batch, seqlen_k, 2, heads_kv, d]; the rest as flash_attn_func."""
    return flash_attn_func(q, kv[:, :, 0], kv[:, :, 1], *args, **kwargs)


def flash_attn_qkvpacked_func(qkv: torch.Tensor, *args, **kwargs) -> Result:
    """qkv [batch, seqlen, 3, heads, d]; the rest as flash_attn_func."""
    return flash_attn_func(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], *args, **kwargs)


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *args,
    **kwargs,
) -> Result:
    """kv [total_k, 2, heads_kv, d]; the rest as flash_attn_varlen_func."""
    return flash_attn_varlen_func(
        q,
        kv[:, 0],
        kv[:, 1],
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        *args,
        **kwargs,
    )


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int, *args, **kwargs
) -> Result:
    """qkv [total, 3, heads, d]; the rest as flash_attn_varlen_func."""
    return flash_attn_varlen_func(
        qkv[:, 0],
        qkv[:, 1],
        qkv[:, 2],
        cu_seqlens,
        cu_seqlens,
        max_seqlen,
        max_seqlen,
        *args,
        **kwargs,
    )
