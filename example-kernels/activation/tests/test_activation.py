# SPDX-License-Identifier: Apache-2.0
"""Every function against fp64, the gated ones on CUDA bit for bit against PyTorch."""

import math

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.kernels_ci

SEED = 0
DTYPES = [torch.float32, torch.float16, torch.bfloat16]

# name -> (activation of one operand, how the halves combine)
REFERENCE = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_fast": lambda x: 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))),
    "gelu_new": lambda x: 0.5
    * x
    * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))),
    "gelu_quick": lambda x: x * torch.sigmoid(1.702 * x),
    "relu2": lambda x: F.relu(x).square(),
}


def _halves(x):
    d = x.shape[-1] // 2
    return x[..., :d], x[..., d:]


def _gate_first(act):
    return lambda x: act(_halves(x)[0]) * _halves(x)[1]


def _swigluoai(x):
    """In fp64: the operator rounds once."""
    gate, up = x.double()[..., ::2].clamp(max=7.0), x.double()[..., 1::2].clamp(-7.0, 7.0)
    return ((up + 1) * (gate * torch.sigmoid(1.702 * gate))).to(x.dtype)


GATED = {
    "silu_and_mul": _gate_first(F.silu),
    "mul_and_silu": lambda x: _halves(x)[0] * F.silu(_halves(x)[1]),
    "gelu_and_mul": _gate_first(F.gelu),
    "gelu_tanh_and_mul": _gate_first(REFERENCE["gelu_tanh"]),
    "fatrelu_and_mul": _gate_first(lambda x: F.threshold(x, 0.25, 0.0)),
    "swigluoai_and_mul": _swigluoai,
}
BIT_EQUAL = [name for name in GATED if name != "swigluoai_and_mul"]
REFERENCE.update(GATED)
LAYERS = {
    "SiluAndMul": "silu_and_mul",
    "MulAndSilu": "mul_and_silu",
    "GeluAndMul": "gelu_and_mul",
    "GeluTanhAndMul": "gelu_tanh_and_mul",
    "FatreluAndMul": "fatrelu_and_mul",
    "Silu": "silu",
    "Gelu": "gelu",
    "GeluTanh": "gelu_tanh",
    "FastGELU": "gelu_fast",
    "NewGELU": "gelu_new",
    "QuickGELU": "gelu_quick",
}
# rows x output columns. 8 and 4 elements are a vector of 16-bit and 32-bit elements, 256 threads
# of two such vectors a tile.
SIZES = [
    (1, 1),
    (3, 7),
    (2, 8),
    (5, 129),
    (7, 512),
    (83, 512),
    (3, 4095),
    (3, 4096),
    (3, 4097),
    (2, 13824),
    (517, 24),
]
TOLERANCE = {
    torch.float32: dict(atol=1e-5, rtol=1.3e-6),
    torch.float16: dict(atol=1e-3, rtol=1e-3),
    torch.bfloat16: dict(atol=1e-3, rtol=1.6e-2),
}


def _arguments(name):
    return {"fatrelu_and_mul": (0.25,), "swigluoai_and_mul": (1.702, 7.0)}.get(name, ())


def _numbers(name):
    return (*_arguments(name), 0.0, 0.0)[:2]


def _input(name, shape, dtype, device):
    torch.manual_seed(SEED)
    *rows, d = shape
    return torch.randn(*rows, 2 * d if name in GATED else d, dtype=dtype, device=device) * 3


def _out(x, name):
    shape = list(x.shape)
    if name in GATED:
        shape[-1] //= 2
    return torch.full(shape, float("nan"), dtype=x.dtype, device=x.device)


def _expected(name, x):
    """The fp64 value; for the two that round at each step, PyTorch's own evaluation in dtype."""
    if name in ("gelu_fast", "gelu_new") and x.dtype != torch.float32:
        return REFERENCE[name](x)
    return REFERENCE[name](x.double()).to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", REFERENCE)
