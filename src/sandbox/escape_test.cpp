// SPDX-License-Identifier: Apache-2.0
// The escape table: what a process tries, and at which levels it must be denied. The attempts are
// made by escape/escape_main.cpp. Those that are harmless outside are also made there, where they
// must succeed: a table whose attempts fail anyway proves nothing. What would change the machine is
// never tried outside.
#include "sandbox/confine.hpp"
#include "sandbox/landlock.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kb::sandbox {
namespace {

constexpr int kGotOut = 0;
constexpr int kDenied = 1;
constexpr int kSessionKeyring = -3;

bool has_level(Level level) {
    const Probe found = probe(level,
                              sys::real_file_system(),
                              sys::real_process_runner(),
                              {{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}});
    if (!found.is_available) {
        std::printf("SKIPPED: sandbox level %s is not available here: %s\n",
                    std::string{to_text(level)}.c_str(),
                    found.reason.c_str());
    }
    return found.is_available;
}

/// What a sandboxed process may want to reach: each thing exists outside while this lives.
class Outside {
public:
    explicit Outside(const test::TempDir& dir) : dir_{dir} {
        listen_tcp();
        listen_abstract();
        start_victim();
        std::filesystem::create_directories(dir / "work");
        std::filesystem::create_directories(dir / "scratch");
        std::filesystem::create_directories(dir / "probe");
        std::filesystem::copy_file(KB_ESCAPE_PATH, dir / "probe/escape");
        test::write_text(dir / "secret", "secret");
        // As it would be left by a compiler that could make one.
        std::filesystem::copy_file(KB_ESCAPE_PATH, dir / "work/suid");
        ::chmod((dir / "work/suid").c_str(), 04755);
        memory_ = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
        session_key_ = ::syscall(SYS_add_key, "user", name_.c_str(), "secret", 6, kSessionKeyring);
        descriptor_ = ::open("/dev/null", O_RDONLY); // on purpose not close-on-exec
    }

    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;
    Outside(Outside&&) = delete;
    Outside& operator=(Outside&&) = delete;

    ~Outside() {
        ::close(tcp_);
        ::close(abstract_);
        end_victim();
        ::close(descriptor_);
        ::shmctl(memory_, IPC_RMID, nullptr);
        if (session_key_ > 0) {
            ::syscall(SYS_keyctl, 9 /* unlink */, session_key_, kSessionKeyring);
        }
    }

    /// The attempt's argument for things that exist outside; other words as they are.
    [[nodiscard]] std::string argument(const std::string& word) const {
        if (word == "SECRET-FILE") {
            return (dir_ / "secret").string();
        }
        if (word == "OUTSIDE-FILE") {
            return (dir_ / "written").string();
        }
        if (word == "PORT") {
            return std::to_string(port_);
        }
        if (word == "ABSTRACT" || word == "KEY") {
            return name_;
        }
        if (word == "PID") {
            return std::to_string(victim_);
        }
        if (word == "MEMORY") {
            return std::to_string(memory_);
        }
        if (word == "DESCRIPTOR") {
            return std::to_string(descriptor_);
        }
        if (word == "HOSTNAME") {
            std::array<char, 256> name{};
            ::gethostname(name.data(), name.size() - 1);
            return name.data();
        }
        return word;
    }

    /// A kernel or a container without keyrings has no keys to read.
    [[nodiscard]] bool has_keys() const { return session_key_ > 0; }

private:
    void listen_tcp() {
        tcp_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* raw = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(::bind(tcp_, raw, size) == 0);
        REQUIRE(::listen(tcp_, 64) == 0);
        REQUIRE(::getsockname(tcp_, raw, &size) == 0);
        port_ = ntohs(address.sin_port);
    }

    void listen_abstract() {
        name_ = "kernel-builder-escape-" + std::to_string(::getpid());
        abstract_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, name_.data(), name_.size());
        const auto size =
            static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
        REQUIRE(::bind(abstract_, reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(abstract_, 64) == 0);
    }

    /// A process whose number no process in a fresh sandbox has: in a container this test itself
    /// may be number 2, and so is the attempt inside.
    void start_victim() {
        constexpr pid_t kBeyondSandbox = 64;
        while (victim_ < kBeyondSandbox) {
            end_victim();
            victim_ = ::fork();
            REQUIRE(victim_ >= 0);
            if (victim_ == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                ::pause();
                ::_exit(0);
            }
        }
    }

    void end_victim() const {
        if (victim_ > 0) {
            ::kill(victim_, SIGKILL);
            ::waitpid(victim_, nullptr, 0);
        }
    }

