# SPDX-License-Identifier: Apache-2.0
"""Attention with the names and the keywords of flash-attn 2, differentiable."""

from . import autograd
from .cache import flash_attn_combine, flash_attn_with_kvcache, get_scheduler_metadata
from .interface import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from .quantize import dequantize_kv, quantize_kv
from .rotary import apply_rotary, apply_rotary_transformers

__all__ = [
    "apply_rotary",
    "apply_rotary_transformers",
    "dequantize_kv",
    "flash_attn_combine",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "get_scheduler_metadata",
    "quantize_kv",
    "autograd",
]
