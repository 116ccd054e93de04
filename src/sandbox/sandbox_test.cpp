// SPDX-License-Identifier: Apache-2.0
#include "sandbox/confine.hpp"
#include "sandbox/landlock.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace kb::sandbox {
namespace {

const sys::EnvironmentMap& host_environment() {
    static const sys::EnvironmentMap kEnvironment{
        {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}};
    return kEnvironment;
}

/// False, with a line that the runner counts as a skip, when this machine does not have the level.
bool has_level(Level level) {
    const Probe found =
        probe(level, sys::real_file_system(), sys::real_process_runner(), host_environment());
    if (!found.is_available) {
        std::printf("SKIPPED: sandbox level %s is not available here: %s\n",
                    std::string{to_text(level)}.c_str(),
                    found.reason.c_str());
    }
    return found.is_available;
}

/// The host's own /usr with a writable /work: enough for shell scripts that try to get out.
SandboxSpec spec_of(const test::TempDir& dir, const std::string& script) {
    std::filesystem::create_directories(dir / "work");
    return {.mounts = {{.host = "/usr", .inside = "/usr"},
                       {.host = dir / "work", .inside = "/work", .access = Access::read_write}},
            .links = {{.inside = "/bin", .target = "usr/bin"},
                      {.inside = "/lib", .target = "usr/lib"},
                      {.inside = "/lib64", .target = "usr/lib64"}},
            .environment = {{"PATH", "/usr/bin:/bin"}, {"KEPT", "yes"}},
            .working_directory = "/work",
            .argv = {"/bin/sh", "-c", script}};
}

sys::ProcessResult run_at(Level level, const test::TempDir& dir, const std::string& script) {
    std::filesystem::create_directories(dir / "scratch");
    const ConfineTools tools{.path_variable = host_environment().at("PATH"),
                             .self = "/nowhere",
                             .scratch = dir / "scratch"};
    const sys::ProcessSpec process = confine(spec_of(dir, script), level, tools).value();
    return sys::real_process_runner().run(process).value();
}

TEST_CASE("levels have names that parse back, strongest first", "[sandbox][level]") {
    for (const Level level : kLevels) {
        CHECK(parse_level(to_text(level)) == level);
    }
    CHECK_FALSE(parse_level("none"));
    CHECK(Level::plain < Level::landlock);
    CHECK(Level::chroot < Level::namespaces);
}

TEST_CASE("inside, the world is the same everywhere", "[sandbox]") {
    const Level level = GENERATE(Level::namespaces, Level::chroot);
    if (!has_level(level)) {
        return;
    }
    const test::TempDir dir;
    const sys::ProcessResult result =
        run_at(level, dir, "pwd; echo $KEPT; env | wc -l; echo done > result; exit 3");
    CAPTURE(result.err);
    CHECK(result.status.code == 3);
    CHECK(result.out.starts_with("/work\nyes\n"));
    CHECK(test::read_text(dir / "work/result") == "done\n");
}

TEST_CASE("the host's name, user and process ids do not show in namespaces", "[sandbox]") {
    if (!has_level(Level::namespaces)) {
        return;
    }
    const test::TempDir dir;
    CHECK(run_at(Level::namespaces, dir, "uname -n; id -u; id -g").out == "kbuild\n1000\n1000\n");
}

TEST_CASE("a level whose program is missing says which package has it", "[sandbox]") {
    const test::TempDir dir;
    const Result<sys::ProcessSpec> result =
        confine(spec_of(dir, "true"), Level::namespaces, {.path_variable = dir.path().string()});
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::unsupported);
    CHECK(result.error().message.find("apt-get install bubblewrap") != std::string::npos);
}

TEST_CASE("landlock lets a process write only where it may", "[sandbox][escape]") {
    if (!has_level(Level::landlock)) {
        return;
    }
    const test::TempDir dir;
    std::filesystem::create_directories(dir / "allowed");
    const pid_t child = ::fork();
    if (child == 0) {
        const bool applied = apply_landlock({dir / "allowed"}).has_value();
        std::FILE* inside = std::fopen((dir / "allowed/a").c_str(), "w");
        std::FILE* outside = std::fopen((dir / "b").c_str(), "w");
        ::_exit(applied && inside != nullptr && outside == nullptr ? 0 : 1);
    }
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

} // namespace
} // namespace kb::sandbox
