// SPDX-License-Identifier: Apache-2.0
#include "sys/file_system.hpp"

#include "sys/errno_error.hpp"
#include "sys/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace kb::sys {
namespace {

FileType type_of(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG:
        return FileType::regular;
    case S_IFDIR:
        return FileType::directory;
    case S_IFLNK:
        return FileType::symlink;
    default:
        return FileType::other;
    }
}

FileInfo info_of(const struct stat& s) {
    constexpr std::int64_t kNano = 1'000'000'000;
    return {.type = type_of(s.st_mode),
            .size = static_cast<std::uint64_t>(s.st_size),
            .mtime_ns = s.st_mtim.tv_sec * kNano + s.st_mtim.tv_nsec,
            .ctime_ns = s.st_ctim.tv_sec * kNano + s.st_ctim.tv_nsec,
            .device = s.st_dev,
            .inode = s.st_ino,
            .mode = s.st_mode & 07777U,
            .links = s.st_nlink};
}

mode_t creation_mode(FileMode mode) {
    return mode == FileMode::executable ? 0777 : 0666; // the umask takes its part
}

Result<void> write_all(int fd, std::string_view bytes, const Path& path) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            return file_error(errno, "writing", path);
        }
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

Result<void> sync_fd(int fd, const Path& path) {
    if (::fsync(fd) != 0) {
        return file_error(errno, "syncing", path);
    }
    return {};
}

class PosixInput final : public InputFile {
public:
    PosixInput(UniqueFd fd, std::uint64_t size, Path path)
        : fd_{std::move(fd)}, size_{size}, path_{std::move(path)} {}

    Result<std::size_t> read_at(std::uint64_t offset, char* buffer, std::size_t size) override {
        std::size_t done = 0;
        while (done < size) {
            const ssize_t n =
                ::pread(fd_.get(), buffer + done, size - done, static_cast<off_t>(offset + done));
            if (n < 0) {
                if (errno == EINTR) {
                    continue;
                }
                return file_error(errno, "reading", path_);
            }
            if (n == 0) {
                break;
            }
            done += static_cast<std::size_t>(n);
        }
        return done;
    }

    [[nodiscard]] std::uint64_t size() const override { return size_; }

    [[nodiscard]] int descriptor() const override { return fd_.get(); }

private:
    UniqueFd fd_;
    std::uint64_t size_;
    Path path_;
};

class PosixOutput final : public OutputFile {
public:
    PosixOutput(UniqueFd fd, Path path) : fd_{std::move(fd)}, path_{std::move(path)} {}

    Result<void> write(std::string_view bytes) override {
        return write_all(fd_.get(), bytes, path_);
    }

    Result<void> sync() override { return sync_fd(fd_.get(), path_); }

private:
    UniqueFd fd_;
    Path path_;
};

Result<UniqueFd> create_file(const Path& path, mode_t mode) {
    UniqueFd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)};
    if (!fd) {
        return file_error(errno, "creating", path);
    }
    return fd;
}

/// A name beside `path` that no other process and no other thread uses.
Path temporary_beside(const Path& path) {
    static std::atomic<unsigned> counter{0};
    return path.parent_path() /
           fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), counter.fetch_add(1));
}

Path directory_of(const Path& path) {
    return path.has_parent_path() ? path.parent_path() : Path{"."};
}

Result<void> copy_bytes(int from, int to, const Path& from_path, const Path& to_path) {
    if (::ioctl(to, FICLONE, from) == 0) {
        return {};
    }
    while (true) {
        const ssize_t n = ::copy_file_range(from, nullptr, to, nullptr, 1UL << 30U, 0);
        if (n == 0) {
            return {};
        }
        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            break; // another file system or an old kernel: by hand, from where it stopped
        }
    }
    std::array<char, 1UL << 16U> buffer{};
    while (true) {
        const ssize_t n = ::read(from, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return file_error(errno, "reading", from_path);
        }
        if (n == 0) {
            return {};
        }
        KB_TRY(write_all(to, {buffer.data(), static_cast<std::size_t>(n)}, to_path));
    }
}

