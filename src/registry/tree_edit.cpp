// SPDX-License-Identifier: Apache-2.0
#include "registry/tree_edit.hpp"

#include "base/text.hpp"
#include "registry/path_policy.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::registry {

using hub::GitMode;
using hub::GitOid;
using hub::GitTreeItem;

/// Subdirectories that were opened are in `open`; all other content is in `items`.
struct TreeEdit::Directory {
    std::optional<GitOid> oid{};
    bool is_loaded = false;
    std::map<std::string, GitTreeItem, std::less<>> items{};
    std::map<std::string, std::unique_ptr<Directory>, std::less<>> open{};

    [[nodiscard]] bool is_empty() const {
        return items.empty() && std::ranges::all_of(open, [](const auto& child) {
                   return child.second->is_loaded && child.second->is_empty();
               });
    }
};

TreeEdit::TreeEdit(TreeSource source, std::optional<GitOid> base)
    : source_{std::move(source)}, root_{std::make_unique<Directory>()} {
    root_->oid = base;
}

TreeEdit::~TreeEdit() = default;
TreeEdit::TreeEdit(TreeEdit&&) noexcept = default;
TreeEdit& TreeEdit::operator=(TreeEdit&&) noexcept = default;

Result<void> TreeEdit::load(Directory& directory) const {
    if (directory.is_loaded) {
        return {};
    }
    directory.is_loaded = true;
    if (!directory.oid) {
        return {};
    }
    KB_TRY(std::vector<GitTreeItem> items, source_(*directory.oid));
    for (GitTreeItem& item : items) {
        std::string name = item.name;
        directory.items.emplace(std::move(name), std::move(item));
    }
    return {};
}

/// The directory that holds the last part of `path`; null when it is missing and not to be made.
Reply<TreeEdit::Directory*> TreeEdit::parent_of(const RelPath& path, Missing missing) {
    Directory* at = root_.get();
    KB_TRY(load(*at));
    if (path.parent().empty()) {
        return at;
    }
    for (const std::string_view name : split(path.parent(), '/')) {
        const auto item = at->items.find(name);
        auto open = at->open.find(name);
        if (item != at->items.end() && item->second.mode != GitMode::tree) {
            if (missing == Missing::leave) {
                return nullptr;
            }
            return hub::HubStatus{
                .http = 409,
                .message = fmt::format("'{}' cannot be added: '{}' is a file", path.text(), name)};
        }
        if (open == at->open.end()) {
            if (item == at->items.end() && missing == Missing::leave) {
                return nullptr;
            }
            auto child = std::make_unique<Directory>();
            if (item != at->items.end()) {
                child->oid = item->second.oid;
                at->items.erase(item);
            }
            open = at->open.emplace(std::string{name}, std::move(child)).first;
        }
        at = open->second.get();
        KB_TRY(load(*at));
    }
    return at;
}

Reply<Done> TreeEdit::put(const RelPath& path, const GitOid& blob) {
    KB_TRY(Directory* const parent, parent_of(path, Missing::make));
    const std::string name{path.name()};
    const auto open = parent->open.find(name);
    const auto item = parent->items.find(name);
    const bool is_directory =
        (open != parent->open.end() && !(open->second->is_loaded && open->second->is_empty())) ||
        (item != parent->items.end() && item->second.mode == GitMode::tree);
    if (is_directory) {
        return hub::HubStatus{
            .http = 409,
            .message = fmt::format("'{}' cannot be a file: it is a directory", path.text())};
    }
    if (open != parent->open.end()) {
        parent->open.erase(open);
    }
    parent->items[name] = GitTreeItem{.mode = GitMode::file, .name = name, .oid = blob};
    return Done{};
}

Reply<std::optional<GitOid>> TreeEdit::find_file(const RelPath& path) {
    KB_TRY(Directory* const parent, parent_of(path, Missing::leave));
    if (parent == nullptr) {
        return std::optional<GitOid>{};
    }
    const auto item = parent->items.find(path.name());
    return item == parent->items.end() || item->second.mode == GitMode::tree
               ? std::optional<GitOid>{}
               : std::optional{item->second.oid};
}

Reply<bool> TreeEdit::remove_file(const RelPath& path) {
    KB_TRY(Directory* const parent, parent_of(path, Missing::leave));
    if (parent == nullptr) {
        return false;
    }
    const auto item = parent->items.find(path.name());
    if (item == parent->items.end() || item->second.mode == GitMode::tree) {
        return false;
    }
    parent->items.erase(item);
    return true;
}

