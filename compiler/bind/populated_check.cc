#include "compiler/bind/populated_check.h"

namespace tessera {

Status CheckPopulated(const TableSchema& table, int position) {
  if (!table.materialized || table.materialized->populated) return {};
  return SqlError(ErrorKind::kNotInPrerequisiteState, "materialized view \"" + table.name + "\" has not been populated",
                  position, "REFRESH MATERIALIZED VIEW " + table.name + " computes its rows.");
}

Status CheckChangeable(const TableSchema& table, int position) {
  if (!table.materialized) return {};
  return SqlError(ErrorKind::kWrongObjectType, "cannot change materialized view \"" + table.name + "\"", position,
                  "REFRESH MATERIALIZED VIEW " + table.name + " computes its rows anew.");
}

}  // namespace tessera
