// SPDX-License-Identifier: Apache-2.0
#include "registry/sqlite_meta_store.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::registry {

namespace {

std::string key_of(const hub::RepoId& id) {
    return to_lower(fmt::format("{}/{}", hub::plural(id.type()), id.text()));
}

template <typename Id>
SqlBlob bytes_of(const Id& id) {
    return {as_text(std::as_bytes(std::span{id.bytes}))};
}

template <typename Id>
Result<Id> id_of(std::string_view bytes) {
    Id id;
    if (bytes.size() != id.bytes.size()) {
        return Error{.code = ErrorCode::corrupt,
                     .message = "the metadata holds an id of bad length"};
    }
    std::ranges::transform(
        bytes, id.bytes.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
    return id;
}

std::int64_t number_of(std::uint64_t value) {
    KB_ASSERT(value <= INT64_MAX, "sizes come from files");
    return static_cast<std::int64_t>(value);
}

/// Columns id, type, owner, name, private, created.
Result<RepoRow> repo_of(const Statement& row) {
    const auto type = hub::parse_repo_type(row.text(1));
    if (!type) {
        return Error{.code = ErrorCode::corrupt, .message = "a repository has an unknown type"};
    }
    KB_TRY(hub::RepoId id,
           hub::RepoId::parse(*type, fmt::format("{}/{}", row.text(2), row.text(3))));
    return RepoRow{.key = row.integer(0),
                   .id = std::move(id),
                   .visibility =
                       row.integer(4) != 0 ? hub::Visibility::private_ : hub::Visibility::public_,
                   .created = row.integer(5)};
}

Result<void> add_audit(Database& db, const AuditRow& audit) {
    return db.run("INSERT INTO audit(time, actor, action, repo, detail) VALUES(?,?,?,?,?)",
                  {audit.time,
                   std::string_view{audit.actor},
                   std::string_view{audit.action},
                   std::string_view{audit.repo},
                   std::string_view{audit.detail}});
}

Result<std::optional<hub::GitOid>> ref_target(Database& db, RepoKey repo, std::string_view name) {
    KB_TRY(Statement row, db.query("SELECT oid FROM ref WHERE repo=? AND name=?", {repo, name}));
    KB_TRY(const bool found, row.step());
    if (!found) {
        return std::optional<hub::GitOid>{};
    }
    KB_TRY(const hub::GitOid oid, id_of<hub::GitOid>(row.blob(0)));
    return std::optional{oid};
}

/// A collector beside us may have taken what nothing led to since the caller looked.
Result<void> check_still_there(Database& db, const RefChange& change) {
    const auto expect =
        [&](std::string_view sql, SqlBlob id, std::string_view what) -> Result<void> {
        KB_TRY(Statement row, db.query(sql, {change.repo, id}));
        KB_TRY(const bool found, row.step());
        return found ? Result<void>{}
                     : Error{.code = ErrorCode::transient,
                             .message = fmt::format("{} was just collected; send it again", what)};
    };
    if (change.to) {
        KB_TRY(expect("SELECT 1 FROM commit_object WHERE repo=? AND oid=?",
                      bytes_of(*change.to),
                      "a commit"));
    }
    for (const FileRow& file : change.files) {
        if (file.is_lfs) {
            KB_TRY(expect(
                "SELECT 1 FROM lfs WHERE repo=? AND sha256=?", bytes_of(file.sha256), "an object"));
        }
    }
    return {};
}

Result<void> add_objects(Database& db, const RefChange& change) {
    for (const GitPayload& tree : change.trees) {
        KB_TRY(db.run("INSERT OR IGNORE INTO tree(oid, payload) VALUES(?,?)",
                      {bytes_of(tree.oid), SqlBlob{tree.payload}}));
    }
    for (const FileRow& file : change.files) {
        KB_TRY(db.run("INSERT OR IGNORE INTO file(repo, oid, sha256, size, lfs) VALUES(?,?,?,?,?)",
                      {change.repo,
                       bytes_of(file.oid),
                       bytes_of(file.sha256),
                       number_of(file.size),
                       std::int64_t{file.is_lfs ? 1 : 0}}));
    }
    for (std::size_t i = 0; change.small_blobs; ++i) {
        KB_TRY(const std::optional<SmallBlob> blob, change.small_blobs(i));
        if (!blob) {
            break;
        }
        KB_TRY(db.run("INSERT OR IGNORE INTO small_blob(sha256, content) VALUES(?,?)",
                      {bytes_of(blob->sha256), SqlBlob{blob->content}}));
    }
    for (const GitPayload& commit : change.commits) {
        KB_TRY(db.run("INSERT OR IGNORE INTO commit_object(repo, oid, payload) VALUES(?,?,?)",
                      {change.repo, bytes_of(commit.oid), SqlBlob{commit.payload}}));
    }
    return {};
}

Result<void> move_ref(Database& db, const RefChange& change) {
    const std::string_view name = change.name;
    if (!change.to) {
        return db.run("DELETE FROM ref WHERE repo=? AND name=?", {change.repo, name});
    }
    return db.run("INSERT INTO ref(repo, name, oid) VALUES(?,?,?)"
                  " ON CONFLICT(repo, name) DO UPDATE SET oid=excluded.oid",
                  {change.repo, name, bytes_of(*change.to)});
}

/// Columns user, scope, namespaces, created, expires.
TokenRow token_of_row(const digest::Digest& hash, const Statement& row) {
    TokenRow token{.hash = hash,
                   .user = std::string{row.text(0)},
                   .scope = parse_scope(row.text(1)).value_or(Scope::read),
                   .created = row.integer(3)};
    for (const std::string_view name : split(row.text(2), ' ')) {
        if (!name.empty()) {
            token.namespaces.emplace_back(name);
        }
    }
    if (!row.is_null(4)) {
        token.expires = row.integer(4);
    }
    return token;
}

class SqliteMetaStore : public MetaStore {
public:
    explicit SqliteMetaStore(const std::string& path) : pool_{path} {}

    Result<std::optional<RepoRow>> find_repo(const hub::RepoId& id) override {
        KB_TRY(std::optional<RepoRow> row, find_repo_any_case(id));
        return row && row->id == id ? std::move(row) : std::optional<RepoRow>{};
    }

    Result<std::optional<RepoRow>> find_repo_any_case(const hub::RepoId& id) override {
        return pool_.read([&](Database& db) -> Result<std::optional<RepoRow>> {
            std::optional<RepoRow> repo;
            KB_TRY(Statement row,
                   db.query("SELECT id, type, owner, name, private, created FROM repo WHERE key=?",
                            {std::string_view{key_of(id)}}));
            KB_TRY(const bool found, row.step());
            if (found) {
                KB_TRY(repo, repo_of(row));
            }
            return repo;
        });
    }

    Result<std::vector<RepoRow>> repos() override {
        return pool_.read([&](Database& db) -> Result<std::vector<RepoRow>> {
            std::vector<RepoRow> all;
            KB_TRY(Statement row,
                   db.query("SELECT id, type, owner, name, private, created FROM repo"
                            " WHERE deleted IS NULL ORDER BY key"));
            while (true) {
                KB_TRY(const bool found, row.step());
                if (!found) {
                    return all;
                }
                KB_TRY(RepoRow repo, repo_of(row));
                all.push_back(std::move(repo));
            }
        });
    }

    Result<RepoRow>
    create_repo(const hub::RepoId& id, hub::Visibility visibility, const AuditRow& audit) override {
        return pool_.write([&](Database& db) -> Result<RepoRow> {
            RepoRow row{.id = id, .visibility = visibility, .created = audit.time};
            KB_TRY(db.run("INSERT OR IGNORE INTO repo(type, owner, name, key, private, created)"
                          " VALUES(?,?,?,?,?,?)",
                          {hub::plural(id.type()),
                           std::string_view{id.owner()},
                           std::string_view{id.name()},
                           std::string_view{key_of(id)},
                           std::int64_t{visibility == hub::Visibility::private_ ? 1 : 0},
                           audit.time}));
            if (db.changes() == 0) {
                return Error{.code = ErrorCode::denied,
                             .message = fmt::format("'{}' exists", id.text())};
            }
            row.key = db.last_id();
            KB_TRY(add_audit(db, audit));
            return row;
        });
    }

    Result<void> delete_repo(RepoKey repo, const AuditRow& audit) override {
        return pool_.write([&](Database& db) -> Result<void> {
            KB_TRY(db.run("UPDATE repo SET deleted=?, key=key||'#'||id WHERE id=?",
                          {audit.time, repo}));
            KB_TRY(db.run("DELETE FROM ref WHERE repo=?", {repo}));
            return add_audit(db, audit);
        });
    }

    Result<void> move_repo(RepoKey repo, const hub::RepoId& to, const AuditRow& audit) override {
        return pool_.write([&](Database& db) -> Result<void> {
            const std::string key = key_of(to);
            KB_TRY(Statement taken,
                   db.query("SELECT 1 FROM repo WHERE key=? AND id<>?",
                            {std::string_view{key}, repo}));
            KB_TRY(const bool is_taken, taken.step());
            if (is_taken) {
                return Error{.code = ErrorCode::denied,
                             .message = fmt::format("'{}' exists", to.text())};
            }
            KB_TRY(db.run("INSERT OR REPLACE INTO moved(key, repo)"
                          " SELECT key, id FROM repo WHERE id=?",
                          {repo}));
            KB_TRY(db.run("DELETE FROM moved WHERE key=?", {std::string_view{key}}));
            KB_TRY(db.run("UPDATE repo SET owner=?, name=?, key=? WHERE id=?",
                          {std::string_view{to.owner()},
                           std::string_view{to.name()},
                           std::string_view{key},
                           repo}));
            return add_audit(db, audit);
        });
    }

    Result<std::optional<RepoRow>> find_moved(const hub::RepoId& id) override {
        return pool_.read([&](Database& db) -> Result<std::optional<RepoRow>> {
            std::optional<RepoRow> repo;
            KB_TRY(Statement row,
                   db.query("SELECT repo.id, type, owner, name, private, created FROM moved"
                            " JOIN repo ON repo.id=moved.repo"
                            " WHERE moved.key=? AND deleted IS NULL",
                            {std::string_view{key_of(id)}}));
            KB_TRY(const bool found, row.step());
            if (found) {
                KB_TRY(repo, repo_of(row));
            }
            return repo;
        });
    }

    Result<void>
    set_visibility(RepoKey repo, hub::Visibility visibility, const AuditRow& audit) override {
        return pool_.write([&](Database& db) -> Result<void> {
            KB_TRY(db.run("UPDATE repo SET private=? WHERE id=?",
                          {std::int64_t{visibility == hub::Visibility::private_ ? 1 : 0}, repo}));
            return add_audit(db, audit);
        });
    }

    Result<std::vector<RefRow>> refs(RepoKey repo) override {
        return pool_.read([&](Database& db) -> Result<std::vector<RefRow>> {
            std::vector<RefRow> all;
            KB_TRY(Statement row,
                   db.query("SELECT name, oid FROM ref WHERE repo=? ORDER BY name", {repo}));
            while (true) {
                KB_TRY(const bool found, row.step());
                if (!found) {
                    return all;
                }
                KB_TRY(const hub::GitOid oid, id_of<hub::GitOid>(row.blob(1)));
                all.push_back({.name = std::string{row.text(0)}, .commit = oid});
            }
        });
    }

    Result<std::optional<hub::GitOid>> find_ref(RepoKey repo, std::string_view name) override {
        return pool_.read([&](Database& db) -> Result<std::optional<hub::GitOid>> {
            std::optional<hub::GitOid> target;
            KB_TRY(target, ref_target(db, repo, name));
            return target;
        });
    }

    Result<ChangeOutcome> change_ref(const RefChange& change) override {
        return pool_.write([&](Database& db) -> Result<ChangeOutcome> {
            ChangeOutcome outcome = ChangeOutcome::done;
            KB_TRY(const std::optional<hub::GitOid> now, ref_target(db, change.repo, change.name));
            if (now != change.from) {
                outcome = ChangeOutcome::moved;
                return outcome;
            }
            KB_TRY(add_objects(db, change));
            KB_TRY(check_still_there(db, change));
            KB_TRY(move_ref(db, change));
            KB_TRY(add_audit(db, change.audit));
            return outcome;
        });
    }

    Result<std::optional<hub::GitCommit>> find_commit(RepoKey repo,
                                                      const hub::GitOid& oid) override {
        return pool_.read([&](Database& db) -> Result<std::optional<hub::GitCommit>> {
            std::optional<hub::GitCommit> commit;
            KB_TRY(Statement row,
                   db.query("SELECT payload FROM commit_object WHERE repo=? AND oid=?",
                            {repo, bytes_of(oid)}));
            KB_TRY(const bool found, row.step());
            if (found) {
                KB_TRY(commit, hub::parse_commit(row.blob(0)));
            }
            return commit;
        });
    }

    Result<std::vector<hub::GitTreeItem>> tree(const hub::GitOid& oid) override {
        return pool_.read([&](Database& db) -> Result<std::vector<hub::GitTreeItem>> {
            std::vector<hub::GitTreeItem> items;
            KB_TRY(Statement row,
                   db.query("SELECT payload FROM tree WHERE oid=?", {bytes_of(oid)}));
            KB_TRY(const bool found, row.step());
            if (!found) {
                return Error{.code = ErrorCode::corrupt,
                             .message = fmt::format("tree {} is missing", oid.hex())};
            }
            KB_TRY(items, hub::parse_tree(row.blob(0)));
            return items;
        });
    }

    Result<std::optional<FileRow>> find_file(RepoKey repo, const hub::GitOid& oid) override {
        return pool_.read([&](Database& db) -> Result<std::optional<FileRow>> {
            std::optional<FileRow> file;
            KB_TRY(Statement row,
                   db.query("SELECT sha256, size, lfs FROM file WHERE repo=? AND oid=?",
                            {repo, bytes_of(oid)}));
            KB_TRY(const bool found, row.step());
            if (found) {
                KB_TRY(const digest::Digest sha256, id_of<digest::Digest>(row.blob(0)));
                file = FileRow{.oid = oid,
                               .sha256 = sha256,
                               .size = static_cast<std::uint64_t>(row.integer(1)),
                               .is_lfs = row.integer(2) != 0};
            }
            return file;
        });
    }

    Result<std::optional<std::string>> small_blob(const digest::Digest& sha256) override {
        return pool_.read([&](Database& db) -> Result<std::optional<std::string>> {
            std::optional<std::string> content;
            KB_TRY(Statement row,
                   db.query("SELECT content FROM small_blob WHERE sha256=?", {bytes_of(sha256)}));
            KB_TRY(const bool found, row.step());
            if (found) {
                content = std::string{row.blob(0)};
            }
            return content;
        });
    }

    Result<std::optional<LfsRow>> find_lfs(RepoKey repo, const digest::Digest& sha256) override {
        return pool_.read([&](Database& db) -> Result<std::optional<LfsRow>> {
            std::optional<LfsRow> object;
            KB_TRY(Statement row,
                   db.query("SELECT size FROM lfs WHERE repo=? AND sha256=?",
                            {repo, bytes_of(sha256)}));
            KB_TRY(const bool found, row.step());
            if (found) {
                object =
                    LfsRow{.sha256 = sha256, .size = static_cast<std::uint64_t>(row.integer(0))};
            }
            return object;
        });
    }

    Result<void> add_lfs(RepoKey repo, const LfsRow& object, std::int64_t now) override {
        return pool_.write([&](Database& db) {
            return db.run("INSERT INTO lfs(repo, sha256, size, seen) VALUES(?,?,?,?)"
                          " ON CONFLICT(repo, sha256) DO UPDATE SET seen=excluded.seen",
                          {repo, bytes_of(object.sha256), number_of(object.size), now});
        });
    }

    Result<std::uint64_t> add_pull(RepoKey repo, const PullRow& pull) override {
        return pool_.write([&](Database& db) -> Result<std::uint64_t> {
            std::int64_t number = 0;
            {
                KB_TRY(Statement row,
                       db.query("SELECT 1+IFNULL(MAX(number),0) FROM pull WHERE repo=?", {repo}));
                KB_TRY([[maybe_unused]] const bool found, row.step());
                number = row.integer(0);
            }
            KB_TRY(db.run("INSERT INTO pull(repo, number, title, author, base, created)"
                          " VALUES(?,?,?,?,?,?)",
                          {repo,
                           number,
                           std::string_view{pull.title},
                           std::string_view{pull.author},
                           std::string_view{pull.base},
                           pull.created}));
            return static_cast<std::uint64_t>(number);
        });
    }

    Result<std::optional<PullRow>> find_pull(RepoKey repo, std::uint64_t number) override {
        return pool_.read([&](Database& db) -> Result<std::optional<PullRow>> {
            std::optional<PullRow> pull;
            KB_TRY(Statement row,
                   db.query("SELECT title, author, base, created FROM pull"
                            " WHERE repo=? AND number=?",
                            {repo, number_of(std::min<std::uint64_t>(number, INT64_MAX))}));
            KB_TRY(const bool found, row.step());
            if (found) {
                pull = PullRow{.number = number,
                               .title = std::string{row.text(0)},
                               .author = std::string{row.text(1)},
                               .base = std::string{row.text(2)},
                               .created = row.integer(3)};
            }
            return pull;
        });
    }

    Result<void> add_token(const TokenRow& token, const AuditRow& audit) override {
        const std::string namespaces = join(token.namespaces, " ");
        return pool_.write([&](Database& db) -> Result<void> {
            KB_TRY(db.run("INSERT INTO token(hash, user, scope, namespaces, created, expires)"
                          " VALUES(?,?,?,?,?,?)",
                          {bytes_of(token.hash),
                           std::string_view{token.user},
                           to_text(token.scope),
                           std::string_view{namespaces},
                           token.created,
                           token.expires ? SqlValue{*token.expires} : SqlValue{}}));
            return add_audit(db, audit);
        });
    }

    Result<std::optional<TokenRow>> find_token(const digest::Digest& hash) override {
        return pool_.read([&](Database& db) -> Result<std::optional<TokenRow>> {
            std::optional<TokenRow> token;
            KB_TRY(Statement row,
                   db.query("SELECT user, scope, namespaces, created, expires FROM token"
                            " WHERE hash=?",
                            {bytes_of(hash)}));
            KB_TRY(const bool found, row.step());
            if (!found) {
                return token;
            }
            token = token_of_row(hash, row);
            return token;
        });
    }

    Result<std::vector<TokenRow>> tokens() override {
        return pool_.read([&](Database& db) -> Result<std::vector<TokenRow>> {
            std::vector<TokenRow> all;
            KB_TRY(Statement row,
                   db.query("SELECT user, scope, namespaces, created, expires, hash FROM token"
                            " ORDER BY created, hash"));
            while (true) {
                KB_TRY(const bool found, row.step());
                if (!found) {
                    return all;
                }
                KB_TRY(const digest::Digest hash, id_of<digest::Digest>(row.blob(5)));
                all.push_back(token_of_row(hash, row));
            }
        });
    }

    Result<bool> remove_token(const digest::Digest& hash, const AuditRow& audit) override {
        return pool_.write([&](Database& db) -> Result<bool> {
            KB_TRY(db.run("DELETE FROM token WHERE hash=?", {bytes_of(hash)}));
            const bool was_there = db.changes() > 0;
            if (was_there) {
                KB_TRY(add_audit(db, audit));
            }
            return was_there;
        });
    }

    Result<std::vector<AuditRow>> audit(std::size_t newest) override {
        return pool_.read([&](Database& db) -> Result<std::vector<AuditRow>> {
            std::vector<AuditRow> rows;
            KB_TRY(Statement row,
                   db.query("SELECT time, actor, action, repo, detail FROM audit"
                            " ORDER BY id DESC LIMIT ?",
                            {number_of(newest)}));
            while (true) {
                KB_TRY(const bool found, row.step());
                if (!found) {
                    return rows;
                }
                rows.push_back({.time = row.integer(0),
                                .actor = std::string{row.text(1)},
                                .action = std::string{row.text(2)},
                                .repo = std::string{row.text(3)},
                                .detail = std::string{row.text(4)}});
            }
        });
    }

    Result<std::string> signing_key() override {
        return pool_.write([&](Database& db) -> Result<std::string> {
            std::string key;
            KB_TRY(db.run("INSERT OR IGNORE INTO secret(name, value) VALUES('signing',?)",
                          {SqlBlob{digest::random_bytes(32)}}));
            KB_TRY(Statement row, db.query("SELECT value FROM secret WHERE name='signing'"));
            KB_TRY([[maybe_unused]] const bool found, row.step());
            key = std::string{row.blob(0)};
            return key;
        });
    }

private:
    DatabasePool pool_;
};

} // namespace

std::unique_ptr<MetaStore> make_sqlite_meta_store(const std::string& path) {
    return std::make_unique<SqliteMetaStore>(path);
}

} // namespace kb::registry
