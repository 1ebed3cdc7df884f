// What the catalog keeps of tables, and all that it keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tablet/catalog/catalog_names.h"
#include "tablet/catalog/macro.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/catalog/view.h"
#include "tablet/files/live_rows.h"
#include "tablet/files/tablet_file.h"
#include "tablet/files/tablet_layout.h"
#include "tablet/values/enum_type.h"

namespace tessera {

struct TabletRecord {
  int64_t id = 0;
  uint32_t rows = 0;
  uint64_t file_bytes = 0;
  uint64_t header_checksum = 0;
  uint8_t bucket = 0;                              ///< of a distributed table
  std::shared_ptr<const LiveRows> live = nullptr;  ///< nullptr: no row has been deleted
  /// Where its columns lie; nullptr: all in its own file. With one, `file_bytes` are of all its files, and `header_checksum` is
  /// 0, as there need not be a file of its number.
  std::shared_ptr<const TabletLayout> layout = nullptr;
};

/// The layout of a tablet with `columns` columns, also if all are in its own file.
TabletLayout LayoutOf(const TabletRecord& tablet, size_t columns);

/// Calls f(file number, number of the columns in it) for each of a tablet's files.
template <class F>
void ForEachFile(const TabletRecord& tablet, F f) {
  if (tablet.layout == nullptr) return f(tablet.id, tablet.id);
  for (const ColumnFile& file : tablet.layout->files) f(file.file_id, file.id);
}

struct TableRecord {
  int64_t id = 0;
  int64_t version = 0;       ///< 1 at CREATE TABLE, one more with each change of the table
  TableSchema schema;        ///< tablet_rows as declared
  uint32_t tablet_rows = 0;  ///< as chosen; 0 before the first load
  std::vector<ColumnStatistics> statistics;
  std::vector<TabletRecord> tablets;  ///< in the order of the rows
  uint64_t checksum = 0;              ///< of all the above

  /// With those that have been deleted.
  uint64_t rows() const {
    uint64_t sum = 0;
    for (const TabletRecord& tablet : tablets) sum += tablet.rows;
    return sum;
  }
};

struct CatalogContents {
  DatabaseId database{};
  int64_t next_table_id = 1;
  int64_t next_tablet_id = 1;
  int64_t log_generation = 0;                              ///< of the commit log; 0: there is none
  std::vector<std::shared_ptr<const TableRecord>> tables;  ///< by name
  std::vector<EnumType> types;                             ///< by name
  std::vector<Macro> macros;                               ///< in the order of ComesBefore
  Views views;
  CatalogNames names;

  std::shared_ptr<const TableRecord> Find(std::string_view name) const;
};

/// The record of a new table of that schema, without rows.
inline TableRecord NewTable(const CatalogContents& contents, const TableSchema& schema) {
  TableRecord table;
  table.id = contents.next_table_id;
  table.schema = schema;
  table.statistics.resize(schema.columns.size());
  return table;
}

}  // namespace tessera
