# SPDX-License-Identifier: Apache-2.0
"""Attention over a cache, and what goes with it."""

from typing import Optional, Tuple, Union

import torch

from ._ops import ops
from .options import as_float32, one_of, refuse
from .rotary import rotated


def _descale(descale, q, cache):
    """A number, [heads] or [batch, heads] -> [batch, heads]; no copy of a tensor."""
    if descale is None:
        return None
    if not isinstance(descale, torch.Tensor):
        descale = torch.full((), descale, dtype=torch.float32, device=q.device)
    shape = (q.shape[0], cache.shape[2])
    return descale if descale.dim() > 2 else descale.expand(shape)


def _check_packed(q, cu_seqlens, longest):
    """What the C++ code cannot see of packed queries; values only where looking costs no wait."""
    if longest is None:
        raise ValueError("max_seqlen_q: needed with cu_seqlens_q")
    if q.dim() != 3:
        raise ValueError("q: expected [total, heads, d] with cu_seqlens_q")
    if q.shape[0] == 0 or longest == 0:
        raise ValueError("q: has no rows")
    if cu_seqlens.dtype != torch.int32 or cu_seqlens.dim() != 1 or len(cu_seqlens) < 2:
        raise ValueError("cu_seqlens_q: expected int32 [batch + 1]")
    if cu_seqlens.device != q.device:
        raise ValueError(f"cu_seqlens_q: expected on {q.device}, got {cu_seqlens.device}")
    if q.device.type == "cpu":
        lengths = cu_seqlens[1:] - cu_seqlens[:-1]
        if cu_seqlens[0] != 0 or (lengths < 0).any() or cu_seqlens[-1] > q.shape[0]:
            raise ValueError("cu_seqlens_q: must rise from 0 to at most the rows of q")
        if lengths.max() > longest:
            raise ValueError(f"max_seqlen_q: a sequence has {int(lengths.max())} rows, more than {longest}")


class _Packed:
    """Packed queries [total, heads, d] as [batch, longest, heads, d], the last query of each sequence
    in the last row, where a mask expects it; the rows before the first are any."""

    def __init__(self, cu_seqlens: torch.Tensor, total: int, longest: int):
        self.total = total
        self.first = longest - (cu_seqlens[1:] - cu_seqlens[:-1])
        columns = torch.arange(longest, device=cu_seqlens.device)
        self.places = (cu_seqlens[:-1, None] + columns - self.first[:, None]).clamp(0, total - 1)
        rows = torch.arange(total, device=cu_seqlens.device, dtype=cu_seqlens.dtype)
        sequence = torch.bucketize(rows, cu_seqlens[1:], right=True)
        self.sequence = sequence.clamp(max=len(cu_seqlens) - 2)
        self.column = rows - cu_seqlens[self.sequence] + self.first[self.sequence]
        self.column = self.column.clamp(0, longest - 1)  # rows behind the last sequence: any

    def pad(self, q):
        return q[self.places]

    def pack(self, out, lse):
        return out[self.sequence, self.column], lse[self.sequence, :, self.column].transpose(0, 1)


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
    *,
    page_table: Optional[torch.Tensor] = None,
    rotary_seqlens: Optional[torch.Tensor] = None,
    k_descale: Optional[Union[float, torch.Tensor]] = None,
    v_descale: Optional[Union[float, torch.Tensor]] = None,
    k_scale_blocks: Optional[torch.Tensor] = None,
    v_scale_blocks: Optional[torch.Tensor] = None,
    s_aux: Optional[torch.Tensor] = None,
    sinks: Optional[torch.Tensor] = None,
    scheduler_metadata: Optional[torch.Tensor] = None,
    pack_gqa: Optional[bool] = None,
    sm_margin: int = 0,
    qv: Optional[torch.Tensor] = None,
    q_descale: Optional[torch.Tensor] = None,
    attention_chunk: int = 0,
    cu_seqlens_q: Optional[torch.Tensor] = None,
    cu_seqlens_k_new: Optional[torch.Tensor] = None,
    max_seqlen_q: Optional[int] = None,
) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    """q [batch, seqlen_q, heads, d] over a cache [batch of the cache, rows, heads_kv, d], or with
    block_table (page_table) [pages, page size, heads_kv, d]. With k and v these are first written
    to the cache, in place, behind the cache_seqlens rows in use. No gradients. With cu_seqlens_q and
    max_seqlen_q the queries are packed, q [total, heads, d], and so are the results.

    The cache may be quantised (`quantize_kv`): float8_e4m3fn with descales, a number or a tensor
    [heads_kv] or [batch, heads_kv]; or uint8, int4 with scale blocks. New rows are then quantised
    as they are written.

    sinks (s_aux) [heads]: a score without a value that takes part in the softmax. alibi_slopes
    [heads] or [batch, heads]. scheduler_metadata, pack_gqa and sm_margin change no result here, and
    nothing else. With return_softmax_lse also the log-sum-exp [batch, heads, seqlen_q]."""
    refuse(
        qv=qv,
        q_descale=q_descale,
        attention_chunk=attention_chunk,
        cu_seqlens_k_new=cu_seqlens_k_new,
    )
    packed = None
    if cu_seqlens_q is not None:
        _check_packed(q, cu_seqlens_q, max_seqlen_q)
        packed = _Packed(cu_seqlens_q, q.shape[0], max_seqlen_q)
        q = packed.pad(q)
    block_table = one_of(block_table=block_table, page_table=page_table)
    sinks = one_of(sinks=sinks, s_aux=s_aux)
    if (k is None) != (v is None):
        raise ValueError("v: must be given together with k")
    if (rotary_cos is None) != (rotary_sin is None):
        raise ValueError("rotary_sin: must be given together with rotary_cos")
    if softmax_scale is None:
        softmax_scale = max(q.shape[-1], 1) ** -0.5
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
        start = (cache_seqlens if rotary_seqlens is None else rotary_seqlens)[:, None]
        rows = torch.arange(appended, device=q.device, dtype=torch.int32)
        k = rotated(k, rotary_cos, rotary_sin, start + rows, rotary_interleaved)
        # Without a mask every query is at the position of the first new key, as in flash-attn.
        moves = causal or left >= 0 or right >= 0
        steps = torch.arange(q.shape[1], device=q.device, dtype=torch.int32) * int(moves)
        if packed is not None and moves:
            steps = (steps - packed.first[:, None]).clamp(min=0)
        q = rotated(q, rotary_cos, rotary_sin, start + steps, rotary_interleaved)
    meaning = (
        _descale(k_descale, q, k_cache),
        _descale(v_descale, q, v_cache),
        k_scale_blocks,
        v_scale_blocks,
    )
    if k is not None:
        ops.cache_append(
            k_cache, v_cache, k, v, cache_seqlens, cache_batch_idx, block_table, *meaning
        )
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
        *meaning,
        as_float32(alibi_slopes),
        as_float32(sinks),
    )
    if packed is not None:
        out, lse = packed.pack(out, lse)
    return (out, lse) if return_softmax_lse else out


