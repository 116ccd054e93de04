# SPDX-License-Identifier: Apache-2.0
"""Keys and values of a cache in 8 and 4 bits, as `flash_attn_with_kvcache` reads them.

fp8   float8_e4m3fn of the same shape; value = number * descale of the head.
int4  uint8 [..., rows, heads, d / 2]: channel 2 i in the low half of byte i, channel 2 i + 1 in the
      high half; scale blocks, float16 [..., rows, heads, groups, 2], a pair (scale, zero) for each
      group of channels; value = (code - zero) * scale, zero an integer 0 ... 15."""

from typing import Optional, Tuple

import torch

_LARGEST_E4M3 = 448.0
_LARGEST_FP16 = 65504.0


def quantize_kv(
    x: torch.Tensor,
    format: str = "int4",
    group_size: Optional[int] = None,
    descale: Optional[torch.Tensor] = None,
) -> Tuple[torch.Tensor, torch.Tensor]:
    """x [..., rows, heads, d], keys or values -> (numbers, scales).

    "fp8": (float8_e4m3fn like x, descale [heads]); without `descale` the largest number of each
    head becomes the largest of e4m3.
    "int4": (codes, scale blocks); group_size channels share a scale: d (the default), or a multiple
    of 32 that divides d. The blocks of a head lie together in memory, which is faster to read."""
    if format == "fp8":
        if group_size is not None or x.dim() < 2:
            raise ValueError("group_size: fp8 has one scale for a head")
        numbers = x.float()
        if descale is None:
            highest = numbers.abs().transpose(-2, -1).reshape(-1, x.shape[-2])
            highest = highest.amax(0) if len(highest) else highest.new_zeros(x.shape[-2])
            descale = torch.where(highest > 0, highest / _LARGEST_E4M3, torch.ones_like(highest))
        numbers = numbers / descale.float()[..., None]
        return numbers.clamp(-_LARGEST_E4M3, _LARGEST_E4M3).to(torch.float8_e4m3fn), descale
    if format != "int4":
        raise ValueError(f"format: expected 'int4' or 'fp8', got {format!r}")
    if descale is not None:
        raise ValueError("descale: int4 has scale blocks instead")
    d = x.shape[-1]
    group_size = d if group_size is None else group_size
    if d % 2 != 0 or d % group_size != 0 or (group_size != d and group_size % 32 != 0):
        raise ValueError(f"group_size: expected {d} or a multiple of 32 that divides it")
    numbers = x.float().unflatten(-1, (d // group_size, group_size))
    low, high = numbers.amin(-1).clamp(max=0), numbers.amax(-1).clamp(min=0)
    scale = ((high - low) / 15).clamp(max=_LARGEST_FP16).half()
    steps = scale.float()
    divisor = torch.where(steps > 0, steps, torch.ones_like(steps))
    zero = torch.where(steps > 0, (-low / divisor).round().clamp(0, 15), torch.zeros_like(steps))
    codes = (numbers / divisor[..., None]).round() * (steps > 0)[..., None] + zero[..., None]
    codes = codes.clamp(0, 15).to(torch.uint8).flatten(-2)
    packed = codes[..., 0::2] | codes[..., 1::2] << 4
    blocks = torch.stack([scale, zero.half()], dim=-1)
    if x.dim() == 4:
        blocks = blocks.transpose(1, 2).contiguous().transpose(1, 2)
    return packed, blocks


def dequantize_kv(numbers: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The float32 values that quantize_kv's result stands for."""
    if numbers.dtype == torch.float8_e4m3fn:
        return numbers.float() * scales[..., None]
    codes = torch.stack([numbers & 15, numbers >> 4], dim=-1).flatten(-2).float()
    scale, zero = (t[..., None] for t in scales.float().unbind(-1))
    return ((codes.unflatten(-1, (scale.shape[-2], -1)) - zero) * scale).flatten(-2)