    const test::TempDir& dir_;
    pid_t victim_ = -1;
    int tcp_ = -1;
    int abstract_ = -1;
    int port_ = 0;
    std::string name_{};
    int memory_ = -1;
    int descriptor_ = -1;
    long session_key_ = -1;
};

struct Attempt {
    std::string name{};
    std::string argument{};
    /// Levels that deny it.
    std::vector<Level> denied{};
    /// Whether it is also made outside, where it must succeed.
    bool has_control = false;
    bool needs_keys = false;
};

constexpr Level kNamespaces = Level::namespaces;
constexpr Level kChroot = Level::chroot;
constexpr Level kLandlock = Level::landlock;

const std::vector<Attempt>& table() {
    static const std::vector<Attempt> kTable{
        {"read-file", "SECRET-FILE", {kNamespaces, kChroot}, true},
        {"read-file", "/etc/passwd", {kNamespaces, kChroot}, true},
        {"write-file", "/usr/kernel-builder-escaped", {kNamespaces, kChroot}},
        {"write-file", "OUTSIDE-FILE", {kNamespaces, kChroot, kLandlock}, true},
        {"read-variable", "KB_ESCAPE_VARIABLE", {kNamespaces, kChroot, kLandlock}, true},
        {"use-descriptor", "DESCRIPTOR", {kNamespaces, kChroot, kLandlock}},
        {"see-process", "1", {kNamespaces, kChroot}, true},
        {"see-process", "self", {kNamespaces, kChroot}, true},
        {"see-process", "PID", {kNamespaces, kChroot}, true},
        {"send-signal", "PID", {kNamespaces, kLandlock}, true},
        {"trace", "PID", {kNamespaces, kLandlock}},
        {"connect-tcp", "PORT", {kNamespaces, kLandlock}, true},
        {"connect-abstract", "ABSTRACT", {kNamespaces, kLandlock}, true},
        {"raw-socket", "", {kNamespaces}},
        {"attach-memory", "MEMORY", {kNamespaces}, true},
        {"read-session-key", "KEY", {kNamespaces, kChroot}, true, true},
        {"become-root", "", {kNamespaces}},
        {"set-user-id", "/work/suid", {kNamespaces}},
        {"mount-over", "/work", {kNamespaces}},
        {"open-device", "/dev/mem", {kNamespaces, kChroot}},
        {"open-device", "/dev/kmsg", {kNamespaces, kChroot}},
        {"make-device", "/work", {kNamespaces}},
        {"read-host-name", "HOSTNAME", {kNamespaces}, true},
    };
    return kTable;
}

/// The program in a world of its own and a writable /work.
SandboxSpec spec_of(const test::TempDir& dir, std::vector<std::string> argv) {
    return {.mounts = {{.host = "/usr", .inside = "/usr"},
                       {.host = dir / "probe", .inside = "/probe"},
                       {.host = dir / "work", .inside = "/work", .access = Access::read_write}},
            .links = {{.inside = "/bin", .target = "usr/bin"},
                      {.inside = "/lib", .target = "usr/lib"},
                      {.inside = "/lib64", .target = "usr/lib64"}},
            .environment = {{"PATH", "/usr/bin:/bin"}},
            .working_directory = "/work",
            .argv = std::move(argv)};
}

int run_at(Level level, const test::TempDir& dir, const Attempt& attempt, const Outside& outside) {
    const ConfineTools tools{.path_variable = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                             .self = "/nowhere",
                             .scratch = dir / "scratch"};
    const SandboxSpec spec =
        spec_of(dir, {"/probe/escape", attempt.name, outside.argument(attempt.argument)});
    const sys::ProcessSpec process = confine(spec, level, tools).value();
    const sys::ProcessResult result = sys::real_process_runner().run(process).value();
    CAPTURE(result.err);
    return result.status.kind == sys::ExitStatus::Kind::exited ? result.status.code : -1;
}

/// Outside, or behind the rules of landlock; the program is started as it is.
int run_here(const test::TempDir& dir, const Attempt& attempt, const Outside& outside, bool rules) {
    const std::string program = (dir / "probe/escape").string();
    const std::string argument = outside.argument(attempt.argument);
    const std::vector<sys::Path> writable{dir / "work"};
    std::string name = attempt.name;
    std::string word = argument;
    std::array<char*, 4> argv{name.data(), name.data(), word.data(), nullptr};
    std::string variable = "KB_ESCAPE_VARIABLE=1";
    std::array<char*, 2> environment{rules ? nullptr : variable.data(), nullptr};
    const pid_t child = ::fork();
    if (child == 0) {
        if (rules && !apply_landlock(writable)) {
            ::_exit(9);
        }
        if (rules) {
            ::close_range(3, ~0U, 0); // as the process runner does
        }
        ::execve(program.c_str(), argv.data(), environment.data());
        ::_exit(8);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool must_deny(const Attempt& attempt, Level level) {
    return std::ranges::find(attempt.denied, level) != attempt.denied.end();
}

TEST_CASE("with mounts, no attempt of the table gets out", "[sandbox][escape]") {
    const Level level = GENERATE(Level::namespaces, Level::chroot);
    if (!has_level(level)) {
        return;
    }
    const test::TempDir dir;
    const Outside outside{dir};
    for (const Attempt& attempt : table()) {
        if (must_deny(attempt, level) && (!attempt.needs_keys || outside.has_keys())) {
            CAPTURE(to_text(level), attempt.name, attempt.argument);
            CHECK(run_at(level, dir, attempt, outside) == kDenied);
        }
    }
}

TEST_CASE("behind landlock, no attempt that it covers gets out", "[sandbox][escape]") {
    const int abi = landlock_abi();
    if (abi == 0) {
        std::printf("SKIPPED: this kernel has no landlock\n");
        return;
    }
    const test::TempDir dir;
    const Outside outside{dir};
    for (const Attempt& attempt : table()) {
        const bool covered = attempt.name == "connect-tcp"        ? abi >= 4
                             : attempt.name == "connect-abstract" ? abi >= 6
                             : attempt.name == "send-signal"      ? abi >= 6
                                                                  : true;
        if (must_deny(attempt, Level::landlock) && covered) {
            CAPTURE(attempt.name, attempt.argument);
            CHECK(run_here(dir, attempt, outside, true) == kDenied);
        }
    }
}

TEST_CASE("outside, what the table denies is there to be had", "[sandbox][escape]") {
    const test::TempDir dir;
    const Outside outside{dir};
    for (const Attempt& attempt : table()) {
        if (attempt.has_control && (!attempt.needs_keys || outside.has_keys())) {
            CAPTURE(attempt.name, attempt.argument);
            CHECK(run_here(dir, attempt, outside, false) == kGotOut);
        }
    }
}

} // namespace
} // namespace kb::sandbox
