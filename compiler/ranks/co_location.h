// Joins, groups and windows whose rows need not be exchanged between ranks, because the stored tables' rows are on the
// rank of their keys already (WITH (distribute_by = ...)). Private to compiler/.
//
// Start at: CoLocate. Pure functions; any thread.
#pragma once

#include "compiler/generate/codegen.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// Marks the sections of which that holds (vm::RankPlacement::co_located). REQUIRES: no join of the program is exchanged yet.
void CoLocate(const Snapshot& snapshot, Code* code);

}  // namespace tessera
