#include "tablet/load/column_update.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/packed_chunk.h"
#include "tablet/files/file_syncer.h"
#include "tablet/files/io_error.h"
#include "tablet/files/regular_file.h"
#include "tablet/files/tablet_file.h"

namespace tessera {
namespace {

constexpr int kGreatestThreads = 8;
/// So few rows of a larger table are written as rows, which are a record of the log: it waits for the disk once, a column's file and
/// the catalog six times.
constexpr uint64_t kRowsOfLog = 64;
constexpr int64_t kRowMask = (int64_t{1} << kRowNumberBits) - 1;

/// The layout of a tablet without these columns, which get other places.
TabletLayout WithoutColumns(const TabletRecord& tablet, size_t table_columns, std::span<const int> columns) {
  TabletLayout layout = LayoutOf(tablet, table_columns);
  const auto moved = [&](int32_t column) { return std::ranges::count(columns, column) > 0; };
  for (ColumnFile& file : layout.files) std::ranges::replace_if(file.columns, moved, -1);
  DropUnread(&layout);
  std::erase_if(layout.constants, [&](const ConstantColumn& constant) { return moved(constant.column); });
  return layout;
}

}  // namespace

ColumnUpdate::ColumnUpdate(std::shared_ptr<const TableInfo> table, std::vector<int> columns)
    : table_(std::move(table)),
      columns_(std::move(columns)),
      places_(table_->tablets.size()),
      distinct_(columns_.size()) {}

Status ColumnUpdate::Add(RowBatch values, std::span<const int64_t> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto tablet = static_cast<size_t>(rows[i] >> kRowNumberBits);
    const auto row = static_cast<uint32_t>(rows[i] & kRowMask);
    if (rows[i] < 0 || tablet >= places_.size() || row >= table_->tablets[tablet]->rows())
      return {ErrorCode::kInternal, "row " + std::to_string(rows[i]) + " is updated, but the table has none"};
    places_[tablet].push_back({row, static_cast<uint32_t>(batches_.size()), static_cast<uint32_t>(i)});
  }
  rows_ += rows.size();
  batches_.push_back(std::move(values));
  return {};
}

Result<bool> ColumnUpdate::WritesColumns(uint64_t short_bytes) const {
  if (rows_ <= kRowsOfLog && rows_ * 4 <= table_->stored_rows) return false;
  uint64_t of_columns = 0, of_tablets = 0, of_table = 0;
  for (const ColumnStatistics& s : table_->statistics) of_table += s.encoded_bytes;
  for (size_t t = 0; t < places_.size(); ++t) {
    if (places_[t].empty()) continue;
    of_tablets += table_->tablets[t]->weight();
    for (const int c : columns_) {
      TESSERA_ASSIGN(const ChunkPointer chunk, table_->tablets[t]->Describe(c));
      of_columns += chunk->encoded_bytes;
    }
  }
  // Columns are read and written; for rows all columns of their tablets are read.
  const double a_row = static_cast<double>(of_table) / static_cast<double>(std::max<uint64_t>(table_->stored_rows, 1));
  const double of_rows = a_row * static_cast<double>(rows_) + 2 * static_cast<double>(short_bytes);
  return 2 * static_cast<double>(of_columns) <= static_cast<double>(of_tablets) + of_rows;
}

std::vector<uint64_t> ColumnUpdate::Touched(size_t tablet) const {
  std::vector<uint64_t> words((size_t{table_->tablets[tablet]->rows()} + 63) / 64);
  for (const Place& place : places_[tablet]) words[place.row / 64] |= uint64_t{1} << place.row % 64;
  return words;
}

