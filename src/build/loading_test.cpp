// SPDX-License-Identifier: Apache-2.0
#include "build/loading.hpp"

#include "support/check_inputs.hpp"

namespace kb::build {
namespace {

HostFacts host() {
    return {.python = Version{{3, 11, 7}},
            .torch = Version{{2, 11, 0}},
            .torch_cuda = Version{{12, 8}},
            .nvidia_driver = true,
            .devices = {"9.0"}};
}

std::vector<HostLibrary> libraries() {
    return {{.name = "libc.so.6",
             .path = "/lib/libc.so.6",
             .versions = {"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.36"},
             .exports = {"memcpy"}},
            {.name = "libtorch.so", .path = "/t/libtorch.so", .exports = {"aoti_torch_zeros"}}};
}

struct Asked {
    test::ElfSpec spec{};
    std::string variant = "torch-stable-abi211-cu128-x86_64-linux";
    std::vector<std::string> archs{"9.0a"};
    std::string path = "_k.abi3.so";
};

/// "cause: text" of each obstacle.
std::string ask(const Asked& asked, const HostFacts& facts = host()) {
    const check::Library library = test::library_of(asked.spec, asked.path);
    LoadQuestion question{.library = &library, .archs = asked.archs};
    if (!asked.variant.empty()) {
        question.variant = test::variant_of(asked.variant);
    }
    std::string out;
    for (const Obstacle& obstacle : find_obstacles(question, facts, libraries())) {
        out += obstacle.cause + ": " + obstacle.text + "\n";
    }
    return out;
}

TEST_CASE("what fits this machine should load", "[build][loading]") {
    CHECK(ask({}).empty());
    CHECK(ask({.spec = {.needed = {"libc.so.6", "libtorch.so", "ld-linux-x86-64.so.2"},
                        .symbols = {{.name = "aoti_torch_zeros"},
                                    {.name = "PyModule_Create2"},
                                    {.name = "maybe", .bind = 2},
                                    {.name = "f", .version = "GLIBC_2.35", .library = "libc.so.6"},
                                    {.name = "g",
                                     .version = "GLIBC_ABI_DT_RELR",
                                     .library = "libc.so.6"}}}})
              .empty());
}

TEST_CASE("a file for another machine needs no other reason", "[build][loading]") {
    CHECK(ask({.spec = {.machine = 183, .needed = {"libnone.so"}}}) ==
          "platform: it is built for aarch64, this machine is x86_64\n");
}

TEST_CASE("Python", "[build][loading]") {
    CHECK(ask({.path = "k.cpython-312-x86_64-linux-gnu.so"}) ==
          "python: it is built for CPython 3.12 alone, this is 3.11\n");
    CHECK(ask({.spec = {.symbols = {{.name = "PyType_GetModuleName"}}}}) ==
          "python: it uses 'PyType_GetModuleName', which came with Python 3.13; this is 3.11\n");
    CHECK(ask({.variant = ""}, {.python_problem = "'py' cannot be started"}) ==
          "python: 'py' cannot be started\n");
}

TEST_CASE("torch and CUDA", "[build][loading]") {
    CHECK(ask({.variant = "torch-stable-abi212-cu128-x86_64-linux"}) ==
          "torch: it needs torch 2.12 or newer, this is 2.11.0\n");
    CHECK(ask({.variant = "torch210-cxx11-cu128-x86_64-linux"}) ==
          "torch: it is built for torch 2.10 alone, this is 2.11.0\n");
    CHECK(ask({.variant = "torch-stable-abi211-cu130-x86_64-linux"}) ==
          "cuda: it is built for CUDA 13.0, this torch for 12.8\n");
    HostFacts cpu = host();
    cpu.torch_cuda = std::nullopt;
    cpu.nvidia_driver = false;
    cpu.devices = {};
    CHECK(ask({}, cpu) ==
          "cuda: it is built for CUDA, this torch is built without\n"
          "driver: this machine has no NVIDIA driver (/dev/nvidiactl is missing)\n");
    CHECK(ask({.variant = "torch-stable-abi211-cpu-x86_64-linux"}, cpu).empty());
    cpu.torch = std::nullopt;
    CHECK(ask({.variant = "torch-stable-abi211-cpu-x86_64-linux"}, cpu) ==
          "torch: this Python has no torch\n");
}

TEST_CASE("device code runs on its major version, PTX on newer ones", "[build][loading]") {
    const auto runs = [](const char* code, const char* device) {
        HostFacts facts = host();
        facts.devices = {device};
        return ask({.archs = {code}}, facts).empty();
    };
    CHECK(runs("8.0", "8.6"));
    CHECK(runs("9.0a", "9.0"));
    CHECK(runs("8.0+PTX", "12.0"));
    CHECK(runs("10.0f", "10.3"));
    CHECK_FALSE(runs("8.6", "8.0"));
    CHECK_FALSE(runs("8.0", "9.0"));
    CHECK_FALSE(runs("10.0a", "10.3"));
    CHECK_FALSE(runs("9.0a+PTX", "10.0"));
    CHECK(ask({.archs = {"8.0", "8.6"}}) ==
          "arch: it has device code for 8.0, 8.6, none of which runs on this device (9.0)\n");
}

TEST_CASE("libraries, their versions and symbols", "[build][loading]") {
    CHECK(ask({.spec = {.needed = {"libgone.so.1"}, .symbols = {{.name = "gone"}}}}) ==
          "library: it needs 'libgone.so.1', which is not on this machine\n");
    CHECK(ask({.spec = {.symbols =
                            {{.name = "f", .version = "GLIBC_2.38", .library = "libc.so.6"},
                             {.name = "g", .version = "GLIBC_2.40", .library = "libc.so.6"},
                             {.name = "h", .version = "GLIBC_2.34", .library = "libc.so.6"}}}}) ==
          "version: it needs GLIBC_2.40 of 'libc.so.6', '/lib/libc.so.6' has up to GLIBC_2.36\n");
    CHECK(ask({.spec = {.symbols = {{.name = "_ZN3c106ScalarC1Ed"}, {.name = "b"}}}}) ==
          "symbol: no library here (torch 2.11.0) has 'c10::Scalar::Scalar(double)' and 'b'\n");
    CHECK(ask({.spec = {.type = 1}}).starts_with("library: the ELF file is no shared object"));
}

/// Answers as a Python does, and keeps how it was asked.
class FakePython final : public sys::ProcessRunner {
public:
    Result<sys::ProcessResult> run(const sys::ProcessSpec& spec) override {
        asked = spec;
        return sys::ProcessResult{.out = R"({"python": "3.14.0", "torch": "2.9.0a0+git123",
"cuda": null, "directories": ["/t/lib"]})"};
    }

    sys::ProcessSpec asked{};
};

TEST_CASE("Python is asked without the current directory", "[build][loading]") {
    FakePython python;
    const HostFacts facts = read_host_facts(sys::real_file_system(),
                                            python,
                                            {{"PYTHONPATH", ":/mine"}, {"LD_LIBRARY_PATH", "/l"}},
                                            "py");
    CHECK(facts.python == Version{{3, 14, 0}});
    CHECK(facts.torch == Version{{2, 9, 0}});
    CHECK_FALSE(facts.torch_cuda);
    CHECK(facts.library_directories == std::vector<std::string>{"/t/lib", "/l"});
    REQUIRE(python.asked.environment);
    CHECK(python.asked.environment->at("PYTHONPATH") == "/mine");
    CHECK(python.asked.environment->at("LD_LIBRARY_PATH") == "/l");
    REQUIRE(python.asked.argv.size() == 4);
    CHECK(python.asked.argv[3].starts_with("import sys\nsys.path[:] = "));
}

} // namespace
} // namespace kb::build
