#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""update-torch-names.py WHEEL... > torch-names_x86_64.xz

Lists the C++ names that torch's libraries export, for the check that a library of one torch version finds there every
name that it imports. Give the CUDA wheels of torch (they hold the CPU libraries too), one of each minor version.

First line: the versions. Then one line a name, sorted: a letter for the library (c: every build of torch, g: the CUDA
libraries only, p: libtorch_python), the versions as bits in hex, a tab, the mangled name. Names without one of torch's
namespaces are left out, as are statics of inline functions, which every library defines itself.
"""
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

LIBRARIES = {"c10": "c", "torch": "c", "torch_cpu": "c", "c10_cuda": "g", "torch_cuda": "g", "torch_python": "p"}
NAMESPACES = re.compile(r"3c10|2at|5torch|6caffe2")


def exported(wheel, library):
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        member = f"torch/lib/lib{library}.so"
        if member not in archive.namelist():
            return []
        path = archive.extract(member, folder)
        out = subprocess.run(["nm", "--dynamic", "--defined-only", "--without-symbol-versions", path],
                             check=True, capture_output=True, text=True).stdout
    return [line.split()[-1] for line in out.splitlines()]


def main():
    wheels = {}
    for argument in sys.argv[1:]:
        major, minor = re.match(r"torch-(\d+)\.(\d+)", pathlib.Path(argument).name).groups()
        wheels[(int(major), int(minor))] = argument
    if not wheels:
        sys.exit(__doc__)
    versions = sorted(wheels)
    names = {}
    for bit, version in enumerate(versions):
        for library, letter in LIBRARIES.items():
            for name in exported(wheels[version], library):
                if name.startswith("_Z") and not name.startswith(("_ZZ", "_ZGV")) and NAMESPACES.search(name):
                    key = (name, letter)
                    names[key] = names.get(key, 0) | 1 << bit
    lines = [" ".join(f"{major}.{minor}" for major, minor in versions)]
    lines += [f"{letter}{bits:x}\t{name}" for (name, letter), bits in sorted(names.items())]
    text = "\n".join(lines) + "\n"
    sys.stdout.buffer.write(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