class PosixFileSystem final : public FileSystem {
public:
    Result<std::string> read_file(const Path& path, std::uint64_t max_bytes) override {
        KB_TRY(const auto file, open_to_read(path));
        std::string out;
        std::array<char, 1UL << 16U> buffer{};
        while (true) { // /proc files have size 0: read to the end, not to the size
            const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n < 0) {
                return file_error(errno, "reading", path);
            }
            if (n == 0) {
                return out;
            }
            out.append(buffer.data(), static_cast<std::size_t>(n));
            if (out.size() > max_bytes) {
                return Error{.code = ErrorCode::corrupt,
                             .message = fmt::format("'{}' is larger than the limit of {} bytes",
                                                    path.string(),
                                                    max_bytes)};
            }
        }
    }

    Result<FileInfo> stat(const Path& path, FollowLinks follow) override {
        struct stat s = {};
        const int flags = follow == FollowLinks::no ? AT_SYMLINK_NOFOLLOW : 0;
        if (::fstatat(AT_FDCWD, path.c_str(), &s, flags) != 0) {
            return file_error(errno, "looking at", path);
        }
        return info_of(s);
    }

    Result<std::vector<DirEntry>> list(const Path& directory) override;

    Result<std::string> read_link(const Path& path) override {
        std::string out(4096, '\0');
        const ssize_t n = ::readlink(path.c_str(), out.data(), out.size());
        if (n < 0) {
            return file_error(errno, "reading link", path);
        }
        out.resize(static_cast<std::size_t>(n));
        return out;
    }

    Result<std::unique_ptr<InputFile>> open_read(const Path& path) override {
        // O_NONBLOCK: opening a FIFO must not wait for a writer.
        UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
        if (!fd) {
            return file_error(errno, "opening", path);
        }
        struct stat s = {};
        if (::fstat(fd.get(), &s) != 0) {
            return file_error(errno, "looking at", path);
        }
        if (!S_ISREG(s.st_mode)) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format("'{}' is not a regular file", path.string())};
        }
        const auto size = static_cast<std::uint64_t>(s.st_size);
        return std::unique_ptr<InputFile>{std::make_unique<PosixInput>(std::move(fd), size, path)};
    }

    Result<std::unique_ptr<OutputFile>> create(const Path& path, FileMode mode) override {
        KB_TRY(UniqueFd fd, create_file(path, creation_mode(mode)));
        return std::unique_ptr<OutputFile>{std::make_unique<PosixOutput>(std::move(fd), path)};
    }

    Result<void> write_atomic(const Path& path, std::string_view content, FileMode mode) override {
        const Path temporary = temporary_beside(path);
        auto written = write_and_rename(temporary, path, content, mode);
        if (!written) {
            ::unlink(temporary.c_str());
            return written;
        }
        return sync_directory(directory_of(path));
    }

    Result<void> append_durable(const Path& path, std::string_view content) override {
        const UniqueFd fd{::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)};
        if (!fd) {
            return file_error(errno, "opening", path);
        }
        KB_TRY(write_all(fd.get(), content, path));
        return sync_fd(fd.get(), path);
    }

    Result<void> write_scratch(const Path& path, std::string_view content, FileMode mode) override {
        const UniqueFd fd{::open(path.c_str(),
                                 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                                 creation_mode(mode))};
        if (!fd) {
            return file_error(errno, "creating", path);
        }
        return write_all(fd.get(), content, path);
    }

    Result<void> copy_file(const Path& from, const Path& to) override {
        KB_TRY(const auto source, open_read(from));
        KB_TRY(const FileInfo info, stat(from, FollowLinks::yes));
        KB_TRY(const UniqueFd target, create_file(to, 0600));
        auto copied = copy_bytes(source->descriptor(), target.get(), from, to);
        if (copied && ::fchmod(target.get(), info.mode & 0777U) != 0) {
            copied = file_error(errno, "setting the mode of", to);
        }
        if (!copied) {
            ::unlink(to.c_str());
        }
        return copied;
    }

    Result<void> make_directories(const Path& path) override {
        std::error_code error;
        std::filesystem::create_directories(path, error);
        if (error) {
            return file_error(error.value(), "making directory", path);
        }
        return {};
    }

    Result<void> remove_tree(const Path& path) override { return remove_tree_by_descriptor(path); }

    Result<void> remove_file(const Path& path) override {
        return checked(::unlink(path.c_str()) == 0 || errno == ENOENT, "removing", path);
    }

    Result<void> rename(const Path& from, const Path& to) override {
        if (::rename(from.c_str(), to.c_str()) != 0) {
            return error_from_errno(
                errno, fmt::format("renaming '{}' to '{}'", from.string(), to.string()));
        }
        return {};
    }

    Result<void> exchange(const Path& a, const Path& b) override {
        if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) {
            // EINVAL: a file system that cannot exchange; callers may fall back to two renames.
            const int code = errno == EINVAL ? ENOTSUP : errno;
            return error_from_errno(
                code, fmt::format("exchanging '{}' and '{}'", a.string(), b.string()));
        }
        return {};
    }

    Result<void> symlink(std::string_view target, const Path& link) override {
        return checked(::symlink(std::string{target}.c_str(), link.c_str()) == 0, "linking", link);
    }

    Result<void> hard_link(const Path& from, const Path& to) override {
        return checked(
            ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) == 0, "linking", to);
    }

    Result<void> set_mtime(const Path& path, std::int64_t seconds) override {
        const std::array<timespec, 2> times{timespec{.tv_sec = seconds, .tv_nsec = 0},
                                            timespec{.tv_sec = seconds, .tv_nsec = 0}};
        return checked(::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0,
                       "setting the time of",
                       path);
    }

    Result<void> set_mode(const Path& path, std::uint32_t mode) override {
        return checked(::chmod(path.c_str(), mode) == 0, "setting the mode of", path);
    }

    Result<void> sync_directory(const Path& directory) override {
        const UniqueFd fd{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        if (!fd) {
            return file_error(errno, "opening", directory);
        }
        return sync_fd(fd.get(), directory);
    }

    Result<void> sync_file_system(const Path& path) override {
        KB_TRY(const auto fd, open_any(path));
        if (::syncfs(fd.get()) != 0) {
            return file_error(errno, "syncing", path);
        }
        return {};
    }

private:
    static Result<void> checked(bool good, std::string_view doing, const Path& path) {
        return good ? Result<void>{} : file_error(errno, doing, path);
    }

    /// A FIFO that lies about would wait for a writer for ever. One that the shell hands over
    /// (`<(command)`, /dev/stdin) has its writer.
    static Result<UniqueFd> open_to_read(const Path& path) {
        const std::string_view name = path.native();
        if (name.starts_with("/dev/") || name.starts_with("/proc/")) {
            return open_any(path);
        }
        UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
        if (!fd) {
            return file_error(errno, "opening", path);
        }
        struct stat s = {};
        if (::fstat(fd.get(), &s) != 0) {
            return file_error(errno, "looking at", path);
        }
        if (S_ISFIFO(s.st_mode)) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format("'{}' is a pipe, not a file", path.string())};
        }
        return fd;
    }

    static Result<UniqueFd> open_any(const Path& path) {
        UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
        if (!fd) {
            return file_error(errno, "opening", path);
        }
        return fd;
    }

    static Result<void> write_and_rename(const Path& temporary,
                                         const Path& path,
                                         std::string_view content,
                                         FileMode mode) {
        KB_TRY(const UniqueFd fd, create_file(temporary, creation_mode(mode)));
        KB_TRY(write_all(fd.get(), content, path));
        KB_TRY(sync_fd(fd.get(), path));
        if (::rename(temporary.c_str(), path.c_str()) != 0) {
            return file_error(errno, "replacing", path);
        }
        return {};
    }
};

