// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace kb::registry {

/// Bytes for a BLOB column; a std::string_view binds as TEXT.
struct SqlBlob {
    std::string_view bytes{};
};

using SqlValue = std::variant<std::monostate, std::int64_t, std::string_view, SqlBlob>;

/// A running statement. Column views are good until the next step().
class Statement {
public:
    explicit Statement(sqlite3_stmt* statement) : statement_{statement} {}

    ~Statement();

    Statement(Statement&& other) noexcept : statement_{std::exchange(other.statement_, nullptr)} {}

    Statement& operator=(Statement&&) = delete;
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    /// True when there is a row.
    [[nodiscard]] Result<bool> step();
    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] std::string_view text(int column) const;
    [[nodiscard]] std::string_view blob(int column) const;
    [[nodiscard]] bool is_null(int column) const;

private:
    sqlite3_stmt* statement_;
};

enum class OpenMode : std::uint8_t { create, read_write };

/// One SQLite connection (WAL, full sync) with its prepared statements; one thread at a time.
class Database {
public:
    [[nodiscard]] static Result<std::unique_ptr<Database>> open(const std::string& path,
                                                                OpenMode mode);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    /// Several statements without values: schema, pragmas.
    [[nodiscard]] Result<void> execute(const std::string& sql);
    /// `sql` is a literal; it names the prepared statement.
    [[nodiscard]] Result<Statement> query(std::string_view sql,
                                          std::initializer_list<SqlValue> values = {});
    /// For statements without rows.
    [[nodiscard]] Result<void> run(std::string_view sql,
                                   std::initializer_list<SqlValue> values = {});
    /// Rows that the last run() changed.
    [[nodiscard]] std::int64_t changes() const;
    [[nodiscard]] std::int64_t last_id() const;

    /// Everything in `body` (Database& -> Result<T>) or nothing; takes the write lock first, so
    /// that `body` reads what it will write over.
    template <typename Body>
    [[nodiscard]] auto transaction(Body body) -> std::invoke_result_t<Body, Database&> {
        KB_TRY(execute("BEGIN IMMEDIATE"));
        auto done = body(*this);
        if (!done) {
            roll_back();
            return done;
        }
        if (Result<void> committed = execute("COMMIT"); !committed) {
            roll_back();
            return std::move(committed).error();
        }
        return done;
    }

private:
    explicit Database(sqlite3* handle) : handle_{handle} {}

    [[nodiscard]] Error failure(std::string_view doing) const;
    void roll_back();

    sqlite3* handle_;
    std::map<std::string, sqlite3_stmt*, std::less<>> prepared_;
};

/// Connections to one database file: any number of readers, one writer.
class DatabasePool {
public:
    explicit DatabasePool(std::string path) : path_{std::move(path)} {}

    /// `use` is Database& -> Result<T>.
    template <typename Use>
    [[nodiscard]] auto read(Use use) -> std::invoke_result_t<Use, Database&> {
        KB_TRY(std::unique_ptr<Database> database, take_reader());
        auto done = use(*database);
        give_back(std::move(database));
        return done;
    }

    /// One transaction.
    template <typename Use>
    [[nodiscard]] auto write(Use use) -> std::invoke_result_t<Use, Database&> {
        const std::scoped_lock lock{writer_mutex_};
        if (!writer_) {
            KB_TRY(writer_, Database::open(path_, OpenMode::read_write));
        }
        return writer_->transaction(std::move(use));
    }

private:
    [[nodiscard]] Result<std::unique_ptr<Database>> take_reader();
    void give_back(std::unique_ptr<Database> database);

    std::string path_;
    std::mutex readers_mutex_;
    std::vector<std::unique_ptr<Database>> readers_;
    std::mutex writer_mutex_;
    std::unique_ptr<Database> writer_;
};

} // namespace kb::registry
