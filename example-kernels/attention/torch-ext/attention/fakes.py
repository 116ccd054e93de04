# SPDX-License-Identifier: Apache-2.0
"""What torch.compile needs to know of the operator: the shapes of its results."""

import torch

from ._ops import add_op_namespace_prefix


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
