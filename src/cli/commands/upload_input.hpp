// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/report.hpp"
#include "cli/services.hpp"
#include "upload/upload_plan.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// What of a project is published besides its variants.
namespace kb::cli {

enum class Sources : std::uint8_t { publish, leave_out };

/// Card and benchmarks of a project: `place` is where its variants lie, `root` the project.
[[nodiscard]] Result<void> read_extras(sys::FileSystem& fs,
                                       const sys::Path& place,
                                       const sys::Path& root,
                                       upload::UploadInput& out);

/// Statement, bill of materials, signature, lock and archive of the sources of each package of
/// `out` that has a statement. The result is what is not true of a statement, by variant; such a
/// one is not among the files.
[[nodiscard]] Result<std::map<std::string, std::vector<check::Finding>>>
read_statements(sys::FileSystem& fs, Sources sources, upload::UploadInput& out);

/// Whether a file can be written there later: says no before anything is published.
[[nodiscard]] Result<void> check_writable(sys::FileSystem& fs, const sys::Path& file);

} // namespace kb::cli
