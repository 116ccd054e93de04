// SPDX-License-Identifier: Apache-2.0
#include "build/import_check.hpp"

#include "support/catch.hpp"
#include "support/check_inputs.hpp"
#include "support/support.hpp"

namespace kb::build {
namespace {

backend::Variant cpu() {
    return test::variant_of("torch-stable-abi211-cpu-x86_64-linux");
}

backend::Variant cuda() {
    return test::variant_of("torch211-cxx11-cu130-x86_64-linux");
}

ImportFacts facts() {
    return {.torch = Version{{2, 11, 0}}, .torch_cuda = Version{{13, 0}}};
}

/// "check subject" of each finding.
std::string judge(const backend::Variant& variant, const OpFacts& op) {
    ImportFacts all = facts();
    all.ops = {op};
    std::string out;
    for (const check::Finding& finding : judge_ops(variant, "_k", all)) {
        CHECK_FALSE(finding.message.empty());
        CHECK_FALSE(finding.next_step.empty());
        out += finding.check + " " + finding.subject + "\n";
    }
    return out;
}

TEST_CASE("operators are in their namespace, implemented and traceable", "[build][import]") {
    CHECK(judge(cpu(), {.name = "_k::f", .keys = {"CPU", "Meta"}, .fake = true}).empty());
    CHECK(judge(cpu(), {.name = "_k::f", .keys = {"CompositeImplicitAutograd"}, .fake = true})
              .empty());
    CHECK(judge(cuda(), {.name = "_k::f", .keys = {"CPU"}, .fake = true}) ==
          "op-implementation _k::f\n");
    CHECK(judge(cpu(), {.name = "_k::f", .keys = {"CPU"}}) == "op-fake _k::f\n");
    CHECK(judge(cpu(), {.name = "mine::f.out", .keys = {"CPU"}, .fake = true}) ==
          "op-namespace mine::f.out\n");
    CHECK(judge(cpu(), {.name = "_k::f"}) == "op-implementation _k::f\nop-fake _k::f\n");
}

TEST_CASE("a torch that the variant is not for says nothing", "[build][import]") {
    CHECK(import_gap(cpu(), facts()).empty());
    CHECK(import_gap(cuda(), facts()).empty());
    ImportFacts other = facts();
    other.torch = Version{{2, 10, 1}};
    CHECK(import_gap(cpu(), other) == "it is for torch 2.11 and newer, this is 2.10");
    CHECK(import_gap(cuda(), other) == "it is for torch 2.11, this is 2.10");
    other = facts();
    other.torch_cuda = std::nullopt;
    CHECK(import_gap(cuda(), other) == "this torch is built without CUDA");
    CHECK(import_gap(cpu(), {}) == "this Python has no torch");
}

TEST_CASE("a child that cannot answer is an error, a failing import a result", "[build][import]") {
    const test::TempDir dir;
    const auto ask = [&](const std::string& python) {
        return import_variant(sys::real_process_runner(),
                              {.python = python, .directory = dir.path(), .id = "_k"});
    };
    CHECK_FALSE(ask((dir / "none").string()));
    test::write_text(dir / "silent", "#!/bin/sh\nexit 3\n");
    test::write_text(
        dir / "fails",
        "#!/bin/sh\necho noise\necho '{\"ops\": [], \"error\": \"ImportError: x\"}'\n");
    test::write_text(dir / "dies", "#!/bin/sh\nkill -SEGV $$\n");
    for (const char* name : {"silent", "fails", "dies"}) {
        REQUIRE(sys::real_file_system().set_mode(dir / name, 0755));
    }
    CHECK_FALSE(ask((dir / "silent").string()));
    const auto fails = ask((dir / "fails").string());
    REQUIRE(fails);
    CHECK(fails->error == "ImportError: x");
    const auto dies = ask((dir / "dies").string());
    REQUIRE(dies);
    CHECK(dies->error.find("killed by signal 11") != std::string::npos);
}

TEST_CASE("the torch of a nightly build has a version", "[build][import]") {
    const test::TempDir dir;
    test::write_text(dir / "python",
                     "#!/bin/sh\necho '{\"ops\": [], \"torch\": \"2.10.0.dev20251001+cu128\", "
                     "\"cuda\": \"12.8\"}'\n");
    REQUIRE(sys::real_file_system().set_mode(dir / "python", 0755));
    const auto facts =
        import_variant(sys::real_process_runner(),
                       {.python = (dir / "python").string(), .directory = dir.path(), .id = "_k"});
    REQUIRE(facts);
    CHECK(facts->torch == Version{{2, 10, 0}});
    CHECK(facts->torch_cuda == Version{{12, 8}});
}

} // namespace
} // namespace kb::build
