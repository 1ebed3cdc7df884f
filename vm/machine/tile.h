// The tile that the machine works on: where its rows come from, and where they go. Private to vm/.
//
// Start at: Tile. Plain data.
#pragma once

#include <cstdint>

#include "vm/encode/dictionary_map.h"
#include "vm/encode/section_encoder.h"
#include "vm/rows/row_set.h"
#include "vm/sinks/group_table.h"

namespace tessera::vm {

/// Where a section's rows go; each worker has its own.
struct TileSinks {
  RowSet* rows = nullptr;        ///< kRows and kJoin
  GroupTable* groups = nullptr;  ///< kGroups
  DictionaryMap* map = nullptr;  ///< kMap
  uint32_t map_first = 0;        ///< the entry that row 0 is; a text may be a value of this tile
};

struct Tile {
  const TabletEncoding* tablet = nullptr;
  uint32_t first = 0;       ///< its first row in the tablet
  uint64_t row_before = 0;  ///< the number of the tablet's first row in its source
  uint64_t number = 0;      ///< counts the tiles of a machine, from 1 on
  TileSinks sinks;
};

}  // namespace tessera::vm
