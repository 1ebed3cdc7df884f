// What a table's schema and a column's values may be, wherever they come from: a statement, a catalog or a tablet file.
//
// Start at: CheckSchema, StoredRangeOf. Pure functions; any thread.
#pragma once

#include "base/int128.h"
#include "base/status.h"
#include "tablet/tablet.h"
#include "tablet/values/types.h"

namespace tessera {

/// kSql, naming the first thing that no table can have.
Status CheckSchema(const TableSchema& schema);

/// The rules of a type: a name; labels that differ, of at most 255 bytes of UTF-8 without control characters.
Status CheckType(const EnumType& type);

/// The value of a column that a row is stored without. REQUIRES: a schema that CheckSchema passed.
Value DefaultOf(const ColumnSchema& column);

struct StoredRange {
  int128_t least = 0, greatest = 0;
};
/// The least and the greatest value of a type, in the integer or ordered form of Chunk::min. REQUIRES: not kText.
StoredRange StoredRangeOf(const SqlType& type);

}  // namespace tessera
