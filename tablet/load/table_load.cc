// From rows that are cut into tablets to the catalog's transaction.
#include "tablet/load/table_load.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/thread_pool.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/moved_rows.h"
#include "tablet/catalog/pack_marks.h"
#include "tablet/catalog/references.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/files/io_error.h"
#include "tablet/load/primary_key.h"

namespace tessera {
namespace {

/// A tablet with more times as many rows as come after it is not written anew. So a row is written anew some dozens of times
/// while INSERTs of one row fill a tablet, and no more than some six small tablets wait for that.
constexpr uint64_t kTimesAsMany = 8;
/// Numbers of deleted rows that several threads set bits for; a thread's share.
constexpr size_t kShared = size_t{1} << 18, kShare = size_t{1} << 15;

/// Which row of which tablet a number of NumberRows is.
struct RowPlace {
  static constexpr size_t kNone = SIZE_MAX;  ///< as `tablet`: the table has no such row
  size_t tablet;
  uint64_t row;
};
RowPlace PlaceOf(int64_t number, const TableRecord& table) {
  const auto tablet = static_cast<size_t>(number >> kRowNumberBits);
  const auto row = static_cast<uint64_t>(number & ((int64_t{1} << kRowNumberBits) - 1));
  if (number < 0 || tablet >= table.tablets.size() || row >= table.tablets[tablet].rows) return {RowPlace::kNone, 0};
  return {tablet, row};
}

}  // namespace

Result<std::unique_ptr<TableLoad>> TableLoad::Begin(std::shared_ptr<DatabaseDirectory> directory,
                                                    const std::string& table, const std::atomic<bool>* cancel) {
  TESSERA_ASSIGN(DatabaseDirectory::Write write, directory->BeginWrite());
  std::shared_ptr<const TableRecord> record = write.contents.Find(table);
  if (record == nullptr) return SqlError(ErrorKind::kUndefinedTable, "table \"" + table + "\" does not exist");
  return std::unique_ptr<TableLoad>(new TableLoad(std::move(directory), std::move(write), std::move(record), cancel));
}

Result<std::unique_ptr<TableLoad>> TableLoad::BeginNew(std::shared_ptr<DatabaseDirectory> directory,
                                                       const TableSchema& schema, bool replace,
                                                       const std::atomic<bool>* cancel) {
  TESSERA_ASSIGN(DatabaseDirectory::Write write, directory->BeginWrite());
  std::shared_ptr<const TableRecord> replaced = write.contents.Find(schema.name);
  if (replaced != nullptr && !replace)
    return SqlError(ErrorKind::kDuplicateTable, "table \"" + schema.name + "\" already exists");
  if (replaced != nullptr) TESSERA_TRY(CheckUnreferenced(write.contents, schema));
  return BeginInPlaceOf(std::move(directory), std::move(write), schema, std::move(replaced), cancel);
}

std::unique_ptr<TableLoad> TableLoad::BeginInPlaceOf(std::shared_ptr<DatabaseDirectory> directory,
                                                     DatabaseDirectory::Write write, const TableSchema& schema,
                                                     std::shared_ptr<const TableRecord> replaced,
                                                     const std::atomic<bool>* cancel) {
  auto record = std::make_shared<const TableRecord>(NewTable(write.contents, schema));
  std::unique_ptr<TableLoad> load(new TableLoad(std::move(directory), std::move(write), std::move(record), cancel));
  load->is_new_ = true;
  load->replaced_ = std::move(replaced);
  return load;
}

TabletTarget TableLoad::TargetOf(const DatabaseDirectory& directory, const DatabaseDirectory::Write& write,
                                 const TableRecord& table) {
  TabletTarget target;
  target.directory = directory.path();
  target.durable = directory.durable() && !directory.InTransaction();  // else its end waits for the disk
  target.compression = directory.compression();
  target.database = write.contents.database;
  target.table_id = table.id;
  target.first_tablet_id = write.contents.next_tablet_id;
  return target;
}

TableLoad::TableLoad(std::shared_ptr<DatabaseDirectory> directory, DatabaseDirectory::Write write,
                     std::shared_ptr<const TableRecord> table, const std::atomic<bool>* cancel)
    : TabletCutter(TargetOf(*directory, write, *table), table->schema,
                   table->schema.tablet_rows != 0 ? table->schema.tablet_rows : table->tablet_rows, cancel),
      directory_(std::move(directory)),
      write_(std::move(write)),
      table_(std::move(table)),
      cancel_(cancel),
      deletion_(table_->tablets.size()),
      keeps_tablets_(directory_->keeps_tablets()),
      kept_(table_->tablets.size(), true),
      rewritten_(table_->schema.columns.size()) {
  const std::vector<TabletRecord>& tablets = table_->tablets;
  last_is_short_ = !keeps_tablets_ && !IsDistributed() && !tablets.empty() && tablets.back().rows < tablet_rows_;
  tablet_rows_before_ = tablet_rows_;
  // A table of one short tablet that is written anew as a whole has its size chosen again: a first INSERT of a few rows must
  // not decide how a billion that follow are stored.
  if (last_is_short_ && tablets.size() == 1 && table_->schema.tablet_rows == 0) tablet_rows_ = 0;
}

TableLoad::~TableLoad() {
  if (threads_ != nullptr) directory_->GiveBack(std::move(threads_));
  Discard();
  if (committing_) return;
  if (update_ != nullptr) update_->Discard();
  // No catalog ever named these files, so no reader has them.
  try {
    for (const Adopted& adopted : adopted_.parts) {
      for (size_t number = 0; number < adopted.tablets.records.size(); ++number) {
        unlink(adopted.target.TemporaryPath(number).c_str());
        unlink(adopted.target.FinalPath(number).c_str());
      }
    }
  } catch (...) {  // no memory for a path: the next writer removes what no catalog names
  }
}

uint32_t TableLoad::SettleTabletRows(uint64_t rows) {
  if (tablet_rows_ == 0) tablet_rows_ = ChooseTabletRows(short_rows() + rows);
  return tablet_rows_;
}

size_t TableLoad::FirstToTake(uint64_t rows) const {
  const std::vector<TabletRecord>& tablets = table_->tablets;
  size_t first = tablets.size();
  if (!last_is_short_) return first;
  if (takes_last_) return first - 1;
  for (uint64_t together = rows; first > 0; --first) {
    const uint32_t of_tablet = tablets[first - 1].rows;
    if (of_tablet >= tablet_rows_before_ || of_tablet > kTimesAsMany * together) break;
    together += of_tablet;
  }
  return first;
}

Status TableLoad::TakeLast(uint64_t rows) {
  const size_t first = FirstToTake(rows);
  if (first > 0 && tablet_rows_ == 0) tablet_rows_ = tablet_rows_before_;
  if (first == 0 && last_is_short_ && !deletion_.any && !takes_last_ && table_->schema.tablet_rows == 0)
    tablet_rows_ = 0;
  for (size_t t = first; t < table_->tablets.size(); ++t) TESSERA_TRY(TakeBack(t));
  return {};
}

uint64_t TableLoad::rows_loaded() const {
  uint64_t rows = rows_added();
  for (const Adopted& adopted : adopted_.parts) rows += adopted.tablets.rows_added;
  return rows;
}

void TableLoad::Adopt(const std::string& load, NewTablets tablets) {
  TabletTarget target = this->target();
  target.load = load;
  target.first_tablet_id += static_cast<int64_t>(tablets_cut() + adopted_.tablets);
  adopted_.tablets += tablets.records.size();
  adopted_.parts.push_back({std::move(target), std::move(tablets)});
}

/// Of the buckets that have got rows, so that none has two short tablets.
Status TableLoad::TakeShortTablets() {
  if (keeps_tablets_) return {};
  const std::vector<TabletRecord>& tablets = table_->tablets;
  // (A small table is written anew as a whole, as in the constructor. Otherwise the other buckets' tablets stay as they
  // are.)
  const bool anew = table_->schema.tablet_rows == 0 && table_->rows() < tablet_rows_;
  for (size_t t = 0; t < tablets.size(); ++t) {
    if (anew || (tablets[t].rows < tablet_rows_ && HasRows(tablets[t].bucket))) TESSERA_TRY(TakeBack(t));
  }
  if (anew) tablet_rows_ = 0;
  return {};
}

std::shared_ptr<const Tablet> TableLoad::FileOf(const TableRecord& table, const TabletRecord& tablet) const {
  const int columns = static_cast<int>(table.schema.columns.size());
  const std::shared_ptr<const Tablet> file = directory_->OpenTablet(write_->contents, table, tablet);
  if (tablet.live == nullptr) return file;
  return std::make_shared<const LiveTablet>(file, columns, tablet.live, 0);
}

std::shared_ptr<const LiveRows> TableLoad::LiveOf(size_t tablet) const {
  const TabletRecord& record = table_->tablets[tablet];
  if (deletion_.bits[tablet].empty()) return record.live;
  if (!deletion_.marks.empty()) return deletion_.marks[tablet];
  return std::make_shared<const LiveRows>(record.rows, deletion_.bits[tablet]);
}

Status TableLoad::Forget(size_t tablet, const Tablet& file) {
  for (size_t c = 0; c < table_->schema.columns.size(); ++c) {
    TESSERA_ASSIGN(const ChunkPointer chunk, file.Describe(static_cast<int>(c)));
    rewritten_.nulls[c] += chunk->null_count;
    rewritten_.bytes[c] += chunk->encoded_bytes;
  }
  kept_[tablet] = false;
  return file.Intact();
}

Result<RowBatch> TableLoad::LiveRowsIn(size_t tablet, const Tablet& file) const {
  const std::shared_ptr<const LiveRows> live = LiveOf(tablet);
  RowBatch batch;
  batch.rows = file.rows() - (live != nullptr ? live->deleted() : 0);
  for (size_t c = 0; c < table_->schema.columns.size(); ++c) {
    TESSERA_ASSIGN(const ChunkPointer chunk, file.Chunk(static_cast<int>(c)));
    ColumnVector column;
    column.type = table_->schema.columns[c].type;
    for (uint32_t row = 0; row < chunk->rows;) {
      uint32_t end = row;
      while (end < chunk->rows && (live == nullptr || live->IsLive(end))) ++end;
      if (end > row) DecodeChunk(*chunk, row, end - row, &column);
      row = end + 1;
    }
    batch.columns.push_back(std::move(column));
  }
  return batch;
}

/// Adds the live rows of a tablet, which does not stay.
Status TableLoad::TakeBack(size_t tablet) {
  const std::shared_ptr<const Tablet> file = FileOf(*table_, table_->tablets[tablet]);
  TESSERA_ASSIGN(RowBatch batch, LiveRowsIn(tablet, *file));
  TESSERA_TRY(Forget(tablet, *file));
  moved_.push_back({tablet, LiveOf(tablet), rows_taken()});
  if (batch.rows > 0) AddAgain(std::move(batch));
  return {};
}

Status TableLoad::DropEmptied() {
  for (size_t t = 0; t < deletion_.bits.size(); ++t) {
    const TabletRecord& record = table_->tablets[t];
    if (!kept_[t] || deletion_.bits[t].empty() || LiveOf(t)->deleted() < record.rows) continue;
    TESSERA_TRY(Forget(t, *FileOf(*table_, record)));
  }
  return {};
}

void TableLoad::BeginDeletion() {
  // (Rows are cut before it is known whether the table is written anew as a whole.)
  if (!std::exchange(deletion_.any, true) && tablet_rows_ == 0) tablet_rows_ = tablet_rows_before_;
}

Result<uint64_t> TableLoad::Delete(std::span<const int64_t> rows, std::vector<bool>* fresh) {
  BeginDeletion();
  if (fresh == nullptr && rows.size() >= kShared) return DeleteShared(rows);
  uint64_t deleted = 0, others = 0;
  if (fresh != nullptr) fresh->assign(rows.size(), false);
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowPlace place = PlaceOf(rows[i], *table_);
    if (place.tablet == RowPlace::kNone) {
      ++others;
      continue;
    }
    // (A GPU gives rows in any order: what depends on the one before would be guessed wrong for each.)
    uint64_t* words = deletion_.words[place.tablet];
    if (words == nullptr) words = deletion_.words[place.tablet] = WordsOf(place.tablet);
    const uint64_t bits = words[place.row / 64], bit = uint64_t{1} << place.row % 64;
    if (fresh != nullptr) (*fresh)[i] = (bits & bit) == 0;
    deleted += (bits & bit) == 0 ? 1 : 0;
    words[place.row / 64] = bits | bit;
  }
  deletion_.rows += deleted;
  if (others > 0) return Status(ErrorCode::kInternal, "rows are deleted that the table does not have");
  return deleted;
}

