// SPDX-License-Identifier: Apache-2.0
#include "registry/database.hpp"
#include "registry/sqlite_meta_store.hpp"

#include <fmt/format.h>

namespace kb::registry {

namespace {

// repo.key is "kernels/owner/name" in lower case, so names are unique without regard to case; a
// deleted repository keeps its row under a key that no name can have. Ids and digests are BLOBs.
// A file row says what a git blob means in ONE repository: without the repository, a pointer
// committed elsewhere would hand out content that its author could not read.
constexpr const char* kSchema1 = R"sql(
CREATE TABLE repo(
  id INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL,
  key TEXT NOT NULL UNIQUE, private INTEGER NOT NULL, created INTEGER NOT NULL, deleted INTEGER);
CREATE TABLE ref(
  repo INTEGER NOT NULL REFERENCES repo(id), name TEXT NOT NULL, oid BLOB NOT NULL,
  PRIMARY KEY(repo, name)) WITHOUT ROWID;
CREATE TABLE commit_object(
  repo INTEGER NOT NULL REFERENCES repo(id), oid BLOB NOT NULL, payload BLOB NOT NULL,
  PRIMARY KEY(repo, oid)) WITHOUT ROWID;
CREATE TABLE tree(oid BLOB PRIMARY KEY, payload BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE file(
  repo INTEGER NOT NULL REFERENCES repo(id), oid BLOB NOT NULL, sha256 BLOB NOT NULL,
  size INTEGER NOT NULL, lfs INTEGER NOT NULL, PRIMARY KEY(repo, oid)) WITHOUT ROWID;
CREATE TABLE small_blob(sha256 BLOB PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE lfs(
  repo INTEGER NOT NULL REFERENCES repo(id), sha256 BLOB NOT NULL, size INTEGER NOT NULL,
  seen INTEGER NOT NULL, PRIMARY KEY(repo, sha256)) WITHOUT ROWID;
CREATE TABLE pull(
  repo INTEGER NOT NULL REFERENCES repo(id), number INTEGER NOT NULL, title TEXT NOT NULL,
  author TEXT NOT NULL, base TEXT NOT NULL, created INTEGER NOT NULL,
  PRIMARY KEY(repo, number)) WITHOUT ROWID;
CREATE TABLE token(
  hash BLOB PRIMARY KEY, user TEXT NOT NULL, scope TEXT NOT NULL, namespaces TEXT NOT NULL,
  created INTEGER NOT NULL, expires INTEGER);
CREATE TABLE audit(
  id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, actor TEXT NOT NULL,
  action TEXT NOT NULL, repo TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE secret(name TEXT PRIMARY KEY, value BLOB NOT NULL);
PRAGMA user_version=1;
)sql";

// A repository that was renamed is found under its old name until somebody takes that name.
constexpr const char* kSchema2 = R"sql(
CREATE TABLE moved(key TEXT PRIMARY KEY, repo INTEGER NOT NULL REFERENCES repo(id)) WITHOUT ROWID;
PRAGMA user_version=2;
)sql";

Result<std::int64_t> schema_version(Database& database) {
    KB_TRY(Statement statement, database.query("PRAGMA user_version"));
    KB_TRY(const bool has_row, statement.step());
    return has_row ? statement.integer(0) : 0;
}

} // namespace

Result<void> prepare_database(const std::string& path, OpenMode mode) {
    KB_TRY(const auto database, Database::open(path, mode));
    return database->transaction([&](Database& db) -> Result<void> {
        KB_TRY(const std::int64_t version, schema_version(db));
        if (version > kSchemaVersion) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format("'{}' has schema {}, this program knows up to {}: "
                                                "use the newer program that wrote it",
                                                path,
                                                version,
                                                kSchemaVersion)};
        }
        if (version < 1) {
            KB_TRY(db.execute(kSchema1));
        }
        return version < 2 ? db.execute(kSchema2) : Result<void>{};
    });
}

} // namespace kb::registry
