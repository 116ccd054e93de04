// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"
#include "document/json.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>

namespace kb::cli {

namespace {

constexpr std::string_view kToml = R"([general]
name = "norm"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch]
src = ["torch-ext/torch_binding.cpp"]

[kernel.norm_cpu]
backend = "cpu"
depends = []
src = ["norm_cpu/norm.cpp"]

[kernel.norm_cuda]
backend = "cuda"
depends = []
cuda-capabilities = ["7.0", "9.0a"]
src = ["norm_cuda/norm.cu"]
)";

struct World {
    test::TempDir dir{};
    sys::EnvironmentMap environment{};
    RecordingTerminal terminal{};

    World() {
        test::write_text(dir / "build.toml", kToml);
        test::write_text(dir / "torch-ext/torch_binding.cpp",
                         "#include <torch/library.h>\nTORCH_EXTENSION_NAME\n");
        test::write_text(dir / "torch-ext/norm/__init__.py", "");
        test::write_text(dir / "norm_cpu/norm.cpp", "int x;\n");
        test::write_text(dir / "norm_cuda/norm.cu", "int x;\n");
    }

    ExitCode run(const std::vector<std::string>& arguments) {
        terminal = {};
        return cli::run(arguments,
                        {.fs = sys::real_file_system(),
                         .processes = sys::real_process_runner(),
                         .clock = sys::real_clock(),
                         .environment = environment,
                         .terminal = terminal,
                         .current_directory = dir.path(),
                         .self = {}});
    }
};

} // namespace

TEST_CASE("list-variants prints a variant a line, the name first", "[cli][list-variants]") {
    World world;
    REQUIRE(world.run({"list-variants"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == "torch211-cxx11-cpu-x86_64-linux\n"
                                     "torch213-cxx11-cpu-x86_64-linux\n"
                                     "torch215-cxx11-cpu-x86_64-linux\n"
                                     "torch211-cxx11-cu130-x86_64-linux  9.0a\n"
                                     "torch213-cxx11-cu130-x86_64-linux  9.0a\n"
                                     "torch215-cxx11-cu130-x86_64-linux  9.0a\n");
    REQUIRE(
        world.run({"list-variants", "--format", "names", "--torch", ">=2.13", "--cuda", "13"}) ==
        ExitCode::ok);
    CHECK(world.terminal.out_text == "torch213-cxx11-cu130-x86_64-linux\n"
                                     "torch215-cxx11-cu130-x86_64-linux\n");
    REQUIRE(world.run({"list-variants", "--latest", "--backend", "cpu"}) == ExitCode::ok);
    CHECK(world.terminal.out_text == "torch215-cxx11-cpu-x86_64-linux\n");
}

TEST_CASE("list-variants --explain names what is left out and why", "[cli][list-variants]") {
    World world;
    REQUIRE(world.run({"list-variants", "--explain"}) == ExitCode::ok);
    const std::string& text = world.terminal.out_text;
    CHECK(text.find("left out:") != std::string::npos);
    CHECK(text.find("7.0             CUDA 13.0 cannot compile it") != std::string::npos);
    CHECK(text.find("no-toolkit      CUDA 12.6: no nvcc of this version can be fetched") !=
          std::string::npos);
}

TEST_CASE("list-variants --format github prints jobs on one line", "[cli][list-variants]") {
    World world;
    REQUIRE(world.run({"list-variants", "--format", "github", "--latest"}) == ExitCode::ok);
    const std::string& text = world.terminal.out_text;
    CHECK(std::ranges::count(text, '\n') == 1);
    const auto root = document::parse_json(text, Origin{"stdout"});
    REQUIRE(root.has_value());
    const document::Node* include = root->find("include");
    REQUIRE(include != nullptr);
    REQUIRE(include->as_array().size() == 2);
    CHECK(include->as_array()[1].text_or("command") ==
          "kernel-builder build --variant torch215-cxx11-cu130-x86_64-linux");
}

TEST_CASE("list-variants --json tells what is shared and needed", "[cli][list-variants]") {
    World world;
    REQUIRE(world.run({"list-variants", "--json"}) == ExitCode::ok);
    const auto root = document::parse_json(world.terminal.out_text, Origin{"stdout"});
    REQUIRE(root.has_value());
    CHECK(root->text_or("schema") == "kernel-builder/variants/1");
    CHECK(root->find("counts")->find("units")->as_unsigned() == 8);
    CHECK(root->find("counts")->find("units-without-sharing")->as_unsigned() == 12);
    const document::Node& last = root->find("variants")->as_array().back();
    CHECK(last.find("archs")->as_array().front().as_string() == "9.0a");
    CHECK(last.find("requirements")->as_array().size() == 9);
}

TEST_CASE("list-variants refuses flags that mean nothing", "[cli][list-variants]") {
    World world;
    CHECK(world.run({"list-variants", "--torch", "new"}) == ExitCode::usage);
    CHECK(world.run({"list-variants", "--format", "yaml"}) == ExitCode::usage);
    CHECK(world.run({"list-variants", "--torch", "1.0"}) == ExitCode::ok);
    CHECK(world.terminal.out_text.empty());
    CHECK(world.terminal.err_text.find("no variant matches") != std::string::npos);
}

TEST_CASE("explain answers for variants, sources, architectures and rules", "[cli][explain]") {
    World world;
    const auto ask = [&](const std::string& what) {
        CHECK(world.run({"explain", what}) == ExitCode::ok);
        return world.terminal.out_text;
    };
    CHECK(ask("torch215-cxx11-cu130-x86_64-linux").find("without 7.0: CUDA 13.0 cannot") !=
          std::string::npos);
    CHECK(ask("torch213-cxx11-cu126-x86_64-linux").find("left out by 'no-toolkit'") !=
          std::string::npos);
    CHECK(ask("torch-stable-abi211-cpu-x86_64-linux").find("no row of the support matrix") !=
          std::string::npos);
    const std::string source = ask("norm_cuda/norm.cu");
    CHECK(source.find("all torch versions share the object") != std::string::npos);
    CHECK(source.find("for torch211-cxx11-cu130-x86_64-linux") != std::string::npos);
    CHECK(ask("10.3a").find("10.3a on CUDA 13.0: CUDA 13.0 builds for no device") !=
          std::string::npos);
    CHECK(ask("no-host").starts_with("no-host: the row gives no variant, because"));
    CHECK(world.run({"explain", "norm_cuda/nrom.cu"}) == ExitCode::usage);
    CHECK(world.terminal.err_text.find("did you mean 'norm_cuda/norm.cu'?") != std::string::npos);
}

} // namespace kb::cli
