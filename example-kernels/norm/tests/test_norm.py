# SPDX-License-Identifier: Apache-2.0
"""Every operator against fp64, over dtypes, sizes, strides and modes."""

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.kernels_ci

SEED = 0
EPS = 1e-6
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
MODES = ["torch", "llama", "gemma"]
# rows x columns: around a vector (4 or 8 elements), a warp, the spread of a row over threads, many
# short rows (a thread has several), the largest rows of a block (65536 16-bit, 32768 32-bit
# elements; 32768 and 16384 with a second operand).
SIZES = [
    (1, 1),
    (3, 7),
    (5, 8),
    (37, 64),
    (9, 128),
    (300, 256),
    (1001, 8),
    (515, 128),
    (303, 264),
    (261, 512),
    (4, 511),
    (4, 512),
    (3, 1000),
    (300, 1024),
    (2, 4095),
    (300, 4096),
    (2, 4104),
    (7, 8192),
    (3, 8200),
    (3, 16384),
    (2, 32768),
    (2, 65536),
    (2, 65544),
    (2, 131072),
]
# absolute and relative, for values of the order of 1
TOLERANCE = {
    torch.float32: dict(atol=2e-5, rtol=2e-5),
    torch.float16: dict(atol=2e-3, rtol=2e-3),
    torch.bfloat16: dict(atol=1e-2, rtol=1.6e-2),
}


def dtype_id(dtype):
    return str(dtype)[6:]


def size_id(size):
    return "x".join(map(str, size))


def tensor(shape, dtype, device, offset=0):
    """Standard normal values, the same for every device."""
    generator = torch.Generator().manual_seed(SEED + 1000 * offset + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype).to(device)


def rms_reference(x, weight, mode):
    """fp64; llama's inner rounding is part of the contract."""
    wide = x.double()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
    if mode == "llama" and x.dtype != torch.float64:
        normed = normed.to(x.dtype).double()
    if weight is None:
        return normed
    return normed * (1 + weight.double() if mode == "gemma" else weight.double())


def check(got, expected, dtype, scale=1):
    tolerance = {k: v * scale for k, v in TOLERANCE[dtype].items()}
    torch.testing.assert_close(got, expected.to(got.dtype), **tolerance)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", SIZES, ids=size_id)
