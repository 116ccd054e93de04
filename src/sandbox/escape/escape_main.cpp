// SPDX-License-Identifier: Apache-2.0
// One attempt to reach what a sandbox keeps away: escape ATTEMPT [ARGUMENT]. Exit 0: it got out, 1:
// it was denied, 2: it could not try. Talks to the kernel directly, so that no missing program
// makes an attempt look denied.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

constexpr int kOut = 0;
constexpr int kDenied = 1;
constexpr int kCannotTry = 2;

int verdict(bool got_out) {
    return got_out ? kOut : kDenied;
}

int read_file(const char* path) {
    const int fd = ::open(path, O_RDONLY);
    std::array<char, 16> buffer{};
    return verdict(fd >= 0 && ::read(fd, buffer.data(), buffer.size()) > 0);
}

// Every attempt that changes something takes it back: a sandbox that failed must not cost the
// machine that tests it.

int write_file(const char* path) {
    if (::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0) {
        return kDenied;
    }
    ::unlink(path);
    return kOut;
}

/// Opens a device for reading without waiting for it.
int open_device(const char* path) {
    return verdict(::open(path, O_RDONLY | O_NONBLOCK) >= 0);
}

/// A node of our own for the kernel's memory, where device files of the machine are not there.
int make_device(const char* directory) {
    const std::string path = std::string{directory} + "/node";
    if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 1)) != 0) {
        return kDenied;
    }
    ::unlink(path.c_str());
    return kOut;
}

int connect_tcp(const char* port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    return verdict(fd >= 0 &&
                   ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

int connect_abstract(const char* name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path + 1, name, sizeof address.sun_path - 2);
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(name));
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    return verdict(fd >= 0 &&
                   ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
}

int raw_socket(const char*) {
    // ETH_P_ALL; inside a network namespace of our own it would see only our own loopback, so the
    // right to open it is what counts.
    return verdict(::socket(AF_PACKET, SOCK_RAW, htons(0x0003)) >= 0);
}

int become_root(const char*) {
    if (::geteuid() == 0) {
        return kOut;
    }
    return verdict(::setresuid(0, 0, 0) == 0 && ::geteuid() == 0);
}

/// `path` is a copy of this program, owned by root with the set-user-id bit, or becomes one.
int set_user_id(const char* path) {
    ::execl(path, path, "am-i-root", "", nullptr);
    return kCannotTry;
}

int am_i_root(const char*) {
    return verdict(::geteuid() == 0);
}

int trace(const char* pid) {
    return verdict(::ptrace(PTRACE_SEIZE, std::atoi(pid), nullptr, nullptr) == 0);
}

int send_signal(const char* pid) {
    return verdict(::kill(std::atoi(pid), 0) == 0);
}

int see_process(const char* pid) {
    const std::string path = std::string{"/proc/"} + pid + "/status";
    return read_file(path.c_str());
}

/// A key that the parent put into its session keyring under this name.
int read_session_key(const char* name) {
    constexpr int kSession = -3;
    constexpr int kSearch = 10;
    constexpr int kRead = 11;
    const long key = ::syscall(SYS_keyctl, kSearch, kSession, "user", name, 0);
    std::array<char, 64> buffer{};
    return verdict(key > 0 && ::syscall(SYS_keyctl, kRead, key, buffer.data(), buffer.size()) > 0);
}

int attach_memory(const char* id) {
    return verdict(::shmat(std::atoi(id), nullptr, SHM_RDONLY) != reinterpret_cast<void*>(-1));
}

int mount_over(const char* directory) {
    if (::mount("none", directory, "tmpfs", 0, nullptr) != 0) {
        return kDenied;
    }
    ::umount2(directory, MNT_DETACH);
    return kOut;
}

int read_variable(const char* name) {
    return verdict(std::getenv(name) != nullptr);
}

int read_host_name(const char* name) {
    std::array<char, 256> buffer{};
    return verdict(::gethostname(buffer.data(), buffer.size() - 1) == 0 &&
                   std::string_view{buffer.data()} == name);
}

/// A descriptor that the parent left open.
int use_descriptor(const char* number) {
    return verdict(::fcntl(std::atoi(number), F_GETFD) >= 0);
}

struct Attempt {
    std::string_view name;
    int (*run)(const char*);
};

constexpr std::array kAttempts{Attempt{"read-file", read_file},
                               Attempt{"write-file", write_file},
                               Attempt{"open-device", open_device},
                               Attempt{"make-device", make_device},
                               Attempt{"connect-tcp", connect_tcp},
                               Attempt{"connect-abstract", connect_abstract},
                               Attempt{"raw-socket", raw_socket},
                               Attempt{"become-root", become_root},
                               Attempt{"set-user-id", set_user_id},
                               Attempt{"am-i-root", am_i_root},
                               Attempt{"trace", trace},
                               Attempt{"send-signal", send_signal},
                               Attempt{"see-process", see_process},
                               Attempt{"read-session-key", read_session_key},
                               Attempt{"attach-memory", attach_memory},
                               Attempt{"mount-over", mount_over},
                               Attempt{"read-variable", read_variable},
                               Attempt{"read-host-name", read_host_name},
                               Attempt{"use-descriptor", use_descriptor}};

} // namespace

int main(int argc, char** argv) {
    for (const Attempt& attempt : kAttempts) {
        if (argc > 1 && attempt.name == argv[1]) {
            return attempt.run(argc > 2 ? argv[2] : "");
        }
    }
    std::fprintf(stderr, "escape: unknown attempt\n");
    return kCannotTry;
}
