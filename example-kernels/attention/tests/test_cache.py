# SPDX-License-Identifier: Apache-2.0
"""flash_attn_with_kvcache against the reference of test_attention, over places and lengths."""

import math

import pytest
import torch
from test_attention import check, dtype_id, tensor

pytestmark = pytest.mark.kernels_ci

MASKS = {
    "full": {},
    "causal": dict(causal=True),
    "local": dict(window_size=(20, 3)),
    "softcap": dict(softcap=15.0),
}


@pytest.fixture
def dtypes(device):
    return [torch.float16, torch.bfloat16] + ([torch.float32] if device == "cpu" else [])


def cache(places, rows, heads, d, dtype, device):
    return [tensor((places, rows, heads, d), dtype, device, i) for i in (1, 2)]


def lengths_of(values, device):
    return torch.tensor(values, dtype=torch.int32, device=device)


def check_each(out, lse, q, keys, values, **kwargs):
    """keys[b] and values[b]: [length, heads, d] of sequence b."""
    for b, (k, v) in enumerate(zip(keys, values)):
        check(out[b : b + 1], lse[b : b + 1], q[b : b + 1], k[None], v[None], **kwargs)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("splits", [0, 1, 3])
@pytest.mark.parametrize("rows", [1, 5, 33])
def test_lengths_and_masks(kernel, device, dtypes, rows, splits, mask):
    used = [0, 1, 63, 64, 65, 300, 17]
    for dtype in dtypes:
        q = tensor((len(used), rows, 4, 64), dtype, device)
        k, v = cache(len(used), 300, 2, 64, dtype, device)
        out, lse = kernel.flash_attn_with_kvcache(
            q, k, v, cache_seqlens=lengths_of(used, device), num_splits=splits,
            return_softmax_lse=True, **MASKS[mask]
        )
        check_each(
            out, lse, q, [k[b, :n] for b, n in enumerate(used)],
            [v[b, :n] for b, n in enumerate(used)], **MASKS[mask]
        )


@pytest.mark.parametrize("d", [8, 17, 40, 64, 80, 128, 160, 256])
@pytest.mark.parametrize("heads", [(4, 4), (8, 1), (24, 1)], ids=str)
def test_head_dimensions(kernel, device, dtypes, heads, d):
    for dtype in dtypes:
        q = tensor((2, 1, heads[0], d), dtype, device)
        k, v = cache(2, 200, heads[1], d, dtype, device)
        for splits in (1, 2):
            out, lse = kernel.flash_attn_with_kvcache(
                q, k, v, num_splits=splits, return_softmax_lse=True
            )
            check_each(out, lse, q, k, v)


def test_more_splits_than_keys(kernel, device, dtypes):
    for dtype in dtypes:
        q = tensor((1, 1, 4, 64), dtype, device)
        k, v = cache(1, 300, 2, 64, dtype, device)
        for splits in (7, 128, 1000):
            out, lse = kernel.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=130, num_splits=splits, return_softmax_lse=True
            )
            check_each(out, lse, q, k[:, :130], v[:, :130])


@pytest.mark.parametrize("page", [1, 4, 16, 48, 128])
def test_pages(kernel, device, dtypes, page):
    used = [200, 0, 77]
    per_sequence = -(-200 // page)
    generator = torch.Generator().manual_seed(1)
    count = 3 * per_sequence + 2
    table = torch.randperm(count, generator=generator)[: 3 * per_sequence]
    table = table.view(3, per_sequence).to(torch.int32).to(device)
    for dtype in dtypes:
        for d in (64, 128):
            q = tensor((3, 2, 4, d), dtype, device)
            k, v = cache(count, page, 2, d, dtype, device)
            out, lse = kernel.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=lengths_of(used, device), block_table=table,
                causal=True, return_softmax_lse=True
            )
            flat = [[t[table[b].long()].flatten(0, 1)[:n] for b, n in enumerate(used)] for t in (k, v)]
            check_each(out, lse, q, *flat, causal=True)


def test_batch_index_and_left_padding(kernel, device, dtypes):
    used, first, index = [90, 140, 5], [3, 0, 5], [4, 0, 2]
    for dtype in dtypes:
        q = tensor((3, 2, 4, 64), dtype, device)
        k, v = cache(5, 150, 2, 64, dtype, device)
        out, lse = kernel.flash_attn_with_kvcache(
            q, k, v, cache_seqlens=lengths_of(used, device),
            cache_batch_idx=lengths_of(index, device), cache_leftpad=lengths_of(first, device),
            causal=True, return_softmax_lse=True
        )
        picked = [[t[i, f:n] for i, f, n in zip(index, first, used)] for t in (k, v)]
        check_each(out, lse, q, *picked, causal=True)


