// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/support.hpp"
#include "sys/clock.hpp"
#include "sys/environment.hpp"
#include "sys/file_lock.hpp"
#include "sys/process.hpp"
#include "sys/signals.hpp"
#include "sys/unique_fd.hpp"
#include "sys/worker_pool.hpp"

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace kb;
using namespace kb::sys;

TEST_CASE("a descriptor is closed once by its last owner", "[sys][fd]") {
    UniqueFd a{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    const int number = a.get();
    REQUIRE(a);
    UniqueFd b{std::move(a)};
    CHECK(b.get() == number);
    CHECK(::fcntl(number, F_GETFD) >= 0);
    b = UniqueFd{};
    CHECK(::fcntl(number, F_GETFD) < 0);
}

TEST_CASE("times are written in UTC", "[sys][clock]") {
    CHECK(to_rfc3339(315532800) == "1980-01-01T00:00:00Z");
    CHECK(to_rfc3339(1796075130) == "2026-11-30T21:45:30Z");
    CHECK(real_clock().sleep(std::chrono::milliseconds{1}));
}

TEST_CASE("an unset and an empty variable look alike", "[sys][environment]") {
    const EnvironmentMap map{{"A", "1"}, {"B", ""}};
    CHECK(lookup(map, "A") == "1");
    CHECK_FALSE(lookup(map, "B"));
    CHECK_FALSE(lookup(map, "C"));
    CHECK(lookup(read_environment(), "PATH"));
}

TEST_CASE("a file lock excludes another holder and is freed by the end of its owner",
          "[sys][lock]") {
    const test::TempDir dir;
    auto held = FileLock::try_acquire(dir / "lock");
    REQUIRE(held);
    const auto second = FileLock::try_acquire(dir / "lock");
    REQUIRE(!second);
    CHECK(second.error().code == ErrorCode::transient);
    std::atomic<int> waits{0};
    std::jthread other{[&] {
        const auto waited = FileLock::acquire(dir / "lock", [&] { ++waits; });
        CHECK(waited.has_value());
    }};
    while (waits == 0) {
        std::this_thread::yield();
    }
    held = FileLock::try_acquire(dir / "other"); // frees the first
    other.join();
    CHECK(waits == 1);
    CHECK(FileLock::try_acquire(dir / "lock"));
}

TEST_CASE("an interrupt sets the flag, wakes sleepers and lock waiters", "[sys][signals]") {
    const test::TempDir dir;
    CHECK_FALSE(interrupted());
    const auto held = FileLock::acquire(dir / "lock");
    REQUIRE(held);
    const InterruptGuard guard;
    CHECK(interrupt_descriptor() >= 0);
    ::kill(::getpid(), SIGTERM);
    while (!interrupted()) {
        std::this_thread::yield();
    }
    CHECK_FALSE(real_clock().sleep(std::chrono::hours{1}));
    const auto waiter = FileLock::acquire(dir / "lock");
    REQUIRE(!waiter);
    CHECK(waiter.error().code == ErrorCode::cancelled);
}

TEST_CASE("every job of a pool runs exactly once whatever the number of threads", "[sys][pool]") {
    const unsigned threads = GENERATE(0U, 1U, 2U, 7U);
    std::vector<int> done(100, 0);
    parallel_for(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    CHECK(done == std::vector<int>(100, 1));
    parallel_for(0, threads, [](std::size_t) { FAIL("no job was given"); });
}
