#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The bundled kernels and the AOT twin of norm: 12 variants, all checked.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
keep=$state/examples; rm -rf "$keep"; mkdir -p "$keep"
for k in activation norm attention; do cp -r "$repo/example-kernels/$k" "$keep/$k"; done
cp -r "$repo/tests/fixtures/norm-aot" "$keep/norm-aot"
find "$keep" -name __pycache__ -prune -exec rm -rf {} +; rm -rf "$keep"/*/build
for k in norm-aot norm activation attention; do
  check "$k: check-config" "$kb" check-config "$keep/$k"
  check "$k: the matrix builds" build "$keep/$k" --matrix
  check "$k: check-abi" "$kb" check-abi "$keep/$k"
  check "$k: check-builds" "$kb" check-builds "$keep/$k"
done
equal "12 variants were built" "$(ls -d "$keep"/*/build/*/ | wc -l)" 12
# One more torch version costs bindings and links only: the device code and CPU code are there once.
python3 - "$keep/norm-aot/.kernel-builder/work/build.ninja" >"$scratch/units" <<'P'
import re, sys
text = open(sys.argv[1]).read()
sources = re.findall(r"^build \S+: compile(?:_keep)? (\S+)", text, re.M)
print(max(sources.count(s) for s in set(sources) if "torch-ext" not in s))
P
equal "torch-free units of the AOT twin exist once per backend" "$(cat "$scratch/units")" 1
# A library of one torch is found out where another torch is claimed.
cp -r "$keep/norm-aot/build/torch215-cxx11-cpu-x86_64-linux" "$scratch/torch29-cxx11-cpu-x86_64-linux"
check_exit 1 "torch 2.9 has no 'torch::Library::_def\(.*\[torch-symbols\]" "names of another torch: check-abi" \
  "$kb" check-abi "$scratch/torch29-cxx11-cpu-x86_64-linux"
