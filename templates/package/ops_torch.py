import torch
from . import {{ ops }}

ops = torch.ops.{{ ops }}


def add_op_namespace_prefix(op_name: str) -> str:
    """The name of an operator of this build of the kernel, as torch.library wants it."""
    return f"{{ ops }}::{op_name}"
