#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Libraries built on this machine load where glibc is 2.31: in a Debian 11 root, by its own python3, every symbol bound at
# once. Stub libraries stand for torch and CUDA; what comes from glibc, libstdc++ and Python is that root's own.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
if [ "$(id -u)" != 0 ]; then echo "SKIPPED: a Debian 11 root needs root"; exit; fi
root=$state/bullseye
mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -n 's/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' /etc/apt/sources.list 2>/dev/null | head -n 1)
if ! chroot "$root" python3 -c 'import _ctypes' 2>/dev/null; then
  rm -rf "$root"
  check "a Debian 11 root is made" debootstrap --variant=minbase --include=python3,libstdc++6 bullseye "$root" "$mirror"
fi
rm -rf "$root/k"; mkdir -p "$root/k/stubs"
for library in "$state"/examples/*/build/*/*.so; do
  variant=$(basename "$(dirname "$library")"); kernel=$(basename "$(dirname "$(dirname "$(dirname "$library")")")")
  cp "$library" "$root/k/$kernel-$variant.so"
done
cat >stubs.py <<'P'
"""Stub libraries under the names that the kernels need, defining what the kernels import from them."""
import collections, pathlib, re, subprocess, sys
folder = pathlib.Path(sys.argv[1])
def readelf(*a): return subprocess.run(["readelf", "-W", *a], capture_output=True, text=True, check=True).stdout
needed, plain, versioned = set(), set(), collections.defaultdict(set)
for library in folder.glob("*.so"):
    needed |= {n for n in re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", library)) if re.match(r"lib(torch|c10|cud)", n)}
    for line in readelf("--dyn-syms", library).splitlines():
        cells = line.split()
        if len(cells) > 7 and cells[6] == "UND" and cells[4] == "GLOBAL":
            name, _, version = cells[7].partition("@")
            if version.startswith("lib"): versioned[version].add(name)
            elif not version and not re.match(r"_?Py", name): plain.add(name)
for soname in needed:
    names = versioned.get(soname) or plain
    source = folder / "stubs" / "stub.s"
    source.write_text(".text\n" + "".join(f".globl {n}\n.type {n},@function\n{n}:\n" for n in sorted(names)) + "xorl %eax, %eax\nret\n.section .note.GNU-stack,\"\",@progbits\n")
    script = folder / "stubs" / "stub.map"
    script.write_text("%s { global: *; };\n" % soname if soname in versioned else "{ global: *; };\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-soname," + soname, f"-Wl,--version-script={script}", "-o", folder / "stubs" / soname, source], check=True)
P
check "stubs for torch and CUDA are made" python3 stubs.py "$root/k"
cat >"$root/k/load.py" <<'P'
import ctypes, os, subprocess
def load(name):
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL("/k/" + name)  # binds every symbol now
            os._exit(0)
        except OSError as error:
            print("NOT LOADED", name, error, flush=True)
            os._exit(1)
    return os.waitpid(child, 0)[1]
for name in sorted(os.listdir("/k")):
    if not name.endswith(".so"):
        continue
    status = load(name)
    if status == 0:
        print("loaded", name, flush=True)
    elif os.WIFSIGNALED(status):
        # It was bound and its constructors ran into a stub of torch: ask the loader alone, which runs no constructor.
        trace = dict(os.environ, LD_TRACE_LOADED_OBJECTS="1", LD_WARN="1", LD_BIND_NOW="1")
        text = subprocess.run(["/lib64/ld-linux-x86-64.so.2", "/k/" + name], env=trace, capture_output=True, text=True)
        problems = [l for l in (text.stdout + text.stderr).splitlines() if ("undefined symbol" in l and "symbol: Py" not in l and "symbol: _Py" not in l) or "not found" in l]
        print("NOT LOADED" if problems else "loaded up to torch's own registration", name, *problems[:2], flush=True)
P
chroot "$root" env LD_LIBRARY_PATH=/k/stubs python3 /k/load.py >"$scratch/loaded" 2>&1
cp "$scratch/loaded" "$scratch/out"
while IFS= read -r line; do case $line in loaded*) good "$line on glibc 2.31" ;; *) bad "$line" ;; esac; done <"$scratch/loaded"
equal "all 12 were tried" "$(grep -c -i '^\(not \)\?loaded' "$scratch/loaded")" 12
