// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/result.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kb::project {

enum class Force : std::uint8_t { no, yes };
enum class DryRun : std::uint8_t { no, yes };

/// What a write did, or would do; paths sorted.
struct GeneratedReport {
    std::vector<std::string> written{};
    std::vector<std::string> unchanged{};
    std::vector<std::string> removed{};
    /// Files that are not ours or that somebody edited; when there are any and Force is no, nothing
    /// was done.
    std::vector<std::string> kept{};
};

/// Brings the generated files below `root` to `images`, guided by the manifest
/// (`.kernel-builder/manifest.json`, paths with digests of what we wrote): unchanged ones are
/// skipped, ours are replaced, foreign or edited ones are kept and named unless forced, ours that
/// are no longer generated are removed. Empty `images` removes all that is ours.
Result<GeneratedReport> write_generated(sys::FileSystem& fs,
                                        const sys::Path& root,
                                        const sys::Path& state,
                                        std::span<const FileImage> images,
                                        Force force,
                                        DryRun dry_run);

} // namespace kb::project
