// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "document/json.hpp"
#include "hub/revision.hpp"
#include "registry/archive.hpp"
#include "registry/commit_receiver.hpp"
#include "registry/path_policy.hpp"
#include "registry/root.hpp"
#include "store/unpack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace kb::registry {

namespace {

using document::Node;

constexpr std::uint64_t kMostEntries = 50'000'000;
constexpr std::uint64_t kMostBytes = 1ULL << 44U;
constexpr std::uint64_t kMostPayload = 64UL << 20U;
constexpr std::size_t kReadBlock = 1UL << 20U;

Error bad(std::string message) {
    return {.code = ErrorCode::corrupt,
            .message = "the archive cannot be taken over: " + std::move(message)};
}

struct ImportRef {
    std::string name{};
    hub::GitOid commit{};
};

/// A repository of the archive, checked.
struct ImportRepo {
    hub::RepoId id;
    hub::Visibility visibility = hub::Visibility::private_;
    std::vector<ImportRef> refs{};
    std::map<hub::GitOid, FileRow> files{};
    /// Commits with their parents, and trees, that the refs lead to.
    std::map<hub::GitOid, std::vector<hub::GitOid>> commits{};
    std::set<hub::GitOid> trees{};
};

Result<const Node*> array_of(const Node& node, std::string_view key) {
    const Node* list = node.find(key);
    if (list == nullptr || !list->is_array()) {
        return bad(fmt::format("'{}' is missing in registry.json", key));
    }
    return list;
}

bool is_true(const Node& node, std::string_view key) {
    const Node* value = node.find(key);
    return value != nullptr && value->is(Node::Kind::boolean) && value->as_bool();
}

Result<FileRow> parse_file(const Node& node) {
    FileRow file;
    KB_TRY(file.oid, hub::GitOid::from_hex(node.text_or("oid")));
    KB_TRY(file.sha256, digest::Digest::from_hex(node.text_or("sha256")));
    const Node* size = node.find("size");
    if (size == nullptr || !size->is_unsigned()) {
        return bad("a file has no size");
    }
    file.size = size->as_unsigned();
    file.is_lfs = is_true(node, "lfs");
    return file;
}

Result<ImportRepo> parse_repo(const Node& node) {
    const auto type = hub::parse_repo_type(node.text_or("type"));
    if (!type) {
        return bad("a repository has an unknown type");
    }
    KB_TRY(hub::RepoId id, hub::RepoId::parse(*type, node.text_or("id")));
    ImportRepo repo{.id = std::move(id),
                    .visibility = is_true(node, "private") ? hub::Visibility::private_
                                                           : hub::Visibility::public_};
    KB_TRY(const Node* refs, array_of(node, "refs"));
    for (const Node& item : refs->as_array()) {
        KB_TRY(const hub::RefName name, hub::RefName::parse_full(item.text_or("name")));
        if (name.kind() == hub::RefKind::pr) {
            return bad("pull requests are not imported");
        }
        KB_TRY(const hub::GitOid commit, hub::GitOid::from_hex(item.text_or("commit")));
        repo.refs.push_back({.name = name.full(), .commit = commit});
    }
    KB_TRY(const Node* files, array_of(node, "files"));
    for (const Node& item : files->as_array()) {
        KB_TRY(const FileRow file, parse_file(item));
        repo.files.emplace(file.oid, file);
    }
    return repo;
}

/// The unpacked archive. Every answer is checked against the id it was asked by.
class Unpacked {
public:
    Unpacked(sys::FileSystem& fs, sys::Path folder, const store::FileManifest& manifest)
        : fs_{&fs}, folder_{std::move(folder)} {
        for (const store::ManifestEntry& entry : manifest.entries) {
            if (entry.kind != store::EntryKind::symlink) {
                entries_.emplace(entry.path.text(), entry);
            }
        }
    }

    Result<std::string> text(const std::string& name, std::uint64_t most = kMostPayload) const {
        if (!entries_.contains(name)) {
            return bad(fmt::format("'{}' is missing", name));
        }
        return fs_->read_file(folder_ / name, most);
    }

    Result<std::string>
    object(hub::GitKind kind, std::string_view folder, const hub::GitOid& oid) const {
        const std::string name = fmt::format("{}/{}", folder, oid.hex());
        KB_TRY(std::string payload, text(name));
        if (hub::git_id(kind, payload) != oid) {
            return bad(fmt::format("'{}' was altered", name));
        }
        return payload;
    }

    [[nodiscard]] static std::string content_name(const FileRow& file) {
        return "contents/" + file.sha256.hex();
    }

