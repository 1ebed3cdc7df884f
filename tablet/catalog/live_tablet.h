// A tablet of which rows have been deleted, or whose rows have numbers: the stored one with two columns more.
//
// Start at: LiveTablet, MarkLive, NumberRows. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/files/live_rows.h"
#include "tablet/files/part_tablet.h"
#include "tablet/files/tablet.h"

namespace tessera {

class LiveTablet final : public Tablet {
 public:
  /// `columns`: how many `of` has. After them there are two more: whether a row is live, of BOOLEAN; and its number,
  /// `first_number` for the first row, of BIGINT. `live`: nullptr: all rows are.
  LiveTablet(std::shared_ptr<const Tablet> of, int columns, std::shared_ptr<const LiveRows> live, int64_t first_number)
      : of_(std::move(of)), columns_(columns), live_(std::move(live)), first_number_(first_number) {}

  uint32_t rows() const override { return of_->rows(); }
  uint64_t weight() const override { return of_->weight(); }
  const LiveRows* live() const override { return live_.get(); }
  std::shared_ptr<const Tablet> unmarked() const override { return of_; }
  Result<ChunkPointer> Chunk(int column) const override {
    return IsStored(column) ? of_->Chunk(column) : Made(column, false);
  }
  Result<ChunkPointer> PackedChunk(int column) const override {
    return IsStored(column) ? of_->PackedChunk(column) : Made(column, true);
  }
  Result<ChunkPointer> ChunkForTiles(int column) const override {
    return IsStored(column) ? of_->ChunkForTiles(column) : Made(column, true);
  }
  bool AreCodesChecked(int column) const override { return !IsStored(column) || of_->AreCodesChecked(column); }
  void NoteCodesChecked(int column) const override {
    if (IsStored(column)) of_->NoteCodesChecked(column);
  }
  Result<ChunkPointer> Describe(int column) const override {
    return IsStored(column) ? of_->Describe(column) : Made(column, true);
  }
  uint64_t Expect(const std::vector<int>& columns, bool again) const override {
    return of_->Expect(StoredOf(columns), again);
  }
  bool WasRead(const std::vector<int>& columns) const override { return of_->WasRead(StoredOf(columns)); }
  Result<ChunkStorage> StorageOf(int column) const override;
  Result<std::string> SchemesOf(int column) const override;
  Status Intact() const override { return of_->Intact(); }
  std::span<const uint8_t> Mapping() const override { return of_->Mapping(); }
  void HoldWhileMapped(std::shared_ptr<void> held) const override { of_->HoldWhileMapped(std::move(held)); }
  /// Errors: kUnsupported: a run may have deleted rows.
  Result<std::shared_ptr<const Tablet>> Runs(int column, uint32_t runs) const override;
  const Tablet* Part(uint32_t first, uint32_t rows) const override { return parts_.Find(*this, first, rows); }
  ColumnSource SourceOf(int column) const override;
  std::string path() const override { return of_->path(); }

 private:
  bool IsStored(int column) const { return column < columns_; }
  std::vector<int> StoredOf(const std::vector<int>& columns) const;
  ChunkPointer Made(int column, bool packed) const;

  const std::shared_ptr<const Tablet> of_;
  const int columns_;
  const std::shared_ptr<const LiveRows> live_;
  const int64_t first_number_;
  const TabletParts parts_;
};

/// The tablet as it is stored: itself, or what it adds columns to.
std::shared_ptr<const Tablet> WithoutMarks(const std::shared_ptr<const Tablet>& tablet);

/// A copy of the table for which MarkLive is called once it has got other tablets: it has none.
TableInfo WithoutTablets(const TableInfo& table);

/// The table with the column of live rows, if rows of it have been deleted: TableInfo::live_column, after those of the
/// schema. `live`: by tablet; nullptr: all rows of it are. Counts the live rows.
void MarkLive(const std::vector<std::shared_ptr<const LiveRows>>& live, TableInfo* table);

/// Puts a tablet into the place of an absent one of the same rows, whose marks it gets.
void PutTablet(std::shared_ptr<const Tablet> tablet, size_t number, TableInfo* table);

/// Room for the rows of a tablet in their numbers.
inline constexpr int kRowNumberBits = 20;
static_assert(kGreatestTabletRows <= uint32_t{1} << kRowNumberBits);

/// A copy of the table that has numbers of its rows in column RowNumberColumn(): that of the tablet, and in the last
/// kRowNumberBits bits that of the row in it.
std::shared_ptr<const TableInfo> NumberRows(const TableInfo& table);
inline int RowNumberColumn(const TableInfo& table) { return static_cast<int>(table.schema.columns.size()) + 1; }

}  // namespace tessera
