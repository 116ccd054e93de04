// SPDX-License-Identifier: Apache-2.0
#include "generate/scaffold.hpp"

#include "base/text.hpp"
#include "generate/test_world.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>

namespace kb::generate {

using backend::BackendId;

namespace {

std::string said(const Diagnostics& diagnostics) {
    std::string text;
    for (const Diagnostic& d : diagnostics.items()) {
        text += to_text(d);
    }
    return text;
}

std::vector<FileImage> make(ScaffoldFramework framework, std::vector<BackendId> backends) {
    Diagnostics diagnostics;
    auto name = scaffold_name("org/My_Relu", "ignored", diagnostics);
    REQUIRE(name);
    auto files = scaffold({.name = std::move(*name),
                           .framework = framework,
                           .backends = std::move(backends),
                           .license = "MIT"},
                          diagnostics);
    REQUIRE(files);
    return std::move(*files);
}

std::string names(const std::vector<FileImage>& files) {
    std::string text;
    for (const FileImage& file : files) {
        text += file.path.text() + "\n";
    }
    return text;
}

const FileImage& file(const std::vector<FileImage>& files, std::string_view path) {
    const auto found =
        std::ranges::find(files, path, [](const FileImage& f) { return f.path.text(); });
    REQUIRE(found != files.end());
    return *found;
}

} // namespace

TEST_CASE("a name is judged before anything is written", "[generate][scaffold]") {
    const auto [option, directory, name, repo] =
        GENERATE(table<std::string, std::string, std::string, std::string>({
            {"org/relu", "x", "relu", "org/relu"},
            {"Org/Fast_Relu", "x", "fast-relu", "Org/Fast_Relu"},
            {"", "some/dir/my-kernel", "my-kernel", ""},
            {"", "some/dir/My_Kernel/", "my-kernel", ""},
        }));
    Diagnostics diagnostics;
    const auto result =
        scaffold_name(option.empty() ? std::nullopt : std::optional<std::string_view>{option},
                      directory,
                      diagnostics);
    REQUIRE(result);
    CHECK(result->name.text() == name);
    CHECK(result->repo_id.value_or("") == repo);
}

TEST_CASE("a bad name is refused with the rules", "[generate][scaffold]") {
    const auto [option, directory, message] =
        GENERATE(table<std::string, std::string, std::string>({
            {"relu", "x", "error: 'relu' is not of the form OWNER/REPO [bad-repo-id]"},
            {"a/b/c", "x", "error: 'a/b/c' is not of the form OWNER/REPO [bad-repo-id]"},
            {"/relu", "x", "error: '/relu' is not of the form OWNER/REPO [bad-repo-id]"},
            {"org/", "x", "error: 'org/' is not of the form OWNER/REPO [bad-repo-id]"},
            {"org/1relu", "x", "error: '1relu' is not a kernel name [bad-kernel-name]"},
            {"org/x", "x", "error: 'x' is not a kernel name [bad-kernel-name]"},
            {"org/relu-", "x", "error: 'relu-' is not a kernel name [bad-kernel-name]"},
            {"org/re lu", "x", "error: 're lu' is not a kernel name [bad-kernel-name]"},
            {"org/re\nlu", "x", "error: 're\\x0alu' is not a kernel name [bad-kernel-name]"},
            {"", "/", "error: '' is not a kernel name [bad-kernel-name]"},
        }));
    Diagnostics diagnostics;
    CHECK_FALSE(
        scaffold_name(option.empty() ? std::nullopt : std::optional<std::string_view>{option},
                      directory,
                      diagnostics));
    REQUIRE(diagnostics.items().size() == 1);
    CHECK(said(diagnostics).find(message) != std::string::npos);
    CHECK_FALSE(diagnostics.items()[0].notes.empty());
}

TEST_CASE("each chosen backend has its files and its section", "[generate][scaffold]") {
    const auto files = make(ScaffoldFramework::torch, {BackendId::cuda, BackendId::cpu});
    CHECK(names(files) == ".gitignore\n"
                          "CARD.md\n"
                          "README.md\n"
                          "benchmarks/benchmark.py\n"
                          "build.toml\n"
                          "my_relu_common/relu.h\n"
                          "my_relu_cpu/float16.h\n"
                          "my_relu_cpu/relu.cpp\n"
                          "my_relu_cuda/relu.cu\n"
                          "tests/conftest.py\n"
                          "tests/test_my_relu.py\n"
                          "torch-ext/my_relu/__init__.py\n"
                          "torch-ext/my_relu/layers.py\n"
                          "torch-ext/torch_binding.cpp\n");
    const config::Config config = test::config_of(file(files, "build.toml").content);
    CHECK(config.name.text() == "my-relu");
    CHECK(config.hub.repo_id->value == "org/My_Relu");
    CHECK(config.license.value == "MIT");
    CHECK(config::distinct_backends(config) ==
          std::vector<BackendId>{BackendId::cpu, BackendId::cuda});
    CHECK(config::stable_abi_for(config, BackendId::cuda) == Version{{2, 11}});
}

TEST_CASE("a scaffold is in order as a build sees it", "[generate][scaffold]") {
    const auto framework = GENERATE(
        ScaffoldFramework::torch, ScaffoldFramework::torch_noarch, ScaffoldFramework::tvm_ffi);
    // Every subset of the backends.
    const auto possible = scaffold_backends(framework);
    for (unsigned bits = 1; bits < (1U << possible.size()); ++bits) {
        std::vector<BackendId> backends;
        for (std::size_t i = 0; i < possible.size(); ++i) {
            if ((bits >> i & 1U) != 0) {
                backends.push_back(possible[i]);
            }
        }
        const auto files = make(framework, backends);
        std::vector<RelPath> paths;
        for (const FileImage& f : files) {
            paths.push_back(f.path);
            const bool has_tags = f.content.find("{{") != std::string::npos;
            CHECK(has_tags == (f.path.text() == "CARD.md"));
        }
        Diagnostics diagnostics;
        config::validate(test::config_of(file(files, "build.toml").content), paths, diagnostics);
        CHECK(said(diagnostics).empty());
    }
}

TEST_CASE("a backend that cannot be built is refused", "[generate][scaffold]") {
    Diagnostics diagnostics;
    auto name = scaffold_name("org/relu", "", diagnostics);
    REQUIRE(name);
    CHECK_FALSE(scaffold({.name = *name,
                          .framework = ScaffoldFramework::torch,
                          .backends = {BackendId::cpu, BackendId::cann, BackendId::tpu}},
                         diagnostics));
    CHECK(said(diagnostics) ==
          "error: a torch kernel for 'cann' cannot be built [backend-without-scaffold]\n"
          "note: backends of a torch kernel: 'cpu', 'cuda', 'metal', 'rocm' and 'xpu'\n"
          "error: a torch kernel for 'tpu' cannot be built [backend-without-scaffold]\n"
          "note: backends of a torch kernel: 'cpu', 'cuda', 'metal', 'rocm' and 'xpu'\n");
}

TEST_CASE("scaffolds are as they were agreed on", "[generate][scaffold][golden]") {
    const auto [framework, backends] = GENERATE(table<ScaffoldFramework, std::vector<BackendId>>(
        {{ScaffoldFramework::torch, {BackendId::cpu, BackendId::cuda}},
         {ScaffoldFramework::torch_noarch, {BackendId::cuda, BackendId::rocm}},
         {ScaffoldFramework::tvm_ffi, {BackendId::cpu, BackendId::cuda}}}));
    for (const FileImage& f : make(framework, backends)) {
        kb::test::golden("generate/init-" + std::string{to_text(framework)} + "/" + f.path.text(),
                         f.content);
    }
}

} // namespace kb::generate
