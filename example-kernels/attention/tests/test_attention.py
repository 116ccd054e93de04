# SPDX-License-Identifier: Apache-2.0
"""Attention against fp64, over dtypes, head dimensions, lengths, masks and layouts."""

import math

import pytest
import torch

pytestmark = pytest.mark.kernels_ci

SEED = 0
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# (seqlen_q, seqlen_k): one query, around the tiles of 64 and 32, far from square
LENGTHS = [
    (1, 1),
    (1, 130),
    (63, 65),
    (64, 64),
    (65, 63),
    (113, 203),
    (128, 217),
    (200, 33),
    (239, 1),
    (257, 257),
]
# name -> keyword arguments
MASKS = {
    "full": {},
    "causal": dict(causal=True),
    "left": dict(window_size=(17, -1)),
    "right": dict(window_size=(-1, 5)),
    "local": dict(window_size=(20, 3)),
    "causal-local": dict(causal=True, window_size=(32, 0)),
    "softcap": dict(softcap=15.0),
    "causal-softcap": dict(causal=True, softcap=15.0),
}


def dtype_id(dtype):
    return str(dtype)[6:]


def size_id(size):
    return "x".join(map(str, size))


def tensor(shape, dtype, device, offset=0):
    generator = torch.Generator().manual_seed(SEED + 1000 * offset + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype).to(device)


def reference(q, k, v, causal=False, window_size=(-1, -1), softcap=0.0, softmax_scale=None,
              alibi_slopes=None, sinks=None, kept=None, dtype=None):
    """[batch, seqlen, heads, d] in `dtype` arithmetic (fp64 by default) -> out, lse. `kept`: what
    dropout multiplies the probabilities [batch, heads, seqlen_q, seqlen_k] by."""
    dtype = dtype or torch.float64
    q, k, v = (t.to(dtype) for t in (q, k, v))
    group = q.shape[2] // k.shape[2]
    k, v = (t.repeat_interleave(group, dim=2) for t in (k, v))
    sq, sk = q.shape[1], k.shape[1]
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    s = torch.einsum("bqhd,bkhd->bhqk", q, k) * scale
    if softcap > 0:
        s = softcap * torch.tanh(s / softcap)
    left, right = window_size
    right = 0 if causal else right
    level = torch.arange(sq, device=q.device)[:, None] + sk - sq
    key = torch.arange(sk, device=q.device)[None]
    visible = torch.ones(sq, sk, dtype=torch.bool, device=q.device)
    if left >= 0:
        visible &= key >= level - left
    if right >= 0:
        visible &= key <= level + right
    s = s.float() if dtype.itemsize < 4 else s
    if alibi_slopes is not None:
        s = s - alibi_slopes[..., None, None].to(s) * (level - key).abs()
    s = s.masked_fill(~visible, -math.inf)
    if sinks is not None:
        s = torch.cat([s, sinks[:, None, None].to(s).expand(*s.shape[:-1], 1)], -1)
    p = torch.nan_to_num(torch.softmax(s, -1), nan=0.0)[..., :sk]
    p = p if kept is None else p * kept
    out = torch.einsum("bhqk,bkhd->bqhd", p.to(dtype), v)
    return out, torch.logsumexp(s, -1)


def check(out, lse, q, k, v, atol=2e-5, **kwargs):
    """The error may be twice that of the same computation in the dtype itself; fp32: atol."""
    expected, expected_lse = reference(q, k, v, **kwargs)
    if q.dtype == torch.float32:
        torch.testing.assert_close(out, expected.float(), atol=atol, rtol=2e-5)
    else:
        same = reference(q, k, v, dtype=q.dtype, **kwargs)[0]
        rounding = (expected + 0.3 - 0.3 - expected).abs().max() + torch.finfo(q.dtype).eps * 0.05
        bound = 2 * (same.double() - expected).abs().max() + 2 * rounding
        assert (out.double() - expected).abs().max() <= bound
    assert out.dtype == q.dtype and lse.dtype == torch.float32
    tolerance = 1e-4 if q.dtype == torch.float32 else 2e-3
    torch.testing.assert_close(lse, expected_lse.float(), atol=tolerance, rtol=tolerance)


