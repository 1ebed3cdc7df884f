// What launch plans need to know about a join table: which section builds it, and how it is on the device. Private to
// kernels/. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/launch/join_record.h"
#include "vm/program/program.h"

namespace tessera::kernels {

inline const vm::Section& BuilderOf(const vm::Program& program, int join) {
  return program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(join)].section)];
}

/// A payload column of a join table on the device: a field of the cursor, or a column of the table's rows.
struct PayloadShape {
  bool wide = false;
  bool nullable = false;
  int64_t low = 0, high = -1;  ///< range of its values, if not wide; low > high: it has none
  // Packed.
  uint32_t shift = 0, mask = 0;
  int64_t base = 0;         ///< value = base + field
  int64_t null_field = -1;  ///< the field of a NULL
  // Otherwise device addresses; 0: no NULL, not wide.
  uint64_t column = 0, column_high = 0, nulls = 0;
};

/// A join table on the device.
struct JoinShape {
  JoinRecord record;  ///< except the offsets in shared memory, which a launch decides
  bool packed = false;
  std::vector<PayloadShape> payload;
  double selectivity = 1;        ///< fraction of its source table's rows that it has
  double range_selectivity = 1;  ///< estimated fraction of foreign keys between its least and greatest key
  bool rows_by_slot = false;     ///< its rows are in the order of their slots' partitions
};

}  // namespace tessera::kernels
