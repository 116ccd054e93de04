import pytest
import torch

import my_relu

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(), (0,), (1,), (3, 5), (255,), (256,), (257,), (64, 1031)]


def devices():
    """The devices that this build of the kernel has code for."""
    found = []
    for name, present in (
        ("cuda", torch.cuda.is_available()),
        ("mps", torch.backends.mps.is_available()),
        ("xpu", hasattr(torch, "xpu") and torch.xpu.is_available()),
    ):
        if present:
            found.append(name)
    return found or ["cpu"]


@pytest.mark.kernels_ci
@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_relu_equals_torch(shape, dtype, device):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float32).to(dtype).to(device)
    # Nothing is rounded, so nothing may differ.
    torch.testing.assert_close(my_relu.relu(x), torch.relu(x), rtol=0, atol=0)


@pytest.mark.kernels_ci
@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_relu_of_special_values(dtype, device):
    values = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 6e-8, -6e-8, 65504.0]
    x = torch.tensor(values, dtype=torch.float32).to(dtype).to(device)
    torch.testing.assert_close(my_relu.relu(x), torch.relu(x), rtol=0, atol=0, equal_nan=True)


@pytest.mark.kernels_ci
@pytest.mark.parametrize("device", devices())
def test_relu_writes_into_out(device):
    x = torch.tensor([-1.0, 2.0], device=device)
    out = torch.full_like(x, 7.0)
    assert my_relu.relu(x, out=out) is out
    assert out.tolist() == [0.0, 2.0]


@pytest.mark.kernels_ci
@pytest.mark.parametrize("device", devices())
def test_wrong_arguments_are_refused(device):
    x = torch.randn(4, 6, device=device)
    with pytest.raises(RuntimeError, match="shape"):
        my_relu.relu(x, out=torch.empty(6, 4, device=device))
    with pytest.raises(RuntimeError, match="contiguous"):
        my_relu.relu(x.t())
    with pytest.raises(RuntimeError, match="expected float32"):
        my_relu.relu(torch.ones(3, dtype=torch.int64, device=device))


@pytest.mark.kernels_ci
@pytest.mark.parametrize("device", devices())
def test_layer(device):
    x = torch.randn(8, 16, device=device)
    torch.testing.assert_close(my_relu.layers.ReLU()(x), torch.relu(x), rtol=0, atol=0)


@pytest.mark.kernels_ci
@pytest.mark.parametrize("device", devices())
def test_operator_is_registered_as_torch_compile_expects(device):
    x = torch.randn(16, device=device)
    torch.library.opcheck(my_relu.ops.relu.default, (torch.empty_like(x), x))
