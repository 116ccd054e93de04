// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

#include <array>

namespace kb::check {
namespace {

using test::input_of;
using test::library_of;
using test::run_one;
using test::variant_of;

constexpr std::array<std::string_view, 2> kNames{"_ZN2at5emptyEv", "_ZN3c106ScalarC1Ed"};

CheckInput importing(const std::string& symbol, std::string_view variant) {
    CheckInput input = input_of({.symbols = {{.name = symbol}}}, {.variant = variant_of(variant)});
    input.torch_names.names = kNames;
    return input;
}

constexpr std::string_view kAot = "torch211-cxx11-cpu-x86_64-linux";

TEST_CASE("a name that this torch exports passes", "[check][torch]") {
    const char* symbol = GENERATE("_ZN2at5emptyEv",
                                  "_ZN3c106ScalarC1Ed",
                                  "_ZNSt6vectorIiSaIiEE9push_backEOi",
                                  "_ZN4what2at3fooEv", // somebody else's 'at'
                                  "memcpy");
    CAPTURE(symbol);
    CHECK(run_one(importing(symbol, kAot), torch_names_check()) == "passed\n");
}

TEST_CASE("a name that this torch does not export is told readably", "[check][torch]") {
    CHECK(run_one(importing("_ZN3c107goneForEi", kAot), torch_names_check()) ==
          "failed\n_ZN3c107goneForEi: torch 2.11 has no 'c10::goneFor(int)'\n");
}

TEST_CASE("what a library beside it exports is there", "[check][torch]") {
    CheckInput input = importing("_ZN3c104mineEv", kAot);
    input.libraries.push_back(
        library_of({.symbols = {{.name = "_ZN3c104mineEv", .defined = true}}}, "libhelp.so"));
    CHECK(run_one(input, torch_names_check()) == "passed\npassed\n");
}

TEST_CASE("without a list it was not checked, unless nothing needs one", "[check][torch]") {
    CheckInput input = importing("_ZN2at5emptyEv", kAot);
    input.torch_names = {.missing_reason = "no list of torch 2.11"};
    CHECK(run_one(input, torch_names_check()) == "not checked [no list of torch 2.11]\n");
    CheckInput plain = importing("memcpy", kAot);
    plain.torch_names = {};
    CHECK(run_one(plain, torch_names_check()) == "passed\n");
}

TEST_CASE("variants of the stable ABI have their own check", "[check][torch]") {
    CHECK(run_one(importing("_ZN3c107goneForEi", "torch-stable-abi211-cpu-x86_64-linux"),
                  torch_names_check())
              .empty());
}

} // namespace
} // namespace kb::check
