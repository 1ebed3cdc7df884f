// One load: rows on their way into a table, from the first row to the committed catalog transaction.
//
// Rows are added in their order by one thread. As soon as a tablet is full, each of its columns is a task; tasks run on
// whatever threads call RunTask(), so that several threads finish one tablet together and few tablets are in memory at
// a time. The thread that encodes a tablet's last column writes its file; another waits for the disk. Commit() then
// checks the primary key and makes everything visible in one catalog transaction.
//
// The table's last tablet, if it is not full, is read back and becomes the first rows of the load: all tablets but the
// last are always full.
//
// WITH (cluster_by = ...) the rows of the load are sorted before tablets are made of them: sorting a run of them is a
// task, and behind the last row so is merging the rows of the next tablet, one thread at a time (clustered_rows.h).
//
// Start at: TableLoad::Begin. Add and Commit: one thread at a time; RunTask: any thread at any time before Commit()
// returns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tablet/chunk_encoder.h"
#include "tablet/clustered_rows.h"
#include "tablet/database_directory.h"
#include "tablet/distinct_count.h"
#include "tablet/file_syncer.h"
#include "tablet/row_batch.h"

namespace tessera {

/// The size of a table's tablets: the greatest power of two from 2^16 to 2^20 that gives at least 32 tablets, so that
/// threads and ranks have pieces to share; 2^16 for fewer than 2 M rows.
uint32_t ChooseTabletRows(uint64_t table_rows);

class TableLoad {
 public:
  /// Takes the writer lock. Errors: kSql if there is no such table; kBusy. `cancel` may be nullptr.
  static Result<std::unique_ptr<TableLoad>> Begin(std::shared_ptr<DatabaseDirectory> directory,
                                                  const std::string& table, const std::atomic<bool>* cancel);
  /// The rows of a new table, which is there with them from Commit() on, and without any if there are none. `replace`: it
  /// takes the place of the table of that name, if there is one. Errors: kSql if there is one otherwise; kBusy.
  static Result<std::unique_ptr<TableLoad>> BeginNew(std::shared_ptr<DatabaseDirectory> directory,
                                                     const TableSchema& schema, bool replace,
                                                     const std::atomic<bool>* cancel);
  /// Discards everything unless Commit() succeeded. REQUIRES: no thread is in RunTask().
  ~TableLoad();

  const TableSchema& schema() const { return table_->schema; }
  /// How many rows will be added, as far as is known before the first Add(): it decides the size of the tablets.
  void ExpectRows(uint64_t rows) { expected_rows_ = rows; }
  /// Columns of the schema's storage classes, checked by the caller.
  Status Add(RowBatch batch);
  /// No more rows come: the last tablet is cut too, for RunTask(). Commit() does it where the caller did not.
  void EndOfRows();
  uint64_t rows_added() const { return rows_added_; }
  /// Encodes a column of a full tablet, or sorts or merges rows; false if there is nothing to do at the moment. Waits
  /// while another thread merges rows.
  bool RunTask();
  /// Tasks that wait for a thread, or will when what runs now is done.
  size_t waiting_tasks() const;
  /// Full tablets that are not written yet, and runs of rows that are not sorted yet.
  size_t unfinished_tablets() const;
  Status Commit();

 private:
  using Piece = ClusteredRows::Piece;
  struct TabletJob {
    size_t number = 0;  ///< among the new tablets
    uint32_t rows = 0;
    std::vector<Piece> pieces;
    std::vector<EncodedChunk> chunks;
    std::atomic<size_t> columns_left{0};
  };
  struct Task {
    std::shared_ptr<TabletJob> job;
    size_t column = 0;
    std::shared_ptr<RowBatch> run = nullptr;  ///< to be sorted, instead of encoding
  };
  /// Where rows that are sorted are on their way to tablets.
  enum class Merge : uint8_t { kNone, kSorting, kReady, kRunning };

  TableLoad(std::shared_ptr<DatabaseDirectory> directory, DatabaseDirectory::Write write,
            std::shared_ptr<const TableRecord> table, const std::atomic<bool>* cancel);
  Status TakeLastTablet();
  void AddPiece(RowBatch batch);
  void AddToRun(const RowBatch& batch);
  void SortLater(std::shared_ptr<RowBatch> run);
  void MergeTablet();
  void Pend(Piece piece);
  void FlushSmallBatches();
  void CutTablets(bool all);
  Status RunTask(const Task& task);
  Status WriteTablet(TabletJob* job);
  void Fail(const Status& status);
  Status status() const;
  Result<TableRecord> MakeRecord(std::vector<std::string>* sketches);
  Status CheckKey(const TableRecord& after) const;
  std::string TemporaryPath(size_t number) const;
  std::string FinalPath(size_t number) const;

  const std::shared_ptr<DatabaseDirectory> directory_;
  std::optional<DatabaseDirectory::Write> write_;  ///< gone after Commit()
  const std::shared_ptr<const TableRecord> table_;
  const std::atomic<bool>* const cancel_;
  bool is_new_ = false;                          ///< the catalog does not have the table yet
  std::shared_ptr<const TableRecord> replaced_;  ///< the table whose place a new one takes, or nullptr

  // Of the thread that adds rows.
  bool started_ = false, ended_ = false;
  uint64_t expected_rows_ = 0;
  uint32_t tablet_rows_;                                   ///< 0 while it is not chosen
  size_t kept_tablets_;                                    ///< tablets of the table before the load that stay
  uint64_t replaced_rows_ = 0;                             ///< of the last tablet, which is written anew
  std::vector<uint64_t> replaced_nulls_, replaced_bytes_;  ///< of its columns; empty if there is none
  uint64_t rows_added_ = 0;
  std::optional<ClusteredRows> clustered_;  ///< from the last row on, of the thread that merges
  RowBatch small_;                          ///< rows of small batches, collected
  std::deque<Piece> pending_;
  uint64_t pending_rows_ = 0;
  uint64_t pending_bytes_ = 0;
  size_t tablets_cut_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable tablet_done_, merged_;
  std::deque<Task> tasks_;
  size_t unfinished_ = 0;  ///< tablets, runs, and a merge that goes on
  size_t unsorted_ = 0;    ///< runs
  Merge merge_ = Merge::kNone;
  Status status_;
  std::vector<TabletRecord> records_;  ///< of the new tablets
  std::vector<uint64_t> nulls_, bytes_;
  std::vector<int128_t> min_, max_;
  std::vector<DistinctCount> distinct_;

  FileSyncer syncer_;
  bool committing_ = false;  ///< from here on only the catalog says which files are in use
};

}  // namespace tessera
