# SPDX-License-Identifier: Apache-2.0
"""`kernels benchmark` runs the classes; `run.py attention --part bench` runs table()."""

import torch
import torch.nn.functional as F

try:
    from kernels.benchmark import Benchmark
except ImportError:  # table() does not need the client
    Benchmark = object


class _Attention(Benchmark):
    seed = 42
    causal = False

    def _setup(self, batch, seqlen, heads, d):
        shape = (batch, seqlen, heads, d)
        self.q, self.k, self.v = (
            torch.randn(shape, device=self.device, dtype=torch.float16) for _ in range(3)
        )
        self.out = torch.empty_like(self.q)

    def _run(self):
        self.out = self.kernel.flash_attn_func(self.q, self.k, self.v, causal=self.causal)

    def _verify(self):
        q, k, v = (t.transpose(1, 2) for t in (self.q, self.k, self.v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2)

    def setup_small(self):
        self._setup(2, 128, 8, 64)

    def benchmark_small(self):
        self._run()

    def verify_small(self):
        return self._verify()

    def setup_medium(self):
        self._setup(4, 512, 16, 64)

    def benchmark_medium(self):
        self._run()

    def verify_medium(self):
        return self._verify()

    def setup_large(self):
        self._setup(8, 1024, 32, 128)

    def benchmark_large(self):
        self._run()

    def verify_large(self):
        return self._verify()


class FlashAttentionBenchmark(_Attention):
    causal = False


class FlashAttentionCausalBenchmark(_Attention):
    causal = True


def table(kernel, timer):
    """One row a case, the forward beside PyTorch's scaled_dot_product_attention in the same run.
    FLOP: 4 batch heads seqlen^2 d, half of it under a causal mask; the backward 2.5 times that."""
    cuda = timer.device == "cuda"
    lengths = (512, 2048, 8192, 16384) if cuda else (256,)
    for dtype in (torch.bfloat16, torch.float32):
        for d in (64, 128, 256):
            for seqlen in lengths if dtype == torch.bfloat16 else lengths[1:2] or lengths:
                batch = max(1, 16384 // seqlen) if cuda else 1
                heads = 2048 // d if cuda else 2
                shape = (batch, seqlen, heads, d)
                q, k, v = (torch.randn(shape, dtype=dtype, device=timer.device) for _ in range(3))
                peer = [t.transpose(1, 2) for t in (q, k, v)]
                for causal in (False, True):
                    flop = 4 * batch * heads * seqlen * seqlen * d / (2 if causal else 1)
                    ours = timer.seconds([lambda: kernel.flash_attn_func(q, k, v, causal=causal)])
                    theirs = timer.seconds(
                        [lambda: F.scaled_dot_product_attention(*peer, is_causal=causal)]
                    )
                    grad = torch.randn_like(q)
                    out, lse, _ = kernel.flash_attn_func(
                        q, k, v, causal=causal, return_attn_probs=True
                    )
                    rest = (None, None, 0, 0, d**-0.5, causal, -1, -1, 0.0)
                    backward = timer.seconds(
                        [lambda: kernel._ops.ops.attention_backward(grad, q, k, v, out, lse, *rest)]
                    )
                    yield {
                        "case": f"d{d}-{seqlen}-{'causal' if causal else 'full'}-{str(dtype)[6:]}",
                        "us": round(ours * 1e6, 1),
                        "TFLOPs": round(flop / ours / 1e12, 2),
                        "torch_sdpa_TFLOPs": round(flop / theirs / 1e12, 2),
                        "of_torch": round(theirs / ours, 3),
                        "backward_us": round(backward * 1e6, 1),
                        "backward_TFLOPs": round(2.5 * flop / backward / 1e12, 2),
                    }
    if cuda:
        yield from cache_table(kernel, timer)


def cache_table(kernel, timer):
    """One query a sequence over a cache, 32 heads on 8 of d 128. The limit is a copy of as many
    bytes as keys and values have: each is read once."""
    dtype = torch.bfloat16
    for batch, seqlen in ((16, 32768), (4, 131072), (16, 4096), (1, 1024)):
        caches = [
            [torch.randn(batch, seqlen, 8, 128, dtype=dtype, device=timer.device) for _ in "kv"]
            for _ in range(max(4, timer.sets(4 * batch * seqlen * 8 * 128)))
        ]
        q = torch.randn(batch, 1, 32, 128, dtype=dtype, device=timer.device)
        lengths = torch.full((batch,), seqlen, dtype=torch.int32, device=timer.device)
        moved = 4 * batch * seqlen * 8 * 128
        calls = [
            lambda k=k, v=v: kernel.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths)
            for k, v in caches
        ]
        theirs = timer.seconds(
            [
                lambda k=k, v=v: F.scaled_dot_product_attention(
                    q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), enable_gqa=True
                )
                for k, v in caches
            ]
        )
        more = {"torch_sdpa_GBps": round(moved / theirs / 1e9, 1)}
        yield timer.row(f"cache-{batch}x{seqlen}-bfloat16", calls, moved, **more)
        page = 16
        table = torch.randperm(batch * seqlen // page, device=timer.device).to(torch.int32)
        table = table.view(batch, -1)
        calls = [
            lambda k=k, v=v: kernel.flash_attn_with_kvcache(
                q,
                k.view(-1, page, 8, 128),
                v.view(-1, page, 8, 128),
                cache_seqlens=lengths,
                block_table=table,
            )
            for k, v in caches
        ]
        yield timer.row(f"cache-{batch}x{seqlen}-pages-of-{page}-bfloat16", calls, moved)