Result<uint64_t> TableLoad::DeleteShared(std::span<const int64_t> rows) {
  std::atomic<uint64_t> deleted{0};
  TESSERA_TRY(ForEach(Threads(), (rows.size() + kShare - 1) / kShare, [&](size_t share) -> Status {
    TESSERA_ASSIGN(const uint64_t fresh,
                   DeleteShare(rows.subspan(share * kShare, std::min(kShare, rows.size() - share * kShare))));
    deleted += fresh;
    return {};
  }));
  return deleted.load();
}

uint64_t* TableLoad::SharedWordsOf(size_t tablet) {
  const std::atomic_ref<uint64_t*> known(deletion_.words[tablet]);
  uint64_t* words = known.load(std::memory_order_acquire);
  if (words != nullptr) return words;
  const std::lock_guard lock(deletion_.mutex);
  BeginDeletion();
  words = known.load(std::memory_order_relaxed);
  if (words == nullptr) known.store(words = WordsOf(tablet), std::memory_order_release);
  return words;
}

Result<uint64_t> TableLoad::DeleteShare(std::span<const int64_t> rows) {
  uint64_t fresh = 0, lost = 0;
  // Rows often come in order: of one tablet, and bits of one word, which go into it together.
  int64_t tablet = -1, word = -1;
  uint64_t* words = nullptr;
  uint64_t rows_there = 0, bits = 0;
  const auto set_bits = [&] {
    if (bits == 0) return;
    constexpr int64_t kWords = (int64_t{1} << kRowNumberBits) / 64;
    const uint64_t before = std::atomic_ref<uint64_t>(words[word % kWords]).fetch_or(bits, std::memory_order_relaxed);
    fresh += static_cast<uint64_t>(std::popcount(bits & ~before));
    bits = 0;
  };
  for (const int64_t number : rows) {
    if (number >> kRowNumberBits != tablet) {
      set_bits();
      tablet = number >> kRowNumberBits;
      const RowPlace first = PlaceOf(tablet << kRowNumberBits, *table_);
      words = first.tablet != RowPlace::kNone ? SharedWordsOf(first.tablet) : nullptr;
      rows_there = words != nullptr ? table_->tablets[first.tablet].rows : 0;
    }
    const auto row = static_cast<uint64_t>(number & ((int64_t{1} << kRowNumberBits) - 1));
    if (row >= rows_there) {
      ++lost;
      continue;
    }
    if (number / 64 != word) {
      set_bits();
      word = number / 64;
    }
    bits |= uint64_t{1} << row % 64;
  }
  set_bits();
  deletion_.rows += fresh;
  if (lost > 0) return Status(ErrorCode::kInternal, "rows are deleted that the table does not have");
  return fresh;
}

