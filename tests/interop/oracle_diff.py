#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what we accept as build.toml with what the reference parser accepts.

  oracle_diff.py --driver build/dev/tests/interop/kb_config_verdict [--seed N] [--keep DIR] [--verbose]

The reference is the extension inside the Python package kernels==0.17.2 of the running interpreter. Input: every file
below oracle/samples, and mutations of the good ones (oracle/mutations.py), at least ten of each kind. Allowed
differences: what is read as edition 1 to 3, and the rows of docs/upstream-differences.md. Exit 0 when all others are
equal, 1 when not, 77 when the reference is not installed.
"""
import argparse
import collections
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REFERENCE = "0.17.2"
BACKENDS = ("CANN", "CPU", "CUDA", "Metal", "Neuron", "ROCm", "TPU", "XPU")

sys.path.insert(0, str(HERE / "oracle"))
import mutations  # noqa: E402


def load_reference():
    """The extension alone: importing the package would pull in its network client."""
    spec = importlib.util.find_spec("kernels")
    if spec is None or importlib.metadata.version("kernels") != REFERENCE:
        print(f"SKIPPED: needs the Python package kernels=={REFERENCE}")
        sys.exit(77)
    library = next(pathlib.Path(spec.submodule_search_locations[0]).glob("_rust*.so"))
    loader = importlib.util.spec_from_file_location("kernels._rust", library)
    module = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(module)
    return module


def dependency(item):
    version = getattr(item.version, "version", None)
    if version is not None:
        return {"repo-id": item.repo_id, "version": version}
    return {"repo-id": item.repo_id, "revision": item.version.revision}


def ask_reference(module, content, folder):
    (folder / "build.toml").write_bytes(content)
    try:
        build = module.Build.open(str(folder))
    except Exception as error:  # the extension raises several types
        text = str(error).replace(str(folder), "<dir>")
        return {"accepted": False, "error": text.strip()}
    depends = {}
    for name in BACKENDS:
        backend = getattr(module.Backend, name)
        items = [dependency(d) for d in build.all_kernel_depends(backend)]
        if items:
            depends[str(backend)] = items
    return {"accepted": True, "backends": [str(b) for b in build.general.backends], "kernel-depends": depends}


def quiet(function, *arguments):
    """The extension writes its warning about old editions to descriptor 2."""
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        return function(*arguments)
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def documented_differences():
    """Rows `| id | example | reference | ours | diagnostic |` of docs/upstream-differences.md, section 'Verdicts'."""
    text = (ROOT / "docs" / "upstream-differences.md").read_text()
    section = text.split("## Verdicts", 1)[1].split("\n## ", 1)[0]
    rows = []
    for line in section.splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if len(cells) != 5 or cells[0] in ("id", "") or set(cells[0]) <= set("-: "):
            continue
        rows.append({"id": cells[0].strip("`"), "reference": cells[2], "ours": cells[3],
                     "pattern": re.compile(cells[4].strip("`").replace("\\|", "|"))})
    if not rows:
        sys.exit("docs/upstream-differences.md has no table of verdicts")
    return rows


def explain(ours, reference, rows):
    """Id of the documented difference, or None."""
    if ours["accepted"] and ours["edition"] <= 3:
        return "editions-1-to-3"
    want = ("accepts" if reference["accepted"] else "rejects", "accepts" if ours["accepted"] else "rejects")
    errors = [d["message"] for d in ours["diagnostics"] if d["error"]]
    texts = [reference["error"]] if ours["accepted"] else errors
    for row in rows:
        if (row["reference"], row["ours"]) == want and texts and all(row["pattern"].search(t) for t in texts):
            return row["id"]
    return None


def judge_all(driver, paths):
    lines = "".join(f"{p}\n" for p in paths)
    done = subprocess.run([driver], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def same(ours, reference):
    if ours["accepted"] != reference["accepted"]:
        return False
    return not ours["accepted"] or (ours["backends"] == reference["backends"]
                                    and ours["kernel-depends"] == reference["kernel-depends"])


def report(cases, verdicts, references, rows, verbose):
    counts = collections.Counter()
    by_kind = collections.defaultdict(collections.Counter)
    wrong_kinds = set()
    unexplained = 0
    for case, ours, reference in zip(cases, verdicts, references):
        kind = case["kind"]
        by_kind[kind]["rejected" if not reference["accepted"] else "accepted"] += 1
        if same(ours, reference):
            counts["equal"] += 1
            continue
        name = explain(ours, reference, rows)
        if name:
            counts[name] += 1
            continue
        unexplained += 1
        wrong_kinds.add(kind)
        verdict = "accepts" if reference["accepted"] else "rejects"
        print(f"DIFFERENT {case['name']}: the reference {verdict}: {reference.get('error', '')[-300:]!r}; we say "
              f"{[(d['line'], d['message']) for d in ours['diagnostics'] if d['error']]}")
        if verbose:
            print(case["content"].decode("utf8", "replace"))
    for kind, seen in sorted(by_kind.items()):
        print(f"{kind:16} {sum(seen.values()):5} cases, the reference accepts {seen['accepted']}")
    print(f"{len(cases)} cases: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())) +
          f", {unexplained} not explained")
    thin = [k for k in mutations.KINDS if sum(by_kind[k].values()) < 10]
    if thin:
        print(f"too few cases of {thin}")
    wrong_kinds.update(thin)
    print(f"{len(by_kind) - len(wrong_kinds)} passed, {len(wrong_kinds)} failed")
    return 1 if wrong_kinds else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="write all cases into this folder")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    module = load_reference()
    cases = []
    for path in sorted((HERE / "oracle" / "samples").glob("*/*.toml")):
        cases.append({"name": f"{path.parent.name}/{path.name}", "kind": "sample", "content": path.read_bytes()})
    good = [c for c in cases if c["name"].startswith("good/")]
    cases += mutations.generate(good, arguments.seed)
    rows = documented_differences()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        out = pathlib.Path(arguments.keep) if arguments.keep else folder / "cases"
        out.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, case in enumerate(cases):
            paths.append(out / f"{number:05}.toml")
            paths[-1].write_bytes(case["content"])
        verdicts = judge_all(arguments.driver, paths)
        references = quiet(lambda: [ask_reference(module, c["content"], folder) for c in cases])
    return report(cases, verdicts, references, rows, arguments.verbose)


if __name__ == "__main__":
    sys.exit(main())
