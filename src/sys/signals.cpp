// SPDX-License-Identifier: Apache-2.0
#include "sys/signals.hpp"

#include "base/assert.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace kb::sys {
namespace {

// A signal handler can reach nothing but globals. Lock-free atomics are safe in it.
std::atomic<bool> g_interrupted{false};
std::atomic<int> g_read_end{-1};
std::atomic<int> g_write_end{-1};

constexpr std::array<int, 3> kCaught{SIGINT, SIGTERM, SIGHUP};

extern "C" void kb_on_signal(int number) {
    const int saved = errno;
    if (g_interrupted.exchange(true) && number == SIGINT) {
        ::_exit(130); // the user insists: no clean-up, the next run sweeps
    }
    const int fd = g_write_end.load();
    if (fd >= 0) {
        const char byte = 1;
        // A full pipe is readable already, which is all that the byte is for.
        if (::write(fd, &byte, 1) < 0) {
            errno = saved;
            return;
        }
    }
    errno = saved;
}

void set_handler(int number, void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler =
        handler; // NOLINT(cppcoreguidelines-pro-type-union-access): POSIX spells it so
    sigemptyset(&action.sa_mask);
    action.sa_flags = 0; // no SA_RESTART: blocking calls come back with EINTR
    KB_ASSERT(::sigaction(number, &action, nullptr) == 0, "the signal numbers are valid");
}

} // namespace

InterruptGuard::InterruptGuard() {
    KB_ASSERT(g_write_end.load() < 0, "main makes one InterruptGuard");
    std::array<int, 2> ends{-1, -1};
    KB_ASSERT(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0, "a new process can open a pipe");
    g_interrupted = false;
    g_read_end = ends[0];
    g_write_end = ends[1];
    for (const int number : kCaught) {
        set_handler(number, kb_on_signal);
    }
    set_handler(SIGPIPE, SIG_IGN);
}

InterruptGuard::~InterruptGuard() {
    for (const int number : kCaught) {
        set_handler(number, SIG_DFL);
    }
    set_handler(SIGPIPE, SIG_DFL);
    ::close(g_write_end.exchange(-1));
    ::close(g_read_end.exchange(-1));
    g_interrupted = false;
}

bool interrupted() {
    return g_interrupted.load();
}

int interrupt_descriptor() {
    return g_read_end.load();
}

} // namespace kb::sys
