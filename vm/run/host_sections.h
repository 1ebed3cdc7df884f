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

  /// Runs the section over all of its source. Errors: those of its rows; kCancelled; kResource.
  Result<RowSet> Run(int number, SectionStatistics* stats);
  /// The same for a section without ORDER BY: its rows go to `stream` in order, as they come. Some units run at a time.
  /// A unit that has made very many rows waits until these have been taken.
  Status Stream(int number, RowStream* stream, SectionStatistics* stats);

  /// Indexes the rows of a join table, if the host probes it. REQUIRES: they are in the order of OrderJoin.
  Status IndexJoin(const Section& s, RowSet rows);

 private:
  Status MakeJoins(int number);
  Status MakeSource(int number);

  RunState& state_;
  const Placement& placement_;
};

/// Sorts a join table's rows by JoinSpec::order. Errors: kResource, more rows than an index can hold.
Status OrderJoin(const RunState& state, const Section& s, RowSet* rows);

// ---- The scan of a section, on one rank of many or in one process ---------------------------------------------------

/// Runs all units. kGroups: into scan->groups; otherwise their rows are appended to `rows`, in the order of the units.
Status RunAllUnits(RunState* state, Scan* scan, RowSet* rows);
/// How many more rows a section needs when it has made `made`. UINT64_MAX: all, for instance without LIMIT.
uint64_t WantedRows(const Section& s, uint64_t made);
/// Number of units of a stream that run at a time: enough for all threads, but few, so that few rows are held.
size_t StreamWindow(const RunState& state);

}  // namespace tessera::vm
