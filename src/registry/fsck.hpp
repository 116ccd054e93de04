// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kb::registry {

struct FsckReport {
    std::uint64_t repositories = 0;
    std::uint64_t refs = 0;
    std::uint64_t commits = 0;
    std::uint64_t trees = 0;
    std::uint64_t files = 0;
    std::uint64_t blobs = 0;
    /// Blobs that nothing names: left by an upload that was not committed, or by a crash.
    std::uint64_t unreferenced_blobs = 0;
    std::uint64_t temporaries = 0;
    /// One line each; empty: all that can be reached is there and is what its id says.
    std::vector<std::string> problems{};
};

/// Reads everything: the database's own check, every ref down to its files, the hash of every
/// object. Works beside a running server; then temporaries are uploads under way.
[[nodiscard]] Result<FsckReport> fsck(sys::FileSystem& fs, const sys::Path& root);

} // namespace kb::registry
