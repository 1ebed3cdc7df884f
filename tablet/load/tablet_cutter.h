// Rows on their way into the files of new tablets: cut, encoded, written, synced. What a load is without the catalog.
//
// Rows are added in their order by one thread. As soon as a tablet is full, each of its columns is a task; tasks run on
// whatever threads call RunTask(), so that several threads finish one tablet together and few tablets are in memory at
// a time. The thread that encodes a tablet's last column writes its file; another waits for the disk.
//
// WITH (cluster_by = ...) the rows are sorted before tablets are made of them: sorting a run of them is a task, and
// after the last row so is merging the rows of the next tablet, one thread at a time (clustered_rows.h).
//
// WITH (distribute_by = ...) they are sorted by their buckets first (buckets.h), and a tablet ends with its bucket.
//
// Start at: Add, RunTask, Finish. Add, EndOfRows, Finish: one thread at a time; RunTask: any thread at any time before
// Finish() returns.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tablet/catalog/buckets.h"
#include "tablet/catalog/catalog.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/chunk/distinct_count.h"
#include "tablet/files/file_syncer.h"
#include "tablet/load/clustered_rows.h"
#include "tablet/load/pending_rows.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// The size of a table's tablets: the greatest power of two from 2^16 to 2^20 that gives at least 32 tablets, so that
/// threads and ranks have pieces to share; 2^16 for fewer than 2 M rows.
uint32_t ChooseTabletRows(uint64_t table_rows);

/// Readers of the file would refuse a value outside of the column's type.
Status CheckStored(const ColumnSchema& column, const ChunkDescriptor& chunk);

/// Where new tablets go, and what the catalog will know them by.
struct TabletTarget {
  std::string directory;
  bool durable = true;  ///< files are synced
  CompressionGoal compression = CompressionGoal::kBalanced;
  std::array<uint8_t, 16> database{};
  int64_t table_id = 0;
  int64_t first_tablet_id = 0;
  /// Empty: files get the names of tablets. Otherwise the load has this name, other processes have a part in it, and
  /// files keep names of their own until the process with the writer lock renames them: one that still writes when that
  /// is gone must not touch a file of the next load.
  std::string load;

  /// Of the file while it is written, and until it is renamed.
  std::string TemporaryPath(size_t number) const;
  std::string FinalPath(size_t number) const;
};

/// New tablets in files that are synced, and what the catalog has to know of them.
struct NewTablets {
  uint64_t rows_added = 0;  ///< without those of a tablet that is written anew
  std::vector<TabletRecord> records;
  // By column.
  std::vector<uint64_t> nulls, bytes;
  std::vector<int128_t> min, max;  ///< min > max: there is no value
  std::vector<DistinctCount> distinct;
};

class TabletCutter {
 public:
  /// `tablet_rows`: 0: chosen by the number of rows. `cancel` may be nullptr.
  TabletCutter(TabletTarget target, TableSchema schema, uint32_t tablet_rows, const std::atomic<bool>* cancel);
  /// Removes the files, unless Release() was called. REQUIRES: no thread is in RunTask().
  virtual ~TabletCutter();
  TabletCutter(const TabletCutter&) = delete;
  TabletCutter& operator=(const TabletCutter&) = delete;

  const TableSchema& schema() const { return schema_; }
  const TabletTarget& target() const { return target_; }
  /// How many rows will be added, as far as is known before the first Add(): it decides the size of the tablets.
  void ExpectRows(uint64_t rows) { expected_rows_ = rows; }
  uint32_t tablet_rows() const { return tablet_rows_; }
  /// Columns of the schema's storage classes, checked by the caller.
  virtual Status Add(RowBatch batch);
  /// No more rows come: the last tablet is cut too, for RunTask(). Finish() does it where the caller did not.
  virtual void EndOfRows();
  uint64_t rows_added() const { return made_.rows_added; }
  /// Encodes a column of a full tablet, or sorts or merges rows; false if there is nothing to do at the moment. Waits
  /// while another thread merges rows.
  bool RunTask();
  /// Tasks that wait for a thread, or will when what runs now is done.
  size_t waiting_tasks() const;
  /// Full tablets that are not written yet, and runs of rows that are not sorted yet.
  size_t unfinished_tablets() const;
  /// Makes and syncs the tablets that are left. Call EndOfRows() only where more threads shall help.
  /// `unsynced` (nullptr: none): if a small file is all there is, the disk is not waited for, and it becomes its path.
  Status Finish(std::vector<std::string>* unsynced);
  /// After Finish().
  const NewTablets& made() const { return made_; }
  /// From here on somebody else says which files are in use.
  void Release() { released_ = true; }

 protected:
  /// Rows that are not counted as added: those of a tablet that is written anew.
  void AddAgain(RowBatch batch);
  /// How many have come, with these.
  uint64_t rows_taken() const { return rows_again_ + made_.rows_added; }
  bool IsDistributed() const { return !schema_.distribute_by.empty(); }
  /// Of a distributed table: whether rows of the bucket were added.
  bool HasRows(uint8_t bucket) const { return has_rows_[bucket]; }
  void Fail(const Status& status);
  Status status() const;
  size_t tablets_cut() const { return tablets_cut_; }
  /// What the destructor does, earlier: a subclass may hold a lock that must outlive the files.
  void Discard();

  TabletTarget target_;
  uint32_t tablet_rows_;  ///< 0 while it is not chosen

 private:
  using Piece = ClusteredRows::Piece;
  struct TabletJob {
    size_t number = 0;  ///< among the new tablets
    uint32_t rows = 0;
    uint8_t bucket = 0;  ///< of a distributed table
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

  void AddPiece(RowBatch batch);
  void AddBuckets(RowBatch* batch);
  void AddToRun(const RowBatch& batch);
  void SortLater(std::shared_ptr<RowBatch> run);
  void MergeTablet();
  void CutTablets(bool all);
  Status RunTask(const Task& task);
  Status WriteTablet(TabletJob* job);

  const TableSchema schema_;
  const std::atomic<bool>* const cancel_;
  bool released_ = false;

  // Of the thread that adds rows.
  bool ended_ = false;
  uint64_t expected_rows_ = 0;
  uint64_t rows_again_ = 0;
  std::array<bool, kBuckets> has_rows_{};   ///< by bucket
  std::optional<ClusteredRows> clustered_;  ///< from the last row on, of the thread that merges
  PendingRows pending_;
  size_t tablets_cut_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable tablet_done_, merged_;
  std::deque<Task> tasks_;
  size_t unfinished_ = 0;  ///< tablets, runs, and a merge that goes on
  size_t unsorted_ = 0;    ///< runs
  Merge merge_ = Merge::kNone;
  Status status_;
  NewTablets made_;

  FileSyncer syncer_;
};

}  // namespace tessera