def inputs(batch, lengths, heads, heads_kv, d, dtype, device):
    sq, sk = lengths
    return (
        tensor((batch, sq, heads, d), dtype, device),
        tensor((batch, sk, heads_kv, d), dtype, device, 1),
        tensor((batch, sk, heads_kv, d), dtype, device, 2),
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", LENGTHS, ids=size_id)
def test_masks_and_lengths(kernel, device, lengths, mask, dtype):
    q, k, v = inputs(2, lengths, 4, 2, 64, dtype, device)
    out, lse, probabilities = kernel.flash_attn_func(
        q, k, v, return_attn_probs=True, **MASKS[mask]
    )
    assert probabilities is None
    check(out, lse, q, k, v, **MASKS[mask])


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [1, 8, 17, 32, 40, 59, 64, 72, 80, 96, 111, 128, 160, 192, 224, 256])
def test_head_dimensions(kernel, device, d, dtype):
    q, k, v = inputs(1, (70, 100), 2, 1, d, dtype, device)
    out, lse, _ = kernel.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    check(out, lse, q, k, v, causal=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("heads", [(6, 6), (6, 2), (6, 1), (1, 1)], ids=size_id)
def test_grouped_heads(kernel, device, heads, dtype):
    q, k, v = inputs(2, (65, 65), *heads, 128, dtype, device)
    out, lse, _ = kernel.flash_attn_func(q, k, v, return_attn_probs=True)
    check(out, lse, q, k, v)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("mask", ["full", "causal", "local"])
@pytest.mark.parametrize("d", [64, 128, 256])
def test_longer_sequences(kernel, device, d, mask, dtype):
    lengths = (100, 300) if device == "cpu" else (1025, 2048)  # the CPU version is slow
    q, k, v = inputs(1, lengths, 2, 2, d, dtype, device)
    out, lse, _ = kernel.flash_attn_func(q, k, v, return_attn_probs=True, **MASKS[mask])
    check(out, lse, q, k, v, **MASKS[mask])


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [64, 59])
@pytest.mark.parametrize("mask", MASKS)
def test_packed_sequences(kernel, device, mask, d, dtype):
    pairs = [(5, 9), (0, 7), (70, 130), (3, 0), (64, 64), (0, 0), (1, 200)]
    heads, heads_kv = 4, 2
    cu_q, cu_k = (
        torch.tensor([0] + [p[i] for p in pairs]).cumsum(0).to(torch.int32).to(device)
        for i in (0, 1)
    )
    total_q, total_k = int(cu_q[-1]), int(cu_k[-1])
    q = tensor((total_q, heads, d), dtype, device)
    k, v = (tensor((total_k, heads_kv, d), dtype, device, i) for i in (1, 2))
    out, lse, _ = kernel.flash_attn_varlen_func(
        q,
        k,
        v,
        cu_seqlens_q=cu_q,
        cu_seqlens_k=cu_k,
        max_seqlen_q=70,
        max_seqlen_k=200,
        return_attn_probs=True,
        **MASKS[mask],
    )
    assert lse.shape == (heads, total_q)
    for i, (sq, sk) in enumerate(pairs):
        a, b = slice(cu_q[i], cu_q[i] + sq), slice(cu_k[i], cu_k[i] + sk)
        if sq:
            check(out[a][None], lse[:, a][None], q[a][None], k[b][None], v[b][None], **MASKS[mask])


