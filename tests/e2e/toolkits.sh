#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Toolkits and headers beyond those of the bundle: each is fetched, builds a kernel and passes its checks.
. "$(dirname "$0")/lib.sh"
cd "$scratch"
cp -r "$repo/tests/fixtures/norm-aot" k
sed -i 's/^minver = .*/minver = "2.7"/' k/build.toml
# variant: torch cuda
for pair in "2.7 11.8" "2.7 12.4" "2.9 13.0" "2.15 13.2" "2.15 13.5"; do
  read -r torch cuda <<<"$pair"
  variant=torch${torch/./}-cxx11-cu${cuda/./}-x86_64-linux
  check "$variant builds" build k --torch "$torch" --cuda "$cuda" --backend cuda
  check "$variant passes check-abi" "$kb" check-abi "k/build/$variant"
done
check "torch 2.10 and 2.14 build for the CPU" build k --torch 2.10,2.14 --backend cpu
# A header library as a dependency of a section.
"$kb" init c --name me/cut --backends cuda >/dev/null 2>&1
sed -i 's/^depends = \[\]/depends = ["cutlass_3_8"]\ncuda-capabilities = ["9.0"]/' c/build.toml
cat >>c/cut_cuda/relu.cu <<'CU'
#include <cutlass/array.h>
#include <cutlass/numeric_conversion.h>
#include <cute/tensor.hpp>
__global__ void halve(const cutlass::Array<float, 4>* x, cutlass::Array<cutlass::half_t, 4>* y) {
    static_assert(decltype(cute::size(cute::make_layout(cute::Shape<cute::_4, cute::_8>{})))::value == 32);
    y[threadIdx.x] = cutlass::NumericArrayConverter<cutlass::half_t, float, 4>{}(x[threadIdx.x]);
}
CU
check "a kernel with CUTLASS headers builds" build c --cuda 13.0
check "and passes check-abi" "$kb" check-abi c
# An installed toolkit: the one that was fetched, copied as an installer would lay it out.
nvcc=$(grep -l 'CUDA_VERSION 13000' "$KERNEL_BUILDER_STORE"/root/*/include/cuda.h | head -n 1)
cp -r "$(dirname "$(dirname "$nvcc")")" cuda-13.0; chmod -R u+w cuda-13.0
cp -r c installed; rm -rf installed/build installed/.kernel-builder
check "--cuda-root builds with an installed toolkit" build installed --cuda-root cuda-13.0
same_tree "and the same files give the same library" c/build/*/*.so installed/build/*/*.so
check_exit 0 "up to date|0 built" "again: nothing to do" build installed --cuda-root cuda-13.0
echo "// another patch release" >>cuda-13.0/include/cuda_runtime.h
check_exit 0 "host/cuda@13.0" "a changed header of the toolkit builds anew" build installed --cuda-root cuda-13.0 --explain --dry-run
check_exit 2 "is no CUDA toolkit: it has no 'include/cuda.h'" "a folder that is no toolkit" build installed --cuda-root "$repo/docs"
# ROCm: a CUDA source translated to HIP, device code for three devices, the library as for any other backend.
"$kb" init r --name me/hip-relu --backends cpu,rocm >/dev/null 2>&1
rocm=r/build/torch-stable-abi211-rocm57-x86_64-linux
check "ROCm 5.7 builds a kernel of CUDA sources" build r --rocm 5.7
check "and passes check-abi" "$kb" check-abi "$rocm"
check_exit 0 'code-object gfx90a, code-object gfx942, code-object gfx1100' "with code for each device" "$kb" check-abi "$rocm" --json
equal "metadata names the devices" '["gfx1100","gfx90a","gfx942"]' "$(python3 -c 'import json,sys
print(json.dumps(json.load(open(sys.argv[1]))["backend"]["archs"],separators=(",",":")))' "$rocm/metadata.json")"
check_exit 0 'libamdhip64\.so\.5' "it needs the runtime of ROCm 5" readelf -d "$rocm"/*.so
check_exit 0 'hipLaunchKernel@hip_4\.2' "with the versions of the real one" readelf -W --dyn-syms "$rocm"/*.so
check_exit 0 "gave the same bytes" "two builds of it are the same" build r --rocm 5.7 --check-reproducible
sed -i 's/^rocm-archs.*//; s/^backend = "rocm"/backend = "rocm"\nrocm-archs = ["gfx90a"]/' r/build.toml
check "one device" build r --rocm 5.7
sed -i 's/"gfx90a"/"gfx90a", "gfx942"/' "$rocm/metadata.json"
check_exit 1 'promises code-object gfx942' "a promise that is not kept" "$kb" check-abi "$rocm"
printf '\n__global__ void warp(float* x) { *x = __shfl_xor_sync(0xffffffffu, *x, 16); }\n' >>r/hip_relu_cuda/relu.cu
check_exit 1 "hip/hip_relu_cuda/relu\.cu.*__shfl_xor_sync" "what HIP has not is named by the compiler" build r --rocm 5.7
check_exit 0 "stable-abi-only" "ROCm 5.7 is for the stable ABI" "$kb" explain stable-abi-only
# aarch64 compiled on this machine, and its function run by qemu.
"$kb" init a --name me/arm-relu --backends cpu >/dev/null 2>&1
arm=a/build/torch-stable-abi211-cpu-aarch64-linux
check "aarch64 is built when it is asked for" build a --platform aarch64-linux
check "and passes check-abi" "$kb" check-abi "$arm"
check "or by the name of a variant" build a --variant torch-stable-abi211-cpu-aarch64-linux --dry-run
check_exit 2 "one run builds for one platform" "not two at once" build a --platform x86_64-linux,aarch64-linux
bash "$repo/tests/e2e/aarch64/run.sh" "$arm" "$KERNEL_BUILDER_STORE" "$scratch/qemu" >"$scratch/out" 2>&1
equal "its function runs under qemu" "relu 0 1.5 0 2 0 3" "$(tail -n 1 "$scratch/out")"
