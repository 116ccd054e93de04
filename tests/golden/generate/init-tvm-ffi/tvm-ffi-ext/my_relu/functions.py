from typing import Optional

import torch

from ._ops import ops, torch_add_op_namespace_prefix


# The unique namespace lets two versions of this kernel live in one process.
@torch.library.custom_op(torch_add_op_namespace_prefix("relu"), mutates_args=("out",))
def _relu(out: torch.Tensor, input: torch.Tensor) -> None:
    ops.relu(out, input)


@_relu.register_fake
def _relu_fake(out: torch.Tensor, input: torch.Tensor) -> None:
    """What torch.compile needs to know: nothing is returned, `out` is written."""


def relu(x: torch.Tensor, out: Optional[torch.Tensor] = None) -> torch.Tensor:
    """max(x, 0), element by element. `x` is contiguous float32, float16 or bfloat16."""
    if out is None:
        out = torch.empty_like(x)
    _relu(out, x)
    return out
