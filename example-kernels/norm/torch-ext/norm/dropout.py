# SPDX-License-Identifier: Apache-2.0
"""Dropout, residual addition and norm with the interface of `dropout_add_ln_fwd` and `_bwd`. The
norms are this package's; dropout and the scales of rows and columns are PyTorch's operators, and
cost nothing where they are not asked for."""

from typing import List, Optional

import torch

from ._ops import ops


def _refuse_subsets(x0_subset, z_subset):
    if x0_subset is not None or z_subset is not None:
        raise RuntimeError("x0_subset, z_subset: not supported, pass None")


def _scaled(x, rowscale, colscale):
    if rowscale is not None:
        x = x * rowscale.unsqueeze(-1)
    return x if colscale is None else x * colscale


def dropout_add_ln_fwd(
    input: torch.Tensor,
    gamma: torch.Tensor,
    beta: Optional[torch.Tensor] = None,
    rowscale: Optional[torch.Tensor] = None,
    colscale: Optional[torch.Tensor] = None,
    x0_subset: Optional[torch.Tensor] = None,
    z_subset: Optional[torch.Tensor] = None,
    dropout_p: float = 0.0,
    epsilon: float = 1e-5,
    rowscale_const: float = 1.0,
    z_numrows: int = 0,
    gen: Optional[torch.Generator] = None,
    residual_in_fp32: bool = False,
    is_rms_norm: bool = False,
    residual: Optional[torch.Tensor] = None,
) -> List[Optional[torch.Tensor]]:
    """[z, x, dmask, mu, rsigma]: x = dropout(input * rowscale * colscale) + residual and z its norm.
    x is input itself if nothing changes it, dmask is None without dropout; mu (zeros for the RMS
    norm) and rsigma are what the backward needs."""
    _refuse_subsets(x0_subset, z_subset)
    del z_numrows, rowscale_const  # they belong to the subsets
    x, dmask = _scaled(input, rowscale, colscale), None
    if dropout_p > 0.0:
        keep = torch.rand(x.shape, device=x.device, generator=gen) >= dropout_p
        dmask = keep.to(torch.uint8)
        x = x * keep / (1.0 - dropout_p)
    wide = residual_in_fp32 or (residual is not None and residual.dtype == torch.float32)
    if wide:
        x = x.float()
    else:
        x = x.to(input.dtype)
    if residual is not None:
        x = x + residual.to(x.dtype)
    if is_rms_norm:
        z, rsigma = ops.rms_norm_forward(x, gamma.to(x.dtype) if wide else gamma, epsilon, "torch")
        if beta is not None:
            z = z + beta
        mu = torch.zeros_like(rsigma)
    else:
        parameters = [None if p is None else p.to(x.dtype) if wide else p for p in (gamma, beta)]
        z, mu, rsigma = ops.layer_norm_forward(x, *parameters, epsilon)
    return [z.to(input.dtype), x, dmask, mu, rsigma]


def dropout_add_ln_bwd(
    dz: torch.Tensor,
    dx: Optional[torch.Tensor],
    x: torch.Tensor,
    mu: torch.Tensor,
    rsigma: torch.Tensor,
    gamma: torch.Tensor,
    rowscale: Optional[torch.Tensor] = None,
    colscale: Optional[torch.Tensor] = None,
    x0_subset: Optional[torch.Tensor] = None,
    z_subset: Optional[torch.Tensor] = None,
    dropout_p: float = 0.0,
    rowscale_const: float = 1.0,
    x0_numrows: int = 0,
    has_residual: bool = False,
    is_rms_norm: bool = False,
    x0: Optional[torch.Tensor] = None,
    dmask: Optional[torch.Tensor] = None,
) -> List[Optional[torch.Tensor]]:
    """[dinput, dresidual, dgamma, dbeta, dcolscale]; dx is a gradient of x itself. `x0` (the input)
    is needed with a colscale, `dmask` with dropout."""
    _refuse_subsets(x0_subset, z_subset)
    del rowscale_const, x0_numrows
    if dropout_p > 0.0 and dmask is None:
        raise RuntimeError("dmask: needed with dropout_p > 0")
    if colscale is not None and x0 is None:
        raise RuntimeError("x0: needed with a colscale")
    grad = dz.to(x.dtype).contiguous()
    weight = gamma.to(x.dtype)
    dbeta = None
    if is_rms_norm:
        extra = None if dx is None else dx.to(x.dtype).contiguous()
        total, dgamma = ops.rms_norm_backward(grad, extra, x, weight, rsigma, "torch", True)
    else:
        total, dgamma, dbeta = ops.layer_norm_backward(grad, x, weight, mu, rsigma, True)
        if dx is not None:
            total = total + dx
    dinput, dcolscale = total, None
    if dropout_p > 0.0:
        dinput = dinput * dmask / (1.0 - dropout_p)
    if colscale is not None:
        rows = dinput.flatten(0, -2).float()
        scaled = _scaled(x0, rowscale, None).flatten(0, -2).float()
        dcolscale = (rows * scaled).sum(0).to(colscale.dtype)
    dinput = _scaled(dinput, rowscale, colscale)
    dinput = dinput.to(dz.dtype if x0 is None else x0.dtype)
    return [
        dinput,
        total if has_residual else None,
        dgamma.to(gamma.dtype),
        None if dbeta is None else dbeta.to(gamma.dtype),
        dcolscale,
    ]