def test_rms_norm(kernel, device, size, dtype):
    x, w = tensor(size, dtype, device), tensor(size[-1:], dtype, device, 1)
    for mode in MODES:
        out = torch.full_like(x, float("nan"))
        kernel.rms_norm(out, x, w, EPS, mode)
        check(out, rms_reference(x, w, mode), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", SIZES, ids=size_id)
def test_fused_add_rms_norm(kernel, device, size, dtype):
    x, r = tensor(size, dtype, device), tensor(size, dtype, device, 2)
    w = tensor(size[-1:], dtype, device, 1)
    total = x + r
    got, residual = x.clone(), r.clone()
    kernel.fused_add_rms_norm(got, residual, w, EPS)
    torch.testing.assert_close(residual, total, atol=0, rtol=0)
    check(got, rms_reference(total, w, "llama"), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", SIZES, ids=size_id)
def test_layer_norm(kernel, device, size, dtype):
    x = tensor(size, dtype, device) + 2
    w, b = (tensor(size[-1:], dtype, device, i) for i in (1, 2))
    out = torch.full_like(x, float("nan"))
    kernel.layer_norm(out, x, w, b, 1e-5)
    check(out, F.layer_norm(x.double(), size[-1:], w.double(), b.double(), 1e-5), dtype)


@pytest.mark.parametrize("weights", ["none", "float32"])
@pytest.mark.parametrize("size", [(3, 7), (5, 4096)], ids=size_id)
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_other_weights(kernel, device, size, dtype, weights):
    x = tensor(size, dtype, device)
    w, b = (tensor(size[-1:], torch.float32, device, i) for i in (1, 2))
    if weights == "none":
        w = b = None
    for mode in MODES:
        out = torch.empty_like(x)
        kernel.rms_norm(out, x, w, EPS, mode)
        check(out, rms_reference(x, w, mode), dtype)
    kernel.layer_norm(out, x, w, b, 1e-5)
    wide = [None if p is None else p.double() for p in (w, b)]
    check(out, F.layer_norm(x.double(), size[-1:], *wide, 1e-5), dtype)


def _heads(dtype, device):
    """The query heads inside a packed projection: two strides between the rows."""
    packed = tensor((5, 3 * 4, 64), dtype, device)
    return packed[:, 4:8]


def _sliced(dtype, device):
    return tensor((6, 200), dtype, device)[:, 8:136]


def _misaligned(dtype, device):
    return tensor((6, 200), dtype, device)[:, 1:129]


def _expanded(dtype, device):
    return tensor((1, 128), dtype, device).expand(5, 128)


def _transposed(dtype, device):
    return tensor((5, 4, 64), dtype, device).transpose(0, 1)


VIEWS = [_heads, _sliced, _misaligned, _expanded, _transposed]


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("view", VIEWS, ids=lambda v: v.__name__[1:])
def test_views(kernel, device, view, dtype):
    x = view(dtype, device)
    w = tensor(x.shape[-1:], dtype, device, 1)
    out = torch.empty(x.shape, dtype=dtype, device=device)
    kernel.rms_norm(out, x, w, EPS)
    check(out, rms_reference(x, w, "llama"), dtype)
    grad = tensor(x.shape, dtype, device, 3)
    y, rstd = kernel.apply_rms_norm(x, w, EPS)
    got = kernel.apply_rms_norm_backward(grad, x, w, y, rstd, EPS)
    same = x.contiguous()
    expected = kernel.apply_rms_norm_backward(grad, same, w, y, rstd, EPS)
    for g, e in zip(got, expected):
        check(g, e, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_in_place(kernel, device, dtype):
    for size in [(5, 64), (5, 63), (2, 65544)]:
        x, w = tensor(size, dtype, device), tensor(size[-1:], dtype, device, 1)
        out = torch.empty_like(x)
        kernel.rms_norm(out, x, w, EPS)
        kernel.rms_norm(x, x, w, EPS)
        torch.testing.assert_close(x, out, atol=0, rtol=0)


@pytest.mark.parametrize("shape", [(0, 16), (4, 0), (0, 0), (2, 0, 5)])
def test_empty(kernel, device, shape):
    x = torch.empty(shape, device=device, requires_grad=True)
    w = torch.ones(shape[-1], device=device, requires_grad=True)
    kernel.rms_norm(torch.empty_like(x), x.detach(), w.detach(), EPS)
    kernel.autograd.rms_norm(x, w, EPS).sum().backward()
    kernel.autograd.layer_norm(x, w, w, EPS).sum().backward()
    assert x.grad.shape == x.shape
    assert not w.grad.any()


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_special_rows(kernel, device, dtype):
    n = 64
    x = torch.zeros(5, n)
    x[1] = 3.0  # variance 0
    x[2, 5] = float("nan")
    x[3] = 6e-5  # tiny
    x[4] = torch.linspace(-1e4, 1e4, n)
    x = x.to(dtype).to(device)
    w = torch.ones(n, dtype=dtype, device=device)
    out = torch.empty_like(x)
    kernel.rms_norm(out, x, w, EPS, "torch")
    assert not out[0].any() and out[2].isnan().all()
    finite = [0, 1, 3, 4]
    check(out[finite], rms_reference(x, w, "torch")[finite], dtype)
    kernel.layer_norm(out, x, w, None, 1e-5)
    assert not out[0].any() and out[2].isnan().all()
    check(out[finite], F.layer_norm(x.double(), (n,), eps=1e-5)[finite], dtype)


def test_layer_norm_far_from_zero(kernel, device):
    """The variance is taken around the mean; E[x^2] - E[x]^2 would lose it."""
    x = tensor((4, 4096), torch.float32, device) + 1000
    out = torch.empty_like(x)
    kernel.layer_norm(out, x, None, None, 1e-5)
    torch.testing.assert_close(
        out, F.layer_norm(x.double(), (4096,), eps=1e-5).float(), atol=2e-3, rtol=2e-3
    )


GRADIENT_SIZES = [(1, 1), (3, 7), (70, 64), (300, 256), (5, 511), (1000, 512), (65, 4096)]
GRADIENT_SIZES += [(3, 8192), (3, 16384), (2, 16392), (5, 40000), (3000, 128), (40, 65536)]


def _gradients(out, grads, inputs):
    found = torch.autograd.grad(out, [t for t in inputs if t is not None], grads)
    return found


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", GRADIENT_SIZES, ids=size_id)
@pytest.mark.parametrize("mode", MODES)
def test_rms_gradients(kernel, device, mode, size, dtype):
    x, w = tensor(size, dtype, device), tensor(size[-1:], dtype, device, 1)
    grad = tensor(size, dtype, device, 3)
    inputs = [t.requires_grad_() for t in (x, w)]
    got = _gradients([kernel.autograd.rms_norm(x, w, EPS, mode)], [grad], inputs)
    wide = [t.detach().double().requires_grad_() for t in inputs]
    expected = _gradients([rms_reference(*wide, mode)], [grad.double()], wide)
    check(got[0], expected[0], dtype)
    check(got[1], expected[1], dtype, scale=max(1, size[0] ** 0.5))


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", GRADIENT_SIZES, ids=size_id)
def test_add_rms_gradients(kernel, device, size, dtype):
    x, r, w = (
        tensor(s, dtype, device, i).requires_grad_()
        for i, s in enumerate([size, size, size[-1:]])
    )
    grads = [tensor(size, dtype, device, i) for i in (3, 4)]
    got = _gradients(list(kernel.autograd.add_rms_norm(x, r, w, EPS, "torch")), grads, [x, r, w])
    # The norm is taken of the rounded sum, so the reference begins there.
    total = (x + r).detach().double().requires_grad_()
    wide = w.detach().double().requires_grad_()
    expected = _gradients(
        [rms_reference(total, wide, "torch")], [grads[0].double()], [total, wide]
    )
    check(got[0], expected[0] + grads[1].double(), dtype)
    torch.testing.assert_close(got[1], got[0], atol=0, rtol=0)
    check(got[2], expected[1], dtype, scale=max(1, size[0] ** 0.5))


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", GRADIENT_SIZES, ids=size_id)
def test_layer_gradients(kernel, device, size, dtype):
    if size == (1, 1):
        pytest.skip("the gradient of a constant is noise")
    x, w, b = (
        tensor(s, dtype, device, i).requires_grad_()
        for i, s in enumerate([size, size[-1:], size[-1:]])
    )
    grad = tensor(size, dtype, device, 3)
    got = _gradients([kernel.autograd.layer_norm(x, w, b, 1e-5)], [grad], [x, w, b])
    wide = [t.detach().double().requires_grad_() for t in (x, w, b)]
    out = F.layer_norm(wide[0], size[-1:], wide[1], wide[2], 1e-5)
    expected = _gradients([out], [grad.double()], wide)
    check(got[0], expected[0], dtype)
    for g, e in zip(got[1:], expected[1:]):
        check(g, e, dtype, scale=max(1, size[0] ** 0.5))


def test_frozen_weight(kernel, device):
    x = tensor((5, 64), torch.float32, device).requires_grad_()
    w = tensor((64,), torch.float32, device, 1)
    kernel.autograd.rms_norm(x, w, EPS).sum().backward()
    kernel.autograd.layer_norm(x, w, None, EPS).sum().backward()
    assert w.grad is None and x.grad.isfinite().all()
    out, rstd = kernel.apply_rms_norm(x.detach(), w, EPS)
    args = (out, x.detach(), w, out, rstd, EPS)
    assert kernel.apply_rms_norm_backward(*args, weight_requires_grad=False)[1] is None
    assert kernel.apply_rms_norm_backward(*args, input_requires_grad=False)[0] is None


@pytest.mark.parametrize("size", [(4096, 512), (300, 511)], ids=size_id)
def test_backward_is_deterministic(kernel, device, size):
    x, grad = (tensor(size, torch.bfloat16, device, i) for i in (0, 1))
    w = tensor(size[-1:], torch.bfloat16, device, 2)
    out, rstd = kernel.apply_rms_norm(x, w, EPS)
    first = kernel.apply_rms_norm_backward(grad, x, w, out, rstd, EPS)
    for _ in range(5):
        again = kernel.apply_rms_norm_backward(grad, x, w, out, rstd, EPS)
        for a, b in zip(first, again):
            torch.testing.assert_close(a, b, atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
def test_layers(kernel, device, dtype):
    x = tensor((2, 3, 64), dtype, device)
    for name, mode in [("RMSNorm", "torch"), ("LlamaRMSNorm", "llama")]:
        layer = getattr(kernel.layers, name)()
        layer.weight = torch.nn.Parameter(tensor((64,), dtype, device, 1))
        layer.variance_epsilon = EPS
        check(layer(x), rms_reference(x, layer.weight, mode), dtype)
        assert layer.has_backward and layer.can_torch_compile
        assert "__init__" not in vars(type(layer))
    layer = kernel.layers.LayerNorm()
    original = torch.nn.LayerNorm(64).to(dtype).to(device)
    layer.weight, layer.bias, layer.eps = original.weight, original.bias, original.eps
    check(layer(x), original.double()(x.double()), dtype)


def test_opcheck(kernel, device):
    ops = kernel._ops.ops
    x, r, w = (
        tensor(s, torch.float32, device, i) for i, s in enumerate([(4, 24), (4, 24), (24,)])
    )
    check_op = torch.library.opcheck
    check_op(ops.rms_norm.default, (torch.empty_like(x), x, w, EPS, "llama"))
    check_op(ops.layer_norm.default, (torch.empty_like(x), x, w, w, EPS))
    check_op(ops.fused_add_rms_norm.default, (x.clone(), r.clone(), w, EPS, "llama"))
    a, b, c = (t.clone().requires_grad_() for t in (x, r, w))
    check_op(ops.rms_norm_forward.default, (a, c, EPS, "torch"))
    check_op(ops.add_rms_norm_forward.default, (a, b, c, EPS, "torch"))
    check_op(ops.layer_norm_forward.default, (a, c, c.detach().clone().requires_grad_(), EPS))


def test_traces_without_a_break(kernel, device):
    def step(x, r, w):
        y, total = kernel.autograd.add_rms_norm(x * 2, r, w, EPS)
        return (kernel.autograd.layer_norm(y, w, None, EPS) + total).sum()

    shapes = [(4, 24), (4, 24), (24,)]
    inputs = [tensor(s, torch.float32, device, i).requires_grad_() for i, s in enumerate(shapes)]
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    got = torch.autograd.grad(compiled(*inputs), inputs)
    expected = torch.autograd.grad(step(*inputs), inputs)
    for g, e in zip(got, expected):
        torch.testing.assert_close(g, e)


def _messages(kernel, device):
    def zeros(*shape, dtype=torch.float32):
        return torch.zeros(*shape, dtype=dtype, device=device)

    x, w = zeros(4, 8), zeros(8)
    return [
        ("weight:.*shape", lambda: kernel.rms_norm(zeros(4, 8), x, zeros(7), EPS)),
        ("weight:.*dtype", lambda: kernel.rms_norm(x, x, zeros(8, dtype=torch.float16), EPS)),
        ("weight:.*contiguous", lambda: kernel.rms_norm(x, x, zeros(16)[::2], EPS)),
        ("out:.*shape", lambda: kernel.rms_norm(zeros(4, 9), x, w, EPS)),
        ("out:.*dtype", lambda: kernel.rms_norm(zeros(4, 8, dtype=torch.float16), x, w, EPS)),
        ("input:.*last dimension", lambda: kernel.rms_norm(x, zeros(8, 4).t(), w, EPS)),
        ("mode:.*gemma", lambda: kernel.rms_norm(x, x, w, EPS, "gemm")),
        ("input:.*one dimension", lambda: kernel.rms_norm(zeros(()), zeros(()), w, EPS)),
        (
            "input:.*float32, float16 or bfloat16",
            lambda: kernel.rms_norm(x, x.int(), w, EPS),
        ),
        ("residual:.*shape", lambda: kernel.fused_add_rms_norm(x, zeros(5, 8), w, EPS)),
        ("bias:.*shape", lambda: kernel.layer_norm(x, x, w, zeros(9), EPS)),
        ("bias:.*dtype", lambda: kernel.layer_norm(
            x.half(), x.half(), w, zeros(8, dtype=torch.float16), EPS)),
        ("rstd:", lambda: kernel.apply_rms_norm_backward(x, x, w, x, zeros(5), EPS)),
        ("grad_out:.*shape", lambda: kernel.apply_rms_norm_backward(
            zeros(4, 9), x, w, x, zeros(4), EPS)),
        ("input:.*two strides", lambda: kernel.rms_norm(
            zeros(2, 3, 4, 8), zeros(4, 5, 6, 8)[:2, :3, :4], w, EPS)),
    ]


@pytest.mark.parametrize("case", range(15))
def test_bad_arguments_are_named(kernel, device, case):
    pattern, call = _messages(kernel, device)[case]
    with pytest.raises(RuntimeError, match=pattern):
        call()


FP8_SIZES = [(1, 128), (3, 256), (301, 128), (515, 384), (37, 1024), (300, 4096), (2, 8320)]
FP8_SIZES += [(3, 16384), (2, 65536), (2, 65664), (2, 131072)]


def _quantised(value, scale):
    """The definition: the stored norm times the reciprocal of the scale, saturated."""
    return (value.float() * (1.0 / scale)).clamp(-448, 448).to(torch.float8_e4m3fn)


def _same_values(got, expected):
    """As numbers: a weight of -0 may count as 0."""
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got.float(), expected.float(), atol=0, rtol=0)


def _fp8_case(kernel, device, size, dtype, fused):
    """Operands, a fresh residual (or None), and what the norm without quantising gives."""
    x, w = tensor(size, dtype, device), tensor(size[-1:], dtype, device, 1)
    residual = tensor(size, dtype, device, 2) if fused else None
    plain = torch.empty_like(x)
    if fused:
        plain, total = x.clone(), residual.clone()
        kernel.fused_add_rms_norm(plain, total, w, EPS)
    else:
        kernel.rms_norm(plain, x, w, EPS)
        total = None
    out = torch.empty(size, dtype=torch.float8_e4m3fn, device=device)
    return x, w, residual, plain, total, out


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", FP8_SIZES + [(4, 7), (5, 1001)], ids=size_id)
def test_fp8_static(kernel, device, size, dtype, fused):
    x, w, residual, plain, total, out = _fp8_case(kernel, device, size, dtype, fused)
    scale = torch.full((1,), 0.013, device=device)  # some values saturate
    if fused:
        kernel.fused_add_rms_norm_static_fp8_quant(out, x, residual, w, scale, EPS)
        torch.testing.assert_close(residual, total, atol=0, rtol=0)
    else:
        kernel.rms_norm_static_fp8_quant(out, x, w, scale, EPS)
    _check_fp8(out, plain, scale)


def _check_fp8(out, plain, scale):
    """The statistics of the quantising kernel may be summed in another order, so a value may fall
    on the other side of a rounding boundary now and then; by one step, not more."""
    exact = _quantised(plain, scale)
    steps = (out.view(torch.uint8).int() - exact.view(torch.uint8).int()).abs()
    assert steps.max().item() <= 1
    assert (steps != 0).float().mean().item() < 2e-3 + 2.0 / steps.numel()


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", FP8_SIZES + [(4, 7), (5, 1001)], ids=size_id)
def test_fp8_per_token(kernel, device, size, dtype, fused):
    x, w, residual, plain, total, out = _fp8_case(kernel, device, size, dtype, fused)
    scales = torch.empty(size[0], 1, device=device)
    for bound in (None, torch.full((1,), 1.5, device=device)):
        again = None if residual is None else residual.clone()
        kernel.rms_norm_dynamic_per_token_quant(out, x, w, scales, EPS, bound, again)
        largest = plain.float().abs().amax(-1, keepdim=True)
        if bound is not None:
            largest = largest.minimum(bound)
        expected = (largest / 448).clamp_min(1 / (448 * 512))
        torch.testing.assert_close(scales, expected, rtol=1e-2, atol=0)
        _check_fp8(out, plain, scales)
        if fused:
            torch.testing.assert_close(again, total, atol=0, rtol=0)


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", FP8_SIZES, ids=size_id)
def test_fp8_per_group(kernel, device, size, dtype, fused):
    x, w, residual, plain, total, out = _fp8_case(kernel, device, size, dtype, fused)
    scales = torch.empty(size[0], size[1] // 128, device=device)
    kernel.rms_norm_per_block_quant(out, x, w, scales, EPS, residual)
    grouped = plain.float().view(size[0], -1, 128)
    expected = (grouped.abs().amax(-1) / 448).clamp_min(1 / (448 * 512))
    torch.testing.assert_close(scales, expected, rtol=1e-2, atol=0)
    _check_fp8(out, plain, scales.repeat_interleave(128, -1))


@pytest.mark.sanitize
def test_fp8_values(kernel, device):
    """Every 8-bit float, the ties between them, saturation and NaN, as the weight of a row of ones."""
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    finite = codes[codes.isfinite()].sort().values
    ties = (finite[1:] + finite[:-1]) / 2
    values = torch.cat([finite, ties, torch.tensor([1e6, -1e6, float("inf"), 449.0, 464.0, 480.0])])
    one = torch.ones(1, device=device)
    for value, expected in zip(values.split(64), _quantised(values, torch.ones(1)).split(64)):
        n = value.numel()
        row = torch.ones(1, n, device=device)
        out = torch.empty(1, n, dtype=torch.float8_e4m3fn, device=device)
        kernel.rms_norm_static_fp8_quant(out, row, value.to(device), one, 0.0, "torch")
        _same_values(out[0].cpu(), expected)
    nan = torch.full((1, 8), float("nan"), device=device)
    out = torch.empty(1, 8, dtype=torch.float8_e4m3fn, device=device)
    kernel.rms_norm_static_fp8_quant(out, nan, None, one, EPS)
    assert out.float().isnan().all()


def test_fp8_opcheck(kernel, device):
    ops = kernel._ops.ops
    x, r = (tensor((4, 256), torch.float32, device, i) for i in (0, 1))
    w = tensor((256,), torch.float32, device, 2)
    out = torch.empty(4, 256, dtype=torch.float8_e4m3fn, device=device)
    scale, scales = torch.ones(1, device=device), torch.empty(4, 2, device=device)
    utils = ("test_faketensor",)  # test_schema compares with allclose, which has no 8-bit floats
    check_op = lambda op, args: torch.library.opcheck(op.default, args, test_utils=utils)
    check_op(ops.rms_norm_static_fp8, (out, x, w, scale, EPS, "llama"))
    check_op(ops.fused_add_rms_norm_static_fp8, (out, r, x, w, scale, EPS, "llama"))
    check_op(ops.rms_norm_dynamic_fp8, (out, scales, x, w, None, EPS, "llama", "per_group"))
    check_op(
        ops.fused_add_rms_norm_dynamic_fp8,
        (out, scales, r, x, w, None, EPS, "llama", "per_group"),
    )


@pytest.mark.parametrize("case", range(5))
def test_fp8_bad_arguments_are_named(kernel, device, case):
    def zeros(*shape, dtype=torch.float32):
        return torch.zeros(*shape, dtype=dtype, device=device)

    x, out, one = zeros(4, 128), zeros(4, 128, dtype=torch.float8_e4m3fn), zeros(1)
    pattern, call = [
        ("out:.*float8", lambda: kernel.rms_norm_static_fp8_quant(x, x, None, one, EPS)),
        ("scale:.*1 elements", lambda: kernel.rms_norm_static_fp8_quant(out, x, None, x, EPS)),
        ("scales:.*4 elements", lambda: kernel.rms_norm_per_block_quant(out, x, None, x, EPS)),
        ("out:.*shape", lambda: kernel.rms_norm_static_fp8_quant(out[:3], x, None, one, EPS)),
        ("input:.*multiple of 128", lambda: kernel.rms_norm_per_block_quant(
            out[:, :64].contiguous(), x[:, :64], None, one, EPS)),
    ][case]
    with pytest.raises(RuntimeError, match=pattern):
        call()


@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("extras", ["none", "residual", "all"])
def test_dropout_add_ln(kernel, device, extras, dtype, rms):
    size, p = (37, 256), 0.25 if extras == "all" else 0.0
    x0 = tensor(size, dtype, device)
    residual = None if extras == "none" else tensor(size, torch.float32, device, 1)
    rowscale = tensor(size[:1], dtype, device, 2) if extras == "all" else None
    colscale = tensor(size[1:], dtype, device, 3) if extras == "all" else None
    gamma, beta = (tensor(size[1:], dtype, device, i) for i in (4, 5))
    beta = None if rms else beta
    z, x, dmask, mu, rsigma = kernel.dropout_add_ln_fwd(
        x0, gamma, beta, rowscale=rowscale, colscale=colscale, dropout_p=p, epsilon=1e-5,
        residual=residual, is_rms_norm=rms,
    )
    assert x.dtype == (dtype if residual is None else torch.float32) and z.dtype == dtype
    leaves = [t if t is None else t.double().requires_grad_()
              for t in (x0, residual, gamma, beta, colscale)]
    wide = leaves[0]
    if extras == "all":
        wide = wide * rowscale.double()[:, None] * leaves[4] * dmask / (1 - p)
        assert 0.15 < 1 - dmask.float().mean().item() < 0.35
    else:
        assert dmask is None
    wide = wide if residual is None else wide + leaves[1]
    if rms:
        expected = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5) * leaves[2]
    else:
        expected = F.layer_norm(wide, size[1:], leaves[2], leaves[3], 1e-5)
    check(x, wide.detach(), dtype, scale=4)
    check(z, expected.detach(), dtype, scale=4)
    dz, dx = tensor(size, dtype, device, 6), tensor(size, x.dtype, device, 7)
    got = kernel.dropout_add_ln_bwd(
        dz, dx, x, mu, rsigma, gamma, rowscale=rowscale, colscale=colscale, dropout_p=p,
        has_residual=residual is not None, is_rms_norm=rms, x0=x0, dmask=dmask,
    )
    (expected * dz.double() + wide * dx.double()).sum().backward()
    for found, leaf, scale in zip(got, leaves, (8, 4, 16, 16, 48)):
        if leaf is None or (leaf is leaves[3] and rms):
            assert found is None
        else:
            check(found, leaf.grad, dtype, scale=scale)


def test_dropout_add_ln_refuses_what_it_cannot(kernel, device):
    x, w = tensor((4, 8), torch.float32, device), tensor((8,), torch.float32, device, 1)
    with pytest.raises(RuntimeError, match="x0_subset.*not supported"):
        kernel.dropout_add_ln_fwd(x, w, x0_subset=w)
    z, x, _, mu, rsigma = kernel.dropout_add_ln_fwd(x, w)
    with pytest.raises(RuntimeError, match="dmask: needed"):
        kernel.dropout_add_ln_bwd(z, None, x, mu, rsigma, w, dropout_p=0.5)


def test_wrong_device(kernel, device):
    if device != "cuda":
        pytest.skip("one device here")
    x = torch.zeros(4, 8, device="cuda")
    with pytest.raises(RuntimeError, match="weight:.*device"):
        kernel.rms_norm(x, x, torch.ones(8), EPS)


def test_side_stream(kernel, device):
    if device != "cuda":
        pytest.skip("streams are a CUDA matter")
    x, w = tensor((2048, 4096), torch.bfloat16, device), tensor((4096,), torch.bfloat16, device, 1)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        y = x * 2  # the kernel must wait for this
        out = torch.empty_like(y)
        kernel.rms_norm(out, y, w, EPS)
    torch.cuda.current_stream().wait_stream(stream)
    check(out, rms_reference(x * 2, w, "llama"), torch.bfloat16)


def test_more_than_2_31_elements(kernel, device):
    if device != "cuda" or torch.cuda.mem_get_info()[0] < 40 << 30:
        pytest.skip("needs 40 GB of GPU memory")
    rows, n = 140000, 16384
    x = torch.empty(rows, n, dtype=torch.bfloat16, device=device).normal_()
    w = tensor((n,), torch.bfloat16, device, 1)
    out, rstd = kernel.apply_rms_norm(x, w, EPS)
    for at in (0, 65535, 131072, rows - 1):
        check(out[at], rms_reference(x[at], w, "torch"), torch.bfloat16)
    grad_input, _ = kernel.apply_rms_norm_backward(out, x, w, out, rstd, EPS)
    few = kernel.apply_rms_norm_backward(out[-3:], x[-3:], w, out[-3:], rstd[-3:], EPS)[0]
    torch.testing.assert_close(grad_input[-3:], few, atol=0, rtol=0)


@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_id)
@pytest.mark.parametrize("size", [(3, 7), (37, 64), (3, 520), (2, 4096), (40, 2048), (2, 66000), (301, 128)], ids=size_id)
def test_small_cases_for_the_sanitizer(kernel, device, size, dtype):
    x, r, w = (
        tensor(s, dtype, device, i).requires_grad_()
        for i, s in enumerate([size, size, size[-1:]])
    )
    y, total = kernel.autograd.add_rms_norm(x, r, w, EPS)
    (kernel.autograd.layer_norm(y, w, w, 1e-5) + total).sum().backward()
    assert x.grad.isfinite().all() and w.grad.isfinite().all()
    out = torch.empty(size, dtype=torch.float8_e4m3fn, device=device)
    scales = torch.empty(size[0], 1, device=device)
    kernel.rms_norm_dynamic_per_token_quant(out, x.detach(), w.detach(), scales, EPS)
    assert scales.isfinite().all() and out.float().isfinite().all()
