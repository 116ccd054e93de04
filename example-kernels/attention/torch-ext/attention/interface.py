# SPDX-License-Identifier: Apache-2.0
"""The functions of flash-attn 2, with the keywords of flash-attn 3 behind them. What is not
supported is refused by name, never ignored."""

from typing import Optional, Tuple, Union

import torch

from ._ops import ops
from .cache import flash_attn_with_kvcache
from .options import as_float32, one_of, refuse

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
    sinks=None,
    s_aux=None,
    num_splits=1,
    pack_gqa=None,
    sm_margin=0,
    **unsupported,
) -> Result:
    """num_splits, pack_gqa and sm_margin change no result here, and nothing else."""
    refuse(**unsupported)
    rng_state = None
    if dropout_p > 0:
        rng_state = torch.randint(1 << 62, (2,), dtype=torch.int64, device=q.device)
    if softmax_scale is None:
        softmax_scale = max(q.shape[-1], 1) ** -0.5
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
        as_float32(alibi_slopes),
        as_float32(one_of(sinks=sinks, s_aux=s_aux)),
        dropout_p,
        rng_state,
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
    *,
    sinks: Optional[torch.Tensor] = None,
    s_aux: Optional[torch.Tensor] = None,
    num_splits: int = 1,
    pack_gqa: Optional[bool] = None,
    sm_margin: int = 0,
    qv: Optional[torch.Tensor] = None,
    q_descale: Optional[torch.Tensor] = None,
    k_descale: Optional[torch.Tensor] = None,
    v_descale: Optional[torch.Tensor] = None,
    attention_chunk: int = 0,
) -> Result:
    """q [batch, seqlen_q, heads, d], k [batch, seqlen_k, heads_kv, d], v [batch, seqlen_k, heads_kv,
    d_v] -> [batch, seqlen_q, heads, d_v].

    dropout_p of the probabilities become 0, the others grow by 1 / (1 - dropout_p); which ones is
    drawn from PyTorch's generator. alibi_slopes [heads] or [batch, heads]; sinks (s_aux) [heads]: a score without a value that takes
    part in the softmax. With return_attn_probs also the log-sum-exp [batch, heads, seqlen_q] and
    None: the probabilities themselves are never formed."""
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
        sinks=sinks,
        s_aux=s_aux,
        qv=qv,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
        attention_chunk=attention_chunk,
    )


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: Optional[torch.Tensor],
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
    *,
    sinks: Optional[torch.Tensor] = None,
    s_aux: Optional[torch.Tensor] = None,
    num_splits: int = 1,
    pack_gqa: Optional[bool] = None,
    sm_margin: int = 0,
    qv: Optional[torch.Tensor] = None,
    q_descale: Optional[torch.Tensor] = None,
    k_descale: Optional[torch.Tensor] = None,
    v_descale: Optional[torch.Tensor] = None,
    attention_chunk: int = 0,
    seqused_q: Optional[torch.Tensor] = None,
    seqused_k: Optional[torch.Tensor] = None,
    page_table: Optional[torch.Tensor] = None,
) -> Result:
    """The sequences lie one after the other: q [total_q, heads, d], k and v [total_k, heads_kv,
    d]; sequence i is rows cu_seqlens[i] ... cu_seqlens[i + 1] - 1. The log-sum-exp is
    [heads, total_q]. The rest as flash_attn_func.

    With block_table (page_table) [batch, pages of a sequence] k and v are pages [pages, page size,
    heads_kv, d], of which seqused_k, or else the differences of cu_seqlens_k, are in use; without
    gradients and dropout."""
    del deterministic  # it always is
    table = one_of(block_table=block_table, page_table=page_table)
    if table is not None:
        refuse(dropout_p=dropout_p, seqused_q=seqused_q, qv=qv, q_descale=q_descale)
        if cu_seqlens_q is None:
            raise ValueError("cu_seqlens_q: needed")
        if seqused_k is None:
            if cu_seqlens_k is None:
                raise ValueError("seqused_k: needed without cu_seqlens_k")
            seqused_k = cu_seqlens_k[1:] - cu_seqlens_k[:-1]
        result = flash_attn_with_kvcache(
            q,
            k,
            v,
            cache_seqlens=seqused_k,
            block_table=table,
            softmax_scale=softmax_scale,
            causal=causal,
            window_size=window_size,
            softcap=softcap,
            alibi_slopes=alibi_slopes,
            return_softmax_lse=return_attn_probs,
            k_descale=k_descale,
            v_descale=v_descale,
            sinks=sinks,
            s_aux=s_aux,
            cu_seqlens_q=cu_seqlens_q,
            max_seqlen_q=max_seqlen_q,
            attention_chunk=attention_chunk,
        )
        return (*result, None) if return_attn_probs else result
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
        sinks=sinks,
        s_aux=s_aux,
        seqused_q=seqused_q,
        seqused_k=seqused_k,
        qv=qv,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
        attention_chunk=attention_chunk,
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
