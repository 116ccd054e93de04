// SPDX-License-Identifier: Apache-2.0
#include "sys/process.hpp"

#include "base/text.hpp"
#include "sys/environment.hpp"
#include "sys/signals.hpp"
#include "sys/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kb::sys {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kGrace{3000}; // between TERM and KILL

struct Pipe {
    UniqueFd read{};
    UniqueFd write{};
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return error_from_errno(errno, "making a pipe");
    }
    return Pipe{.read = UniqueFd{ends[0]}, .write = UniqueFd{ends[1]}};
}

Result<UniqueFd> open_null(int flags) {
    UniqueFd fd{::open("/dev/null", flags | O_CLOEXEC)};
    if (!fd) {
        return error_from_errno(errno, "opening '/dev/null'");
    }
    return fd;
}

/// Standard input as a file in memory: no pipe, hence no deadlock and no SIGPIPE when the child
/// does not read it.
Result<UniqueFd> make_input(const std::string& input) {
    if (input.empty()) {
        return open_null(O_RDONLY);
    }
    UniqueFd fd{::memfd_create("stdin", MFD_CLOEXEC)};
    if (!fd) {
        return error_from_errno(errno, "making the input of a program");
    }
    std::string_view left{input};
    while (!left.empty()) {
        const ssize_t n = ::write(fd.get(), left.data(), left.size());
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return error_from_errno(errno, "writing the input of a program");
        }
        left.remove_prefix(static_cast<std::size_t>(n));
    }
    if (::lseek(fd.get(), 0, SEEK_SET) != 0) {
        return error_from_errno(errno, "rewinding the input of a program");
    }
    return fd;
}

/// Everything the child needs between fork and exec, prepared before: after fork in a threaded
/// program only async-signal-safe calls are allowed.
struct Prepared {
    std::string program{};
    std::vector<char*> argv{};
    std::vector<std::string> environment_text{};
    std::vector<char*> environment{};
    int in = -1;
    int out = -1; ///< -1: inherited.
    int err = -1;
    int failure = -1; ///< Where the child tells which call failed.
};

/// What the child reports when it could not start the program.
struct StartFailure {
    int stage = 0;
    int code = 0;
};

enum Stage : int { kStageRedirect = 1, kStageDirectory, kStageHook, kStageExec };

[[noreturn]] void fail_child(int fd, Stage stage) {
    const StartFailure failure{.stage = stage, .code = errno};
    if (::write(fd, &failure, sizeof failure) < 0) {
        ::_exit(126);
    }
    ::_exit(127);
}

