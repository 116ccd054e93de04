// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "digest/digest.hpp"
#include "hub/git_object.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kb::upload {

/// A file of this machine and its place in the repository.
struct LocalFile {
    /// In the repository: "build/torch-cuda/__init__.py".
    RelPath path = RelPath::literal("unnamed");
    /// On this machine.
    std::string source{};
    std::uint64_t size = 0;
    digest::Digest sha256{};
    /// Id of the content as a git blob; known once somebody needed it.
    std::optional<hub::GitOid> git_oid{};

    bool operator==(const LocalFile&) const = default;
};

} // namespace kb::upload
