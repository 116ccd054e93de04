// SPDX-License-Identifier: Apache-2.0
#include "sys/errno_error.hpp"
#include "sys/unique_fd.hpp"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace kb::sys {
namespace {

struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
};

// Everything goes by descriptor and O_NOFOLLOW: a link that is swapped in while we walk must not
// lead the removal out of the tree.
Result<void> remove_entry(int parent, const char* name, const Path& shown);

Result<void> remove_content(UniqueFd directory, const Path& shown) {
    const std::unique_ptr<DIR, CloseDir> dir{::fdopendir(directory.get())};
    if (!dir) {
        return file_error(errno, "listing", shown);
    }
    const int fd = directory.release(); // owned by `dir` now
    while (true) {
        errno = 0;
        const dirent* entry = ::readdir(dir.get()); // NOLINT(concurrency-mt-unsafe): own stream
        if (entry == nullptr) {
            break;
        }
        const char* name = static_cast<const char*>(entry->d_name);
        if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) {
            continue;
        }
        KB_TRY(remove_entry(fd, name, shown / name));
    }
    if (errno != 0) {
        return file_error(errno, "listing", shown);
    }
    return {};
}

Result<void> remove_entry(int parent, const char* name, const Path& shown) {
    if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
        return {};
    }
    if (errno != EISDIR && errno != EPERM) {
        return file_error(errno, "removing", shown);
    }
    UniqueFd directory{::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!directory && errno == EACCES && ::fchmodat(parent, name, 0700, 0) == 0) {
        directory =
            UniqueFd{::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    }
    if (!directory) {
        return file_error(errno, "opening", shown);
    }
    struct stat info = {};
    if (::fstat(directory.get(), &info) == 0 && (info.st_mode & 0700U) != 0700U) {
        // Trees of the store are read-only: nobody but root may unlink in them as they are.
        if (::fchmod(directory.get(), 0700) != 0) {
            return file_error(errno, "making writable", shown);
        }
    }
    KB_TRY(remove_content(std::move(directory), shown));
    if (::unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        return file_error(errno, "removing", shown);
    }
    return {};
}

} // namespace

Result<void> remove_tree_by_descriptor(const Path& path) {
    struct stat info = {};
    if (::lstat(path.c_str(), &info) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? Result<void>{}
                                                   : file_error(errno, "removing", path);
    }
    return remove_entry(AT_FDCWD, path.c_str(), path);
}

} // namespace kb::sys
