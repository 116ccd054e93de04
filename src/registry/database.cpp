// SPDX-License-Identifier: Apache-2.0
#include "registry/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <limits>

namespace kb::registry {

namespace {

constexpr int kBusyMilliseconds = 20'000;

int length_of(std::string_view bytes) {
    KB_ASSERT(bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
              "values are bounded long before 2 GiB");
    return static_cast<int>(bytes.size());
}

/// The bytes live until the statement is done: the caller holds them across query() and step().
int bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
        return sqlite3_bind_int64(statement, index, *number);
    }
    if (const auto* text = std::get_if<std::string_view>(&value)) {
        return sqlite3_bind_text(
            statement, index, text->data(), length_of(*text), SQLITE_TRANSIENT);
    }
    if (const auto* blob = std::get_if<SqlBlob>(&value)) {
        // A null pointer would bind NULL instead of an empty blob.
        const char* data = blob->bytes.empty() ? "" : blob->bytes.data();
        return sqlite3_bind_blob(statement, index, data, length_of(blob->bytes), SQLITE_TRANSIENT);
    }
    return sqlite3_bind_null(statement, index);
}

Error sqlite_failure(sqlite3* handle, std::string_view doing) {
    const int code = sqlite3_extended_errcode(handle);
    return {.code = (code & 0xFF) == SQLITE_BUSY      ? ErrorCode::transient
                    : (code & 0xFF) == SQLITE_FULL    ? ErrorCode::denied
                    : (code & 0xFF) == SQLITE_CORRUPT ? ErrorCode::corrupt
                                                      : ErrorCode::internal,
            .message = fmt::format("{}: {}", doing, sqlite3_errmsg(handle))};
}

} // namespace

Statement::~Statement() {
    if (statement_ != nullptr) {
        sqlite3_reset(statement_);
        sqlite3_clear_bindings(statement_);
    }
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code == SQLITE_DONE) {
        return false;
    }
    return sqlite_failure(sqlite3_db_handle(statement_), "using the metadata");
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::string_view Statement::text(int column) const {
    return blob(column); // TEXT is UTF-8 here, and BLOB access does not convert it
}

std::string_view Statement::blob(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data == nullptr
               ? std::string_view{}
               : std::string_view{static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, OpenMode mode) {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                      (mode == OpenMode::create ? SQLITE_OPEN_CREATE : 0);
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    std::unique_ptr<Database> database{new Database{handle}}; // closes the handle on failure too
    if (code != SQLITE_OK) {
        return database->failure(fmt::format("opening '{}'", path));
    }
    sqlite3_busy_timeout(handle, kBusyMilliseconds);
    KB_TRY(database
               ->execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                         "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;"
                         "PRAGMA cache_size=-2000; PRAGMA trusted_schema=OFF;")
               .context(fmt::format("opening '{}'", path)));
    return database;
}

Database::~Database() {
    for (const auto& [sql, statement] : prepared_) {
        sqlite3_finalize(statement);
    }
    sqlite3_close(handle_);
}

Error Database::failure(std::string_view doing) const {
    return sqlite_failure(handle_, doing);
}

Result<void> Database::execute(const std::string& sql) {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        return failure("using the metadata");
    }
    return {};
}

Result<Statement> Database::query(std::string_view sql, std::initializer_list<SqlValue> values) {
    auto found = prepared_.find(sql);
    if (found == prepared_.end()) {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(handle_, sql.data(), length_of(sql), &statement, nullptr) !=
            SQLITE_OK) {
            return failure("using the metadata");
        }
        found = prepared_.emplace(std::string{sql}, statement).first;
    }
    int index = 0;
    for (const SqlValue& value : values) {
        if (bind(found->second, ++index, value) != SQLITE_OK) {
            return failure("using the metadata");
        }
    }
    return Statement{found->second};
}

Result<void> Database::run(std::string_view sql, std::initializer_list<SqlValue> values) {
    KB_TRY(Statement statement, query(sql, values));
    KB_TRY([[maybe_unused]] const bool has_row, statement.step());
    return {};
}

std::int64_t Database::changes() const {
    return sqlite3_changes(handle_);
}

std::int64_t Database::last_id() const {
    return sqlite3_last_insert_rowid(handle_);
}

void Database::roll_back() {
    // The error that led here is the one to tell; a failed COMMIT may have rolled back by itself.
    static_cast<void>(execute("ROLLBACK").has_value());
}

Result<std::unique_ptr<Database>> DatabasePool::take_reader() {
    {
        const std::scoped_lock lock{readers_mutex_};
        if (!readers_.empty()) {
            std::unique_ptr<Database> database = std::move(readers_.back());
            readers_.pop_back();
            return database;
        }
    }
    return Database::open(path_, OpenMode::read_write);
}

void DatabasePool::give_back(std::unique_ptr<Database> database) {
    const std::scoped_lock lock{readers_mutex_};
    readers_.push_back(std::move(database));
}

} // namespace kb::registry
