// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <cstdint>

namespace kb::registry {

enum class CollectMode : std::uint8_t { look, remove };

struct CollectOptions {
    CollectMode mode = CollectMode::remove;
    /// What was uploaded, told to be present or deleted since then (Unix time) stays: a client may
    /// be about to commit it.
    std::int64_t before = 0;
    /// For what is done beside a running server.
    std::int64_t now = 0;
};

/// Beside a running server nothing younger goes: an upload may take that long.
inline constexpr std::int64_t kLeastServedGrace = 3600;

/// What goes, or would go.
struct CollectReport {
    std::uint64_t repositories = 0;
    std::uint64_t commits = 0;
    std::uint64_t trees = 0;
    std::uint64_t files = 0;
    /// Large objects that no commit names.
    std::uint64_t objects = 0;
    std::uint64_t blobs = 0;
    std::uint64_t bytes = 0;
    /// Uploads in parts that were given up.
    std::uint64_t uploads = 0;
};

/// Removes what no branch, tag or pull request leads to; also beside a running server, then
/// `denied` for a grace under kLeastServedGrace: a commit under way counts on contents that nothing
/// names yet. The metadata goes first, in one transaction; a crash after it leaves contents that
/// the next run removes.
[[nodiscard]] Result<CollectReport>
collect(sys::FileSystem& fs, const sys::Path& root, const CollectOptions& options);

} // namespace kb::registry