def check_gradients(kernel, q, k, v, **kwargs):
    """The error may be three times that of the same computation in the dtype itself."""
    inputs_ = [t.detach().requires_grad_() for t in (q, k, v)]
    grad = tensor((*q.shape[:-1], v.shape[-1]), q.dtype, q.device, 5)
    got = torch.autograd.grad(kernel.flash_attn_func(*inputs_, **kwargs), inputs_, grad)
    expected = _reference_gradients(q, k, v, grad, torch.float64, **kwargs)
    same = _reference_gradients(q, k, v, grad, q.dtype, **kwargs)
    for g, e, s in zip(got, expected, same):
        assert g.dtype == q.dtype
        if q.dtype == torch.float32:
            torch.testing.assert_close(g, e.float(), atol=1e-4, rtol=1e-4)
        else:
            rounding = torch.finfo(q.dtype).eps * (e.abs().max() + 0.1)
            bound = 3 * (s.double() - e).abs().max() + 2 * rounding
            assert (g.double() - e).abs().max() <= bound


def _reference_gradients(q, k, v, grad, dtype, **kwargs):
    inputs_ = [t.detach().to(dtype).requires_grad_() for t in (q, k, v)]
    out = reference(*inputs_, dtype=dtype, **kwargs)[0]
    grads = torch.autograd.grad(out, inputs_, grad.to(dtype))
    return [torch.nan_to_num(g, nan=0.0) for g in grads]


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", [(1, 1), (65, 63), (70, 200), (200, 33)], ids=size_id)
def test_gradients(kernel, device, lengths, mask, dtype):
    q, k, v = inputs(2, lengths, 2, 1, 64, dtype, device)
    check_gradients(kernel, q, k, v, **MASKS[mask])


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [1, 17, 32, 59, 80, 128, 160, 256])
def test_gradients_of_head_dimensions(kernel, device, d, dtype):
    q, k, v = inputs(1, (70, 100), 3, 1, d, dtype, device)
    check_gradients(kernel, q, k, v, causal=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_gradients_of_packed_sequences(kernel, device, dtype):
    pairs = [(5, 9), (0, 7), (70, 130), (3, 0), (1, 200)]
    cu_q, cu_k = (
        torch.tensor([0] + [p[i] for p in pairs]).cumsum(0).to(torch.int32).to(device)
        for i in (0, 1)
    )
    # Two rows more than the sequences have: their gradient is 0.
    q = tensor((int(cu_q[-1]) + 2, 4, 64), dtype, device).requires_grad_()
    k, v = (
        tensor((int(cu_k[-1]) + 2, 2, 64), dtype, device, i).requires_grad_() for i in (1, 2)
    )
    grad = tensor(q.shape, dtype, device, 5)
    out = kernel.flash_attn_varlen_func(q, k, v, cu_q, cu_k, 70, 200, causal=True)
    got = torch.autograd.grad(out, [q, k, v], grad)
    assert not any(g[-2:].any() for g in got)
    for i, (sq, sk) in enumerate(pairs):
        a, b = slice(cu_q[i], cu_q[i] + sq), slice(cu_k[i], cu_k[i] + sk)
        alone = [t.detach()[s][None].requires_grad_() for t, s in ((q, a), (k, b), (v, b))]
        if sq:
            one = kernel.flash_attn_func(*alone, causal=True)
            expected = torch.autograd.grad(one, alone, grad[a][None])
        else:
            expected = [torch.zeros_like(t) for t in alone]
        for g, e, s in zip(got, expected, (a, b, b)):
            torch.testing.assert_close(g[s][None], e, atol=0, rtol=0)


def test_gradients_of_empty_tensors(kernel, device):
    for b, sq, sk, h in [(0, 5, 7, 2), (2, 0, 7, 2), (2, 5, 0, 2), (2, 5, 7, 0)]:
        q, k, v = (
            torch.ones(b, s, h, 64, device=device, requires_grad=True) for s in (sq, sk, sk)
        )
        kernel.flash_attn_func(q, k, v).sum().backward()
        assert not any(t.grad.any() for t in (q, k, v))


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_gradients_have_the_same_bits_every_time(kernel, device, dtype):
    q, k, v = (t.requires_grad_() for t in inputs(1, (200, 300), 4, 2, 128, dtype, device))
    grad = tensor(q.shape, dtype, device, 5)
    first = None
    for _ in range(100 if device == "cuda" else 2):
        got = torch.autograd.grad(kernel.flash_attn_func(q, k, v, causal=True), [q, k, v], grad)
        first = first or got
        for g, f in zip(got, first):
            torch.testing.assert_close(g, f, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [40, 64, 96, 128])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", [(257, 513), (640, 384)], ids=size_id)
def test_gradients_of_many_tiles(kernel, device, lengths, mask, d, dtype):
    # On a GPU blocks of 64 and 128 queries and keys, whole and partly, masked and not.
    if device == "cpu":
        pytest.skip("the CPU version has no tiles")
    q, k, v = inputs(2, lengths, 4, 2, d, dtype, device)
    check_gradients(kernel, q, k, v, **MASKS[mask])


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("mask", ["full", "causal", "local"])
def test_long_gradients_have_the_same_bits_every_time(kernel, device, mask, d):
    # More tiles than a GPU works on at a time: each waits for those that add before it.
    batch, length = (1, 40) if device == "cpu" else (3, 3000)
    q, k, v = (
        t.requires_grad_()
        for t in inputs(batch, (length, length + 77), 8, 4, d, torch.bfloat16, device)
    )
    grad = tensor(q.shape, torch.bfloat16, device, 5)
    out = kernel.flash_attn_func(q, k, v, **MASKS[mask])
    first = None
    for _ in range(50 if device == "cuda" else 2):
        got = torch.autograd.grad(out, [q, k, v], grad, retain_graph=True)
        first = first or got
        for g, f in zip(got, first):
            torch.testing.assert_close(g, f, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [64, 128])
def test_gradients_of_packed_sequences_with_bad_neighbours(kernel, device, d, dtype):
    # What lies behind the end of a sequence has no influence, even if it is not finite.
    pairs = [(70, 130), (33, 200)]
    cu_q, cu_k = (
        torch.tensor([0] + [p[i] for p in pairs]).cumsum(0).to(torch.int32).to(device)
        for i in (0, 1)
    )
    q = tensor((103, 4, d), dtype, device)
    k, v = (tensor((330, 2, d), dtype, device, i) for i in (1, 2))
    grad = tensor(q.shape, dtype, device, 5)

    def first_gradients():
        args = [t.detach().requires_grad_() for t in (q, k, v)]
        out = kernel.flash_attn_varlen_func(*args, cu_q, cu_k, 70, 200, causal=True)
        grads = torch.autograd.grad(out, args, grad)
        return [g[:n] for g, n in zip(grads, (70, 130, 130))]

    expected = first_gradients()
    for t, n in ((q, 70), (k, 130), (v, 130), (grad, 70)):
        t[n:] = math.nan
    for g, e in zip(first_gradients(), expected):
        torch.testing.assert_close(g, e, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [64, 128, 256])
def test_gradients_without_a_visible_partner(kernel, device, d, dtype):
    # Whole tiles of queries see no key; whole tiles of keys are seen by no query.
    cases = (((300, 100), dict(causal=True), 200, 0), ((100, 300), dict(window_size=(5, 0)), 0, 195))
    for lengths, kwargs, lost_queries, lost_keys in cases:
        q, k, v = (t.requires_grad_() for t in inputs(1, lengths, 2, 1, d, dtype, device))
        grad = tensor(q.shape, dtype, device, 5)
        for _ in range(20 if device == "cuda" else 1):
            got = torch.autograd.grad(kernel.flash_attn_func(q, k, v, **kwargs), [q, k, v], grad)
            for g, lost in zip(got, (lost_queries, lost_keys, lost_keys)):
                assert not g[:, :lost].any()
                assert g[:, lost:].any()


def test_strided_gradient(kernel, device):
    q, k, v = (t.requires_grad_() for t in inputs(1, (9, 12), 2, 1, 16, torch.float32, device))
    out = kernel.flash_attn_func(q, k, v)
    expected = torch.autograd.grad(out, [q, k, v], torch.ones_like(out), retain_graph=True)
    got = torch.autograd.grad(out.sum(), [q, k, v])  # an expanded gradient
    for g, e in zip(got, expected):
        torch.testing.assert_close(g, e)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_no_visible_key(kernel, device, dtype):
    q, k, v = inputs(1, (100, 20), 2, 2, 64, dtype, device)
    out, lse, _ = kernel.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert not out[:, :80].any() and (lse[:, :, :80] == -math.inf).all()
    assert out[:, 80:].any() and lse[:, :, 80:].isfinite().all()
    out, lse, _ = kernel.flash_attn_func(q, k[:, :0], v[:, :0], return_attn_probs=True)
    assert not out.any() and (lse == -math.inf).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [64, 128, 256])
