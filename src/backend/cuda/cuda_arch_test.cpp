// SPDX-License-Identifier: Apache-2.0
#include "backend/arch.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace kb::backend {

namespace {

using Strings = std::vector<std::string>;

Strings words(std::string_view text) {
    Strings result;
    for (const std::string_view part : split(text, ' ')) {
        if (!part.empty()) {
            result.emplace_back(part);
        }
    }
    return result;
}

ToolkitArchs cuda126() {
    return {.builds = words("7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0+PTX"),
            .compiles = words("5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 9.0a"),
            .name = "CUDA 12.6"};
}

ToolkitArchs cuda128() {
    return {.builds = words("7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.1 12.0+PTX"),
            .compiles = words("5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 9.0a 10.0 "
                              "10.0a 10.1 10.1a 12.0 12.0a"),
            .name = "CUDA 12.8"};
}

ToolkitArchs cuda130() {
    return {.builds = words("7.5 8.0 8.6 8.7 8.9 9.0 10.0 11.0 12.0 12.1+PTX"),
            .compiles = words("7.5 8.0 8.6 8.7 8.8 8.9 9.0 9.0a 10.0 10.0a 10.0f 10.3 10.3a 10.3f "
                              "11.0 11.0a 11.0f 12.0 12.0a 12.0f 12.1 12.1a 12.1f"),
            .name = "CUDA 13.0"};
}

std::string kept(std::string_view requested, const ToolkitArchs& toolkit) {
    return join(choose_cuda_archs(words(requested), toolkit).kept, " ");
}

} // namespace

TEST_CASE("the choice equals the loose intersection of the format", "[backend][arch]") {
    // Requested, and what is left with CUDA 12.6, 12.8 and 13.0; "" is refused by the build.
    const auto [requested, on126, on128, on130] =
        GENERATE(table<std::string, std::string, std::string, std::string>({
            {"9.0a", "9.0a", "9.0a", "9.0a"},
            {"9.0 9.0a", "9.0a", "9.0a", "9.0a"},
            {"10.0a", "", "10.0a", "10.0a"},
            {"9.0a 10.0a 12.0a", "9.0a", "9.0a 10.0a 12.0a", "9.0a 10.0a 12.0a"},
            {"10.1", "", "10.1", ""},
            {"10.1a", "", "10.1a", ""},
            {"10.3", "", "", ""},
            {"10.3a", "", "", ""},
            {"10.3 10.3a", "", "", ""},
            {"11.0a", "", "", "11.0a"},
            {"12.1a", "", "", "12.1a"},
            {"12.1+PTX", "", "", "12.1+PTX"},
            {"5.0", "", "", ""},
            {"5.0 7.5 8.0 9.0", "7.5 8.0 9.0", "7.5 8.0 9.0", "7.5 8.0 9.0"},
            {"8.0+PTX", "8.0+PTX", "8.0+PTX", "8.0+PTX"},
            // Where the format would hand sm_70 to a compiler that refuses it, we refuse it first.
            {"7.0+PTX", "7.0+PTX", "7.0+PTX", ""},
            {"99999.0", "", "", ""},
            {"8.0", "8.0", "8.0", "8.0"},
            {"8.0 8.9", "8.0 8.9", "8.0 8.9", "8.0 8.9"},
            {"9.0+PTX 8.0", "8.0 9.0+PTX", "8.0 9.0+PTX", "8.0 9.0+PTX"},
            {"9.0a+PTX", "9.0a+PTX", "9.0a+PTX", "9.0a+PTX"},
        }));
    CAPTURE(requested);
    CHECK(kept(requested, cuda126()) == on126);
    CHECK(kept(requested, cuda128()) == on128);
    CHECK(kept(requested, cuda130()) == on130);
}

TEST_CASE("no request gives the whole list of the toolkit", "[backend][arch]") {
    CHECK(kept("", cuda130()) == "7.5 8.0 8.6 8.7 8.9 9.0 10.0 11.0 12.0 12.1+PTX");
    CHECK(choose_cuda_archs({}, cuda130()).refused.empty());
}

