// CHECK, UNIQUE, GENERATED, DEFAULT of each row and the ENUM types of a table as the catalog keeps them: see FORMAT.md. Private to tablet/.
//
// Start at: ConstraintsOf. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "tablet/tablet.h"

namespace tessera {

struct ConstraintRow {
  std::string kind, name, value;
};

std::vector<ConstraintRow> ConstraintsOf(const TableSchema& schema);
/// Adds a row's constraint to the table; false if it is none.
bool AddConstraint(const ConstraintRow& row, TableSchema* schema);

}  // namespace tessera