Result<uint64_t> TableLoad::DeleteMarked(int64_t first, std::span<const uint64_t> bits) {
  BeginDeletion();
  constexpr size_t kWords = (size_t{1} << kRowNumberBits) / 64;
  const auto first_tablet = static_cast<size_t>(first >> kRowNumberBits);
  const size_t tablets = (bits.size() + kWords - 1) / kWords;
  std::atomic<uint64_t> deleted{0}, others{0};
  TESSERA_TRY(ForEach(tablets > 1 ? Threads() : nullptr, tablets, [&](size_t i) -> Status {
    const std::span<const uint64_t> from = bits.subspan(i * kWords, std::min(kWords, bits.size() - i * kWords));
    if (std::ranges::all_of(from, [](uint64_t w) { return w == 0; })) return {};
    const size_t tablet = first_tablet + i;
    const uint64_t rows = tablet < table_->tablets.size() ? table_->tablets[tablet].rows : 0;
    if (rows > 0 && deletion_.words[tablet] == nullptr) deletion_.words[tablet] = WordsOf(tablet);
    uint64_t* const to = rows > 0 ? deletion_.words[tablet] : nullptr;
    uint64_t fresh = 0, lost = 0;
    for (size_t w = 0; w < from.size(); ++w) {
      const uint64_t there = BitsOfRows(rows, w);
      lost += static_cast<uint64_t>(std::popcount(from[w] & ~there));
      if (there == 0) continue;
      const uint64_t set = from[w] & there;
      fresh += static_cast<uint64_t>(std::popcount(set & ~to[w]));
      to[w] |= set;
    }
    deleted += fresh;
    others += lost;
    return {};
  }));
  deletion_.rows += deleted;
  if (others > 0) return Status(ErrorCode::kInternal, "rows are deleted that the table does not have");
  return deleted.load();
}