TEST_CASE("each architecture that is left out is listed with its reason", "[backend][arch]") {
    const ArchChoice choice =
        choose_cuda_archs(words("5.0 7.0+PTX 9.0 9.0a 10.3a 10.1 abc"), cuda130());
    CHECK(choice.kept == Strings{"9.0a"});
    CHECK(choice.refused == std::vector<RefusedArch>{
                                {"5.0", "CUDA 13.0 cannot compile it"},
                                {"7.0+PTX", "CUDA 13.0 cannot compile it"},
                                {"9.0", "'9.0a' takes its place"},
                                {"10.1", "CUDA 13.0 cannot compile it"},
                                {"10.3a", "CUDA 13.0 builds for no device that it would serve"},
                                {"abc", "it is not a CUDA capability"},
                            });
}

TEST_CASE("a capability of this grammar reads back", "[backend][arch]") {
    const auto text = GENERATE(
        values<std::string>({"7.5", "9.0a", "10.0f", "12.0+PTX", "9.0a+PTX", "0.0", "12.1"}));
    const auto arch = parse_cuda_arch(text);
    REQUIRE(arch);
    CHECK(arch->to_text() == text);
}

TEST_CASE("what the grammar does not hold is no capability", "[backend][arch]") {
    const auto text = GENERATE(values<std::string>({"",
                                                    "90",
                                                    "sm_90",
                                                    "9",
                                                    "9.",
                                                    ".0",
                                                    "9.0b",
                                                    "9.0A",
                                                    "9.0+ptx",
                                                    "9.0 ",
                                                    "9.0+PTX+PTX",
                                                    "9.0;8.0",
                                                    "09.0",
                                                    "9.00",
                                                    "123456.0"}));
    CAPTURE(text);
    CHECK_FALSE(parse_cuda_arch(text));
}

TEST_CASE("a spelling that no vendor ever used is refused with a suggestion", "[backend][arch]") {
    const auto [text, message, note] = GENERATE(table<std::string, std::string, std::string>({
        {"90", "'90' is not a CUDA capability", "did you mean '9.0'?"},
        {"sm_90a", "'sm_90a' is not a CUDA capability", "did you mean '9.0a'?"},
        {"compute_120", "'compute_120' is not a CUDA capability", "did you mean '12.0'?"},
        {"9.0+ptx", "'9.0+ptx' is not a CUDA capability", "did you mean '9.0+PTX'?"},
        {"9.0A", "'9.0A' is not a CUDA capability", "did you mean '9.0a'?"},
        {"8.0a", "no CUDA device has the capability '8.0a'", "did you mean '8.0'?"},
    }));
    const auto problem = check_arch(BackendId::cuda, text);
    REQUIRE(problem);
    CHECK(problem->message == message);
    REQUIRE_FALSE(problem->notes.empty());
    CHECK(problem->notes.front() == note);
}

TEST_CASE("capabilities far from all others get the grammar instead", "[backend][arch]") {
    const auto problem = check_arch(BackendId::cuda, "99999.0");
    REQUIRE(problem);
    const auto other = check_arch(BackendId::cuda, "turing");
    REQUIRE(other);
    CHECK(other->notes.back().find("major.minor") != std::string::npos);
}

TEST_CASE("everything that a toolkit can do was used by its vendor", "[backend][arch]") {
    for (const ToolkitArchs& toolkit : {cuda126(), cuda128(), cuda130()}) {
        for (const std::string& arch : toolkit.compiles) {
            CHECK_FALSE(check_arch(BackendId::cuda, arch));
        }
        for (const std::string& arch : toolkit.builds) {
            CHECK_FALSE(check_arch(BackendId::cuda, arch));
        }
    }
    CHECK_FALSE(check_arch(BackendId::cuda, "5.0"));
    CHECK_FALSE(check_arch(BackendId::cuda, "10.3a+PTX"));
    CHECK(check_arch(BackendId::cpu, "9.0"));
}

} // namespace kb::backend
