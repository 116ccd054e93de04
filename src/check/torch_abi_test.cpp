// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using test::input_of;
using test::run_one;

std::string look(const std::string& symbol, Version target = Version{{2, 11}}) {
    return run_one(input_of({.symbols = {{.name = symbol}}}, {.torch_stable_abi = target}),
                   torch_abi_check());
}

TEST_CASE("the stable interface passes", "[check][torch]") {
    const char* symbol = GENERATE("aoti_torch_get_data_ptr", // older than the table
                                  "aoti_torch_aten_full",    // 2.10
                                  "memcpy",
                                  "_ZN5torch6stable6Tensor4dataEv",
                                  "_ZN5torch10headeronly5checkEv",
                                  "_ZNSt6vectorIiSaIiEE9push_backEOi",
                                  "_ZN4what2at3fooEv", // somebody else's 'at'
                                  "_ZN6mat2at1fEv",
                                  "_Z9float2atfi");
    CAPTURE(symbol);
    CHECK(look(symbol) == "passed\n");
}

TEST_CASE("torch's C++ interface is told in every form", "[check][torch]") {
    const auto [symbol, text] = GENERATE(table<const char*, const char*>(
        {{"_ZN3c106ScalarC1Ed", "c10::Scalar::Scalar(double)"},
         {"_ZN2at4_ops3add4callERKNS_6TensorES4_RKN3c106ScalarE",
          "at::_ops::add::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)"},
         {"_ZTVN3c1010TensorImplE", "vtable for c10::TensorImpl"},
         {"_ZTIN2at6TensorE", "typeinfo for at::Tensor"},
         {"_ZGVZN3c103fooEvE1x", "guard variable for c10::foo()::x"},
         {"_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backEOS1_",
          "std::vector<at::Tensor, std::allocator<at::Tensor> >::push_back(at::Tensor&&)"},
         {"_ZN5torch7Library4_defEv", "torch::Library::_def()"},
         {"_Z4takeN3c106ScalarE", "take(c10::Scalar)"}}));
    CAPTURE(symbol);
    CHECK(look(symbol) ==
          "failed\n" + std::string{symbol} + ": '" + text + "' is not in torch's stable ABI\n");
}

TEST_CASE("a function of a later interface is told with its version", "[check][torch]") {
    CHECK(look("torch_tensor_to_pyobject") ==
          "failed\ntorch_tensor_to_pyobject: 'torch_tensor_to_pyobject' came with torch 2.14.0, "
          "the promise is 2.11\n");
    CHECK(look("torch_tensor_to_pyobject", Version{{2, 14}}) == "passed\n");
}

TEST_CASE("a name that may be torch's and cannot be read is not let through", "[check][torch]") {
    CHECK(look("_ZN3c10broken").starts_with("failed"));
    CHECK(look("_ZN3c10" + std::string(5000, 'x')).starts_with("failed"));
}

} // namespace
} // namespace kb::check
