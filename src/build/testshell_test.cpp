// SPDX-License-Identifier: Apache-2.0
#include "build/testshell.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>

using namespace kb;
using namespace kb::build;
using binfmt::Binding;
using binfmt::Symbol;

namespace {

TorchLibrary library(std::string name,
                     std::vector<std::string_view> needed,
                     std::vector<Symbol> imports,
                     std::vector<Symbol> exports = {}) {
    TorchLibrary out{.name = std::move(name)};
    out.facts.architecture = "x86_64";
    out.facts.needed = std::move(needed);
    out.facts.imports = std::move(imports);
    out.facts.exports = std::move(exports);
    return out;
}

std::vector<TorchLibrary> torch() {
    std::vector<TorchLibrary> libraries;
    libraries.push_back(library(
        "libtorch_cuda.so",
        {"libc10.so", "libcudart.so.13", "libcufft.so.12", "libm.so.6"},
        {{.name = "cudaMalloc", .version = "libcudart.so.13", .library = "libcudart.so.13"},
         {.name = "cudaGetErrorString", .version = "libcudart.so.13", .library = "libcudart.so.13"},
         {.name = "sin", .version = "GLIBC_2.2.5", .library = "libm.so.6"},
         {.name = "cufftExec"},
         {.name = "_Znwm"},
         {.name = "c10_function"},
         {.name = "PyObject_Call"},
         {.name = "__gmon_start__", .binding = Binding::weak}}));
    libraries.push_back(
        library("libc10.so", {"libm.so.6"}, {{.name = "nowhere"}}, {{.name = "c10_function"}}));
    return libraries;
}

} // namespace

TEST_CASE("stubs hold what torch takes from each missing library", "[build][testshell]") {
    const auto libraries = torch();
    CHECK(foreign_libraries(libraries) ==
          std::set<std::string>{"libcudart.so.13", "libcufft.so.12", "libm.so.6"});
    const auto stubs =
        plan_stubs({.libraries = libraries, .real = {"libm.so.6"}, .defined = {"_Znwm", "sin"}});
    REQUIRE(stubs.size() == 2);
    CHECK(stubs[0].soname == "libcudart.so.13");
    CHECK(stubs[0].symbols ==
          std::vector<StubSymbol>{{.name = "cudaGetErrorString",
                                   .version = "libcudart.so.13",
                                   .answer = StubAnswer::text},
                                  {.name = "cudaMalloc", .version = "libcudart.so.13"},
                                  {.name = "cufftExec"}});
    CHECK(stubs[1].soname == "libcufft.so.12");
    CHECK(stubs[1].symbols == std::vector<StubSymbol>{{.name = "cufftExec"}});
}

TEST_CASE("a machine that has everything needs no stubs", "[build][testshell]") {
    const auto libraries = torch();
    CHECK(plan_stubs(
              {.libraries = libraries, .real = {"libm.so.6", "libcudart.so.13", "libcufft.so.12"}})
              .empty());
}

TEST_CASE("stubs are all or only the missing, by whether there is a driver", "[build][testshell]") {
    const std::set<std::string> foreign = {
        "libc.so.6", "libcublas.so.13", "libcuda.so.1", "libcudart.so.13", "libstdc++.so.6"};
    const auto stubbed = [&foreign](const std::set<std::string>& found) {
        return choose_stubs(foreign, found).stubbed;
    };
    using Names = std::vector<std::string>;
    CHECK(stubbed({}) == Names{"libcublas.so.13", "libcuda.so.1", "libcudart.so.13"});
    // A toolkit without a driver: its real libraries would crash over stub ones.
    CHECK(stubbed({"libcudart.so.13"}) ==
          Names{"libcublas.so.13", "libcuda.so.1", "libcudart.so.13"});
    CHECK(stubbed({"libcudart.so.13", "libcublas.so.13"}).empty());
    CHECK(stubbed({"libcuda.so.1", "libcudart.so.13"}) == Names{"libcublas.so.13"});
    CHECK(choose_stubs(foreign, {}).first);
    CHECK_FALSE(choose_stubs(foreign, {"libcuda.so.1"}).first);
    CHECK(choose_stubs(foreign, {}).real == std::set<std::string>{"libc.so.6", "libstdc++.so.6"});
}

namespace {

/// A torch package whose libraries are stubs themselves, and a Python that names it.
class FakePython final : public sys::ProcessRunner {
public:
    explicit FakePython(std::string torch) : torch_{std::move(torch)} {}

    Result<sys::ProcessResult> run(const sys::ProcessSpec& spec) override {
        asked = spec.argv.front();
        program = spec.argv.back();
        environment = spec.environment.value_or(sys::EnvironmentMap{});
        return sys::ProcessResult{.out = "{\"python\": \"/v/bin/python\", \"torch\": \"" + torch_ +
                                         "\"}\n"};
    }

    std::string asked{};
    std::string program{};
    sys::EnvironmentMap environment{};

private:
    std::string torch_;
};

} // namespace

TEST_CASE("no torch is an error with the command that installs it", "[build][testshell]") {
    FakePython python{""};
    const kb::test::TempDir dir;
    const auto shell =
        prepare_test_shell({.cache = dir.path()}, {}, sys::real_file_system(), python);
    REQUIRE_FALSE(shell.has_value());
    CHECK(shell.error().code == ErrorCode::not_found);
    CHECK(shell.error().to_text().contains("/v/bin/python -m pip install torch"));
}

TEST_CASE("a shell changes the two variables and keeps what they held", "[build][testshell]") {
    const kb::test::TempDir dir;
    const sys::Path torch = dir / "site/torch";
    kb::test::write_text(torch / "lib/libtorch.so", write_stub_library({.soname = "libtorch.so"}));
    FakePython python{torch.string()};
    const auto shell =
        prepare_test_shell({.as = TestAs::cpu, .python = "py", .cache = dir / "cache"},
                           {{"PYTHONPATH", "/mine:"}},
                           sys::real_file_system(),
                           python);
    INFO((shell ? std::string{} : shell.error().to_text()));
    REQUIRE(shell.has_value());
    CHECK(python.asked == "py");
    CHECK(shell->stubs.empty());
    CHECK_FALSE(shell->changes.contains("LD_LIBRARY_PATH"));
    const std::string& path = shell->changes.at("PYTHONPATH");
    CHECK(path.ends_with(":/mine:"));
    // The user's places count when it looks for torch, the current directory does not.
    CHECK(python.environment.at("PYTHONPATH") == "/mine");
    CHECK(python.program.starts_with("import sys\nsys.path[:] = "));
    CHECK(kb::test::read_text(sys::Path{path.substr(0, path.find(':'))} / "sitecustomize.py") ==
          cpu_start_file());
}

TEST_CASE("a folder without torch's libraries is said to be none", "[build][testshell]") {
    const kb::test::TempDir dir;
    kb::test::write_text(dir / "torch/lib/readme", "x");
    FakePython python{""};
    const auto shell = prepare_test_shell(
        {.torch = dir / "torch", .cache = dir / "cache"}, {}, sys::real_file_system(), python);
    REQUIRE_FALSE(shell.has_value());
    CHECK(shell.error().to_text().contains("holds no libraries of torch"));
}
