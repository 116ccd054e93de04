# SPDX-License-Identifier: Apache-2.0
"""Rotary angles, by PyTorch operations."""

from typing import Tuple

import torch


def turned(a: torch.Tensor, b: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor):
    """The points (a, b), turned by the angles."""
    return a * cos - b * sin, a * sin + b * cos


def rotated(x, cos, sin, positions, interleaved):
    """Rotates the first 2 r columns of x [batch, rows, heads, d] by the angles of `positions`
    [batch, rows]; cos and sin are [positions, r]."""
    cos, sin = (table[positions.long()][:, :, None].float() for table in (cos, sin))
    width = 2 * cos.shape[-1]
    head = x[..., :width].float()
    if interleaved:
        pair = turned(head[..., 0::2], head[..., 1::2], cos, sin)
        head = torch.stack(pair, dim=-1).flatten(-2)
    else:
        head = torch.cat(turned(*head.chunk(2, dim=-1), cos, sin), dim=-1)
    return torch.cat([head.to(x.dtype), x[..., width:]], dim=-1)


def apply_rotary(
    x1: torch.Tensor,
    x2: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    out1: torch.Tensor,
    out2: torch.Tensor,
    conj: bool,
) -> None:
    """Turns the points (x1, x2) by the angles (conj: backwards) into (out1, out2), which may be
    x1 and x2 themselves."""
    a, b = turned(x1.float(), x2.float(), cos.float(), -sin.float() if conj else sin.float())
    out1.copy_(a)
    out2.copy_(b)


def apply_rotary_transformers(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    unsqueeze_dim: int = 1,
) -> Tuple[torch.Tensor, torch.Tensor]:
    """q and k with the angles of cos and sin [batch, rows, d], whose halves are alike; unsqueeze_dim
    is the dimension of the heads."""
    cos, sin = (t.unsqueeze(unsqueeze_dim).chunk(2, dim=-1)[0].float() for t in (cos, sin))

    def one(x):
        return torch.cat(turned(*x.float().chunk(2, dim=-1), cos, sin), dim=-1).to(x.dtype)

    return one(q), one(k)
