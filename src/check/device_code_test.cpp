// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "support/check_inputs.hpp"

namespace kb::check {
namespace {

using test::build_fatbin;
using test::ElfSpec;
using test::FatbinImage;
using test::run_one;

constexpr std::string_view kCuda = "torch-stable-abi211-cu130-x86_64-linux";

std::string look(const std::vector<FatbinImage>& images,
                 std::optional<std::vector<std::string>> archs) {
    const ElfSpec spec{.fatbin = images.empty() ? "" : build_fatbin(images)};
    return run_one(
        test::input_of(spec, {.variant = test::variant_of(kCuda), .archs = std::move(archs)}),
        device_code_check());
}

using Archs = std::vector<std::string>;

TEST_CASE("device code for exactly the promise passes", "[check][device-code]") {
    CHECK(look({{.sm = 80}, {.sm = 90, .flags = 0x100011}, {.kind = 1, .sm = 120}, {.sm = 120}},
               Archs{"8.0", "9.0a", "12.0+PTX"}) ==
          "passed [cubin 8.0, cubin 9.0a, cubin 12.0, ptx 12.0]\n");
}

TEST_CASE("missing and unasked architectures are told", "[check][device-code]") {
    CHECK(look({{.sm = 80}, {.sm = 75}}, Archs{"8.0", "9.0+PTX"}) ==
          "failed\n"
          "cubin 7.5: holds cubin 7.5, which was not asked for\n"
          "cubin 9.0: promises cubin 9.0 and does not hold it\n"
          "ptx 9.0: promises ptx 9.0 and does not hold it\n");
    CHECK(look({{.sm = 90}}, Archs{"9.0a"}) ==
          "failed\n"
          "cubin 9.0: holds cubin 9.0, which was not asked for\n"
          "cubin 9.0a: promises cubin 9.0a and does not hold it\n");
}

TEST_CASE("without a promise a CUDA variant holds some device code", "[check][device-code]") {
    CHECK(look({}, std::nullopt) == "failed\ndevice code: a cuda variant holds no device code\n");
    CHECK(look({{.sm = 80}}, std::nullopt) == "passed [cubin 8.0]\n");
}

TEST_CASE("device code that cannot be looked at is not a pass", "[check][device-code]") {
    const Promise promise{.variant = test::variant_of(kCuda), .archs = Archs{"8.0"}};
    ElfSpec spec{.section_headers = false};
    CHECK(run_one(test::input_of(spec, promise), device_code_check()) ==
          "not checked ['_k.abi3.so': device code is found by section names: the file has no "
          "section headers]\n");
    CheckInput input{.promise = promise};
    input.libraries.push_back({.path = "a.so", .unread_reason = "gone"});
    CHECK(run_one(input, device_code_check()) ==
          "not checked ['a.so' could not be read]\nnot checked [gone]\n");
}

TEST_CASE("other backends and variants for every machine have no such promise",
          "[check][device-code]") {
    const auto name = GENERATE("torch-stable-abi211-cpu-x86_64-linux", "torch-cuda");
    CHECK(run_one(test::input_of({}, {.variant = test::variant_of(name)}), device_code_check())
              .empty());
}

TEST_CASE("a variant for one machine without a library fails", "[check][device-code]") {
    CheckInput input{.promise = {.variant = test::variant_of(kCuda)}};
    CHECK(run_one(input, libraries_check()) ==
          "failed\nlibraries: the variant holds no shared library\n");
    input.promise.variant = test::variant_of("torch-cuda");
    CHECK(run_one(input, libraries_check()).empty());
}

} // namespace
} // namespace kb::check
