// The directory of one open database: its catalog connection, its locks, its cached snapshot, its files.
//
// Shared by the Database object, its writers and nothing else; it lives until the last of them is gone.
// Start at: DatabaseDirectory::Open, Read, BeginWrite. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "tablet/catalog/catalog.h"
#include "tablet/catalog/open_mode.h"
#include "tablet/catalog/table_info.h"
#include "tablet/catalog/temporary_directory.h"
#include "tablet/files/directory_lock.h"
#include "tablet/files/shared_files.h"
#include "tablet/files/tablet.h"
#include "tablet/files/tablet_file.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/values/enum_type.h"

namespace tessera {

/// A directory that is not there yet, or is empty, is a database without tables; the first change makes it one on disk.
class DatabaseDirectory : public std::enable_shared_from_this<DatabaseDirectory> {
 public:
  /// As Database::Open().
  /// `least_id`: that of tables and tablets, where it is not written yet.
  static Result<std::shared_ptr<DatabaseDirectory>> Open(const std::string& directory, OpenMode mode,
                                                         int64_t least_id = 1);
  /// Whether a database has been written there.
  static bool IsWritten(const std::string& directory);
  bool IsWritten();
  ~DatabaseDirectory();

  /// As the user named it (for a temporary database its path).
  const std::string& name() const { return name_; }
  /// Absolute: the process may change its working directory.
  const std::string& path() const { return path_; }
  /// The same, however it was named.
  const std::string& real_path() const { return real_path_; }
  std::string FilePath(const std::string& file) const { return path_ + "/" + file; }
  /// False for a temporary database: it is not read after a crash, so nothing waits for the disk.
  bool durable() const { return temporary_ == nullptr; }
  /// Before the first Read(): its files are those of others of this process, too; nullptr: they are not.
  void ShareFiles(std::shared_ptr<SharedFiles> files) { shared_files_ = std::move(files); }
  void SetLockTimeout(int milliseconds);
  /// Of the tablets that are written from now on.
  void SetCompression(CompressionGoal goal) { compression_ = goal; }
  CompressionGoal compression() const { return compression_; }

  Result<std::shared_ptr<const Snapshot>> Read();

  /// New tables and tablets have no identifier below `first`.
  void RaiseIdentifiers(int64_t first);

  /// The exclusive writer lock and the catalog as it is under it.
  struct Write {
    WriterLock lock;
    CatalogContents contents;
  };
  Result<Write> BeginWrite();

  // A transaction of several changes. It holds the writer lock from its first change to its end, and a change that is begun
  // within it belongs to it: Read() has it then, and other processes do not. REQUIRES, but for the first: InTransaction().
  bool InTransaction() const { return transaction_.has_value(); }
  /// Errors: kBusy.
  Status BeginTransaction();
  /// After them the changes up to the mark can be undone alone. A mark is dropped with those after it.
  Status PushMark();
  Status ReturnToMark(size_t mark);
  Status DropMark(size_t mark);
  /// From here on its changes leave all tablets where they are, beside marks of rows that go.
  void KeepTablets(bool keeps) { transaction_->keeps_tablets = keeps; }
  bool keeps_tablets() const { return transaction_ && transaction_->keeps_tablets; }
  /// Whether changes of rows are only held in memory until the transaction's end. REQUIRES: the writer lock is held.
  bool HoldsChanges() const { return catalog_ != nullptr && catalog_->HoldsChanges(); }
  /// Ends it, also with an error: then nothing of it is kept, unless the message says that this cannot be known.
  Status CommitTransaction();
  void RollBackTransaction() noexcept;

