// SPDX-License-Identifier: Apache-2.0
#include "build/torch_version.hpp"

#include "support/catch.hpp"

namespace kb::build {
namespace {

TEST_CASE("a version is the numbers in front", "[build][torch-version]") {
    const auto text_of = [](std::string_view text) {
        const auto version = leading_version(text);
        return version ? version->to_text() : "none";
    };
    CHECK(text_of("2.11.0") == "2.11.0");
    CHECK(text_of("2.11.0+cpu") == "2.11.0");
    CHECK(text_of("2.10.0.dev20251001+cu128") == "2.10.0");
    CHECK(text_of("2.9.0a0+git123") == "2.9.0");
    CHECK(text_of("2.10.0rc1") == "2.10.0");
    CHECK(text_of("3") == "3");
    CHECK(text_of("2.") == "2");
    CHECK(text_of("2..1") == "2");
    for (const char* none : {"", ".", "..2", ".5", "a2.1", "99999999999999999999999"}) {
        CAPTURE(none);
        CHECK(text_of(none) == "none");
    }
}

} // namespace
} // namespace kb::build
