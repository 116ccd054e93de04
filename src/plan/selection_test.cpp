// SPDX-License-Identifier: Apache-2.0
#include "plan/selection.hpp"

#include "base/text.hpp"
#include "plan/test_world.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace kb::plan {

namespace {

VersionSet versions(std::string_view text) {
    return VersionSet::parse(text).value();
}

std::vector<std::string> names(const VariantChoice& choice) {
    std::vector<std::string> result;
    for (const ChosenVariant& chosen : choice.chosen) {
        result.push_back(chosen.name.text());
    }
    return result;
}

bool has_refusal(const VariantChoice& choice, std::string_view name, std::string_view rule) {
    return std::ranges::any_of(choice.refused, [&](const RefusedVariant& refused) {
        return refused.what == name && refused.rule == rule;
    });
}

std::string rule_of(const VariantChoice& choice, std::string_view name) {
    for (const RefusedVariant& refused : choice.refused) {
        if (refused.what == name) {
            return refused.rule;
        }
    }
    return {};
}

using Names = std::vector<std::string>;

VariantChoice choose(std::string_view toml, const Selection& selection = {}) {
    return select(test::config_of(toml), default_support_matrix(), selection);
}

std::string with(std::string_view toml, std::string_view from, std::string_view to) {
    const std::string text = replace_all(toml, from, to);
    REQUIRE(text != toml);
    return text;
}

constexpr std::string_view kNoarchToml = R"([general]
name = "silu"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cuda", "rocm", "cpu"]

[torch-noarch]
)";

constexpr std::string_view kTvmToml = R"([general]
name = "silu"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[tvm-ffi]
src = ["a.cpp"]

[kernel.a]
backend = "cpu"
depends = []
src = ["b.cpp"]

[kernel.b]
backend = "cuda"
depends = []
src = ["b.cu"]
)";

} // namespace

TEST_CASE("a kernel of one torch version has a variant for each row of its backends",
          "[plan][selection]") {
    const VariantChoice choice = choose(test::kAotToml);
    CHECK(names(choice) == Names{"torch211-cxx11-cpu-x86_64-linux",
                                 "torch213-cxx11-cpu-x86_64-linux",
                                 "torch215-cxx11-cpu-x86_64-linux",
                                 "torch211-cxx11-cu130-x86_64-linux",
                                 "torch213-cxx11-cu130-x86_64-linux",
                                 "torch215-cxx11-cu130-x86_64-linux"});
    CHECK(choice.chosen.back().torch == Version{{2, 15}});
    CHECK(choice.chosen.back().archs() == Names{"8.0", "9.0", "12.0+PTX"});
}

TEST_CASE("a stable-ABI kernel has one variant for each toolkit, whatever torch comes",
          "[plan][selection]") {
    const VariantChoice choice = choose(test::kStableToml);
    CHECK(names(choice) ==
          Names{"torch-stable-abi211-cpu-x86_64-linux", "torch-stable-abi211-cu130-x86_64-linux"});
    // Compiled with the oldest headers that have the ABI.
    CHECK(choice.chosen[0].torch == Version{{2, 11}});
    CHECK(has_refusal(choice, "torch-stable-abi211-cpu-x86_64-linux", "same-variant"));

    SupportMatrix more = default_support_matrix();
    more.torch.push_back({.version = Version{{2, 16}}, .cxx_standard = 20});
    more.rows.push_back({.torch = Version{{2, 16}}, .platforms = {Platform{}}});
    const VariantChoice later = select(test::config_of(test::kStableToml), more, {});
    CHECK(later.chosen == choice.chosen);
}

TEST_CASE("stable-ABI variants of a mixed kernel stand first", "[plan][selection]") {
    const VariantChoice choice = choose(
        with(test::kStableToml, "stable-abi = \"2.11\"", "stable-abi = { cuda = \"2.12\" }"));
    CHECK(names(choice) == Names{"torch-stable-abi212-cu130-x86_64-linux",
                                 "torch211-cxx11-cpu-x86_64-linux",
                                 "torch213-cxx11-cpu-x86_64-linux",
                                 "torch215-cxx11-cpu-x86_64-linux"});
    // 2.12 is not in the bundle: the next version that has its ABI lends the headers.
    CHECK(choice.chosen[0].torch == Version{{2, 13}});
}

TEST_CASE("a kernel of Python files has one variant for each backend", "[plan][selection]") {
    const VariantChoice choice = choose(kNoarchToml);
    CHECK(names(choice) == Names{"torch-cpu", "torch-cuda", "torch-rocm"});
    CHECK(choice.chosen[0].sections.empty());
    CHECK(names(choose(kNoarchToml, {.torch = versions(">=2.13")})).size() == 3);
    CHECK(names(choose(kNoarchToml, {.cuda = versions("13")})) == Names{"torch-cuda"});
    CHECK(names(choose(kNoarchToml, {.backends = {BackendId::rocm}})) == Names{"torch-rocm"});
}

