// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "package/verify.hpp"
#include "sys/file_system.hpp"

#include <string>
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

/// Path and SHA-256 of every file of the variant. Links to files count as the file; links to
/// directories are left out, as in the digest; a broken link is `corrupt`. Streams: memory does not
/// grow with the files.
[[nodiscard]] Result<package::FileList> read_file_list(sys::FileSystem& fs,
                                                       const sys::Path& directory);

/// metadata.json and the file list of one variant.
[[nodiscard]] Result<package::Package> read_package(sys::FileSystem& fs, const VariantDir& variant);

/// Only metadata.json.
[[nodiscard]] Result<package::Metadata> read_metadata(sys::FileSystem& fs,
                                                      const VariantDir& variant);

} // namespace kb::project
