// What the values of a column may be, wherever they come from: a statement, a catalog or a tablet file.
#pragma once

#include "base/int128.h"
#include "tablet/values/types.h"

namespace tessera {

struct StoredRange {
  int128_t least = 0, greatest = 0;
};
/// The least and the greatest value of a type, in the integer or ordered form of Chunk::min. REQUIRES: not kText.
StoredRange StoredRangeOf(const SqlType& type);

}  // namespace tessera
