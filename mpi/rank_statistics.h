// The statistics of all ranks put together, for EXPLAIN ANALYZE and --stats. Private to mpi/.
//
// Start at: MergeStatistics. Any thread.
#pragma once

#include <vector>

#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"
#include "vm/run/statistics.h"

namespace tessera {

/// Adds a rank's statistics of a section to those of other ranks, field by field as vm/program/section_statistics.def says.
/// `builds_join`: the section's sink is a join table.
void MergeSection(const vm::SectionStatistics& theirs, bool builds_join, vm::SectionStatistics* out);

/// `all`: what each rank measured, by rank, the master's first.
vm::RunStatistics MergeStatistics(const vm::Program& program, const Snapshot& snapshot,
                                  const std::vector<vm::RunStatistics>& all);

}  // namespace tessera
