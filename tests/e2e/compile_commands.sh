#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One decision, one place: the CMake project of create-pyproject and the build.ninja of build tell the compilers the same.
. "$(dirname "$0")/lib.sh"
for program in cmake ninja python3; do
  command -v $program >/dev/null || { echo "SKIPPED: no $program"; exit 0; }
done
cd "$scratch"
mkdir -p k/{torch-ext/sections,include,cuda,cpu,csrc} torch/torch/{lib,include}
cat >k/build.toml <<'TOML'
[general]
name = "sections"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch]
include = ["./include/"]
cxx-flags = ["-DBINDING=1"]
src = ["torch-ext/torch_binding.cpp", "torch-ext/helper.cpp"]

[kernel.fast]
backend = "cuda"
depends = []
cuda-capabilities = ["8.0", "9.0"]
cuda-flags = ["-DTEXT=\"a b;c\"", "-static-global-template-stub=false"]
cxx-flags = ["-fno-exceptions"]
include = ["cuda", "."]
src = ["cuda/first.cu", "./cuda/both.cu", "cuda/host.cpp", "cuda/first.cuh"]

[kernel."odd id"]
backend = "cuda"
depends = []
cuda-capabilities = ["8.0", "8.9"]
cuda-minver = "12.6"
cuda-flags = ["-lineinfo"]
src = ["cuda/both.cu", "cuda/with_torch.cu"]

[kernel.slow]
backend = "cpu"
depends = []
cxx-flags = ["-ffp-contract=off"]
src = ["cpu/slow.cpp", "csrc/common.h"]

[kernel.slower]
backend = "cpu"
depends = []
cxx-flags = ["-O1", "-DTWO=\"x;y\""]
include = ["cpu"]
src = ["cpu/uses_python.cpp", "cpu/slow.cpp"]
TOML
cat >k/torch-ext/torch_binding.cpp <<'CPP'
#include "registration.h"
#include <torch/library.h>
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {}
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
CPP
echo '#include <vector>' >k/torch-ext/helper.cpp
echo '#include "first.cuh"' >k/cuda/first.cu
echo '#include <ATen/ATen.h>' >k/cuda/with_torch.cu
echo '#include <Python.h>' >k/cpu/uses_python.cpp
echo 'extern const char* name; const char* text = "TORCH_EXTENSION_NAME";' >k/cuda/host.cpp
touch k/cuda/first.cuh k/cuda/both.cu k/cpu/slow.cpp k/csrc/common.h k/torch-ext/sections/__init__.py torch/torch/__init__.py
for library in torch torch_cpu torch_cuda c10 c10_cuda; do touch torch/torch/lib/lib$library.so; done
export PYTHONPATH=$scratch/torch

# compare NAME VARIANT LANGUAGE TORCH CUDA, with CUDA "" for the CPU. Sets standards: how many units have which.
compare() {
  local name=$1 variant=$2 language=$3 torch=$4 cuda=$5
  nvcc=
  printf '__version__ = "%s.0"\ncuda = "%s" or None\n' "$torch" "$cuda" >torch/torch/version.py
  rm -rf cmake ours
  if ! "$kb" generate k --force --variant "$variant" ${from[@]+"${from[@]}"} >"$scratch/out" 2>&1; then bad "$name: generate"; return; fi
  ninja -C k/.kernel-builder/work -t compdb >ours.json 2>"$scratch/out"
  if [ -n "$cuda" ]; then
    for root in $(grep -o "/[^ '\"=]*/root/[0-9a-f]\{64\}" k/.kernel-builder/work/build.sh | sort -u); do
      [ ! -x "$root/bin/nvcc" ] || nvcc=$root
    done
    [ -x "$nvcc/bin/nvcc" ] || { bad "$name: build.sh names no nvcc ('$nvcc')"; return; }
  fi
  if ! cmake -S k -B cmake -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DBUILD_ALL_SUPPORTED_ARCHS=ON -DGPU_LANG="$language" \
    -DCMAKE_CXX_COMPILER=/usr/bin/g++ ${nvcc:+-DCMAKE_CUDA_COMPILER=$nvcc/bin/nvcc -DCUDAToolkit_ROOT=$nvcc} >"$scratch/out" 2>&1; then
    bad "$name: cmake configures the project"; return
  fi
  check "$name" python3 "$repo/tests/e2e/compile_commands.py" ours.json cmake/compile_commands.json "$scratch/k" "$scratch/torch" "$nvcc"
  standards=$(grep -o 'std=c++[0-9]*' ours.json | sort | uniq -c | tr -s ' \n' ' ')
}
compare "CPU, torch 2.11: headers of C++17, the rest C++20" torch211-cxx11-cpu-x86_64-linux CPU 2.11 ''
equal "which are two standards" "$standards" " 1 std=c++17 3 std=c++20 "
compare "CPU, torch 2.13" torch213-cxx11-cpu-x86_64-linux CPU 2.13 ''
compare "CUDA 13.0, torch 2.11" torch211-cxx11-cu130-x86_64-linux CUDA 2.11 13.0
equal "two units with torch, four without" "$standards" " 2 std=c++17 4 std=c++20 "
compare "CUDA 13.0, torch 2.15" torch215-cxx11-cu130-x86_64-linux CUDA 2.15 13.0
# The comparison sees what it is there for.
sed -i 's/^set(KB_CXX_STANDARD_cuda_13.0 20)/set(KB_CXX_STANDARD_cuda_13.0 17)/; s/"-lineinfo"/"-G"/' k/CMakeLists.txt
cmake -S k -B cmake >/dev/null 2>&1
check_exit 1 "both.cu: flags: .*-lineinfo.*-G" "a changed flag is seen" python3 "$repo/tests/e2e/compile_commands.py" ours.json cmake/compile_commands.json "$scratch/k" "$scratch/torch" "$nvcc"
check_exit 1 "first.cu: standard: .*c\+\+20.*c\+\+17" "a changed standard too" python3 "$repo/tests/e2e/compile_commands.py" ours.json cmake/compile_commands.json "$scratch/k" "$scratch/torch" "$nvcc"
