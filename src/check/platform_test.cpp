// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

std::string look(binfmt::Format format, const char* architecture, std::string_view variant) {
    binfmt::SharedObject object;
    object.format = format;
    object.architecture = architecture;
    Promise promise{.variant = test::variant_of(variant)};
    CheckInput input{.variant = std::string{variant}, .promise = std::move(promise)};
    input.libraries.push_back({.path = "x.so", .object = std::move(object)});
    return test::run_one(std::move(input), platform_check());
}

constexpr std::string_view kHere = "torch-stable-abi211-cpu-x86_64-linux";
constexpr std::string_view kMac = "torch-stable-abi211-metal-aarch64-darwin";
constexpr std::string_view kArm = "torch-stable-abi211-cpu-aarch64-linux";
constexpr std::string_view kWindows = "torch-stable-abi211-cpu-x86_64-windows";

TEST_CASE("a library of the variant's machine passes", "[check][platform]") {
    using binfmt::Format;
    CHECK(look(Format::elf, "x86_64", kHere) == "passed\n");
    CHECK(look(Format::elf, "aarch64", kArm) == "passed\n");
    CHECK(look(Format::macho, "aarch64", kMac) == "passed\n");
    CHECK(look(Format::pe, "x86_64", kWindows) == "passed\n");
}

TEST_CASE("a library of another machine is told with both", "[check][platform]") {
    using binfmt::Format;
    CHECK(look(Format::elf, "x86_64", kArm)
              .contains("is for x86_64-linux, the variant is for aarch64-linux"));
    CHECK(look(Format::elf, "aarch64", kMac).starts_with("failed\n"));
    CHECK(look(Format::elf, "x86_64", kWindows).starts_with("failed\n"));
    CHECK(look(Format::macho, "x86_64", kHere).starts_with("failed\n"));
    CHECK(look(Format::elf, "machine-243", kHere).starts_with("failed\n"));
}

} // namespace
} // namespace kb::check
