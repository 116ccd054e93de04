# SPDX-License-Identifier: Apache-2.0
"""`kernels benchmark` runs the classes; `run.py activation --part bench` runs table()."""

import torch
import torch.nn.functional as F

try:
    from kernels.benchmark import Benchmark
except ImportError:  # table() does not need the client
    Benchmark = object


class _Gated(Benchmark):
    seed = 42
    function = ""
    reference = None

    def _setup(self, batch, tokens, hidden):
        self.x = torch.randn(batch, tokens, 2 * hidden, device=self.device, dtype=torch.float16)
        self.out = torch.empty(batch, tokens, hidden, device=self.device, dtype=torch.float16)

    def _run(self):
        getattr(self.kernel, self.function)(self.out, self.x)

    def _verify(self):
        d = self.x.shape[-1] // 2
        return type(self).reference(self.x[..., :d]) * self.x[..., d:]

    def setup_base(self):
        self._setup(8, 1024, 2048)

    def benchmark_base(self):
        self._run()

    def verify_base(self):
        return self._verify()

    def setup_large(self):
        self._setup(8, 2048, 4096)

    def benchmark_large(self):
        self._run()

    def verify_large(self):
        return self._verify()

    def setup_xlarge(self):
        self._setup(8, 4096, 8192)

    def benchmark_xlarge(self):
        self._run()

    def verify_xlarge(self):
        return self._verify()


class SiluAndMulBenchmark(_Gated):
    function = "silu_and_mul"
    reference = staticmethod(F.silu)


class GeluAndMulBenchmark(_Gated):
    function = "gelu_and_mul"
    reference = staticmethod(F.gelu)


GATED = {
    "silu_and_mul": F.silu,
    "gelu_and_mul": F.gelu,
    "gelu_tanh_and_mul": lambda x: F.gelu(x, approximate="tanh"),
}
UNARY = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": GATED["gelu_tanh_and_mul"],
    "gelu_new": lambda x: 0.5
    * x
    * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0)))),
}


def _gated(act):
    def reference(x):
        a, b = x.chunk(2, -1)
        return act(a) * b

    return reference


def table(kernel, timer):
    """One row a case: our time, our rate, a copy of the same bytes in the same run, and the rates of
    PyTorch's own operators for the same work, on CUDA compiled too."""
    cuda = timer.device == "cuda"
    cases = [(16384, 8192), (8192, 14336), (64, 14336), (1, 14336)] if cuda else [(1024, 4096)]
    dtypes = [torch.bfloat16, torch.float32]

    def case(name, label, op, reference, inputs, outs, total):
        calls = [lambda o=o, x=x: op(o, x) for o, x in zip(outs, inputs)]
        peers = {"torch": reference}
        if cuda and inputs[0].shape[0] == cases[0][0]:  # compiling takes seconds for each
            peers["compiled"] = torch.compile(reference, dynamic=False)
        more = {}
        for peer, f in peers.items():
            theirs = [lambda x=x: f(x) for x in inputs]
            more[f"{peer}_GBps"] = round(total / timer.seconds(theirs) / 1e9, 1)
        return timer.row(f"{name}-{label}", calls, total, **more)

    for dtype in dtypes:
        type_name = str(dtype)[6:]

        def new(total, *shape):
            return [
                torch.randn(*shape, dtype=dtype, device=timer.device)
                for _ in range(timer.sets(total))
            ]

        for tokens, d in cases:
            total = 3 * tokens * d * dtype.itemsize
            inputs = new(total, tokens, 2 * d)
            outs = [torch.empty(tokens, d, dtype=dtype, device=timer.device) for _ in inputs]
            for name, act in GATED.items():
                op = getattr(kernel, name)
                label = f"{tokens}x{d}-{type_name}"
                yield case(name, label, op, _gated(act), inputs, outs, total)
        tokens, d = cases[0]
        label = f"{tokens}x{d}-{type_name}"
        total = 2 * tokens * d * dtype.itemsize
        inputs = new(total, tokens, d)
        outs = [torch.empty_like(x) for x in inputs]
        for name, act in UNARY.items():
            yield case(name, label, getattr(kernel, name), act, inputs, outs, total)
        total = 5 * tokens * d * dtype.itemsize
        inputs, grads = new(total, tokens, 2 * d), new(total, tokens, d)
        op = kernel._ops.ops.activation_backward
        for name in ("silu_and_mul", "gelu_and_mul"):
            calls = [lambda g=g, x=x: op(g, x, name, 0.0, 0.0) for g, x in zip(grads, inputs)]
            yield timer.row(f"{name}-backward-{label}", calls, total)
