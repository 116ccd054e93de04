// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/rel_path.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kb::package {

/// One file of a variant directory, as it was read from disk.
struct FileEntry {
    RelPath path = RelPath::literal("unnamed");
    std::uint64_t size = 0;
    digest::Digest sha256{};
    FileMode mode = FileMode::regular;

    bool operator==(const FileEntry&) const = default;
};

/// Sorted by path (bytes), each path once.
using FileList = std::vector<FileEntry>;

/// The `digest` table of metadata.json: relative path -> base64 of the file's hash. Ordered by
/// bytes.
struct PackageDigest {
    /// "sha256" is what we write; "sha512" is legal in what others wrote.
    std::string algorithm = "sha256";
    std::map<std::string, std::string> files{};

    bool operator==(const PackageDigest&) const = default;
};

/// What Python may run in place of a source, and what it writes when a variant is imported: below
/// `__pycache__`. A `.pyc` anywhere else was put there by somebody.
enum class Bytecode : std::uint8_t { none, cached, placed };

/// By the path alone.
[[nodiscard]] Bytecode bytecode_of(const RelPath& path);

/// Whether the digest covers the file: not metadata.json and metadata.json.sigstore at the top, no
/// bytecode.
[[nodiscard]] bool is_digested(const RelPath& path);

[[nodiscard]] PackageDigest compute_digest(const FileList& files);

} // namespace kb::package