def test_what_lies_behind_a_sequence_does_not_matter(kernel, device, d, dtype):
    cu_q, cu_k = (
        torch.tensor(t, dtype=torch.int32, device=device) for t in ([0, 70, 140], [0, 100, 300])
    )
    q = tensor((140, 2, d), dtype, device)
    k, v = (tensor((300, 1, d), dtype, device, i) for i in (1, 2))
    expected = kernel.flash_attn_varlen_func(q, k, v, cu_q, cu_k, 70, 200)[:70]
    for bad in (math.nan, math.inf):
        k[100:], v[100:] = bad, bad
        got = kernel.flash_attn_varlen_func(q, k, v, cu_q, cu_k, 70, 200)[:70]
        torch.testing.assert_close(got, expected, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("mask", MASKS)
def test_many_tiles(kernel, device, mask, d, dtype):
    batch, lengths = (1, (70, 90)) if device == "cpu" else (5, (700, 900))
    q, k, v = inputs(batch, lengths, 16, 4, d, dtype, device)
    out, lse, _ = kernel.flash_attn_func(q, k, v, return_attn_probs=True, **MASKS[mask])
    check(out, lse, q, k, v, **MASKS[mask])


def test_empty(kernel, device):
    for b, sq, h in [(0, 5, 2), (2, 0, 2), (2, 5, 0)]:
        q = torch.zeros(b, sq, h, 64, device=device)
        k = torch.zeros(b, 7, h, 64, device=device)
        assert kernel.flash_attn_func(q, k, k).shape == q.shape


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_layouts(kernel, device, dtype):
    q, k, v = inputs(2, (70, 70), 3, 3, 64, dtype, device)
    expected = kernel.flash_attn_func(q, k, v, causal=True)

    def same(got):
        torch.testing.assert_close(got, expected, atol=0, rtol=0)

    transposed = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v)]
    same(kernel.flash_attn_func(*transposed, causal=True))
    # Misaligned tensors may take another path, whose sums have another order.
    wide = [torch.nn.functional.pad(t, (1, 2))[..., 1:65] for t in (q, k, v)]
    got = kernel.flash_attn_func(*wide, causal=True)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(got, expected, atol=2 * eps, rtol=2 * eps)
    same(kernel.flash_attn_kvpacked_func(q, torch.stack([k, v], dim=2), causal=True))
    same(kernel.flash_attn_qkvpacked_func(torch.stack([q, k, v], dim=2), causal=True))
    cu = torch.tensor([0, 70, 140], dtype=torch.int32, device=device)
    flat = [t.flatten(0, 1) for t in (q, k, v)]
    packed = kernel.flash_attn_varlen_qkvpacked_func(torch.stack(flat, dim=1), cu, 70, causal=True)
    same(packed.view_as(q))
    packed = kernel.flash_attn_varlen_kvpacked_func(
        flat[0], torch.stack(flat[1:], dim=1), cu, cu, 70, 70, causal=True
    )
    same(packed.view_as(q))


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_scale_and_large_scores(kernel, device, dtype):
    q, k, v = inputs(1, (65, 65), 2, 2, 64, dtype, device)
    out, lse, _ = kernel.flash_attn_func(q * 8, k * 8, v, softmax_scale=0.3, return_attn_probs=True)
    assert out.isfinite().all()
    # Scores of some hundreds: their own rounding is what the exponential sees.
    check(out, lse, q * 8, k * 8, v, atol=2e-4, softmax_scale=0.3)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_nan_stays_in_its_row(kernel, device, dtype):
    q, k, v = inputs(1, (70, 70), 1, 1, 64, dtype, device)
    q[0, 3, 0, 5] = float("nan")
    out = kernel.flash_attn_func(q, k, v)
    assert out[0, 3].isnan().all()
    assert out[0, :3].isfinite().all() and out[0, 4:].isfinite().all()


