// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "hub/git_object.hpp"
#include "registry/meta_store.hpp"
#include "registry/reply.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// Items of a tree object; where they come from is the caller's business.
using TreeSource = std::function<Result<std::vector<hub::GitTreeItem>>(const hub::GitOid&)>;

/// A tree under change. Reads only the directories that a change touches; everything else is kept
/// by its id.
class TreeEdit {
public:
    /// No `base`: an empty tree.
    TreeEdit(TreeSource source, std::optional<hub::GitOid> base);
    ~TreeEdit();
    TreeEdit(TreeEdit&&) noexcept;
    TreeEdit& operator=(TreeEdit&&) noexcept;
    TreeEdit(const TreeEdit&) = delete;
    TreeEdit& operator=(const TreeEdit&) = delete;

    /// 409 when a file stands where a directory is needed, or the other way round.
    [[nodiscard]] Reply<Done> put(const RelPath& path, const hub::GitOid& blob);
    /// False when there is no such file.
    [[nodiscard]] Reply<bool> remove_file(const RelPath& path);
    /// False when there is no such directory.
    [[nodiscard]] Reply<bool> remove_directory(const RelPath& path);
    [[nodiscard]] Reply<std::optional<hub::GitOid>> find_file(const RelPath& path);

    struct Written {
        hub::GitOid root{};
        /// Trees that were changed, so perhaps new ones.
        std::vector<GitPayload> trees{};
    };

    /// Empty directories are gone, as in git. 400 when a changed directory holds names that differ
    /// in case only.
    [[nodiscard]] Reply<Written> write();

private:
    struct Directory;

    [[nodiscard]] Result<void> load(Directory& directory) const;
    enum class Missing : std::uint8_t { leave, make };
    [[nodiscard]] Reply<Directory*> parent_of(const RelPath& path, Missing missing);
    [[nodiscard]] Reply<std::optional<hub::GitOid>> write(Directory& directory, Written& out);

    TreeSource source_;
    std::unique_ptr<Directory> root_;
};

/// The item at `path` in the tree `root`; nothing when there is none.
[[nodiscard]] Result<std::optional<hub::GitTreeItem>>
find_item(const TreeSource& source, const hub::GitOid& root, const RelPath& path);

/// Walks the tree in git's order, a directory before its content. `prefix` is put before the paths.
/// With `after` only what follows that path is told. Stops when `visit` says false.
struct TreeWalk {
    std::string prefix{};
    bool recursive = false;
    std::string after{};
};

[[nodiscard]] Result<void>
walk_tree(const TreeSource& source,
          const hub::GitOid& root,
          const TreeWalk& walk,
          const std::function<Result<bool>(const std::string&, const hub::GitTreeItem&)>& visit);

} // namespace kb::registry
