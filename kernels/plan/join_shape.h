// A join table on the device, as far as launch plans have to know it. Private to kernels/. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/launch/join_record.h"

namespace tessera::kernels {

/// A payload column of a join table on the device: a field of the cursor, or a column of the table's rows.
struct PayloadShape {
  bool wide = false;
  bool nullable = false;
  int64_t low = 0, high = -1;  ///< range of its values, not wide; low > high: it has none
  // Packed.
  uint32_t shift = 0, mask = 0;
  int64_t base = 0;         ///< value = base + field
  int64_t null_field = -1;  ///< the field of a NULL
  // Otherwise device addresses; 0: no NULL, not wide.
  uint64_t column = 0, column_high = 0, nulls = 0;
};

/// A join table on the device, as far as planning has to know it.
struct JoinShape {
  JoinRecord record;  ///< but for what a launch decides: the offsets in shared memory
  bool packed = false;
  std::vector<PayloadShape> payload;
  double selectivity = 1;        ///< of the rows of the table it is made from that are in it
  double range_selectivity = 1;  ///< of foreign keys that lie between its least and greatest key, as an estimate
  bool rows_by_slot = false;     ///< its rows are in the order of the partitions of its slots
};

}  // namespace tessera::kernels
