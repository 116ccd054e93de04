// SPDX-License-Identifier: Apache-2.0
#include "registry/fsck.hpp"

#include "base/text.hpp"
#include "registry/commit_receiver.hpp"
#include "registry/database.hpp"
#include "registry/root.hpp"

#include <fmt/format.h>

#include <set>

namespace kb::registry {

namespace {

using hub::GitOid;

/// One pass over a registry. Everything that is shared is looked at once.
class Checker {
public:
    Checker(Database& db, store::BlobStore& blobs, FsckReport& report)
        : db_{&db}, blobs_{&blobs}, report_{&report} {}

    Result<void> run() {
        KB_TRY(check_database());
        KB_TRY(check_refs());
        KB_TRY(check_uploads());
        return check_blobs();
    }

private:
    void problem(std::string text) { report_->problems.push_back(std::move(text)); }

    Result<void> check_database() {
        KB_TRY(Statement row, db_->query("PRAGMA integrity_check"));
        while (true) {
            KB_TRY(const bool found, row.step());
            if (!found) {
                break;
            }
            if (row.text(0) != "ok") {
                problem(fmt::format("database: {}", row.text(0)));
            }
        }
        KB_TRY(Statement count, db_->query("SELECT COUNT(*) FROM repo WHERE deleted IS NULL"));
        KB_TRY([[maybe_unused]] const bool has_count, count.step());
        report_->repositories = static_cast<std::uint64_t>(count.integer(0));
        return {};
    }

    struct RefToCheck {
        RepoKey repo = 0;
        std::string name{};
        std::string oid{};
    };

    Result<void> check_refs() {
        std::vector<RefToCheck> refs;
        KB_TRY(Statement row, db_->query("SELECT repo, name, oid FROM ref"));
        while (true) {
            KB_TRY(const bool found, row.step());
            if (!found) {
                break;
            }
            refs.push_back({.repo = row.integer(0),
                            .name = std::string{row.text(1)},
                            .oid = std::string{row.blob(2)}});
        }
        for (const RefToCheck& ref : refs) {
            ++report_->refs;
            KB_TRY(check_history(ref));
        }
        return {};
    }

    /// From the ref through all parents that were not looked at before.
    Result<void> check_history(const RefToCheck& ref) {
        std::vector<std::string> todo{ref.oid};
        while (!todo.empty()) {
            const std::string oid = std::move(todo.back());
            todo.pop_back();
            if (!commits_.emplace(ref.repo, oid).second) {
                continue;
            }
            ++report_->commits;
            KB_TRY(const std::optional<std::string> payload,
                   payload_of("SELECT payload FROM commit_object WHERE repo=?1 AND oid=?2",
                              ref.repo,
                              oid));
            const std::string where = fmt::format("repository {}, {}", ref.repo, ref.name);
            const auto commit = checked(hub::GitKind::commit, payload, oid, where);
            const Result<hub::GitCommit> parsed =
                commit ? hub::parse_commit(*commit) : Error{.message = ""};
            if (!parsed) {
                continue;
            }
            for (const GitOid& parent : parsed->parents) {
                todo.push_back(bytes_of(parent));
            }
            KB_TRY(check_tree(ref.repo, bytes_of(parsed->tree), where));
        }
        return {};
    }

    Result<void> check_tree(RepoKey repo, const std::string& oid, const std::string& where) {
        if (!trees_.emplace(repo, oid).second) {
            return {};
        }
        ++report_->trees;
        KB_TRY(const std::optional<std::string> payload,
               payload_of("SELECT payload FROM tree WHERE ?1=?1 AND oid=?2", repo, oid));
        const auto tree = checked(hub::GitKind::tree, payload, oid, where);
        const Result<std::vector<hub::GitTreeItem>> items =
            tree ? hub::parse_tree(*tree) : Error{.message = ""};
        if (!items) {
            return {};
        }
        for (const hub::GitTreeItem& item : *items) {
            const std::string path = fmt::format("{}: '{}'", where, escape_control(item.name));
            if (item.mode == hub::GitMode::tree) {
                KB_TRY(check_tree(repo, bytes_of(item.oid), where));
            } else {
                KB_TRY(check_file(repo, item.oid, path));
            }
        }
        return {};
    }

    Result<void> check_file(RepoKey repo, const GitOid& oid, const std::string& where) {
        if (!files_.emplace(repo, bytes_of(oid)).second) {
            return {};
        }
        ++report_->files;
        const std::string key = bytes_of(oid);
        KB_TRY(Statement row,
               db_->query("SELECT sha256, size, lfs FROM file WHERE repo=? AND oid=?",
                          {repo, SqlBlob{key}}));
        KB_TRY(const bool found, row.step());
        if (!found) {
            problem(fmt::format("{}: the content of blob {} is unknown", where, oid.hex()));
            return {};
        }
        FileRow file{.oid = oid,
                     .size = static_cast<std::uint64_t>(row.integer(1)),
                     .is_lfs = row.integer(2) != 0};
        std::ranges::copy(row.blob(0).substr(0, 32), file.sha256.bytes.begin());
        if (file.is_lfs && hub::pointer_id({.oid = file.sha256, .size = file.size}) != oid) {
            problem(fmt::format("{}: blob {} is not the pointer it stands for", where, oid.hex()));
        }
        if (is_small(file)) {
            return check_small(file, where);
        }
        used_[file.sha256] = file.size;
        return {};
    }

