// One load: rows on their way into a table, from the first row to the committed catalog transaction.
//
// The rows become tablets in files (tablet_cutter.h), on several threads. Other processes may make some of the tablets
// at the same time (shared_load.h). Commit() then checks the primary key and makes everything visible in one catalog
// transaction.
//
// Tablets at the end of the table that are not full are read back and become the first rows of the load, unless they have
// many more rows than come: a few rows do not write a large tablet anew, but become one of their own, and the small ones are
// written together as they grow. COPY always takes the last one. Of a distributed table it is the tablet that is not full of
// each bucket that gets rows. Where rows are deleted they come after the new rows, when all that go are known. Other tablets
// are written anew when it pays (compaction.h).
//
// Start at: TableLoad::Begin. Add and Commit: one thread at a time; RunTask: any thread at any time before Commit()
// returns.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "tablet/catalog/database_directory.h"
#include "tablet/load/column_update.h"
#include "tablet/load/compaction.h"
#include "tablet/load/tablet_cutter.h"

namespace tessera {

class TableLoad final : public TabletCutter {
 public:
  /// Takes the writer lock. Errors: kSql if there is no such table; kBusy. `cancel` may be nullptr.
  static Result<std::unique_ptr<TableLoad>> Begin(std::shared_ptr<DatabaseDirectory> directory,
                                                  const std::string& table, const std::atomic<bool>* cancel);
  /// The rows of a new table, which is there with them from Commit() on, and without any if there are none. `replace`: it
  /// takes the place of the table of that name, if there is one. Errors: kSql if there is one otherwise; kBusy.
  static Result<std::unique_ptr<TableLoad>> BeginNew(std::shared_ptr<DatabaseDirectory> directory,
                                                     const TableSchema& schema, bool replace,
                                                     const std::atomic<bool>* cancel);
  /// The same with the writer lock that the caller has. `replaced`: the table whose place it takes; nullptr: there is none.
  static std::unique_ptr<TableLoad> BeginInPlaceOf(std::shared_ptr<DatabaseDirectory> directory,
                                                   DatabaseDirectory::Write write, const TableSchema& schema,
                                                   std::shared_ptr<const TableRecord> replaced,
                                                   const std::atomic<bool>* cancel);
  /// Discards everything unless Commit() succeeded. REQUIRES: no thread is in RunTask().
  ~TableLoad() override;

  Status Add(RowBatch batch) override;
  /// As TableWriter::Delete. Before EndOfRows(); with rows to be added, before the first of them is.
  Result<uint64_t> Delete(std::span<const int64_t> rows, std::vector<bool>* fresh);
  /// As TableWriter::DeleteShare, under the same conditions.
  Result<uint64_t> DeleteShare(std::span<const int64_t> rows);
  /// As TableWriter::DeleteMarked, under the same conditions.
  Result<uint64_t> DeleteMarked(int64_t first, std::span<const uint64_t> bits);
  /// As TableWriter::Update. Nothing else may be done with the load.
  Status Update(std::span<const int> columns, RowBatch values, std::span<const int64_t> rows);
  /// After the last Update(): decides how the rows are changed. Before EndOfRows().
  Status SettleUpdate();
  void EndOfRows() override;
  Status Commit();
  /// In place of all that: no row comes or goes, but tablets are written anew that are due for it.
  Status MergeAlone();
  /// With those of other processes.
  uint64_t rows_loaded() const;

  /// The last tablet, if it is not full, is written anew however few rows come: so one process makes the same tablets of a
  /// file as several, which are told its rows before they know their own. Before the first Add().
  void TakeLastShort() { takes_last_ = true; }

  // For a load in which other processes have a part:

  /// The rows of the table's last tablet if it is not full: they become the first of the new tablets.
  uint64_t short_rows() const { return last_is_short_ ? table_->tablets.back().rows : 0; }
  /// Settles how many rows the new tablets have, as if `rows` were all that come. Before the first Add().
  uint32_t SettleTabletRows(uint64_t rows);
  /// Takes over tablets that follow this process's own, in files that are named after `load`. Before Commit().
  void Adopt(const std::string& load, NewTablets tablets);

