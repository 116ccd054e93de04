// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "config/config.hpp"
#include "generate/package_files.hpp"
#include "package/metadata.hpp"
#include "plan/source_snapshot.hpp"
#include "plan/support_matrix.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kb::generate {

struct ProjectInput {
    const config::Config& config;
    const plan::SupportMatrix& matrix;
    /// Says what each source needs; a source that it lacks is taken to need everything.
    const plan::SourceSnapshot& snapshot;
    /// Unique part of the ops id.
    std::string unique_id{};
    std::optional<package::Provenance> provenance{};
    Maturity maturity = Maturity::released;
};

/// The project that an author opens in an IDE or installs with pip, sorted by path: setup.py,
/// pyproject.toml, metadata-<backend>.json of every backend, and for compiled kernels a CMake
/// project whose tables hold what the rules decided for each toolkit. The same bytes on every
/// machine.
[[nodiscard]] std::vector<FileImage> project_files(const ProjectInput& input);

} // namespace kb::generate