ThreadPool* TableLoad::Threads() {
  if (threads_ == nullptr) threads_ = directory_->TakeThreads();
  return threads_.get();
}

Status TableLoad::MakeMarks() {
  std::vector<size_t> marked;
  for (size_t t = 0; t < deletion_.bits.size(); ++t) {
    if (!deletion_.bits[t].empty()) marked.push_back(t);
  }
  if (marked.empty()) return {};
  std::vector<std::shared_ptr<const LiveRows>> marks(deletion_.bits.size());
  const bool is_many = marked.size() * uint64_t{tablet_rows_before_} > kMarksOfOneThread;
  // The catalog asks for them one after the other, at the end of a transaction that may change them again until then.
  const bool packs = !directory_->HoldsChanges();
  TESSERA_TRY(ForEach(is_many ? Threads() : nullptr, marked.size(), [&](size_t i) -> Status {
    const size_t t = marked[i];
    auto live = std::make_shared<const LiveRows>(table_->tablets[t].rows, deletion_.bits[t]);
    if (packs) (void)live->packed();
    marks[t] = std::move(live);
    return {};
  }));
  deletion_.marks = std::move(marks);
  return {};
}

uint64_t* TableLoad::WordsOf(size_t tablet) {
  std::vector<uint64_t>* const words = &deletion_.bits[tablet];
  const TabletRecord& record = table_->tablets[tablet];
  if (words->empty() && record.live != nullptr) *words = record.live->words();
  words->resize((uint64_t{record.rows} + 63) / 64);
  return words->data();
}