def test_opcheck(kernel, device):
    q, k, v = inputs(1, (9, 12), 2, 1, 16, torch.float32, device)
    op = kernel._ops.ops.attention_forward.default
    rest = (0.25, True, -1, -1, 0.0, None, None, 0.0, None)
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    torch.library.opcheck(op, (q, k, v, None, None, 0, 0, *rest))
    cu = torch.tensor([0, 4, 9], dtype=torch.int32, device=device)
    packed = [t[0, :9].detach().requires_grad_() for t in (q, k, v)]
    torch.library.opcheck(op, (*packed, cu, cu, 5, 5, *rest))


def test_traces_without_a_break(kernel, device):
    def step(q, k, v):
        return kernel.flash_attn_func(q * 2, k, v, causal=True) + 1

    args = [t.requires_grad_() for t in inputs(1, (9, 12), 2, 1, 16, torch.float32, device)]
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*args), step(*args))
    got = torch.autograd.grad(compiled(*args).sum(), args)
    expected = torch.autograd.grad(step(*args).sum(), args)
    for g, e in zip(got, expected):
        torch.testing.assert_close(g, e)


def _refused(kernel, device):
    q = torch.zeros(1, 4, 2, 8, device=device)
    cu = torch.tensor([0, 4], dtype=torch.int32, device=device)
    flat = q[0]
    f, varlen = kernel.flash_attn_func, kernel.flash_attn_varlen_func
    return [
        (RuntimeError, "dropout_p: must be", lambda: f(q, q, q, dropout_p=1.0)),
        (RuntimeError, "alibi_slopes: expected", lambda: f(q, q, q, alibi_slopes=q)),
        (RuntimeError, "sinks: expected", lambda: f(q, q, q, sinks=q)),
        (ValueError, "s_aux: is another name of sinks", lambda: f(q, q, q, sinks=q, s_aux=q)),
        (NotImplementedError, "q_descale", lambda: f(q, q, q, q_descale=q)),
        (NotImplementedError, "attention_chunk", lambda: f(q, q, q, attention_chunk=8)),
        (NotImplementedError, "seqused_k", lambda: varlen(
            flat, flat, flat, cu, cu, 4, 4, seqused_k=cu)),
        (NotImplementedError, "dropout_p", lambda: varlen(
            flat, q, q, cu, cu, 4, 4, dropout_p=0.1, block_table=cu[None])),
        (ValueError, "seqused_k: needed", lambda: varlen(
            flat, q, q, cu, None, 4, 4, block_table=cu[None])),
        (RuntimeError, "q: expected", lambda: f(flat, flat, flat)),
        (RuntimeError, "q: expected", lambda: varlen(q, q, q, cu, cu, 4, 4)),
        (RuntimeError, "q: the head dim", lambda: f(*[torch.zeros(1, 4, 2, 264, device=device)] * 3)),
        (RuntimeError, "q: expected float", lambda: f(q.int(), q.int(), q.int())),
        (RuntimeError, "k:.*dtype", lambda: f(q, q.half(), q)),
        (RuntimeError, "k:.*batch", lambda: f(q, q.repeat(2, 1, 1, 1), q)),
        (RuntimeError, "k:.*head dimension", lambda: f(q, q[..., :4], q)),
        (RuntimeError, "k:.*divide", lambda: f(q, q.repeat(1, 1, 2, 1), q)),
        (RuntimeError, "k:.*divide", lambda: f(q, q[:, :, :0], q[:, :, :0])),
        (RuntimeError, "v:.*shape of k", lambda: f(q, q, q[:, :3])),
        (RuntimeError, "v:.*last dimension", lambda: f(
            q, q, torch.zeros(1, 4, 8, 2, device=device).transpose(2, 3))),
        (RuntimeError, "softcap:", lambda: f(q, q, q, softcap=-1.0)),
        (RuntimeError, "cu_seqlens_q:.*int32", lambda: varlen(
            flat, flat, flat, cu.long(), cu, 4, 4)),
        (RuntimeError, "cu_seqlens_k:.*length", lambda: varlen(
            flat, flat, flat, cu, cu[:1], 4, 4)),
        (RuntimeError, "max_seqlen_q:", lambda: varlen(flat, flat, flat, cu, cu, -1, 4)),
    ]