void reset_signals() {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL; // NOLINT(cppcoreguidelines-pro-type-union-access)
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD}) {
        ::sigaction(number, &action, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// dup2() that also works when the descriptor already has the wanted number (close-on-exec is
/// cleared then).
bool redirect(int from, int to) {
    if (from < 0) {
        return true;
    }
    if (from == to) {
        return ::fcntl(to, F_SETFD, 0) == 0;
    }
    return ::dup2(from, to) >= 0;
}

[[noreturn]] void run_child(const ProcessSpec& spec, const Prepared& p) {
    ::setpgid(0, 0);
    reset_signals();
    if (!redirect(p.in, 0) || !redirect(p.out, 1) || !redirect(p.err, 2)) {
        fail_child(p.failure, kStageRedirect);
    }
    // Whatever libraries left open without O_CLOEXEC must not leak into the sandbox.
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    for (const int fd : spec.keep_descriptors) {
        if (::fcntl(fd, F_SETFD, 0) != 0) {
            fail_child(p.failure, kStageRedirect);
        }
    }
    if (!spec.working_directory.empty() && ::chdir(spec.working_directory.c_str()) != 0) {
        fail_child(p.failure, kStageDirectory);
    }
    if (spec.before_exec) {
        errno = spec.before_exec();
        if (errno != 0) {
            fail_child(p.failure, kStageHook);
        }
    }
    ::execve(p.program.c_str(), p.argv.data(), p.environment.data());
    fail_child(p.failure, kStageExec);
}

Error start_error(const ProcessSpec& spec, const StartFailure& failure) {
    Error error;
    switch (failure.stage) {
    case kStageDirectory:
        error = error_from_errno(failure.code,
                                 fmt::format("entering '{}' to run '{}'",
                                             spec.working_directory.string(),
                                             spec.argv[0]));
        error.code = ErrorCode::internal;
        return error;
    case kStageHook:
        error = error_from_errno(failure.code, fmt::format("confining '{}'", spec.argv[0]));
        error.code = ErrorCode::denied;
        return error;
    default:
        return error_from_errno(failure.code, fmt::format("starting '{}'", spec.argv[0]));
    }
}

Result<std::string> locate(const ProcessSpec& spec) {
    const std::string& name = spec.argv[0];
    if (name.find('/') != std::string::npos) {
        return name;
    }
    std::optional<std::string> path;
    if (spec.environment) {
        path = lookup(*spec.environment, "PATH");
    }
    if (!path) {
        path = lookup(read_environment(), "PATH");
    }
    if (const auto found = find_program(name, path.value_or("/usr/bin:/bin"))) {
        return found->string();
    }
    return Error{.code = ErrorCode::not_found,
                 .message = fmt::format("no program '{}' in PATH", name)};
}

class Child {
public:
    static Result<Child> start(const ProcessSpec& spec);
    Result<ProcessResult> wait(const ProcessSpec& spec);

private:
    struct Stream {
        UniqueFd fd{};
        std::string* text = nullptr;
    };

    void drain(Stream& stream, const ProcessSpec& spec) const;
    void reap(ProcessResult& result);
    void note_stop(ExitStatus::Kind kind);
    void escalate();
    [[nodiscard]] int poll_timeout() const;

    pid_t pid_ = -1;
    UniqueFd pidfd_{};
    UniqueFd out_{};
    UniqueFd err_{};
    Clock::time_point started_ = Clock::now();
    std::optional<Clock::time_point> deadline_{};
    std::optional<Clock::time_point> kill_at_{};
    std::optional<ExitStatus::Kind> stopped_{};
};

Result<Child> Child::start(const ProcessSpec& spec) {
    KB_ASSERT(!spec.argv.empty(), "a program has a name");
    Prepared p;
    KB_TRY(p.program, locate(spec));
    for (const std::string& argument : spec.argv) {
        p.argv.push_back(const_cast<char*>(argument.c_str())); // execve() does not write to it
    }
    p.argv.push_back(nullptr);
    const EnvironmentMap environment = spec.environment ? *spec.environment : read_environment();
    for (const auto& [name, value] : environment) {
        p.environment_text.push_back(name + "=" + value);
    }
    for (std::string& text : p.environment_text) {
        p.environment.push_back(text.data());
    }
    p.environment.push_back(nullptr);

    KB_TRY(const UniqueFd in, make_input(spec.input));
    KB_TRY(Pipe failure, make_pipe());
    Child child;
    Pipe out;
    Pipe err;
    UniqueFd null;
    if (spec.out == Output::discard || spec.err == Output::discard) {
        KB_TRY(null, open_null(O_WRONLY));
    }
    if (spec.out == Output::capture) {
        KB_TRY(out, make_pipe());
    }
    if (spec.err == Output::capture) {
        KB_TRY(err, make_pipe());
    }
    p.in = in.get();
    p.out = spec.out == Output::discard ? null.get() : out.write.get();
    p.err = spec.err == Output::discard ? null.get() : err.write.get();
    p.failure = failure.write.get();

    child.pid_ = ::fork();
    if (child.pid_ < 0) {
        return error_from_errno(errno, fmt::format("starting '{}'", spec.argv[0]));
    }
    if (child.pid_ == 0) {
        run_child(spec, p);
    }
    ::setpgid(child.pid_, child.pid_); // in both processes: whoever comes first
    // By number: the header of glibc 2.36 declares pidfd_open() without C linkage.
    child.pidfd_ = UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0))};
    const int pidfd_errno = errno;
    failure.write.reset();
    StartFailure told;
    ssize_t n = 0;
    do {
        n = ::read(failure.read.get(), &told, sizeof told);
    } while (n < 0 && errno == EINTR);
    if (n == static_cast<ssize_t>(sizeof told) || !child.pidfd_) {
        if (!child.pidfd_) {
            ::kill(-child.pid_, SIGKILL);
        }
        ::waitpid(child.pid_, nullptr, 0);
        return child.pidfd_ ? start_error(spec, told)
                            : error_from_errno(pidfd_errno, "watching a child process");
    }
    child.out_ = std::move(out.read);
    child.err_ = std::move(err.read);
    if (spec.timeout) {
        child.deadline_ = child.started_ + *spec.timeout;
    }
    return child;
}

void Child::note_stop(ExitStatus::Kind kind) {
    if (!stopped_) {
        stopped_ = kind;
        kill_at_ = Clock::now() + kGrace;
        ::kill(-pid_, SIGTERM);
    }
}

void Child::escalate() {
    const auto now = Clock::now();
    if (deadline_ && now >= *deadline_) {
        note_stop(ExitStatus::Kind::timed_out);
    }
    if (interrupted()) {
        note_stop(ExitStatus::Kind::interrupted);
    }
    if (kill_at_ && now >= *kill_at_) {
        ::kill(-pid_, SIGKILL);
        kill_at_.reset();
    }
}