Result<std::vector<DirEntry>> PosixFileSystem::list(const Path& directory) {
    struct CloseDir {
        void operator()(DIR* dir) const { ::closedir(dir); }
    };

    const std::unique_ptr<DIR, CloseDir> dir{::opendir(directory.c_str())};
    if (!dir) {
        return file_error(errno, "listing", directory);
    }
    std::vector<DirEntry> out;
    while (true) {
        errno = 0;
        const dirent* entry = ::readdir(dir.get()); // NOLINT(concurrency-mt-unsafe): own stream
        if (entry == nullptr) {
            break;
        }
        const std::string_view name{static_cast<const char*>(entry->d_name)};
        if (name == "." || name == "..") {
            continue;
        }
        struct stat s = {};
        if (::fstatat(::dirfd(dir.get()), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) {
                continue; // removed while we looked
            }
            return file_error(errno, "looking at", directory / name);
        }
        out.push_back({.name = std::string{name}, .type = type_of(s.st_mode)});
    }
    if (errno != 0) {
        return file_error(errno, "listing", directory);
    }
    std::ranges::sort(out, {}, &DirEntry::name);
    return out;
}

Result<void> walk_into(FileSystem& fs,
                       const Path& directory,
                       const std::string& prefix,
                       std::vector<WalkEntry>& out) {
    KB_TRY(const auto entries, fs.list(directory));
    for (const DirEntry& entry : entries) {
        auto relative = RelPath::parse(prefix + entry.name);
        if (!relative) {
            return std::move(relative)
                .context(fmt::format("in directory '{}'", directory.string()))
                .error();
        }
        const Path path = directory / entry.name;
        KB_TRY(const FileInfo info, fs.stat(path, FollowLinks::no));
        out.push_back({.path = *relative, .info = info});
        if (info.type == FileType::directory) {
            KB_TRY(walk_into(fs, path, relative->text() + "/", out));
        }
    }
    return {};
}

} // namespace

Error file_error(int errno_value, std::string_view doing, const Path& path) {
    Error error = error_from_errno(errno_value, fmt::format("{} '{}'", doing, path.string()));
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
    case EEXIST:
    case ELOOP:
    case ENOTEMPTY:
    case EISDIR:
        error.code = ErrorCode::denied;
        break;
    default:
        break;
    }
    return error;
}

FileSystem& real_file_system() {
    static PosixFileSystem fs;
    return fs;
}

Result<std::vector<WalkEntry>> walk(FileSystem& fs, const Path& root) {
    std::vector<WalkEntry> out;
    KB_TRY(walk_into(fs, root, "", out));
    std::ranges::sort(out, {}, &WalkEntry::path);
    return out;
}

bool exists(FileSystem& fs, const Path& path) {
    return fs.stat(path, FollowLinks::no).has_value();
}

} // namespace kb::sys