def test_forward(kernel, device, name, size, dtype):
    x = _input(name, size, dtype, device)
    out = _out(x, name)
    assert getattr(kernel, name)(out, x, *_arguments(name)) is out
    torch.testing.assert_close(out, _expected(name, x), **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("tokens", [7, 83, 2048])
@pytest.mark.parametrize("name", BIT_EQUAL)
def test_gated_equals_torch_bit_for_bit(kernel, device, name, tokens, dtype):
    if device != "cuda":
        pytest.skip("the CPU's exp and erf are those of the C library, PyTorch's are its own")
    for d in (512, 13824):
        x = _input(name, (tokens, d), dtype, device)
        out = _out(x, name)
        getattr(kernel, name)(out, x, *_arguments(name))
        torch.testing.assert_close(out, REFERENCE[name](x), atol=0, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", REFERENCE)
def test_misaligned_views(kernel, device, name, dtype):
    x = _input(name, (4, 64), dtype, device)
    shifted = torch.empty(x.numel() + 1, dtype=dtype, device=device)[1:].view_as(x)
    shifted.copy_(x)
    out = _out(x, name)
    shifted_out = torch.empty(out.numel() + 1, dtype=dtype, device=device)[1:].view_as(out)
    getattr(kernel, name)(out, x, *_arguments(name))
    getattr(kernel, name)(shifted_out, shifted, *_arguments(name))
    torch.testing.assert_close(shifted_out, out, atol=0, rtol=0)


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("shape", [(0, 16), (4, 0), (0, 0), (3, 0, 5)])
def test_empty(kernel, device, name, shape):
    x = _input(name, shape, torch.float32, device)
    out = _out(x, name)
    getattr(kernel, name)(out, x, *_arguments(name))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", REFERENCE)
def test_special_values(kernel, device, name, dtype):
    a = torch.tensor([float("nan"), 0.0, -0.0, 1e-7, -1e-7, 100.0, -100.0, 3e4, -3e4])
    x = torch.cat([a, torch.ones_like(a)]) if name in GATED else a
    if name == "mul_and_silu":
        x = torch.cat([torch.ones_like(a), a])
    x = x.to(dtype).to(device)
    out = _out(x, name)
    getattr(kernel, name)(out, x, *_arguments(name))
    torch.testing.assert_close(out, REFERENCE[name](x), equal_nan=True, **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "gelu_quick", "relu2"])
def test_every_16_bit_value(kernel, device, name, dtype):
    """Those that round once: hardly further from the exact value than the nearest 16-bit one."""
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    x = every[every.isfinite()].to(device)
    out = getattr(kernel, name)(_out(x, name), x).double()
    exact = REFERENCE[name](x.double())
    nearest = exact.to(dtype).double()
    within = nearest.isfinite()
    slack = (nearest - exact).abs() + 2.0**-16 * exact.abs() + 2.0**-22
    assert ((out - exact).abs() <= slack)[within].all()
    assert out[~within].isinf().all()


@pytest.mark.parametrize("name", [n for n in REFERENCE if n != "swigluoai_and_mul"])
def test_infinity(kernel, device, name):
    # Stated here: PyTorch's CPU gelu gives NaN or infinity, depending on the tensor's length.
    x = torch.full((1, 2 if name in GATED else 1), float("inf"), device=device)
    out = _out(x, name)
    getattr(kernel, name)(out, x, *_arguments(name))
    assert out.item() == float("inf")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("size", [(3, 7), (5, 129), (16, 512)], ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", REFERENCE)
def test_backward(kernel, device, name, size, dtype):
    x = _input(name, size, dtype, device)
    x = torch.where(x.abs() == 7.0, x / 2, x).requires_grad_()  # at a limit PyTorch's own versions differ
    out = kernel.autograd.activation(x, name, *_numbers(name))
    grad = torch.randn_like(out)
    out.backward(grad)
    exact = x.detach().double().requires_grad_()
    REFERENCE[name](exact).backward(grad.double())
    scale = {torch.float32: 1, torch.float16: 4, torch.bfloat16: 4}[dtype]
    tolerance = {k: v * scale for k, v in TOLERANCE[dtype].items()}
    torch.testing.assert_close(x.grad, exact.grad.to(dtype), **tolerance)


@pytest.mark.parametrize("name", REFERENCE)
def test_backward_at_the_ends(kernel, device, name):
    x = torch.tensor([[-200.0, 200.0, -30.0, 30.0] * 2], device=device, requires_grad=True)
    out = kernel.autograd.activation(x, name, *_numbers(name))
    out.backward(torch.ones_like(out))
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_silu_and_mul_quant(kernel, device, size, dtype):
    x = _input("silu_and_mul", size, dtype, device)
    plain = kernel.silu_and_mul(_out(x, "silu_and_mul"), x)
    scale = torch.full((1,), 0.02, device=device)  # some values saturate
    out = torch.empty(plain.shape, dtype=torch.float8_e4m3fn, device=device)
    assert kernel.silu_and_mul_quant(out, x, scale) is out
    expected = (plain.float() * (1 / scale)).clamp(-448, 448).to(torch.float8_e4m3fn)
    assert torch.equal(out.view(torch.uint8), expected.view(torch.uint8))


def test_silu_and_mul_quant_arguments(kernel, device):
    x, out = torch.zeros(4, 8, device=device), torch.zeros(4, 4, device=device)
    scale = torch.ones(1, device=device)
    with pytest.raises(RuntimeError, match="out:.*float8"):
        kernel.silu_and_mul_quant(out, x, scale)
    with pytest.raises(RuntimeError, match="scale:.*one element"):
        kernel.silu_and_mul_quant(out.to(torch.float8_e4m3fn), x, torch.ones(2, device=device))
    args = (out.to(torch.float8_e4m3fn), x, scale)
    torch.library.opcheck(
        kernel._ops.ops.silu_and_mul_fp8.default, args, test_utils=("test_faketensor",)
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_layers(kernel, device, layer):
    name = LAYERS[layer]
    module = getattr(kernel.layers, layer)()
    module.threshold = 0.25
    x = _input(name, (2, 3, 40), torch.float32, device)
    strided = torch.stack([x, x], dim=1)[:, 0]  # not contiguous: a layer takes it
    torch.testing.assert_close(module(strided), _expected(name, x), **TOLERANCE[torch.float32])
    assert module.has_backward and module.can_torch_compile
    assert "__init__" not in vars(type(module))


@pytest.mark.parametrize(
    "name", ["silu_and_mul", "gelu_new", "fatrelu_and_mul", "swigluoai_and_mul", "relu2"]
)
def test_opcheck(kernel, device, name):
    x = _input(name, (4, 24), torch.float32, device)
    ops = kernel._ops.ops
    torch.library.opcheck(getattr(ops, name).default, (_out(x, name), x, *_arguments(name)))
    torch.library.opcheck(
        ops.activation_forward.default, (x.requires_grad_(), name, *_numbers(name))
    )


@pytest.mark.parametrize("name", ["silu_and_mul", "gelu_fast"])
def test_traces_without_a_break(kernel, device, name):
    def step(x):
        return kernel.autograd.activation(x * 2, name).sum()

    x = _input(name, (4, 24), torch.float32, device).requires_grad_()
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    compiled(x).backward()
    got, x.grad = x.grad, None
    step(x).backward()
    torch.testing.assert_close(got, x.grad)


def _messages(kernel, device):
    t = torch.zeros
    half = dict(dtype=torch.float16, device=device)
    here = dict(device=device)
    return [
        ("out:.*shape", lambda: kernel.silu_and_mul(t(4, 5, **here), t(4, 8, **here))),
        ("out:.*shape", lambda: kernel.silu(t(4, 8, **here), t(4, 4, **here))),
        ("out:.*dtype", lambda: kernel.silu(t(4, **half), t(4, **here))),
        ("out:.*contiguous", lambda: kernel.silu(t(4, 4, **here).t(), t(4, 4, **here))),
        ("input:.*contiguous", lambda: kernel.silu(t(4, 8, **here), t(8, 4, **here).t())),
        ("input:.*even", lambda: kernel.silu_and_mul(t(4, 2, **here), t(4, 5, **here))),
        ("input:.*even", lambda: kernel.silu_and_mul(t(1, **here), t((), **here))),
        (
            "input:.*float32, float16 or bfloat16",
            lambda: kernel.silu(t(4, dtype=torch.int32, **here), t(4, dtype=torch.int32, **here)),
        ),
        ("function:.*nothing", lambda: kernel.autograd.activation(t(4, **here), "nothing")),
    ]


@pytest.mark.parametrize("case", range(9))
def test_bad_arguments_are_named(kernel, device, case):
    pattern, call = _messages(kernel, device)[case]
    with pytest.raises(RuntimeError, match=pattern):
        call()


def test_wrong_device(kernel, device):
    if device != "cuda":
        pytest.skip("one device here")
    with pytest.raises(RuntimeError, match="out:.*device"):
        kernel.silu(torch.zeros(4), torch.zeros(4, device="cuda"))


def test_side_stream(kernel, device):
    if device != "cuda":
        pytest.skip("streams are a CUDA matter")
    x = _input("silu_and_mul", (2048, 4096), torch.bfloat16, device)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        y = x * 2  # the kernel must wait for this
        out = kernel.silu_and_mul(_out(y, "silu_and_mul"), y)
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(out, REFERENCE["silu_and_mul"](x * 2), atol=0, rtol=0)


def test_more_than_2_31_elements(kernel, device):
    if device != "cuda" or torch.cuda.mem_get_info()[0] < 30 << 30:
        pytest.skip("needs 30 GB of GPU memory")
    rows, d = 70000, 16384  # 2.29e9 input elements
    x = torch.empty(rows, 2 * d, dtype=torch.bfloat16, device=device)
    x.uniform_(-3, 3)
    out = kernel.silu_and_mul(_out(x, "silu_and_mul"), x)
    for at in (0, 65535, 65536, rows - 1):
        torch.testing.assert_close(out[at], REFERENCE["silu_and_mul"](x[at]), atol=0, rtol=0)
    unary = kernel.silu(x.view(-1), x.view(-1)).view(rows, -1)  # in place
    assert torch.isfinite(unary[-1]).all() and torch.isfinite(unary[0]).all()


@pytest.mark.sanitize
@pytest.mark.parametrize("name", REFERENCE)
def test_small_cases_for_the_sanitizer(kernel, device, name):
    for dtype in DTYPES:
        for size in [(3, 7), (5, 136), (2, 1030)]:
            x = _input(name, size, dtype, device).requires_grad_()
            kernel.autograd.activation(x, name, *_numbers(name)).sum().backward()
            assert x.grad.isfinite().all()
