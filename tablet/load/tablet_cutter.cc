// Cutting rows into tablets, encoding them in parallel.
#include "tablet/load/tablet_cutter.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/exception_status.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/chunk/packed_chunk.h"
#include "tablet/chunk/stored_range.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

constexpr uint32_t kLeastTabletRows = 1u << 16;
constexpr uint64_t kWantedTablets = 32;
/// Decoded bytes that are buffered while the number of rows, and so the size of the tablets, is unknown.
constexpr uint64_t kBufferedBytes = uint64_t{256} << 20;

/// On disk a tablet that grows row by row is packed from this size on: its bytes go to the commit log each time.
constexpr uint64_t kUnpackedRows = 2048;

/// Pieces with fewer rows than this on average are copied together before they are encoded.
constexpr size_t kShortPiece = 64;

/// The rows of all pieces as one.
ColumnVector Together(const std::vector<ColumnPiece>& pieces) {
  ColumnVector all;
  all.type = pieces[0].column->type;
  for (const ColumnPiece& piece : pieces) {
    for (size_t row = piece.begin; row < piece.begin + piece.rows; ++row) all.AppendFrom(*piece.column, row);
  }
  return all;
}

}  // namespace

uint32_t ChooseTabletRows(uint64_t table_rows) {
  uint32_t rows = kGreatestTabletRows;
  while (rows > kLeastTabletRows && (table_rows + rows - 1) / rows < kWantedTablets) rows /= 2;
  return rows;
}

Status CheckStored(const ColumnSchema& column, const ChunkDescriptor& d) {
  if (column.type.storage() == StorageClass::kText || d.min > d.max) return {};
  const StoredRange range = StoredRangeOf(column.type);
  if (d.min >= range.least && d.max <= range.greatest) return {};
  return {ErrorCode::kInternal,
          "a value of column " + QuoteForMessage(column.name) + " is outside " + column.type.ToString()};
}

std::string TabletTarget::TemporaryPath(size_t number) const {
  const int64_t id = first_tablet_id + static_cast<int64_t>(number);
  return directory + "/" + kTemporaryPrefix + (load.empty() ? "" : load + "-") + std::to_string(id);
}

std::string TabletTarget::FinalPath(size_t number) const {
  return directory + "/" + TabletFileName(first_tablet_id + static_cast<int64_t>(number));
}

TabletCutter::TabletCutter(TabletTarget target, TableSchema schema, uint32_t tablet_rows,
                           const std::atomic<bool>* cancel)
    : target_(std::move(target)),
      tablet_rows_(tablet_rows),
      schema_(std::move(schema)),
      cancel_(cancel),
      syncer_(target_.durable, cancel_) {
  const size_t columns = schema_.columns.size();
  made_.nulls.resize(columns);
  made_.bytes.resize(columns);
  made_.min.assign(columns, kInt128Max);
  made_.max.assign(columns, kInt128Min);
  made_.distinct.resize(columns);
  std::vector<int> order = schema_.cluster_by;
  if (IsDistributed()) order.insert(order.begin(), static_cast<int>(columns));  // buckets are a column after the last
  if (!order.empty()) clustered_.emplace(order);
}

TabletCutter::~TabletCutter() { Discard(); }

void TabletCutter::Discard() {
  syncer_.Abandon();
  if (released_) return;
  released_ = true;
  // No catalog ever named these files, so no reader has them.
  try {
    for (size_t number = 0; number < tablets_cut_; ++number) {
      unlink(target_.TemporaryPath(number).c_str());
      if (target_.load.empty()) unlink(target_.FinalPath(number).c_str());
    }
  } catch (...) {  // no memory for a path: the next writer removes what no catalog names
  }
}

void TabletCutter::Fail(const Status& status) {
  std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = status;
  tasks_.clear();
  merge_ = Merge::kNone;
  tablet_done_.notify_all();
  merged_.notify_all();
}

Status TabletCutter::status() const {
  std::lock_guard lock(mutex_);
  if (status_.ok() && cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) {
    return {ErrorCode::kCancelled, "cancelled"};
  }
  return status_;
}

size_t TabletCutter::waiting_tasks() const {
  std::lock_guard lock(mutex_);
  return tasks_.size() + (merge_ == Merge::kNone ? 0 : 1);
}

size_t TabletCutter::unfinished_tablets() const {
  std::lock_guard lock(mutex_);
  return unfinished_;
}

