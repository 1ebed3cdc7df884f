// A connection to an SQLite database that is another program's: it is only read, and may be a stranger's. Private to
// tablet/sqlite/.
//
// Start at: SqliteConnection::Open, SqliteQuery. A connection and its queries belong to one thread at a time.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

class SqliteConnection {
 public:
  /// `name`: for messages. `cancel`: ends a query that runs; nullptr: the flag of the thread does. Errors: kIo; kSql, it is no
  /// database.
  static Result<std::unique_ptr<SqliteConnection>> Open(const std::string& path, const std::string& name,
                                                        const std::atomic<bool>* cancel);
  ~SqliteConnection() { sqlite3_close(db_); }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  /// What SQLite says of its last call, which gave `code`.
  Status Error(int code) const;
  Status Execute(const char* sql);
  sqlite3* handle() const { return db_; }

 private:
  SqliteConnection(std::string name, const std::atomic<bool>* cancel) : name_(std::move(name)), cancel_(cancel) {}

  bool Cancelled() const;
  /// What waits for a writer; false: no longer.
  bool Wait(int calls);

  const std::string name_;
  const std::atomic<bool>* const cancel_;
  sqlite3* db_ = nullptr;
  int64_t patience_ends_ = 0;  ///< milliseconds of the steady clock
};

/// A prepared statement.
class SqliteQuery {
 public:
  SqliteQuery() = default;
  ~SqliteQuery() { sqlite3_finalize(statement_); }
  SqliteQuery(const SqliteQuery&) = delete;
  SqliteQuery& operator=(const SqliteQuery&) = delete;

  Status Prepare(SqliteConnection* connection, const std::string& sql);
  void Bind(int parameter, int64_t v) { sqlite3_bind_int64(statement_, parameter, v); }
  void Bind(int parameter, const std::string& v) {
    sqlite3_bind_text(statement_, parameter, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT);
  }
  /// True if there is a row to read.
  Result<bool> Step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return connection_->Error(code);
  }
  /// Makes it ready to begin anew.
  void Reset() { sqlite3_reset(statement_); }

  // The current row. A value has the type that was stored: SQLITE_INTEGER and so on.
  int TypeOf(int column) const { return sqlite3_column_type(statement_, column); }
  int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  /// Of a text or a blob; it lives until the next step.
  std::string_view Bytes(int column) const {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string_view()
                            : std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(size));
  }

 private:
  SqliteConnection* connection_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

/// "name" for SQLite.
std::string SqliteName(std::string_view name);

}  // namespace tessera
