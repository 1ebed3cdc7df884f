// Reads a table as the runs of a column, where a grouping reads nothing else of it. Private to compiler/.
//
//   SELECT count(*), sum(v) FROM t WHERE v < 100
//
// becomes
//
//   SELECT CASE WHEN n IS NULL THEN 0 ELSE n END, s
//   FROM (SELECT sum(rows) AS n, sum(v * rows) AS s FROM runs of v in t WHERE v < 100)
//
// so that conditions, probes and groups meet each run once, and it is not unpacked. This is decided by what is stored, see
// tessera::RunsOf.
//
// Start at: ReadRuns. Pure functions; any thread.
#pragma once

#include <string>

#include "compiler/query/bound_query.h"

namespace tessera {

/// "t", "runs of v in t". REQUIRES: a stored table.
std::string NameOfStored(const Relation& relation);

/// In the block and in all blocks inside it. `on_device`: a GPU may run it.
void ReadRuns(Query* query, bool on_device);

}  // namespace tessera
