// SPDX-License-Identifier: Apache-2.0
#include "sys/file_lock.hpp"

#include "sys/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>

namespace kb::sys {
namespace {

Result<UniqueFd> open_lock(const Path& path) {
    UniqueFd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)};
    if (!fd) {
        return error_from_errno(errno, fmt::format("opening lock '{}'", path.string()));
    }
    return fd;
}

/// True: taken. False: somebody else holds it.
Result<bool> try_lock(const UniqueFd& fd, const Path& path) {
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return false;
        }
        if (errno != EINTR) {
            return error_from_errno(errno, fmt::format("locking '{}'", path.string()));
        }
    }
    return true;
}

} // namespace

Result<FileLock> FileLock::acquire(const Path& path, const std::function<void()>& on_wait) {
    KB_TRY(UniqueFd fd, open_lock(path));
    std::chrono::milliseconds pause{5};
    bool told = false;
    while (true) {
        KB_TRY(const bool taken, try_lock(fd, path));
        if (taken) {
            return FileLock{std::move(fd)};
        }
        if (!told && on_wait) {
            on_wait();
        }
        told = true;
        // Asked again and again instead of a blocking flock(): that one cannot be woken reliably by
        // a signal that arrives just before the call.
        if (!real_clock().sleep(pause)) {
            return Error{.code = ErrorCode::cancelled,
                         .message =
                             fmt::format("interrupted while waiting for '{}'", path.string())};
        }
        pause = std::min(pause * 2, std::chrono::milliseconds{200});
    }
}

Result<FileLock> FileLock::try_acquire(const Path& path) {
    KB_TRY(UniqueFd fd, open_lock(path));
    KB_TRY(const bool taken, try_lock(fd, path));
    if (!taken) {
        return Error{.code = ErrorCode::transient,
                     .message = fmt::format("'{}' is locked by another process", path.string())};
    }
    return FileLock{std::move(fd)};
}

} // namespace kb::sys
