// SPDX-License-Identifier: Apache-2.0
#include "upload/remote_tree.hpp"

#include <fmt/format.h>

namespace kb::upload {

const hub::TreeEntry* RemoteTree::find(const RelPath& path) const {
    const auto found = files.find(path);
    return found == files.end() ? nullptr : &found->second;
}

bool is_same_content(const LocalFile& file, const hub::TreeEntry& entry) {
    if (entry.lfs) {
        return entry.lfs->oid == file.sha256 && entry.lfs->size == file.size;
    }
    return entry.size == file.size && file.git_oid && *file.git_oid == entry.oid;
}

Result<RemoteTree> make_remote_tree(const hub::GitOid& head,
                                    const std::vector<hub::TreeEntry>& entries) {
    RemoteTree tree{.head = head};
    for (const hub::TreeEntry& entry : entries) {
        if (entry.kind == hub::EntryKind::directory) {
            continue;
        }
        if (!tree.files.emplace(entry.path, entry).second) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("the listing of commit {} names '{}' twice",
                                                head.hex(),
                                                entry.path.text())};
        }
    }
    return tree;
}

} // namespace kb::upload