void TabletCutter::AddPiece(RowBatch batch) {
  if (IsDistributed()) AddBuckets(&batch);
  if (clustered_) return AddToRun(batch);
  pending_.Add(std::move(batch));
}

void TabletCutter::AddBuckets(RowBatch* batch) {
  const std::vector<uint8_t> buckets = BucketsOf(*batch, schema_.distribute_by);
  ColumnVector column;
  column.type = SqlType::Of(TypeId::kInteger);
  column.fixed.assign(buckets.begin(), buckets.end());
  batch->columns.push_back(std::move(column));
  for (const uint8_t bucket : buckets) has_rows_[bucket] = true;
}

void TabletCutter::AddToRun(const RowBatch& batch) {
  if (std::shared_ptr<RowBatch> full = clustered_->Add(batch)) SortLater(std::move(full));
}

void TabletCutter::SortLater(std::shared_ptr<RowBatch> run) {
  std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  ++unfinished_;
  ++unsorted_;
  tasks_.push_back({nullptr, 0, std::move(run)});
}

void TabletCutter::AddAgain(RowBatch batch) {
  rows_again_ += batch.rows;
  AddPiece(std::move(batch));
}

Status TabletCutter::Add(RowBatch batch) {
  TESSERA_TRY(status());
  if (batch.rows == 0) return {};
  made_.rows_added += batch.rows;
  AddPiece(std::move(batch));
  if (clustered_) return {};
  if (tablet_rows_ == 0) {
    if (expected_rows_ != 0) {
      tablet_rows_ = ChooseTabletRows(rows_again_ + std::max(expected_rows_, rows_added()));
    } else if (pending_.bytes() >= kBufferedBytes || pending_.rows() >= kWantedTablets * kGreatestTabletRows) {
      tablet_rows_ = ChooseTabletRows(pending_.rows());
    }
  }
  if (tablet_rows_ != 0) CutTablets(false);
  return {};
}

void TabletCutter::CutTablets(bool all) {
  // A small tablet that is written anew for a few rows more will be so again: to pack it would be half of the work of such an
  // INSERT. (No task reads the goal yet.)
  const uint64_t unpacked = target_.durable ? kUnpackedRows : kLeastTabletRows;
  if (all && tablets_cut_ == 0 && rows_again_ > rows_added() && pending_.rows() < unpacked)
    target_.compression = CompressionGoal::kNone;
  while (pending_.rows() >= tablet_rows_ || (all && pending_.rows() > 0)) {
    auto job = std::make_shared<TabletJob>();
    job->number = tablets_cut_++;
    job->rows = static_cast<uint32_t>(std::min<uint64_t>(pending_.rows(), tablet_rows_));
    job->pieces = pending_.Take(job->rows);
    const size_t columns = schema_.columns.size();
    if (const Piece& first = job->pieces.front(); IsDistributed())
      job->bucket = static_cast<uint8_t>(first.batch->columns[columns].fixed[first.begin]);
    job->chunks.resize(columns);
    job->columns_left = columns;
    std::lock_guard lock(mutex_);
    if (!status_.ok()) return;
    ++unfinished_;
    for (size_t c = 0; c < columns; ++c) tasks_.push_back({job, c});
  }
}

void TabletCutter::EndOfRows() {
  if (clustered_) {
    if (ended_) return;
    ended_ = true;
    if (std::shared_ptr<RowBatch> last = clustered_->End()) SortLater(std::move(last));
    if (tablet_rows_ == 0) tablet_rows_ = ChooseTabletRows(clustered_->rows());
    std::lock_guard lock(mutex_);
    if (!status_.ok() || clustered_->rows() == 0) return;
    ++unfinished_;
    merge_ = unsorted_ == 0 ? Merge::kReady : Merge::kSorting;
    return;
  }
  pending_.Flush();
  if (tablet_rows_ == 0) tablet_rows_ = ChooseTabletRows(pending_.rows());
  CutTablets(true);
}

void TabletCutter::MergeTablet() {
  const std::vector<Piece> pieces = clustered_->Take(tablet_rows_, IsDistributed());
  for (const Piece& piece : pieces) pending_.Add(piece);
  CutTablets(true);
  std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  merge_ = pieces.empty() ? Merge::kNone : Merge::kReady;
  if (pieces.empty()) {
    --unfinished_;
    tablet_done_.notify_all();
  }
  merged_.notify_all();
}

