#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The promise of the stable ABI: one binary for torch 2.11 and every newer one. The variants that the tool builds are
# imported, and the whole test suites of their kernels run, under the lowest and the highest torch that they are for.
# A variant of one torch is the counterexample: it loads there and nowhere else.
# Usage: torches.sh KERNEL_BUILDER VENV [TORCH...]; VENV has pytest, numpy and what torch needs. KB_TEST_WHEELS: where
# torch's wheels (about 600 MB each) are at hand.
. "$(dirname "$0")/../e2e/lib.sh"
venv=$(realpath "$2"); shift 2; cd "$scratch" || exit 1
torches=("$@"); [ $# -gt 0 ] || torches=(2.11.0 2.15.0)
wheels=(); [ -z "${KB_TEST_WHEELS:-}" ] || wheels=(--find-links "$KB_TEST_WHEELS")
for torch in "${torches[@]}"; do
  "$venv/bin/python" -m venv --without-pip "$scratch/$torch"
  site=$(echo "$scratch/$torch"/lib/python3*/site-packages)
  # That torch, and everything else from VENV.
  "$venv/bin/python" -m pip install -q --no-deps ${wheels[@]+"${wheels[@]}"} --target "$site" "torch==$torch"
  "$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/others.pth"
done
# under TORCH PROJECT [OPTION...] -- COMMAND...: the project's kernel and that torch, which says that it has no CUDA.
under() { local torch=$1 project=$2; shift 2; (cd "$project" && PATH="$scratch/$torch/bin:$PATH" "$kb" testshell --python python --as cpu "$@"); }
for k in activation norm attention; do
  cp -r "$repo/example-kernels/$k" "$k"; rm -rf "$k/build" "$k/.kernel-builder"
  check "$k: the CPU variant builds" build "$k" --backend cpu
  variant=$(basename "$k"/build/*/)
  check_exit 0 "torch-stable-abi211-cpu" "$k: it is the variant of the stable ABI" ls "$k/build"
  before=$(sha256sum "$k/build/$variant/"*.so)
  for torch in "${torches[@]}"; do
    check_exit 0 "^$torch" "$k: torch $torch is the one that runs" under "$torch" "$k" -- python -c 'import torch; print(torch.__version__)'
    check_exit 0 "[0-9]+ passed" "$k: its tests pass under torch $torch" under "$torch" "$k" --variant "$variant" -- python -m pytest -q -x -p no:cacheprovider tests
    tail -n 1 "$scratch/out"
    check "$k: check-ops under torch $torch" under "$torch" "$k" --variant "$variant" -- "$kb" check-ops --python python .
  done
  equal "$k: with the same file" "$(sha256sum "$k/build/$variant/"*.so)" "$before"
done
cp -r "$repo/tests/fixtures/norm-aot" aot
highest=${torches[${#torches[@]}-1]} lowest=${torches[0]}
check "a variant of torch ${highest%.*} builds" build aot --backend cpu --torch "${highest%.*}"
check "it imports under torch $highest" under "$highest" aot -- python -c 'import norm_aot'
check_not "it does not under torch $lowest" under "$lowest" aot --variant "$(basename aot/build/*/)" -- python -c 'import norm_aot'