@pytest.mark.parametrize("paged", [False, True])
def test_append(kernel, device, dtypes, paged):
    used, rows = [0, 60, 97], 3
    for dtype in dtypes:
        q = tensor((3, rows, 4, 64), dtype, device)
        new = [tensor((3, rows, 2, 64), dtype, device, i) for i in (7, 8)]
        k, v = cache(9 if paged else 3, 40 if paged else 120, 2, 64, dtype, device)
        table = torch.randperm(9, generator=torch.Generator().manual_seed(2)).view(3, 3)
        table = table.to(torch.int32).to(device) if paged else None
        expected = [t.clone() for t in (k, v)]
        view = [
            [t[table[b].long()].flatten(0, 1) if paged else t[b] for b in range(3)]
            for t in expected
        ]
        keys, values = (
            [torch.cat([old[b][:n], fresh[b]]) for b, n in enumerate(used)]
            for old, fresh in zip(view, new)
        )
        out, lse = kernel.flash_attn_with_kvcache(
            q, k, v, *new, cache_seqlens=lengths_of(used, device), block_table=table,
            causal=True, return_softmax_lse=True
        )
        check_each(out, lse, q, keys, values, causal=True)
        for t, old, all_rows in zip((k, v), view, (keys, values)):
            for b, n in enumerate(used):
                got = t[table[b].long()].flatten(0, 1) if paged else t[b]
                assert torch.equal(got[: n + rows], all_rows[b])
                assert torch.equal(got[n + rows :], old[b][n + rows :])


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_rotary(kernel, device, dtypes, causal, interleaved):
    used, rows, r = [0, 40], 3, 16
    angles = torch.randn(100, r, generator=torch.Generator().manual_seed(3)).to(device)

    def rotate(x, positions):  # [rows, heads, d] in fp64
        c, s = (f(angles[positions].double())[:, None] for f in (torch.cos, torch.sin))
        x = x.double()
        pick = (slice(0, 2 * r, 2), slice(1, 2 * r, 2)) if interleaved else (
            slice(0, r), slice(r, 2 * r))
        a, b = x[..., pick[0]], x[..., pick[1]]
        out = x.clone()
        out[..., pick[0]], out[..., pick[1]] = a * c - b * s, a * s + b * c
        return out

    for dtype in dtypes:
        q = tensor((2, rows, 2, 64), dtype, device)
        new = [tensor((2, rows, 1, 64), dtype, device, i) for i in (7, 8)]
        k, v = cache(2, 64, 1, 64, dtype, device)
        old = [t.clone() for t in (k, v)]
        out, lse = kernel.flash_attn_with_kvcache(
            q, k, v, *new, angles.cos().to(dtype).float(), angles.sin().to(dtype).float(),
            cache_seqlens=lengths_of(used, device), causal=causal,
            rotary_interleaved=interleaved, return_softmax_lse=True
        )
        for b, n in enumerate(used):
            positions = torch.arange(n, n + rows, device=device)
            wanted = rotate(new[0][b], positions)
            tolerance = 4 * torch.finfo(dtype).eps * 4 if dtype != torch.float32 else 1e-5
            torch.testing.assert_close(
                k[b, n : n + rows].double(), wanted, atol=max(tolerance, 1e-2), rtol=1e-2)
            rotated_q = rotate(q[b], positions if causal else positions[:1].expand(rows))
            s = torch.einsum("qhd,kd->hqk", rotated_q, k[b, : n + rows, 0].double()) * 64**-0.5
            if causal:
                s += torch.full_like(s[0], -math.inf).triu(n + 1)
            values = torch.cat([old[1][b, :n, 0], new[1][b, :, 0]]).double()
            expected = torch.einsum("hqk,kd->qhd", s.softmax(-1), values)
            torch.testing.assert_close(out[b].double(), expected, atol=3e-2, rtol=3e-2)


def test_same_bits_every_time(kernel, device, dtypes):
    for dtype in dtypes:
        q = tensor((2, 1, 8, 128), dtype, device)
        k, v = cache(2, 500, 2, 128, dtype, device)
        first = kernel.flash_attn_with_kvcache(q, k, v, num_splits=4)
        for _ in range(200 if device == "cuda" else 2):
            assert torch.equal(kernel.flash_attn_with_kvcache(q, k, v, num_splits=4), first)


def test_what_lies_behind_the_length_does_not_matter(kernel, device, dtypes):
    for dtype in dtypes:
        q = tensor((1, 1, 4, 64), dtype, device)
        k, v = cache(1, 200, 2, 64, dtype, device)
        expected = kernel.flash_attn_with_kvcache(q, k, v, cache_seqlens=100)
        k[:, 100:], v[:, 100:] = math.nan, math.inf
        got = kernel.flash_attn_with_kvcache(q, k, v, cache_seqlens=100)
        assert torch.equal(got, expected)


def test_views_and_nan(kernel, device, dtypes):
    for dtype in dtypes:
        q = tensor((2, 1, 4, 64), dtype, device)
        k, v = cache(2, 90, 2, 64, dtype, device)
        expected = kernel.flash_attn_with_kvcache(q, k, v)
        both = torch.stack([k, v], dim=2)
        assert torch.equal(kernel.flash_attn_with_kvcache(q, both[:, :, 0], both[:, :, 1]), expected)
        wide = [torch.nn.functional.pad(t, (1, 2))[..., 1:65] for t in (k, v)]  # misaligned
        assert torch.equal(kernel.flash_attn_with_kvcache(q, *wide), expected)
        q[0, 0, 1, 3] = math.nan
        got = kernel.flash_attn_with_kvcache(q, k, v)
        assert got[0, 0, 1].isnan().all() and torch.equal(got[1], expected[1])