bool TabletCutter::RunTask() {
  Task task;
  {
    std::unique_lock lock(mutex_);
    // (What others sort or merge makes tasks for this thread.)
    merged_.wait(lock, [&] { return !tasks_.empty() || merge_ == Merge::kNone || merge_ == Merge::kReady; });
    if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
    } else if (merge_ == Merge::kReady) {
      merge_ = Merge::kRunning;
    } else {
      return false;
    }
  }
  try {
    if (Status status = RunTask(task); !status.ok()) Fail(status);
  } catch (...) {  // other threads wait for the tablet
    Fail(StatusOfException());
  }
  return true;
}

Status TabletCutter::RunTask(const Task& task) {
  TabletJob* const job = task.job.get();
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return Cancelled();
  if (task.run != nullptr) {
    clustered_->Sort(task.run.get());
    std::lock_guard lock(mutex_);
    --unfinished_;
    --unsorted_;
    if (merge_ == Merge::kSorting && unsorted_ == 0) merge_ = Merge::kReady;
    tablet_done_.notify_all();
    merged_.notify_all();
    return {};
  }
  if (job == nullptr) {
    MergeTablet();
    return {};
  }
  std::vector<ColumnPiece> pieces;
  for (const Piece& piece : job->pieces) {
    pieces.push_back({&piece.batch->columns[task.column], piece.begin, piece.rows});
  }
  ColumnVector together;
  if (pieces.size() > 1 && job->rows / pieces.size() < kShortPiece) {
    together = Together(pieces);
    pieces = {{&together, 0, job->rows}};
  }
  EncodedChunk& chunk = job->chunks[task.column];
  chunk = EncodeChunk(schema_.columns[task.column].type, pieces);
  PackChunk(target_.compression, &chunk);
  // The last to finish sees the chunks of the others: acquire and release.
  if (job->columns_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return {};
  job->pieces.clear();
  TESSERA_TRY(WriteTablet(job));
  std::lock_guard lock(mutex_);
  --unfinished_;
  tablet_done_.notify_all();
  return {};
}

Status TabletCutter::WriteTablet(TabletJob* job) {
  TabletIdentity identity;
  identity.database = target_.database;
  identity.table_id = target_.table_id;
  identity.tablet_id = target_.first_tablet_id + static_cast<int64_t>(job->number);
  identity.rows = job->rows;
  for (size_t c = 0; c < job->chunks.size(); ++c)
    TESSERA_TRY(CheckStored(schema_.columns[c], job->chunks[c].descriptor));
  const std::vector<uint8_t> header = BuildTabletHeader(&job->chunks, &identity);
  const std::string path = target_.TemporaryPath(job->number);
  TESSERA_ASSIGN(const int fd, WriteTabletFile(path, header, job->chunks));
  FileDescriptor file(fd);
  {
    std::lock_guard lock(mutex_);
    if (made_.records.size() <= job->number) made_.records.resize(job->number + 1);
    made_.records[job->number] = {identity.tablet_id, identity.rows, identity.file_bytes, identity.header_checksum,
                                  job->bucket};
    for (size_t c = 0; c < job->chunks.size(); ++c) {
      const ChunkDescriptor& d = job->chunks[c].descriptor;
      made_.nulls[c] += d.null_count;
      made_.bytes[c] += d.bytes;
      if (d.min <= d.max) {
        made_.min[c] = std::min<int128_t>(made_.min[c], d.min);
        made_.max[c] = std::max<int128_t>(made_.max[c], d.max);
      }
      made_.distinct[c].Merge(job->chunks[c].distinct);
    }
  }
  syncer_.Add(std::move(file), path, target_.load.empty() ? target_.FinalPath(job->number) : std::string());
  return {};
}

Status TabletCutter::Finish(std::vector<std::string>* unsynced) {
  TESSERA_TRY(status());
  EndOfRows();
  for (;;) {
    if (RunTask()) continue;
    std::unique_lock lock(mutex_);
    if (unfinished_ == 0 || !status_.ok()) break;
    // Other threads run the last tasks. They add no others, so this only waits for their end.
    tablet_done_.wait(lock, [&] { return unfinished_ == 0 || !status_.ok(); });
  }
  TESSERA_TRY(status());
  return syncer_.Finish(unsynced);
}

}  // namespace tessera
