// SPDX-License-Identifier: Apache-2.0
#include "sandbox/landlock.hpp"

#include "sys/unique_fd.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kb::sandbox {

namespace {

/// Every right of landlock ABI 1 that changes something. Newer rights are added by ABI: Debian 12's
/// header knows up to REFER (2); TRUNCATE (3) is spelt out.
constexpr std::uint64_t kWriteRights =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t kRefer = 1ULL << 13U;
constexpr std::uint64_t kTruncate = 1ULL << 14U;

/// Those of the rights that a file can have: others in its rule are an error.
constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

/// The kernel's struct landlock_ruleset_attr as it grew: file rights, TCP (ABI 4), what may be
/// reached outside the domain (ABI 6). Older kernels are given the part that they know.
struct Ruleset {
    std::uint64_t files = 0;
    std::uint64_t network = 0;
    std::uint64_t scoped = 0;
};

constexpr std::uint64_t kBindTcp = 1ULL << 0U;
constexpr std::uint64_t kConnectTcp = 1ULL << 1U;
constexpr std::uint64_t kAbstractSockets = 1ULL << 0U;
constexpr std::uint64_t kSignals = 1ULL << 1U;

std::uint64_t rights(int abi) {
    return kWriteRights | (abi >= 2 ? kRefer : 0) | (abi >= 3 ? kTruncate : 0);
}

std::size_t ruleset_size(int abi) {
    return sizeof(std::uint64_t) * (abi >= 6 ? 3U : abi >= 4 ? 2U : 1U);
}

} // namespace

int landlock_abi() {
    const long abi =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi > 0 ? static_cast<int>(abi) : 0;
}

Result<void> apply_landlock(const std::vector<sys::Path>& writable) {
    const int abi = landlock_abi();
    if (abi == 0) {
        return Error{.code = ErrorCode::unsupported, .message = "this kernel has no landlock"};
    }
    const Ruleset attributes{.files = rights(abi),
                             .network = kBindTcp | kConnectTcp,
                             .scoped = kAbstractSockets | kSignals};
    const sys::UniqueFd ruleset{static_cast<int>(
        ::syscall(SYS_landlock_create_ruleset, &attributes, ruleset_size(abi), 0))};
    if (!ruleset) {
        return error_from_errno(errno, "making a landlock ruleset");
    }
    for (const sys::Path& path : writable) {
        const sys::UniqueFd directory{::open(path.c_str(), O_PATH | O_CLOEXEC)};
        if (!directory) {
            return error_from_errno(errno, fmt::format("opening '{}' for landlock", path.string()));
        }

        struct stat status {};

        if (::fstat(directory.get(), &status) != 0) {
            return error_from_errno(errno, fmt::format("looking at '{}'", path.string()));
        }
        landlock_path_beneath_attr rule{};
        rule.allowed_access = S_ISDIR(status.st_mode) ? rights(abi) : rights(abi) & kFileRights;
        rule.parent_fd = directory.get();
        if (::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) !=
            0) {
            return error_from_errno(errno,
                                    fmt::format("allowing writes below '{}'", path.string()));
        }
    }
    // Without this a set-user-id program could shake the rules off.
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
        return error_from_errno(errno, "applying landlock");
    }
    return {};
}

} // namespace kb::sandbox
