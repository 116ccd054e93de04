// SPDX-License-Identifier: Apache-2.0
// The compiler launcher: runs one compiler under memory tokens and logs what it used. It is linked
// statically, compiled into kernel-builder and put into the work folder, since the sandbox holds no
// library of ours.
//
// usage: launch COMPILER ARG...   (ccache calls it so, through CCACHE_PREFIX: the cache is asked
// before memory is)
//
// KB_LAUNCH_DIR names a folder with
//   tokens   FIFO, one byte per `unit` MiB that may be used; a taker holds the lock while it reads,
//   so two takers cannot
//            each hold half of what both need
//   lock     taken around reading
//   sizes    "unit MIB", "total BYTES", then "KEY BYTES" lines; KEY is the object file; BYTES are
//   tokens log      one line per run: object, exit code, signal, peak KiB, user ms, system ms, wall
//   ms, runs
// Without KB_LAUNCH_DIR the compiler is simply run.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kCannotRun = 127;

struct Sizes {
    std::size_t unit_mib = 1;
    std::size_t total = 0;
    std::size_t wanted = 0;
};

struct Outcome {
    int status = 0;
    rusage usage{};
    long wall_ms = 0;
};

std::string read_all(const std::string& path) {
    std::string text;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return text;
    }
    char buffer[65536];
    for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return text;
}

/// Tokens for `object` from the file, or by kind of compiler when it was never seen.
Sizes read_sizes(const std::string& dir, std::string_view object, std::string_view compiler) {
    Sizes sizes;
    // Measured: nvcc on a torch-free kernel 340 MiB, g++ on torch's full headers 1260 MiB.
    std::size_t guess_mib = compiler.find("nvcc") != std::string_view::npos ? 1200 : 700;
    const std::string text = read_all(dir + "/sizes");
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : rest.size());
        const std::size_t space = line.rfind(' ');
        if (space == std::string_view::npos) {
            continue;
        }
        const std::string_view key = line.substr(0, space);
        const std::size_t value =
            std::strtoul(std::string{line.substr(space + 1)}.c_str(), nullptr, 10);
        if (key == "unit") {
            sizes.unit_mib = value;
        } else if (key == "total") {
            sizes.total = value;
        } else if (key == object) {
            sizes.wanted = value;
        }
    }
    if (sizes.wanted == 0) {
        sizes.wanted = (guess_mib + sizes.unit_mib - 1) / sizes.unit_mib;
    }
    // More than there is would wait for ever.
    sizes.wanted = sizes.wanted < sizes.total ? sizes.wanted : sizes.total;
    return sizes;
}

bool take(const std::string& dir, int fifo, std::size_t n) {
    const int lock = ::open((dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || ::flock(lock, LOCK_EX) != 0) {
        return false;
    }
    char buffer[4096];
    while (n > 0) {
        const ssize_t got = ::read(fifo, buffer, n < sizeof buffer ? n : sizeof buffer);
        if (got <= 0) {
            if (errno == EINTR) {
                continue;
            }
            ::close(lock);
            return false;
        }
        n -= static_cast<std::size_t>(got);
    }
    ::close(lock);
    return true;
}

void give_back(int fifo, std::size_t n) {
    const std::string tokens(n, 'm');
    std::size_t done = 0;
    while (done < n) {
        const ssize_t put = ::write(fifo, tokens.data() + done, n - done);
        if (put <= 0 && errno != EINTR) {
            return;
        }
        done += put > 0 ? static_cast<std::size_t>(put) : 0;
    }
}

Outcome run(char** command) {
    timespec start{};
    ::clock_gettime(CLOCK_MONOTONIC, &start);
    Outcome outcome;
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::execvp(command[0], command);
        std::fprintf(stderr, "launch: cannot run '%s' (error %d)\n", command[0], errno);
        ::_exit(kCannotRun);
    }
    while (child > 0 && ::wait4(child, &outcome.status, 0, &outcome.usage) < 0 && errno == EINTR) {
    }
    if (child < 0) {
        outcome.status = kCannotRun << 8;
    }
    timespec end{};
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    outcome.wall_ms = (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000;
    return outcome;
}

void write_log(const std::string& dir, std::string_view object, const Outcome& outcome, int runs) {
    const auto ms = [](const timeval& t) {
        return t.tv_sec * 1000 + t.tv_usec / 1000;
    };
    const std::string line =
        std::string{object} + '\t' +
        std::to_string(WIFEXITED(outcome.status) ? WEXITSTATUS(outcome.status) : -1) + '\t' +
        std::to_string(WIFSIGNALED(outcome.status) ? WTERMSIG(outcome.status) : 0) + '\t' +
        std::to_string(outcome.usage.ru_maxrss) + '\t' +
        std::to_string(ms(outcome.usage.ru_utime)) + '\t' +
        std::to_string(ms(outcome.usage.ru_stime)) + '\t' + std::to_string(outcome.wall_ms) + '\t' +
        std::to_string(runs) + '\n';
    const int fd = ::open((dir + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        // One short write with O_APPEND: lines of parallel launchers do not mix.
        [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
        ::close(fd);
    }
}

bool killed(const Outcome& outcome) {
    return WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL;
}

/// A compiler driver reports a killed cc1plus as exit 1 or 4 with "Killed" on its standard error;
/// the kernel's out-of-memory killer picks the large child, so the driver's own status does not
/// tell.
int run_with_tokens(const std::string& dir, std::string_view object, char** command) {
    const Sizes sizes = read_sizes(dir, object, command[0]);
    const int fifo = ::open((dir + "/tokens").c_str(), O_RDWR | O_CLOEXEC);
    if (fifo < 0 || sizes.total == 0) {
        const Outcome outcome = run(command);
        write_log(dir, object, outcome, 1);
        return outcome.status;
    }
    if (!take(dir, fifo, sizes.wanted)) {
        return kCannotRun << 8;
    }
    Outcome outcome = run(command);
    give_back(fifo, sizes.wanted);
    int runs = 1;
    if (killed(outcome) && sizes.wanted < sizes.total) {
        // Most likely out of memory: once more, alone.
        if (take(dir, fifo, sizes.total)) {
            outcome = run(command);
            give_back(fifo, sizes.total);
            runs = 2;
        }
    }
    write_log(dir, object, outcome, runs);
    return outcome.status;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: launch COMPILER ARG...\n");
        return 2;
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this program has one thread
    const char* dir = std::getenv("KB_LAUNCH_DIR");
    std::string_view object;
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::string_view{argv[i]} == "-o") {
            object = argv[i + 1];
        }
    }
    if (dir == nullptr || object.empty()) {
        ::execvp(argv[1], argv + 1);
        std::fprintf(stderr, "launch: cannot run '%s' (error %d)\n", argv[1], errno);
        return kCannotRun;
    }
    const int status = run_with_tokens(dir, object, argv + 1);
    if (WIFSIGNALED(status)) {
        ::signal(WTERMSIG(status), SIG_DFL);
        ::raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}
