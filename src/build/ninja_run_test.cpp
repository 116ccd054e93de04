// SPDX-License-Identifier: Apache-2.0
#include "build/ninja_run.hpp"

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

} // namespace
} // namespace kb::build
