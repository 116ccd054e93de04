// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "document/toml.hpp"
#include "plan/source_snapshot.hpp"
#include "support/catch.hpp"

#include <string_view>

namespace kb::generate::test {

/// Reads a build.toml that must be right.
inline config::Config config_of(std::string_view toml) {
    Diagnostics diagnostics;
    const auto tree = document::parse_toml(toml, {"build.toml"}, diagnostics);
    REQUIRE(tree);
    auto config = config::read(*tree, diagnostics);
    REQUIRE(config);
    REQUIRE(diagnostics.empty());
    return std::move(*config);
}

/// A kernel that uses everything that the CMake project has a place for.
inline constexpr std::string_view kTorchToml = R"toml(
[general]
name = "fast-relu"
version = 3
edition = 5
license = "Apache-2.0"
upstream = "https://example.org/relu.git"
backends = ["cuda", "cpu", "rocm", "xpu"]
python-depends = ["einops", "tvm-ffi"]

[general.cuda]
minver = "12.6"
maxver = "13.0"
python-depends = ["nvidia-cutlass-dsl"]

[general.hub]
repo-id = "org/fast-relu"

[torch]
minver = "2.11"
maxver = "2.13"
stable-abi = { cuda = "2.11" }
pyext = ["py", "json"]
include = ["include"]
cxx-flags = ["-DBINDING=1"]
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]

[kernel.fast]
backend = "cuda"
depends = ["torch", "cutlass_3_6"]
cuda-capabilities = ["8.0", "9.0a", "10.3a"]
cuda-flags = ["-DTEXT=\"a b;c\"", "-static-global-template-stub=false"]
cuda-minver = "12.6"
cxx-flags = ["-fno-exceptions"]
include = ["cuda", "common"]
src = ["cuda/relu.cu", "cuda/helper.cpp", "cuda/relu.cuh"]

[kernel."odd id"]
backend = "cuda"
depends = []
src = ["cuda/other.cu"]

[kernel.slow]
backend = "cpu"
depends = []
cxx-flags = ["-ffast-math"]
src = ["cpu/relu.cpp"]

[kernel.amd]
backend = "rocm"
depends = []
rocm-archs = ["gfx942", "gfx940"]
hip-flags = ["-ggdb"]
src = ["cuda/other.cu"]

[kernel.intel]
backend = "xpu"
depends = []
sycl-flags = ["-fsycl-esimd-force-stateless-mem"]
src = ["xpu/relu.cpp"]
)toml";

/// Sources of it and of other kernels of these tests: only the bindings include a framework.
inline plan::SourceSnapshot relu_snapshot() {
    plan::SourceSnapshot snapshot;
    for (const std::string_view path : {"cuda/relu.cu",
                                        "cuda/relu.cuh",
                                        "cuda/helper.cpp",
                                        "cuda/other.cu",
                                        "cuda/b.cu",
                                        "cpu/a.cpp",
                                        "cpu/relu.cpp",
                                        "xpu/relu.cpp",
                                        "torch-ext/torch_binding.h"}) {
        snapshot.files.push_back(plan::scan_source(RelPath::literal(path), "\n"));
    }
    snapshot.files.push_back(
        plan::scan_source(RelPath::literal("torch-ext/torch_binding.cpp"),
                          "#include <torch/library.h>\nTORCH_EXTENSION_NAME\n"));
    snapshot.files.push_back(plan::scan_source(RelPath::literal("tvm-ffi-ext/binding.cpp"),
                                               "#include <tvm/ffi/function.h>\n"));
    return snapshot;
}

} // namespace kb::generate::test
