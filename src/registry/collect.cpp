// SPDX-License-Identifier: Apache-2.0
#include "registry/collect.hpp"

#include "registry/commit_receiver.hpp"
#include "registry/database.hpp"
#include "registry/parts.hpp"
#include "registry/root.hpp"
#include "registry/xorb_store.hpp"

#include <fmt/format.h>

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
    Collector(Database& db, OpenedRoot& root, sys::FileSystem& fs, const CollectOptions& options)
        : db_{&db},
          fs_{&fs},
          blobs_{root.blobs.get()},
          options_{&options},
          is_alone_{root.lock.has_value()} {}

    void keep(const std::set<digest::Digest>& blobs) {
        for (const digest::Digest& blob : blobs) {
            contents_.insert(bytes_of(blob));
        }
    }

    Result<CollectReport> run() {
        // Once outside the transaction, which others wait for: inside only what is new is read.
        KB_TRY(mark());
        const auto sweep_marked = [this](Database&) -> Result<void> {
            KB_TRY(mark());
            return sweep_metadata();
        };
        KB_TRY(db_->transaction(sweep_marked));
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
            KB_TRY(const bool goes, is_alone_ ? remove(sha256) : remove_beside(sha256));
            report_.blobs += goes ? 1 : 0;
            report_.bytes += goes ? size.value_or(0) : 0;
        }
        return {};
    }

    Result<bool> remove(const digest::Digest& sha256) {
        if (removes()) {
            KB_TRY(blobs_->remove(sha256));
        }
        return true;
    }

    /// Somebody may be about to name it: what is young stays, and so does what was named since we
    /// looked.
    Result<bool> remove_beside(const digest::Digest& sha256) {
        const auto info = fs_->stat(blobs_->path_of(sha256));
        if (!info || info->mtime_ns / 1'000'000'000 >= options_->before) {
            return false;
        }
        if (!removes()) {
            return true;
        }
        const auto is_wanted = [&]() -> Result<bool> {
            bool is_named = false;
            for (const std::string_view sql : {"SELECT 1 FROM file WHERE sha256=? LIMIT 1",
                                               "SELECT 1 FROM lfs WHERE sha256=? LIMIT 1"}) {
                KB_TRY(each(sql, {SqlBlob{bytes_of(sha256)}}, [&is_named](const Statement&) {
                    is_named = true;
                }));
            }
            return is_named;
        };
        KB_TRY(const bool is_named, is_wanted());
        return is_named ? Result<bool>{false}
                        : blobs_->set_aside(sha256, options_->before, is_wanted);
    }

    Database* db_;
    sys::FileSystem* fs_;
    store::BlobStore* blobs_;
    const CollectOptions* options_;
    bool is_alone_;
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
    KB_TRY(OpenedRoot opened, open_root(fs, root, RootUse::share));
    const bool is_alone = opened.lock.has_value();
    if (!is_alone && options.now - options.before < kLeastServedGrace) {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("'{}' is being served: uploads are under way, so the "
                                            "grace time must be at least {} hour",
                                            root.string(),
                                            kLeastServedGrace / 3600)};
    }
    KB_TRY(const auto db, Database::open(paths.database().string(), OpenMode::read_write));
    KB_TRY(opened.blobs->restore_aside()); // of a collector that was killed beside the server
    Collector collector{*db, opened, fs, options};
    // A client may name for weeks what it sent: the bytes have to be somewhere.
    if (options.mode == CollectMode::remove && is_alone) {
        KB_TRY(sweep_xorbs(fs, paths.xorbs(), options.before - kXorbLifetime));
    }
    KB_TRY(const std::set<digest::Digest> named, blobs_of_xorbs(fs, paths.xorbs()));
    collector.keep(named);
    KB_TRY(CollectReport report, collector.run());
    if (options.mode == CollectMode::remove && is_alone) {
        KB_TRY(report.uploads, sweep_parts(fs, paths.parts(), options.before));
    }
    return report;
}

} // namespace kb::registry