Result<RowBatch> ColumnUpdate::RowsOf(size_t tablet, std::vector<int64_t>* numbers) const {
  std::vector<Place> places = places_[tablet];
  std::ranges::sort(places, {}, &Place::row);
  RowBatch out;
  out.rows = places.size();
  for (size_t c = 0; c < table_->schema.columns.size(); ++c) {
    ColumnVector& to = out.columns.emplace_back();
    to.type = table_->schema.columns[c].type;
    const auto set = std::ranges::find(columns_, static_cast<int>(c));
    if (set != columns_.end()) {
      const auto of_batch = static_cast<size_t>(set - columns_.begin());
      for (const Place& p : places) to.AppendFrom(batches_[p.batch].columns[of_batch], p.at);
      continue;
    }
    TESSERA_ASSIGN(const ChunkPointer chunk, table_->tablets[tablet]->Chunk(static_cast<int>(c)));
    for (const Place& p : places) DecodeChunk(*chunk, p.row, 1, &to);
  }
  for (const Place& p : places) numbers->push_back((static_cast<int64_t>(tablet) << kRowNumberBits) + p.row);
  return out;
}

Result<ColumnVector> ColumnUpdate::Changed(size_t tablet, size_t column) const {
  const int number = columns_[column];
  TESSERA_ASSIGN(const ChunkPointer chunk, table_->tablets[tablet]->Chunk(number));
  ColumnVector out;
  out.type = table_->schema.columns[static_cast<size_t>(number)].type;
  const auto from = [&](const Place& p) -> const ColumnVector& { return batches_[p.batch].columns[column]; };
  if (out.type.storage() == StorageClass::kText) {
    std::vector<Place> places = places_[tablet];
    std::ranges::sort(places, {}, &Place::row);
    uint32_t row = 0;
    for (const Place& p : places) {
      if (p.row > row) DecodeChunk(*chunk, row, p.row - row, &out);
      out.AppendFrom(from(p), p.at);
      row = p.row + 1;
    }
    if (row < chunk->rows) DecodeChunk(*chunk, row, chunk->rows - row, &out);
    return out;
  }
  DecodeChunk(*chunk, 0, chunk->rows, &out);
  const bool wide = out.type.storage() == StorageClass::kWide;
  for (const Place& p : places_[tablet]) {
    const ColumnVector& values = from(p);
    const bool is_null = values.IsNull(p.at);
    if (is_null && out.null.empty()) out.null.resize(chunk->rows);
    if (!out.null.empty()) out.null[p.row] = is_null ? 1 : 0;
    if (wide) {
      out.wide[p.row] = values.wide[p.at];
    } else {
      out.fixed[p.row] = values.fixed[p.at];
    }
  }
  return out;
}

Status ColumnUpdate::Write(const TabletTarget& target, const std::atomic<bool>* cancel, TableRecord* record) {
  std::vector<size_t> touched;
  for (size_t t = 0; t < places_.size(); ++t) {
    if (!places_[t].empty()) touched.push_back(t);
  }
  for (const int c : columns_) {
    // What is left of the column is known.
    if (touched.size() == places_.size()) record->statistics[static_cast<size_t>(c)] = {};
  }
  paths_ = {target.TemporaryPath(0), target.FinalPath(0)};
  TESSERA_ASSIGN(const int fd, CreateTabletFile(paths_[0]));
  FileDescriptor file(fd);
  const auto threads =
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2u, unsigned{kGreatestThreads}));
  // (A column of a small tablet is encoded faster than threads start.)
  constexpr uint32_t kFewRows = 1 << 14;
  const bool is_large = touched.size() * columns_.size() > 1 && table_->tablets[touched[0]]->rows() >= kFewRows;
  ThreadPool pool(is_large ? threads : 1);
  const size_t together = static_cast<size_t>(threads) * 2;
  for (size_t first = 0; first < touched.size(); first += together) {
    const std::span<const size_t> some = std::span(touched).subspan(first, std::min(together, touched.size() - first));
    std::vector<std::vector<EncodedChunk>> chunks(some.size(), std::vector<EncodedChunk>(columns_.size()));
    TESSERA_TRY(ForEach(is_large ? &pool : nullptr, some.size() * columns_.size(), [&](size_t i) -> Status {
      if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return Cancelled();
      const size_t at = i / columns_.size(), column = i % columns_.size();
      TESSERA_ASSIGN(const ColumnVector values, Changed(some[at], column));
      const ColumnPiece piece{&values, 0, values.size()};
      EncodedChunk& chunk = chunks[at][column];
      chunk = EncodeChunk(values.type, {&piece, 1});
      PackChunk(target.compression, &chunk);
      return {};
    }));
    TESSERA_TRY(WriteTablets(some, target, fd, paths_[0], &chunks, record));
  }
  for (const auto& tablet : table_->tablets) TESSERA_TRY(tablet->Intact());
  FileSyncer syncer(target.durable, cancel);
  syncer.Add(std::move(file), paths_[0], paths_[1]);
  return syncer.Finish(nullptr);
}

