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


GATED = ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")
UNARY = ("silu", "gelu", "gelu_tanh", "gelu_new")


def table(kernel, timer):
    """One row a case: our time, our rate, and a copy of the same bytes in the same run."""
    cuda = timer.device == "cuda"
    cases = [(16384, 8192), (8192, 14336), (64, 14336), (1, 14336)] if cuda else [(256, 4096)]
    dtypes = [torch.bfloat16, torch.float32]
    for dtype in dtypes:
        for tokens, d in cases:
            for name in GATED:
                total = 3 * tokens * d * dtype.itemsize
                inputs = [
                    torch.randn(tokens, 2 * d, dtype=dtype, device=timer.device)
                    for _ in range(timer.sets(total))
                ]
                outs = [torch.empty(tokens, d, dtype=dtype, device=timer.device) for _ in inputs]
                op = getattr(kernel, name)
                calls = [lambda o=o, x=x: op(o, x) for o, x in zip(outs, inputs)]
                yield timer.row(f"{name}-{tokens}x{d}-{str(dtype)[6:]}", calls, total)
        tokens, d = cases[0]
        for name in UNARY:
            total = 2 * tokens * d * dtype.itemsize
            inputs = [
                torch.randn(tokens, d, dtype=dtype, device=timer.device)
                for _ in range(timer.sets(total))
            ]
            outs = [torch.empty_like(x) for x in inputs]
            op = getattr(kernel, name)
            calls = [lambda o=o, x=x: op(o, x) for o, x in zip(outs, inputs)]
            yield timer.row(f"{name}-{tokens}x{d}-{str(dtype)[6:]}", calls, total)
        for name in ("silu_and_mul", "gelu_and_mul"):
            total = 5 * tokens * d * dtype.itemsize
            inputs = [
                torch.randn(tokens, 2 * d, dtype=dtype, device=timer.device)
                for _ in range(timer.sets(total))
            ]
            grads = [torch.randn(tokens, d, dtype=dtype, device=timer.device) for _ in inputs]
            op = kernel._ops.ops.activation_backward
            calls = [lambda g=g, x=x: op(g, x, name, 0.0, 0.0) for g, x in zip(grads, inputs)]
            yield timer.row(f"{name}-backward-{tokens}x{d}-{str(dtype)[6:]}", calls, total)