TEST_CASE("a tvm-ffi kernel is built from the rows that have tvm-ffi", "[plan][selection]") {
    const VariantChoice choice = choose(kTvmToml);
    CHECK(names(choice) == Names{"tvm-ffi01-cpu-x86_64-linux", "tvm-ffi01-cu130-x86_64-linux"});
    CHECK(choice.chosen[0].torch == Version{});
}

TEST_CASE("each refusal names its rule", "[plan][selection]") {
    const VariantChoice choice = choose(test::kAotToml);
    CHECK(rule_of(choice, "torch213-cxx11-cu126-x86_64-linux") == "no-toolkit");
    CHECK(rule_of(choice, "torch213-cxx11-cu130-aarch64-linux") == "cross-platform");
    CHECK(rule_of(choice, "torch212-cxx11-cpu-x86_64-linux") == "not-in-bundle");
    CHECK(rule_of(choice, "torch215-cxx11-cu132-x86_64-linux") == "not-in-bundle");

    const std::string bounded =
        with(test::kAotToml,
             "[torch]",
             "[general.cuda]\nmaxver = \"12.9\"\n\n[torch]\nminver = \"2.13\"");
    const VariantChoice fewer = choose(bounded);
    CHECK(names(fewer) ==
          Names{"torch213-cxx11-cpu-x86_64-linux", "torch215-cxx11-cpu-x86_64-linux"});
    CHECK(rule_of(fewer, "torch211-cxx11-cpu-x86_64-linux") == "torch-bounds");
    CHECK(rule_of(fewer, "torch213-cxx11-cu130-x86_64-linux") == "backend-bounds");

    const VariantChoice stable =
        choose(with(test::kStableToml, "stable-abi = \"2.11\"", "stable-abi = \"2.13\""));
    CHECK(names(stable).front() == "torch-stable-abi213-cpu-x86_64-linux");
    CHECK(has_refusal(stable, "torch-stable-abi213-cpu-x86_64-linux", "same-variant"));
    CHECK(has_refusal(stable, "torch-stable-abi213-cpu-x86_64-linux", "stable-abi"));

    const VariantChoice unlisted =
        choose(with(test::kAotToml, "[\"cpu\", \"cuda\"]", "[\"cpu\", \"metal\"]"));
    CHECK(rule_of(unlisted, "torch-metal") == "no-section");
    CHECK(names(unlisted).size() == 3);
}

TEST_CASE("variants for another platform are built when it is named", "[plan][selection]") {
    Selection arm;
    arm.platforms = {Platform{.cpu = backend::Cpu::aarch64, .os = backend::Os::linux}};
    const VariantChoice versioned = choose(test::kAotToml, arm);
    CHECK(names(versioned) == Names{"torch213-cxx11-cpu-aarch64-linux"});
    CHECK(rule_of(versioned, "torch213-cxx11-cu130-aarch64-linux") == "no-toolkit");
    const VariantChoice stable = choose(test::kStableToml, arm);
    CHECK(names(stable) == Names{"torch-stable-abi211-cpu-aarch64-linux"});
    // The headers of a row that there is for this platform.
    CHECK(stable.chosen[0].torch == Version{{2, 13}});
}

TEST_CASE("ROCm 5.7 is built when it is named, for the stable ABI alone", "[plan][selection]") {
    const auto rocm = [](std::string_view toml) {
        return replace_all(replace_all(std::string{toml}, "\"cuda\"", "\"rocm\""),
                           "cuda-capabilities = [\"8.0\", \"9.0\", \"12.0+PTX\"]",
                           "rocm-archs = [\"gfx90a\"]");
    };
    Selection named;
    named.rocm = VersionSet::parse("5.7").value();
    CHECK(names(choose(rocm(test::kStableToml), named)) ==
          Names{"torch-stable-abi211-rocm57-x86_64-linux"});
    const VariantChoice bundle = choose(rocm(test::kStableToml));
    CHECK(has_refusal(bundle, "torch-stable-abi211-rocm57-x86_64-linux", "not-in-bundle"));
    CHECK(has_refusal(bundle, "torch-stable-abi211-rocm72-x86_64-linux", "no-toolkit"));
    std::string aot = replace_all(rocm(test::kAotToml), "cuda-flags", "hip-flags");
    const VariantChoice versioned = choose(aot, named);
    CHECK(names(versioned).empty());
    CHECK(rule_of(versioned, "torch211-cxx11-rocm57-x86_64-linux") == "stable-abi-only");
}

