// SPDX-License-Identifier: Apache-2.0
#include "sys/random_access_file.hpp"

#include "sys/errno_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kb::sys {

Result<RandomAccessFile> RandomAccessFile::open(const Path& path) {
    // Without O_NONBLOCK the open of a named pipe would wait for a writer.
    UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (!fd) {
        return file_error(errno, "opening", path);
    }

    struct stat info {};

    if (::fstat(fd.get(), &info) != 0) {
        return file_error(errno, "looking at", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}' is no regular file", path.string())};
    }
    return RandomAccessFile{std::move(fd), path, static_cast<std::uint64_t>(info.st_size)};
}

Result<void> RandomAccessFile::read(std::uint64_t offset, std::span<std::byte> into) const {
    if (offset > size_ || into.size() > size_ - offset) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("{} bytes at offset {} lie beyond the end of '{}'",
                                            into.size(),
                                            offset,
                                            path_.string())};
    }
    std::size_t done = 0;
    while (done < into.size()) {
        const ::ssize_t n = ::pread(
            fd_.get(), into.data() + done, into.size() - done, static_cast<::off_t>(offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return file_error(errno, "reading", path_);
        }
        if (n == 0) {
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             fmt::format("'{}' became shorter while it was read", path_.string())};
        }
        done += static_cast<std::size_t>(n);
    }
    return {};
}

} // namespace kb::sys
