# SPDX-License-Identifier: Apache-2.0
"""flash_attn_with_kvcache over fp8, int4 and fp4 caches, against fp64 over the numbers they stand for."""

import pytest
import torch
from test_attention import check, tensor
from test_cache import MASKS, check_each, dtypes, lengths_of  # noqa: F401 (a fixture)

pytestmark = pytest.mark.kernels_ci

FORMATS = {"fp8": None, "int4": None, "int4-groups": 32, "nvfp4": None, "mxfp4": None}


class Quantised:
    """Keys and values [places, rows, heads, d], and what the functions need to read them."""

    def __init__(self, kernel, shape, dtype, device, format, group=None):
        name = format.split("-")[0]
        source = [tensor(shape, dtype, device, i) for i in (1, 2)]
        both = [kernel.quantize_kv(t, name, group_size=group) for t in source]
        (self.k, scale_k), (self.v, scale_v) = both
        self.source = source
        self.values = [kernel.dequantize_kv(*t) for t in both]
        names = ("k_descale", "v_descale") if name == "fp8" else ("k_scale_blocks", "v_scale_blocks")
        self.kwargs = dict(zip(names, (scale_k, scale_v)))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("splits", [0, 1, 3])
def test_lengths_and_masks(kernel, device, dtypes, splits, mask, format):
    used = [0, 1, 63, 64, 129, 300, 17]
    for dtype in dtypes:
        for rows in (1, 33):
            q = tensor((len(used), rows, 4, 64), dtype, device)
            c = Quantised(kernel, (len(used), 300, 2, 64), dtype, device, format, FORMATS[format])
            out, lse = kernel.flash_attn_with_kvcache(
                q, c.k, c.v, cache_seqlens=lengths_of(used, device), num_splits=splits,
                return_softmax_lse=True, **c.kwargs, **MASKS[mask]
            )
            keys, values = ([t[b, :n] for b, n in enumerate(used)] for t in c.values)
            check_each(out, lse, q, keys, values, **MASKS[mask])


@pytest.mark.parametrize("d", [8, 40, 64, 80, 96, 128, 160, 192, 256])
@pytest.mark.parametrize("format", FORMATS)
def test_head_dimensions(kernel, device, dtypes, format, d):
    group = FORMATS[format]
    if group is not None and d % group != 0:
        group = None
    if d % {"nvfp4": 16, "mxfp4": 32}.get(format, 1) != 0:
        with pytest.raises(ValueError, match="x: the head dimension"):
            kernel.quantize_kv(torch.ones(1, 1, 1, d, device=device), format)
        return
    for dtype in dtypes:
        for heads in ((4, 4), (24, 1)):
            q = tensor((2, 1, heads[0], d), dtype, device)
            c = Quantised(kernel, (2, 200, heads[1], d), dtype, device, format, group)
            for splits in (1, 2):
                out, lse = kernel.flash_attn_with_kvcache(
                    q, c.k, c.v, num_splits=splits, return_softmax_lse=True, **c.kwargs
                )
                check_each(out, lse, q, *c.values)


@pytest.mark.parametrize("group", [32, 64, 128, 256])
def test_groups(kernel, device, dtypes, group):
    for dtype in dtypes:
        q = tensor((1, 2, 4, 256), dtype, device)
        c = Quantised(kernel, (1, 90, 2, 256), dtype, device, "int4", group)
        out, lse = kernel.flash_attn_with_kvcache(q, c.k, c.v, return_softmax_lse=True, **c.kwargs)
        check_each(out, lse, q, *c.values)