TEST_CASE("every rule has a meaning, and the page of list-variants has the same",
          "[plan][selection]") {
    const std::string page =
        kb::test::read_text(kb::test::source_dir() / "docs/commands/list-variants.md");
    for (const SelectionRule& rule : selection_rules()) {
        CAPTURE(rule.name);
        CHECK(page.find("| `" + std::string{rule.name} + "` | ") != std::string::npos);
    }
    Selection all;
    all.bundle_only = false;
    for (const Selection& selection : {Selection{}, all, Selection{.latest = true}}) {
        for (const RefusedVariant& refused : choose(test::kStableToml, selection).refused) {
            CHECK(std::ranges::any_of(selection_rules(), [&](const SelectionRule& rule) {
                return rule.name == refused.rule;
            }));
        }
    }
}

TEST_CASE("a toolkit that refuses the host compiler gives no variant", "[plan][selection]") {
    SupportMatrix matrix = default_support_matrix();
    for (ToolkitRow& row : matrix.toolkits) {
        if (row.archs.name == "CUDA 13.0") {
            row.host_compiler_max = Version{{11}};
        }
    }
    const VariantChoice choice = select(test::config_of(test::kAotToml), matrix, {});
    CHECK(names(choice).size() == 3);
    CHECK(rule_of(choice, "torch213-cxx11-cu130-x86_64-linux") == "host-compiler");
}

TEST_CASE("a toolkit that brings a host compiler is judged by that", "[plan][selection]") {
    const Selection selection{.torch = versions("2.7"), .cuda = versions("11.8")};
    CHECK(names(choose(test::kAotToml, selection)) == Names{"torch27-cxx11-cu118-x86_64-linux"});
    SupportMatrix matrix = default_support_matrix();
    for (ToolkitRow& row : matrix.toolkits) {
        if (row.archs.name == "CUDA 11.8") {
            row.host_compiler.reset(); // g++ 12 is too new for it
        }
    }
    const VariantChoice choice = select(test::config_of(test::kAotToml), matrix, selection);
    CHECK(names(choice).empty());
    CHECK(rule_of(choice, "torch27-cxx11-cu118-x86_64-linux") == "host-compiler");
}

TEST_CASE("a version that no name can hold is refused by that", "[plan][selection]") {
    SupportMatrix matrix = default_support_matrix();
    matrix.toolkits.push_back({.backend = BackendId::cuda,
                               .version = Version{{13, 10}},
                               .archs = {.builds = {"9.0"}, .compiles = {}, .name = "CUDA 13.10"}});
    matrix.rows.push_back({.torch = Version{{2, 15}},
                           .backend = BackendId::cuda,
                           .backend_version = Version{{13, 10}},
                           .platforms = {Platform{}}});
    const VariantChoice choice = select(test::config_of(test::kAotToml), matrix, {});
    CHECK(names(choice).size() == 6);
    CHECK(rule_of(choice, "torch 2.15 with CUDA 13.10") == "no-name");
}

TEST_CASE("selection flags narrow the list and all must hold", "[plan][selection]") {
    const auto chosen = [](const Selection& selection) {
        return names(choose(test::kAotToml, selection));
    };
    CHECK(chosen({.torch = versions("2.13")}) ==
          Names{"torch213-cxx11-cpu-x86_64-linux", "torch213-cxx11-cu130-x86_64-linux"});
    CHECK(chosen({.torch = versions(">=2.13"), .cuda = versions("13.*")}) ==
          Names{"torch213-cxx11-cu130-x86_64-linux", "torch215-cxx11-cu130-x86_64-linux"});
    CHECK(chosen({.cuda = versions("12")}).empty());
    CHECK(chosen({.rocm = versions("7.2")}).empty());
    CHECK(chosen({.backends = {BackendId::cpu}, .latest = true}) ==
          Names{"torch215-cxx11-cpu-x86_64-linux"});
    CHECK(chosen({.latest = true}) ==
          Names{"torch215-cxx11-cpu-x86_64-linux", "torch215-cxx11-cu130-x86_64-linux"});
    CHECK(chosen({.platforms = {{.cpu = backend::Cpu::aarch64}}}) ==
          Names{"torch213-cxx11-cpu-aarch64-linux"});
    CHECK(
        chosen({.platforms = {{.cpu = backend::Cpu::aarch64, .os = backend::Os::darwin}}}).empty());
    CHECK(chosen({.variants = {"torch213-cxx11-cpu-x86_64-linux"}}) ==
          Names{"torch213-cxx11-cpu-x86_64-linux"});
    CHECK(chosen({.archs = {"9.0"}, .latest = true}) == Names{"torch215-cxx11-cu130-x86_64-linux"});
    CHECK(chosen({.archs = {"7.5"}}).empty());
    CHECK(chosen({.archs = {"12.1", "8.6"}, .latest = true}) ==
          Names{"torch215-cxx11-cu130-x86_64-linux"});
}