Status TableLoad::Add(RowBatch batch) {
  if (!started_ && batch.rows > 0) {
    TESSERA_TRY(status());
    started_ = true;
    if (!deletion_.any) TESSERA_TRY(TakeLast(batch.rows));
  }
  return TabletCutter::Add(std::move(batch));
}

Status TableLoad::Update(std::span<const int> columns, RowBatch values, std::span<const int64_t> rows) {
  if (update_ == nullptr) {
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, directory_->Read());
    const std::shared_ptr<const TableInfo> table = now->Find(table_->schema.name);
    if (table == nullptr || table->id != table_->id) return {ErrorCode::kInternal, "a table changed under its lock"};
    update_ = std::make_unique<ColumnUpdate>(table, std::vector<int>(columns.begin(), columns.end()));
  }
  return update_->Add(std::move(values), rows);
}

Status TableLoad::SettleUpdate() {
  if (update_ == nullptr || update_->rows() == 0) return {};
  if (!keeps_tablets_) {
    TESSERA_ASSIGN(writes_columns_, update_->WritesColumns(last_is_short_ ? table_->tablets.back().file_bytes : 0));
  }
  if (writes_columns_) return {};
  return update_->ForRows([&](RowBatch rows, const std::vector<int64_t>& numbers) -> Status {
    TESSERA_TRY(Delete(numbers, nullptr).status());
    return Add(std::move(rows));
  });
}

Status TableLoad::CommitColumns() {
  TableRecord after = *table_;
  TESSERA_TRY(update_->Write(target(), cancel_, &after));
  TESSERA_ASSIGN(std::vector<std::string> sketches, directory_->Sketches(*table_));
  for (size_t i = 0; i < update_->columns().size(); ++i) {
    const auto c = static_cast<size_t>(update_->columns()[i]);
    const DistinctCount* const made = &update_->distinct()[i];
    TESSERA_ASSIGN(sketches[c], CountDistinct(update_->all() ? "" : sketches[c], {&made, 1}, c, &after));
  }
  TESSERA_TRY(status());
  NoteMovedColumns(after);
  committing_ = true;
  Release();
  const Status committed = directory_->UpdateTable(*write_, *table_, std::move(after), sketches,
                                                   write_->contents.next_tablet_id + update_->tablets_made(), nullptr);
  write_->lock = WriterLock();
  return committed;
}

void TableLoad::EndOfRows() {
  const bool takes_late = IsDistributed() || (last_is_short_ && deletion_.any);
  if (takes_late && rows_added() > 0 && !std::exchange(ended_, true)) {
    const Status taken = IsDistributed() ? TakeShortTablets() : TakeLast(rows_added());
    if (!taken.ok()) return Fail(taken);
  }
  TabletCutter::EndOfRows();
}