 private:
  TableLoad(std::shared_ptr<DatabaseDirectory> directory, DatabaseDirectory::Write write,
            std::shared_ptr<const TableRecord> table, const std::atomic<bool>* cancel);
  static TabletTarget TargetOf(const DatabaseDirectory& directory, const DatabaseDirectory::Write& write,
                               const TableRecord& table);
  /// The first of the tablets at the table's end that are written anew with `rows` more.
  size_t FirstToTake(uint64_t rows) const;
  Status TakeLast(uint64_t rows);
  Status TakeShortTablets();
  Status TakeBack(size_t tablet);
  /// The bits of a tablet's deleted rows, as they are to be.
  uint64_t* WordsOf(size_t tablet);
  /// The same for several threads.
  uint64_t* SharedWordsOf(size_t tablet);
  void BeginDeletion();
  /// Delete() of many, by several threads.
  Result<uint64_t> DeleteShared(std::span<const int64_t> rows);
  ThreadPool* Threads();
  /// After the last Delete(): what LiveOf() gives from then on is made, by several threads if it is much.
  Status MakeMarks();
  Result<RowBatch> LiveRowsIn(size_t tablet, const Tablet& file) const;
  /// Tablets all of whose rows have been deleted do not stay.
  Status DropEmptied();
  // table_compaction.cc
  /// Makes new tablets of those that are due for it (compaction.h), in their places. What fails is left as it is.
  Status Compact(std::vector<std::string>* unsynced);
  Status CompactRange(const TabletRange& range, std::vector<std::string>* unsynced);
  /// What a statistic of all columns loses with a tablet that does not stay.
  Status Forget(size_t tablet, const Tablet& file);
  std::shared_ptr<const Tablet> FileOf(const TableRecord& table, const TabletRecord& tablet) const;
  /// The deleted rows of one of the table's tablets, those of this load among them; nullptr: there are none.
  std::shared_ptr<const LiveRows> LiveOf(size_t tablet) const;
  Status NameAdopted();
  Status CommitColumns();
  /// The sketch of a column, to which `made` are added, and what it and the rows say of the different values.
  Result<std::string> CountDistinct(const std::string& before, std::span<const DistinctCount* const> made,
                                    size_t column, TableRecord* after) const;
  Result<TableRecord> MakeRecord(std::vector<std::string>* sketches);
  Status CheckKey(const TableRecord& after) const;
  /// Notes where the rows of tablets have gone that do not stay, see moved_rows.h.
  void NoteMoves() const;
  void NoteMovedColumns(const TableRecord& after) const;

  const std::shared_ptr<DatabaseDirectory> directory_;
  std::optional<DatabaseDirectory::Write> write_;  ///< gone after Commit()
  const std::shared_ptr<const TableRecord> table_;
  const std::atomic<bool>* const cancel_;
  bool is_new_ = false;                          ///< the catalog does not have the table yet
  std::shared_ptr<const TableRecord> replaced_;  ///< the table whose place a new one takes, or nullptr

  bool started_ = false, ended_ = false;
  /// Rows of the table that go.
  struct Deletion {
    explicit Deletion(size_t tablets) : bits(tablets), words(tablets) {}
    bool any = false;
    std::atomic<uint64_t> rows{0};
    std::mutex mutex;                                    ///< guards `bits` while several threads delete
    std::vector<std::vector<uint64_t>> bits;             ///< by tablet, as of LiveRows; empty: as in the record
    std::vector<uint64_t*> words;                        ///< ... of these; nullptr: none
    std::vector<std::shared_ptr<const LiveRows>> marks;  ///< ... of the tablets that have some, after MakeMarks()
  };
  Deletion deletion_;
  std::unique_ptr<ThreadPool> threads_;   ///< once they were needed
  std::unique_ptr<ColumnUpdate> update_;  ///< nullptr: none
  bool writes_columns_ = false;           ///< ... by its columns
  bool last_is_short_ = false;            ///< of a table that is not distributed
  bool takes_last_ = false;               ///< however many rows come
  uint32_t tablet_rows_before_ = 0;       ///< of the table
  bool keeps_tablets_ = false;            ///< none is written anew
  bool merges_alone_ = false;
  std::vector<bool> kept_;  ///< by tablet of the table before the load: it stays
  /// The live rows of a tablet that are written anew.
  struct Moved {
    size_t tablet;
    std::shared_ptr<const LiveRows> live;
    uint64_t first;  ///< among the rows of the load, or of the compaction
  };
  std::vector<Moved> moved_;
  /// Of the columns of the other tablets, written anew.
  struct Rewritten {
    explicit Rewritten(size_t columns) : nulls(columns), bytes(columns) {}
    std::vector<uint64_t> nulls, bytes;
  };
  Rewritten rewritten_;
  /// Tablets of other processes, in the order of their rows.
  struct Adopted {
    TabletTarget target;
    NewTablets tablets;
  };
  struct AllAdopted {
    std::vector<Adopted> parts;
    size_t tablets = 0;
  };
  AllAdopted adopted_;
  /// Tablets that take the places of others, in order.
  struct Compacted {
    TabletRange range;
    std::unique_ptr<TabletCutter> tablets;
    std::vector<Moved> moved;
  };
  struct AllCompacted {
    std::vector<Compacted> parts;
    size_t tablets = 0;  ///< the new ones
  };
  AllCompacted compacted_;
  bool committing_ = false;  ///< from here on only the catalog says which files are in use
};

}  // namespace tessera
