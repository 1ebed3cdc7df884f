// The catalog: tables, columns, tablets and statistics of a database, in SQLite. FORMAT.md gives its schema.
//
// SQLite finds most damage to its file, but not a changed digit in a row; so every table carries a checksum of all its
// rows in the catalog, and the database one of all tables. What Load() returns has passed them.
//
// Small changes are records of the commit log first (tablet/files/commit_log.h), which Load() reads after SQLite's file: each
// other change begins with taking over what is there.
//
// Start at: Catalog::Open, Catalog::Load. Thread-compatible: DatabaseDirectory guards the one it has with a mutex.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/catalog_file.h"
#include "tablet/catalog/catalog_names.h"
#include "tablet/catalog/log_record.h"
#include "tablet/catalog/macro.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/catalog/table_record.h"
#include "tablet/catalog/view.h"
#include "tablet/files/commit_log.h"
#include "tablet/files/live_rows.h"
#include "tablet/files/tablet_file.h"
#include "tablet/values/enum_type.h"

struct sqlite3_stmt;

namespace tessera {

class CatalogTransaction;
struct ConstraintRow;

class Catalog {
 public:
  using Access = CatalogFile::Access;
  /// `name` is the database's name for messages. Does not look into the file yet; see Check(). Commits wait for the disk.
  static Result<std::unique_ptr<Catalog>> Open(const std::string& path, const std::string& name, Access access);
  /// An empty one in memory, which no other process sees.
  static Result<std::unique_ptr<Catalog>> OpenTemporary(const std::string& name);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// How long to wait for another process that has the catalog locked.
  void SetLockTimeout(int milliseconds) { file_.SetLockTimeout(milliseconds); }

  enum class State { kEmpty, kInitialised };
  /// Empty (a creation was interrupted) or ours; anything else is kCorrupt.
  Result<State> Check();
  /// Makes the tables.
  Status Initialise();
  /// The same with what another catalog has. `sketches`: of each table by column, as in UpdateTable.
  Status Initialise(const CatalogContents& contents, const std::vector<std::vector<std::string>>& sketches);

  /// True at the first call and whenever a transaction of any process was committed since the last call.
  Result<bool> Changed();
  /// As of the last call of Changed(): another number once another process has committed something. Not 0.
  int64_t others_version() const { return others_version_; }
  /// The committed state; takes over the tables of `before` (may be nullptr) that have not changed.
  Result<CatalogContents> Load(const CatalogContents* before);

  // Transactions. `state` is what Load() returned under the writer lock that is still held. After an error the change
  // was not made, unless the message says that this cannot be known.
  /// Adds `table` (its version and checksum are set here), in place of `replaced` if that is not nullptr. `sketches` and
  /// `next_tablet_id` as in UpdateTable; a table without rows has no sketches.
  Result<Durability> InsertTable(const CatalogContents& state, TableRecord table, const TableRecord* replaced,
                                 const std::vector<std::string>& sketches, int64_t next_tablet_id);
  Result<Durability> DropTable(const CatalogContents& state, const TableRecord& table);
  /// The tables of these identifiers have no rows from now on.
  Result<Durability> Truncate(const CatalogContents& state, const std::set<int64_t>& tables);
  /// The types are `types` from now on.
  Result<Durability> SetTypes(const CatalogContents& state, std::vector<EnumType> types);
  /// The macros are `macros` from now on.
  Result<Durability> SetMacros(const CatalogContents& state, std::vector<Macro> macros);
  /// The views are `views` from now on.
  Result<Durability> SetViews(const CatalogContents& state, Views views);
  /// Sequences, schemas, comments, roles and grants are `names` from now on.
  Result<Durability> SetNames(const CatalogContents& state, CatalogNames names);
  /// Replaces a table's record by `after` (its version and checksum are set here) and its sketches, one per column. `made` becomes what
  /// Load() would return, if the disk has it. `is_of_rows`: the schema is that of `before`, and such changes may go to the commit
  /// log.
  Result<Durability> UpdateTable(const CatalogContents& state, const TableRecord& before, TableRecord after,
                                 const std::vector<std::string>& sketches, int64_t next_tablet_id, bool is_of_rows,
                                 CatalogContents* made);
  // The same by a record of the commit log, which is all that the disk is waited for: not for the files of new tablets. False: the
  // change is too large or no such, or the log is full or not there, or a transaction is open; nothing was done.
  /// REQUIRES: `after` has the schema of `before`.
  Result<bool> LogUpdate(const CatalogContents& state, const TableRecord& before, TableRecord after,
                         const std::vector<std::string>& sketches, int64_t next_tablet_id, CatalogContents* made);
  Result<bool> LogNames(const CatalogContents& state, const CatalogNames& names, CatalogContents* made);

