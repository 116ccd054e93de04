// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hub/messages.hpp"
#include "hub/tree.hpp"
#include "upload/local_file.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kb::upload {

/// One state of one branch: all files of a commit.
struct RemoteTree {
    /// The commit that was listed.
    std::optional<hub::GitOid> head{};
    /// Path -> entry; directories are left out.
    std::map<RelPath, hub::TreeEntry> files{};

    [[nodiscard]] const hub::TreeEntry* find(const RelPath& path) const;
};

/// Does that entry hold these bytes? By sha256 for an LFS file, else by git id; a file whose git id
/// is not known does not match.
[[nodiscard]] bool is_same_content(const LocalFile& file, const hub::TreeEntry& entry);

/// Takes over the files of a listing. `corrupt` when a path comes twice.
[[nodiscard]] Result<RemoteTree> make_remote_tree(const hub::GitOid& head,
                                                  const std::vector<hub::TreeEntry>& entries);

} // namespace kb::upload
