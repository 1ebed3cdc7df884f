#include "tablet/sqlite/sqlite_connection.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/interrupt.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// How long a writer of another process may hold the file.
constexpr int64_t kPatienceMilliseconds = 5000;
/// Steps of SQLite's machine between two looks at the flag: some tens of microseconds.
constexpr int kStepsBetweenLooks = 10000;

int64_t NowMilliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

bool SqliteConnection::Cancelled() const {
  return cancel_ != nullptr ? cancel_->load(std::memory_order_relaxed) : Interrupted();
}

bool SqliteConnection::Wait(int calls) {
  if (calls == 0) patience_ends_ = NowMilliseconds() + kPatienceMilliseconds;
  if (Cancelled() || NowMilliseconds() >= patience_ends_) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return true;
}

Status SqliteConnection::Error(int code) const {
  const std::string name = QuoteForMessage(name_), message = sqlite3_errmsg(db_);
  switch (code & 0xFF) {
    case SQLITE_INTERRUPT:
      return {ErrorCode::kCancelled, "cancelled"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      if (Cancelled()) return {ErrorCode::kCancelled, "cancelled"};
      return {ErrorCode::kBusy, "SQLite database " + name + " is locked by a program that writes to it",
              "Run the statement again when that has committed."};
    case SQLITE_NOMEM:
      return {ErrorKind::kOutOfMemory, "out of memory while SQLite reads " + name};
    case SQLITE_NOTADB:
      return SqlError(name + " is no SQLite database, or an encrypted one");
    case SQLITE_CORRUPT:
      return {ErrorCode::kCorrupt, "SQLite database " + name + " is damaged: " + message,
              "sqlite3 FILE 'PRAGMA integrity_check' says more."};
    case SQLITE_ERROR:
      return SqlError(name + ": " + message);
    default:
      if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY || code == SQLITE_BUSY_RECOVERY)
        return {ErrorCode::kIo, "SQLite database " + name + " was left by a program that died while it wrote",
                "Open it once with a program that may write to it, such as sqlite3."};
      return {ErrorCode::kIo, "cannot read SQLite database " + name + ": " + message};
  }
}

Status SqliteConnection::Execute(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : Error(code);
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path, const std::string& name,
                                                                 const std::atomic<bool>* cancel) {
  std::unique_ptr<SqliteConnection> made(new SqliteConnection(name, cancel));
  const int code = sqlite3_open_v2(path.c_str(), &made->db_,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nullptr);
  if (code != SQLITE_OK) return made->Error(code);
  sqlite3* const db = made->db_;
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_handler(
      db, [](void* self, int calls) { return static_cast<SqliteConnection*>(self)->Wait(calls) ? 1 : 0; }, made.get());
  sqlite3_progress_handler(
      db, kStepsBetweenLooks, [](void* self) { return static_cast<SqliteConnection*>(self)->Cancelled() ? 1 : 0; },
      made.get());
  // What SQLite advises for files of strangers: their views get at nothing but their tables, and lengths are checked.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  TESSERA_TRY(made->Execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0"));
  return made;
}

Status SqliteQuery::Prepare(SqliteConnection* connection, const std::string& sql) {
  connection_ = connection;
  sqlite3_finalize(std::exchange(statement_, nullptr));
  const int code = sqlite3_prepare_v2(connection->handle(), sql.c_str(), -1, &statement_, nullptr);
  return code == SQLITE_OK ? Status() : connection->Error(code);
}

std::string SqliteName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace tessera