@pytest.mark.parametrize("page", [1, 16, 48, 128])
@pytest.mark.parametrize("format", FORMATS)
def test_pages(kernel, device, dtypes, format, page):
    used, first = [200, 0, 77], [0, 0, 9]
    per_sequence = -(-200 // page)
    count = 3 * per_sequence + 2
    table = torch.randperm(count, generator=torch.Generator().manual_seed(1))[: 3 * per_sequence]
    table = table.view(3, per_sequence).to(torch.int32).to(device)
    for dtype in dtypes:
        q = tensor((3, 2, 4, 128), dtype, device)
        c = Quantised(kernel, (count, page, 2, 128), dtype, device, format, FORMATS[format])
        out, lse = kernel.flash_attn_with_kvcache(
            q, c.k, c.v, cache_seqlens=lengths_of(used, device), block_table=table,
            cache_leftpad=lengths_of(first, device), causal=True, return_softmax_lse=True, **c.kwargs
        )
        flat = [
            [t[table[b].long()].flatten(0, 1)[f:n] for b, (f, n) in enumerate(zip(first, used))]
            for t in c.values
        ]
        check_each(out, lse, q, *flat, causal=True)


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_append(kernel, device, dtypes, format, paged):
    used, rows = [0, 60, 97], 3
    for dtype in dtypes:
        shape = (9, 40, 2, 64) if paged else (3, 120, 2, 64)
        c = Quantised(kernel, shape, dtype, device, format, FORMATS[format])
        q = tensor((3, rows, 4, 64), dtype, device)
        new = [tensor((3, rows, 2, 64), dtype, device, i) for i in (7, 8)]
        table = torch.randperm(9, generator=torch.Generator().manual_seed(2)).view(3, 3)
        table = table.to(torch.int32).to(device) if paged else None
        scales = list(c.kwargs.values())
        name = format.split("-")[0]
        expected = [t.clone() for t in (c.k, c.v)], [t.clone() for t in scales]
        for numbers, scale, fresh in zip(*expected, new):
            extra = {"descale": scale} if name == "fp8" else {"group_size": FORMATS[format]}
            blocks_bytes = scale.view(torch.uint8) if scale.dtype.itemsize == 1 else scale
            codes, blocks = kernel.quantize_kv(fresh, name, **extra)
            for b, n in enumerate(used):
                for i in range(rows):
                    at = (int(table[b, (n + i) // 40]), (n + i) % 40) if paged else (b, n + i)
                    numbers.view(torch.uint8)[at] = codes.view(torch.uint8)[b, i]
                    if name != "fp8":
                        blocks_bytes[at] = blocks.view(blocks_bytes.dtype)[b, i]
        out, lse = kernel.flash_attn_with_kvcache(
            q, c.k, c.v, *new, cache_seqlens=lengths_of(used, device), block_table=table,
            causal=True, return_softmax_lse=True, **c.kwargs
        )
        for got, wanted in zip((c.k, c.v, *scales), (*expected[0], *expected[1])):
            assert torch.equal(got.view(torch.uint8), wanted.view(torch.uint8))
        values = [kernel.dequantize_kv(n, s) for n, s in zip(*expected)]
        places = [
            [(t[table[b].long()].flatten(0, 1) if paged else t[b])[: n + rows]
             for b, n in enumerate(used)]
            for t in values
        ]
        check_each(out, lse, q, *places, causal=True)


def test_descales(kernel, device, dtypes):
    for dtype in dtypes:
        q = tensor((2, 1, 4, 64), dtype, device)
        c = Quantised(kernel, (2, 90, 2, 64), dtype, device, "fp8")
        raw = [t.float() for t in (c.k, c.v)]
        both = torch.tensor([[0.01, 0.02], [0.005, 0.03]], device=device)
        for descale in (0.01, torch.tensor(0.01, device=device), both[0], both):
            factor = descale if isinstance(descale, float) else descale[..., None]
            factor = factor[:, None] if getattr(factor, "dim", lambda: 0)() == 3 else factor
            out, lse = kernel.flash_attn_with_kvcache(
                q, c.k, c.v, k_descale=descale, v_descale=descale, return_softmax_lse=True
            )
            check_each(out, lse, q, *[t * factor for t in raw])
        plain = kernel.flash_attn_with_kvcache(q, c.k, c.v)
        ones = kernel.flash_attn_with_kvcache(q, c.k, c.v, k_descale=1.0, v_descale=1.0)
        assert torch.equal(plain, ones)


@pytest.mark.parametrize(
    "format, error",
    [("fp8", 0.05), ("int4", 0.2), ("int4-groups", 0.15), ("nvfp4", 0.15), ("mxfp4", 0.2)],
)
def test_the_result_is_near_that_of_the_numbers_before(kernel, device, dtypes, format, error):
    for dtype in dtypes:
        q = tensor((2, 1, 8, 128), dtype, device)
        c = Quantised(kernel, (2, 500, 2, 128), dtype, device, format, FORMATS[format])
        got = kernel.flash_attn_with_kvcache(q, c.k, c.v, **c.kwargs).double()
        wanted = kernel.flash_attn_with_kvcache(q, *c.source).double()
        assert (got - wanted).norm() < error * wanted.norm()


def test_numbers_of_one_value_and_large_ones(kernel, device):
    x = torch.zeros(1, 3, 1, 64, device=device)
    x[0, 1], x[0, 2, 0, :32] = 3.0, -7000.0
    x[0, 2, 0, 32:] = 1e-3
    for format, rtol in (("int4", 0.04), ("fp8", 0.04), ("nvfp4", 0.65), ("mxfp4", 0.25)):
        got = kernel.dequantize_kv(*kernel.quantize_kv(x, format))
        torch.testing.assert_close(got, x, atol=2.0 if format == "fp8" else 0.06, rtol=rtol)


def test_numbers_of_fp4(kernel, device):
    # All codes, through the kernel: the value is what the formats say, by their tables.
    codes = torch.arange(16, dtype=torch.uint8, device=device).repeat(4)  # a head dimension of 64
    packed = (codes[0::2] | codes[1::2] << 4)[None, None, None]
    table = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    table = torch.tensor(table + [-n for n in table], device=device).repeat(4)
    scale = {
        torch.float8_e4m3fn: torch.tensor([0.5, 1.0, 448.0, 2**-9], device=device),
        torch.float8_e8m0fnu: torch.tensor([2.0, 2**-8], device=device),
    }
    q = torch.zeros(1, 1, 1, 64, dtype=torch.float16, device=device)
    for dtype, numbers in scale.items():
        blocks = numbers.to(dtype)[None, None, None]
        out = kernel.flash_attn_with_kvcache(
            q, packed, packed, k_scale_blocks=blocks, v_scale_blocks=blocks, v_descale=0.5
        )
        expected = table * numbers.repeat_interleave(64 // len(numbers)) * 0.5
        torch.testing.assert_close(out[0, 0, 0].float(), expected, atol=0, rtol=1e-3)


@pytest.mark.parametrize("format", ["int4", "nvfp4", "mxfp4"])
def test_descale_of_codes(kernel, device, dtypes, format):
    for dtype in dtypes:
        q = tensor((2, 1, 4, 64), dtype, device)
        x = tensor((2, 90, 2, 64), dtype, device, 1)
        descale = torch.tensor([0.25, 3.0], device=device)
        codes, blocks = kernel.quantize_kv(x, format, descale=descale)
        values = kernel.dequantize_kv(codes, blocks, descale)
        assert (values - x).norm() < 0.2 * x.norm()
        out, lse = kernel.flash_attn_with_kvcache(
            q, codes, codes, k_descale=descale, v_descale=descale, k_scale_blocks=blocks,
            v_scale_blocks=blocks, return_softmax_lse=True
        )
        check_each(out, lse, q, values, values)


def test_same_bits_every_time(kernel, device, dtypes):
    for format in FORMATS:
        q = tensor((2, 1, 8, 128), torch.bfloat16, device)
        c = Quantised(kernel, (2, 500, 2, 128), torch.bfloat16, device, format, FORMATS[format])
        first = kernel.flash_attn_with_kvcache(q, c.k, c.v, num_splits=4, **c.kwargs)
        for _ in range(200 if device == "cuda" else 2):
            again = kernel.flash_attn_with_kvcache(q, c.k, c.v, num_splits=4, **c.kwargs)
            assert torch.equal(again, first)


@pytest.mark.parametrize("format", FORMATS)
def test_what_lies_behind_the_length_does_not_matter(kernel, device, format):
    q = tensor((1, 1, 4, 64), torch.bfloat16, device)
    c = Quantised(kernel, (1, 200, 2, 64), torch.bfloat16, device, format, FORMATS[format])
    kwargs = dict(cache_seqlens=100, **c.kwargs)
    expected = kernel.flash_attn_with_kvcache(q, c.k, c.v, **kwargs)
    for t in (c.k, c.v):
        t.view(torch.uint8)[:, 100:] = 255
    if format != "fp8":
        for t in c.kwargs.values():
            (t.view(torch.uint8) if t.dtype.itemsize == 1 else t)[:, 100:] = 127
    assert torch.equal(kernel.flash_attn_with_kvcache(q, c.k, c.v, **kwargs), expected)


@pytest.mark.parametrize("format", FORMATS)
def test_opcheck(kernel, device, format):
    q = tensor((2, 1, 4, 64), torch.bfloat16, device)
    c = Quantised(kernel, (2, 90, 2, 64), torch.bfloat16, device, format, FORMATS[format])
    meaning = [c.kwargs.get(n) for n in ("k_descale", "v_descale", "k_scale_blocks", "v_scale_blocks")]
    meaning = [t.expand(2, 2) if t is not None and t.dim() == 1 else t for t in meaning]
    n = lengths_of([5, 60], device)
    ops = kernel._ops.ops
    rest = (0.125, True, -1, -1, 0.0, 0)
    args = (q, c.k, c.v, n, None, None, None, 0, *rest, *meaning, None, None)
    # torch itself cannot compare float8 tensors before and after.
    utils = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    if "fp" in format:
        torch.library.opcheck(ops.cache_forward.default, args, test_utils=utils)
        return
    torch.library.opcheck(ops.cache_forward.default, args)
    new = [tensor((2, 3, 2, 64), torch.bfloat16, device, i) for i in (7, 8)]
    torch.library.opcheck(ops.cache_append.default, (c.k, c.v, *new, n, None, None, *meaning))


def _refused(kernel, device):
    dtype = torch.bfloat16
    q = tensor((2, 1, 4, 64), dtype, device)
    f, quantize = kernel.flash_attn_with_kvcache, kernel.quantize_kv
    eight = Quantised(kernel, (2, 90, 2, 64), dtype, device, "fp8")
    four = Quantised(kernel, (2, 90, 2, 64), dtype, device, "int4")
    k, v = four.source
    blocks = four.kwargs["k_scale_blocks"]
    good = dict(k_scale_blocks=blocks, v_scale_blocks=blocks)
    return [
        (RuntimeError, "k_scale_blocks: needed", lambda: f(q, four.k, four.v)),
        (RuntimeError, "v_scale_blocks: needed", lambda: f(
            q, four.k, four.v, k_scale_blocks=blocks)),
        (RuntimeError, "k_scale_blocks: only for", lambda: f(q, eight.k, eight.v, **good)),
        (RuntimeError, r"k_scale_blocks: expected float16 \(int4\), float8_e4m3fn", lambda: f(
            q, four.k, four.v, k_scale_blocks=blocks.float(), v_scale_blocks=blocks)),
        (RuntimeError, r"v_scale_blocks: expected \[places", lambda: f(
            q, four.k, four.v, k_scale_blocks=blocks, v_scale_blocks=blocks[:, :5])),
        (RuntimeError, "v_scale_blocks: must have the dtype and the group", lambda: f(
            q, four.k, four.v, k_scale_blocks=blocks, v_scale_blocks=blocks.repeat(1, 1, 1, 2, 1))),
        (RuntimeError, "k_descale: only for", lambda: f(q, k, v, k_descale=1.0)),
        (RuntimeError, r"v_descale: expected \[batch", lambda: f(
            q, eight.k, eight.v, v_descale=torch.ones(2, 2, 1, device=device))),
        (RuntimeError, "v_descale: expected float32", lambda: f(
            q, eight.k, eight.v, v_descale=torch.ones(2, device=device).half())),
        (RuntimeError, "v_cache: must have the dtype of k_cache", lambda: f(
            q, eight.k, four.v, **good)),
        (RuntimeError, "k_cache: must have the head dim.*two channels", lambda: f(
            q[..., :32], four.k, four.v, **good)),
        (RuntimeError, "k_scale_blocks: expected.*16 channels", lambda: f(
            q, four.k, four.v, k_scale_blocks=eight.k[..., :2], v_scale_blocks=eight.k[..., :2])),
        (ValueError, "format:", lambda: quantize(k, "int5")),
        (ValueError, "group_size:", lambda: quantize(k, "int4", group_size=16)),
        (ValueError, "group_size:", lambda: quantize(k, "fp8", group_size=32)),
        (ValueError, "group_size:", lambda: quantize(k, "nvfp4", group_size=16)),
    ]


@pytest.mark.parametrize("case", range(16))
def test_bad_arguments_are_named(kernel, device, case):
    error, pattern, call = _refused(kernel, device)[case]
    with pytest.raises(error, match=pattern):
        call()


@pytest.mark.sanitize
@pytest.mark.parametrize("d", [40, 64, 128, 256])
@pytest.mark.parametrize("format", ["fp8", "int4", "nvfp4"])
def test_small_cases_for_the_sanitizer(kernel, device, format, d):
    dtype = torch.bfloat16
    d = d + d % 16 if format == "nvfp4" else d
    q = tensor((1, 2, 4, d), dtype, device)
    c = Quantised(kernel, (9, 16, 2, d), dtype, device, format)
    table = torch.arange(9, dtype=torch.int32, device=device)[None]
    new = [tensor((1, 2, 2, d), dtype, device, i) for i in (7, 8)]
    for splits in (1, 2):
        out = kernel.flash_attn_with_kvcache(
            q, c.k, c.v, *new, cache_seqlens=128, block_table=table, num_splits=splits, causal=True,
            **c.kwargs
        )
        assert out.isfinite().all()
