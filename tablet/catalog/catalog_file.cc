// Opening SQLite's file, its errors and its journal.
#include "tablet/catalog/catalog_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "base/interrupt.h"
#include "tablet/files/regular_file.h"

namespace tessera {

CatalogFile::~CatalogFile() {
  for (const auto& [sql, statement] : prepared_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

Status CatalogFile::Corrupt(const std::string& reason) const {
  return {ErrorCode::kCorrupt, "catalog \"" + path_ + "\" is corrupt: " + reason};
}

bool CatalogFile::Wait(int calls) {
  const auto now = std::chrono::steady_clock::now();
  if (calls == 0) patience_ends_ = now + std::chrono::milliseconds(lock_timeout_ms_);
  if (Interrupted() || now >= patience_ends_) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return true;
}

Status CatalogFile::Error(int code) const { return Error(code, sqlite3_errmsg(db_)); }

Status CatalogFile::Error(int code, const std::string& message) const {
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      if (Interrupted()) return Cancelled();
      return {ErrorCode::kBusy, "database \"" + name_ + "\" is locked by another process"};
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return {(code & 0xFF) == SQLITE_FULL ? ErrorKind::kDiskFull : ErrorKind::kOutOfMemory,
              "catalog \"" + path_ + "\": " + message};
    case SQLITE_READONLY:
      if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY) {
        return {ErrorCode::kIo, "database \"" + name_ + "\" was left by a process that died while it wrote",
                "Open it once for writing; that restores the last committed state."};
      }
      return {ErrorCode::kIo, "catalog \"" + path_ + "\": " + message};
    case SQLITE_IOERR:
      // The file lacks pages that it should have.
      if (code == SQLITE_IOERR_SHORT_READ) return Corrupt(message);
      return {ErrorCode::kIo, "catalog \"" + path_ + "\": " + message};
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return {ErrorCode::kIo, "cannot open \"" + path_ + "\": " + message};
    default:
      return Corrupt(message);
  }
}

Status CatalogFile::Execute(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : Error(code);
}

Status CatalogFile::Connect(Access access) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  flags |= access == Access::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (access == Access::kCreate) flags |= SQLITE_OPEN_CREATE;
  read_only_ = access == Access::kReadOnly;
  const int code = sqlite3_open_v2(path_.c_str(), &db_, flags, nullptr);
  if (code != SQLITE_OK) return Error(code);
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_handler(
      db_, [](void* self, int calls) { return static_cast<CatalogFile*>(self)->Wait(calls) ? 1 : 0; }, this);
  // A damaged or hostile file must not run SQL of its own.
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  return {};
}

Status CatalogFile::OpenTemporary() {
  has_chosen_journal_ = true;
  return Connect(Access::kCreate);
}

Status CatalogFile::Open(Access access) {
  TESSERA_TRY(Connect(access));

  // After a crash the journal comes first: it may be what makes the file a database again. In a database that is
  // opened for reading only it is an error that says so.
  TESSERA_ASSIGN(const bool journal, HasJournal());
  if (journal) TESSERA_TRY(Execute("PRAGMA schema_version"));
  // The two version bytes at 18 decide whether SQLite would use a write-ahead log, which means writing files even to
  // read. They are read through SQLite's own handle: closing another one would drop the POSIX locks of this process.
  sqlite3_file* file = nullptr;
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  sqlite3_int64 size = 0;
  if (file != nullptr && file->pMethods != nullptr && file->pMethods->xFileSize(file, &size) == SQLITE_OK &&
      size >= 100) {
    uint8_t header[20];
    if (file->pMethods->xRead(file, header, sizeof header, 0) == SQLITE_OK &&
        (memcmp(header, "SQLite format 3", 16) != 0 || header[18] != 1 || header[19] != 1)) {
      return Corrupt("it is not a database of this program");
    }
  }
  // EXTRA is FULL and, where a journal is removed at the end, one more sync of the directory. Without it a power failure
  // could bring back the old catalog, whose tablet files were removed right after the commit.
  return Execute("PRAGMA synchronous = EXTRA");
}

/// A commit ends with a synced header of zeros in a journal that stays: its blocks are written again, and the file system
/// has nothing to note of its own, which it would have of a journal that is made and removed each time (30 ms instead of 34
/// for an INSERT of one row).
Status CatalogFile::ChooseJournal() {
  if (std::exchange(has_chosen_journal_, true)) return {};
  return Execute("PRAGMA journal_mode = PERSIST");
}

Result<bool> CatalogFile::HasJournal() const {
  const std::string journal = path_ + "-journal";
  struct stat info;
  if (stat(journal.c_str(), &info) != 0 || info.st_size == 0) return false;
  TESSERA_ASSIGN(const FileDescriptor file, OpenRegularFile(journal, O_RDONLY));
  // A journal of several databases ends with the name of another journal and this magic number. SQLite would remove the
  // file of that name, wherever it is. Ours are of one database.
  constexpr uint8_t kMagic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  uint8_t end[sizeof kMagic];
  const off_t at = info.st_size - static_cast<off_t>(sizeof end);
  if (at > 0 && pread(file.get(), end, sizeof end, at) == sizeof end && memcmp(end, kMagic, sizeof end) == 0) {
    return Corrupt("its journal is not this program's");
  }
  return true;
}

}  // namespace tessera
