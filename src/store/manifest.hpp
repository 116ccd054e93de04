// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "base/result.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kb::store {

enum class EntryKind : std::uint8_t { regular, executable, symlink };

/// A file or a link of a tree. Directories are implied by the paths.
struct ManifestEntry {
    RelPath path = RelPath::literal("unnamed");
    EntryKind kind = EntryKind::regular;
    std::uint64_t size = 0;  ///< Of the content; 0 for a link.
    digest::Digest digest{}; ///< Of the content; zero for a link.
    std::string target{};    ///< Of a link, as it stands in the file system.

    bool operator==(const ManifestEntry&) const = default;
};

/// Everything in a tree, sorted by path. Its text is canonical: the tree is named by its sha256.
struct FileManifest {
    std::vector<ManifestEntry> entries{};

    void sort();
    /// One line an entry: kind, sha256, size or target, path, separated by tabs.
    [[nodiscard]] std::string to_text() const;
    [[nodiscard]] digest::Digest digest() const;
    /// Reads what to_text() wrote; `corrupt` names the line. Unsorted or repeated paths are
    /// corrupt.
    [[nodiscard]] static Result<FileManifest> parse(std::string_view text);

    bool operator==(const FileManifest&) const = default;
};

} // namespace kb::store
