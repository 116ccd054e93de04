# SPDX-License-Identifier: Apache-2.0
"""tiny_toolchain.py BUNDLE PROJECT: a deb and a wheel of a few bytes, and the build.lock that pins them.

They stand for the compiler and for tvm-ffi of a CPU kernel, so that every way of a lock and of a store can be
walked in milliseconds and without a network. Nothing can be compiled with them.
"""
import hashlib
import io
import json
import pathlib
import sys
import tarfile
import zipfile

WHEEL = "apache_tvm_ffi-0.1.15.post2-py3-none-any.whl"
DEB = "gcc-12_12.2.0-14_amd64.deb"


def wheel(path, header):
    info = "apache_tvm_ffi-0.1.15.post2.dist-info"
    files = {
        "tvm_ffi/include/tvm/ffi/c_api.h": header,
        "tvm_ffi/version.py": '__version__ = "0.1.15.post2"\n',
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: apache-tvm-ffi\nVersion: 0.1.15.post2\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text)


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def deb(path):
    control = "Package: gcc-12\nVersion: 12.2.0-14\nArchitecture: amd64\nMaintainer: t <t@example.org>\nDescription: t\n"
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tar({"./control": control}),
        "data.tar.gz": tar({"./usr/include/tiny.h": "int tiny;\n", "./usr/bin/tool": "#!/bin/sh\n"}),
    }
    with open(path, "wb") as out:
        out.write(b"!<arch>\n")
        for name, data in members.items():
            out.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode())
            out.write(data + b"\n" * (len(data) % 2))


def entry(bundle, file, identity, platform, name):
    data = (bundle / file).read_bytes()
    return {"id": identity, "file": file, "platform": platform, "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "slice": {"name": name, "record-sha256": None, "manifest-sha256": None}}


def main():
    bundle, project = map(pathlib.Path, sys.argv[1:])
    bundle.mkdir(parents=True, exist_ok=True)
    wheel(bundle / WHEEL, "int pinned;\n")
    deb(bundle / DEB)
    # The link stubs are compiled into the program: their entry is that of its own default lock.
    root = pathlib.Path(__file__).resolve().parents[2]
    default = json.loads((root / "src/toolchain/data/default.lock.json").read_text())
    entries = [e for e in default["entries"] if e["id"].startswith("stub/manylinux") and e["platform"] == "x86_64-linux"]
    entries.append(entry(bundle, DEB, "deb/gcc-12@12.2.0-14#gcc-12", "x86_64-linux", "gcc-12"))
    entries.append(entry(bundle, WHEEL, "wheel/apache-tvm-ffi@0.1.15.post2#include", "any", "include"))
    lock = {"schema": "kernel-builder/lock/1", "entries": sorted(entries, key=lambda e: e["id"])}
    (project / "build.lock").write_text(json.dumps(lock, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
