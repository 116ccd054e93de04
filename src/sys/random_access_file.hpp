// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"
#include "sys/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kb::sys {

/// A regular file that is read by offset, so that a large one costs only what is looked at. Nothing
/// is mapped: a file that shrinks meanwhile is an error, not a signal. One thread at a time.
class RandomAccessFile {
public:
    /// Follows links. Anything but a regular file is `unsupported`.
    [[nodiscard]] static Result<RandomAccessFile> open(const Path& path);

    /// As it was when opened.
    [[nodiscard]] std::uint64_t size() const { return size_; }

    /// Fills `into` from `offset`. A range beyond the end is `corrupt`.
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;

private:
    RandomAccessFile(UniqueFd fd, Path path, std::uint64_t size)
        : fd_{std::move(fd)}, path_{std::move(path)}, size_{size} {}

    UniqueFd fd_;
    Path path_;
    std::uint64_t size_ = 0;
};

} // namespace kb::sys
