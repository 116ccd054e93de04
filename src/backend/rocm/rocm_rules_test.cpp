// SPDX-License-Identifier: Apache-2.0
#include "backend/rocm/rocm_rules.hpp"

#include "support/catch.hpp"

#include <string>
#include <vector>

namespace kb::backend {

namespace {

using Strings = std::vector<std::string>;

ToolkitArchs rocm72() {
    return {.builds = {"gfx906",
                       "gfx908",
                       "gfx90a",
                       "gfx942",
                       "gfx950",
                       "gfx1030",
                       "gfx1100",
                       "gfx1101",
                       "gfx1200",
                       "gfx1201"},
            .compiles = {},
            .name = "ROCm 7.2"};
}

} // namespace

TEST_CASE("ROCm architectures are kept by name, sorted as text, once", "[backend][arch]") {
    const Strings requested{"gfx942", "gfx1100", "gfx90a", "gfx940", "gfx942"};
    const ArchChoice choice = choose_rocm_archs(requested, rocm72());
    CHECK(choice.kept == Strings{"gfx1100", "gfx90a", "gfx942"});
    CHECK(choice.refused ==
          std::vector<RefusedArch>{{"gfx940", "ROCm 7.2 builds for no device of that name"}});
    CHECK(choose_rocm_archs({}, rocm72()).kept == rocm72().builds);
    CHECK(choose_rocm_archs(Strings{"gfx99999"}, rocm72()).kept.empty());
}

TEST_CASE("a device that AMD never made is refused with a suggestion", "[backend][arch]") {
    CHECK_FALSE(check_arch(BackendId::rocm, "gfx940"));
    CHECK_FALSE(check_arch(BackendId::rocm, "gfx1151"));
    CHECK_FALSE(check_arch(BackendId::rocm, "gfx90a:sramecc+:xnack-"));
    CHECK(check_arch(BackendId::rocm, "gfx90a:fast"));
    CHECK(check_arch(BackendId::rocm, "gfx99999"));
    const auto problem = check_arch(BackendId::rocm, "GFX90A");
    REQUIRE(problem);
    CHECK(problem->message == "no ROCm device is called 'GFX90A'");
    CHECK(problem->notes == Strings{"did you mean 'gfx90a'?"});
}

} // namespace kb::backend
