// SPDX-License-Identifier: Apache-2.0
#include "backend/rules.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace kb::backend {

using Strings = std::vector<std::string>;

TEST_CASE("each backend has a whole row at its own place", "[backend][rules]") {
    REQUIRE(all_rules().size() == kAllBackends.size());
    for (const BackendId id : kAllBackends) {
        const BackendRules& rules = rules_of(id);
        CAPTURE(rules.title);
        CHECK(rules.id == id);
        CHECK_FALSE(rules.title.empty());
        CHECK(rules.source_kind != nullptr);
        CHECK(rules.choose_archs != nullptr);
        CHECK(rules.arch_flags != nullptr);
        CHECK(rules.usable_flags != nullptr);
        CHECK(rules.torch_libraries != nullptr);
        // A backend with sections says how its code is recognised; one without says nothing.
        CHECK(rules.definitions.empty() != has_kernel_sections(id));
    }
}

TEST_CASE("the arch choice of each backend is total, accounts for each request and does not "
          "depend on its order",
          "[backend][rules]") {
    const ToolkitArchs toolkit{
        .builds = {"7.5", "8.0", "9.0", "gfx90a", "gfx942"}, .compiles = {}, .name = "toolkit"};
    Strings requested{"9.0", "8.0+PTX", "gfx942", "nonsense", "7.5", "gfx940", ""};
    for (const BackendRules& rules : all_rules()) {
        CAPTURE(rules.title);
        std::ranges::sort(requested);
        const ArchChoice expected = rules.choose_archs(requested, toolkit);
        CHECK(expected.kept.size() + expected.refused.size() == requested.size());
        for (const RefusedArch& refused : expected.refused) {
            CHECK_FALSE(refused.reason.empty());
        }
        CHECK_NOTHROW(rules.arch_flags(expected.kept));
        do {
            const ArchChoice again = rules.choose_archs(requested, toolkit);
            REQUIRE(again.kept == expected.kept);
            REQUIRE(again.refused.size() == expected.refused.size());
        } while (std::ranges::next_permutation(requested).found);
    }
}

TEST_CASE("a file is to each backend what its extension says", "[backend][rules]") {
    const auto kind = [](BackendId id, std::string_view path) {
        return to_text(rules_of(id).source_kind(RelPath::literal(path)));
    };
    CHECK(kind(BackendId::cuda, "a/b.cu") == "cuda");
    CHECK(kind(BackendId::cuda, "a/b.cuh") == "header");
    CHECK(kind(BackendId::cuda, "a/b.cpp") == "cxx");
    CHECK(kind(BackendId::rocm, "a/b.cu") == "hip");
    CHECK(kind(BackendId::rocm, "a/b.hip") == "hip");
    CHECK(kind(BackendId::cpu, "a/b.cc") == "cxx");
    CHECK(kind(BackendId::cpu, "a/b.cu") == "other");
    CHECK(kind(BackendId::xpu, "a/b.cpp") == "sycl");
    CHECK(kind(BackendId::metal, "a/b.metal") == "metal");
    CHECK(kind(BackendId::metal, "a/b.mm") == "cxx");
    CHECK(kind(BackendId::cpu, "a/README.md") == "other");
    CHECK(kind(BackendId::cpu, "a/data") == "other");
}

TEST_CASE("architectures become compiler flags, PTX one more", "[backend][rules]") {
    const Strings archs{"8.0", "9.0a", "12.0+PTX"};
    CHECK(rules_of(BackendId::cuda).arch_flags(archs) ==
          Strings{"-gencode=arch=compute_80,code=sm_80",
                  "-gencode=arch=compute_90a,code=sm_90a",
                  "-gencode=arch=compute_120,code=sm_120",
                  "-gencode=arch=compute_120,code=compute_120"});
    const Strings gfx{"gfx90a", "gfx1100"};
    CHECK(rules_of(BackendId::rocm).arch_flags(gfx) ==
          Strings{"--offload-arch=gfx90a", "--offload-arch=gfx1100"});
}

TEST_CASE("a flag that an old nvcc does not know is left out there", "[backend][rules]") {
    const Strings flags{"-O2", "-static-global-template-stub=false", "-lineinfo"};
    const auto usable = rules_of(BackendId::cuda).usable_flags;
    CHECK(usable(flags, Version{{12, 6}}) == Strings{"-O2", "-lineinfo"});
    CHECK(usable(flags, Version{{12, 8}}) == flags);
    CHECK(usable(flags, Version{{13, 0}}) == flags);
}

TEST_CASE("the stable interface needs no C++ library of torch", "[backend][rules]") {
    const auto libraries = rules_of(BackendId::cuda).torch_libraries;
    CHECK(libraries(TorchBinding::stable) == Strings{"torch", "torch_cpu", "torch_cuda"});
    CHECK(libraries(TorchBinding::versioned) ==
          Strings{"torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda"});
    CHECK(rules_of(BackendId::cpu).torch_libraries(TorchBinding::stable) ==
          Strings{"torch", "torch_cpu"});
}

} // namespace kb::backend
