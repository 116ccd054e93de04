// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"
#include "sys/unique_fd.hpp"

#include <chrono>
#include <functional>
#include <string_view>

namespace kb::sys {

/// An exclusive advisory lock (flock) on a file, held until destroyed; the kernel frees it when the
/// process dies.
class FileLock {
public:
    /// Makes the file when missing. Calls `on_wait` once when somebody else holds the lock, then
    /// waits; `cancelled` on interrupt.
    static Result<FileLock> acquire(const Path& path, const std::function<void()>& on_wait = {});
    /// `transient` when somebody else holds it.
    static Result<FileLock> try_acquire(const Path& path);

private:
    explicit FileLock(UniqueFd fd) : fd_{std::move(fd)} {}

    UniqueFd fd_;
};

} // namespace kb::sys
