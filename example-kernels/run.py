#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds, tests, sanitises and measures one kernel project on the machine at hand.

  run.py norm --part build              compile for the torch and the GPU found here
  run.py norm --part test               pytest, one JSON line per case
  run.py norm --part sanitize           compute-sanitizer over the cases marked `sanitize`
  run.py norm --part bench              benchmarks/benchmark.py, one JSON line per workload

The project is a name here, or a path.

  --budget SECONDS   stop (and say so) when the time is used up
  --from CASE        start at the first case whose name contains CASE
  --out FOLDER       where the results go (default: build/dev/run in the project)
  --variant FOLDER   use a built variant, e.g. build/torch-stable-abi211-cu130-x86_64-linux
  --backend NAME     cpu or cuda; default: cuda if torch sees a GPU and nvcc is there

The build here is for development: it needs g++ (and nvcc) and torch, and takes the flags that
matter from build.toml. What ships is built by kernel-builder.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent

REGISTRATION_H = """\
#pragma once
#include <Python.h>
#define TORCH_LIBRARY_EXPAND(NAME, M) TORCH_LIBRARY(NAME, M)
#define TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, M) TORCH_LIBRARY_IMPL(NAME, DEVICE, M)
#define STABLE_TORCH_LIBRARY_EXPAND(NAME, M) STABLE_TORCH_LIBRARY(NAME, M)
#define STABLE_TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, M) STABLE_TORCH_LIBRARY_IMPL(NAME, DEVICE, M)
#define KB_CONCAT_(A, B) A##B
#define KB_CONCAT(A, B) KB_CONCAT_(A, B)
#define KB_STRING_(A) #A
#define KB_STRING(A) KB_STRING_(A)
#define REGISTER_EXTENSION(NAME)                                                       \\
    PyMODINIT_FUNC KB_CONCAT(PyInit_, NAME)() {                                        \\
        static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, KB_STRING(NAME), \\
                                                nullptr, 0, nullptr};                  \\
        return PyModule_Create(&definition);                                           \\
    }
"""

OPS_PY = """\
import torch
from . import {ops}
ops = torch.ops.{ops}
def add_op_namespace_prefix(op_name):
    return f"{ops}::{{op_name}}"
"""