TEST_CASE("a row outside the bundle is built when it is asked for exactly", "[plan][selection]") {
    const auto chosen = [](const Selection& selection) {
        return names(choose(test::kAotToml, selection));
    };
    CHECK(chosen({.torch = versions("2.12"), .backends = {BackendId::cpu}}) ==
          Names{"torch212-cxx11-cpu-x86_64-linux"});
    CHECK(chosen({.cuda = versions("13.2"), .latest = true}) ==
          Names{"torch215-cxx11-cu132-x86_64-linux"});
    CHECK(chosen({.variants = {"torch215-cxx11-cu132-x86_64-linux"}}) ==
          Names{"torch215-cxx11-cu132-x86_64-linux"});
    CHECK(chosen({.torch = versions(">=2.12"), .backends = {BackendId::cpu}}).size() == 2);
    Selection all;
    all.bundle_only = false;
    CHECK(chosen(all).size() == 25);
    CHECK(chosen({.torch = versions("2.9")}) ==
          Names{"torch29-cxx11-cpu-x86_64-linux", "torch29-cxx11-cu130-x86_64-linux"});
}

TEST_CASE("a section below its cuda-minver is skipped and says so", "[plan][selection]") {
    const std::string toml =
        with(test::kAotToml, "cuda-flags =", "cuda-minver = \"13.1\"\ncuda-flags =");
    const VariantChoice choice = choose(toml, {.torch = versions("2.15"), .bundle_only = false});
    for (const ChosenVariant& chosen : choice.chosen) {
        if (chosen.name.variant().backend == BackendId::cuda) {
            const bool old = chosen.name.variant().backend_version < Version{{13, 1}};
            CHECK(chosen.sections.front().skipped == old);
            CHECK(chosen.archs().empty() == old);
        }
    }
}

TEST_CASE("the choice does not depend on the order of the matrix", "[plan][selection]") {
    const config::Config config = test::config_of(test::kAotToml);
    SupportMatrix matrix = default_support_matrix();
    const VariantChoice expected = select(config, matrix, {});
    for (int round = 0; round < 20; ++round) {
        std::ranges::rotate(matrix.rows, matrix.rows.begin() + 7);
        std::ranges::rotate(matrix.toolkits, matrix.toolkits.begin() + 3);
        std::ranges::reverse(matrix.torch);
        CHECK(select(config, matrix, {}) == expected);
    }
}

TEST_CASE("the machine's own variant is the best that runs on it", "[plan][selection]") {
    const auto best = [](std::string_view toml, const HostFacts& host) {
        const VariantChoice choice = choose(toml);
        const auto index = best_for_host(choice, host);
        return index ? choice.chosen[*index].name.text() : std::string{};
    };
    CHECK(best(test::kAotToml, {}) == "torch215-cxx11-cpu-x86_64-linux");
    CHECK(best(test::kStableToml, {}) == "torch-stable-abi211-cpu-x86_64-linux");
    CHECK(best(test::kAotToml, {.backend = BackendId::cuda}) ==
          "torch215-cxx11-cu130-x86_64-linux");
    CHECK(best(test::kAotToml, {.backend = BackendId::cuda, .backend_version = Version{{12, 9}}}) ==
          "torch215-cxx11-cpu-x86_64-linux");
    CHECK(best(test::kAotToml, {.platform = {.cpu = backend::Cpu::aarch64}}).empty());
    CHECK(best(kNoarchToml, {.backend = BackendId::rocm}) == "torch-rocm");
}

TEST_CASE("device code serves the devices that its makers say", "[plan][selection]") {
    const auto [code, device, expected] = GENERATE(table<std::string, std::string, bool>({
        {"9.0", "9.0", true},
        {"8.0", "8.6", true},
        {"8.6", "8.0", false},
        {"8.0", "9.0", false},
        {"8.0+PTX", "9.0", true},
        {"8.0+PTX", "7.5", false},
        {"9.0a", "9.0", true},
        {"10.0a", "10.3", false},
        {"10.0f", "10.3", true},
        {"10.0f", "12.0", false},
        {"gfx90a", "gfx90a", true},
        {"gfx90a", "gfx942", false},
    }));
    CAPTURE(code, device);
    CHECK(serves_device(std::vector<std::string>{code}, device) == expected);
}

} // namespace kb::plan
