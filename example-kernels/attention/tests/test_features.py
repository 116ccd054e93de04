# SPDX-License-Identifier: Apache-2.0
"""What only some models have: ALiBi, sinks, a head dimension of the values, dropout; and what goes
with a cache: the merge of parts, schedules, rotary angles."""

import inspect
import math

import pytest
import torch
from test_attention import DTYPES, check, check_gradients, dtype_id, inputs, reference, tensor
from test_cache import cache, check_each, dtypes, lengths_of  # noqa: F401 (a fixture)

pytestmark = pytest.mark.kernels_ci

MASKS = {
    "full": {},
    "causal": dict(causal=True),
    "window": dict(causal=True, window_size=(127, 0)),  # of GPT-OSS
    "softcap": dict(softcap=15.0),
}


def slopes_of(heads, device, batch=None):
    shape = (heads,) if batch is None else (batch, heads)
    return torch.rand(shape, generator=torch.Generator().manual_seed(4)).to(device)


def sinks_of(heads, device):
    return torch.linspace(-2, 3, heads, device=device)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", [(1, 130), (70, 200), (200, 33)], ids=str)
def test_alibi(kernel, device, lengths, mask, dtype):
    q, k, v = inputs(2, lengths, 4, 2, 64, dtype, device)
    for batch in (None, 2):
        kwargs = dict(alibi_slopes=slopes_of(4, device, batch), **MASKS[mask])
        out, lse, _ = kernel.flash_attn_func(q, k, v, return_attn_probs=True, **kwargs)
        check(out, lse, q, k, v, **kwargs)
        check_gradients(kernel, q, k, v, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", [(1, 130), (70, 200), (200, 33)], ids=str)
def test_sinks(kernel, device, lengths, mask, dtype):
    q, k, v = inputs(2, lengths, 4, 2, 64, dtype, device)
    kwargs = dict(sinks=sinks_of(4, device), **MASKS[mask])
    out, lse, _ = kernel.flash_attn_func(q, k, v, return_attn_probs=True, **kwargs)
    check(out, lse, q, k, v, **kwargs)
    check_gradients(kernel, q, k, v, **kwargs)
    same = kernel.flash_attn_func(q, k, v, s_aux=sinks_of(4, device).to(dtype), **MASKS[mask])
    torch.testing.assert_close(same, out, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_gradient_of_sinks(kernel, device, dtype):
    q, k, v = inputs(2, (70, 50), 4, 2, 64, dtype, device)
    sinks = sinks_of(4, device).requires_grad_()
    grad = tensor(q.shape, dtype, device, 5)
    out = kernel.flash_attn_func(q, k, v, causal=True, sinks=sinks)
    (got,) = torch.autograd.grad(out, [sinks], grad)
    expected = reference(q, k, v, causal=True, sinks=sinks)[0]
    (expected,) = torch.autograd.grad(expected, [sinks], grad.double())
    torch.testing.assert_close(got, expected, atol=0.05, rtol=0.02)
    # Packed, with rows behind the last sequence.
    cu_q, cu_k = (torch.tensor([0, n], dtype=torch.int32, device=device) for n in (60, 50))
    rows = kernel.flash_attn_varlen_func(
        q[0], k[0], v[0], cu_q, cu_k, 60, 50, causal=True, sinks=sinks
    )
    (got,) = torch.autograd.grad(rows, [sinks], grad[0])
    expected = reference(q[:1, :60], k[:1], v[:1], causal=True, sinks=sinks)[0]
    (expected,) = torch.autograd.grad(expected, [sinks], grad[:1, :60].double())
    torch.testing.assert_close(got, expected, atol=0.05, rtol=0.02)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("dims", [(192, 128), (64, 128), (40, 17), (96, 64), (128, 256)], ids=str)
def test_values_of_another_head_dimension(kernel, device, dims, dtype):
    d, d_v = dims
    q, k, _ = inputs(2, (70, 100), 4, 2, d, dtype, device)
    v = tensor((2, 100, 2, d_v), dtype, device, 2)
    out, lse, _ = kernel.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert out.shape == (2, 70, 4, d_v)
    check(out, lse, q, k, v, causal=True)
    check_gradients(kernel, q, k, v, causal=True)
    cu = [torch.tensor([0, n], dtype=torch.int32, device=device) for n in (70, 100)]
    packed = kernel.flash_attn_varlen_func(q[0], k[0], v[0], *cu, 70, 100, causal=True)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(packed, out[0], atol=2 * eps, rtol=2 * eps)


@pytest.mark.parametrize("dims", [(64, 32), (192, 128)], ids=str)
def test_cache_of_another_head_dimension(kernel, device, dtypes, dims):
    d, d_v = dims
    for dtype in dtypes:
        q = tensor((2, 2, 4, d), dtype, device)
        k, v = tensor((2, 150, 2, d), dtype, device, 1), tensor((2, 150, 2, d_v), dtype, device, 2)
        new = [tensor((2, 2, 2, n), dtype, device, i) for i, n in ((7, d), (8, d_v))]
        used = [100, 3]
        for splits in (1, 3):
            out, lse = kernel.flash_attn_with_kvcache(
                q, k, v, *new, cache_seqlens=lengths_of(used, device), causal=True,
                num_splits=splits, return_softmax_lse=True
            )
            assert out.shape == (2, 2, 4, d_v) and torch.equal(v[1, 3:5], new[1][1])
            parts = [[t[b, : n + 2] for b, n in enumerate(used)] for t in (k, v)]
            check_each(out, lse, q, *parts, causal=True)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("splits", [1, 3])
def test_alibi_and_sinks_over_a_cache(kernel, device, dtypes, splits, mask):
    used = [0, 5, 300]
    for dtype in dtypes:
        q = tensor((3, 2, 4, 64), dtype, device)
        k, v = cache(3, 300, 2, 64, dtype, device)
        for kwargs in (
            dict(alibi_slopes=slopes_of(4, device)),
            dict(sinks=sinks_of(4, device)),
            dict(alibi_slopes=slopes_of(4, device), sinks=sinks_of(4, device)),
        ):
            kwargs.update(MASKS[mask])
            out, lse = kernel.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=lengths_of(used, device), num_splits=splits,
                return_softmax_lse=True, **kwargs
            )
            parts = [[t[b, :n] for b, n in enumerate(used)] for t in (k, v)]
            check_each(out, lse, q, *parts, **kwargs)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("paged", [False, True])
def test_packed_queries_over_a_cache(kernel, device, dtypes, paged, mask):
    lengths, used = [5, 0, 1, 33], [60, 40, 1, 100]
    cu = lengths_of([0, *torch.tensor(lengths).cumsum(0).tolist()], device)
    table = torch.arange(28, dtype=torch.int32, device=device).flip(0).view(4, 7) if paged else None
    for dtype in dtypes:
        q = tensor((sum(lengths), 4, 64), dtype, device)
        k, v = cache(28 if paged else 4, 16 if paged else 112, 2, 64, dtype, device)
        kwargs = dict(alibi_slopes=slopes_of(4, device), **MASKS[mask])
        out, lse = kernel.flash_attn_with_kvcache(
            q, k, v, cache_seqlens=lengths_of(used, device), block_table=table, cu_seqlens_q=cu,
            max_seqlen_q=33, return_softmax_lse=True, **kwargs
        )
        assert out.shape == q.shape and lse.shape == (4, sum(lengths))
        for b, n in enumerate(lengths):
            rows = slice(cu[b], cu[b] + n)
            parts = [t[table[b].long()].flatten(0, 1) if paged else t[b] for t in (k, v)]
            if n:
                check(out[rows][None], lse[:, rows][None], q[rows][None],
                      *(t[None, : used[b]] for t in parts), **kwargs)
        if paged:
            again, lse_again, _ = kernel.flash_attn_varlen_func(
                q, k, v, cu, None, 33, 112, seqused_k=lengths_of(used, device), page_table=table,
                return_attn_probs=True, **kwargs
            )
            assert torch.equal(again, out) and torch.equal(lse_again, lse)
            cu_k = lengths_of([0, *torch.tensor(used).cumsum(0).tolist()], device)
            again = kernel.flash_attn_varlen_func(q, k, v, cu, cu_k, 33, 100, block_table=table, **kwargs)
            assert torch.equal(again, out)


def test_rotary_of_packed_queries(kernel, device, dtypes):
    used, lengths, dtype = [10, 20], [1, 3], dtypes[0]
    cu = lengths_of([0, 1, 4], device)
    q = tensor((4, 2, 64), dtype, device)
    k, v = cache(2, 64, 1, 64, dtype, device)
    new = [tensor((2, 3, 1, 64), dtype, device, i) for i in (7, 8)]
    angles = tensor((40, 8), torch.float32, device)
    rest = (angles.cos(), angles.sin())
    kwargs = dict(cache_seqlens=lengths_of(used, device), causal=True)
    got = kernel.flash_attn_with_kvcache(
        q, k.clone(), v.clone(), *new, *rest, cu_seqlens_q=cu, max_seqlen_q=3, **kwargs
    )
    # One by one: the queries of a sequence are level with the last of the keys.
    for b, n in enumerate(lengths):
        one = slice(b, b + 1)
        alone = kernel.flash_attn_with_kvcache(
            q[cu[b] : cu[b] + n][None], k[one].clone(), v[one].clone(), *(t[one] for t in new), *rest,
            cache_seqlens=lengths_of(used[b : b + 1], device), causal=True
        )
        torch.testing.assert_close(got[cu[b] : cu[b] + n], alone[0], atol=1e-2, rtol=1e-2)


def mask_of(kernel, q, k, seed, **kwargs):
    """What dropout multiplies the probabilities by, found with the unit matrix as values."""
    sk = k.shape[1]
    unit = torch.eye(sk, device=q.device, dtype=q.dtype)[None, :, None].expand(*k.shape[:3], sk)
    plain = kernel.flash_attn_func(q, k, unit, **kwargs)
    torch.manual_seed(seed)
    dropped = kernel.flash_attn_func(q, k, unit, dropout_p=0.3, **kwargs)
    kept = torch.where(dropped != 0, 1 / (1 - 0.3), 0.0)
    torch.testing.assert_close(dropped.float(), plain.float() * kept, atol=1e-2, rtol=1e-2)
    return kept.transpose(1, 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("lengths", [(70, 100), (33, 64), (200, 129)], ids=str)
def test_dropout(kernel, device, lengths, dtype):
    q, k, v = inputs(2, lengths, 4, 2, 64, dtype, device)
    q, k = q * 0.5, k * 0.5  # no probability rounds to 0
    kept = mask_of(kernel, q, k, 11)
    share = (kept == 0).float().mean().item()
    assert abs(share - 0.3) < 5 * math.sqrt(0.21 / kept.numel())
    # Neighbours, heads and sequences draw on their own.
    dropped = (kept == 0).float()
    for a, b in (
        (dropped[..., 1:], dropped[..., :-1]),
        (dropped[:, :, 8:], dropped[:, :, :-8]),
        (dropped[:, 1:], dropped[:, :-1]),
        (dropped[1:], dropped[:-1]),
    ):
        assert abs((a * b).mean().item() - 0.09) < 5 * math.sqrt(0.09 / a.numel())
    inputs_ = [t.detach().requires_grad_() for t in (q, k, v)]
    torch.manual_seed(11)
    out, lse, _ = kernel.flash_attn_func(*inputs_, dropout_p=0.3, return_attn_probs=True)
    check(out.detach(), lse, q, k, v, kept=kept)
    grad = tensor(q.shape, dtype, device, 5)
    got = torch.autograd.grad(out, inputs_, grad)
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    expected = torch.autograd.grad(reference(*wide, kept=kept)[0], wide, grad.double())
    eps = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    for g, e in zip(got, expected):
        assert (g.double() - e).norm() < eps * e.norm()
    torch.manual_seed(11)
    assert torch.equal(kernel.flash_attn_func(q, k, v, dropout_p=0.3), out)
    assert not torch.equal(kernel.flash_attn_func(q, k, v, dropout_p=0.3), out)


@pytest.mark.parametrize("d", [32, 128, 256])
def test_dropout_of_head_dimensions(kernel, device, d):
    for dtype in DTYPES:
        q, k, v = inputs(1, (70, 90), 2, 1, d, dtype, device)
        q, k = q * 0.3, k * 0.3
        kwargs = dict(causal=True, alibi_slopes=slopes_of(2, device) * 0.05)
        kept = mask_of(kernel, q, k, 5, **kwargs)
        torch.manual_seed(5)
        out, lse, _ = kernel.flash_attn_func(q, k, v, dropout_p=0.3, return_attn_probs=True, **kwargs)
        check(out, lse, q, k, v, kept=kept, **kwargs)


def test_dropout_of_packed_sequences(kernel, device):
    q, k, v = (tensor((50, 2, 64), torch.float32, device, i) for i in range(3))
    cu = torch.tensor([0, 50], dtype=torch.int32, device=device)
    torch.manual_seed(3)
    packed = kernel.flash_attn_varlen_func(q, k, v, cu, cu, 50, 50, dropout_p=0.5)
    torch.manual_seed(3)
    alone = kernel.flash_attn_func(q[None], k[None], v[None], dropout_p=0.5)
    torch.testing.assert_close(packed, alone[0], atol=0, rtol=0)


def test_opcheck(kernel, device):
    q, k, _ = (t.requires_grad_() for t in inputs(1, (9, 12), 2, 1, 16, torch.float32, device))
    v = tensor((1, 12, 1, 24), torch.float32, device, 2).requires_grad_()
    state = torch.tensor([7, 1], dtype=torch.int64, device=device)
    args = (slopes_of(2, device), sinks_of(2, device).requires_grad_(), 0.2, state)
    op = kernel._ops.ops.attention_forward.default
    torch.library.opcheck(op, (q, k, v, None, None, 0, 0, 0.25, True, -1, -1, 0.0, *args))


@pytest.mark.parametrize("splits", [1, 2, 133])
def test_combine(kernel, device, splits):
    out = tensor((splits, 2, 5, 3, 64), torch.float32, device)
    lse = tensor((splits, 2, 5, 3), torch.float32, device, 1) * 3
    lse[0, 0, 0, 0] = -math.inf
    lse[:, 1, 1, 1] = -math.inf
    out[:, 1, 1, 1] = math.nan  # nothing was seen: never written
    merged, merged_lse = kernel.flash_attn_combine(out, lse, out_dtype=torch.bfloat16)
    expected_lse = torch.logsumexp(lse.double(), 0)
    weights = torch.nan_to_num(torch.exp(lse.double() - expected_lse))[..., None]
    expected = (weights * torch.nan_to_num(out.double())).sum(0)
    assert merged.dtype == torch.bfloat16 and merged_lse.shape == (2, 5, 3)
    torch.testing.assert_close(merged.double(), expected, atol=1e-2, rtol=1e-2)
    torch.testing.assert_close(merged_lse.double(), expected_lse, atol=1e-5, rtol=1e-5)
    into = torch.empty(2, 5, 3, 64, device=device)
    assert kernel.flash_attn_combine(out, lse, into)[0] is into
    torch.testing.assert_close(into.double(), expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="lse_partial:"):
        kernel.flash_attn_combine(out, lse[..., :2])
    with pytest.raises(ValueError, match="out:"):
        kernel.flash_attn_combine(out, lse, into[:1])


def test_combine_makes_the_whole_of_its_parts(kernel, device):
    q, k, v = inputs(2, (5, 90), 4, 2, 64, torch.float32, device)
    whole, lse, _ = kernel.flash_attn_func(q, k, v, return_attn_probs=True)
    parts = [
        kernel.flash_attn_func(q, k[:, a:b], v[:, a:b], return_attn_probs=True)[:2]
        for a, b in ((0, 30), (30, 31), (31, 90))
    ]
    got, got_lse = kernel.flash_attn_combine(
        torch.stack([p[0] for p in parts]), torch.stack([p[1].transpose(1, 2) for p in parts])
    )
    torch.testing.assert_close(got, whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got_lse.transpose(1, 2), lse, atol=1e-5, rtol=1e-5)


def test_schedule(kernel, device, dtypes):
    q = tensor((2, 1, 4, 64), dtypes[0], device)
    k, v = cache(2, 90, 2, 64, dtypes[0], device)
    n = lengths_of([5, 60], device)
    metadata = kernel.get_scheduler_metadata(2, 1, 90, 4, 2, 64, n, num_splits=3)
    assert metadata.dtype == torch.int32 and metadata.device == n.device
    with_it = kernel.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=n, scheduler_metadata=metadata, pack_gqa=True, sm_margin=2
    )
    assert torch.equal(with_it, kernel.flash_attn_with_kvcache(q, k, v, cache_seqlens=n))
    with pytest.raises(ValueError, match="cache_seqlens:"):
        kernel.get_scheduler_metadata(3, 1, 90, 4, 2, 64, n)


def test_rotary(kernel, device):
    angles = tensor((1, 7, 8), torch.float64, device)
    q, k = (tensor((1, 7, h, 16), torch.float32, device, h) for h in (4, 2))
    cos, sin = (f(angles).repeat(1, 1, 2).float() for f in (torch.cos, torch.sin))
    turn = torch.polar(torch.ones_like(angles), angles)[:, :, None]

    def turned(x):
        a, b = x.double().chunk(2, -1)
        z = torch.complex(a, b) * turn
        return torch.cat([z.real, z.imag], -1)

    for dim, order in ((2, (0, 1, 2, 3)), (1, (0, 2, 1, 3))):
        got = kernel.apply_rotary_transformers(q.permute(order), k.permute(order), cos, sin, dim)
        for g, x in zip(got, (q, k)):
            torch.testing.assert_close(g.permute(order).double(), turned(x), atol=1e-6, rtol=1e-5)
    a, b = q.chunk(2, -1)
    out = torch.empty_like(a), torch.empty_like(b)
    half = (cos[0, :, None, :8], sin[0, :, None, :8])
    kernel.apply_rotary(a, b, *half, *out, False)
    torch.testing.assert_close(torch.cat(out, -1).double(), turned(q), atol=1e-6, rtol=1e-5)
    kernel.apply_rotary(*out, *half, *out, True)
    torch.testing.assert_close(torch.cat(out, -1), q, atol=1e-6, rtol=1e-5)


def test_names_of_the_other_packages(kernel, device):
    wanted = {
        "flash_attn_func": "dropout_p softmax_scale causal window_size softcap alibi_slopes"
        " deterministic return_attn_probs qv q_descale k_descale v_descale attention_chunk"
        " num_splits pack_gqa sm_margin s_aux sinks",
        "flash_attn_varlen_func": "cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k seqused_q"
        " seqused_k block_table page_table s_aux sinks",
        "flash_attn_with_kvcache": "k v qv rotary_cos rotary_sin cache_seqlens cache_batch_idx"
        " cache_leftpad page_table block_table cu_seqlens_q cu_seqlens_k_new max_seqlen_q"
        " rotary_seqlens q_descale k_descale v_descale softmax_scale causal window_size"
        " attention_chunk softcap rotary_interleaved scheduler_metadata num_splits pack_gqa"
        " sm_margin return_softmax_lse s_aux sinks",
        "flash_attn_combine": "out_partial lse_partial out out_dtype",
        "get_scheduler_metadata": "headdim_v page_size max_seqlen_k_new has_softcap num_splits",
    }
    for name, keywords in wanted.items():
        parameters = inspect.signature(getattr(kernel, name)).parameters
        assert not set(keywords.split()) - set(parameters), name
    dtype = torch.bfloat16
    q, (k, v) = tensor((2, 1, 4, 64), dtype, device), cache(6, 16, 2, 64, dtype, device)
    table = torch.arange(6, dtype=torch.int32, device=device).view(2, 3)
    f = kernel.flash_attn_with_kvcache
    assert torch.equal(f(q, k, v, page_table=table), f(q, k, v, block_table=table))
    with pytest.raises(ValueError, match="page_table: is another name of block_table"):
        f(q, k, v, page_table=table, block_table=table)
    with pytest.raises(NotImplementedError, match="cu_seqlens_k_new: is not supported"):
        f(q, k, v, cu_seqlens_k_new=table[0])
    with pytest.raises(ValueError, match="max_seqlen_q: needed"):
        f(q[:, 0], k, v, cu_seqlens_q=table[0])
    with pytest.raises(ValueError, match="q: expected"):
        f(q, k, v, cu_seqlens_q=table[0], max_seqlen_q=1)


@pytest.mark.sanitize
@pytest.mark.parametrize("d", [40, 128])
def test_small_cases_for_the_sanitizer(kernel, device, d):
    for dtype in DTYPES:
        q, k, _ = (t.requires_grad_() for t in inputs(1, (70, 100), 2, 1, d, dtype, device))
        v = tensor((1, 100, 1, d + 8), dtype, device, 2).requires_grad_()
        kwargs = dict(alibi_slopes=slopes_of(2, device), sinks=sinks_of(2, device), dropout_p=0.2)
        out = kernel.flash_attn_func(q, k, v, causal=True, **kwargs)
        out.backward(torch.ones_like(out))
        assert out.isfinite().all() and q.grad.isfinite().all() and v.grad.isfinite().all()
