# SPDX-License-Identifier: Apache-2.0
"""Arguments at the ends of what they can be: none of them may give a wrong number."""

import sys

import pytest
import torch
from test_attention import inputs

pytestmark = pytest.mark.kernels_ci


def results(kernel, q, k, v, **kwargs):
    q, k, v = (t.detach().clone().requires_grad_() for t in (q, k, v))
    out = kernel.flash_attn_func(q, k, v, **kwargs)
    out.backward(torch.ones_like(out))
    return out.detach(), q.grad, k.grad, v.grad


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("most", [2**31 - 1, 2**31, 2**62, sys.maxsize])
@pytest.mark.parametrize("sides", [(0, 1), (1, 0), (1, 1), (1, 2)], ids=str)
def test_window_wider_than_any_sequence(kernel, device, sides, most, d):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = inputs(1, (70, 200), 4, 2, d, dtype, device)
    size = {0: -1, 1: most, 2: 0}
    wide = tuple(size[s] for s in sides)
    same = tuple(-1 if s == 1 else size[s] for s in sides)
    for got, wanted in zip(
        results(kernel, q, k, v, window_size=wide), results(kernel, q, k, v, window_size=same)
    ):
        torch.testing.assert_close(got, wanted, atol=2e-2 if dtype == torch.bfloat16 else 1e-5, rtol=1e-2)
    got = kernel.flash_attn_with_kvcache(q, k, v, window_size=wide)
    wanted = kernel.flash_attn_with_kvcache(q, k, v, window_size=same)
    torch.testing.assert_close(got, wanted, atol=2e-2 if dtype == torch.bfloat16 else 1e-5, rtol=1e-2)


@pytest.mark.parametrize("d", [64, 128])
def test_head_without_a_sink(kernel, device, d):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = inputs(1, (200, 33), 4, 2, d, dtype, device)  # causal: the first queries see no key
    sinks = torch.tensor([-torch.inf, 0.5, -torch.inf, 1.0], device=device).requires_grad_()
    out, lse, _ = kernel.flash_attn_func(
        q, k, v, causal=True, sinks=sinks, return_attn_probs=True
    )
    plain, plain_lse, _ = kernel.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert out.isfinite().all()
    for head in (0, 2):
        torch.testing.assert_close(out[:, :, head], plain[:, :, head], atol=1e-2, rtol=1e-2)
        torch.testing.assert_close(lse[:, head], plain_lse[:, head], atol=1e-3, rtol=1e-3)
    out.backward(torch.ones_like(out))
    assert sinks.grad.isfinite().all()
    assert sinks.grad[0] == 0 and sinks.grad[1] != 0
    over_cache = kernel.flash_attn_with_kvcache(q, k, v, causal=True, sinks=sinks.detach())
    torch.testing.assert_close(over_cache, out.detach(), atol=2e-2, rtol=1e-2)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1 - 2.0**-26, float("nan")])
def test_dropout_of_everything_is_refused(kernel, device, p):
    q, k, v = inputs(1, (8, 8), 2, 2, 64, torch.float32, device)
    with pytest.raises(RuntimeError, match="dropout_p:"):
        kernel.flash_attn_func(q, k, v, dropout_p=p)


def packed_arguments(device):
    q = torch.zeros(6, 2, 64, dtype=torch.bfloat16, device=device)
    cache = torch.zeros(2, 16, 2, 64, dtype=torch.bfloat16, device=device)
    return dict(
        q=q,
        k_cache=cache,
        v_cache=cache,
        cache_seqlens=torch.tensor([8, 8], dtype=torch.int32, device=device),
        cu_seqlens_q=torch.tensor([0, 2, 6], dtype=torch.int32, device=device),
        max_seqlen_q=4,
    )


BAD_PACKED = [
    ("cu_seqlens_q: expected int32", dict(cu_seqlens_q=torch.tensor([0, 2, 6]))),
    ("cu_seqlens_q: expected int32", dict(cu_seqlens_q=torch.tensor([0], dtype=torch.int32))),
]
BAD_PACKED_VALUES = [  # seen where looking costs no wait
    ("cu_seqlens_q: must rise", dict(cu_seqlens_q=torch.tensor([1, 2, 6], dtype=torch.int32))),
    ("cu_seqlens_q: must rise", dict(cu_seqlens_q=torch.tensor([0, 4, 2], dtype=torch.int32))),
    ("cu_seqlens_q: must rise", dict(cu_seqlens_q=torch.tensor([0, 4, 7], dtype=torch.int32))),
    ("max_seqlen_q: a sequence has 4 rows", dict(max_seqlen_q=3)),
]


@pytest.mark.parametrize("case", BAD_PACKED, ids=str)
def test_packed_queries_are_checked(kernel, device, case):
    pattern, bad = case
    bad = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in bad.items()}
    kernel.flash_attn_with_kvcache(**packed_arguments(device))
    with pytest.raises(ValueError, match=pattern):
        kernel.flash_attn_with_kvcache(**{**packed_arguments(device), **bad})


@pytest.mark.parametrize("case", BAD_PACKED_VALUES, ids=str)
def test_values_of_packed_queries_are_checked(kernel, device, case):
    if device != "cpu":
        pytest.skip("values are looked at on the CPU")
    pattern, bad = case
    with pytest.raises(ValueError, match=pattern):
        kernel.flash_attn_with_kvcache(**{**packed_arguments(device), **bad})


def test_negative_length_is_not_made_good_by_new_rows(kernel, device):
    if device != "cpu":
        pytest.skip("values are looked at on the CPU")
    cache = torch.zeros(1, 16, 2, 64, dtype=torch.bfloat16)
    new = torch.ones(1, 5, 2, 64, dtype=torch.bfloat16)
    with pytest.raises(RuntimeError, match="cache_seqlens: sequence 0 has -3 rows"):
        kernel.flash_attn_with_kvcache(
            new, cache, cache, new, new, cache_seqlens=torch.tensor([-3], dtype=torch.int32)
        )


def test_arguments_of_quantisation_are_named(kernel, device):
    x = torch.ones(2, 2, 2, 64, device=device)
    for size in (0, -32, 48):
        with pytest.raises(ValueError, match="group_size:"):
            kernel.quantize_kv(x, "int4", group_size=size)
    with pytest.raises(ValueError, match="descale:"):  # it would be taken for rows
        kernel.quantize_kv(x, "fp8", descale=torch.ones(2, 2, device=device))


def test_appended_nan_becomes_a_code(kernel, device):
    cache = torch.zeros(1, 16, 2, 32, dtype=torch.uint8, device=device)
    blocks = torch.ones(1, 16, 2, 1, 2, dtype=torch.float16, device=device)
    new = torch.full((1, 1, 2, 64), float("nan"), dtype=torch.bfloat16, device=device)
    new[..., ::2] = torch.linspace(-1, 1, 32, device=device)
    lengths = torch.zeros(1, dtype=torch.int32, device=device)
    q = torch.ones(1, 1, 2, 64, dtype=torch.bfloat16, device=device)
    out = kernel.flash_attn_with_kvcache(
        q, cache, cache, new, new, cache_seqlens=lengths, k_scale_blocks=blocks, v_scale_blocks=blocks
    )
    assert out[..., ::2].isfinite().all()