    /// The content is there, is what its name says, and is what git's id says of it.
    Result<void> check_content(const FileRow& file) const {
        const std::string name = content_name(file);
        const auto found = entries_.find(name);
        if (found == entries_.end()) {
            return bad(fmt::format("'{}' is missing", name));
        }
        if (found->second.digest != file.sha256 || found->second.size != file.size) {
            return bad(fmt::format("'{}' was altered", name));
        }
        const hub::LfsPointer pointer{.oid = file.sha256, .size = file.size};
        KB_TRY(const hub::GitOid oid,
               file.is_lfs ? Result<hub::GitOid>{hub::pointer_id(pointer)} : blob_id(file));
        return oid == file.oid ? Result<void>{}
                               : bad(fmt::format("file {} is not '{}'", file.oid.hex(), name));
    }

    [[nodiscard]] sys::Path path(const FileRow& file) const { return folder_ / content_name(file); }

private:
    Result<hub::GitOid> blob_id(const FileRow& file) const {
        KB_TRY(const auto in, fs_->open_read(path(file)));
        hub::GitBlobHasher hasher{file.size};
        std::string block(std::min<std::uint64_t>(kReadBlock, file.size), '\0');
        for (std::uint64_t at = 0; at < file.size;) {
            KB_TRY(const std::size_t n, in->read_at(at, block.data(), block.size()));
            if (n == 0) {
                return bad("a file became shorter");
            }
            hasher.update(as_bytes(std::string_view{block}.substr(0, n)));
            at += n;
        }
        return hasher.finish();
    }

    sys::FileSystem* fs_;
    sys::Path folder_;
    std::map<std::string, store::ManifestEntry> entries_;
};

/// Everything that the refs of a repository lead to is there and sound.
class RepoChecker {
public:
    RepoChecker(const Unpacked& archive, ImportRepo& repo) : archive_{&archive}, repo_{&repo} {}

    Result<void> run() {
        for (const ImportRef& ref : repo_->refs) {
            KB_TRY(check_history(ref.commit).context("checking " + ref.name));
        }
        // What no ref leads to was not checked and is not taken over.
        std::erase_if(repo_->files,
                      [this](const auto& item) { return !checked_.contains(item.first); });
        return {};
    }

private:
    Result<void> check_history(const hub::GitOid& head) {
        std::vector<hub::GitOid> todo{head};
        while (!todo.empty()) {
            const hub::GitOid oid = todo.back();
            todo.pop_back();
            if (repo_->commits.contains(oid)) {
                continue;
            }
            KB_TRY(const std::string payload,
                   archive_->object(hub::GitKind::commit, "commits", oid));
            KB_TRY(const hub::GitCommit commit, hub::parse_commit(payload));
            todo.insert(todo.end(), commit.parents.begin(), commit.parents.end());
            repo_->commits.emplace(oid, commit.parents);
            KB_TRY(check_tree(commit.tree, ""));
        }
        return {};
    }

    /// A tree that stands in two places is looked at in both: what a path may be depends on it.
    // NOLINTNEXTLINE(misc-no-recursion): path_objection() limits the depth
    Result<void> check_tree(const hub::GitOid& oid, const std::string& prefix) {
        if (!places_.emplace(prefix, oid).second) {
            return {};
        }
        KB_TRY(const std::string payload, archive_->object(hub::GitKind::tree, "trees", oid));
        KB_TRY(const std::vector<hub::GitTreeItem> items, hub::parse_tree(payload));
        repo_->trees.insert(oid);
        std::vector<std::string> names;
        for (const hub::GitTreeItem& item : items) {
            names.push_back(item.name);
            KB_TRY(check_item(item, prefix + item.name));
        }
        if (const auto twins = case_twins(names)) {
            return bad(fmt::format("'{}' and '{}' differ in case only",
                                   escape_control(twins->first),
                                   escape_control(twins->second)));
        }
        return {};
    }

    // NOLINTNEXTLINE(misc-no-recursion): see check_tree()
    Result<void> check_item(const hub::GitTreeItem& item, const std::string& path) {
        KB_TRY(const RelPath where, RelPath::parse(path));
        if (const auto objection = path_objection(where)) {
            return bad(fmt::format("'{}': {}", escape_control(path), *objection));
        }
        if (item.mode == hub::GitMode::tree) {
            return check_tree(item.oid, path + "/");
        }
        if (item.mode != hub::GitMode::file && item.mode != hub::GitMode::executable) {
            return bad(fmt::format("'{}' is no file", escape_control(path)));
        }
        const auto file = repo_->files.find(item.oid);
        if (file == repo_->files.end()) {
            return bad(fmt::format("nothing says what '{}' holds", escape_control(path)));
        }
        return checked_.insert(item.oid).second ? archive_->check_content(file->second)
                                                : Result<void>{};
    }