Reply<bool> TreeEdit::remove_directory(const RelPath& path) {
    KB_TRY(Directory* const parent, parent_of(path, Missing::leave));
    if (parent == nullptr) {
        return false;
    }
    const auto open = parent->open.find(path.name());
    if (open != parent->open.end()) {
        const bool was_there = !open->second->is_empty();
        parent->open.erase(open);
        return was_there;
    }
    const auto item = parent->items.find(path.name());
    if (item == parent->items.end() || item->second.mode != GitMode::tree) {
        return false;
    }
    parent->items.erase(item);
    return true;
}

/// Nothing for an empty directory.
Reply<std::optional<GitOid>> TreeEdit::write(Directory& directory, Written& out) {
    KB_TRY(load(directory));
    for (auto& [name, child] : directory.open) {
        KB_TRY(const std::optional<GitOid> oid, write(*child, out));
        if (oid) {
            directory.items[name] = GitTreeItem{.mode = GitMode::tree, .name = name, .oid = *oid};
        }
    }
    directory.open.clear();
    if (directory.items.empty()) {
        return std::optional<GitOid>{};
    }
    std::vector<GitTreeItem> items;
    std::vector<std::string> names;
    for (const auto& [name, item] : directory.items) {
        items.push_back(item);
        names.push_back(name);
    }
    GitPayload tree{.payload = hub::write_tree(std::move(items))};
    tree.oid = hub::git_id(hub::GitKind::tree, tree.payload);
    if (tree.oid == directory.oid) {
        return std::optional{tree.oid};
    }
    if (const auto twins = case_twins(names)) {
        return hub::HubStatus{
            .http = 400,
            .message =
                fmt::format("'{}' and '{}' differ in case only, which many systems cannot hold",
                            twins->first,
                            twins->second)};
    }
    const std::optional<GitOid> oid = tree.oid;
    out.trees.push_back(std::move(tree));
    return oid;
}

Reply<TreeEdit::Written> TreeEdit::write() {
    Written out;
    KB_TRY(const std::optional<GitOid> root, write(*root_, out));
    if (root) {
        out.root = *root;
    } else {
        out.root = hub::git_id(hub::GitKind::tree, "");
        out.trees.push_back({.oid = out.root, .payload = ""});
    }
    return out;
}

Result<std::optional<GitTreeItem>>
find_item(const TreeSource& source, const GitOid& root, const RelPath& path) {
    GitTreeItem at{.mode = GitMode::tree, .name = "root", .oid = root};
    for (const std::string_view name : split(path.text(), '/')) {
        if (at.mode != GitMode::tree) {
            return std::optional<GitTreeItem>{};
        }
        KB_TRY(const std::vector<GitTreeItem> items, source(at.oid));
        const auto found = std::ranges::find(items, name, &GitTreeItem::name);
        if (found == items.end()) {
            return std::optional<GitTreeItem>{};
        }
        at = *found;
    }
    return std::optional{at};
}

namespace {

class Walker {
public:
    Walker(const TreeSource& source,
           const TreeWalk& walk,
           const std::function<Result<bool>(const std::string&, const GitTreeItem&)>& visit)
        : source_{&source}, walk_{&walk}, visit_{&visit}, is_skipping_{!walk.after.empty()} {}

    /// False to stop.
    Result<bool> walk(const GitOid& tree, const std::string& prefix) {
        KB_TRY(const std::vector<GitTreeItem> items, (*source_)(tree));
        for (const GitTreeItem& item : items) {
            KB_TRY(const bool go_on, take(item, prefix + item.name));
            if (!go_on) {
                return false;
            }
        }
        return true;
    }

private:
    Result<bool> take(const GitTreeItem& item, const std::string& path) {
        const bool is_tree = item.mode == GitMode::tree;
        if (is_skipping_) {
            const bool is_last = path == walk_->after;
            const bool leads_there =
                is_tree && walk_->recursive && walk_->after.starts_with(path + "/");
            is_skipping_ = !is_last;
            if (is_last || leads_there) {
                return is_tree && walk_->recursive ? walk(item.oid, path + "/")
                                                   : Result<bool>{true};
            }
            return true; // all of it came before
        }
        KB_TRY(const bool go_on, (*visit_)(path, item));
        return go_on && is_tree && walk_->recursive ? walk(item.oid, path + "/")
                                                    : Result<bool>{go_on};
    }

    const TreeSource* source_;
    const TreeWalk* walk_;
    const std::function<Result<bool>(const std::string&, const GitTreeItem&)>* visit_;
    bool is_skipping_;
};

} // namespace

Result<void>
walk_tree(const TreeSource& source,
          const GitOid& root,
          const TreeWalk& walk,
          const std::function<Result<bool>(const std::string&, const GitTreeItem&)>& visit) {
    Walker walker{source, walk, visit};
    KB_TRY([[maybe_unused]] const bool finished, walker.walk(root, walk.prefix));
    return {};
}

} // namespace kb::registry
