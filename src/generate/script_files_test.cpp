// SPDX-License-Identifier: Apache-2.0
#include "generate/script_files.hpp"

#include "generate/quote.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <cstdlib>
#include <iostream>

namespace kb::generate {

namespace {

using backend::VariantName;

VariantName variant(std::string_view text) {
    auto name = VariantName::parse(text);
    REQUIRE(name);
    return *name;
}

const std::string kCpu = "torch-stable-abi211-cpu-x86_64-linux";
const std::string kCuda = "torch-stable-abi211-cu130-x86_64-linux";

plan::Tu tu(std::string id, std::string_view source, std::string_view header) {
    plan::Tu result;
    result.id = id;
    result.source = RelPath::literal(source);
    result.object = "tu/" + id + ".o";
    result.headers = {RelPath::literal(header)};
    result.command = {"cp", "/src/" + std::string{source}, result.object};
    return result;
}

plan::PlannedVariant planned(const std::string& name, Words tus, Words command) {
    return {.name = variant(name),
            .ops_id = "_relu_x",
            .tus = std::move(tus),
            .link = {.output = "link/" + name + "/_relu_x.abi3.so", .command = std::move(command)}};
}

/// Two variants that share a unit; "compiling" copies, "linking" puts the objects one after
/// another.
plan::Plan two_variants() {
    plan::Plan plan;
    plan.kernel = "relu";
    plan.tus = {
        tu("0a", "a.cpp", "common.h"), tu("0b", "b b.cu", "common.h"), tu("0c", "c.cpp", "c.h")};
    plan.tus[1].kind = backend::SourceKind::cuda;
    plan.tus[1].keep_dir = "tu/0b.keep";
    plan.tus[1].archs = {"8.0", "9.0a"};
    plan.tus[2].before = {"echo", "c $1"};
    plan.tus[1].command = {"sh",
                           "-c",
                           "echo \"$1\" > tu/0b.keep/x && cat tu/0b.keep/x '/src/b b.cu' > $0",
                           "tu/0b.o",
                           "$arg \"'"};
    const auto link = [](const std::string& name, const std::string& objects) {
        return Words{"sh", "-c", "cat " + objects + " > link/" + name + "/_relu_x.abi3.so"};
    };
    plan.variants = {planned(kCpu, {"0a", "0c"}, link(kCpu, "tu/0a.o tu/0c.o")),
                     planned(kCuda, {"0a", "0b"}, link(kCuda, "tu/0a.o tu/0b.o"))};
    return plan;
}

std::string ninja_of(const plan::Plan& plan, const std::vector<VariantName>& names) {
    return script_files({.plan = plan, .variants = names})[0].content;
}

std::size_t count_of(std::string_view text, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos;
         at = text.find(what, at + 1)) {
        ++n;
    }
    return n;
}

} // namespace

TEST_CASE("a unit that two variants link has one edge", "[generate][script]") {
    const plan::Plan plan = two_variants();
    const std::string text = ninja_of(plan, {variant(kCpu), variant(kCuda)});
    CHECK(count_of(text, "build tu/") == 3);
    CHECK(count_of(text, "build tu/0a.o: compile /src/a.cpp | /src/common.h\n") == 1);
    CHECK(count_of(text, "build link/") == 2);
    CHECK(text.ends_with("\ndefault " + kCpu + " " + kCuda + "\n"));
}

TEST_CASE("only units of the wanted variants are in the graph", "[generate][script]") {
    const plan::Plan plan = two_variants();
    const std::string text = ninja_of(plan, {variant(kCpu)});
    CHECK(text.find("tu/0b.o") == std::string::npos);
    CHECK(text.find(kCuda) == std::string::npos);
}

TEST_CASE("the order of the variants does not matter", "[generate][script]") {
    const plan::Plan plan = two_variants();
    CHECK(ninja_of(plan, {variant(kCpu), variant(kCuda)}) ==
          ninja_of(plan, {variant(kCuda), variant(kCpu)}));
}

TEST_CASE("a noarch variant is a target without commands", "[generate][script]") {
    plan::Plan plan;
    plan.variants = {{.name = variant("torch-cuda")}};
    CHECK(ninja_of(plan, {variant("torch-cuda")}).find("build torch-cuda: phony\n") !=
          std::string::npos);
}

TEST_CASE("scripts are as they were agreed on", "[generate][script][golden]") {
    const plan::Plan plan = two_variants();
    const std::vector<VariantName> names{variant(kCpu), variant(kCuda)};
    const auto files = script_files(
        {.plan = plan,
         .variants = names,
         .mounts = {{"/usr", "/store/tree/aa bb"}, {"/toolchain/cuda-13.0", "/store/tree/cc"}}});
    REQUIRE(files.size() == 2);
    CHECK(files[1].mode == FileMode::executable);
    kb::test::golden("generate/script/build.ninja", files[0].content);
    kb::test::golden("generate/script/build.sh", files[1].content);
}

