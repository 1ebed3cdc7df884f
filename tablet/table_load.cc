// Cutting rows into tablets, encoding them in parallel, committing.
#include "tablet/table_load.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tablet/chunk_decoder.h"
#include "tablet/packed_chunk.h"
#include "tablet/primary_key.h"
#include "tablet/schema_check.h"
#include "tablet/utf8.h"

namespace tessera {
namespace {

constexpr uint32_t kLeastTabletRows = 1u << 16;
constexpr uint64_t kWantedTablets = 32;
/// Decoded bytes that are buffered while the number of rows, and so the size of the tablets, is unknown.
constexpr uint64_t kBufferedBytes = uint64_t{256} << 20;

/// Smaller batches are collected into one of this many rows: kept one by one they would take kilobytes a row.
constexpr size_t kSmallBatchRows = 4096;

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

Result<std::unique_ptr<TableLoad>> TableLoad::Begin(std::shared_ptr<DatabaseDirectory> directory,
                                                    const std::string& table, const std::atomic<bool>* cancel) {
  TESSERA_ASSIGN(DatabaseDirectory::Write write, directory->BeginWrite());
  std::shared_ptr<const TableRecord> record = write.contents.Find(table);
  if (record == nullptr) return SqlError("table \"" + table + "\" does not exist");
  return std::unique_ptr<TableLoad>(new TableLoad(std::move(directory), std::move(write), std::move(record), cancel));
}

Result<std::unique_ptr<TableLoad>> TableLoad::BeginNew(std::shared_ptr<DatabaseDirectory> directory,
                                                       const TableSchema& schema, bool replace,
                                                       const std::atomic<bool>* cancel) {
  TESSERA_ASSIGN(DatabaseDirectory::Write write, directory->BeginWrite());
  std::shared_ptr<const TableRecord> replaced = write.contents.Find(schema.name);
  if (replaced != nullptr && !replace) return SqlError("table \"" + schema.name + "\" already exists");
  auto record = std::make_shared<const TableRecord>(NewTable(write.contents, schema));
  std::unique_ptr<TableLoad> load(new TableLoad(std::move(directory), std::move(write), std::move(record), cancel));
  load->is_new_ = true;
  load->replaced_ = std::move(replaced);
  return load;
}

TableLoad::TableLoad(std::shared_ptr<DatabaseDirectory> directory, DatabaseDirectory::Write write,
                     std::shared_ptr<const TableRecord> table, const std::atomic<bool>* cancel)
    : directory_(std::move(directory)),
      write_(std::move(write)),
      table_(std::move(table)),
      cancel_(cancel),
      tablet_rows_(table_->schema.tablet_rows != 0 ? table_->schema.tablet_rows : table_->tablet_rows),
      kept_tablets_(table_->tablets.size()),
      syncer_(directory_->durable(), cancel_) {
  const size_t columns = table_->schema.columns.size();
  nulls_.resize(columns);
  bytes_.resize(columns);
  min_.assign(columns, kInt128Max);
  max_.assign(columns, kInt128Min);
  distinct_.resize(columns);
  if (!table_->schema.cluster_by.empty()) clustered_.emplace(table_->schema.cluster_by);
}

TableLoad::~TableLoad() {
  syncer_.Abandon();
  if (committing_) return;
  // No catalog ever named these files, so no reader has them.
  try {
    for (size_t number = 0; number < tablets_cut_; ++number) {
      unlink(TemporaryPath(number).c_str());
      unlink(FinalPath(number).c_str());
    }
  } catch (...) {  // no memory for a path: the next writer removes what no catalog names
  }
}

std::string TableLoad::TemporaryPath(size_t number) const {
  return directory_->FilePath(kTemporaryPrefix +
                              std::to_string(write_->contents.next_tablet_id + static_cast<int64_t>(number)));
}

std::string TableLoad::FinalPath(size_t number) const {
  return directory_->FilePath(TabletFileName(write_->contents.next_tablet_id + static_cast<int64_t>(number)));
}

void TableLoad::Fail(const Status& status) {
  std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = status;
  tasks_.clear();
  merge_ = Merge::kNone;
  tablet_done_.notify_all();
  merged_.notify_all();
}

Status TableLoad::status() const {
  std::lock_guard lock(mutex_);
  if (status_.ok() && cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) {
    return {ErrorCode::kCancelled, "cancelled"};
  }
  return status_;
}

size_t TableLoad::waiting_tasks() const {
  std::lock_guard lock(mutex_);
  return tasks_.size() + (merge_ == Merge::kNone ? 0 : 1);
}

size_t TableLoad::unfinished_tablets() const {
  std::lock_guard lock(mutex_);
  return unfinished_;
}

Status TableLoad::TakeLastTablet() {
  const std::vector<TabletRecord>& tablets = table_->tablets;
  if (tablets.empty() || tablets.back().rows >= tablet_rows_) return {};
  // A table of one short tablet is written anew as a whole, so its size is chosen again: a first INSERT of a few rows
  // must not decide how a billion that follow are stored.
  if (tablets.size() == 1 && table_->schema.tablet_rows == 0) tablet_rows_ = 0;
  auto types = std::make_shared<TabletFile::Types>();
  for (const ColumnSchema& column : table_->schema.columns) types->push_back(column.type);
  const TabletFile last(directory_->FilePath(TabletFileName(tablets.back().id)),
                        directory_->IdentityOf(write_->contents, *table_, tablets.back()), types);
  RowBatch batch;
  batch.rows = last.rows();
  for (size_t c = 0; c < types->size(); ++c) {
    TESSERA_ASSIGN(const ChunkPointer chunk, last.Chunk(static_cast<int>(c)));
    ColumnVector column;
    column.type = (*types)[c];
    DecodeChunk(*chunk, 0, chunk->rows, &column);
    batch.columns.push_back(std::move(column));
    replaced_nulls_.push_back(chunk->null_count);
    replaced_bytes_.push_back(chunk->encoded_bytes);
  }
  TESSERA_TRY(last.Intact());
  replaced_rows_ = batch.rows;
  --kept_tablets_;
  AddPiece(std::move(batch));
  return {};
}

void TableLoad::AddPiece(RowBatch batch) {
  if (clustered_) return AddToRun(batch);
  if (batch.rows < kSmallBatchRows) {
    if (small_.columns.empty()) {
      small_ = std::move(batch);
    } else {
      for (size_t c = 0; c < small_.columns.size(); ++c) small_.columns[c].AppendAll(batch.columns[c]);
      small_.rows += batch.rows;
    }
    if (small_.rows >= kSmallBatchRows) FlushSmallBatches();
    return;
  }
  FlushSmallBatches();
  const size_t rows = batch.rows;
  pending_bytes_ += BytesOf(batch);
  Pend({std::make_shared<const RowBatch>(std::move(batch)), 0, rows});
}

void TableLoad::Pend(Piece piece) {
  pending_rows_ += piece.rows;
  pending_.push_back(std::move(piece));
}

void TableLoad::AddToRun(const RowBatch& batch) {
  if (std::shared_ptr<RowBatch> full = clustered_->Add(batch)) SortLater(std::move(full));
}

void TableLoad::SortLater(std::shared_ptr<RowBatch> run) {
  std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  ++unfinished_;
  ++unsorted_;
  tasks_.push_back({nullptr, 0, std::move(run)});
}

void TableLoad::FlushSmallBatches() {
  if (small_.rows == 0) return;
  const size_t rows = small_.rows;
  pending_bytes_ += BytesOf(small_);
  Pend({std::make_shared<const RowBatch>(std::exchange(small_, {})), 0, rows});
}

Status TableLoad::Add(RowBatch batch) {
  TESSERA_TRY(status());
  if (batch.rows == 0) return {};
  if (!started_) {
    started_ = true;
    TESSERA_TRY(TakeLastTablet());
  }
  rows_added_ += batch.rows;
  AddPiece(std::move(batch));
  if (clustered_) return {};
  if (tablet_rows_ == 0) {
    if (expected_rows_ != 0) {
      tablet_rows_ = ChooseTabletRows(replaced_rows_ + std::max(expected_rows_, rows_added_));
    } else if (pending_bytes_ >= kBufferedBytes || pending_rows_ >= kWantedTablets * kGreatestTabletRows) {
      tablet_rows_ = ChooseTabletRows(pending_rows_);
    }
  }
  if (tablet_rows_ != 0) CutTablets(false);
  return {};
}

void TableLoad::CutTablets(bool all) {
  while (pending_rows_ >= tablet_rows_ || (all && pending_rows_ > 0)) {
    auto job = std::make_shared<TabletJob>();
    job->number = tablets_cut_++;
    job->rows = static_cast<uint32_t>(std::min<uint64_t>(pending_rows_, tablet_rows_));
    uint64_t wanted = job->rows;
    while (wanted > 0) {
      Piece& front = pending_.front();
      const size_t rows = std::min<size_t>(front.rows, wanted);
      job->pieces.push_back({front.batch, front.begin, rows});
      front.begin += rows;
      front.rows -= rows;
      wanted -= rows;
      if (front.rows == 0) pending_.pop_front();
    }
    pending_rows_ -= job->rows;
    const size_t columns = table_->schema.columns.size();
    job->chunks.resize(columns);
    job->columns_left = columns;
    std::lock_guard lock(mutex_);
    if (!status_.ok()) return;
    ++unfinished_;
    for (size_t c = 0; c < columns; ++c) tasks_.push_back({job, c});
  }
}

void TableLoad::EndOfRows() {
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
  FlushSmallBatches();
  if (tablet_rows_ == 0) tablet_rows_ = ChooseTabletRows(pending_rows_);
  CutTablets(true);
}

void TableLoad::MergeTablet() {
  const std::vector<Piece> pieces = clustered_->Take(tablet_rows_);
  for (const Piece& piece : pieces) Pend(piece);
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

bool TableLoad::RunTask() {
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

Status TableLoad::RunTask(const Task& task) {
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
  chunk = EncodeChunk(table_->schema.columns[task.column].type, pieces);
  PackChunk(directory_->compression(), &chunk);
  // The last to finish sees the chunks of the others: acquire and release.
  if (job->columns_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return {};
  job->pieces.clear();
  TESSERA_TRY(WriteTablet(job));
  std::lock_guard lock(mutex_);
  --unfinished_;
  tablet_done_.notify_all();
  return {};
}

Status TableLoad::WriteTablet(TabletJob* job) {
  TabletIdentity identity;
  identity.database = write_->contents.database;
  identity.table_id = table_->id;
  identity.tablet_id = write_->contents.next_tablet_id + static_cast<int64_t>(job->number);
  identity.rows = job->rows;
  for (size_t c = 0; c < job->chunks.size(); ++c) {
    const ColumnSchema& column = table_->schema.columns[c];
    const ChunkDescriptor& d = job->chunks[c].descriptor;
    if (column.type.storage() == StorageClass::kText || d.min > d.max) continue;
    // Whoever reads the file would refuse it.
    if (const StoredRange range = StoredRangeOf(column.type); d.min < range.least || d.max > range.greatest) {
      return {ErrorCode::kInternal,
              "a value of column " + QuoteForMessage(column.name) + " is outside " + column.type.ToString()};
    }
  }
  const std::vector<uint8_t> header = BuildTabletHeader(&job->chunks, &identity);
  TESSERA_ASSIGN(const int fd, WriteTabletFile(TemporaryPath(job->number), header, job->chunks));
  FileDescriptor file(fd);
  {
    std::lock_guard lock(mutex_);
    if (records_.size() <= job->number) records_.resize(job->number + 1);
    records_[job->number] = {identity.tablet_id, identity.rows, identity.file_bytes, identity.header_checksum};
    for (size_t c = 0; c < job->chunks.size(); ++c) {
      const ChunkDescriptor& d = job->chunks[c].descriptor;
      nulls_[c] += d.null_count;
      bytes_[c] += d.bytes;
      if (d.min <= d.max) {
        min_[c] = std::min<int128_t>(min_[c], d.min);
        max_[c] = std::max<int128_t>(max_[c], d.max);
      }
      distinct_[c].Merge(job->chunks[c].distinct);
    }
  }
  syncer_.Add(std::move(file), TemporaryPath(job->number), FinalPath(job->number));
  return {};
}

Result<TableRecord> TableLoad::MakeRecord(std::vector<std::string>* sketches) {
  TableRecord after = *table_;
  after.tablet_rows = tablet_rows_;
  after.tablets.resize(kept_tablets_);
  after.tablets.insert(after.tablets.end(), records_.begin(), records_.end());
  const uint64_t rows = after.rows();
  std::vector<std::string> old_sketches(after.statistics.size());
  if (!is_new_) {
    TESSERA_ASSIGN(old_sketches, directory_->Sketches(*table_));
  }
  for (size_t c = 0; c < after.statistics.size(); ++c) {
    ColumnStatistics& s = after.statistics[c];
    s.null_count += nulls_[c];
    s.encoded_bytes += bytes_[c];
    if (!replaced_nulls_.empty()) {
      s.null_count -= replaced_nulls_[c];
      s.encoded_bytes -= replaced_bytes_[c];
    }
    const bool text = after.schema.columns[c].type.storage() == StorageClass::kText;
    if (!text && min_[c] <= max_[c]) {
      s.min = s.has_range ? std::min(s.min, min_[c]) : min_[c];
      s.max = s.has_range ? std::max(s.max, max_[c]) : max_[c];
      s.has_range = true;
    }
    DistinctCount count;
    if (!old_sketches[c].empty() && !count.Deserialize(old_sketches[c])) {
      return Status(ErrorCode::kCorrupt, "the catalog of database \"" + directory_->name() +
                                             "\" is corrupt: a sketch of table \"" + after.schema.name + "\"");
    }
    count.Merge(distinct_[c]);
    sketches->push_back(count.Serialize());
    // The range and the number of rows may prove a smaller count than the estimate.
    uint64_t greatest = rows - s.null_count;
    const uint128_t span = static_cast<uint128_t>(s.max) - static_cast<uint128_t>(s.min);
    if (s.has_range && span < uint128_t{INT64_MAX}) greatest = std::min(greatest, static_cast<uint64_t>(span) + 1);
    s.distinct = std::min(count.Estimate(), greatest);
    if (after.schema.primary_key == std::vector<int>{static_cast<int>(c)}) s.distinct = rows;
  }
  return after;
}

Status TableLoad::CheckKey(const TableRecord& after) const {
  if (after.schema.primary_key.empty() && after.schema.unique_keys.empty()) return {};
  auto types = std::make_shared<TabletFile::Types>();
  for (const ColumnSchema& column : after.schema.columns) types->push_back(column.type);
  TabletFiles old_tablets, new_tablets;
  for (size_t t = 0; t < after.tablets.size(); ++t) {
    (t < kept_tablets_ ? old_tablets : new_tablets)
        .push_back(std::make_shared<const TabletFile>(directory_->FilePath(TabletFileName(after.tablets[t].id)),
                                                      directory_->IdentityOf(write_->contents, after, after.tablets[t]),
                                                      types));
  }
  return CheckKeys(after.schema, old_tablets, new_tablets, cancel_);
}

Status TableLoad::Commit() {
  TESSERA_TRY(status());
  if (rows_added_ == 0) {
    const Status status =
        is_new_ ? directory_->InsertTable(*write_, *table_, replaced_.get(), {}, write_->contents.next_tablet_id)
                : Status();
    write_->lock = WriterLock();
    return status;
  }
  EndOfRows();
  for (;;) {
    if (RunTask()) continue;
    std::unique_lock lock(mutex_);
    if (unfinished_ == 0 || !status_.ok()) break;
    // Other threads run the last tasks. They add no others, so this only waits for their end.
    tablet_done_.wait(lock, [&] { return unfinished_ == 0 || !status_.ok(); });
  }
  TESSERA_TRY(status());
  TESSERA_TRY(syncer_.Finish());
  std::vector<std::string> sketches;
  TESSERA_ASSIGN(TableRecord after, MakeRecord(&sketches));
  TESSERA_TRY(CheckKey(after));
  TESSERA_TRY(directory_->SyncDirectory());
  TESSERA_TRY(status());
  const int64_t next_tablet_id = write_->contents.next_tablet_id + static_cast<int64_t>(tablets_cut_);
  committing_ = true;
  const Status committed =
      is_new_ ? directory_->InsertTable(*write_, std::move(after), replaced_.get(), sketches, next_tablet_id)
              : directory_->UpdateTable(*write_, *table_, std::move(after), sketches, next_tablet_id);
  write_->lock = WriterLock();
  return committed;
}

}  // namespace tessera
