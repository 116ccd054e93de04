// SPDX-License-Identifier: Apache-2.0
#include "registry/collect.hpp"

#include "registry/commit_receiver.hpp"
#include "registry/database.hpp"
#include "registry/parts.hpp"
#include "registry/root.hpp"
#include "registry/xorb_store.hpp"

#include <algorithm>
#include <functional>
#include <set>

namespace kb::registry {

namespace {

/// Of a repository, or of all: the name of a row.
using Name = std::pair<RepoKey, std::string>;

template <typename Id>
std::string bytes_of(const Id& id) {
    return std::string{as_text(std::as_bytes(std::span{id.bytes}))};
}

class Collector {
public:
    Collector(Database& db, store::BlobStore& blobs, const CollectOptions& options)
        : db_{&db}, blobs_{&blobs}, options_{&options} {}

    void keep(const std::set<digest::Digest>& blobs) {
        for (const digest::Digest& blob : blobs) {
            contents_.insert(bytes_of(blob));
        }
    }

    Result<CollectReport> run() {
        KB_TRY(mark());
        KB_TRY(db_->transaction([this](Database&) { return sweep_metadata(); }));
        KB_TRY(sweep_blobs());
        return report_;
    }

private:
    [[nodiscard]] bool removes() const { return options_->mode == CollectMode::remove; }

    Result<void> each(std::string_view sql,
                      std::initializer_list<SqlValue> values,
                      const std::function<void(const Statement&)>& take) {
        KB_TRY(Statement row, db_->query(sql, values));
        while (true) {
            KB_TRY(const bool found, row.step());
            if (!found) {
                return {};
            }
            take(row);
        }
    }

    // ---- what stays ----

    Result<void> mark() {
        KB_TRY(each("SELECT id FROM repo WHERE deleted IS NOT NULL AND deleted<?",
                    {options_->before},
                    [this](const Statement& row) { gone_.insert(row.integer(0)); }));
        std::vector<Name> heads;
        KB_TRY(each("SELECT repo, oid FROM ref", {}, [&heads](const Statement& row) {
            heads.emplace_back(row.integer(0), row.blob(1));
        }));
        for (const Name& head : heads) {
            KB_TRY(mark_history(head));
        }
        KB_TRY(mark_recently_deleted());
        return each("SELECT repo, sha256, seen FROM lfs", {}, [this](const Statement& row) {
            Name name{row.integer(0), row.blob(1)};
            if (row.integer(2) >= options_->before && !gone_.contains(name.first)) {
                contents_.insert(name.second);
                objects_.insert(std::move(name));
            }
        });
    }

    /// A deletion that is not old yet can be a mistake: its commits and files stay as they are.
    Result<void> mark_recently_deleted() {
        std::vector<Name> commits;
        KB_TRY(each("SELECT repo, oid FROM commit_object WHERE repo IN"
                    " (SELECT id FROM repo WHERE deleted>=?)",
                    {options_->before},
                    [&commits](const Statement& row) {
                        commits.emplace_back(row.integer(0), row.blob(1));
                    }));
        for (const Name& commit : commits) {
            KB_TRY(mark_history(commit));
        }
        return {};
    }

    Result<void> mark_history(const Name& head) {
        std::vector<std::string> todo{head.second};
        while (!todo.empty()) {
            Name name{head.first, std::move(todo.back())};
            todo.pop_back();
            if (!commits_.insert(name).second) {
                continue;
            }
            std::optional<std::string> payload;
            KB_TRY(each("SELECT payload FROM commit_object WHERE repo=? AND oid=?",
                        {name.first, SqlBlob{name.second}},
                        [&payload](const Statement& row) { payload = row.blob(0); }));
            if (!payload) {
                return missing("commit");
            }
            KB_TRY(const hub::GitCommit commit, hub::parse_commit(*payload));
            for (const hub::GitOid& parent : commit.parents) {
                todo.push_back(bytes_of(parent));
            }
            KB_TRY(mark_tree({name.first, bytes_of(commit.tree)}));
        }
        return {};
    }

    // NOLINTNEXTLINE(misc-no-recursion): as deep as a path, which is limited
    Result<void> mark_tree(const Name& name) {
        if (!seen_trees_.insert(name).second) {
            return {};
        }
        trees_.insert(name.second);
        std::optional<std::string> payload;
        KB_TRY(each("SELECT payload FROM tree WHERE oid=?",
                    {SqlBlob{name.second}},
                    [&payload](const Statement& row) { payload = row.blob(0); }));
        if (!payload) {
            return missing("tree");
        }
        KB_TRY(const std::vector<hub::GitTreeItem> items, hub::parse_tree(*payload));
        for (const hub::GitTreeItem& item : items) {
            Name child{name.first, bytes_of(item.oid)};
            if (item.mode == hub::GitMode::tree) {
                KB_TRY(mark_tree(child));
            } else {
                KB_TRY(mark_file(std::move(child)));
            }
        }
        return {};
    }

