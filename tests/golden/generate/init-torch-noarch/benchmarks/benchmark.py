"""Run by 'kernels benchmark', or by hand: compares the kernel with torch."""

import torch
from kernels.benchmark import Benchmark


class ReluBenchmark(Benchmark):
    seed: int = 0

    def setup_small(self):
        self._setup(4096)

    def benchmark_small(self):
        self.kernel.relu(self.x, out=self.out)

    def verify_small(self) -> torch.Tensor:
        return torch.relu(self.x)

    def setup_large(self):
        self._setup(1 << 24)

    def benchmark_large(self):
        self.kernel.relu(self.x, out=self.out)

    def verify_large(self) -> torch.Tensor:
        return torch.relu(self.x)

    def _setup(self, count: int):
        self.x = torch.randn(count, device=self.device, dtype=torch.float16)
        self.out = torch.empty_like(self.x)
