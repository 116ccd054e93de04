// SPDX-License-Identifier: Apache-2.0
#include "check/policy.hpp"

#include "support/catch.hpp"

namespace kb::check {
namespace {

TEST_CASE("manylinux policies hold the published sets", "[check][policy]") {
    const auto policy = find_manylinux("manylinux_2_28", "x86_64");
    REQUIRE(policy);
    CHECK(policy->versions.at("GLIBC").contains("2.28"));
    CHECK_FALSE(policy->versions.at("GLIBC").contains("2.29"));
    CHECK_FALSE(policy->versions.at("GLIBC").contains("PRIVATE"));
    CHECK(policy->versions.at("CXXABI").contains("FLOAT128"));
    CHECK_FALSE(
        find_manylinux("manylinux_2_28", "aarch64")->versions.at("CXXABI").contains("FLOAT128"));
    CHECK(policy->libraries.contains("libstdc++.so.6"));
    CHECK_FALSE(policy->libraries.contains("libgomp.so.1"));
    CHECK(policy->blacklist.at("libz.so.1").contains("zcalloc"));
}

TEST_CASE("policies are found by alias, and only those that exist", "[check][policy]") {
    CHECK(find_manylinux("manylinux2014", "x86_64")->name == "manylinux_2_17");
    CHECK_FALSE(find_manylinux("manylinux_2_99", "x86_64"));
    CHECK_FALSE(find_manylinux("", "x86_64"));
    CHECK(find_manylinux("manylinux_2_28", "vax")->versions.empty());
    const auto names = manylinux_names();
    CHECK(names.front() == "manylinux_2_5");
    CHECK(names.back() == "manylinux_2_41");
}

TEST_CASE("symbols know when they were added", "[check][policy]") {
    CHECK(python_symbol_added("PyArg_Parse") == Version{{3, 2}});
    CHECK(python_symbol_added("PyObject_GetBuffer") == Version{{3, 11}});
    CHECK_FALSE(python_symbol_added("PyUnicode_AsUTF8"));
    CHECK(torch_shim_added("torch_tensor_to_pyobject") == Version{{2, 14}});
    CHECK_FALSE(torch_shim_added("aoti_torch_get_data_ptr"));
}

TEST_CASE("runtime libraries are those of the major version", "[check][policy]") {
    const Names cuda13 = runtime_libraries(backend::BackendId::cuda, Version{{13, 0}});
    CHECK(cuda13.contains("libcudart.so.13"));
    CHECK(cuda13.contains("libcuda.so.1"));
    CHECK_FALSE(cuda13.contains("libcudart.so.12"));
    CHECK(runtime_libraries(backend::BackendId::cpu, Version{}).empty());
}

} // namespace
} // namespace kb::check
