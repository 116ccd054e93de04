#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""For each rule of check-abi a library that breaks it and no other, by real linkers.

  seeded_faults.py KERNEL_BUILDER

Each is built with g++ and every linker at hand (ld, gold, lld, mold), stripped and not, in a variant directory of its
own. The report must name exactly that rule; the clean twin passes. What a linker cannot make is listed as skipped with
its words. Prints "N passed, N failed, N skipped".
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

STABLE = "torch-stable-abi211-cpu-x86_64-linux"
LINKERS = [name for name in ("bfd", "gold", "lld", "mold") if shutil.which(f"ld.{name}")]
CLEAN = 'extern "C" int answer(int x) { return x + 1; }\n'


class Fault:
    """`source` for g++, `flags` for the link; `variant` and `backend` are what the directory claims."""

    def __init__(self, rule, words, source, flags=(), variant=STABLE, backend="cpu", compile_flags=("-fPIC",)):
        self.rule, self.words, self.source, self.flags = rule, words, source, list(flags)
        self.variant, self.backend, self.compile_flags = variant, backend, list(compile_flags)


FAULTS = [
    Fault("platform", "x86_64", CLEAN, variant="torch-stable-abi211-cpu-aarch64-linux"),
    Fault("manylinux", "GLIBC_2.34",
          "#include <pthread.h>\n"
          'extern "C" void* f(void* p) { pthread_t t; pthread_create(&t, 0, (void* (*)(void*))f, p); return p; }\n'),
    Fault("python-abi", "PyUnicode_AsUTF8",
          'extern "C" const char* PyUnicode_AsUTF8(void*);\nextern "C" const char* f(void* p) { return PyUnicode_AsUTF8(p); }\n'),
    Fault("torch-stable-abi", "c10::",
          "namespace c10 { void warn_now(int); }\nextern \"C\" void f() { c10::warn_now(1); }\n", ["WITH_TORCH"]),
    Fault("torch-symbols", "at::no_such_function",
          "namespace at { void no_such_function(int); }\nextern \"C\" void f() { at::no_such_function(1); }\n", ["WITH_TORCH"],
          variant="torch211-cxx11-cpu-x86_64-linux"),
    Fault("needed", "libstrange.so.7", CLEAN, ["WITH_STRANGE"]),
    Fault("imports", "not_defined_anywhere",
          'extern "C" int not_defined_anywhere(int);\nextern "C" int f(int x) { return not_defined_anywhere(x); }\n'),
    Fault("hygiene", "executable stack", CLEAN, ["-Wl,-z,execstack"]),
    Fault("hygiene", "/opt/build/lib", CLEAN, ["-Wl,-rpath,/opt/build/lib"]),
    Fault("hygiene", "code", 'extern "C" int answer(int x) { return x + 1; }\n'
          'asm(".text\\n.globl away\\naway: .quad answer\\n");\n', ["-Wl,-z,notext"]),
    Fault("host-paths", "/home/alice",
          'extern "C" const char* f() { return "/home/alice/kernel/src/relu.cu"; }\n'),
    Fault("device-code", "device", CLEAN, variant="torch-stable-abi211-cu130-x86_64-linux", backend="cuda"),
]

passed = failed = 0
skipped = []


def expect(what, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what} {detail}")


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def helper_library(work, soname, source):
    library = work / soname
    run("g++", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-x", "c++", "-o", library, source).check_returncode()
    return library


def link(fault, linker, work, helpers):
    source = work / "fault.cpp"
    source.write_text(fault.source)
    flags = []
    for flag in fault.flags:
        flags += ["-Wl,--no-as-needed", helpers[flag]] if flag in helpers else [flag]
    library = work / "kernel.so"
    library.unlink(missing_ok=True)
    done = run("g++", "-shared", "-O1", "-fno-builtin", f"-fuse-ld={linker}", *fault.compile_flags, "-o", library, source, *flags)
    return library if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def make_variant(work, name, backend, library):
    variant = work / "build" / name
    shutil.rmtree(work / "build", ignore_errors=True)
    variant.mkdir(parents=True)
    (variant / "__init__.py").write_text("")
    (variant / "metadata.json").write_text(json.dumps(
        {"name": "seeded", "id": f"_seeded_{backend}_1a2b3c4", "version": 1, "license": "apache-2.0",
         "python-depends": [], "backend": {"type": backend}}))
    if library:
        shutil.copy(library, variant / "_seeded.abi3.so")
    return variant


def rules_of(tool, variant):
    done = run(tool, "check-abi", "--json", "-m", "manylinux_2_28", "-p", "3.9", variant)
    report = json.loads(done.stdout)["variants"][0]
    broken = {f["check"] for f in report["findings"]} | {v["check"] for v in report["verdicts"] if v["outcome"] != "passed"}
    return done.returncode, broken, " | ".join(f["message"] for f in report["findings"])


def check(tool, what, work, fault, library):
    code, broken, words = rules_of(tool, make_variant(work, fault.variant, fault.backend, library))
    expect(what, code == 1 and broken == {fault.rule} and fault.words in words, f"exit {code}, rules {broken}: {words}")


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "empty.cpp").write_text('extern "C" int strange() { return 7; }\n')
        torch = "namespace c10 { void warn_now(int) {} }\nnamespace at { void no_such_function(int) {} }\n"
        (work / "torch.cpp").write_text(torch)
        helpers = {"WITH_STRANGE": helper_library(work, "libstrange.so.7", work / "empty.cpp"),
                   "WITH_TORCH": helper_library(work, "libtorch_cpu.so", work / "torch.cpp")}
        for linker in LINKERS:
            for fault in [Fault("", "", CLEAN), *FAULTS]:
                what = f"{linker}: {fault.rule or 'clean'} {fault.words}"
                library = link(fault, linker, work, helpers)
                if isinstance(library, str):
                    skipped.append(f"{what}: {library}")
                    continue
                stripped = work / "stripped.so"
                run("strip", "-o", stripped, library).check_returncode()
                for kind, file in (("", library), (" stripped", stripped)):
                    if fault.rule:
                        check(tool, what + kind, work, fault, file)
                    else:
                        code, broken, words = rules_of(tool, make_variant(work, STABLE, "cpu", file))
                        expect(what + kind, code == 0 and not broken, f"exit {code}: {broken} {words}")
            half = work / "half.so"
            half.write_bytes(library.read_bytes()[:512])
            check(tool, f"{linker}: read", work, Fault("read", "", ""), half)
        check(tool, "libraries", work, Fault("libraries", "", ""), None)
    for line in skipped:
        print(f"SKIPPED: {line}")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
