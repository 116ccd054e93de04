// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kb::registry {

struct ArchiveReport {
    std::uint64_t repositories = 0;
    std::uint64_t refs = 0;
    /// Of these an import left alone: they were there already.
    std::uint64_t refs_unchanged = 0;
    std::uint64_t commits = 0;
    std::uint64_t files = 0;
    /// Bytes of the distinct contents.
    std::uint64_t bytes = 0;
};

struct ExportOptions {
    /// A new file; it appears when it is whole.
    sys::Path output{};
    /// "kernels/owner/name"; none: all.
    std::vector<std::string> repos{};
};

/// Writes branches, tags, their history and contents as one uncompressed tar. Pull requests, tokens
/// and the audit stay here. Works beside a running server: what is named by a commit does not
/// change. `not_found` names a repository that is not there.
[[nodiscard]] Result<ArchiveReport>
export_archive(sys::FileSystem& fs, const sys::Path& root, const ExportOptions& options);

struct ImportOptions {
    sys::Path archive{};
    /// Unix time, for the audit and as the birth of new repositories.
    std::int64_t now = 0;
};

/// Takes over what an export wrote. Everything is checked before anything is written: the id of
/// every commit, tree and file, the digest of every content, that nothing is missing, that paths
/// are such as a commit may have, and that a ref which is there is equal or an ancestor (else
/// `denied`). Repeating a broken import finishes it. Works beside a running server; `transient`
/// when a ref moved meanwhile.
[[nodiscard]] Result<ArchiveReport>
import_archive(sys::FileSystem& fs, const sys::Path& root, const ImportOptions& options);

} // namespace kb::registry