Status ColumnUpdate::WriteTablets(std::span<const size_t> tablets, const TabletTarget& target, int fd,
                                  const std::string& path, std::vector<std::vector<EncodedChunk>>* chunks,
                                  TableRecord* record) {
  for (size_t i = 0; i < tablets.size(); ++i) {
    TabletRecord& tablet = record->tablets[tablets[i]];
    TESSERA_TRY(Count(tablets[i], (*chunks)[i], record));
    TabletIdentity identity;
    identity.database = target.database;
    identity.table_id = target.table_id;
    identity.tablet_id = target.first_tablet_id + made_;
    identity.rows = tablet.rows;
    const std::vector<uint8_t> header = BuildTabletHeader(&(*chunks)[i], &identity);
    if (lseek(fd, static_cast<off_t>(offset_), SEEK_SET) < 0) return IoError("cannot write", path, errno);
    TESSERA_TRY(WriteTablet(fd, path, header, (*chunks)[i]));
    TabletLayout layout = WithoutColumns(tablet, table_->schema.columns.size(), columns_);
    layout.files.push_back({identity.tablet_id, target.first_tablet_id, offset_, identity.file_bytes,
                            identity.header_checksum, std::vector<int32_t>(columns_.begin(), columns_.end())});
    tablet.id = identity.tablet_id;
    tablet.file_bytes = layout.bytes();
    tablet.header_checksum = 0;
    tablet.layout = std::make_shared<const TabletLayout>(std::move(layout));
    offset_ += (identity.file_bytes + kColumnFileAlignment - 1) / kColumnFileAlignment * kColumnFileAlignment;
    ++made_;
  }
  return {};
}

Status ColumnUpdate::Count(size_t tablet, const std::vector<EncodedChunk>& chunks, TableRecord* record) {
  const bool anew =
      static_cast<size_t>(std::ranges::count_if(places_, [](const auto& p) { return !p.empty(); })) == places_.size();
  for (size_t i = 0; i < columns_.size(); ++i) {
    ColumnStatistics& s = record->statistics[static_cast<size_t>(columns_[i])];
    const ChunkDescriptor& d = chunks[i].descriptor;
    TESSERA_TRY(CheckStored(table_->schema.columns[static_cast<size_t>(columns_[i])], d));
    if (!anew) {
      TESSERA_ASSIGN(const ChunkPointer before, table_->tablets[tablet]->Describe(columns_[i]));
      s.null_count -= before->null_count;
      s.encoded_bytes -= before->encoded_bytes;
    }
    s.null_count += d.null_count;
    s.encoded_bytes += d.bytes;
    distinct_[i].Merge(chunks[i].distinct);
    const bool text = table_->schema.columns[static_cast<size_t>(columns_[i])].type.storage() == StorageClass::kText;
    if (text || d.min > d.max) continue;
    s.min = s.has_range ? std::min<int128_t>(s.min, d.min) : int128_t{d.min};
    s.max = s.has_range ? std::max<int128_t>(s.max, d.max) : int128_t{d.max};
    s.has_range = true;
  }
  return {};
}

void ColumnUpdate::Discard() noexcept {
  for (const std::string& path : paths_) unlink(path.c_str());
}

}  // namespace tessera
