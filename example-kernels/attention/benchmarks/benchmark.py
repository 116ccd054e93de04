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
                    rest = (None, None, 0, 0, d**-0.5, causal, -1, -1, 0.0, None, 0.0, None)
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


def _caches(timer, format, batch, seqlen, heads, d):
    """Sets of (k, v, keywords), enough of them to exceed the cache, and the bytes of one set."""
    shape = (batch, seqlen, heads, d)
    make = dict(device=timer.device)

    def one():
        if format == "bfloat16":
            return [torch.randn(shape, dtype=torch.bfloat16, **make) for _ in "kv"], {}
        if format == "fp8":
            numbers = [torch.randn(shape, dtype=torch.bfloat16, **make) for _ in "kv"]
            half = torch.full((), 0.5, **make)
            return [t.to(torch.float8_e4m3fn) for t in numbers], {"k_descale": half, "v_descale": half}
        if format == "nvfp4":
            scale = torch.full((d // 16,), 0.5, **make).to(torch.float8_e4m3fn)
        else:
            pair = torch.tensor([0.2, 8.0], dtype=torch.float16, **make)
            scale = pair.repeat(d // int(format.split("-")[1]), 1)
        blocks = [scale.expand(batch, heads, seqlen, *scale.shape).contiguous() for _ in "kv"]
        names = ("k_scale_blocks", "v_scale_blocks")
        codes = [torch.randint(256, (*shape[:3], d // 2), dtype=torch.uint8, **make) for _ in "kv"]
        return codes, {n: t.transpose(1, 2) for n, t in zip(names, blocks)}

    def size(caches, keywords):
        tensors = [*caches, *(t for t in keywords.values() if isinstance(t, torch.Tensor))]
        tensors = [t for t in tensors if t.dim() > 0]
        return sum(t.numel() * t.element_size() for t in tensors)

    first = one()
    moved = size(*first)
    return [first, *(one() for _ in range(max(4, timer.sets(moved)) - 1))], moved


def cache_table(kernel, timer):
    """One query a sequence over a cache, 32 heads on 8 of d 128. The limit is a copy of as many
    bytes as keys and values have: each is read once. int4-g: a scale for g channels."""
    heads, d, page = 8, 128, 16
    for batch, seqlen in ((16, 32768), (4, 131072), (16, 4096), (1, 1024)):
        q = torch.randn(batch, 1, 32, d, dtype=torch.bfloat16, device=timer.device)
        lengths = torch.full((batch,), seqlen, dtype=torch.int32, device=timer.device)
        table = torch.randperm(batch * seqlen // page, device=timer.device).to(torch.int32)
        table = table.view(batch, -1)
        plain = {}
        for format in ("bfloat16", "fp8", "int4-128", "int4-32", "nvfp4"):
            sets, moved = _caches(timer, format, batch, seqlen, heads, d)
            more = {}
            if format == "bfloat16":
                theirs = timer.seconds(
                    [
                        lambda k=k, v=v: F.scaled_dot_product_attention(
                            *(t.transpose(1, 2) for t in (q, k, v)), enable_gqa=True
                        )
                        for (k, v), _ in sets
                    ]
                )
                more["torch_sdpa_GBps"] = round(moved / theirs / 1e9, 1)
            for paged in (False, True):
                calls = []
                for caches, keywords in sets:
                    keywords = {"cache_seqlens": lengths, **keywords}
                    if paged:
                        pages = lambda t: t.unflatten(1, (-1, page)).flatten(0, 1)  # noqa: E731
                        caches = [pages(t) for t in caches]
                        for n in keywords:
                            if n.endswith("blocks"):  # heads first, in each page
                                t = pages(keywords[n]).transpose(1, 2)
                                keywords[n] = t.contiguous().transpose(1, 2)
                        keywords["block_table"] = table
                    calls.append(
                        lambda c=caches, w=keywords: kernel.flash_attn_with_kvcache(q, *c, **w)
                    )
                pages = f"-pages-of-{page}" if paged else ""
                row = timer.row(f"cache-{batch}x{seqlen}{pages}-{format}", calls, moved, **more)
                more = {}
                plain.setdefault(paged, row["us"])
                yield {**row, "of_bfloat16": round(plain[paged] / row["us"], 2)}
            del sets, calls
