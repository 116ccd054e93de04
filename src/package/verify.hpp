// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/report.hpp"
#include "package/metadata.hpp"
#include "package/package_digest.hpp"

#include <string>
#include <vector>

namespace kb::package {

/// A finished variant as a value: what `project` reads from build/<variant>/.
struct Package {
    /// Name of the variant directory.
    std::string variant{};
    Metadata metadata{};
    FileList files{};
    /// Where it lies on this machine; not part of its identity.
    std::string directory{};
};

/// Compares what the digest promises with what is there: algorithm, missing, changed and unknown
/// files, bytecode outside `__pycache__`, in that order; "digest" is the check of each finding. A
/// package without digest is one finding.
[[nodiscard]] std::vector<check::Finding> verify(const Metadata& metadata, const FileList& files);

/// verify(), and whether the directory name, backend, entry file and library agree with the
/// metadata ("package" is the check of these findings).
[[nodiscard]] std::vector<check::Finding> verify(const Package& package);

} // namespace kb::package
