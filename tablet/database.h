// Tables on disk: the catalog, tablets, their encoded chunks, loading and export.
//
// A database is a directory: `catalog.sqlite` (tables, columns, tablets, statistics, in SQLite transactions) and one
// file per tablet. FORMAT.md beside this file gives every byte. Tablet files are immutable; a load writes new ones,
// syncs them and commits one catalog transaction. A Snapshot is what a statement sees: it never changes, and the files
// in it stay readable until the last copy of it is gone, whatever other processes drop or load.
//
// Start at: Database::Open, Snapshot, Tablet::Chunk.
// Threads: Database and Tablet may be used from any thread at once; TableWriter by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/catalog_names.h"
#include "tablet/catalog/macro.h"
#include "tablet/catalog/open_mode.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/catalog/view.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"
#include "tablet/load/table_alteration.h"
#include "tablet/load/table_writer.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/values/enum_type.h"

namespace tessera {

class SharedFiles;

class Database {
 public:
  /// Opens the database in `directory`, creating it if it is not there (not in kReadOnly). An empty name makes a
  /// database in a temporary directory that is removed when the object dies. Errors: kIo, kCorrupt (not a database,
  /// newer version). `files`: those of other objects of this process, too; nullptr: its own.
  static Result<std::unique_ptr<Database>> Open(const std::string& directory, OpenMode mode,
                                                std::shared_ptr<SharedFiles> files = nullptr);
  /// One for the temporary tables of a session that has another database, in a directory of its own: their identifiers are
  /// none that the other gives. Errors: kIo, kResource.
  static Result<std::unique_ptr<Database>> OpenForSession();
  /// A temporary one for the rows of files, whose identifiers are from kFirstFileTable on. Errors: kIo.
  static Result<std::unique_ptr<Database>> OpenForFiles();
  virtual ~Database() = default;

  virtual const std::string& directory() const = 0;
  /// The same for all who have it open, however they named it.
  virtual const std::string& real_path() const = 0;
  /// The committed state now. Cheap when nothing has changed since the last call.
  virtual Result<std::shared_ptr<const Snapshot>> Read() = 0;

  // The writers below take the database's exclusive writer lock. If another process holds it, they wait up to
  // `SetLockTimeout` and then fail with kBusy, naming the process that holds it.
  virtual Status CreateTable(const TableSchema& schema, bool if_not_exists) = 0;
  /// In place of the table of that name, if there is one, in one commit.
  virtual Status ReplaceTable(const TableSchema& schema) = 0;
  virtual Status DropTable(const std::string& name, bool if_exists) = 0;
  /// All rows of the tables go, in one commit.
  virtual Status Truncate(const std::vector<std::string>& tables) = 0;
  /// Takes the writer lock for a change of the table that keeps its rows. Errors: there is none of that name.
  virtual Result<std::unique_ptr<TableAlteration>> Alter(const std::string& table) = 0;
  virtual Status CreateType(const EnumType& type) = 0;
  /// Errors: a column has the type.
  virtual Status DropType(const std::string& name, bool if_exists) = 0;
  /// `or_replace`: in place of the macro of that name and kind, if there is one.
  virtual Status CreateMacro(const Macro& macro, bool or_replace, bool if_not_exists) = 0;
  virtual Status DropMacro(const std::string& name, bool of_rows, bool if_exists) = 0;
  /// In place of the view of that name if `replace`. Errors: there is one, or a table of that name.
  virtual Status CreateView(const ViewSchema& view, bool replace, bool if_not_exists) = 0;
  /// All or none.
  virtual Status DropViews(const std::vector<std::string>& names, bool if_exists) = 0;
  /// Sequences, schemas and comments as they are now.
  virtual Result<CatalogNames> ReadNames() = 0;
  /// Under the writer lock, so that no other process reads what `change` reads before it is changed. Errors: those of
  /// `change`; then nothing is.
  virtual Status ChangeNames(const std::function<Status(CatalogNames*)>& change) = 0;
  virtual Result<std::unique_ptr<TableWriter>> Write(const std::string& table) = 0;
  /// A new table with its rows, in one commit: as CreateTable() or, if `replace`, ReplaceTable() and Write().
  virtual Result<std::unique_ptr<TableWriter>> WriteNew(const TableSchema& schema, bool replace) = 0;
  /// A new table with the rows of a file, in one commit: as WriteNew(). Returns the rows. Errors: also those of the file.
  virtual Result<uint64_t> LoadNew(const TableSchema& schema, bool replace, FileReader* reader,
                                   const CopyFromOptions& options) = 0;
  /// The rows of a file into a table: all or none, as CopyFrom().
  virtual Result<uint64_t> Load(const std::string& table, FileReader* reader, const CopyFromOptions& options) = 0;
  /// COPY table FROM file: all rows or none. Returns the rows added. Errors name file, line, column and text.
  virtual Result<uint64_t> CopyFrom(const std::string& table, const std::string& file,
                                    const CopyFromOptions& options) = 0;

  // A transaction of several changes by this object: it takes the writer lock when it begins and holds it to its end. Read()
  // has the changes at once; others see them all with the commit, or none. One thread at a time.
  virtual bool InTransaction() const = 0;
  /// Errors: kBusy, as of the other writers. REQUIRES: !InTransaction(); and of those below: InTransaction().
  virtual Status BeginTransaction() = 0;
  /// Marks are numbered from 1; a mark goes with those after it.
  virtual Status PushMark() = 0;
  /// Undoes what was done since. The mark stays.
  virtual Status ReturnToMark(size_t mark) = 0;
  virtual Status DropMark(size_t mark) = 0;
  /// From here on changes of rows leave tablets as they are, beside marks of rows that go, so that others' changes can be told from
  /// those of the transaction.
  virtual void KeepTablets() = 0;
  /// Ends that, and writes those of the table anew that are due for it, as other changes of its rows do.
  virtual Status MergeTablets(const std::string& table) = 0;
  /// Ends it, also with an error: then nothing of it is kept, unless the message says that this cannot be known.
  virtual Status CommitTransaction() = 0;
  virtual void RollBackTransaction() noexcept = 0;

  /// The committed state now as a new database in `directory`, whole or not at all, while others go on. Errors: it exists and
  /// is not empty. REQUIRES: !InTransaction().
  virtual Status CopyTo(const std::string& directory) = 0;

  virtual void SetLockTimeout(int milliseconds) = 0;
  /// How the tablets are packed that are written from now on.
  virtual void SetCompression(CompressionGoal goal) = 0;
  /// What is in doubt about the changes since the last call, for the user; empty if nothing is. After the commit of a
  /// change nothing makes it an error any more: to repeat it would make it twice.
  virtual std::string TakeWarning() = 0;
};

}  // namespace tessera