def test_opcheck(kernel, device):
    dtype = torch.bfloat16
    q, (k, v) = tensor((2, 1, 4, 64), dtype, device), cache(2, 90, 2, 64, dtype, device)
    n = lengths_of([5, 60], device)
    ops = kernel._ops.ops
    rest = (0.125, True, -1, -1, 0.0, 0, *[None] * 6)
    torch.library.opcheck(ops.cache_forward.default, (q, k, v, n, None, None, None, 0, *rest))
    new = [tensor((2, 3, 2, 64), dtype, device, i) for i in (7, 8)]
    torch.library.opcheck(ops.cache_append.default, (k, v, *new, n, *[None] * 6))


def _refused(kernel, device):
    dtype = torch.bfloat16
    q, (k, v) = tensor((2, 1, 4, 64), dtype, device), cache(2, 90, 2, 64, dtype, device)
    n, f = lengths_of([5, 60], device), kernel.flash_attn_with_kvcache
    table = torch.zeros(2, 3, dtype=torch.int32, device=device)
    return [
        (RuntimeError, "alibi_slopes: expected", lambda: f(q, k, v, alibi_slopes=n)),
        (RuntimeError, "sinks: expected", lambda: f(q, k, v, sinks=n)),
        (ValueError, "v: must be given together", lambda: f(q, k, v, k=k)),
        (ValueError, "cache_seqlens: needed", lambda: f(q, k, v, k=k[:, :1], v=v[:, :1])),
        (ValueError, "rotary_cos: needs", lambda: f(q, k, v, rotary_cos=k, rotary_sin=k)),
        (ValueError, "rotary_sin: must", lambda: f(q, k, v, rotary_cos=k)),
        (RuntimeError, "k_cache: must have the dtype", lambda: f(q, k.float(), v)),
        (RuntimeError, "v_cache: must have the shape", lambda: f(q, k, v[:, :5])),
        (RuntimeError, "k_cache: has fewer", lambda: f(q, k[:1], v[:1])),
        (RuntimeError, "k_cache: its number of heads", lambda: f(q[:, :, :3], k, v)),
        (RuntimeError, "cache_seqlens: expected int32", lambda: f(q, k, v, cache_seqlens=n.long())),
        (RuntimeError, "cache_seqlens:.*vector", lambda: f(q, k, v, cache_seqlens=n[:1])),
        (RuntimeError, "block_table:.*matrix", lambda: f(q, k, v, block_table=table[:1])),
        (RuntimeError, "cache_batch_idx: not together", lambda: f(
            q, k, v, block_table=table, cache_batch_idx=n)),
        (RuntimeError, "num_splits:", lambda: f(q, k, v, num_splits=-1)),
        (RuntimeError, "softcap:", lambda: f(q, k, v, softcap=-1.0)),
        (RuntimeError, "k: must have the heads", lambda: f(
            q, k, v, k[:, :1, :1], v[:, :1, :1], cache_seqlens=n)),
    ]


@pytest.mark.parametrize("case", range(17))
def test_bad_arguments_are_named(kernel, device, case):
    error, pattern, call = _refused(kernel, device)[case]
    with pytest.raises(error, match=pattern):
        call()


@pytest.mark.parametrize("case", range(4))
def test_bad_values_are_named(kernel, device, case):
    if device != "cpu":
        pytest.skip("values on a GPU are the caller's promise: reading them would synchronise")
    q, (k, v) = tensor((1, 1, 2, 8), torch.float32, device), cache(2, 9, 2, 8, torch.float32, device)
    one = lengths_of([10], device)
    pattern, kwargs = [
        ("cache_seqlens: sequence 0 needs 10 rows of 9", dict(cache_seqlens=one)),
        ("cache_batch_idx: sequence 0", dict(cache_batch_idx=one)),
        ("cache_leftpad:", dict(cache_leftpad=-one)),
        ("block_table: page 0 of sequence 0", dict(block_table=one[None])),
    ][case]
    with pytest.raises(RuntimeError, match=pattern):
        kernel.flash_attn_with_kvcache(q, k, v, **kwargs)


@pytest.mark.sanitize
@pytest.mark.parametrize("d", [40, 64, 128, 256])
def test_small_cases_for_the_sanitizer(kernel, device, dtypes, d):
    for dtype in dtypes:
        q = tensor((1, 2, 4, d), dtype, device)
        k, v = cache(9, 16, 2, d, dtype, device)
        table = torch.arange(9, dtype=torch.int32, device=device)[None]
        for splits in (1, 2):
            out, lse = kernel.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=130, block_table=table, num_splits=splits, causal=True,
                return_softmax_lse=True
            )
            flat = [t.flatten(0, 1)[None, :130] for t in (k, v)]
            check(out, lse, q, *flat, causal=True)
