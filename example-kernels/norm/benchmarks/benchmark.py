# SPDX-License-Identifier: Apache-2.0
"""`kernels benchmark` runs the classes; `run.py norm --part bench` runs table()."""

import torch
import torch.nn.functional as F

try:
    from kernels.benchmark import Benchmark
except ImportError:  # table() does not need the client
    Benchmark = object

EPS = 1e-6


class _Norm(Benchmark):
    seed = 42

    def _setup(self, *shape):
        self.x = torch.randn(shape, device=self.device, dtype=torch.float16)
        self.weight = torch.randn(shape[-1], device=self.device, dtype=torch.float16)
        self.bias = torch.randn(shape[-1], device=self.device, dtype=torch.float16)
        self.out = torch.empty_like(self.x)

    def _run(self):
        raise NotImplementedError

    def _verify(self):
        raise NotImplementedError

    def setup_base(self):
        self._setup(2, 128, 768)

    def benchmark_base(self):
        self._run()

    def verify_base(self):
        return self._verify()

    def setup_large(self):
        self._setup(4, 512, 2048)

    def benchmark_large(self):
        self._run()

    def verify_large(self):
        return self._verify()

    def setup_xlarge(self):
        self._setup(8, 1024, 4096)

    def benchmark_xlarge(self):
        self._run()

    def verify_xlarge(self):
        return self._verify()


class RMSNormBenchmark(_Norm):
    def _run(self):
        self.kernel.rms_norm(self.out, self.x, self.weight, EPS)

    def _verify(self):
        return F.rms_norm(self.x, self.weight.shape, self.weight, EPS)


class LayerNormBenchmark(_Norm):
    def _run(self):
        self.kernel.layer_norm(self.out, self.x, self.weight, self.bias, EPS)

    def _verify(self):
        return F.layer_norm(self.x, self.weight.shape, self.weight, self.bias, EPS)


def _peers(n):
    """What PyTorch does for the same work, eager and compiled, by case; each is f(x, y, r, w)."""

    def rms(x, y, r, w):
        return F.rms_norm(x, (n,), w, EPS)

    def layer(x, y, r, w):
        return F.layer_norm(x, (n,), w, w, EPS)

    def add_rms(x, y, r, w):
        total = x + r
        return F.rms_norm(total, (n,), w, EPS), total

    def layer_backward(x, y, r, w):
        mean = torch.zeros(x.shape[0], 1, device=x.device)
        return torch.ops.aten.native_layer_norm_backward(
            r, x, [n], mean, mean + 1, w, w, [True, True, True]
        )

    forward = {"rms_norm": rms, "layer_norm": layer, "fused_add_rms_norm": add_rms}
    peers = {
        name: {"torch": f, "compiled": torch.compile(f, dynamic=False)}
        for name, f in forward.items()
    }
    peers["layer_norm_backward"] = {"torch": layer_backward}
    return peers


COMPILED_COLUMNS = (1024, 8192, 65536)  # compiling takes seconds for each


def table(kernel, timer):
    """One row a case: our time, our rate, a copy of the same bytes in the same run, and on CUDA the
    rates of PyTorch's own operators. Bytes: every input read once, every output written once;
    weights are not counted."""
    cuda = timer.device == "cuda"
    elements = 1 << 28 if cuda else 1 << 22
    dtype = torch.bfloat16
    ops = kernel._ops.ops
    shapes = [(elements // n, n) for n in (128, 1024, 4096, 8192, 16384, 65536)]
    if cuda:
        shapes += [(16, 4096), (1, 8192)]
    for rows, n in shapes:
        size = rows * n * dtype.itemsize
        sets = timer.sets(2 * size)

        def new():
            return [torch.randn(rows, n, dtype=dtype, device=timer.device) for _ in range(sets)]

        x, y, z = new(), new(), new()
        w = torch.randn(n, dtype=dtype, device=timer.device)
        rstd = torch.rand(rows, device=timer.device) + 0.5
        mean = torch.zeros(rows, device=timer.device)
        peers = _peers(n) if cuda else {}

        def case(name, call, passes):
            calls = [lambda i=i: call(i) for i in range(sets)]
            total = int(passes * size)
            more = {}
            for peer, f in peers.get(name, {}).items():
                if peer == "torch" or n in COMPILED_COLUMNS:
                    theirs = [lambda i=i: f(x[i], y[i], z[i], w) for i in range(sets)]
                    more[f"{peer}_GBps"] = round(total / timer.seconds(theirs) / 1e9, 1)
            return timer.row(f"{name}-{rows}x{n}-bfloat16", calls, total, **more)

        yield case("rms_norm", lambda i: kernel.rms_norm(y[i], x[i], w, EPS), 2)
        yield case("layer_norm", lambda i: kernel.layer_norm(y[i], x[i], w, w, EPS), 2)
        yield case("fused_add_rms_norm", lambda i: kernel.fused_add_rms_norm(y[i], x[i], w, EPS), 4)
        yield case(
            "rms_norm_backward",
            lambda i: ops.rms_norm_backward(z[i], None, x[i], w, rstd, "torch", True),
            3,
        )
        yield case(
            "layer_norm_backward",
            lambda i: ops.layer_norm_backward(z[i], x[i], w, mean, rstd, True),
            3,
        )
        if not cuda:
            continue
        q = [torch.empty(rows, n, dtype=torch.float8_e4m3fn, device=timer.device) for _ in x]
        scale, scales = torch.ones(1, device=timer.device), torch.empty(rows, device=timer.device)
        groups = torch.empty(rows, n // 128, device=timer.device)
        yield case(
            "rms_norm_static_fp8",
            lambda i: kernel.rms_norm_static_fp8_quant(q[i], x[i], w, scale, EPS),
            1.5,
        )
        yield case(
            "rms_norm_per_token_fp8",
            lambda i: kernel.rms_norm_dynamic_per_token_quant(q[i], x[i], w, scales, EPS),
            1.5,
        )
        yield case(
            "rms_norm_per_group_fp8",
            lambda i: kernel.rms_norm_per_block_quant(q[i], x[i], w, groups, EPS),
            1.5,
        )
