// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace kb::backend {

TEST_CASE("every backend name reads back and the order is that of the names", "[backend]") {
    std::vector<std::string_view> names;
    for (const BackendId id : kAllBackends) {
        CHECK(parse_backend(to_text(id)) == id);
        names.push_back(to_text(id));
    }
    CHECK(std::ranges::is_sorted(names));
    CHECK_FALSE(parse_backend("CUDA"));
    CHECK_FALSE(parse_backend("cuda "));
    CHECK_FALSE(parse_backend(""));
}

TEST_CASE("only compiled backends have kernel sections", "[backend]") {
    CHECK(has_kernel_sections(BackendId::cpu));
    CHECK(has_kernel_sections(BackendId::xpu));
    CHECK_FALSE(has_kernel_sections(BackendId::tpu));
    CHECK_FALSE(has_kernel_sections(BackendId::neuron));
    CHECK_FALSE(has_kernel_sections(BackendId::cann));
    CHECK(is_versioned(BackendId::rocm));
    CHECK_FALSE(is_versioned(BackendId::metal));
}

} // namespace kb::backend