  // The catalog's changes; each ends with the removal of files that no table has any more. After an error the
  // change was not made, unless the message says that this cannot be known.
  /// `replaced`: the table whose place it takes; nullptr: none.
  Status InsertTable(const Write& write, TableRecord table, const TableRecord* replaced,
                     const std::vector<std::string>& sketches, int64_t next_tablet_id);
  Status DropTable(const Write& write, const TableRecord& table);
  Status Truncate(const Write& write, const std::set<int64_t>& tables);
  Status SetTypes(const Write& write, std::vector<EnumType> types);
  Status SetMacros(const Write& write, std::vector<Macro> macros);
  /// The views are `views` from now on.
  Status SetViews(const Write& write, Views views);
  /// Sequences, schemas and comments are `names` from now on.
  Status SetNames(const Write& write, CatalogNames names);
  /// As they are now.
  Result<CatalogNames> ReadNames();
  /// `unsynced`: files of new tablets for which the disk has not been waited yet, of a small change that keeps the schema;
  /// nullptr: it is no such.
  Status UpdateTable(const Write& write, const TableRecord& before, TableRecord after,
                     const std::vector<std::string>& sketches, int64_t next_tablet_id,
                     const std::vector<std::string>* unsynced);
  Result<std::vector<std::string>> Sketches(const TableRecord& table);

  /// ThreadsOfMarks for a change. To start sixteen takes 2 ms, so the next change gets those that are given back.
  std::unique_ptr<ThreadPool> TakeThreads();
  void GiveBack(std::unique_ptr<ThreadPool> threads);

  /// The committed state now as a new database, while others read and change this one. Errors: there is something at that
  /// place. REQUIRES: !InTransaction().
  Status CopyTo(const std::string& directory);

  /// The tablet in its files, apart from those that snapshots have.
  std::shared_ptr<const Tablet> OpenTablet(const CatalogContents& contents, const TableRecord& table,
                                           const TabletRecord& tablet) const;
  TabletIdentity IdentityOf(const CatalogContents& contents, const TableRecord& table,
                            const TabletRecord& tablet) const;
  /// What is in doubt about the changes since the last call; empty if nothing is.
  std::string TakeWarning();
  /// Waits until the directory's entries are on disk.
  Status SyncDirectory() const;

 private:
  DatabaseDirectory() = default;
  /// The catalog that there is; nullptr if none is.
  Result<std::unique_ptr<Catalog>> FindCatalog() const;
  Result<std::unique_ptr<Catalog>> CreateCatalog() const;
  /// Whether the directory could be made: a wrong path is an error before anything is changed there.
  Status CheckParent() const;
  /// REQUIRES: mutex_ held. Takes over a catalog that there is now.
  Status Attach();
  /// REQUIRES: mutex_ held. Writes the database if that has not been done.
  Status Create();
  Status Use(std::unique_ptr<Catalog> catalog);
  std::shared_ptr<const TableInfo> MakeInfo(const CatalogContents& contents,
                                            const std::shared_ptr<const TableRecord>& record);
  /// REQUIRES: mutex_ held. What a change has made of contents_.
  void TakeContents(CatalogContents made);
  /// REQUIRES: mutex_ held. Brings contents_ up to date.
  Status Refresh();
  /// The catalog with the sketches of each table, and a snapshot of the same moment, which keeps the files; no snapshot where
  /// nothing has been written.
  Status ReadWhole(CatalogContents* contents, std::vector<std::vector<std::string>>* sketches,
                   std::shared_ptr<const Snapshot>* snapshot);
  /// REQUIRES: the writer lock and mutex_ are held. Nothing of it can fail a change that was made.
  void AfterCommit(const Result<Durability>& committed) noexcept;
  /// Notes what changes have been given that are rolled back next.
  void NoteGiven();
  /// What follows a change or its end, and may be left to the next writer.
  void RefreshAndSweep(bool sweeps) noexcept;
  /// AfterCommit at the end of a transaction of which nothing is kept.
  void AfterRollBack() noexcept;
  /// Waits until the disk has the files of the tablets that the transaction has added.
  Status SyncTablets() const;
  /// Waits until the disk has the latest commit, whichever process made it.
  Status SyncCommit() const;
  /// Whether a change may become a record of the commit log. Such a record is of no use if SQLite's file, to which it is added,
  /// becomes an older one.
  bool MayLog();
  struct UsedFiles {
    std::unordered_set<int64_t> files;    ///< by the numbers in their names
    std::unordered_set<int64_t> columns;  ///< of tablets, by those in their headers
    std::unordered_set<int64_t> tablets;  ///< that have several files, by their identifiers
  };
  /// By the catalog, as it is and as it may become when the transaction is rolled back.
  UsedFiles Used() const;
  /// Forgets the objects of all but what is `used` by the catalog. Returns the numbers of the other files that a snapshot
  /// has, which may open them yet.
  std::unordered_set<int64_t> ForgetTablets(const UsedFiles& used);
  /// Removes what is neither a tablet's file in contents_ nor the database's own, unless a reader might use it: of the files
  /// `listed`; nullptr: of those that this object has seen in the catalog, because a list takes long beside an INSERT of one
  /// row. REQUIRES: the writer lock and mutex_ are held and contents_ is up to date.
  void Sweep(const std::vector<std::string>* listed);

