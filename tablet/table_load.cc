// From rows that are cut into tablets to the catalog's transaction.
#include "tablet/table_load.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "tablet/chunk_decoder.h"
#include "tablet/io_error.h"
#include "tablet/primary_key.h"

namespace tessera {

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

TabletTarget TableLoad::TargetOf(const DatabaseDirectory& directory, const DatabaseDirectory::Write& write,
                                 const TableRecord& table) {
  TabletTarget target;
  target.directory = directory.path();
  target.durable = directory.durable();
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
      kept_(table_->tablets.size(), true),
      replaced_nulls_(table_->schema.columns.size()),
      replaced_bytes_(table_->schema.columns.size()) {
  const std::vector<TabletRecord>& tablets = table_->tablets;
  last_is_short_ = !IsDistributed() && !tablets.empty() && tablets.back().rows < tablet_rows_;
  // A table of one short tablet is written anew as a whole, so its size is chosen again: a first INSERT of a few rows
  // must not decide how a billion that follow are stored.
  if (last_is_short_ && tablets.size() == 1 && table_->schema.tablet_rows == 0) tablet_rows_ = 0;
}

TableLoad::~TableLoad() {
  Discard();
  if (committing_) return;
  // No catalog ever named these files, so no reader has them.
  try {
    for (const Adopted& adopted : adopted_) {
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

uint64_t TableLoad::rows_loaded() const {
  uint64_t rows = rows_added();
  for (const Adopted& adopted : adopted_) rows += adopted.tablets.rows_added;
  return rows;
}

void TableLoad::Adopt(const std::string& load, NewTablets tablets) {
  TabletTarget target = this->target();
  target.load = load;
  target.first_tablet_id += static_cast<int64_t>(tablets_cut() + tablets_adopted_);
  tablets_adopted_ += tablets.records.size();
  adopted_.push_back({std::move(target), std::move(tablets)});
}

/// Of the buckets that have got rows, so that none has two short tablets.
Status TableLoad::TakeShortTablets() {
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

/// Adds the rows of a tablet, which does not stay.
Status TableLoad::TakeBack(size_t tablet) {
  const TabletRecord& record = table_->tablets[tablet];
  auto types = std::make_shared<TabletFile::Types>();
  for (const ColumnSchema& column : table_->schema.columns) types->push_back(column.type);
  const TabletFile file(directory_->FilePath(TabletFileName(record.id)),
                        directory_->IdentityOf(write_->contents, *table_, record), types);
  RowBatch batch;
  batch.rows = file.rows();
  for (size_t c = 0; c < types->size(); ++c) {
    TESSERA_ASSIGN(const ChunkPointer chunk, file.Chunk(static_cast<int>(c)));
    ColumnVector column;
    column.type = (*types)[c];
    DecodeChunk(*chunk, 0, chunk->rows, &column);
    batch.columns.push_back(std::move(column));
    replaced_nulls_[c] += chunk->null_count;
    replaced_bytes_[c] += chunk->encoded_bytes;
  }
  TESSERA_TRY(file.Intact());
  kept_[tablet] = false;
  AddAgain(std::move(batch));
  return {};
}

Status TableLoad::Add(RowBatch batch) {
  if (!started_ && batch.rows > 0) {
    TESSERA_TRY(status());
    started_ = true;
    if (last_is_short_) TESSERA_TRY(TakeBack(table_->tablets.size() - 1));
  }
  return TabletCutter::Add(std::move(batch));
}

void TableLoad::EndOfRows() {
  if (IsDistributed() && rows_added() > 0 && !std::exchange(ended_, true)) {
    if (const Status taken = TakeShortTablets(); !taken.ok()) return Fail(taken);
  }
  TabletCutter::EndOfRows();
}

Result<TableRecord> TableLoad::MakeRecord(std::vector<std::string>* sketches) {
  TableRecord after = *table_;
  after.tablet_rows = tablet_rows_;
  after.tablets.clear();
  for (size_t t = 0; t < kept_.size(); ++t) {
    if (kept_[t]) after.tablets.push_back(table_->tablets[t]);
  }
  std::vector<const NewTablets*> made{&this->made()};
  for (const Adopted& adopted : adopted_) made.push_back(&adopted.tablets);
  for (const NewTablets* tablets : made) {
    after.tablets.insert(after.tablets.end(), tablets->records.begin(), tablets->records.end());
  }
  const uint64_t rows = after.rows();
  std::vector<std::string> old_sketches(after.statistics.size());
  // (Where no tablet stays, the new ones have counted all rows.)
  if (!is_new_ && std::ranges::count(kept_, true) > 0) {
    TESSERA_ASSIGN(old_sketches, directory_->Sketches(*table_));
  }
  for (size_t c = 0; c < after.statistics.size(); ++c) {
    ColumnStatistics& s = after.statistics[c];
    s.null_count -= replaced_nulls_[c];
    s.encoded_bytes -= replaced_bytes_[c];
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
    DistinctCount count;
    if (!old_sketches[c].empty() && !count.Deserialize(old_sketches[c])) {
      return Status(ErrorCode::kCorrupt, "the catalog of database \"" + directory_->name() +
                                             "\" is corrupt: a sketch of table \"" + after.schema.name + "\"");
    }
    for (const NewTablets* tablets : made) count.Merge(tablets->distinct[c]);
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
  const auto kept = static_cast<size_t>(std::ranges::count(kept_, true));
  TabletFiles old_tablets, new_tablets;
  for (size_t t = 0; t < after.tablets.size(); ++t) {
    (t < kept ? old_tablets : new_tablets)
        .push_back(std::make_shared<const TabletFile>(directory_->FilePath(TabletFileName(after.tablets[t].id)),
                                                      directory_->IdentityOf(write_->contents, after, after.tablets[t]),
                                                      types));
  }
  return CheckKeys(after.schema, old_tablets, new_tablets, cancel_);
}

Status TableLoad::NameAdopted() {
  for (const Adopted& adopted : adopted_) {
    for (size_t number = 0; number < adopted.tablets.records.size(); ++number) {
      const std::string from = adopted.target.TemporaryPath(number);
      if (rename(from.c_str(), adopted.target.FinalPath(number).c_str()) != 0) {
        return IoError("cannot rename", from, errno);
      }
    }
  }
  return {};
}

Status TableLoad::Commit() {
  TESSERA_TRY(status());
  if (rows_added() == 0) {
    const Status status =
        is_new_ ? directory_->InsertTable(*write_, *table_, replaced_.get(), {}, write_->contents.next_tablet_id)
                : Status();
    write_->lock = WriterLock();
    return status;
  }
  TESSERA_TRY(Finish());
  TESSERA_TRY(NameAdopted());
  std::vector<std::string> sketches;
  TESSERA_ASSIGN(TableRecord after, MakeRecord(&sketches));
  TESSERA_TRY(CheckKey(after));
  TESSERA_TRY(directory_->SyncDirectory());
  TESSERA_TRY(status());
  const int64_t next_tablet_id =
      write_->contents.next_tablet_id + static_cast<int64_t>(tablets_cut() + tablets_adopted_);
  committing_ = true;
  Release();
  const Status committed =
      is_new_ ? directory_->InsertTable(*write_, std::move(after), replaced_.get(), sketches, next_tablet_id)
              : directory_->UpdateTable(*write_, *table_, std::move(after), sketches, next_tablet_id);
  write_->lock = WriterLock();
  return committed;
}

}  // namespace tessera
