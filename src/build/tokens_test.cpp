// SPDX-License-Identifier: Apache-2.0
#include "build/tokens.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"
#include "sys/process.hpp"

#include <thread>

namespace kb::build {
namespace {

constexpr std::uint64_t kGib = 1UL << 30U;

TEST_CASE("memory becomes tokens that fit a pipe", "[build][tokens]") {
    CHECK(token_size(8 * kGib).unit_mib == 1);
    CHECK(token_size(8 * kGib).total == 8192);
    CHECK(token_size(2048 * kGib).total <= 60000);
    CHECK(token_size(2048 * kGib).unit_mib * token_size(2048 * kGib).total > 2000 * 1024);
    CHECK(token_size(0).total == 1);
}

TEST_CASE("the log is read line by line and broken lines are left out", "[build][tokens]") {
    const auto log = parse_launch_log(
        "tu/a.o\t0\t0\t1024\t1500\t250\t2000\t1\nbroken\ntu/b.o\t-1\t9\t10\t0\t0\t1\t2\n");
    REQUIRE(log.size() == 2);
    CHECK(log[0] == LaunchRecord{.object = "tu/a.o",
                                 .peak_bytes = 1U << 20U,
                                 .user_seconds = 1.5,
                                 .system_seconds = 0.25,
                                 .wall_seconds = 2.0});
    CHECK(log[1].signal == 9);
    CHECK(log[1].runs == 2);
}

sys::ProcessResult
launch(const test::TempDir& dir, const std::string& object, const std::string& script) {
    sys::ProcessSpec spec{
        .argv = {(dir / "pool/launch").string(), "/bin/sh", "-c", script, "sh", "-o", object}};
    spec.environment =
        sys::EnvironmentMap{{"KB_LAUNCH_DIR", (dir / "pool").string()}, {"PATH", "/usr/bin:/bin"}};
    return sys::real_process_runner().run(spec).value();
}

TEST_CASE("the launcher passes on the exit code and logs what was used", "[build][tokens]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const TokenPool pool =
        TokenPool::open(fs, dir / "pool", kGib, {{"tu/a.o", 100UL << 20U}}).value();
    CHECK(launch(dir, "tu/a.o", "exit 7").status.code == 7);
    CHECK(launch(dir, "tu/b.o", "exit 0").status.ok());
    const auto log = pool.read_log(fs).value();
    REQUIRE(log.size() == 2);
    CHECK(log[0].exit_code == 7);
    CHECK(log[0].peak_bytes > 0);
    CHECK(log[1].object == "tu/b.o");
}

TEST_CASE("a killed compiler is run once more, alone", "[build][tokens]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const TokenPool pool = TokenPool::open(fs, dir / "pool", 4 * kGib, {}).value();
    const std::string once = "if [ -e " + (dir / "again").string() + " ]; then exit 0; fi; : > " +
                             (dir / "again").string() + "; kill -9 $$";
    CHECK(launch(dir, "tu/a.o", once).status.ok());
    CHECK(pool.read_log(fs).value().at(0).runs == 2);
    const sys::ProcessResult dead = launch(dir, "tu/b.o", "kill -9 $$");
    CHECK(dead.status.kind == sys::ExitStatus::Kind::signalled);
}

TEST_CASE("two compilers that need all memory do not run at once", "[build][tokens]") {
    const test::TempDir dir;
    sys::FileSystem& fs = sys::real_file_system();
    const TokenPool pool =
        TokenPool::open(fs, dir / "pool", kGib, {{"a", kGib}, {"b", kGib}}).value();
    // Each fails when it sees the other's mark: that can only happen when both run.
    const std::string mark = (dir / "mark").string();
    const std::string script = "mkdir " + mark + " || exit 9; sleep 0.2; rmdir " + mark;
    sys::ProcessResult first;
    std::jthread other{[&] {
        first = launch(dir, "a", script);
    }};
    const sys::ProcessResult second = launch(dir, "b", script);
    other.join();
    CHECK(first.status.ok());
    CHECK(second.status.ok());
}

} // namespace
} // namespace kb::build
