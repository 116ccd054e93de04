// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "registry/commit_receiver.hpp"
#include "registry/service.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::registry {

namespace {

constexpr std::size_t kMaxPage = 1000;

bool is_directory(const hub::GitTreeItem& item) {
    return item.mode == hub::GitMode::tree;
}

} // namespace

TreeSource Service::tree_source() {
    return [this](const hub::GitOid& oid) {
        return parts_.meta.tree(oid);
    };
}

Reply<hub::TreeEntry>
Service::entry_of(const RepoRow& repo, const std::string& path, const hub::GitTreeItem& item) {
    KB_TRY(RelPath where, RelPath::parse(path));
    hub::TreeEntry entry{.oid = item.oid, .path = std::move(where)};
    if (is_directory(item)) {
        entry.kind = hub::EntryKind::directory;
        return entry;
    }
    KB_TRY(const std::optional<FileRow> file, parts_.meta.find_file(repo.key, item.oid));
    if (!file) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("the content of '{}' is unknown", path)};
    }
    entry.size = file->size;
    if (file->is_lfs) {
        entry.lfs = hub::LfsPointer{.oid = file->sha256, .size = file->size};
    }
    return entry;
}

Reply<TreePage>
Service::list_tree(const RepoRow& repo, const ResolvedRevision& at, const TreeQuery& query) {
    hub::GitOid root = at.commit.tree;
    TreeWalk walk{.recursive = query.recursive, .after = query.after};
    if (!query.path.empty()) {
        const Result<RelPath> path = RelPath::parse(query.path);
        if (!path) {
            return entry_not_found(query.path, at.oid.hex());
        }
        KB_TRY(const std::optional<hub::GitTreeItem> item, find_item(tree_source(), root, *path));
        if (!item || !is_directory(*item)) {
            return entry_not_found(query.path, at.oid.hex());
        }
        root = item->oid;
        walk.prefix = query.path + "/";
    }
    const std::size_t limit = std::clamp<std::size_t>(query.limit, 1, kMaxPage);
    std::vector<std::pair<std::string, hub::GitTreeItem>> found;
    KB_TRY(walk_tree(tree_source(),
                     root,
                     walk,
                     [&](const std::string& path, const hub::GitTreeItem& item) -> Result<bool> {
                         found.emplace_back(path, item);
                         return found.size() <= limit; // one more says that there is a next page
                     }));
    TreePage page;
    if (found.size() > limit) {
        found.pop_back();
        page.next = found.back().first;
    }
    for (const auto& item : found) {
        KB_TRY(hub::TreeEntry entry, entry_of(repo, item.first, item.second));
        page.entries.push_back(std::move(entry));
    }
    return page;
}

Reply<std::vector<hub::TreeEntry>> Service::paths_info(const RepoRow& repo,
                                                       const ResolvedRevision& at,
                                                       const std::vector<std::string>& paths) {
    std::vector<hub::TreeEntry> entries;
    for (const std::string& text : paths) {
        const Result<RelPath> path = RelPath::parse(text);
        if (!path) {
            continue;
        }
        KB_TRY(const std::optional<hub::GitTreeItem> item,
               find_item(tree_source(), at.commit.tree, *path));
        if (item) {
            KB_TRY(hub::TreeEntry entry, entry_of(repo, text, *item));
            entries.push_back(std::move(entry));
        }
    }
    return entries;
}

Reply<std::vector<hub::CommitInfo>>
Service::history(const RepoRow& repo, const ResolvedRevision& at, std::size_t limit) {
    std::vector<hub::CommitInfo> commits;
    hub::GitOid oid = at.oid;
    std::optional<hub::GitCommit> commit = at.commit;
    while (commit && commits.size() < limit) {
        commits.push_back({.id = oid,
                           .title = std::string{commit->title()},
                           .message = std::string{commit->body()},
                           .authors = {commit->author.name},
                           .time = commit->committer.time});
        if (commit->parents.empty()) {
            break;
        }
        oid = commit->parents.front();
        KB_TRY(commit, parts_.meta.find_commit(repo.key, oid));
    }
    return commits;
}

Reply<std::shared_ptr<const Service::KnownFile>>
Service::known_file(const RepoRow& repo, const ResolvedRevision& at, const RelPath& path) {
    const std::string key = fmt::format("{} {} {}", repo.key, at.commit.tree.hex(), path.text());
    if (auto known = files_.find(key)) {
        return known;
    }
    KB_TRY(const std::optional<hub::GitTreeItem> item,
           find_item(tree_source(), at.commit.tree, path));
    if (!item || is_directory(*item)) {
        return entry_not_found(path.text(), at.oid.hex());
    }
    KB_TRY(const std::optional<FileRow> file, parts_.meta.find_file(repo.key, item->oid));
    if (!file) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("the content of '{}' is unknown", path.text())};
    }
    KnownFile found{.row = *file};
    if (is_small(*file)) {
        KB_TRY(std::optional<std::string> bytes, parts_.meta.small_blob(file->sha256));
        if (!bytes) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("the content of '{}' is missing", path.text())};
        }
        found.bytes = std::move(*bytes);
    }
    const std::size_t size = sizeof found + found.bytes.size();
    auto shared = std::make_shared<const KnownFile>(std::move(found));
    files_.put(key, shared, size);
    return shared;
}

Reply<FileContent>
Service::open_file(const RepoRow& repo, const ResolvedRevision& at, const RelPath& path) {
    KB_TRY(const std::shared_ptr<const KnownFile> known, known_file(repo, at, path));
    FileContent content{.file = known->row};
    if (is_small(known->row)) {
        content.bytes = known->bytes;
        return content;
    }
    KB_TRY(content.bytes, parts_.blobs.open_read(known->row.sha256));
    return content;
}

} // namespace kb::registry
