// SPDX-License-Identifier: Apache-2.0
#include "backend/requirement.hpp"

#include "backend/mounts.hpp"
#include "support/catch.hpp"

#include <string>

namespace kb::backend {

TEST_CASE("a requirement reads back from its id", "[backend][requirement]") {
    const auto id = GENERATE(values<std::string>({"wheel/torch@2.11.0#include",
                                                  "wheel/nvidia-cuda-nvcc@13.0.88",
                                                  "deb/g++-12@12.2.0-14+deb12u1",
                                                  "deb/libc6@2:2.36~rc1-9",
                                                  "stub/manylinux_2_28@1#x86_64",
                                                  "git/NVIDIA/cutlass@v3.6.0",
                                                  "host/g++@12.2.0"}));
    const auto requirement = Requirement::parse(id);
    REQUIRE(requirement.has_value());
    CHECK(requirement->id() == id);
}

TEST_CASE("a malformed requirement says which part is wrong", "[backend][requirement]") {
    const auto [id, what] = GENERATE(table<std::string, std::string>({
        {"torch@2.11.0", "it has no provider"},
        {"pip/torch@2.11.0", "the provider is unknown"},
        {"wheel/torch", "it has no version"},
        {"wheel/@2.11.0", "the name or the version is malformed"},
        {"wheel/torch@", "the name or the version is malformed"},
        {"wheel/to rch@1", "the name or the version is malformed"},
        {"wheel/torch@1/2", "the name or the version is malformed"},
        {"wheel/torch@1#", "the slice is empty or malformed"},
        {"wheel/torch@1#a#b", "the slice is empty or malformed"},
        {"deb/-oAPT::Update::Pre-Invoke::=id@1", "the name or the version begins with '-'"},
        {"git/--upload-pack=id@v1", "the name or the version begins with '-'"},
        {"git/me/lib@--upload-pack=id", "the name or the version begins with '-'"},
        {"wheel/-r@1", "the name or the version begins with '-'"},
        {"wheel//tmp/evil@1", "the name holds a '/'"},
        {"deb//tmp/evil.deb@1", "no Debian package has such a name"},
        {"deb/Libc6@1", "no Debian package has such a name"},
        {"deb/libc6*@1", "no Debian package has such a name"},
        {"deb/c@1", "no Debian package has such a name"},
    }));
    const auto requirement = Requirement::parse(id);
    REQUIRE_FALSE(requirement.has_value());
    CHECK(requirement.error().message.find(what) != std::string::npos);
    CHECK(requirement.error().message.find("'" + id + "'") != std::string::npos);
    CHECK(requirement.error().code == ErrorCode::corrupt);
}

TEST_CASE("two versions of one toolkit have two places in the sandbox", "[backend][mounts]") {
    CHECK(torch_mount(Version{{2, 11, 0}}) == "/toolchain/torch-2.11");
    CHECK(torch_mount(Version{{2, 13}}) == "/toolchain/torch-2.13");
    CHECK(cuda_mount(Version{{13}}) == "/toolchain/cuda-13.0");
    CHECK(tvm_ffi_mount(Version{{0, 1}}) == "/toolchain/tvm-ffi-0.1");
    CHECK(dependency_mount("cutlass-3.6") == "/toolchain/cutlass-3.6");
}

} // namespace kb::backend
