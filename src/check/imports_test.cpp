// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using test::ElfSpec;
using test::input_of;
using test::run_one;

std::string look(const std::string& symbol, std::vector<std::string> needed) {
    return run_one(input_of({.needed = std::move(needed), .symbols = {{.name = symbol}}}, {}),
                   imports_check());
}

TEST_CASE("imports that a needed library defines pass", "[check][imports]") {
    const auto [symbol, library] = GENERATE(table<const char*, const char*>({
        {"PyModule_Create2", "libc.so.6"},
        {"aoti_torch_get_data_ptr", "libtorch_cpu.so"},
        {"_ZN3c106ScalarC1Ed", "libc10.so"},
        {"_ZN6caffe28TypeMeta15typeMetaDatasEv", "libtorch.so"},
        {"cudaMalloc", "libcudart.so.13"},
        {"cuLaunchKernel", "libcuda.so.1"},
        {"hipMalloc", "libamdhip64.so.7"},
        {"TVMFFIErrorMove", "libtvm_ffi.so"},
        {"_ZNSt6thread4joinEv", "libstdc++.so.6"},
        {"_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv", "libtorch_cpu.so"},
        {"_ZTVSt9exception", "libstdc++.so.6"},
        {"deflate", "libz.so.1"},
    }));
    CAPTURE(symbol);
    CHECK(look(symbol, {library}) == "passed\n");
}

TEST_CASE("imports that nobody defines are told", "[check][imports]") {
    CHECK(look("_Z6launchPfi", {"libc.so.6", "libtorch.so", "libcudart.so.13"}) ==
          "failed\n_Z6launchPfi: 'launch(float*, int)' is defined by no library that it needs\n");
    CHECK(look("aoti_torch_get_data_ptr", {"libc.so.6"}) ==
          "failed\naoti_torch_get_data_ptr: 'aoti_torch_get_data_ptr' is defined by no library "
          "that it needs\n");
    CHECK(look("cudaMalloc", {"libtorch.so"}).starts_with("failed"));
    CHECK(look("forgotten", {}).starts_with("failed"));
}

TEST_CASE("weak and versioned imports may stay open", "[check][imports]") {
    const ElfSpec spec{.needed = {"libc.so.6"},
                       .symbols = {{.name = "__gmon_start__", .bind = 2},
                                   {.name = "f", .version = "GLIBC_2.14", .library = "libc.so.6"}}};
    CHECK(run_one(input_of(spec, {}), imports_check()) == "passed\n");
}

TEST_CASE("a library beside it may define the symbol", "[check][imports]") {
    CheckInput input = input_of({.symbols = {{.name = "helper"}}}, {});
    input.libraries.push_back(
        test::library_of({.symbols = {{.name = "helper", .defined = true}}}, "b.so"));
    CHECK(run_one(input, imports_check()) == "passed\npassed\n");
}

} // namespace
} // namespace kb::check
