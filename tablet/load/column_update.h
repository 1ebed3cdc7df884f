// Rows of a table that get other values in a few columns, and stay where they are: UPDATE. At the end either these columns of
// the tablets with such rows are written anew, beside the tablets (tablet_layout.h), all into one file, because each file is
// waited for; or, where fewer bytes are read and written so, the rows are deleted and appended.
//
// Start at: ColumnUpdate. One thread; Write uses several of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/catalog/table_record.h"
#include "tablet/load/tablet_cutter.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class ColumnUpdate {
 public:
  /// `columns`: numbers, ascending. `table`: the rows as they are, with the verified chunks of earlier statements.
  ColumnUpdate(std::shared_ptr<const TableInfo> table, std::vector<int> columns);

  const std::vector<int>& columns() const { return columns_; }
  /// `values`: of these columns, for the rows of these numbers (NumberRows of live_tablet.h), none of which comes twice.
  Status Add(RowBatch values, std::span<const int64_t> rows);

  uint64_t rows() const { return rows_; }
  /// Which rows of a tablet are updated, as bits of LiveRows.
  std::vector<uint64_t> Touched(size_t tablet) const;
  /// Whether fewer bytes are read and written if the columns are than if the rows are. `short_bytes`: of the tablet that would
  /// be written anew with them. Errors: as Tablet::Describe.
  Result<bool> WritesColumns(uint64_t short_bytes) const;

  /// Hands over the rows whole, tablet by tablet, with their numbers.
  template <class F>
  Status ForRows(F take) const {
    for (size_t t = 0; t < places_.size(); ++t) {
      if (places_[t].empty()) continue;
      std::vector<int64_t> numbers;
      TESSERA_ASSIGN(RowBatch rows, RowsOf(t, &numbers));
      TESSERA_TRY(take(std::move(rows), numbers));
    }
    return {};
  }

  /// Writes the columns, and makes tablets of `record` that have them: their numbers follow target.first_tablet_id. Sets
  /// the statistics but for the counts of different values. After an error, or without a commit, Discard() removes the file.
  Status Write(const TabletTarget& target, const std::atomic<bool>* cancel, TableRecord* record);
  void Discard() noexcept;
  /// After Write(): how many tablets were made, and of each column the different values of these. `all`: they are all that
  /// there are of the table.
  int64_t tablets_made() const { return made_; }
  bool all() const { return static_cast<size_t>(made_) == places_.size(); }
  const std::vector<DistinctCount>& distinct() const { return distinct_; }

 private:
  struct Place {
    uint32_t row;
    uint32_t batch;
    uint32_t at;  ///< in the batch
  };
  Result<RowBatch> RowsOf(size_t tablet, std::vector<int64_t>* numbers) const;
  /// A column of a tablet with the new values.
  Result<ColumnVector> Changed(size_t tablet, size_t column) const;
  Status WriteTablets(std::span<const size_t> tablets, const TabletTarget& target, int fd, const std::string& path,
                      std::vector<std::vector<EncodedChunk>>* chunks, TableRecord* record);
  Status Count(size_t tablet, const std::vector<EncodedChunk>& chunks, TableRecord* record);

  const std::shared_ptr<const TableInfo> table_;
  const std::vector<int> columns_;
  std::vector<RowBatch> batches_;
  std::vector<std::vector<Place>> places_;  ///< by tablet
  uint64_t rows_ = 0;

  int64_t made_ = 0;
  uint64_t offset_ = 0;
  std::vector<DistinctCount> distinct_;  ///< by column of columns_
  std::vector<std::string> paths_;       ///< of the file, while it is written and afterwards
};

}  // namespace tessera