  std::string name_;
  std::string path_, real_path_;
  OpenMode mode_ = OpenMode::kReadOnly;
  std::unique_ptr<TemporaryDirectory> temporary_;  ///< nullptr if the user named a directory
  std::shared_ptr<SharedFiles> shared_files_;      ///< nullptr if it shares none
  std::atomic<int> lock_timeout_ms_{5000};
  std::atomic<CompressionGoal> compression_{CompressionGoal::kBalanced};

  std::mutex mutex_;                         ///< guards what follows
  std::unique_ptr<Catalog> catalog_;         ///< nullptr as long as nothing is written
  std::shared_ptr<ReaderLock> reader_lock_;  ///< likewise; then it stays
  bool loaded_ = false;
  CatalogContents contents_;
  std::unique_ptr<ThreadPool> threads_;  ///< given back
  bool infos_current_ = false;
  /// What snapshots are made of, without a hold on the reader lock: kept from one Read() to the next so that mappings
  /// and verified chunks survive, and handed out again only under a new hold and an unchanged catalog.
  std::vector<std::pair<std::shared_ptr<const TableRecord>, std::shared_ptr<const TableInfo>>> infos_;
  std::weak_ptr<const Snapshot> snapshot_;
  /// Tablets of the catalog, as far as they were asked for.
  struct OpenTablets {
    std::map<int64_t, std::shared_ptr<const TabletFile>> files;  ///< by the identifier in their headers
    std::map<int64_t, std::shared_ptr<const Tablet>> of_files;   ///< tablets of several of them, by identifier
    /// Of earlier catalogs, by the files' numbers.
    std::vector<std::pair<int64_t, std::weak_ptr<const Tablet>>> replaced;
  };
  OpenTablets open_;
  /// What Sweep() has found.
  struct Swept {
    bool garbage = false;              ///< it left files that a reader might use
    std::unordered_set<int64_t> seen;  ///< files that the catalog had when it last looked, and those that it left
    /// As others_version() was when the directory was last listed; 0: never.
    int64_t listed_version = 0;
  };
  Swept swept_;
  /// What the disk has of the latest changes.
  struct OnDisk {
    bool in_doubt = false;  ///< a power failure may undo the latest change
    int64_t version = 0;    ///< of the catalog, as other processes have left it: the disk has that; 0: none
    bool warn = false;      ///< TakeWarning() has something to say
  };
  OnDisk on_disk_;
  /// Of the transaction: the catalog before it and at each mark.
  struct OpenTransaction {
    WriterLock lock;
    std::vector<CatalogContents> marks;
    bool keeps_tablets = false;
  };
  std::optional<OpenTransaction> transaction_;
  // What has been given to changes that were rolled back, and is not given again: what is kept by a table's version or by a
  // tablet's identifier would be taken for what comes later.
  int64_t least_table_id_ = 1, least_tablet_id_ = 1;
};

}  // namespace tessera
