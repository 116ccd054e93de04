// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "store/manifest.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::store {

/// `conda` is the newer of the two formats (".conda"); the older one is a tar.
enum class ArchiveKind : std::uint8_t { zip, deb, tar, conda };
enum class AbsoluteLinks : std::uint8_t { refuse, keep };

/// Paths that start with `from` get `to` in its place, or are left out when there is no `to`.
struct PathRule {
    std::string from{};
    std::optional<std::string> to{};

    bool operator==(const PathRule&) const = default;
};

/// The first matching rule counts; a path that none matches is left out. No rules: all as is.
/// Nothing means: left out.
[[nodiscard]] std::optional<std::string> apply_rules(std::string_view path,
                                                     const std::vector<PathRule>& rules);

struct UnpackLimits {
    std::uint64_t max_entries = 200'000;
    std::uint64_t max_bytes = 8UL << 30U; ///< Of all files together.
    /// Unpacked to packed size, beyond the first 64 MiB: stops archives that are bombs.
    std::uint64_t max_ratio = 200;
};

struct UnpackRules {
    std::vector<PathRule> keep{};
    /// Files under these prefixes (after renaming) are executable whatever the archive says.
    std::vector<std::string> executable{};
    /// Links are data and never followed while unpacking. Absolute ones make sense only in trees
    /// that are mounted at a fixed place.
    AbsoluteLinks absolute_links = AbsoluteLinks::refuse;
    UnpackLimits limits{};

    /// Canonical, for keys: the same rules and archive give the same tree.
    [[nodiscard]] std::string to_text() const;
};

/// Unpacks into `destination`, a new directory of ours that nobody else writes to. Files are hashed
/// on the way. Refused as `corrupt`: paths that leave the destination, a path twice, a path below a
/// link, links that leave it, devices, set-id bits are dropped, anything over the limits. A deb or
/// a conda package is its data part; scripts are not looked at. Modes and times of the files are
/// not set.
Result<FileManifest> unpack(sys::FileSystem& fs,
                            const sys::Path& archive,
                            ArchiveKind kind,
                            const UnpackRules& rules,
                            const sys::Path& destination);

} // namespace kb::store