Result<std::string> TableLoad::CountDistinct(const std::string& before, std::span<const DistinctCount* const> made,
                                             size_t column, TableRecord* after) const {
  ColumnStatistics& s = after->statistics[column];
  const uint64_t rows = after->rows();
  DistinctCount count;
  if (!before.empty() && !count.Deserialize(before)) {
    return Status(ErrorCode::kCorrupt, "the catalog of database \"" + directory_->name() +
                                           "\" is corrupt: a sketch of table \"" + after->schema.name + "\"");
  }
  for (const DistinctCount* more : made) count.Merge(*more);
  // The range and the number of rows may prove a smaller count than the estimate.
  uint64_t greatest = rows - s.null_count;
  const uint128_t span = static_cast<uint128_t>(s.max) - static_cast<uint128_t>(s.min);
  if (s.has_range && span < uint128_t{INT64_MAX}) greatest = std::min(greatest, static_cast<uint64_t>(span) + 1);
  s.distinct = std::min(count.Estimate(), greatest);
  // (Rows that had other values may have been deleted or updated.)
  if (s.null_count == rows) s = {.null_count = rows, .encoded_bytes = s.encoded_bytes};
  if (after->schema.primary_key == std::vector<int>{static_cast<int>(column)}) s.distinct = rows;
  return count.Serialize();
}

Result<TableRecord> TableLoad::MakeRecord(std::vector<std::string>* sketches) {
  TableRecord after = *table_;
  after.tablet_rows = tablet_rows_;
  after.tablets.clear();
  std::vector<const NewTablets*> in_place;
  for (size_t t = 0; t < kept_.size(); ++t) {
    if (in_place.size() < compacted_.parts.size() && compacted_.parts[in_place.size()].range.begin == t) {
      in_place.push_back(&compacted_.parts[in_place.size()].tablets->made());
      after.tablets.insert(after.tablets.end(), in_place.back()->records.begin(), in_place.back()->records.end());
    }
    if (!kept_[t]) continue;
    after.tablets.push_back(table_->tablets[t]);
    after.tablets.back().live = LiveOf(t);
  }
  std::vector<const NewTablets*> made{&this->made()};
  for (const Adopted& adopted : adopted_.parts) made.push_back(&adopted.tablets);
  for (const NewTablets* tablets : made) {
    after.tablets.insert(after.tablets.end(), tablets->records.begin(), tablets->records.end());
  }
  made.insert(made.end(), in_place.begin(), in_place.end());
  std::vector<std::string> old_sketches(after.statistics.size());
  // (Where no tablet stays, the new ones have counted all rows.)
  if (!is_new_ && std::ranges::count(kept_, true) > 0) {
    TESSERA_ASSIGN(old_sketches, directory_->Sketches(*table_));
  }
  for (size_t c = 0; c < after.statistics.size(); ++c) {
    ColumnStatistics& s = after.statistics[c];
    s.null_count -= rewritten_.nulls[c];
    s.encoded_bytes -= rewritten_.bytes[c];
    const bool text = after.schema.columns[c].type.storage() == StorageClass::kText;
    for (const NewTablets* tablets : made) {
      const int128_t min = tablets->min[c], max = tablets->max[c];
      s.null_count += tablets->nulls[c];
      s.encoded_bytes += tablets->bytes[c];
      if (text || min > max) continue;
      s.min = s.has_range ? std::min(s.min, min) : min;
      s.max = s.has_range ? std::max(s.max, max) : max;
      s.has_range = true;
    }
    std::vector<const DistinctCount*> counts;
    for (const NewTablets* tablets : made) counts.push_back(&tablets->distinct[c]);
    TESSERA_ASSIGN(std::string sketch, CountDistinct(old_sketches[c], counts, c, &after));
    sketches->push_back(std::move(sketch));
  }
  return after;
}

Status TableLoad::CheckKey(const TableRecord& after) const {
  if (after.schema.primary_key.empty() && after.schema.unique_keys.empty()) return {};
  const size_t kept = after.tablets.size() - made().records.size() - adopted_.tablets;  // or written anew in its place
  TabletPointers old_tablets, new_tablets;
  for (size_t t = 0; t < after.tablets.size(); ++t)
    (t < kept ? old_tablets : new_tablets).push_back(FileOf(after, after.tablets[t]));
  return CheckKeys(after.schema, old_tablets, new_tablets, cancel_);
}

