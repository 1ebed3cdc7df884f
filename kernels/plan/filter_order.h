// The order of the filters and probes at the head of a program, and which join tables' bitmaps are in shared memory.
// Private to kernels/plan/; any thread.
//
// Start at: OrderFilters.
#pragma once

#include <vector>

#include "kernels/plan/join_shape.h"
#include "kernels/plan/lower.h"
#include "vm/encode/section_encoder.h"

namespace tessera::kernels {

/// The records of the tables that `code` probes. Small bitmaps that few rows pass go to shared memory, the smallest
/// first.
std::vector<JoinRecord> PlanJoins(const std::vector<DeviceInstruction>& code,
                                  const std::vector<const JoinShape*>& joins);

/// The code begins with filters and probes that may run in any order, because each only drops rows. Those that drop
/// most rows for their cost are put first. Where few rows are left, the rows wait in a queue (if `queue`). Returns the
/// fraction of rows that is left after all of them. `widths`: of CodeWidths.
double OrderFilters(const vm::Section& section, const std::vector<double>& selectivities,
                    const std::vector<uint32_t>& widths, const std::vector<const JoinShape*>& joins,
                    const std::vector<JoinRecord>& records, bool queue, std::vector<DeviceInstruction>* code);

/// By slot of the section, which has `slots`: the greatest width of its codes in these tablets, in bytes.
std::vector<uint32_t> CodeWidths(const std::vector<const vm::TabletEncoding*>& tablets, size_t slots);
/// Size of the part of a join table that probes read, in bytes: the values, or the bits if it has nothing else.
uint64_t ProbedBytes(const JoinRecord& record);

}  // namespace tessera::kernels
