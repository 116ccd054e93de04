#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a kernel of `kernel-builder init` with the stock client and compares it with torch.

usage: load_and_compare.py OWNER/REPO [VERSION]. Run it under `kernel-builder testshell --as cpu` on a machine without a
GPU. Exit 0 only when the CPU variant was loaded, every number matched and the repository's page is the filled card.
"""
import pathlib
import sys

import torch
from huggingface_hub import hf_hub_download
from kernels import get_kernel


def main():
    repo = sys.argv[1]
    version = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    kernel = get_kernel(repo, version=version, trust_remote_code=True)
    path = pathlib.Path(kernel.__file__)
    print(f"loaded {path.parent.name}")
    assert "-cpu-" in str(path), f"the CPU variant was expected, loaded {path}"
    torch.manual_seed(0)
    for shape in [(0,), (1,), (7, 3), (1024, 1025)]:
        for dtype in [torch.float32, torch.float16, torch.bfloat16]:
            x = torch.randn(shape, dtype=dtype)
            out = kernel.relu(x)
            torch.testing.assert_close(out, torch.relu(x), rtol=0, atol=0)
    print("12 comparisons with torch are equal")
    card = pathlib.Path(hf_hub_download(repo, "README.md", repo_type="kernel")).read_text()
    assert f'get_kernel("{repo}"' in card and "{{" not in card, card


if __name__ == "__main__":
    main()
