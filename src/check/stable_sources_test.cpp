// SPDX-License-Identifier: Apache-2.0
#include "check/stable_sources.hpp"

#include "support/catch.hpp"

namespace kb::check {
namespace {

/// "line what -> replacement" of each use.
std::string find(std::string_view text) {
    std::string out;
    for (const UnstableUse& use : find_unstable_uses(text)) {
        out += std::to_string(use.line) + " " + use.what +
               (use.replacement.empty() ? "" : " -> " + use.replacement) + "\n";
    }
    return out;
}

TEST_CASE("unstable headers and names are found with their lines", "[check][stable]") {
    CHECK(find("#include <torch/library.h>\n"
               "#  include \"ATen/core/dispatch/Dispatcher.h\"\n"
               "void f(at::Tensor& x, const at::Tensor& y) {\n"
               "  TORCH_CHECK(x.dim() == 2); auto z = c10::impl::foo<at::Half>(x);\n"
               "}\n"
               "TORCH_LIBRARY(k, m) {}\n") == "1 torch/library.h -> torch/csrc/stable/library.h\n"
                                              "2 ATen/core/dispatch/Dispatcher.h\n"
                                              "3 at::Tensor -> torch::stable::Tensor\n"
                                              "4 TORCH_CHECK -> STD_TORCH_CHECK\n"
                                              "4 c10::impl::foo\n"
                                              "4 at::Half -> torch::headeronly::Half\n"
                                              "6 TORCH_LIBRARY -> STABLE_TORCH_LIBRARY\n");
}

TEST_CASE("what is stable, somebody else's or no code is left alone", "[check][stable]") {
    CHECK(find("#include <torch/csrc/stable/tensor.h>\n"
               "#include <torch/headeronly/core/ScalarType.h>\n"
               "#include \"norm.h\"\n"
               "torch::stable::Tensor f(mine::at::x, flat::y, torch::headeronly::Half);\n"
               "// at::Tensor\n/* c10::x\n#include <torch/all.h>\n at::y */\n"
               "auto s = \"at::Tensor \\\" c10::x\";\n"
               "STABLE_TORCH_LIBRARY(k, m) { STD_TORCH_CHECK(a > b); }\n")
              .empty());
}

} // namespace
} // namespace kb::check
