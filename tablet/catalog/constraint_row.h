// CHECK, UNIQUE, GENERATED, DEFAULT of each row, the ENUM types of a table and how it is clustered and distributed, as the
// catalog keeps them: see FORMAT.md. Private to tablet/.
//
// Start at: ConstraintsOf. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_record.h"

namespace tessera {

struct ConstraintRow {
  std::string kind, name, value;
};

std::vector<ConstraintRow> ConstraintsOf(const TableSchema& schema);
/// Those of its schema, and of the tablets of a distributed table their buckets.
std::vector<ConstraintRow> ConstraintsOf(const TableRecord& table);
/// Adds a row's constraint to the table; false if it is none.
bool AddConstraint(const ConstraintRow& row, TableSchema* schema);
/// The kind of the row with the buckets of all tablets.
inline constexpr char kBucketsRow[] = "buckets";
/// Gives the tablets the buckets of that row's value, or "" if there is none; false if it has not one for each.
bool SetBuckets(std::string_view buckets, TableRecord* table);

}  // namespace tessera