    Result<void> check_small(const FileRow& file, const std::string& where) {
        const std::string key{as_text(std::as_bytes(std::span{file.sha256.bytes}))};
        KB_TRY(Statement row,
               db_->query("SELECT content FROM small_blob WHERE sha256=?", {SqlBlob{key}}));
        KB_TRY(const bool found, row.step());
        if (!found) {
            problem(fmt::format("{}: content {} is missing", where, file.sha256.hex()));
        } else if (digest::sha256(row.blob(0)) != file.sha256 ||
                   hub::git_id(hub::GitKind::blob, row.blob(0)) != file.oid) {
            problem(fmt::format("{}: content {} was altered", where, file.sha256.hex()));
        }
        return {};
    }

    /// Objects that clients were told are there.
    Result<void> check_uploads() {
        KB_TRY(Statement row, db_->query("SELECT sha256, size FROM lfs"));
        while (true) {
            KB_TRY(const bool found, row.step());
            if (!found) {
                return {};
            }
            digest::Digest sha256;
            std::ranges::copy(row.blob(0).substr(0, 32), sha256.bytes.begin());
            used_[sha256] = static_cast<std::uint64_t>(row.integer(1));
        }
    }

    Result<void> check_blobs() {
        for (const auto& [sha256, size] : used_) {
            ++report_->blobs;
            const Result<store::StoredBlob> blob = blobs_->verify(sha256);
            if (!blob) {
                problem(fmt::format("blob {}: {}", sha256.hex(), blob.error().to_text()));
            } else if (blob->size != size) {
                problem(fmt::format(
                    "blob {}: has {} bytes, {} are recorded", sha256.hex(), blob->size, size));
            }
        }
        KB_TRY(const std::vector<digest::Digest> all, blobs_->list());
        for (const digest::Digest& sha256 : all) {
            report_->unreferenced_blobs += used_.contains(sha256) ? 0U : 1U;
        }
        return {};
    }

    Result<std::optional<std::string>>
    payload_of(std::string_view sql, RepoKey repo, const std::string& oid) {
        KB_TRY(Statement row, db_->query(sql, {repo, SqlBlob{oid}}));
        KB_TRY(const bool found, row.step());
        return found ? std::optional{std::string{row.blob(0)}} : std::nullopt;
    }

    /// The payload when it is there and hashes to its id.
    std::optional<std::string> checked(hub::GitKind kind,
                                       const std::optional<std::string>& payload,
                                       const std::string& oid,
                                       const std::string& where) {
        GitOid id;
        std::ranges::copy(oid.substr(0, 20), id.bytes.begin());
        const std::string_view noun = kind == hub::GitKind::tree ? "tree" : "commit";
        if (!payload) {
            problem(fmt::format("{}: {} {} is missing", where, noun, id.hex()));
            return std::nullopt;
        }
        const bool is_sound =
            hub::git_id(kind, *payload) == id &&
            (kind == hub::GitKind::tree ? hub::parse_tree(*payload).has_value()
                                        : hub::parse_commit(*payload).has_value());
        if (!is_sound) {
            problem(fmt::format("{}: {} {} was altered", where, noun, id.hex()));
            return std::nullopt;
        }
        return payload;
    }

    static std::string bytes_of(const GitOid& oid) {
        return std::string{as_text(std::as_bytes(std::span{oid.bytes}))};
    }

    Database* db_;
    store::BlobStore* blobs_;
    FsckReport* report_;
    std::set<std::pair<RepoKey, std::string>> commits_;
    std::set<std::pair<RepoKey, std::string>> trees_;
    std::set<std::pair<RepoKey, std::string>> files_;
    std::map<digest::Digest, std::uint64_t> used_;
};

} // namespace

Result<FsckReport> fsck(sys::FileSystem& fs, const sys::Path& root) {
    const RootPaths paths{root};
    KB_TRY(OpenedRoot opened, open_root(fs, root, RootUse::manage));
    KB_TRY(const auto db, Database::open(paths.database().string(), OpenMode::read_write));
    FsckReport report;
    Checker checker{*db, *opened.blobs, report};
    KB_TRY(checker.run());
    KB_TRY(const std::vector<sys::DirEntry> temporaries, fs.list(paths.temporary()));
    report.temporaries = temporaries.size();
    return report;
}

} // namespace kb::registry
