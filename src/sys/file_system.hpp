// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kb::sys {

using Path = std::filesystem::path;

enum class FileType : std::uint8_t { regular, directory, symlink, other };

struct FileInfo {
    FileType type = FileType::other;
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::int64_t ctime_ns = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint32_t mode = 0;  ///< Permission bits.
    std::uint64_t links = 0; ///< Number of names (hard links).
};

struct DirEntry {
    std::string name{};
    FileType type = FileType::other;
};

enum class FollowLinks : std::uint8_t { no, yes };

/// A regular file open for reading by position. Usable from several threads.
class InputFile {
public:
    virtual ~InputFile() = default;
    /// Up to `size` bytes into `buffer`; fewer only at the end of the file.
    virtual Result<std::size_t> read_at(std::uint64_t offset, char* buffer, std::size_t size) = 0;
    /// Size when it was opened.
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// For sendfile() and mmap(); owned by this object.
    [[nodiscard]] virtual int descriptor() const = 0;
};

/// A new file that is written from its start to its end. It stays where it is when destroyed: who
/// makes a temporary removes or renames it.
class OutputFile {
public:
    virtual ~OutputFile() = default;
    virtual Result<void> write(std::string_view bytes) = 0;
    /// fsync; after it the content survives a crash.
    virtual Result<void> sync() = 0;
};

/// Every file operation of the program; an interface because tests inject faults. Paths are the
/// system's. Errors name the path and carry the errno's meaning (`not_found`, `denied`, ...). "No
/// space left" is ErrorCode::denied with the path and the words of errno.
class FileSystem {
public:
    virtual ~FileSystem() = default;

    /// Whole content; `corrupt` when it has more than `max_bytes`, `unsupported` for a named pipe.
    virtual Result<std::string> read_file(const Path& path,
                                          std::uint64_t max_bytes = 1UL << 30U) = 0;
    virtual Result<FileInfo> stat(const Path& path, FollowLinks follow = FollowLinks::yes) = 0;
    /// Sorted by name, bytewise; without "." and "..".
    virtual Result<std::vector<DirEntry>> list(const Path& directory) = 0;
    virtual Result<std::string> read_link(const Path& path) = 0;
    /// Regular files only: a FIFO or a device is `unsupported`, never a hang.
    virtual Result<std::unique_ptr<InputFile>> open_read(const Path& path) = 0;

    /// A new file; an existing one is an error (`denied`).
    virtual Result<std::unique_ptr<OutputFile>> create(const Path& path, FileMode mode) = 0;

    /// Temporary beside, fsync, rename, fsync of the directory: the old or the new content, never a
    /// mix. The parent must exist.
    virtual Result<void>
    write_atomic(const Path& path, std::string_view content, FileMode mode) = 0;
    /// Appends and fsyncs (journals); makes the file when missing.
    virtual Result<void> append_durable(const Path& path, std::string_view content) = 0;
    /// Plain write without fsync, for scratch files under a directory that is published by rename
    /// later.
    virtual Result<void>
    write_scratch(const Path& path, std::string_view content, FileMode mode) = 0;
    /// Content and permission bits of `from` to a new file, by reflink where the file system can.
    virtual Result<void> copy_file(const Path& from, const Path& to) = 0;

    /// With parents; existing is success.
    virtual Result<void> make_directories(const Path& path) = 0;
    /// With content, also of read-only directories; missing is success. Never follows a link.
    virtual Result<void> remove_tree(const Path& path) = 0;
    /// Missing is success.
    virtual Result<void> remove_file(const Path& path) = 0;
    virtual Result<void> rename(const Path& from, const Path& to) = 0;
    /// Swaps two existing paths in one step (RENAME_EXCHANGE).
    virtual Result<void> exchange(const Path& a, const Path& b) = 0;
    virtual Result<void> symlink(std::string_view target, const Path& link) = 0;
    virtual Result<void> hard_link(const Path& from, const Path& to) = 0;
    /// Access and modification time, seconds since the epoch; does not follow links.
    virtual Result<void> set_mtime(const Path& path, std::int64_t seconds) = 0;
    virtual Result<void> set_mode(const Path& path, std::uint32_t mode) = 0;
    virtual Result<void> sync_directory(const Path& directory) = 0;
    /// Everything written so far on the file system that holds `path` (syncfs): one call instead of
    /// an fsync for each of ten thousand files.
    virtual Result<void> sync_file_system(const Path& path) = 0;
};

/// The real one. Stateless; usable from any thread.
FileSystem& real_file_system();

/// One entry of a walk, relative to its root.
struct WalkEntry {
    RelPath path = RelPath::literal("unnamed");
    FileInfo info{};
};

/// All files, links and directories below `root`, sorted by path; links are not followed.
Result<std::vector<WalkEntry>> walk(FileSystem& fs, const Path& root);

/// True when the path exists and can be looked at; any error is false (use stat() where the reason
/// matters).
bool exists(FileSystem& fs, const Path& path);

} // namespace kb::sys
