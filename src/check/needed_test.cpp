// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using test::input_of;
using test::run_one;

std::string look(const std::string& library, std::string_view variant) {
    Promise promise{.manylinux = "manylinux_2_28"};
    if (!variant.empty()) {
        promise.variant = test::variant_of(variant);
    }
    return run_one(input_of({.needed = {library}}, std::move(promise)), needed_check());
}

constexpr std::string_view kCpu = "torch-stable-abi211-cpu-x86_64-linux";
constexpr std::string_view kCuda = "torch-stable-abi211-cu130-x86_64-linux";
constexpr std::string_view kRocm = "torch212-cxx11-rocm71-x86_64-linux";
constexpr std::string_view kTvm = "tvm-ffi01-cpu-x86_64-linux";

TEST_CASE("libraries that every such machine has pass", "[check][needed]") {
    const auto [library, variant] =
        GENERATE(table<const char*, std::string_view>({{"libc.so.6", kCpu},
                                                       {"libstdc++.so.6", kCpu},
                                                       {"ld-linux-x86-64.so.2", kCpu},
                                                       {"libtorch.so", kCpu},
                                                       {"libtorch_cpu.so", kCpu},
                                                       {"libc10.so", kCpu},
                                                       {"libtorch_cuda.so", kCuda},
                                                       {"libc10_cuda.so", kCuda},
                                                       {"libcudart.so.13", kCuda},
                                                       {"libtorch_hip.so", kRocm},
                                                       {"libamdhip64.so.7", kRocm},
                                                       {"libtvm_ffi.so", kTvm},
                                                       {"libcudart.so.12", ""},
                                                       {"libtorch_cuda.so", ""}}));
    CAPTURE(library, variant);
    CHECK(look(library, variant) == "passed\n");
}

TEST_CASE("other libraries are told with whose they are", "[check][needed]") {
    const auto [library, variant, message] =
        GENERATE(table<const char*, std::string_view, const char*>(
            {{"libgomp.so.1", kCpu, "needs 'libgomp.so.1', which not every machine has"},
             {"libtorch_cuda.so", kCpu, "needs 'libtorch_cuda.so', which only cuda machines have"},
             {"libcudart.so.12", kCuda, "'libcudart.so.12' is not the CUDA runtime of 13.0"},
             {"libcudart.so.13", kCpu, "needs 'libcudart.so.13', which only cuda machines have"},
             {"libpython3.11.so.1.0",
              kCpu,
              "needs 'libpython3.11.so.1.0', which not every machine has"},
             {"libopenblas.so.0", "", "needs 'libopenblas.so.0', which not every machine has"}}));
    CAPTURE(library, variant);
    CHECK(look(library, variant) == "failed\n" + std::string{library} + ": " + message + "\n");
}

TEST_CASE("a library beside it, or allowed by name, passes", "[check][needed]") {
    CheckInput input = input_of({.needed = {"libmine.so.1", "libextra.so.2"}},
                                {.variant = test::variant_of(kCpu),
                                 .manylinux = "manylinux_2_28",
                                 .allowed_needed = {"libextra.so.2"}});
    CHECK(run_one(input, needed_check()) ==
          "failed\nlibmine.so.1: needs 'libmine.so.1', which not every machine has\n");
    input.libraries.push_back(test::library_of({.soname = "libmine.so.1"}, "lib/libmine.so"));
    CHECK(run_one(input, needed_check()) == "passed\npassed\n");
}

TEST_CASE("an unknown policy is not a pass", "[check][needed]") {
    CHECK(run_one(input_of({.needed = {"libc.so.6"}}, {.manylinux = "manylinux_9_9"}),
                  needed_check()) == "not checked [no policy is called 'manylinux_9_9']\n");
}

} // namespace
} // namespace kb::check
