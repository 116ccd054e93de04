// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "digest/digest.hpp"
#include "sys/clock.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace kb::project {

/// Digests of files by device, inode, size, mtime and ctime, as git's index does: an unchanged
/// gigabyte costs a stat. A file that changed within two seconds of being hashed is not remembered,
/// since a later write could keep its stamps.
class HashCache {
public:
    /// An unreadable or malformed cache is an empty one.
    static HashCache open(sys::FileSystem& fs, sys::Path file);

    Result<digest::Digest> sha256(sys::FileSystem& fs, sys::Clock& clock, const sys::Path& path);
    /// What an earlier run remembered of the file, without reading it.
    [[nodiscard]] std::optional<digest::Digest> find(sys::FileSystem& fs, const sys::Path& path);
    /// Hashes those of `paths` that are not known, several at a time and the largest first, so that
    /// sha256() of them costs a stat. A file that cannot be read is left for sha256() to name.
    void hash_ahead(sys::FileSystem& fs,
                    sys::Clock& clock,
                    std::span<const sys::Path> paths,
                    unsigned threads);
    /// Writes what was looked up since open(), and forgets the rest; nothing when nothing is new.
    /// In one step but without fsync: a cache that a power cut tears is an empty one.
    Result<void> save(sys::FileSystem& fs);

private:
    explicit HashCache(sys::Path file) : file_{std::move(file)} {}

    void remember(sys::Clock& clock, const sys::FileInfo& info, const digest::Digest& value);

    sys::Path file_;
    std::map<std::string, digest::Digest> known_;
    std::map<std::string, digest::Digest> used_;
    /// Of this run only: also what changed too recently to be kept.
    std::map<std::string, digest::Digest> ahead_;
};

/// Hash of a file in blocks, whatever its size.
Result<digest::Digest> hash_file(const sys::Path& path);

} // namespace kb::project
