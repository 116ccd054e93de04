// SPDX-License-Identifier: Apache-2.0
#include "plan/source_needs.hpp"

#include "plan/test_world.hpp"
#include "support/catch.hpp"

namespace kb::plan {

using backend::FrameworkId;

TEST_CASE("needs follow from what a source reaches", "[plan][needs]") {
    const auto [reach, framework, needs] = GENERATE(table<Reach, FrameworkId, SourceNeeds>({
        {Reach{}, FrameworkId::torch, SourceNeeds{}},
        {Reach{.torch = true}, FrameworkId::torch, SourceNeeds{.framework = true, .python = true}},
        {Reach{.python = true, .ops = true},
         FrameworkId::torch_stable_abi,
         SourceNeeds{.python = true, .ops = true}},
        // torch in a tvm-ffi kernel is no header of its framework, and Python has no part in it.
        {Reach{.torch = true, .python = true}, FrameworkId::tvm_ffi, SourceNeeds{}},
        {Reach{.tvm_ffi = true}, FrameworkId::tvm_ffi, SourceNeeds{.framework = true}},
    }));
    CHECK(needs_of(reach, framework) == needs);
}

TEST_CASE("the C++ standard is the framework's only for what includes it", "[plan][needs]") {
    const FrameworkRow torch{.version = Version{{2, 11}}, .cxx_standard = 17};
    const ToolkitRow toolkit{.cxx_standard = 20};
    CHECK(cxx_standard({.framework = true}, torch, toolkit) == 17);
    CHECK(cxx_standard({.python = true}, torch, toolkit) == 20);
}

TEST_CASE("a path of a source has one spelling", "[plan][needs]") {
    CHECK(source_path("./a//b/") == "a/b");
    CHECK(source_path(".") == "");
    CHECK_FALSE(source_path("a/../b").has_value());
    CHECK_FALSE(source_path("/a").has_value());
}

TEST_CASE("every declared source is named once with what it needs", "[plan][needs]") {
    const config::Config config = test::config_of(test::kAotToml);
    SourceSnapshot snapshot = test::norm_snapshot();
    std::string text;
    for (const DeclaredSource& source : declared_sources(config, snapshot, BackendId::cuda)) {
        text += source.path + (source.needs.framework ? " framework" : "") +
                (source.needs.python ? " python" : "") + (source.needs.ops ? " ops" : "") + "\n";
    }
    CHECK(text == "norm_common/norm.h\nnorm_cuda/norm.cu\nnorm_cuda/norm.cuh\n"
                  "torch-ext/torch_binding.cpp framework python ops\n"
                  "torch-ext/torch_binding.h\n");
    snapshot.files.clear();
    const auto unknown = declared_sources(config, snapshot, BackendId::cuda);
    REQUIRE(unknown.size() == 5);
    CHECK(unknown.front().needs == SourceNeeds{.framework = true, .python = true, .ops = true});
}

} // namespace kb::plan