TEST_CASE("build.sh builds in the sandbox that it prints", "[generate][script]") {
    if (std::system("bwrap --unshare-all --ro-bind / / --dev /dev true >/dev/null 2>&1") != 0 ||
        std::system("test -x /usr/bin/ninja") != 0) {
        std::cout << "SKIPPED: bubblewrap or /usr/bin/ninja cannot be used here\n";
        return;
    }
    const kb::test::TempDir dir;
    const plan::Plan plan = two_variants();
    const std::vector<VariantName> names{variant(kCpu), variant(kCuda)};
    for (const FileImage& file :
         script_files({.plan = plan, .variants = names, .mounts = {{"/usr", "/nowhere"}}})) {
        kb::test::write_text(dir / file.path.text(), file.content);
    }
    kb::test::write_text(dir / "source/a.cpp", "A");
    kb::test::write_text(dir / "source/b b.cu", "B");
    kb::test::write_text(dir / "source/c.cpp", "C");
    kb::test::write_text(dir / "source/c.h", "");
    kb::test::write_text(dir / "source/common.h", "");
    const std::string script = "sh " + quote_shell((dir / "build.sh").string());
    // The root of the plan is not on this machine; another one is named.
    CHECK(std::system((script + " >/dev/null 2>&1").c_str()) != 0);
    REQUIRE(std::system((script + " -j 1 --root /usr=/usr " + kCuda + " >/dev/null").c_str()) == 0);
    CHECK(kb::test::read_text(dir / ("link/" + kCuda + "/_relu_x.abi3.so")) == "A$arg \"'\nB");
    CHECK_FALSE(std::filesystem::exists(dir / ("link/" + kCpu)));
    CHECK_FALSE(std::filesystem::exists(dir / "tu/0b.keep"));
    REQUIRE(std::system((script + " --root /usr=/usr >/dev/null").c_str()) == 0);
    CHECK(kb::test::read_text(dir / ("link/" + kCpu + "/_relu_x.abi3.so")) == "AC");
    CHECK(std::system((script + " --root /opt=/usr >/dev/null 2>&1").c_str()) != 0);
}

TEST_CASE("with a view the graph and the script name the paths of this machine",
          "[generate][script]") {
    const kb::test::TempDir dir;
    const plan::Plan plan = two_variants();
    const std::vector<VariantName> names{variant(kCpu), variant(kCuda)};
    const std::string view = (dir / "a view").string();
    const auto files =
        script_files({.plan = plan, .variants = names, .view = view, .level = "plain"});
    for (const FileImage& file : files) {
        kb::test::write_text(dir / file.path.text(), file.content);
    }
    // Outside of words that only the command understands ('/src/b b.cu' in a script).
    CHECK(files[0].content.find(" /src/") == std::string::npos);
    CHECK(files[0].content.find("a$ view/src/a.cpp") != std::string::npos);
    CHECK(files[1].content.find("bwrap") == std::string::npos);
    CHECK(files[1].content.find("level 'plain'") != std::string::npos);
    // "Compiling" copies; Ninja is this machine's.
    if (std::system("test -x /usr/bin/ninja") != 0) {
        std::cout << "SKIPPED: there is no /usr/bin/ninja here\n";
        return;
    }
    kb::test::write_text(dir / "a view/src/a.cpp", "A");
    kb::test::write_text(dir / "a view/src/c.cpp", "C");
    kb::test::write_text(dir / "a view/src/c.h", "");
    kb::test::write_text(dir / "a view/src/common.h", "");
    std::filesystem::create_directories(dir / "a view/bin");
    std::filesystem::create_symlink("/usr/bin/ninja", dir / "a view/bin/ninja");
    const std::string script = "sh " + quote_shell((dir / "build.sh").string());
    REQUIRE(std::system((script + " " + kCpu + " >/dev/null").c_str()) == 0);
    CHECK(kb::test::read_text(dir / ("link/" + kCpu + "/_relu_x.abi3.so")) == "AC");
}

TEST_CASE("the environment without mounts comes from the view and the work folder",
          "[generate][script]") {
    for (const auto& [name, value] : host_environment("/v", "/w")) {
        CAPTURE(name);
        if (name == "PATH") {
            CHECK(value == "/v/bin:/usr/bin:/bin");
        } else if (name == "HOME" || name == "TMPDIR") {
            CHECK(value == "/w/tmp");
        }
    }
    CHECK(host_environment("/v", "/w").size() == hermetic_environment().size());
}

} // namespace kb::generate
