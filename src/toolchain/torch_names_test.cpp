// SPDX-License-Identifier: Apache-2.0
#include "toolchain/torch_names.hpp"

#include "support/catch.hpp"

#include <algorithm>

namespace kb::toolchain {
namespace {

using backend::BackendId;

constexpr std::string_view kTable = "2.9 2.10\n"
                                    "c1\t_ZN2at3oldEv\n"
                                    "c3\t_ZN2at4bothEv\n"
                                    "g2\t_ZN2at4cuda3newEv\n";

TEST_CASE("a table gives the names of one version and backend", "[toolchain][torch]") {
    const Version later{{2, 10, 1}};
    CHECK(select_torch_names(kTable, later, BackendId::cuda)->names ==
          std::vector<std::string_view>{"_ZN2at4bothEv", "_ZN2at4cuda3newEv"});
    CHECK(select_torch_names(kTable, later, BackendId::cpu)->names ==
          std::vector<std::string_view>{"_ZN2at4bothEv"});
    const auto none = select_torch_names(kTable, Version{{2, 8}}, BackendId::cpu);
    CHECK(none->names.empty());
    CHECK(none->known == std::vector<Version>{Version{{2, 9}}, Version{{2, 10}}});
}

TEST_CASE("a malformed table is an error", "[toolchain][torch]") {
    for (const std::string_view table :
         {"", "2.9 x\n", "2.9\nname\n", "2.9\nc\tname\n", "2.9\ncz\tname\n"}) {
        CAPTURE(table);
        const auto names = select_torch_names(table, Version{{2, 9}}, BackendId::cpu);
        REQUIRE_FALSE(names);
        CHECK(names.error().code == ErrorCode::corrupt);
    }
}

TEST_CASE("the names of the default lock's torch versions are compiled in", "[toolchain][torch]") {
    for (const Version& torch :
         {Version{{2, 11}}, Version{{2, 12}}, Version{{2, 13}}, Version{{2, 15}}}) {
        const auto names = torch_names(torch, BackendId::cuda, {});
        REQUIRE(names);
        CHECK(names->names.size() > 40000);
        CHECK(std::ranges::is_sorted(names->names));
        // at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)
        CHECK(std::ranges::binary_search(
            names->names,
            std::string_view{"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"}));
        CHECK(torch_names(torch, BackendId::cpu, {})->names.size() < names->names.size());
        CHECK(torch_names(torch, BackendId::rocm, {})->names.empty());
    }
}

} // namespace
} // namespace kb::toolchain
