// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "build/pipeline.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kb::build {

/// Where two files of one name part.
struct FileDifference {
    /// Below the variant directory.
    std::string file{};
    /// Of an ELF file: the first section whose bytes differ, but for the build id, which is a
    /// digest of the rest. "" for other files.
    std::string section{};
    /// First differing byte, counted from the start of the section or file.
    std::uint64_t offset = 0;
    /// "changed", or which build alone has the file: "only in the first", "only in the second".
    std::string what{};

    bool operator==(const FileDifference&) const = default;
};

struct ReproduceReport {
    std::string variant{};
    /// Reports of the builds that were run: one when the first failed.
    std::vector<BuildReport> builds{};
    /// Empty when both made the same bytes. Libraries come first: metadata.json holds their digest.
    std::vector<FileDifference> differences{};
    /// Where both variant directories were kept; empty when they are equal.
    std::vector<sys::Path> kept{};

    [[nodiscard]] bool equal() const;
};

/// What the files of two variant directories do not share, in the order of ReproduceReport.
[[nodiscard]] Result<std::vector<FileDifference>>
compare_variants(sys::FileSystem& fs, const sys::Path& first, const sys::Path& second);

/// Builds the one variant of the plan twice without a compiler cache, in two new directories below
/// `scratch` with other names and lengths, under another user name, home, time zone, locale and
/// number of jobs, and compares every file. `scratch` is removed when they are equal or a build
/// failed.
[[nodiscard]] Result<ReproduceReport> reproduce(const BuildInput& input,
                                                const BuildOptions& options,
                                                const BuildServices& services,
                                                const BuildEvents& events,
                                                const sys::Path& scratch);

} // namespace kb::build
