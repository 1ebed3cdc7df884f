// Joins and groups by a column in whose order rows are stored, as those of orders are that were loaded one after the other. If
// each rank scans adjacent tablets, it has a range of the keys to itself: of a join table it needs the tablets of that
// range, and no other rank has groups with its keys. So these need not be exchanged, although no table says how its rows
// are distributed. Private to compiler/.
//
// Otherwise adjacent tablets go to different ranks, because a condition on such a column leaves them out together. So
// sections get spans (vm::RankPlacement::spans) only if something gains by it, and if what they leave out is shared evenly.
//
// Start at: AssignSpans. Pure function, but that it opens tablets; any thread.
#pragma once

#include "compiler/generate/codegen.h"
#include "compiler/plan/plan_options.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// Gives sections spans, and marks those as co-located of which that holds then. REQUIRES: CoLocate was called; no join
/// of the program is exchanged yet.
void AssignSpans(const Snapshot& snapshot, const PlanOptions& options, Code* code);

}  // namespace tessera
