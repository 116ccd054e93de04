#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares check-abi with readelf, auditwheel and abi3audit on the shared objects of real packages.

  packages_diff.py KERNEL_BUILDER FOLDER [--table FILE]

FOLDER holds wheels (and unpacked trees with shared objects). For each library:
- readelf --dyn-syms, -V and -d against our import, version and needed findings: every version that the policy does not
  have and every one that readelf prints is the same set;
- auditwheel's tag of the wheel against the oldest policy under which our "manylinux" check passes for all its libraries;
- abi3audit's verdict on abi3 wheels against our "python-abi" check for the promised version.
Every difference is a row of the table with its class. Exit 0 when each difference has a known class, 1 otherwise.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

POLICIES = ["manylinux_2_5", "manylinux_2_12", "manylinux_2_17", "manylinux_2_24", "manylinux_2_26", "manylinux_2_27",
            "manylinux_2_28", "manylinux_2_31", "manylinux_2_34", "manylinux_2_35", "manylinux_2_38", "manylinux_2_39"]


def is_elf(path):
    with open(path, "rb") as file:
        return path.is_file() and file.read(4) == b"\x7fELF"


def check(tool, path, *options):
    out = subprocess.run([tool, "check-abi", str(path), "--json", *options], capture_output=True, text=True)
    return json.loads(out.stdout)["variants"][0]


def findings(report, name):
    return [f for f in report["findings"] if f["check"] == name]


def outcome(report, name):
    return next((v["outcome"] for v in report["verdicts"] if v["check"] == name), "absent")


def needs_by_readelf(path):
    """Versions of the version-need table, as readelf prints them."""
    text = subprocess.run(["readelf", "-V", "-W", str(path)], capture_output=True, text=True).stdout
    part = text.split(".gnu.version_r", 1)
    return set(re.findall(r"Name: (\S+)  Flags", part[1])) if len(part) == 2 else set()


def needed_by_readelf(path):
    text = subprocess.run(["readelf", "-d", "-W", str(path)], capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def oldest_policy(tool, libraries):
    for policy in POLICIES:
        reports = [check(tool, path, "--manylinux", policy, "--only", "manylinux") for path in libraries]
        if all(report["passed"] for report in reports):
            return policy
    return "none"


def auditwheel_policy(wheel):
    """The oldest policy whose symbol versions the wheel keeps, whatever libraries it needs."""
    out = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True)
    text = " ".join((out.stdout + out.stderr).split())
    found = (re.search(r'constrains the platform tag to "(manylinux_\d+_\d+)', text)
             or re.search(r'following platform tag: "(manylinux_\d+_\d+)', text))
    return found.group(1) if found else "no answer: " + text[-60:]


def compare_library(tool, path, rows, counts):
    counts["libraries"] += 1
    wanted = check(tool, path, "--manylinux", "manylinux_2_5", "--only", "manylinux")
    if outcome(wanted, "manylinux") == "not-checked":
        counts["not checked"] += 1
        rows.append((path.name, "not checked", wanted["verdicts"][0]["reason"]))
        return
    newer = check(tool, path, "--manylinux", "manylinux_2_28", "--only", "manylinux")
    ours = {f["found"] for f in findings(newer, "manylinux") if "_" in f["found"] and not f["found"].startswith("lib")}
    theirs = {v for v in needs_by_readelf(path) if refused_by_2_28(v)}
    if ours == theirs:
        counts["versions agree"] += 1
    else:
        rows.append((path.name, "versions", f"ours {sorted(ours - theirs)} readelf {sorted(theirs - ours)}"))
    needed = check(tool, path, "--only", "needed")
    unknown = {f["subject"] for f in findings(needed, "needed")} - needed_by_readelf(path)
    counts["needed agree"] += not unknown
    if unknown:
        rows.append((path.name, "needed", f"not in readelf: {sorted(unknown)}"))


def refused_by_2_28(version):
    limits = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
    found = re.fullmatch(r"(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)", version)
    return bool(found) and tuple(int(n) for n in found.group(2).split(".")) > limits[found.group(1)]


def compare_wheel(tool, wheel, libraries, rows, counts):
    ours, theirs = oldest_policy(tool, libraries), auditwheel_policy(wheel)
    counts["wheels"] += 1
    if ours == theirs:
        counts["auditwheel agrees"] += 1
    else:
        rows.append((wheel.name, "auditwheel", f"ours {ours}, auditwheel {theirs}"))
    abi3 = re.search(r"-cp3(\d+)-abi3-", wheel.name)
    if not abi3:
        return
    version = f"3.{abi3.group(1)}"
    out = subprocess.run([sys.executable, "-m", "abi3audit", "--report", str(wheel)], capture_output=True, text=True)
    specs = json.loads(out.stdout)["specs"] if out.stdout.startswith("{") else {}
    results = [o["result"] for s in specs.values() for o in s["wheel"]]
    good = bool(results) and all(r["is_abi3"] and r["is_abi3_baseline_compatible"] for r in results)
    mine = all(check(tool, p, "-p", version, "--only", "python-abi")["passed"] for p in libraries if "abi3" in p.name)
    counts["abi3 wheels"] += 1
    if good == mine:
        counts["abi3audit agrees"] += 1
    else:
        rows.append((wheel.name, "abi3audit", f"ours {mine}, abi3audit {good}"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    counts, rows = collections.Counter(), []
    for wheel in sorted(arguments.folder.glob("*.whl")):
        with tempfile.TemporaryDirectory() as scratch:
            zipfile.ZipFile(wheel).extractall(scratch)
            libraries = [p for p in sorted(pathlib.Path(scratch).rglob("*.so*")) if p.is_file() and is_elf(p)]
            for path in libraries:
                compare_library(arguments.tool, path, rows, counts)
            if libraries:
                compare_wheel(arguments.tool, wheel, libraries, rows, counts)
    for path in sorted(p for p in arguments.folder.rglob("*.so*") if p.is_file() and not p.is_symlink() and is_elf(p)):
        compare_library(arguments.tool, path, rows, counts)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    text = "\n".join(f"{key}: {value}" for key, value in counts.items()) + "\n" + "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if arguments.table:
        arguments.table.write_text("| what | with | difference |\n|---|---|---|\n" + "\n".join(lines) + "\n")
    sys.exit(1 if any(row[1] == "needed" for row in rows) else 0)


if __name__ == "__main__":
    main()
