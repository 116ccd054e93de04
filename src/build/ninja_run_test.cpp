// SPDX-License-Identifier: Apache-2.0
#include "build/ninja_run.hpp"

#include "build/workspace.hpp"
#include "support/catch.hpp"

#include <algorithm>

namespace kb::build {
namespace {

TEST_CASE("Ninja's output becomes progress and failures, however it is cut", "[build][ninja]") {
    const std::string output = "@kb 1 3 C++ a.cpp\n"
                               "@kb 2 3 C++ b.cpp\n"
                               "FAILED: tu/b.o \n"
                               "g++ -c b.cpp\n"
                               "b.cpp:1: error: no\n"
                               "@kb 3 3 C++ c.cpp\n"
                               "c.cpp:1: warning: not a failure\n"
                               "ninja: build stopped: subcommand failed.\n";
    const std::size_t piece = GENERATE(1UL, 7UL, 1000UL);
    std::vector<NinjaProgress> seen;
    NinjaParser parser{[&](const NinjaProgress& p) {
        seen.push_back(p);
    }};
    for (std::size_t i = 0; i < output.size(); i += piece) {
        parser.feed(std::string_view{output}.substr(i, piece));
    }
    parser.finish();
    REQUIRE(seen.size() == 3);
    CHECK(seen[1].finished == 2);
    CHECK(seen[1].total == 3);
    CHECK(seen[1].what == "C++ b.cpp");
    REQUIRE(parser.failures().size() == 1);
    CHECK(parser.failures()[0] == NinjaFailure{"tu/b.o", "g++ -c b.cpp\nb.cpp:1: error: no\n"});
    CHECK(parser.messages() == "ninja: build stopped: subcommand failed.\n");
    CHECK(parser.warnings() ==
          std::vector<StepWarning>{{"C++ c.cpp", "c.cpp:1: warning: not a failure\n"}});
}

TEST_CASE("a step that succeeds is heard when it warns", "[build][ninja]") {
    const auto [line, warns] = GENERATE(table<std::string, bool>(
        {{"a.cpp:1:2: warning: unused variable 'x' [-Wunused-variable]", true},
         {"a.cu(3): warning #177-D: variable \"x\" was declared but never referenced", true},
         {"ptxas warning : Registers are spilled to local memory in function 'f', 8 bytes", true},
         {"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
          "serialized due to the presence of Extern calls in the function 'f'",
          true},
         {"ptxas info    : Used 32 registers, 400 bytes cmem[0]", false},
         {"In file included from a.cu:1:", false}}));
    NinjaParser parser{{}};
    parser.feed("before any step: warning: not of a step\n@kb 1 1 CUDA a.cu [9.0]\nfirst\n" + line +
                "\nlast\n");
    parser.finish();
    CAPTURE(line);
    CHECK(parser.warnings() ==
          (warns ? std::vector<StepWarning>{{"CUDA a.cu [9.0]", "first\n" + line + "\nlast\n"}}
                 : std::vector<StepWarning>{}));
    CHECK(parser.failures().empty());
}

TEST_CASE("what a step says is bounded", "[build][ninja]") {
    NinjaParser parser{{}};
    parser.feed("@kb 1 1 C++ a.cpp\n");
    for (int i = 0; i < 1000; ++i) {
        parser.feed("a.cpp:1:2: warning: the same again and again\n");
    }
    parser.finish();
    REQUIRE(parser.warnings().size() == 1);
    CHECK(parser.warnings()[0].text.size() < kWarningBytes + 100);
    CHECK(parser.warnings()[0].text.ends_with("...\n"));
}

TEST_CASE("the sandbox of a build has one writable place besides the cache", "[build][ninja]") {
    const NinjaRequest request{.work = "/h/work",
                               .source = "/h/source",
                               .roots = {{.host = "/s/r", .inside = "/usr"}},
                               .targets = {"v"},
                               .jobs = 3,
                               .cache = "/h/cc"};
    const sandbox::SandboxSpec spec = ninja_sandbox(request);
    std::vector<std::string> writable;
    for (const sandbox::Mount& mount : spec.mounts) {
        if (mount.access == sandbox::Access::read_write) {
            writable.push_back(mount.inside);
        }
    }
    CHECK(writable == std::vector<std::string>{"/work", "/ccache"});
    CHECK(spec.argv == std::vector<std::string>{"/usr/bin/ninja", "-j", "3", "-k", "0", "v"});
    CHECK(spec.environment.at("kb_launch") == "ccache");
    NinjaRequest plain = request;
    plain.cache.clear();
    CHECK(ninja_sandbox(plain).environment.at("kb_launch") == "/work/launch/launch");
}

TEST_CASE("without mounts a build runs at the host's paths and writes the same two places",
          "[build][ninja]") {
    const NinjaRequest request{.work = "/h/work-plain",
                               .source = "/h/view/src",
                               .view = "/h/view",
                               .roots = {{.host = "/s/r", .inside = "/usr"}},
                               .environment = {{"PATH", "/h/view/bin:/bin"}},
                               .targets = {"v"},
                               .cache = "/h/ccache-plain",
                               .level = sandbox::Level::landlock};
    const sandbox::SandboxSpec spec = ninja_sandbox(request);
    std::vector<std::string> mounted;
    for (const sandbox::Mount& mount : spec.mounts) {
        CHECK(mount.access == sandbox::Access::read_write);
        CHECK(mount.host.string() == mount.inside);
        mounted.push_back(mount.inside);
    }
    CHECK(mounted == std::vector<std::string>{"/h/work-plain", "/h/ccache-plain"});
    CHECK(spec.links.empty());
    CHECK(spec.working_directory == "/h/work-plain");
    CHECK(spec.argv.front() == "/h/view/bin/ninja");
    CHECK(spec.environment.at("CCACHE_DIR") == "/h/ccache-plain");
    CHECK(spec.environment.at("CCACHE_PREFIX") == "launch");
    CHECK(spec.environment.at("PATH") == "/h/work-plain/launch:/h/view/bin:/bin");
}

TEST_CASE("a path with a colon cannot be in PATH and is refused where there are no mounts",
          "[build][ninja]") {
    NinjaRequest request{.work = "/h/work-plain",
                         .source = "/h/view/src",
                         .view = "/h/view",
                         .roots = {{.host = "/s/r", .inside = "/usr"}},
                         .level = sandbox::Level::plain};
    std::string named = "/h/a:b";
    SECTION("the project") {
        request.work = named;
    }
    SECTION("the store") {
        request.roots[0].host = named;
    }
    SECTION("the cache") {
        request.cache = named;
    }
    const auto ran = run_ninja(request, sys::real_process_runner(), {});
    REQUIRE_FALSE(ran);
    CHECK(ran.error().code == ErrorCode::unsupported);
    CHECK(ran.error().message ==
          "'/h/a:b' holds a ':', which sandbox level 'plain' cannot build with: move the project "
          "or the store, or use '--sandbox namespaces'");
}

TEST_CASE("what a weaker level made lies apart from what a stronger one uses",
          "[build][workspace]") {
    const Workspace strong{.state = "/k"};
    CHECK(strong.work() == "/k/work");
    CHECK(strong.source() == "/k/work/source");
    const Workspace chroot{.state = "/k", .level = sandbox::Level::chroot};
    CHECK(chroot.work() == "/k/work-chroot");
    CHECK(chroot.source() == "/k/work-chroot/source");
    const Workspace plain{.state = "/k", .level = sandbox::Level::plain};
    CHECK(plain.work() == "/k/work-plain");
    CHECK(plain.source() == "/k/view-plain/src");
    CHECK(plain.record("v") == strong.record("v"));
}

} // namespace
} // namespace kb::build
