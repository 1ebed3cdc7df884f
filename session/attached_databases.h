// Other databases that a session reads: ATTACH and DETACH.
//
// Their tables are part of each snapshot that a statement sees, under names of their own (AttachedName), with identifiers
// that no other database of the process gives. A transaction sees each as it was at the first statement of it.
//
// Start at: AttachedDatabases. The thread of the session.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/database.h"
#include "tablet/lake_table.h"
#include "tablet/sqlite/lake_catalog.h"

namespace tessera {

class AttachedDatabases {
 public:
  using List = std::vector<std::shared_ptr<const AttachedDatabase>>;

  bool empty() const { return databases_.empty(); }
  bool Has(std::string_view name) const { return databases_.contains(name); }
  struct Options {
    bool is_sqlite = false;  ///< it must be a file of SQLite
    bool is_lake = false;    ///< ... with a DuckLake catalog in it
    std::string data_path;   ///< see ReadLakeTables
    LakeMoment moment;
  };
  /// Opens the database for reading, also a file of SQLite. Errors: there is none in `directory`. REQUIRES: !Has(name).
  Status Attach(const std::string& directory, const std::string& name, const Options& options,
                std::shared_ptr<SharedFiles> files);
  /// REQUIRES: Has(name). Snapshots that have been read keep what they have of it.
  void Detach(std::string_view name) { databases_.erase(databases_.find(name)); }
  /// How long to wait for a process that has a catalog locked.
  void SetLockTimeout(int milliseconds);
  /// What is committed in each now. Tables that have not changed since the last call are the same objects. `lakes` gets those
  /// that are DuckLake catalogs.
  Result<List> Read(AttachedLakes* lakes);

 private:
  struct Entry {
    std::string directory;               ///< absolute
    std::unique_ptr<Database> database;  ///< nullptr: a file of SQLite
    Options options;
    int64_t lake_version = 0;  ///< of a lake's snapshot
    /// What a file of SQLite was when it was looked at, and what it had; nullptr: it was not.
    FileIdentity file;
    std::shared_ptr<const AttachedDatabase> sqlite;
    int64_t first_id = 0;  ///< added to the identifiers of its tables
    /// What has been made of it, by the numbers of the tables in their database.
    std::map<uint64_t, std::shared_ptr<const TableInfo>> tables;
    std::weak_ptr<const AttachedDatabase> last;
  };
  static Result<std::shared_ptr<const AttachedDatabase>> ReadSqlite(const std::string& name, Entry* entry);
  /// Adds what a table is to both lists.
  static void AddTable(const Entry& entry, TableSchema schema, AttachedDatabase* out, Snapshot* snapshot);
  static Status ReadTables(const Entry& entry, AttachedDatabase* out, Snapshot* snapshot);
  static Status ReadLake(Entry* entry, AttachedDatabase* out, Snapshot* snapshot);

  std::map<std::string, Entry, std::less<>> databases_;
};

}  // namespace tessera
