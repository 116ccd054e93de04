// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "digest/digest.hpp"
#include "package/verify.hpp"
#include "sys/file_system.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::project {

/// A finished variant: a directory that holds metadata.json.
struct VariantDir {
    std::string name{};
    sys::Path path{};
};

struct Discovery {
    /// The directory whose children the variants are.
    sys::Path place{};
    /// Sorted by name.
    std::vector<VariantDir> variants{};
    /// Other usual places that hold variants too and were not looked into.
    std::vector<sys::Path> shadowed{};
};

/// Looks at `directory`/build, `directory`/result and `directory` itself; the first with at least
/// one variant wins. A directory that is itself a variant gives that one. `not_found` lists what
/// was looked at.
[[nodiscard]] Result<Discovery> discover_variants(sys::FileSystem& fs, const sys::Path& directory);

/// Path and SHA-256 of every file of the variant. Links to files count as the file. `corrupt` names
/// any other link and what is neither file nor directory: Python would follow them, and no digest
/// covers what they lead to. Streams: memory does not grow with the files.
[[nodiscard]] Result<package::FileList> read_file_list(sys::FileSystem& fs,
                                                       const sys::Path& directory);

/// The same with another way to hash a file, such as HashCache.
using HashFile = std::function<Result<digest::Digest>(const sys::Path&)>;
[[nodiscard]] Result<package::FileList>
read_file_list(sys::FileSystem& fs, const sys::Path& directory, const HashFile& hash);

/// metadata.json and the file list of one variant.
[[nodiscard]] Result<package::Package> read_package(sys::FileSystem& fs, const VariantDir& variant);

/// Only metadata.json.
[[nodiscard]] Result<package::Metadata> read_metadata(sys::FileSystem& fs,
                                                      const VariantDir& variant);

/// One digest for a record: over path, content and mode of metadata.json and of all that its digest
/// covers, so that bytecode written by an import does not count.
[[nodiscard]] digest::Digest digest_of(const package::FileList& files);

/// Puts the whole staged directory in the place of `root`/build/`name` in one step; files of the
/// old one do not survive. `denied` when something without metadata.json stands there, which is not
/// ours to replace.
Result<void> publish_variant(sys::FileSystem& fs,
                             const sys::Path& staged,
                             const sys::Path& root,
                             std::string_view name);

} // namespace kb::project