@pytest.mark.parametrize("case", range(24))
def test_bad_arguments_are_named(kernel, device, case):
    error, pattern, call = _refused(kernel, device)[case]
    with pytest.raises(error, match=pattern):
        call()


@pytest.mark.parametrize("case", range(4))
def test_bad_offsets_are_named(kernel, device, case):
    if device != "cpu":
        pytest.skip("offsets on a GPU are the caller's promise: reading them would synchronise")
    x = torch.zeros(4, 2, 8)
    good = torch.tensor([0, 2, 4], dtype=torch.int32)
    offsets, longest, pattern = [
        ([1, 2, 4], 4, "cu_seqlens_q:.*begin with 0"),
        ([0, 2, 5], 4, "cu_seqlens_q:.*end within"),
        ([0, 3, 2], 4, "cu_seqlens_q:.*decrease"),
        ([0, 3, 4], 2, "max_seqlen_q:.*shorter than sequence 0"),
    ][case]
    bad = torch.tensor(offsets, dtype=torch.int32)
    with pytest.raises(RuntimeError, match=pattern):
        kernel.flash_attn_varlen_func(x, x, x, bad, good, longest, 4)


def test_side_stream(kernel, device):
    if device != "cuda":
        pytest.skip("streams are a CUDA matter")
    q, k, v = inputs(4, (512, 512), 8, 8, 64, torch.bfloat16, device)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        scaled = q * 2  # the kernel must wait for this
        out = kernel.flash_attn_func(scaled, k, v)
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(out, kernel.flash_attn_func(q * 2, k, v), atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_same_bits_every_time(kernel, device, dtype):
    q, k, v = inputs(1, (200, 300), 4, 2, 128, dtype, device)
    first = kernel.flash_attn_func(q, k, v, causal=True)
    for _ in range(200 if device == "cuda" else 3):
        again = kernel.flash_attn_func(q, k, v, causal=True)
        torch.testing.assert_close(again, first, atol=0, rtol=0)


def test_more_than_2_31_elements(kernel, device):
    if device != "cuda" or torch.cuda.mem_get_info()[0] < 40 << 30:
        pytest.skip("needs 40 GB of GPU memory")
    b, s, h, d = 9000, 64, 32, 128  # 2.36e9 elements each
    q = torch.empty(b, s, h, d, dtype=torch.bfloat16, device=device).normal_()
    out, lse, _ = kernel.flash_attn_func(q, q, q, causal=True, return_attn_probs=True)
    for at in (0, 8191, 8192, b - 1):
        part = q[at : at + 1]
        check(out[at : at + 1], lse[at : at + 1], part, part, part, causal=True)


@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("d", [59, 64, 128, 256])
def test_small_cases_for_the_sanitizer(kernel, device, d, dtype):
    q, k, v = inputs(1, (70, 100), 2, 1, d, dtype, device)
    for mask in ("causal", "local"):
        out, lse, _ = kernel.flash_attn_func(q, k, v, return_attn_probs=True, **MASKS[mask])
        check(out, lse, q, k, v, **MASKS[mask])
        check_gradients(kernel, q, k, v, **MASKS[mask])
