# SPDX-License-Identifier: Apache-2.0
"""Keys and values of a cache in 8 and 4 bits, as `flash_attn_with_kvcache` reads them.

fp8    float8_e4m3fn of the same shape; value = number * descale of the head.
int4   uint8 [..., rows, heads, d / 2]: channel 2 i in the low half of byte i, channel 2 i + 1 in the
       high half; scale blocks, float16 [..., rows, heads, groups, 2], a pair (scale, zero) for each
       group of channels; value = (code - zero) * scale, zero an integer 0 ... 15.
nvfp4  e2m1 codes, packed as in int4; scale blocks, float8_e4m3fn [..., rows, heads, d / 16].
mxfp4  the same with float8_e8m0fnu [..., rows, heads, d / 32], powers of 2."""

from typing import Optional, Tuple

import torch

_LARGEST_E4M3 = 448.0
_LARGEST_FP16 = 65504.0
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


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
    of 32 that divides d.
    "nvfp4", "mxfp4": (codes, scale blocks); d is a multiple of 16, of 32.
    The 4-bit formats divide by `descale`, if it is given, first. Their blocks of a head lie together
    in memory, which is faster to read."""
    numbers = x.float()
    if descale is not None and descale.shape != (x.shape[-2],):
        raise ValueError(f"descale: expected [{x.shape[-2]}], one for each head")
    if format == "fp8":
        if group_size is not None:
            raise ValueError("group_size: fp8 has one scale for a head")
        if descale is None:
            highest = numbers.abs().transpose(-2, -1).reshape(-1, x.shape[-2])
            highest = highest.amax(0) if len(highest) else highest.new_zeros(x.shape[-2])
            descale = torch.where(highest > 0, highest / _LARGEST_E4M3, torch.ones_like(highest))
        numbers = numbers / descale.float()[..., None]
        return numbers.clamp(-_LARGEST_E4M3, _LARGEST_E4M3).to(torch.float8_e4m3fn), descale
    if descale is not None:
        numbers = numbers / descale.float()[..., None]
    if format == "int4":
        codes, blocks = _int4(numbers, group_size)
    elif format in ("nvfp4", "mxfp4"):
        if group_size is not None:
            raise ValueError("group_size: the format says it")
        codes, blocks = _fp4(numbers, format == "mxfp4")
    else:
        raise ValueError(f"format: expected 'fp8', 'int4', 'nvfp4' or 'mxfp4', got {format!r}")
    codes = codes.to(torch.uint8).flatten(-2)
    if x.dim() == 4:
        blocks = blocks.transpose(1, 2).contiguous().transpose(1, 2)
    return codes[..., 0::2] | codes[..., 1::2] << 4, blocks


def _int4(numbers, group_size):
    d = numbers.shape[-1]
    group_size = d if group_size is None else group_size
    if d % 2 != 0 or group_size < 1 or d % group_size != 0 or (group_size != d and group_size % 32 != 0):
        raise ValueError(f"group_size: expected {d} or a multiple of 32 that divides it")
    numbers = numbers.unflatten(-1, (d // group_size, group_size))
    low, high = numbers.amin(-1).clamp(max=0), numbers.amax(-1).clamp(min=0)
    scale = ((high - low) / 15).clamp(max=_LARGEST_FP16).half()
    steps = scale.float()
    divisor = torch.where(steps > 0, steps, torch.ones_like(steps))
    zero = torch.where(steps > 0, (-low / divisor).round().clamp(0, 15), torch.zeros_like(steps))
    codes = (numbers / divisor[..., None]).round() * (steps > 0)[..., None] + zero[..., None]
    return codes.clamp(0, 15), torch.stack([scale, zero.half()], dim=-1)


def _fp4(numbers, powers):
    d, group_size = numbers.shape[-1], 32 if powers else 16
    if d % group_size != 0:
        raise ValueError(f"x: the head dimension must be a multiple of {group_size}")
    numbers = numbers.unflatten(-1, (d // group_size, group_size))
    highest = numbers.abs().amax(-1)
    if powers:  # the largest number of a group: at least 4, less than 8 times the scale
        exponent = (torch.frexp(highest)[1] - 3 + 127).clamp(0, 254)
        exponent = torch.where(highest > 0, exponent, torch.zeros_like(exponent))
        blocks = exponent.to(torch.uint8).view(torch.float8_e8m0fnu)
    else:
        blocks = (highest / 6).clamp(max=_LARGEST_E4M3).to(torch.float8_e4m3fn)
    factor = blocks.float()[..., None]
    scaled = numbers / torch.where(factor > 0, factor, torch.ones_like(factor))
    size = scaled.abs() * (factor > 0)
    code = (size > 0.25).byte() + (size >= 0.75) + (size > 1.25) + (size >= 1.75)
    code = code + (size > 2.5) + (size >= 3.5) + (size > 5.0)
    return torch.where((scaled.signbit()) & (factor > 0), code + 8, code), blocks


def dequantize_kv(
    numbers: torch.Tensor, scales: torch.Tensor, descale: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """The float32 values that quantize_kv's result stands for."""
    if numbers.dtype == torch.float8_e4m3fn:
        return numbers.float() * scales[..., None]
    codes = torch.stack([numbers & 15, numbers >> 4], dim=-1).flatten(-2)
    if scales.dtype == torch.float16:
        scale, zero = (t[..., None] for t in scales.float().unbind(-1))
        values = (codes.float().unflatten(-1, (scale.shape[-2], -1)) - zero) * scale
    else:
        table = torch.tensor([*_E2M1, *(-n for n in _E2M1)], device=numbers.device)
        values = table[codes.long()].unflatten(-1, (scales.shape[-1], -1))
        values = values * scales.float()[..., None]
    values = values.flatten(-2)
    return values if descale is None else values * descale[..., None]
