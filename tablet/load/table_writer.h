// Rows on their way into a table and out of it, as Database::Write begins it: a TableWriter over a TableLoad, with threads of
// its own that encode.
//
// Start at: TableWriter, MakeTableWriter.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class TableLoad;

/// Rows being added to a table, and rows that go. Nothing is visible before Commit(); destruction without it discards
/// everything.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  /// Appends rows; columns in schema order, of the schema's storage classes. Checks NOT NULL and VARCHAR(n).
  /// Errors: kConstraint naming column and value; `first_row` (from 1) is the number that the message gives the batch's
  /// first row, as "row n".
  virtual Status Append(RowBatch batch, uint64_t first_row) = 0;
  /// Deletes rows by their numbers in the table as Database::Read() has it while this lives (NumberRows of live_tablet.h).
  /// Returns how many were there until now: a row may have been deleted by an earlier call, or stand twice. `*fresh`: by
  /// number, whether it was; nullptr: that is not asked.
  virtual Result<uint64_t> Delete(std::span<const int64_t> rows, std::vector<bool>* fresh) = 0;
  /// As Delete() without `fresh`. Several threads may call it at a time, and nothing else beside it.
  virtual Result<uint64_t> DeleteShare(std::span<const int64_t> rows) = 0;
  /// The same for rows that bits name: bit i is row number `first` + i, and `first` is that of a tablet's first row.
  virtual Result<uint64_t> DeleteMarked(int64_t first, std::span<const uint64_t> bits) = 0;
  /// The rows of these numbers get other values in `columns`, ascending, none of which is in a key, and the same in each call;
  /// what they have in others is kept. Their places may stay, or not. `first_row`: as above. REQUIRES: no row comes twice;
  /// nothing but Update() is called before Commit().
  virtual Status Update(std::span<const int> columns, RowBatch values, std::span<const int64_t> rows,
                        uint64_t first_row) = 0;
  /// Checks PRIMARY KEY and UNIQUE, writes and syncs what is left, commits one catalog transaction.
  virtual Status Commit() = 0;
};

std::unique_ptr<TableWriter> MakeTableWriter(std::unique_ptr<TableLoad> load);

/// The first row of `batch` that violates NOT NULL, VARCHAR(n) or the form of text: kConstraint, as "row n".
Status CheckConstraints(const TableSchema& schema, const RowBatch& batch, uint64_t first_row);

}  // namespace tessera