int Child::poll_timeout() const {
    std::optional<Clock::time_point> next = kill_at_;
    if (!stopped_ && deadline_) {
        next = deadline_;
    }
    if (!next) {
        return -1;
    }
    const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

/// One read(): called when poll() says that there is something, and in a loop after the child is
/// gone.
void Child::drain(Stream& stream, const ProcessSpec& spec) const {
    std::array<char, 1UL << 16U> buffer{};
    const ssize_t n = ::read(stream.fd.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (n <= 0) {
        stream.fd.reset();
        return;
    }
    const std::string_view chunk{buffer.data(), static_cast<std::size_t>(n)};
    const std::uint64_t room =
        spec.max_capture - std::min<std::uint64_t>(spec.max_capture, stream.text->size());
    stream.text->append(
        chunk.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(room, chunk.size()))));
    if (spec.on_output) {
        spec.on_output(chunk);
    }
}

void Child::reap(ProcessResult& result) {
    int status = 0;
    rusage usage{};
    while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    result.wall_seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    result.user_seconds = seconds(usage.ru_utime);
    result.system_seconds = seconds(usage.ru_stime);
    result.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024U; // Linux: KiB
    if (WIFSIGNALED(status)) {
        result.status = {.kind = ExitStatus::Kind::signalled, .code = WTERMSIG(status)};
    } else {
        result.status = {.kind = ExitStatus::Kind::exited, .code = WEXITSTATUS(status)};
    }
    if (stopped_) {
        result.status.kind = *stopped_;
        ::kill(-pid_, SIGKILL); // grandchildren that ignored TERM
    }
}

Result<ProcessResult> Child::wait(const ProcessSpec& spec) {
    ProcessResult result;
    Stream out{.fd = std::move(out_), .text = &result.out};
    Stream err{.fd = std::move(err_), .text = &result.err};
    while (true) {
        escalate();
        // After the first interrupt its descriptor stays readable: no longer polled then.
        std::array<pollfd, 4> fds{
            pollfd{.fd = pidfd_.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = out.fd.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = err.fd.get(), .events = POLLIN, .revents = 0},
            pollfd{.fd = stopped_ ? -1 : interrupt_descriptor(), .events = POLLIN, .revents = 0}};
        const int ready = ::poll(fds.data(), fds.size(), poll_timeout());
        if (ready < 0 && errno != EINTR) {
            KB_ASSERT(false, "poll() of own descriptors fails only by EINTR");
        }
        if (ready <= 0) {
            continue;
        }
        if (fds[1].revents != 0) {
            drain(out, spec);
        }
        if (fds[2].revents != 0) {
            drain(err, spec);
        }
        if (fds[0].revents != 0) {
            break;
        }
    }
    reap(result);
    // What was written before the exit is still in the pipes. A daemon may hold them open for ever,
    // so only what is there now counts.
    for (Stream* stream : {&out, &err}) {
        if (stream->fd) {
            ::fcntl(stream->fd.get(), F_SETFL, O_NONBLOCK);
        }
        while (stream->fd) {
            const pollfd now{.fd = stream->fd.get(), .events = POLLIN, .revents = 0};
            std::array<pollfd, 1> one{now};
            if (::poll(one.data(), 1, 0) <= 0) {
                break;
            }
            drain(*stream, spec);
        }
    }
    return result;
}

class PosixProcessRunner final : public ProcessRunner {
public:
    Result<ProcessResult> run(const ProcessSpec& spec) override {
        KB_TRY(Child child, Child::start(spec));
        return child.wait(spec);
    }
};

} // namespace

std::string ExitStatus::to_text() const {
    switch (kind) {
    case Kind::exited:
        return fmt::format("exit code {}", code);
    case Kind::signalled: {
        const char* name = ::sigdescr_np(code);
        return fmt::format("killed by signal {} ({})", code, name == nullptr ? "unknown" : name);
    }
    case Kind::timed_out:
        return "timed out";
    case Kind::interrupted:
        return "interrupted";
    }
    return "unknown";
}

ProcessRunner& real_process_runner() {
    static PosixProcessRunner runner;
    return runner;
}

std::optional<Path> find_program(std::string_view name, std::string_view path_variable) {
    for (const std::string_view directory : split(path_variable, ':')) {
        if (directory.empty() || directory.front() != '/') {
            continue; // never from the current directory
        }
        const Path candidate = Path{directory} / name;
        std::error_code ignored;
        if (::access(candidate.c_str(), X_OK) == 0 &&
            std::filesystem::is_regular_file(candidate, ignored)) {
            return candidate;
        }
    }
    return std::nullopt;
}

} // namespace kb::sys
