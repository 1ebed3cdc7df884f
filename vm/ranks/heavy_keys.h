// Joins whose two sides are exchanged by key, where some keys have so many rows that their rank would get much more than
// its share. The rows of such a *heavy key* are spread over the ranks, and what they meet on the other side goes to all
// of them. Private to vm/.
//
//  - Heavy among the rows that probe: each rank has all rows of the build side with that key, so it does not matter
//    where a row probes. This is so for every kind of join.
//  - Heavy in the build side: each rank has some of the rows, and a row that probes goes to all. That is right for inner
//    joins only: LEFT, semi and anti joins ask whether a row has any match at all, on any rank.
//
// Ranks look for heavy keys in rounds 1, 2, 4, 8 ... of the exchange, in a sample of the rows that they have made. A key
// is its hash here: two keys that share one are spread together.
//
// Start at: ExchangeJoinRows. The thread of the run; all ranks.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

/// Exchanges the rows that this rank has made of section `number` in a round (from 1 on): those of a build side, or those
/// that probe. Before the first of these, the join table is indexed. REQUIRES: the section is `by_key`. Errors: of one
/// of the ranks, the same on all.
Result<RowSet> ExchangeJoinRows(RunState* state, int number, uint64_t round, Result<RowSet> mine,
                                SectionStatistics* stats);

}  // namespace tessera::vm
