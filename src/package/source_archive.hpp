// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"

#include <string>
#include <vector>

namespace kb::package {

/// The sources of a build as one uncompressed tar (POSIX: ustar, with pax records for long paths).
/// Sorted by path; owner, time and modes are the same for all, so equal sources give equal bytes.
[[nodiscard]] std::string write_source_archive(std::vector<FileImage> files);

} // namespace kb::package
