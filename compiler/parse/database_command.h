// Statements about the database as a whole, which the grammar does not take: VACUUM INTO of SQLite, EXPORT DATABASE and
// IMPORT DATABASE of DuckDB, ATTACH and DETACH of both; PRAGMA integrity_check, and
// ALTER SCHEMA ... RENAME TO.
//
// Start at: ReadDatabaseCommand. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

struct DatabaseCommand {
  enum class Kind : uint8_t {
    kNone,  ///< another statement
    kVacuumInto,
    kExport,
    kImport,
    kAttach,
    kDetach,
    kCheck,         ///< PRAGMA integrity_check and quick_check
    kRenameSchema,  ///< ALTER SCHEMA ... RENAME TO, which is several statements here
  };
  Kind kind = Kind::kNone;
  std::string directory;
  std::string options;     ///< kExport: of COPY, without the parentheses; "": none were given
  std::string name;        ///< kAttach and kDetach: of the database; kRenameSchema: of the schema
  std::string new_name;    ///< kRenameSchema
  bool if_exists = false;  ///< kDetach; kAttach: IF NOT EXISTS
  bool is_sqlite = false;  ///< kAttach: TYPE sqlite
  // kAttach of a DuckLake catalog: TYPE ducklake, or a name that begins with "ducklake:", which `directory` is without.
  bool is_lake = false;
  std::string data_path;                    ///< where its files are; "": as it says
  std::optional<int64_t> snapshot_version;  ///< nothing here and in the next: the newest
  std::string snapshot_time;                ///< a moment as the user wrote it; "": none
  // kCheck:
  std::string table;    ///< that alone is checked; "": all
  int64_t limit = 100;  ///< no more rows than these, as in SQLite
  bool quick = false;   ///< the files alone

  /// Whether it names files of this machine.
  bool NamesFiles() const { return kind <= Kind::kAttach; }
};

/// What `sql`, one statement, is. Errors: it begins as such a statement and goes on otherwise.
Result<DatabaseCommand> ReadDatabaseCommand(std::string_view sql);

/// COPY t FROM 'file' ... with another file. Errors: kSql, it is something else.
Result<std::string> CopyFromOther(std::string_view sql, const std::string& directory);

/// The first word of a statement, in lower case; "": it begins with something else.
std::string FirstWordOf(std::string_view sql);

}  // namespace tessera
