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


def _rotated(x, cos, sin, positions, interleaved):
    """Rotates the first 2 r columns of x [batch, rows, heads, d] by the angles of `positions`
    [batch, rows]; cos and sin are [positions, r]."""
    cos, sin = (table[positions.long()][:, :, None].float() for table in (cos, sin))
    width = 2 * cos.shape[-1]
    head = x[..., :width].float()
    if interleaved:
        a, b = head[..., 0::2], head[..., 1::2]
        head = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    else:
        a, b = head.chunk(2, dim=-1)
        head = torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return torch.cat([head.to(x.dtype), x[..., width:]], dim=-1)


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: Optional[torch.Tensor] = None,
    v: Optional[torch.Tensor] = None,
    rotary_cos: Optional[torch.Tensor] = None,
    rotary_sin: Optional[torch.Tensor] = None,
    cache_seqlens: Optional[Union[int, torch.Tensor]] = None,
    cache_batch_idx: Optional[torch.Tensor] = None,
    cache_leftpad: Optional[torch.Tensor] = None,
    block_table: Optional[torch.Tensor] = None,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Optional[torch.Tensor] = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    """q [batch, seqlen_q, heads, d] over a cache [batch of the cache, rows, heads_kv, d], or with
    block_table [pages, page size, heads_kv, d]. With k and v these are first written to the cache,
    in place, behind the cache_seqlens rows in use. No gradients.

    With return_softmax_lse also the log-sum-exp [batch, heads, seqlen_q]."""
    if alibi_slopes is not None:
        raise NotImplementedError("alibi_slopes: ALiBi is not supported")
    if (k is None) != (v is None):
        raise ValueError("v: must be given together with k")
    if (rotary_cos is None) != (rotary_sin is None):
        raise ValueError("rotary_sin: must be given together with rotary_cos")
    if softmax_scale is None:
        softmax_scale = q.shape[-1] ** -0.5
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((q.shape[0],), cache_seqlens, dtype=torch.int32, device=q.device)
    left, right = window_size
    appended = 0
    if k is not None:
        if cache_seqlens is None:
            raise ValueError("cache_seqlens: needed to know where k and v are to be written")
        appended = k.shape[1]
    if rotary_cos is not None:
        if k is None:
            raise ValueError("rotary_cos: needs k and v, which are rotated with q")
        start = cache_seqlens[:, None]
        rows = torch.arange(appended, device=q.device, dtype=torch.int32)
        k = _rotated(k, rotary_cos, rotary_sin, start + rows, rotary_interleaved)
        # Without a mask every query is at the position of the first new key, as in flash-attn.
        moves = causal or left >= 0 or right >= 0
        steps = torch.arange(q.shape[1], device=q.device, dtype=torch.int32) * int(moves)
        q = _rotated(q, rotary_cos, rotary_sin, start + steps, rotary_interleaved)
    if k is not None:
        ops.cache_append(k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, block_table)
    out, lse = ops.cache_forward(
        q,
        k_cache,
        v_cache,
        cache_seqlens,
        cache_batch_idx,
        cache_leftpad,
        block_table,
        appended,
        softmax_scale,
        causal,
        left,
        right,
        softcap,
        num_splits,
    )
    return (out, lse) if return_softmax_lse else out