    const Unpacked* archive_;
    ImportRepo* repo_;
    std::set<std::pair<std::string, hub::GitOid>> places_;
    std::set<hub::GitOid> checked_;
};

class Importer {
public:
    Importer(sys::FileSystem& fs, OpenedRoot& opened, const Unpacked& archive, std::int64_t now)
        : fs_{&fs},
          meta_{opened.meta.get()},
          blobs_{opened.blobs.get()},
          archive_{&archive},
          now_{now} {}

    /// That every ref of ours is equal or an ancestor.
    Result<void> check_refs(const ImportRepo& repo) {
        KB_TRY(const std::optional<RepoRow> row, meta_->find_repo_any_case(repo.id));
        if (!row) {
            return {};
        }
        if (row->id != repo.id) {
            return Error{.code = ErrorCode::denied,
                         .message =
                             fmt::format("'{}' is here as '{}'", repo.id.text(), row->id.text())};
        }
        for (const ImportRef& ref : repo.refs) {
            KB_TRY(const auto ours, meta_->find_ref(row->key, ref.name));
            const bool moves = ours && *ours != ref.commit;
            if (moves &&
                (ref.name.starts_with("refs/tags/") || !is_ancestor(repo, *ours, ref.commit))) {
                return Error{.code = ErrorCode::denied,
                             .message =
                                 fmt::format("{} of '{}' is at {} here, which is no ancestor "
                                             "of {} in the archive: nothing was imported",
                                             ref.name,
                                             repo.id.text(),
                                             ours->hex(),
                                             ref.commit.hex())};
            }
        }
        return {};
    }

    Result<void> import(const ImportRepo& repo, ArchiveReport& report) {
        ++report.repositories;
        KB_TRY(const RepoRow row, own_repo(repo));
        KB_TRY(adopt_contents(row, repo, report));
        for (const ImportRef& ref : repo.refs) {
            ++report.refs;
            KB_TRY(const auto ours, meta_->find_ref(row.key, ref.name));
            if (ours == ref.commit) {
                ++report.refs_unchanged;
                continue;
            }
            KB_TRY(move_ref(row, repo, ref, ours));
        }
        report.commits += repo.commits.size();
        report.files += repo.files.size();
        return {};
    }

private:
    static bool
    is_ancestor(const ImportRepo& repo, const hub::GitOid& wanted, const hub::GitOid& head) {
        std::vector<hub::GitOid> todo{head};
        std::set<hub::GitOid> seen;
        while (!todo.empty()) {
            const hub::GitOid oid = todo.back();
            todo.pop_back();
            if (oid == wanted) {
                return true;
            }
            const auto commit = repo.commits.find(oid);
            if (commit != repo.commits.end() && seen.insert(oid).second) {
                todo.insert(todo.end(), commit->second.begin(), commit->second.end());
            }
        }
        return false;
    }

    [[nodiscard]] AuditRow audit(const ImportRepo& repo, std::string detail) const {
        return {.time = now_,
                .actor = "registry import",
                .action = "import",
                .repo = fmt::format("{}/{}", hub::plural(repo.id.type()), repo.id.text()),
                .detail = std::move(detail)};
    }

    Result<RepoRow> own_repo(const ImportRepo& repo) {
        KB_TRY(std::optional<RepoRow> row, meta_->find_repo(repo.id));
        if (row) {
            return std::move(*row);
        }
        return meta_->create_repo(repo.id, repo.visibility, audit(repo, "new repository"));
    }

    Result<void> adopt_contents(const RepoRow& row, const ImportRepo& repo, ArchiveReport& report) {
        for (const auto& [oid, file] : repo.files) {
            report.bytes += counted_.insert(file.sha256).second ? file.size : 0;
            if (!is_small(file) && adopted_.insert(file.sha256).second) {
                // No copy: the file is ours and lies on the disk of the blobs. It keeps its place
                // here too, for a small file of the same content.
                const sys::Path link = archive_->path(file).string() + ".adopted";
                KB_TRY(fs_->hard_link(archive_->path(file), link));
                KB_TRY(blobs_->adopt(link, {.digest = file.sha256, .size = file.size}));
            }
            if (file.is_lfs) {
                KB_TRY(meta_->add_lfs(row.key, {.sha256 = file.sha256, .size = file.size}, now_));
            }
        }
        return {};
    }

