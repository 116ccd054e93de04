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
