// SPDX-License-Identifier: Apache-2.0
#include "digest/digest.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "sys/process.hpp"
#include "toolchain/embedded_data.hpp"

#include <string>
#include <vector>

using namespace kb;
using namespace kb::toolchain;

namespace {

/// What the translator makes of one file.
std::string translated(const std::string& text) {
    const kb::test::TempDir dir;
    const auto script = embedded_data("cuda-to-hip-1");
    REQUIRE(script);
    kb::test::write_text(dir / "script", *script);
    kb::test::write_text(dir / "src/a b/k.cu", text);
    const auto result = sys::real_process_runner().run({.argv = {"/bin/sh",
                                                                 (dir / "script").string(),
                                                                 (dir / "src").string(),
                                                                 (dir / "out").string(),
                                                                 "a b/k.cu"}});
    REQUIRE(result);
    INFO(result->err);
    REQUIRE(result->status.ok());
    return kb::test::read_text(dir / "out/a b/k.cu");
}

} // namespace

TEST_CASE("CUDA's names become HIP's, and lines stay lines", "[toolchain][translator]") {
    const auto [cuda, hip] = GENERATE(table<std::string, std::string>(
        {{"#include <cuda_runtime.h>", "#include <hip/hip_runtime.h>"},
         {"# include \"cuda_fp16.h\" // half", "# include <hip/hip_fp16.h> // half"},
         {"#include <cuda_bf16.h>", "#include <hip/hip_bf16.h>"},
         {"#include \"cudaTools.h\"", "#include \"cudaTools.h\""},
         {"#include \"../k_cuda/relu.cuh\"", "#include \"../k_cuda/relu.cuh\""},
         {"void relu_cuda(cudaStream_t s);", "void relu_cuda(hipStream_t s);"},
         {"if (cudaGetLastError() != cudaSuccess) {}", "if (hipGetLastError() != hipSuccess) {}"},
         {"__nv_bfloat162 a; nv_bfloat16 b;", "__hip_bfloat162 a; __hip_bfloat16 b;"},
         {"x = __float2bfloat16_rn(y);", "x = __float2bfloat16(y);"},
         {"#if defined(__CUDACC__)", "#if defined(__HIPCC__)"},
         {"cudaDeviceProp p; cudaGetDeviceProperties(&p, 0);",
          "hipDeviceProp_t p; hipGetDeviceProperties(&p, 0);"},
         {"f(cudaDevAttrMultiProcessorCount, cudaDevAttrWarpSize);",
          "f(hipDeviceAttributeMultiprocessorCount, hipDeviceAttributeWarpSize);"},
         {"cudaMemcpyToSymbolAsync(table, p, n);",
          "hipMemcpyToSymbolAsync(HIP_SYMBOL(table), p, n);"},
         {"cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, n);",
          "hipFuncSetAttribute(reinterpret_cast<const void*>(k), "
          "hipFuncAttributeMaxDynamicSharedMemorySize, n);"},
         {"cudaHostAlloc(&p, n, cudaHostAllocMapped); cudaFreeHost(p);",
          "hipHostMalloc(&p, n, hipHostMallocMapped); hipHostFree(p);"},
         {"float m = -CUDART_INF_F;", "float m = -HIP_INF_F;"},
         {"x = __shfl_xor_sync(0xffffffffu, x, 1);", "x = __shfl_xor_sync(0xffffffffu, x, 1);"}}));
    CHECK(translated("one\n" + cuda + "\nthree\n") == "one\n" + hip + "\nthree\n");
}

TEST_CASE("another translation has another name", "[toolchain][translator]") {
    // Objects are kept by the name of what made them: after a change the number in the name rises,
    // here, in plan/command.cpp and in compose.cpp.
    CHECK(digest::sha256(embedded_data("cuda-to-hip-1").value_or("")).hex().substr(0, 16) ==
          "63b269c88814981e");
}
