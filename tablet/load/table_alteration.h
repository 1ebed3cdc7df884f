// A change of a table that keeps its rows: of its names, constraints and defaults in the catalog alone, or of columns
// that are added or dropped, likewise (tablet/files/tablet_layout.h), or of its columns with all rows written anew. The writer lock is held from the beginning, so what was looked at is what is changed.
//
// Start at: TableAlteration, Database::Alter. One thread.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/load/table_writer.h"

namespace tessera {

class DatabaseDirectory;

/// Nothing is visible before Commit(), here or of the writer. One of both, once.
class TableAlteration {
 public:
  virtual ~TableAlteration() = default;
  /// The schema is this from now on; columns are stored as they were, and declared tablet_rows stay. Checks new keys against
  /// the rows, and nothing else. Errors: kSql, another table has the name; kConstraint, rows have equal keys; kCancelled.
  /// `cancel` may be nullptr. REQUIRES: no column that becomes NOT NULL has a NULL, also not in a row that was deleted.
  virtual Status Commit(const TableSchema& schema, const std::atomic<bool>* cancel) = 0;
  /// The schema is this from now on, and the rows are as they were: `sources` has for each column that of the table, or -1 for
  /// one that is its constant default in all of them. Nothing is checked against the rows.
  virtual Status MoveColumns(const TableSchema& schema, std::span<const int> sources) = 0;
  /// Takes the rows of the table that takes its place, under the same name.
  virtual Result<std::unique_ptr<TableWriter>> Rewrite(const TableSchema& schema) = 0;
};

Result<std::unique_ptr<TableAlteration>> BeginTableAlteration(std::shared_ptr<DatabaseDirectory> directory,
                                                              const std::string& table);

}  // namespace tessera