    Result<void> move_ref(const RepoRow& row,
                          const ImportRepo& repo,
                          const ImportRef& ref,
                          const std::optional<hub::GitOid>& from) {
        RefChange change{.repo = row.key,
                         .name = ref.name,
                         .from = from,
                         .to = ref.commit,
                         .audit = audit(repo, ref.name + " " + ref.commit.hex())};
        for (const auto& [oid, parents] : repo.commits) {
            KB_TRY(std::string payload, archive_->object(hub::GitKind::commit, "commits", oid));
            change.commits.push_back({.oid = oid, .payload = std::move(payload)});
        }
        for (const hub::GitOid& oid : repo.trees) {
            KB_TRY(std::string payload, archive_->object(hub::GitKind::tree, "trees", oid));
            change.trees.push_back({.oid = oid, .payload = std::move(payload)});
        }
        std::vector<const FileRow*> small;
        for (const auto& [oid, file] : repo.files) {
            change.files.push_back(file);
            if (is_small(file)) {
                small.push_back(&file);
            }
        }
        change.small_blobs = [&](std::size_t i) -> Result<std::optional<SmallBlob>> {
            if (i >= small.size()) {
                return std::optional<SmallBlob>{};
            }
            KB_TRY(std::string content, archive_->text(Unpacked::content_name(*small[i])));
            return std::optional{
                SmallBlob{.sha256 = small[i]->sha256, .content = std::move(content)}};
        };
        KB_TRY(const ChangeOutcome outcome, meta_->change_ref(change));
        return outcome == ChangeOutcome::done
                   ? Result<void>{}
                   : Error{.code = ErrorCode::transient,
                           .message = fmt::format("'{}' was changed meanwhile: import it again",
                                                  ref.name)};
    }

    sys::FileSystem* fs_;
    MetaStore* meta_;
    store::BlobStore* blobs_;
    const Unpacked* archive_;
    std::int64_t now_;
    std::set<digest::Digest> adopted_;
    std::set<digest::Digest> counted_;
};

Result<std::vector<ImportRepo>> read_repos(const Unpacked& archive) {
    KB_TRY(const std::string text, archive.text("registry.json", 1UL << 30U));
    KB_TRY(const Node head,
           document::parse_json(text, {.name = "registry.json"}, {.max_depth = 8}));
    if (head.text_or("schema") != "kernel-builder/registry-archive/1") {
        return bad("registry.json is of another kind or of a newer program");
    }
    KB_TRY(const Node* list, array_of(head, "repositories"));
    std::vector<ImportRepo> repos;
    for (const Node& item : list->as_array()) {
        KB_TRY(ImportRepo repo, parse_repo(item));
        KB_TRY(RepoChecker(archive, repo).run().context("checking " + repo.id.text()));
        repos.push_back(std::move(repo));
    }
    return repos;
}

Result<ArchiveReport> import_unpacked(sys::FileSystem& fs,
                                      OpenedRoot& opened,
                                      const sys::Path& folder,
                                      const ImportOptions& options) {
    KB_TRY(fs.make_directories(folder));
    KB_TRY(const store::FileManifest manifest,
           store::unpack(fs,
                         options.archive,
                         store::ArchiveKind::tar,
                         {.limits = {.max_entries = kMostEntries, .max_bytes = kMostBytes}},
                         folder));
    const Unpacked archive{fs, folder, manifest};
    KB_TRY(const std::vector<ImportRepo> repos, read_repos(archive));
    Importer importer{fs, opened, archive, options.now};
    for (const ImportRepo& repo : repos) {
        KB_TRY(importer.check_refs(repo));
    }
    ArchiveReport report;
    for (const ImportRepo& repo : repos) {
        KB_TRY(importer.import(repo, report).context("importing " + repo.id.text()));
    }
    return report;
}

} // namespace

Result<ArchiveReport>
import_archive(sys::FileSystem& fs, const sys::Path& root, const ImportOptions& options) {
    KB_TRY(OpenedRoot opened, open_root(fs, root, RootUse::share));
    const sys::Path folder = RootPaths{root}.temporary() / ("import-" + store::unique_name());
    Result<ArchiveReport> report = import_unpacked(fs, opened, folder, options);
    KB_TRY(fs.remove_tree(folder)); // a server beside us sweeps only when it starts
    return report;
}

} // namespace kb::registry
