// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/result.hpp"
#include "store/manifest.hpp"
#include "store/unpack.hpp"
#include "sys/file_system.hpp"

#include <map>
#include <vector>

namespace kb::store {

/// Where the manifest of a published tree or root lies: beside it.
[[nodiscard]] sys::Path manifest_path(const sys::Path& tree);

/// Mode 0444 or 0555 and the fixed time for each file, the time for each link.
Result<void>
seal_files(sys::FileSystem& fs, const sys::Path& content, const FileManifest& manifest);
/// Mode 0555 and the fixed time for each directory below `content`, deepest first. `content` itself
/// stays writable: a directory that is renamed must be.
Result<void>
seal_directories(sys::FileSystem& fs, const sys::Path& content, const FileManifest& manifest);
/// Replaces files by hard links to equal ones in `objects` and puts new ones there. An
/// optimisation: a file that cannot be shared stays as it is.
Result<void> share_files(sys::FileSystem& fs,
                         const sys::Path& objects,
                         const sys::Path& content,
                         const FileManifest& manifest);
/// Name of an object: executables have their own, as the mode belongs to the file and not the name.
[[nodiscard]] sys::Path object_path(const sys::Path& objects, const ManifestEntry& entry);

/// Puts a root together in `content`, a new directory, by hard links to trees.
class RootBuilder {
public:
    RootBuilder(sys::FileSystem& fs, sys::Path content) : fs_{&fs}, content_{std::move(content)} {}

    Result<void> add_tree(const sys::Path& tree,
                          const FileManifest& manifest,
                          const std::vector<PathRule>& moves);
    Result<void> add_file(const FileImage& file);
    Result<void> add_link(const RelPath& path, const std::string& target);
    [[nodiscard]] FileManifest finish();

private:
    /// False: the same entry is there already.
    Result<bool> claim(const ManifestEntry& entry);

    sys::FileSystem* fs_;
    sys::Path content_;
    std::map<RelPath, ManifestEntry> entries_{};
};

} // namespace kb::store
