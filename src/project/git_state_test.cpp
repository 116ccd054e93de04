// SPDX-License-Identifier: Apache-2.0
#include "project/git_state.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

namespace kb::project {
namespace {

const sys::EnvironmentMap& environment() {
    static const sys::EnvironmentMap kEnvironment{{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                                  {"HOME", "/nonexistent"},
                                                  {"GIT_CONFIG_NOSYSTEM", "1"}};
    return kEnvironment;
}

void git(const test::TempDir& dir, std::vector<std::string> arguments) {
    arguments.insert(
        arguments.begin(),
        {"git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", dir.path().string()});
    const auto result = sys::real_process_runner().run({.argv = std::move(arguments)});
    REQUIRE(result.has_value());
    REQUIRE(result->status.ok());
}

TEST_CASE("git's state is commit and dirt, and build output is no dirt", "[project][git]") {
    const test::TempDir dir;
    sys::ProcessRunner& processes = sys::real_process_runner();
    CHECK_FALSE(read_git_state(processes, environment(), dir.path()).commit);
    git(dir, {"init", "-q"});
    test::write_text(dir / "a", "1");
    git(dir, {"add", "a"});
    git(dir, {"commit", "-q", "-m", "first"});
    const GitState clean = read_git_state(processes, environment(), dir.path());
    REQUIRE(clean.commit);
    CHECK(clean.commit->size() == 40);
    CHECK_FALSE(clean.is_dirty);
    test::write_text(dir / "build/torch-cpu/x", "1");
    test::write_text(dir / ".kernel-builder/x", "1");
    CHECK_FALSE(read_git_state(processes, environment(), dir.path()).is_dirty);
    test::write_text(dir / "new_source.cu", "1");
    CHECK(read_git_state(processes, environment(), dir.path()).is_dirty);
}

TEST_CASE("without git there is a reason and no commit", "[project][git]") {
    const test::TempDir dir;
    const GitState state =
        read_git_state(sys::real_process_runner(), {{"PATH", dir.path().string()}}, dir.path());
    CHECK_FALSE(state.commit);
    CHECK_FALSE(state.reason.empty());
}

} // namespace
} // namespace kb::project
