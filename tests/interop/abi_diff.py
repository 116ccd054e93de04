#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares check-abi and the package formats with the reference tools.

  abi_diff.py KERNEL_BUILDER

Libraries are built here with g++ and each linker at hand, stripped and not. Where the reference can see (symbol table
there, versions written into it: GNU ld), its findings and ours are the same set. Where it cannot (stripped; lld and
gold write plain names), it reports nothing of what is wrong and ours is still the same set. metadata.json and digests
that we write are read by the reference. Exit 0, 1 on a difference, 77 when the reference is not installed.
"""
import importlib.metadata
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PINS = {"kernel-abi-check": "0.14.1", "kernels": "0.17.2", "jsonschema": "4.26.0"}
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
POLICY, PYTHON = "manylinux_2_28", "3.9"
CHECKS = ("manylinux", "python-abi")
SOURCES = {
    "clean": "#include <string.h>\n"
             'extern "C" void* PyModule_Create2(void*, int);\n'
             'extern "C" void* f(void* p) { memset(p, 0, 8); return PyModule_Create2(p, 3); }\n',
    "glibc": "#include <pthread.h>\n"
             'extern "C" void* f(void* p) { pthread_t t; pthread_create(&t, 0, f, p); return p; }\n',
    "cxx": "#include <charconv>\n"
           'extern "C" char* f(char* p, double d) { return std::to_chars(p, p + 64, d).ptr; }\n',
    "python": 'extern "C" const char* PyUnicode_AsUTF8(void*);\n'
              'extern "C" void* _PyDict_NewPresized(long);\n'
              'extern "C" int PyObject_GetBuffer(void*, void*, int);\n'
              'extern "C" void* f(void* p) { PyObject_GetBuffer(p, p, 0); PyUnicode_AsUTF8(p);\n'
              "  return _PyDict_NewPresized(3); }\n",
    "all": "#include <charconv>\n#include <pthread.h>\n"
           'extern "C" const char* PyUnicode_AsUTF8(void*);\n'
           'extern "C" void* f(void* p) { char b[64]; pthread_t t; pthread_create(&t, 0, f, p);\n'
           "  PyUnicode_AsUTF8(p); return std::to_chars(b, b + 64, *(double*)p).ptr; }\n",
}

passed = failed = 0


def expect(what, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what} {detail}")


def validate(what, schema, document):
    import jsonschema
    schema = json.loads((ROOT / "schemas" / schema).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = [e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(document)]
    expect(f"{what} validates", not errors, f"{errors}")


def ours(tool, library):
    done = subprocess.run([tool, "check-abi", "--json", "-m", POLICY, "-p", PYTHON, library],
                          capture_output=True, text=True)
    document = json.loads(done.stdout)
    validate(f"report on {library.name}", "report.schema.json", document)
    report = document["variants"][0]
    unseen = [v for v in report["verdicts"] if v["outcome"] == "not-checked"]
    assert not unseen, unseen
    return {c: {f["subject"] for f in report["findings"] if f["check"] == c} for c in CHECKS}


def theirs(reference, library):
    file = reference.ObjectFile(str(library))
    return {"manylinux": {x.name for x in file.check_manylinux(POLICY)},
            "python-abi": {x.name for x in file.check_python_abi(PYTHON)}}


def compare_libraries(tool, reference, work):
    linkers = [l for l in ("bfd", "gold", "lld") if shutil.which(f"ld.{l}")]
    for name, text in SOURCES.items():
        source = work / f"{name}.cpp"
        source.write_text(text)
        expected = None
        for linker in linkers:
            library = work / f"{name}-{linker}.so"
            subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-fno-builtin", f"-fuse-ld={linker}",
                            "-o", library, source], check=True)
            stripped = work / f"{name}-{linker}-stripped.so"
            subprocess.run(["strip", "-o", stripped, library], check=True)
            mine, seen, blind = ours(tool, library), theirs(reference, library), theirs(reference, stripped)
            if linker == "bfd":
                expected = mine
                expect(f"{library.name}: same findings", mine == seen, f"ours {mine} theirs {seen}")
            else:
                expect(f"{library.name}: reference sees no versions", not seen["manylinux"], f"{seen}")
                expect(f"{library.name}: same Python findings", mine["python-abi"] == seen["python-abi"])
            expect(f"{library.name}: as with the first linker", mine == expected, f"{mine} {expected}")
            expect(f"{stripped.name}: reference sees nothing", not any(blind.values()), f"{blind}")
            expect(f"{stripped.name}: ours does", ours(tool, stripped) == expected)
        if name != "clean":
            expect(f"{name}: violates something", any(expected.values()))


def load_rust():
    spec = importlib.util.find_spec("kernels")
    library = next(pathlib.Path(spec.submodule_search_locations[0]).glob("_rust*.so"))
    loader = importlib.util.spec_from_file_location("kernels._rust", library)
    module = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(module)
    return module


def compare_packages(tool, rust, work):
    variant = work / "build" / "torch-cuda"
    (variant / "sub" / "__pycache__").mkdir(parents=True)
    for path, content in {"__init__.py": b"x = 1\n", "sub/a.py": b"", "sub/metadata.json": b"{}",
                          "sub/__pycache__/a.pyc": b"no", "umlaut-\u00e4.txt": b"z"}.items():
        (variant / path).write_bytes(content)
    (variant / "metadata.json").write_text(json.dumps({
        "name": "my-kernel", "id": "_my_kernel_cuda_1a2b3c4", "version": 1, "license": "apache-2.0",
        "python-depends": [], "kernel-depends": [{"repo-id": "o/r", "version": 1}], "unknown": {"kept": True},
        "backend": {"type": "cuda", "archs": ["8.0", "9.0a"]},
        "provenance": {"kernel-builder": {"version": "0.1.0", "commit": "a" * 40, "dirty": False}}}))
    subprocess.run([tool, "hash", work], check=True, stdout=subprocess.DEVNULL)
    text = (variant / "metadata.json").read_bytes()
    validate("metadata", "metadata.schema.json", json.loads(text))
    expect("unknown keys are kept", json.loads(text)["unknown"] == {"kept": True})
    metadata = rust.Metadata.from_bytes(text)
    expect("the reference reads our metadata", str(metadata.name) == "my-kernel" and metadata.version == 1,
           f"{metadata.name!r} {metadata.version!r}")
    expect("... with its architectures", list(metadata.backend.archs) == ["8.0", "9.0a"])
    digest = metadata.digest
    mine = {str(k): str(v) for k, v in json.loads(text)["digest"]["files"].items()}
    reference = rust.Digest.hash_variant(rust.DigestAlgorithm.SHA256, str(variant))
    expect("the reference reads our digest", digest is not None and dict(digest.files) == mine)
    expect("both compute the same digest", dict(reference.files) == mine, f"{reference.files} {mine}")
    expect("verify holds", subprocess.run([tool, "verify", work], stdout=subprocess.DEVNULL).returncode == 0)


def main():
    for package, version in PINS.items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = None
        if found != version:
            print(f"SKIPPED: needs the Python package {package}=={version}")
            sys.exit(77)
    import kernel_abi_check
    tool = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as directory:
        compare_libraries(tool, kernel_abi_check, pathlib.Path(directory))
    with tempfile.TemporaryDirectory() as directory:
        compare_packages(tool, load_rust(), pathlib.Path(directory))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
