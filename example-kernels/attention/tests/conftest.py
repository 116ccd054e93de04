# SPDX-License-Identifier: Apache-2.0
"""Finds the kernel: the installed package, or the folder named by KERNEL_UNDER_TEST."""

import importlib
import importlib.util
import os
import pathlib
import sys

import pytest
import torch


def pytest_configure(config):
    config.addinivalue_line("markers", "kernels_ci: runs in the community's CI")
    config.addinivalue_line("markers", "sanitize: small enough for compute-sanitizer")


@pytest.fixture(scope="session")
def kernel():
    variant = os.environ.get("KERNEL_UNDER_TEST")
    if variant is None:
        return importlib.import_module("attention")
    if "kernel_under_test" in sys.modules:
        return sys.modules["kernel_under_test"]
    spec = importlib.util.spec_from_file_location(
        "kernel_under_test",
        pathlib.Path(variant) / "__init__.py",
        submodule_search_locations=[variant],
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel_under_test"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def device(kernel):
    """The one device that this build of the kernel serves."""
    if "_cuda_" not in kernel._ops.ops.name:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("a CUDA build, and no GPU here")
    return "cuda"