    Result<void> mark_file(Name name) {
        KB_TRY(each("SELECT sha256, lfs FROM file WHERE repo=? AND oid=?",
                    {name.first, SqlBlob{name.second}},
                    [this, &name](const Statement& row) {
                        contents_.emplace(row.blob(0));
                        if (row.integer(1) != 0) {
                            objects_.emplace(name.first, row.blob(0));
                        }
                    }));
        files_.insert(std::move(name));
        return {};
    }

    /// What is damaged is not thrown away: somebody may still repair it.
    static Error missing(std::string_view noun) {
        return {.code = ErrorCode::corrupt,
                .message = "a " + std::string{noun} +
                           " that is in use is missing; 'registry fsck' says where, nothing was "
                           "collected"};
    }

    // ---- what goes ----

    Result<void> sweep_metadata() {
        report_.repositories = gone_.size();
        for (const RepoKey repo : gone_) {
            KB_TRY(drop("DELETE FROM moved WHERE repo=?", {repo}));
            KB_TRY(drop("DELETE FROM pull WHERE repo=?", {repo}));
        }
        KB_TRY(sweep("SELECT repo, oid FROM commit_object",
                     "DELETE FROM commit_object WHERE repo=? AND oid=?",
                     commits_,
                     report_.commits));
        KB_TRY(sweep("SELECT repo, oid FROM file",
                     "DELETE FROM file WHERE repo=? AND oid=?",
                     files_,
                     report_.files));
        KB_TRY(sweep("SELECT repo, sha256 FROM lfs",
                     "DELETE FROM lfs WHERE repo=? AND sha256=?",
                     objects_,
                     report_.objects));
        KB_TRY(sweep_shared(
            "SELECT oid FROM tree", "DELETE FROM tree WHERE oid=?", trees_, report_.trees));
        std::uint64_t small = 0;
        KB_TRY(sweep_shared("SELECT sha256 FROM small_blob",
                            "DELETE FROM small_blob WHERE sha256=?",
                            contents_,
                            small));
        for (const RepoKey repo : gone_) {
            KB_TRY(drop("DELETE FROM repo WHERE id=?", {repo}));
        }
        return {};
    }

    Result<void> drop(std::string_view sql, std::initializer_list<SqlValue> values) {
        return removes() ? db_->run(sql, values) : Result<void>{};
    }

    Result<void> sweep(std::string_view list,
                       std::string_view remove,
                       const std::set<Name>& kept,
                       std::uint64_t& count) {
        std::vector<Name> doomed;
        KB_TRY(each(list, {}, [&](const Statement& row) {
            Name name{row.integer(0), row.blob(1)};
            if (!kept.contains(name)) {
                doomed.push_back(std::move(name));
            }
        }));
        count = doomed.size();
        for (const Name& name : doomed) {
            KB_TRY(drop(remove, {name.first, SqlBlob{name.second}}));
        }
        return {};
    }

    Result<void> sweep_shared(std::string_view list,
                              std::string_view remove,
                              const std::set<std::string>& kept,
                              std::uint64_t& count) {
        std::vector<std::string> doomed;
        KB_TRY(each(list, {}, [&](const Statement& row) {
            std::string id{row.blob(0)};
            if (!kept.contains(id)) {
                doomed.push_back(std::move(id));
            }
        }));
        count = doomed.size();
        for (const std::string& id : doomed) {
            KB_TRY(drop(remove, {SqlBlob{id}}));
        }
        return {};
    }

    Result<void> sweep_blobs() {
        KB_TRY(const std::vector<digest::Digest> all, blobs_->list());
        for (const digest::Digest& sha256 : all) {
            if (contents_.contains(bytes_of(sha256))) {
                continue;
            }
            KB_TRY(const std::optional<std::uint64_t> size, blobs_->size(sha256));
            ++report_.blobs;
            report_.bytes += size.value_or(0);
            if (removes()) {
                KB_TRY(blobs_->remove(sha256));
            }
        }
        return {};
    }

    Database* db_;
    store::BlobStore* blobs_;
    const CollectOptions* options_;
    CollectReport report_{};
    std::set<RepoKey> gone_;
    std::set<Name> commits_;
    std::set<Name> files_;
    std::set<Name> objects_;
    std::set<Name> seen_trees_;
    std::set<std::string> trees_;
    std::set<std::string> contents_;
};

} // namespace

Result<CollectReport>
collect(sys::FileSystem& fs, const sys::Path& root, const CollectOptions& options) {
    const RootPaths paths{root};
    KB_TRY(OpenedRoot opened, open_root(fs, root, RootUse::serve));
    KB_TRY(const auto db, Database::open(paths.database().string(), OpenMode::read_write));
    Collector collector{*db, *opened.blobs, options};
    // A client may name for weeks what it sent: the bytes have to be somewhere.
    if (options.mode == CollectMode::remove) {
        KB_TRY(sweep_xorbs(fs, paths.xorbs(), options.before - kXorbLifetime));
    }
    KB_TRY(const std::set<digest::Digest> named, blobs_of_xorbs(fs, paths.xorbs()));
    collector.keep(named);
    KB_TRY(CollectReport report, collector.run());
    if (options.mode == CollectMode::remove) {
        KB_TRY(report.uploads, sweep_parts(fs, paths.parts(), options.before));
    }
    return report;
}

} // namespace kb::registry
