import importlib.util
import sys
from pathlib import Path

import tvm_ffi

_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")

ops = tvm_ffi.load_module(str(Path(__file__).parent / ("{{ ops }}" + _SUFFIX)))

has_torch = importlib.util.find_spec("torch") is not None
has_jax = importlib.util.find_spec("jax") is not None


def torch_add_op_namespace_prefix(op_name: str) -> str:
    """The name of an operator of this build of the kernel, as torch.library wants it."""
    return f"{{ ops }}::{op_name}"


def jax_add_ffi_target_name_prefix(target_name: str) -> str:
    """The name of a function of this build of the kernel, as jax.ffi wants it."""
    return f"{{ ops }}.{target_name}"


if has_jax:

    def jax_register_ffi_target(target_name: str, arg_spec=None, **options) -> None:
        """Makes a function of this kernel callable through jax_ffi_call()."""
        import jax_tvm_ffi

        jax_tvm_ffi.register_ffi_target(
            jax_add_ffi_target_name_prefix(target_name), ops[target_name], arg_spec, **options
        )

    def jax_ffi_call(target_name: str, *arguments, **options):
        """jax.ffi.ffi_call() of a function that was registered."""
        import jax

        return jax.ffi.ffi_call(
            jax_add_ffi_target_name_prefix(target_name), *arguments, **options
        )