def flash_attn_combine(
    out_partial: torch.Tensor,
    lse_partial: torch.Tensor,
    out: Optional[torch.Tensor] = None,
    out_dtype: Optional[torch.dtype] = None,
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Merges results over parts of the keys: out_partial [splits, ..., heads, d] and their
    log-sum-exp lse_partial [splits, ..., heads] -> out [..., heads, d], lse [..., heads]. A part
    whose log-sum-exp is -infinity takes no part."""
    if lse_partial.shape != out_partial.shape[:-1]:
        raise ValueError("lse_partial: must have the shape of out_partial without the last dimension")
    lse = torch.logsumexp(lse_partial.float(), dim=0)
    weights = torch.exp(lse_partial.float() - torch.where(lse == -torch.inf, 0.0, lse))[..., None]
    parts = torch.where(weights > 0, out_partial.float(), 0.0)
    merged = (weights * parts).sum(0)
    if out is not None:
        if out.shape != merged.shape:
            raise ValueError("out: must have the shape of one part")
        return out.copy_(merged), lse
    return merged.to(out_dtype or out_partial.dtype), lse


def get_scheduler_metadata(
    batch_size: int,
    max_seqlen_q: int,
    max_seqlen_k: int,
    num_heads_q: int,
    num_heads_kv: int,
    headdim: int,
    cache_seqlens: torch.Tensor,
    qkv_dtype: torch.dtype = torch.bfloat16,
    headdim_v: Optional[int] = None,
    cu_seqlens_q: Optional[torch.Tensor] = None,
    cu_seqlens_k_new: Optional[torch.Tensor] = None,
    cache_leftpad: Optional[torch.Tensor] = None,
    page_size: Optional[int] = None,
    max_seqlen_k_new: int = 0,
    causal: bool = False,
    window_size: Tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    has_softcap: bool = False,
    num_splits: int = 0,
    pack_gqa: Optional[bool] = None,
    sm_margin: int = 0,
) -> torch.Tensor:
    """For callers that prepare a schedule: flash_attn_with_kvcache finds its own from the shapes, so
    this holds only what was asked for, num_splits (0: its choice) for each sequence."""
    refuse(attention_chunk=attention_chunk)
    if cache_seqlens.shape != (batch_size,):
        raise ValueError("cache_seqlens: expected one number for each sequence")
    return torch.full((batch_size,), num_splits, dtype=torch.int32, device=cache_seqlens.device)
