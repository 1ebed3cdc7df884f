// Sections that this process runs by itself, on its own threads. Private to vm/.
//
// Start at: HostSections::Run. The thread of the run.
#pragma once

#include "base/status.h"
#include "vm/run/placement.h"
#include "vm/run/row_stream.h"
#include "vm/run/run_state.h"
#include "vm/run/scan.h"

namespace tessera::vm {

class HostSections {
 public:
  HostSections(RunState* state, const Placement* placement) : state_(*state), placement_(*placement) {}

  /// What the section makes of all of its source. Errors: those of its rows; kCancelled; kResource.
  Result<RowSet> Run(int number, SectionStatistics* stats);
  /// The same for a section without ORDER BY, its rows to `stream` in order, as they come. Some units run at a time,
  /// and one that has made very many rows waits until they have been taken.
  Status Stream(int number, RowStream* stream, SectionStatistics* stats);

  /// Takes in the rows of a join table that have been brought into the order that the program asks for.
  Status IndexJoin(const Section& s, RowSet rows);

 private:
  Status MakeJoins(int number);

  RunState& state_;
  const Placement& placement_;
};

/// Sorts a join table's rows as the program asks for. Errors: kResource, more rows than an index takes.
Status OrderJoin(const RunState& state, const Section& s, RowSet* rows);

// ---- The scan of a section, on one rank of many as in one process -----------------------------------------------------

/// Runs all units. kGroups: into scan->groups; otherwise what they make is appended to `rows`, in their order.
Status RunAllUnits(RunState* state, Scan* scan, RowSet* rows);
/// Merges the groups of all workers into those of the first.
Status MergeWorkers(Scan* scan);
/// How many rows of a section are still of use when it has made `made`; UINT64_MAX: all, as without LIMIT.
uint64_t WantedRows(const Section& s, uint64_t made);
/// Units of a stream that run at a time: enough for all threads, few enough that what is under way stays small.
size_t StreamWindow(const RunState& state);

}  // namespace tessera::vm
