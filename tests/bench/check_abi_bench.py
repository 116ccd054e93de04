#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times check-abi on a large shared library with many dynamic symbols.

The library is assembled and linked here: 20,000 exports, 20,000 imports with C++ names from a second
library, and a read-only section of random bytes that brings it to the wanted size. Each figure is the
median of several runs; user and system time and the highest resident set come from wait4().

Usage: check_abi_bench.py KERNEL_BUILDER [--size-mb 200] [--symbols 40000] [--runs 9] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time


# What needs the tables of the file alone; the search for paths of a building machine reads all of it.
TABLES = [word for check in ("manylinux", "python-abi", "torch-stable-abi", "torch-symbols", "needed", "imports", "hygiene")
          for word in ("--only", check)]


def name_of(prefix, number):
    """A mangled name of the length that is usual for torch."""
    name = f"{prefix}_operator_overload_{number}"
    return f"_ZN2at6native{len(name)}{name}ERKNS_6TensorES3_N3c108ArrayRefIlEE"


def function_named(name):
    return f".globl {name}\n.type {name},@function\n{name}: ret\n.size {name},1\n"


def write_sources(folder, symbols, size):
    half = symbols // 2
    with open(folder / "payload.bin", "wb") as out:
        for _ in range(size >> 20):
            out.write(os.urandom(1 << 20))
    with open(folder / "provider.s", "w") as out:
        out.write('.section .note.GNU-stack,"",@progbits\n.text\n')
        for i in range(half):
            out.write(function_named(name_of("import", i)))
    with open(folder / "library.s", "w") as out:
        out.write('.section .note.GNU-stack,"",@progbits\n.text\n')
        for i in range(half):
            out.write(function_named(name_of("export", i)))
        out.write(".data\n")
        for i in range(half):
            out.write(f".quad {name_of('import', i)}\n")
        out.write('.section .rodata\n.incbin "payload.bin"\n')


def make_library(folder, symbols, size):
    write_sources(folder, symbols, size)
    provider, library = "libtorch_cpu.so", "large.so"
    for command in (["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{provider}", "provider.s", "-o", provider],
                    ["gcc", "-shared", "-nostdlib", "-s", "library.s", "-L.", f"-l:{provider}", "-o", library]):
        subprocess.run(command, cwd=folder, check=True)
    return folder / library


def run_once(command):
    """(user + system seconds, wall seconds, highest resident bytes, status)."""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - start
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)


def measure(command, runs, expected):
    samples = [run_once(command) for _ in range(runs)]
    for *_, status in samples:
        if status not in expected:
            sys.exit(f"error: {' '.join(map(str, command))} exits with {status}")
    return {"cpu_seconds": round(statistics.median(sample[0] for sample in samples), 4),
            "cpu_seconds_worst": round(max(sample[0] for sample in samples), 4),
            "wall_seconds": round(statistics.median(sample[1] for sample in samples), 4),
            "rss_mb": round(max(sample[2] for sample in samples) / 1e6, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel_builder")
    parser.add_argument("--size-mb", type=int, default=200)
    parser.add_argument("--symbols", type=int, default=40_000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--folder", help="keep the library here and take it up again")
    parser.add_argument("--json", dest="json_file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.folder or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        library = folder / "large.so"
        if not library.exists():
            make_library(folder, arguments.symbols, arguments.size_mb << 20)
        builder = os.path.abspath(arguments.kernel_builder)
        check = [builder, "check-abi", str(library)]
        figures = {"cat": measure(["cat", str(library)], arguments.runs, {0}),
                   "tables": measure([*check, *TABLES], arguments.runs, {0}),
                   "all": measure(check, arguments.runs, {0})}
        for kind in ("cpu", "wall"):
            by = figures["all"][f"{kind}_seconds"] / figures["cat"][f"{kind}_seconds"]
            figures[f"all_by_cat_{kind}"] = round(by, 2)
        result = {"schema": "kernel-builder/bench/check-abi/1", "machine": platform.machine(),
                  "cpus": os.cpu_count(), "library_bytes": library.stat().st_size,
                  "symbols": arguments.symbols, "runs": arguments.runs, "figures": figures}
    text = json.dumps(result, indent=2) + "\n"
    if arguments.json_file:
        pathlib.Path(arguments.json_file).write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
