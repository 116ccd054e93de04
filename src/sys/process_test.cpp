// SPDX-License-Identifier: Apache-2.0
#include "sys/process.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"
#include "sys/signals.hpp"

#include <csignal>
#include <thread>
#include <unistd.h>

using namespace kb;
using namespace kb::sys;

namespace {

ProcessResult shell(const std::string& script, ProcessSpec spec = {}) {
    spec.argv = {"sh", "-c", script};
    auto result = real_process_runner().run(spec);
    INFO((result ? std::string{} : result.error().to_text()));
    REQUIRE(result);
    return *result;
}

} // namespace

TEST_CASE("output, errors and the exit code of a program come back apart", "[sys][process]") {
    const ProcessResult result = shell("echo out; echo err >&2; exit 3");
    CHECK(result.out == "out\n");
    CHECK(result.err == "err\n");
    CHECK(result.status == ExitStatus{ExitStatus::Kind::exited, 3});
    CHECK(result.status.to_text() == "exit code 3");
    CHECK(result.peak_rss_bytes > 100'000);
}

TEST_CASE("a signal, a time-out and an exit are different results", "[sys][process]") {
    CHECK(shell("kill -9 $$").status == ExitStatus{ExitStatus::Kind::signalled, SIGKILL});
    CHECK(ExitStatus{ExitStatus::Kind::signalled, SIGKILL}.to_text() ==
          "killed by signal 9 (Killed)");
    ProcessSpec spec;
    spec.timeout = std::chrono::milliseconds{50};
    const ProcessResult late = shell("sleep 60", spec);
    CHECK(late.status.kind == ExitStatus::Kind::timed_out);
    CHECK(late.wall_seconds < 10);
}

TEST_CASE("a time-out reaches the whole process group", "[sys][process]") {
    const test::TempDir dir;
    ProcessSpec spec;
    spec.timeout = std::chrono::milliseconds{300};
    const std::string pid_file = (dir / "pid").string();
    shell("sleep 60 & echo $! > " + pid_file + "; wait", spec);
    const int pid = std::stoi(test::read_text(pid_file));
    // The orphan is reaped by init at its own pace; a zombie counts as gone.
    bool gone = false;
    for (int i = 0; i < 100 && !gone; ++i) {
        std::error_code ignored;
        const std::string stat = "/proc/" + std::to_string(pid) + "/stat";
        gone = !std::filesystem::exists(stat, ignored) ||
               test::read_text(stat).find(") Z") != std::string::npos;
        std::this_thread::sleep_for(std::chrono::milliseconds{gone ? 0 : 20});
    }
    CHECK(gone);
}

TEST_CASE("a missing program and a missing directory are told apart", "[sys][process]") {
    ProcessSpec spec;
    spec.argv = {"kb-no-such-program"};
    auto missing = real_process_runner().run(spec);
    REQUIRE(!missing);
    CHECK(missing.error().code == ErrorCode::not_found);
    CHECK(missing.error().message == "no program 'kb-no-such-program' in PATH");
    spec.argv = {"/kb/none"};
    missing = real_process_runner().run(spec);
    REQUIRE(!missing);
    CHECK(missing.error().code == ErrorCode::not_found);
    spec.argv = {"true"};
    spec.working_directory = "/kb/none";
    const auto nowhere = real_process_runner().run(spec);
    REQUIRE(!nowhere);
    CHECK(nowhere.error().code == ErrorCode::internal);
    CHECK(nowhere.error().message ==
          "entering '/kb/none' to run 'true': No such file or directory");
}

TEST_CASE("the environment is exactly the given one and input is read to its end",
          "[sys][process]") {
    ProcessSpec spec;
    spec.environment = EnvironmentMap{{"PATH", "/usr/bin:/bin"}, {"KB_X", "a b"}};
    CHECK(shell("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort", spec).out ==
          "KB_X=a b\nPATH=/usr/bin:/bin\n");
    spec.input = std::string(200'000, 'y');
    CHECK(shell("wc -c", spec).out == "200000\n");
    CHECK(shell("cat").out.empty());
}

TEST_CASE("long output is kept up to the limit and streamed whole", "[sys][process]") {
    std::size_t seen = 0;
    ProcessSpec spec;
    spec.max_capture = 10;
    spec.on_output = [&](std::string_view chunk) {
        seen += chunk.size();
    };
    const ProcessResult result = shell("head -c 300000 /dev/zero | tr '\\0' x", spec);
    CHECK(result.out == "xxxxxxxxxx");
    CHECK(seen == 300'000);
}

TEST_CASE("a program that leaves a daemon behind does not hold the caller", "[sys][process]") {
    ProcessSpec spec;
    spec.timeout = std::chrono::milliseconds{20'000};
    const ProcessResult result = shell("sleep 3 & echo started", spec);
    CHECK(result.status.ok());
    CHECK(result.out == "started\n");
    CHECK(result.wall_seconds < 2.5);
}

TEST_CASE("descriptors are closed in the child unless they are kept", "[sys][process]") {
    const int leaked = ::dup(1); // without O_CLOEXEC, as a careless library would
    REQUIRE(leaked > 2);
    const std::string probe = "test -e /proc/self/fd/" + std::to_string(leaked);
    CHECK(shell(probe).status.code == 1);
    ProcessSpec spec;
    spec.keep_descriptors = {leaked};
    CHECK(shell(probe, spec).status.code == 0);
    ::close(leaked);
}

TEST_CASE("a hook that fails before exec stops the start", "[sys][process]") {
    ProcessSpec spec;
    spec.argv = {"true"};
    spec.before_exec = [] {
        return EPERM;
    };
    const auto result = real_process_runner().run(spec);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::denied);
    CHECK(result.error().message == "confining 'true': Operation not permitted");
}

TEST_CASE("an interrupt stops the child and says so", "[sys][process]") {
    const InterruptGuard guard;
    ProcessSpec spec;
    spec.on_output = [](std::string_view) {
        ::kill(::getpid(), SIGINT);
    };
    const ProcessResult result = shell("echo go; sleep 60", spec);
    CHECK(result.status.kind == ExitStatus::Kind::interrupted);
    CHECK(result.out == "go\n");
    CHECK(interrupted());
    CHECK(result.wall_seconds < 10);
}

TEST_CASE("programs are found in absolute directories of PATH only", "[sys][process]") {
    const test::TempDir dir;
    test::write_text(dir / "bin/tool", "");
    CHECK_FALSE(find_program("tool", (dir / "bin").string()));
    std::filesystem::permissions(dir / "bin/tool", std::filesystem::perms::owner_all);
    CHECK(find_program("tool", "::bin:" + (dir / "bin").string()) == dir / "bin/tool");
}
