// A transaction of the catalog's file, or a part of one. Private to tablet/catalog/.
//
// Start at: CatalogTransaction. Thread-compatible, as the catalog.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tablet/catalog/catalog_file.h"
#include "tablet/catalog/catalog_statement.h"

namespace tessera {

/// Rolls back unless committed. Within a transaction of several changes it is a part of it, which is undone alone.
class CatalogTransaction {
 public:
  explicit CatalogTransaction(CatalogFile* file) : file_(*file) {}
  ~CatalogTransaction() {
    // (Execute() would make a message, and there may be no memory for it.)
    if (begun_)
      sqlite3_exec(file_.db(), is_part_ ? "ROLLBACK TO change; RELEASE change" : "ROLLBACK", nullptr, nullptr, nullptr);
  }
  /// `is_part`: of a transaction of several changes, which SQLite has.
  Status Begin(const char* sql, bool is_part) {
    is_part_ = is_part;
    TESSERA_TRY(file_.Execute(is_part ? "SAVEPOINT change" : sql));
    begun_ = true;
    return {};
  }
  Status Commit() {
    TESSERA_TRY(file_.Execute(is_part_ ? "RELEASE change" : "COMMIT"));
    begun_ = false;
    return {};
  }
  /// The same for a change that gives the database row this checksum. An error of COMMIT does not say whether it took
  /// effect (it does if the journal is gone and only the directory cannot be synced), so the catalog is asked then.
  Result<Durability> CommitChange(uint64_t checksum) {
    if (is_part_) {
      TESSERA_TRY(Commit());
      return Durability::kDurable;  // as far as it goes: the end of the whole makes it so
    }
    // Made now: after the commit nothing that can be done before may fail.
    const Status uncertain(ErrorCode::kIo,
                           "catalog \"" + file_.path() + "\" cannot be read after an error at its commit",
                           "The change may have been made or not: look before you repeat it.");
    CatalogStatement query(&file_, "SELECT checksum FROM database");
    const int code = sqlite3_exec(file_.db(), "COMMIT", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) {
      begun_ = false;
      return Durability::kDurable;
    }
    if (sqlite3_get_autocommit(file_.db()) == 0) return file_.Error(code);
    begun_ = false;
    constexpr int kAttempts = 3;  // what failed once may have been the machine's memory at its end
    for (int i = 0; i < kAttempts; ++i) {
      const bool row = query.StepAgain();
      if (row && static_cast<uint64_t>(query.Integer(0)) == checksum) return Durability::kUntilPowerFails;
      if (row) return file_.Error(code, sqlite3_errstr(code));
    }
    return uncertain;
  }

  bool is_part() const { return is_part_; }
  /// The transaction has been begun by an earlier object.
  void TakeOver() { begun_ = true; }
  /// ... and is left to a later one.
  void Leave() { begun_ = false; }

 private:
  CatalogFile& file_;
  bool is_part_ = false;
  bool begun_ = false;
};

}  // namespace tessera