def source_digest(project):
    """One SHA-256 over every source of the project, so that a result names what it measured."""
    total = hashlib.sha256()
    skip = {"build", "__pycache__", ".pytest_cache"}
    for path in sorted(project.rglob("*")):
        if path.is_file() and path.suffix != ".md" and not skip & set(path.relative_to(project).parts):
            total.update(path.relative_to(project).as_posix().encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def machine():
    import torch

    cpu = "unknown"
    if pathlib.Path("/proc/cpuinfo").exists():
        names = [l for l in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if "model name" in l]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    facts = {
        "cpu": cpu,
        "cpus": len(os.sched_getaffinity(0)),
        "os": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gpu": None,
    }
    if torch.cuda.is_available():
        p = torch.cuda.get_device_properties(0)
        facts["gpu"] = {"name": p.name, "capability": f"{p.major}.{p.minor}", "sms": p.multi_processor_count}
    return facts


def load(variant):
    """Imports a variant folder as a package, the way the kernels client does."""
    name = "kernel_under_test"
    spec = importlib.util.spec_from_file_location(name, variant / "__init__.py",
                                                  submodule_search_locations=[str(variant)])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------------------------- build

def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def gencode(section, pairs):
    """The targets of a section's CUDA sources. A section for one chip alone ("9.0a") is compiled
    for it if that chip's own code is asked for, else for a GPU that is not asked for: the library
    has its functions then, and no code for the GPU at hand."""
    own = [c.replace(".", "") for c in section.get("cuda-capabilities", [])]
    if own and all(c.endswith("a") for c in own):
        asked = {code for code, _ in pairs}
        pairs = [(c, c) for c in own if c[:-1] in asked] or [("120", "120")]
    return [f"-gencode=arch=compute_{code},code=sm_{gpu}" for code, gpu in pairs]


def build(project, backend, variant, jobs, archs):
    import torch

    config = tomllib.loads((project / "build.toml").read_text())
    name = config["general"]["name"]
    module = name.replace("-", "_")
    ops = f"_{module}_{backend}_dev{source_digest(project)[:8]}"
    work = project / "build" / "dev" / "obj" / backend
    work.mkdir(parents=True, exist_ok=True)
    (work / "registration.h").write_text(REGISTRATION_H)

    root = pathlib.Path(torch.__file__).parent
    stable = config["torch"].get("stable-abi")
    defines = [f"-DTORCH_EXTENSION_NAME={ops}", "-DPy_LIMITED_API=0x03090000",
               f"-D{backend.upper()}_KERNEL"]
    if backend == "cuda":
        defines.append("-DUSE_CUDA=1")
    if stable:
        major, minor = map(int, stable.split("."))
        defines.append(f"-DTORCH_TARGET_VERSION=0x{(major << 56) | (minor << 48):016x}")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    includes = [f"-I{work}", f"-isystem{root / 'include'}",
                f"-isystem{root / 'include/torch/csrc/api/include'}",
                f"-isystem{sysconfig.get_paths()['include']}"]
    if backend == "cuda":  # the binding of a kernel without the stable ABI
        includes.append(f"-isystem{pathlib.Path(nvcc).resolve().parent.parent / 'include'}")
    common = ["-std=c++17", "-O3", "-fPIC", "-Wall", "-Wextra", "-fno-gnu-unique",
              "-fvisibility=hidden"]
    if backend == "cuda" and not archs:
        archs = ["%d.%d" % torch.cuda.get_device_capability()]
    # "8.0@9.0" is the code of 8.0 made to run on 9.0.
    pairs = [(a.replace(".", "").split("@") * 2)[:2] for a in archs or []]

    units = [(s, defines + includes + config["torch"].get("cxx-flags", []), [])
             for s in config["torch"]["src"]]
    for section in config.get("kernel", {}).values():
        if section["backend"] == backend:
            cuda = gencode(section, pairs) + section.get("cuda-flags", [])
            units += [(s, section.get("cxx-flags", []), cuda) for s in section["src"]]
    commands = []
    for source, cxx, cuda in units:
        path = project / source
        out = work / (source.replace("/", "_") + ".o")
        if path.suffix in (".cpp", ".cc", ".cxx"):
            commands.append((out, ["g++", *common, *cxx, "-c", path, "-o", out]))
        elif path.suffix == ".cu":
            commands.append((out, [nvcc, "-std=c++17", "-O3", "-lineinfo", "-Xptxas=-v",
                                   *cuda, "-Xcompiler=-fPIC,-fno-gnu-unique,-fvisibility=hidden",
                                   "-c", path, "-o", out]))
    started = time.time()
    with ThreadPoolExecutor(jobs) as pool:
        log = "".join(pool.map(lambda c: run(c[1]), commands))
    (work / "log.txt").write_text(log)

    shutil.rmtree(variant, ignore_errors=True)
    shutil.copytree(project / "torch-ext" / module, variant, ignore=shutil.ignore_patterns("__pycache__"))
    (variant / "_ops.py").write_text(OPS_PY.format(ops=ops))
    (variant / "metadata.json").write_text(json.dumps(
        {"name": name, "id": ops, "version": config["general"]["version"],
         "license": config["general"]["license"], "python-depends": [],
         "backend": {"type": backend}}, indent=2))
    libs = ["-ltorch", "-ltorch_cpu", "-lc10"]
    if backend == "cuda":
        libs += ["-ltorch_cuda", "-lc10_cuda"]
        toolkit = pathlib.Path(nvcc).resolve().parent.parent
        static = [p for p in (toolkit / "lib64", toolkit / "lib", toolkit / "targets/x86_64-linux/lib")
                  if (p / "libcudart_static.a").exists()]
        libs += [str(static[0] / "libcudart_static.a"), "-lrt", "-lpthread", "-ldl"]
    run(["g++", "-shared", *[c[0] for c in commands], f"-L{root / 'lib'}", "-Wl,--no-as-needed",
         "-Wl,--allow-shlib-undefined", *libs, "-o", variant / f"{ops}.abi3.so"])
    print(f"built {variant} in {time.time() - started:.0f} s, archs {archs or '-'}")


# ---------------------------------------------------------------------------------- test

class Recorder:
    """A pytest plugin: one JSON line per case, a time budget, a starting point."""

    def __init__(self, path, budget, start):
        self.file = open(path, "w")
        self.budget, self.start = budget, start
        self.began = time.time()
        self.count = {"passed": 0, "failed": 0, "skipped": 0, "not run": 0}

    def pytest_collection_modifyitems(self, config, items):
        for at, item in enumerate(items):
            if self.start and self.start in item.name:
                config.hook.pytest_deselected(items=items[:at])
                del items[:at]
                return

    def pytest_runtest_setup(self, item):
        import pytest

        if self.budget and time.time() - self.began > self.budget:
            pytest.skip("budget used up")

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.outcome == "passed":
            return
        outcome, text = report.outcome, ""
        if outcome == "skipped" and "budget used up" in str(report.longrepr):
            outcome = "not run"
        elif outcome == "skipped":
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        elif outcome != "passed":
            text = str(report.longrepr)[-2000:]
        self.count[outcome] += 1
        line = {"case": report.nodeid.split("::")[-1], "outcome": outcome,
                "seconds": round(report.duration, 4)}
        self.file.write(json.dumps({**line, "text": text} if text else line) + "\n")
        self.file.flush()


def test(project, variant, args, out):
    import pytest

    os.environ["KERNEL_UNDER_TEST"] = str(variant)
    head = {"project": project.name, "variant": variant.name, "source": source_digest(project),
            "machine": machine()}
    (out / "test-machine.json").write_text(json.dumps(head, indent=2) + "\n")
    recorder = Recorder(out / "test.jsonl", args.budget, args.start)
    options = ["-q", "-p", "no:cacheprovider", str(project / "tests"), "--tb=short"]
    if args.select:
        options += ["-m", args.select]
    status = pytest.main(options + args.rest, plugins=[recorder])
    c = recorder.count
    summary = f"{c['passed']} passed, {c['failed']} failed, {c['skipped']} skipped"
    if c["not run"]:
        summary += f", {c['not run']} not run (budget)"
    (out / "test-machine.json").write_text(json.dumps({**head, "result": c,
                                                       "date": time.strftime("%Y-%m-%d", time.gmtime())}, indent=2) + "\n")
    print(f"{project.name}: {summary}")
    return 1 if c["failed"] or status not in (0, 5) else 0


def sanitize(project, variant, args, out):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    worst = 0
    for check in ("memcheck", "racecheck", "initcheck"):
        log = out / f"sanitize-{check}.txt"
        command = [tool, "--tool", check, "--error-exitcode", "9", "--log-file", str(log),
                   sys.executable, __file__, str(project), "--part", "test", "--select", "sanitize",
                   "--variant", str(variant), "--out", str(out / check)]
        status = subprocess.run(command).returncode
        text = log.read_text() if log.exists() else "no log"
        print(f"{project.name}: {check}: exit {status}: {text.strip().splitlines()[-1]}")
        worst = max(worst, status)
    return worst


class Timer:
    """Times calls on the device; every rate is reported beside a copy of the same bytes."""

    def __init__(self, device):
        self.device = device
        self._copies = {}

    def seconds(self, calls):
        """The median time of one call. `calls` are the same work over different buffers, enough
        of them to exceed the cache; on CUDA they are replayed as one graph."""
        import statistics
        import torch

        if self.device == "cuda":
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for call in calls:
                    call()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for call in calls:
                    call()
            began = time.perf_counter()
            while time.perf_counter() - began < 0.03:  # an idle GPU's clock rises first
                graph.replay()
                torch.cuda.synchronize()
            times = []
            for _ in range(9):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                graph.replay()
                end.record()
                end.synchronize()
                times.append(start.elapsed_time(end) / 1e3 / len(calls))
            return statistics.median(times)
        times = []
        for call in calls:
            call()
        for _ in range(5):
            start = time.perf_counter()
            for call in calls:
                call()
            times.append((time.perf_counter() - start) / len(calls))
        return statistics.median(times)

    def sets(self, bytes_per_call):
        """How many buffer sets make 3 times the last-level cache."""
        cache = (180 << 20) if self.device == "cuda" else (64 << 20)
        return max(1, min(64, -(-cache // max(1, bytes_per_call))))

    def copy_rate(self, total_bytes):
        """Bytes per second, read plus written, of a copy that moves `total_bytes`."""
        import torch

        # One copy moves at most 2^29 bytes: larger ones are not faster, beyond 2^30 much slower.
        total_bytes = min(total_bytes, 1 << 29)
        if total_bytes not in self._copies:
            n = max(2, total_bytes // 16)
            pairs = [[torch.randint(0, 1 << 60, (n,), device=self.device),
                      torch.empty(n, dtype=torch.int64, device=self.device)]
                     for _ in range(self.sets(total_bytes))]
            calls = [lambda s=s, d=d: d.copy_(s) for s, d in pairs]
            self._copies[total_bytes] = 16 * n / self.seconds(calls)
        return self._copies[total_bytes]

    def row(self, case, calls, total_bytes, **more):
        seconds = self.seconds(calls)
        copy = self.copy_rate(total_bytes)
        rate = total_bytes / seconds
        return {"case": case, "us": round(seconds * 1e6, 2), "GBps": round(rate / 1e9, 1),
                "copy_GBps": round(copy / 1e9, 1), "of_copy": round(rate / copy, 3), **more}


def bench(project, variant, args, out):
    spec = importlib.util.spec_from_file_location("benchmark", project / "benchmarks/benchmark.py")
    os.environ["KERNEL_UNDER_TEST"] = str(variant)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = load(variant)
    head = {"project": project.name, "variant": variant.name, "source": source_digest(project),
            "machine": machine(), "date": time.strftime("%Y-%m-%d", time.gmtime())}
    rows = []
    began = time.time()
    timer = Timer("cuda" if "_cuda_" in kernel._ops.ops.name else "cpu")
    for row in module.table(kernel, timer):
        if args.start and not rows and args.start not in row["case"]:
            continue
        rows.append(row)
        print(json.dumps(row))
        if args.budget and time.time() - began > args.budget:
            print("budget used up")
            break
    (out / "bench.json").write_text(json.dumps({**head, "results": rows}, indent=1) + "\n")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project")
    parser.add_argument("--part", choices=["build", "test", "sanitize", "bench"], required=True)
    parser.add_argument("--budget", type=float, default=0)
    parser.add_argument("--from", dest="start", default="")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--variant", type=pathlib.Path)
    parser.add_argument("--backend", choices=["cpu", "cuda"])
    parser.add_argument("--archs", help="comma separated capabilities; default: the GPU found here; "
                        "8.0@9.0 compiles the code of 8.0 for 9.0")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--select", default="", help="a pytest marker expression")
    args, args.rest = parser.parse_known_args()

    import torch

    project = (HERE / args.project).resolve()
    if not (project / "build.toml").exists():
        sys.exit(f"{project}: no build.toml")
    backend = args.backend or ("cuda" if torch.cuda.is_available() or args.archs else "cpu")
    variant = (args.variant or project / "build" / "dev" / backend).resolve()
    out = args.out or project / "build" / "dev" / "run"
    out.mkdir(parents=True, exist_ok=True)
    if args.part == "build":
        return build(project, backend, variant, args.jobs, args.archs and args.archs.split(","))
    part = {"test": test, "sanitize": sanitize, "bench": bench}[args.part]
    return part(project, variant, args, out)


if __name__ == "__main__":
    sys.exit(main())