  // A transaction of several of these changes, which are parts of it: Load() has them, other connections do not. Readers of
  // other processes go on; a writer would wait. As long as it has changed rows of tables and values of sequences alone, SQLite does
  // not know of it.
  Status BeginOpen(const CatalogContents& state);
  /// Whether there is one of which SQLite does not know.
  bool HoldsChanges() const { return held_ != nullptr; }
  /// Marks the state to which ReturnToMark goes, after which the mark is still there. Numbers rise.
  Status SetMark(size_t number);
  Status ReturnToMark(size_t number);
  Status DropMark(size_t number);
  /// Ends it by a record of the commit log. False: as of LogUpdate; it goes on, as it does after an error.
  Result<bool> LogOpen();
  /// Ends it, also with an error.
  Result<Durability> CommitOpen();
  void RollBackOpen() noexcept;
  /// Versions that UpdateTable gives are greater: a version that was rolled back has been seen, and does not come again with
  /// other rows.
  void RaiseVersions(int64_t version) { least_version_ = std::max(least_version_, version); }

  /// The serialised DistinctCount of each column; empty strings before the first load.
  Result<std::vector<std::string>> Sketches(const TableRecord& table);

 private:
  using SketchesByTable = std::unordered_map<int64_t, std::vector<std::string>>;
  Catalog(std::string path, std::string name) : file_(std::move(path), std::move(name)) {}
  /// A held transaction goes to SQLite. Before the change SQLite's file gets what the log has.
  Status BeginChange(CatalogTransaction* transaction, const char* sql);
  /// The same where no transaction is held, or the held one begins.
  Status BeginWhole(CatalogTransaction* transaction, const char* sql);
  /// Whether the table of defaults or that of constraints is there.
  Result<bool> HasTable(const char* name);
  /// So that programs that do not know what is new refuse the catalog.
  Status RaiseVersion(int version);
  Status RaiseVersionFor(const TableSchema& schema, const std::vector<ConstraintRow>& constraints);
  Result<CatalogContents> LoadInTransaction(const CatalogContents* before);
  /// Of the commit log; 0: there is none.
  Result<int64_t> LoadGeneration();
  // catalog_types.cc; the table of macros is made with the first macro
  static const char kTypesSchema[], kMacrosSchema[];
  Status LoadNames(CatalogContents* contents);
  Status LoadTypes(std::vector<EnumType>* types);
  Status LoadMacros(std::vector<Macro>* macros);
  Status WriteTypes(const std::vector<EnumType>& types);
  Status WriteMacros(const std::vector<Macro>& macros);
  // catalog_views.cc: the tables of views, which are made with the first view
  static const char kViewsSchema[];
  Status LoadViews(Views* views);
  Status WriteViews(const Views& views);
  // catalog_sequences.cc: the tables of sequences, schemas and comments, each made with the first row
  static const char kSequencesSchema[], kSchemasSchema[], kCommentsSchema[];
  Status LoadNames(CatalogNames* names);
  Status LoadSequences(Sequences* sequences);
  Status WriteNames(const CatalogNames& names);
  Status WriteSequences(const Sequences& sequences);
  Status WriteSchemas(const std::vector<std::string>& schemas);
  Status WriteComments(const Comments& comments);
  // catalog_roles.cc: the tables of roles and grants, made with the first of them
  static const char kRolesSchema[];
  Status LoadRoles(CatalogNames* names);
  Status WriteRoles(const CatalogNames& names);
  /// Errors: a table of that name cannot be made.
  static Status CheckNewName(const CatalogContents& state, const std::string& name);
  /// Sequences that belong to a table go with it.
  Status DropSequencesOf(int64_t table_id, CatalogContents* after);
  /// ... or follow the table that takes its place, if it takes values of them.
  Status TakeOverSequences(int64_t replaced, const TableRecord& table, CatalogContents* after);
  /// ... and with its columns.
  Status DropSequencesWithoutColumn(const TableRecord& table, CatalogContents* after);
  /// Those of what is not there any more.
  Status DropLeftComments(CatalogContents* after);
  Result<std::shared_ptr<const TableRecord>> LoadTable(TableRecord table, int64_t next_tablet_id);
  // Its parts; `of_table` is for errors.
  Status LoadColumns(TableRecord* table, const std::string& of_table);
  Status LoadDefaults(TableRecord* table, const std::string& of_table);
  /// Returns the row of buckets; "": there is none.
  Result<std::string> LoadConstraints(TableRecord* table, const std::string& of_table);
  Status WriteTable(const TableRecord& table, const std::vector<std::string>& sketches);
  Status InsertTablets(const TableRecord& table, size_t first);
  Status LoadDeletedRows(TableRecord* table);
  /// Brings the rows that are kept as deleted from those of `before` to those of `after`.
  Status WriteDeletedRows(const TableRecord& before, const TableRecord& after);
  // catalog_layouts.cc: the tables of files and constants, which are made with the first tablet of several files
  static const char kLayoutsSchema[];
  Status LoadLayouts(TableRecord* table, int64_t next_tablet_id);
  Status WriteLayouts(const TableRecord& before, const TableRecord& after);
  Status DeleteLayouts(int64_t table_id);
  Status CheckLayouts(const CatalogContents& contents);
  Status DeleteTablets(int64_t table_id);
  Status DeleteTable(int64_t table_id);
  void SetVersion(const TableRecord& before, TableRecord* after) const;
  /// Replaces what SQLite has of a table.
  Status WriteChange(const TableRecord& before, const TableRecord& after, const std::vector<std::string>& sketches);
  /// The row of `database`. Returns its checksum.
  Result<uint64_t> WriteDatabase(CatalogContents after);
  Result<Durability> Commit(CatalogTransaction* transaction, const CatalogContents& after);

