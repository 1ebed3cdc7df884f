#include "tablet/catalog/live_tablet.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

struct alignas(kStreamAlignment) Line {
  uint32_t numbers[kStreamAlignment / sizeof(uint32_t)];
};

// (A function, not a lambda where it is called: g++ would take that for a constant, and evaluate it for four seconds.)
std::vector<Line> LinesOfNumbers() {
  std::vector<Line> out(kGreatestTabletRows * sizeof(uint32_t) / sizeof(Line));
  uint32_t number = 0;
  for (Line& line : out) {
    for (uint32_t& n : line.numbers) n = number++;
  }
  return out;
}

/// 0, 1, 2 ...: the codes of row numbers, for as many rows as a tablet may have.
const uint8_t* CodesOfNumbers() {
  static const std::vector<Line> lines = LinesOfNumbers();
  return reinterpret_cast<const uint8_t*>(lines.data());
}

Chunk ChunkOfNumbers(uint32_t rows, int64_t first) {
  Chunk c;
  c.type = SqlType::Of(TypeId::kBigint);
  c.rows = rows;
  c.base = c.min = first;
  c.max = first + rows - 1;
  if (rows == 1) return c;
  c.encoding = Encoding::kFrame;
  c.width = sizeof(uint32_t);
  c.codes = CodesOfNumbers();
  c.codes_are_rows = true;
  // (The padding after the last row holds numbers, too: no row reads them.)
  c.codes_bytes = AlignToStream(uint64_t{rows} * c.width);
  c.encoded_bytes = c.codes_bytes;
  return c;
}

ColumnStatistics StatisticsOfLive(const TableInfo& table) {
  ColumnStatistics s;
  s.has_range = table.stored_rows > 0;
  s.min = table.rows == table.stored_rows ? 1 : 0;
  s.max = 1;
  s.distinct = s.has_range ? static_cast<uint64_t>(s.max - s.min) + 1 : 0;
  s.encoded_bytes = s.min == 0 ? table.stored_rows : 0;
  return s;
}

}  // namespace

std::vector<int> LiveTablet::StoredOf(const std::vector<int>& columns) const {
  std::vector<int> stored;
  std::ranges::copy_if(columns, std::back_inserter(stored), [&](int column) { return IsStored(column); });
  return stored;
}

ChunkPointer LiveTablet::Made(int column, bool packed) const {
  if (column == columns_ && live_ != nullptr) return {live_, packed ? &live_->packed_chunk() : &live_->chunk()};
  if (column > columns_) return std::make_shared<const tessera::Chunk>(ChunkOfNumbers(rows(), first_number_));
  auto all = std::make_shared<tessera::Chunk>();
  all->type = SqlType::Of(TypeId::kBoolean);
  all->rows = rows();
  all->base = all->min = all->max = 1;
  return all;
}

ColumnSource LiveTablet::SourceOf(int column) const {
  if (!IsStored(column)) return {nullptr, column};
  ColumnSource source = of_->SourceOf(column);
  if (source.tablet == nullptr) source.tablet = of_;
  return source;
}

Result<ChunkStorage> LiveTablet::StorageOf(int column) const {
  if (IsStored(column)) return of_->StorageOf(column);
  return Status(ErrorCode::kUnsupported,
                "column " + std::to_string(column + 1) + " of \"" + path() + "\" is not stored");
}

Result<std::string> LiveTablet::SchemesOf(int column) const {
  if (IsStored(column)) return of_->SchemesOf(column);
  return std::string(column == columns_ ? "live rows" : "row numbers");
}

Result<std::shared_ptr<const Tablet>> LiveTablet::Runs(int, uint32_t) const {
  return Status(ErrorCode::kUnsupported, "rows of \"" + path() + "\" have been deleted: it is not read as runs");
}

void MarkLive(const std::vector<std::shared_ptr<const LiveRows>>& live, TableInfo* table) {
  uint64_t deleted = 0;
  for (const auto& rows : live) deleted += rows != nullptr ? rows->deleted() : 0;
  table->rows = table->stored_rows - deleted;
  if (deleted == 0) return;
  table->live_column = static_cast<int>(table->schema.columns.size());
  for (size_t t = 0; t < table->tablets.size(); ++t) {
    table->tablets[t] = std::make_shared<const LiveTablet>(table->tablets[t], table->live_column, live[t], 0);
  }
  for (ColumnStatistics& s : table->statistics) {
    s.null_count = std::min(s.null_count, table->rows);
    s.distinct = std::min(s.distinct, table->rows);
  }
  table->statistics.push_back(StatisticsOfLive(*table));
}

void PutTablet(std::shared_ptr<const Tablet> tablet, size_t number, TableInfo* table) {
  std::shared_ptr<const Tablet>& place = table->tablets[number];
  if (table->live_column >= 0) {
    // (The marks live as long as the tablet that has them.)
    std::shared_ptr<const LiveRows> live;
    if (place->live() != nullptr) live = std::shared_ptr<const LiveRows>(place, place->live());
    tablet = std::make_shared<const LiveTablet>(std::move(tablet), table->live_column, std::move(live), 0);
  }
  place = std::move(tablet);
}

std::shared_ptr<const Tablet> WithoutMarks(const std::shared_ptr<const Tablet>& tablet) {
  std::shared_ptr<const Tablet> unmarked = tablet->unmarked();
  return unmarked != nullptr ? unmarked : tablet;
}

TableInfo WithoutTablets(const TableInfo& table) {
  TableInfo out(table);
  out.tablets.clear();
  out.buckets.clear();
  out.statistics.resize(table.schema.columns.size());
  out.live_column = -1;
  out.stored_rows = 0;
  return out;
}

std::shared_ptr<const TableInfo> NumberRows(const TableInfo& table) {
  auto out = std::make_shared<TableInfo>(table);
  const int columns = static_cast<int>(table.schema.columns.size());
  for (std::shared_ptr<const Tablet>& tablet : out->tablets) {
    const size_t number = static_cast<size_t>(&tablet - out->tablets.data());
    // (The marks live as long as the tablet that has them.)
    const std::shared_ptr<const LiveRows> live(tablet, tablet->live());
    tablet = std::make_shared<const LiveTablet>(WithoutMarks(tablet), columns, live.get() != nullptr ? live : nullptr,
                                                static_cast<int64_t>(number) << kRowNumberBits);
  }
  if (out->live_column < 0) out->statistics.push_back(StatisticsOfLive(table));
  ColumnStatistics numbers;
  numbers.has_range = !table.tablets.empty();
  numbers.max = numbers.has_range ? (static_cast<int128_t>(table.tablets.size()) << kRowNumberBits) - 1 : -1;
  numbers.distinct = table.rows;
  numbers.encoded_bytes = sizeof(uint32_t) * table.stored_rows;
  out->statistics.push_back(numbers);
  return out;
}

}  // namespace tessera
