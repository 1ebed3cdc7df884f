// Join tables that are too large for the device: their rows on the host, cut into spill partitions by ranges of one
// key, and how a section joins with one partition after the other. memory/README.md, Join tables that do not fit. No
// CUDA calls here. Private to kernels/.
//
// Start at: CutJoin, PlanPasses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/join/join_kernels.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {

/// A spill partition.
struct JoinPartition {
  int64_t low = INT64_MIN, high = INT64_MAX;  ///< keys of its rows; the first partition also has NULLs
  uint64_t first = 0, rows = 0;               ///< of JoinPartitions::rows
  std::vector<ColumnSummary> columns;         ///< of these rows, by column
};
struct JoinPartitions {
  size_t key = 0;  ///< the key whose ranges the partitions are
  vm::RowSet rows;
  std::vector<JoinPartition> parts;  ///< ascending, without gaps
};

/// Summaries of `count` rows from `first` on, by column.
std::vector<ColumnSummary> Summarize(const vm::RowSet& rows, uint64_t first, uint64_t count);

/// Cuts the rows of a join table with keys so that no partition has more than `most_rows`. The rows come in any number
/// of pieces. Errors: kResource: too many rows have the same key.
tessera::Result<JoinPartitions> CutJoin(std::vector<vm::RowSet> rows, const vm::Section& builder, uint64_t most_rows,
                                        ThreadPool* pool);

/// How a section is run with one partition of a join table after the other; its sink keeps what came before. Where a
/// row of the source without a match is gone for good, there is nothing to do: rows of other partitions find no match.
/// Elsewhere (outer, anti and mark joins) such rows must not get to the probe, and the program gets a filter for them
/// at its head.
struct PassPlan {
  int join = 0;
  bool filtered = false;
  uint16_t slot = 0;  ///< filtered: the key
};
/// `probe`: that of the section into the join table. Errors: kResource: the section cannot be run in passes.
tessera::Result<PassPlan> PlanPasses(const vm::Program& program, int section, const vm::SectionTraits& traits,
                                     const vm::ProbeTrait& probe, const JoinPartitions& parts);

/// Lets the section take only the rows of its source that belong to `part`; returns how many instructions it puts
/// before the section's own. (They are for the device, which compares the values of any 64-bit column as integers.)
uint32_t AddPartFilter(int section, const PassPlan& plan, const JoinPartition& part, vm::Program* program);

}  // namespace tessera::kernels