  // catalog_transaction.cc
  /// A transaction of which SQLite does not know.
  struct HeldTransaction {
    struct State {
      CatalogContents contents;
      SketchesByTable sketches;  ///< of the tables that it has changed
    };
    std::vector<State> marks;  ///< the first: before it
    State now;
    bool has_changed = false;  ///< Changed() has not said so yet
  };
  /// The held transaction becomes one of SQLite. `ends`: there are no marks any more, and the next one may be in the log.
  /// After an error it is held as before.
  Status GiveToSqlite(bool ends);
  Status SetMarkOfSqlite(size_t number);
  Status WriteDifference(const HeldTransaction::State& before, const HeldTransaction::State& after);
  Status WriteSequenceValue(const Sequence& sequence);

  // catalog_log.cc
  static const char kLogSchema[];
  static constexpr int kVersionWithLog = 9;
  using DatabaseId = std::array<uint8_t, 16>;
  std::string DirectoryPath() const;
  Status OpenLog(const DatabaseId& database);
  void NoteLogged(LoggedChange change);
  /// Whether such a change may be a record. `files`: those of new tablets, by table; nullptr: they are not read.
  bool FitsRecord(const LoggedChange& change, std::vector<std::vector<NewFile>>* files);
  /// Adds a record that makes `after` of `before`, as LogUpdate. `sketches`: of the tables that differ.
  Result<bool> Log(const CatalogContents& before, const CatalogContents& after, const SketchesByTable& sketches);
  /// The log has no records of this generation that are known.
  void ForgetLogged(int64_t generation);
  /// `of_others`: those since the last time.
  Status ApplyRecords(CatalogContents* contents, bool of_others);
  /// Brings what SQLite has to what the log has. REQUIRES: SQLite's lock is held since that was read: no one takes over.
  Status LoadLog(const CatalogContents* before, CatalogContents* contents);
  /// The tablets' files that came with records, where they are not what they were.
  Status RestoreLoggedFiles(bool sync);
  /// At the beginning of a transaction that changes SQLite's file.
  Status TakeOverLog();
  /// Makes the file of a log. False: there is one already, or none can be made.
  bool PrepareLog(const DatabaseId& database);
  Status WriteFirstGeneration();
  /// Whether the catalog's version is one of a log of such records.
  bool HasVersionFor(const LoggedChange& change);

  CatalogFile file_;
  sqlite3_stmt* data_version_ = nullptr;  ///< prepared once: Changed() is called for every statement
  int64_t last_data_version_ = -1;        ///< -1: SQLite's file is read anew
  int64_t sqlite_version_ = 0, others_version_ = 0;
  std::unique_ptr<HeldTransaction> held_;  ///< from BeginOpen() on, until SQLite gets it
  bool is_open_ = false;                   ///< ... and from then on to its end
  int64_t least_version_ = 0;

  std::unique_ptr<CommitLog> log_;   ///< nullptr: none is known
  int64_t generation_ = 0;           ///< of the log, as SQLite's file has it; 0: there is none
  int64_t changing_generation_ = 0;  ///< as it will be after the transaction
  bool has_record_ = false;          ///< the log's record() has not been applied yet
  bool only_log_grew_ = false;       ///< Changed() said so because of the log alone
  int64_t records_of_others_ = 0;
  bool has_checked_files_ = false;
  bool has_newest_version_ = false;  ///< known of SQLite's file: of a log of records of several tables
  /// Tables that the log has changed, by identifier: `before` is as SQLite has it.
  std::unordered_map<int64_t, LoggedTable> logged_;
  std::unordered_map<int64_t, LoggedFile> logged_files_;        ///< by tablet; offsets are of the log
  std::unordered_map<std::string, Sequence> logged_sequences_;  ///< to whose values the log has brought them, by name
};

}  // namespace tessera
