#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""update-stub-symbols.py POLICY POLICY.tsv ARCH LIBRARY... > <policy>_<arch>.tsv
   update-stub-symbols.py - NAME ARCH LIBRARY... > <name>_<arch>.tsv

Lists what the link stubs of a manylinux policy export: every dynamic symbol of the given real libraries whose version
the policy allows. Give glibc's libraries from a release that still has them apart (before 2.34; Debian 11: libc6), so
that the names in DT_NEEDED are those of the policy's time, and libstdc++.so.6 and libgcc_s.so.1 of any newer compiler:
they have one version node per release, so filtering them is exact.

The second form takes every versioned symbol of the libraries, whatever a policy says (libamdhip64).

Columns: library, symbol, version, '@@' (what a link takes) or '@' (old, for exactness only), type, binding, size.
"""
import re
import subprocess
import sys


def allowed_versions(table, policy, arch):
    allowed = {}
    with open(table, encoding="ascii") as rows:
        for row in rows:
            cells = row.rstrip("\n").split("\t")
            if cells[0] == policy and cells[1] == arch:
                allowed[cells[2]] = set(cells[3].split())
    if not allowed:
        sys.exit(f"no rows for {policy} {arch} in {table}")
    return allowed


def numbers(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True, check=True).stdout


def symbols_of(library, allowed):
    found = {}
    for line in readelf("--dyn-syms", library).splitlines():
        cells = line.split()
        if len(cells) < 8 or not cells[0].rstrip(":").isdigit() or cells[6] == "UND":
            continue
        match = re.match(r"^(.*?)(@@?)([A-Za-z0-9_.]+)$", cells[7])
        if not match or cells[3] not in ("FUNC", "OBJECT", "TLS", "IFUNC", "NOTYPE"):
            continue
        name, at, version = match.groups()
        tag, _, number = version.partition("_")
        if name == version:
            continue  # the version node itself
        kind = {"OBJECT": "object", "TLS": "tls"}.get(cells[3], "function")
        size = int(cells[2], 0) if kind != "function" else 0
        found.setdefault(name, []).append(
            (version, at == "@@", kind, cells[4].lower(), size, allowed is None or number in allowed.get(tag, ())))
    for name, versions in sorted(found.items()):
        kept = sorted((v for v in versions if v[5]), key=lambda v: numbers(v[0]))
        has_default = any(v[1] for v in versions)
        for i, (version, _, kind, binding, size, _) in enumerate(kept):
            at = "@@" if has_default and i == len(kept) - 1 else "@"
            yield name, version, at, kind, binding, size


def main():
    policy, table, arch, *libraries = sys.argv[1:]
    any_version = policy == "-"
    allowed = None if any_version else allowed_versions(table, policy, arch)
    print(f"# Link stubs of {table if any_version else policy} {arch}: facts read from the libraries' dynamic symbol tables.")
    print("# Made by update-stub-symbols.py; columns: library symbol version default type binding size")
    for library in libraries:
        soname = re.search(r"SONAME.*\[(.*)\]", readelf("-d", library)).group(1)
        for row in symbols_of(library, allowed):
            print(soname, *row, sep="\t")


main()
