// SPDX-License-Identifier: Apache-2.0
#include "generate/package_files.hpp"

#include "generate/test_world.hpp"
#include "support/catch.hpp"

namespace kb::generate {

using backend::BackendId;
using backend::FrameworkId;

TEST_CASE("_ops.py exports what the contract names", "[generate][package]") {
    const std::string torch = ops_module(FrameworkId::torch, "_relu_cpu_abc", Maturity::released);
    CHECK(torch.find("from . import _relu_cpu_abc\n") != std::string::npos);
    CHECK(torch.find("ops = torch.ops._relu_cpu_abc\n") != std::string::npos);
    CHECK(torch.find("f\"_relu_cpu_abc::{op_name}\"") != std::string::npos);
    CHECK(torch == ops_module(FrameworkId::torch_stable_abi, "_relu_cpu_abc", Maturity::released));

    const std::string tvm = ops_module(FrameworkId::tvm_ffi, "_relu_cuda_abc", Maturity::released);
    for (const std::string_view name : {"ops = ",
                                        "has_torch = ",
                                        "has_jax = ",
                                        "def torch_add_op_namespace_prefix(",
                                        "def jax_add_ffi_target_name_prefix(",
                                        "def jax_register_ffi_target(",
                                        "def jax_ffi_call("}) {
        CHECK(tvm.find(name) != std::string::npos);
    }
    CHECK(tvm.find("f\"_relu_cuda_abc::{op_name}\"") != std::string::npos);
    CHECK(tvm.find("f\"_relu_cuda_abc.{target_name}\"") != std::string::npos);

    const std::string noarch = noarch_ops_module("relu", "abc", Maturity::released);
    CHECK(noarch.find("\"_relu_\" + _backend() + \"_abc\"") != std::string::npos);
}

TEST_CASE("an experimental kernel asks for the user's consent", "[generate][package]") {
    const std::string text =
        ops_module(FrameworkId::torch, "_relu_cpu_abc", Maturity::experimental);
    CHECK(text.starts_with("import os\n"));
    CHECK(text.find("KERNELS_EXPERIMENTAL") < text.find("import torch"));
}

TEST_CASE("the registration header has the macros of the format", "[generate][package]") {
    const std::string text = registration_header();
    for (const std::string_view macro : {"TORCH_LIBRARY_EXPAND(",
                                         "TORCH_LIBRARY_IMPL_EXPAND(",
                                         "STABLE_TORCH_LIBRARY_EXPAND(",
                                         "STABLE_TORCH_LIBRARY_IMPL_EXPAND(",
                                         "REGISTER_EXTENSION("}) {
        CHECK(text.find(std::string{"#define "} + std::string{macro}) != std::string::npos);
    }
}

TEST_CASE("metadata is what build.toml says for the backend", "[generate][package]") {
    const config::Config config = test::config_of(test::kTorchToml);
    package::Metadata metadata = make_metadata({.config = config,
                                                .backend = BackendId::cuda,
                                                .unique_id = "abc1234",
                                                .archs = std::vector<std::string>{"9.0a"},
                                                .maturity = Maturity::experimental});
    CHECK(metadata.name == "fast-relu");
    CHECK(metadata.id == "_fast_relu_cuda_abc1234");
    CHECK(metadata.version == 3);
    CHECK(metadata.upstream == "https://example.org/relu.git");
    CHECK(metadata.python_depends ==
          std::vector<std::string>{"einops", "tvm-ffi", "nvidia-cutlass-dsl"});
    CHECK(metadata.backend == "cuda");
    CHECK(metadata.archs == std::vector<std::string>{"9.0a"});
    CHECK(metadata.experimental);
    metadata = make_metadata({.config = config, .backend = BackendId::cpu, .unique_id = "abc1234"});
    CHECK(metadata.python_depends == std::vector<std::string>{"einops", "tvm-ffi"});
    CHECK(metadata.archs == std::nullopt);
    CHECK_FALSE(metadata.experimental);
}

TEST_CASE("noarch kernels state the architectures they are meant for", "[generate][package]") {
    const config::Config config =
        test::config_of("[general]\nname = \"relu\"\nversion = 1\n"
                        "edition = 5\nlicense = \"MIT\"\n"
                        "backends = [\"cuda\", \"rocm\"]\n"
                        "[torch-noarch]\ncuda_capabilities = [\"9.0\"]\n");
    CHECK(make_metadata({.config = config, .backend = BackendId::cuda, .unique_id = "a"}).archs ==
          std::vector<std::string>{"9.0"});
    CHECK(make_metadata({.config = config, .backend = BackendId::rocm, .unique_id = "a"}).archs ==
          std::nullopt);
}

} // namespace kb::generate
