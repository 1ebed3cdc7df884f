// Files as tables of a session: each is read into a table of a temporary database when a statement needs its rows, and kept
// as long as it stays the same file. Only the columns that statements read are parsed; the others are NULL there, and a
// statement that needs them has the file read again.
//
// A statement is compiled first with what the first rows of the file tell (Find), then Load reads the columns that its
// program names, and if anything was read it is compiled again with the statistics of what is there.
//
// Start at: FileTables::Find, FileTables::Load. One thread.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/database.h"
#include "tablet/kept_files.h"
#include "tablet/lake_table.h"
#include "tablet/load/file_spec.h"

namespace tessera {

class FileTables {
 public:
  /// Gives a name that can be read again for one that can be read once: standard input, a pipe.
  using Spool = std::function<Result<std::string>(const std::string& path)>;

  FileTables();
  ~FileTables();

  void SetSpool(Spool spool) { spool_ = std::move(spool); }
  /// What a name in a statement means. An error is one of Find.
  using Naming = std::function<Result<std::string>(const std::string& name)>;
  void SetNaming(Naming naming) { naming_ = std::move(naming); }
  /// Whether Parquet files are scanned in place, row group by row group; else they are read into tablets as other files are,
  /// which other ranks can be sent.
  void SetInPlace(bool in_place) { in_place_ = in_place; }
  /// What the sessions of a process share; nullptr: nothing.
  void SetShared(std::shared_ptr<KeptFiles> shared) { shared_ = std::move(shared); }
  /// Forgets what the last statement used, and the files that were not used for long.
  void BeginStatement();
  /// The table of these files. Its rows may not be there yet; then they are estimates, and its statistics are bounds. Errors:
  /// kIo; kSql, the files differ in their columns, or are none that can be read.
  Result<std::shared_ptr<const TableInfo>> Find(const FileSpec& spec);
  /// What is attached now, of which an AttachedDatabase has the names.
  void SetLakes(AttachedLakes lakes) { lakes_ = std::move(lakes); }
  /// nullptr: the database is something else.
  const AttachedLake* LakeOf(std::string_view database) const {
    const auto at = lakes_.find(database);
    return at == lakes_.end() ? nullptr : &at->second;
  }
  /// The same of a table of a DuckLake catalog, whose rows are all there. `name`: the qualified one that it gets. Errors: those
  /// of MakeLakeTable.
  Result<std::shared_ptr<const TableInfo>> FindLake(const LakeSpec& spec, const std::string& name);
  /// The tables that the statement has found, as they are now.
  std::vector<std::shared_ptr<const TableInfo>> used() const;
  /// Whether the table is one of them.
  bool Has(int64_t table) const;
  /// Reads the rows, with these columns and those that were read before, unless they are there. Returns whether it did.
  /// `options`: threads, cancel, progress and zone. `rows`: as many of the first are enough; then the others may be left out, and
  /// what is read is not kept for another statement. Errors: those of the file; kIo, it has changed.
  Result<bool> Load(int64_t table, const std::vector<bool>& columns, const CopyFromOptions& options,
                    uint64_t rows = UINT64_MAX);
  /// Looks for keys of the table among these columns, if it is scanned in place. Returns whether one was found that was not known,
  /// which its schema has from then on. Errors: as FileKeys::Find.
  Result<bool> FindKeys(int64_t table, const std::vector<bool>& columns, const CopyFromOptions& options);
  /// A reader of all its columns, past what is kept of it; nullptr: the table is none of the used ones, or of a lake.
  std::unique_ptr<FileReader> ReadAll(int64_t table, const CopyFromOptions& options) const;
  /// How many records of the statement's files were left out because of errors.
  uint64_t ignored() const { return ignored_; }

 private:
  struct Entry;

  /// The entry of that key as it was left, if its files are still these: then it is used; else nullptr, and there is none.
  Result<Entry*> Kept(const std::string& key, const std::vector<FileIdentity>& files);
  /// The one that the statement uses already.
  Entry* UsedOf(const std::string& key) const;
  /// The same of what another session has found, or this one before; nullptr: there is none.
  Entry* TakeShared(const std::string& key, const std::vector<FileIdentity>& files);
  /// Gives it to the others, if they can read the same.
  void Share(const Entry& entry) const;
  Result<Entry*> MakeEntry(const FileSpec& spec, const std::string& key, std::vector<FileIdentity> files);
  Result<std::vector<FileIdentity>> FindFiles(const FileSpec& spec);
  /// false: the files are to be read.
  static Result<bool> AddInPlace(const Entry& entry, TableInfo* info);
  /// The rows of tables of SQLite, which are counted instead of read: no column of them is known.
  static Status CountRows(const CopyFromOptions& options, Entry* entry);
  Entry* EntryOf(int64_t table) const;
  Status Forget(std::list<std::unique_ptr<Entry>>::iterator entry);

  Spool spool_;
  Naming naming_;  ///< empty: itself
  AttachedLakes lakes_;
  bool in_place_ = false;
  std::shared_ptr<KeptFiles> shared_;
  std::unique_ptr<Database> database_;  ///< nullptr until rows are read
  std::list<std::unique_ptr<Entry>> entries_;
  std::vector<std::pair<std::string, std::string>> spooled_;  ///< names and where they are
  /// Of tables whose rows are not there: of all sessions of the process, which may share the ranks that know them by it.
  static inline std::atomic<int64_t> next_id_ = kFirstFileTable << 1;
  uint64_t ignored_ = 0;
};

}  // namespace tessera
