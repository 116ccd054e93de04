# SPDX-License-Identifier: Apache-2.0
"""The keywords that the functions of several packages share, each under all of its names."""

from typing import Optional

import torch


def refuse(**arguments) -> None:
    """None of these may be set: they are known, and not supported."""
    for name, value in arguments.items():
        if value is not None and not (isinstance(value, (int, float)) and value == 0):
            raise NotImplementedError(f"{name}: is not supported")


def one_of(**arguments):
    """The one argument of these names for the same thing that is set, or None."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if len(given) > 1:
        first, second, *_ = given
        raise ValueError(f"{second}: is another name of {first}; give one of them")
    return next(iter(given.values()), None)


def as_float32(tensor: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """Contiguous, and differentiable if it was."""
    return None if tensor is None else tensor.float().contiguous()
