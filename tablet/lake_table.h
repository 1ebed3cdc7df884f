// A table of a DuckLake catalog: its data files in place, with the rows that were deleted marked beside their row groups, and
// the rows that are in the catalog itself. Columns are known by numbers, so that a file that was written before a column was
// renamed, added or dropped is read as the table is now.
//
// Start at: MakeLakeTable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/sqlite/lake_catalog.h"

namespace tessera {

/// A DuckLake catalog that a session has attached, as a statement sees it.
struct AttachedLake {
  std::string catalog;    ///< the SQLite database
  std::string data_path;  ///< see ReadLakeTables
  int64_t version = 0;    ///< of the snapshot
};
/// By the names under which they are attached.
using AttachedLakes = std::map<std::string, AttachedLake, std::less<>>;

/// Which table, and as it was when.
struct LakeSpec {
  std::string catalog, data_path;
  LakeMoment moment;
  std::string table;  ///< a qualified name there

  /// Equal for those that read the same.
  std::string Key() const;
};

/// Sets columns, tablets, rows and statistics of `info`. `naming`: what the name of a file means, or why it may not be read;
/// empty: itself. Errors: those of ReadLakeTable, of AddColumnarTablets and of `naming`; kUnsupported, a row group has more
/// rows than a tablet; kCorrupt, what the catalog says of a file is not so.
Status MakeLakeTable(const LakeSpec& spec, const std::function<Result<std::string>(const std::string&)>& naming,
                     TableInfo* info);

}  // namespace tessera