void TableLoad::NoteMoves() const {
  // (Rows that are sorted, or go to buckets, lie anywhere.)
  if (!table_->schema.cluster_by.empty() || IsDistributed()) return;
  const auto note = [&](const std::vector<Moved>& moved, const NewTablets& made) {
    if (moved.empty()) return;
    auto to = std::make_shared<std::vector<StoredTablet>>();
    for (const TabletRecord& tablet : made.records) to->push_back(StoredOf(tablet));
    for (const Moved& m : moved) {
      MovedRows::OfProcess().Note(directory_->real_path(), StoredOf(table_->tablets[m.tablet]),
                                  {m.live, false, m.first, to});
    }
  };
  note(moved_, made());
  for (const Compacted& part : compacted_.parts) note(part.moved, part.tablets->made());
}

void TableLoad::NoteMovedColumns(const TableRecord& after) const {
  for (size_t t = 0; t < table_->tablets.size(); ++t) {
    const TabletRecord& before = table_->tablets[t];
    if (after.tablets[t].id == before.id) continue;
    std::vector<uint64_t> gone = update_->Touched(t);
    for (size_t w = 0; before.live != nullptr && w < gone.size(); ++w) gone[w] |= before.live->words()[w];
    MovedRows::OfProcess().Note(directory_->real_path(), StoredOf(before),
                                {std::make_shared<const LiveRows>(before.rows, std::move(gone)), true, 0,
                                 std::make_shared<const std::vector<StoredTablet>>(1, StoredOf(after.tablets[t]))});
  }
}

Status TableLoad::NameAdopted() {
  for (const Adopted& adopted : adopted_.parts) {
    for (size_t number = 0; number < adopted.tablets.records.size(); ++number) {
      const std::string from = adopted.target.TemporaryPath(number);
      if (rename(from.c_str(), adopted.target.FinalPath(number).c_str()) != 0) {
        return IoError("cannot rename", from, errno);
      }
    }
  }
  return {};
}

Status TableLoad::MergeAlone() {
  merges_alone_ = true;
  BeginDeletion();
  return Commit();
}

Status TableLoad::Commit() {
  TESSERA_TRY(status());
  if (writes_columns_) return CommitColumns();
  if (rows_added() == 0 && deletion_.rows == 0 && !merges_alone_) {
    const Status status =
        is_new_ ? directory_->InsertTable(*write_, *table_, replaced_.get(), {}, write_->contents.next_tablet_id)
                : Status();
    write_->lock = WriterLock();
    return status;
  }
  const bool adds = rows_added() > 0;
  std::vector<std::string> unsynced;
  std::vector<std::string>* const to_log = is_new_ || !adopted_.parts.empty() ? nullptr : &unsynced;
  if (adds) {
    TESSERA_TRY(Finish(to_log));
    TESSERA_TRY(NameAdopted());
  }
  TESSERA_TRY(MakeMarks());
  TESSERA_TRY(DropEmptied());
  TESSERA_TRY(Compact(to_log));
  if (merges_alone_ && compacted_.parts.empty()) return {};
  std::vector<std::string> sketches;
  TESSERA_ASSIGN(TableRecord after, MakeRecord(&sketches));
  // (The names of the new files: SQLite syncs their directory, which is that of its journal, before it writes the catalog.)
  if (adds) TESSERA_TRY(CheckKey(after));
  TESSERA_TRY(status());
  NoteMoves();
  const int64_t next_tablet_id =
      write_->contents.next_tablet_id + static_cast<int64_t>(tablets_cut() + adopted_.tablets + compacted_.tablets);
  committing_ = true;
  Release();
  for (const Compacted& compacted : compacted_.parts) compacted.tablets->Release();
  // (A transaction waits for the disk at its end.)
  const bool is_synced = adds && unsynced.empty() && !directory_->InTransaction();
  const Status committed =
      is_new_ ? directory_->InsertTable(*write_, std::move(after), replaced_.get(), sketches, next_tablet_id)
              : directory_->UpdateTable(*write_, *table_, std::move(after), sketches, next_tablet_id,
                                        is_synced ? nullptr : &unsynced);
  write_->lock = WriterLock();
  return committed;
}

}  // namespace tessera
