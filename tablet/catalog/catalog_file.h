// SQLite's file of a catalog: its connection, the errors of its calls, and its journal. Private to tablet/catalog/.
//
// Start at: CatalogFile::Open. Thread-compatible, as the catalog.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tessera {

/// Of a change that was made.
enum class Durability {
  kDurable,
  kUntilPowerFails,  ///< it is visible, but SQLite could not make sure of the disk: a power failure may undo it
};

class CatalogFile {
 public:
  enum class Access { kReadOnly, kReadWrite, kCreate };
  /// `name` is the database's name for messages. ":memory:": it is no file.
  CatalogFile(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}
  ~CatalogFile();
  CatalogFile(const CatalogFile&) = delete;
  CatalogFile& operator=(const CatalogFile&) = delete;

  /// Commits wait for the disk. Errors: kCorrupt, it is none of this program's.
  Status Open(Access access);
  /// One in memory, which no other process sees.
  Status OpenTemporary();

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  bool read_only() const { return read_only_; }
  sqlite3* db() { return db_; }

  /// How long to wait for another process that has the file locked.
  void SetLockTimeout(int milliseconds) { lock_timeout_ms_ = milliseconds; }
  int lock_timeout() const { return lock_timeout_ms_; }

  /// What a code of SQLite means for the user.
  Status Error(int code) const;
  Status Error(int code, const std::string& message) const;
  Status Corrupt(const std::string& reason) const;

  Status Execute(const char* sql);
  /// Before the first change: how transactions are rolled back.
  Status ChooseJournal();

 private:
  friend class CatalogStatement;
  Status Connect(Access access);
  /// Whether to try again where another process has the file locked; waits a little. `calls`: how often it has.
  bool Wait(int calls);
  /// Whether SQLite may have to undo a transaction of a process that died.
  Result<bool> HasJournal() const;

  const std::string path_;
  const std::string name_;
  sqlite3* db_ = nullptr;
  int lock_timeout_ms_ = 5000;
  std::chrono::steady_clock::time_point patience_ends_;
  std::unordered_map<std::string, sqlite3_stmt*> prepared_;  ///< by their SQL, those not in use
  bool has_chosen_journal_ = false;
  bool read_only_ = false;
};

}  // namespace tessera
