// The order of the filters and look-ups at the head of a program, and which join tables' bitmaps lie in shared memory.
// Private to kernels/plan/; any thread.
//
// Start at: OrderFilters.
#pragma once

#include <vector>

#include "kernels/plan/join_shape.h"
#include "kernels/plan/lower.h"
#include "vm/section_encoder.h"

namespace tessera::kernels {

/// The records of the tables that `code` probes; the smallest bitmaps that keep few rows go to shared memory.
std::vector<JoinRecord> PlanJoins(const std::vector<DeviceInstruction>& code,
                                  const std::vector<const JoinShape*>& joins);

/// The code begins with filters and look-ups that may come in any order: each drops rows and changes nothing else.
/// Those come first that drop most for their price. Where that leaves few rows, they are told to wait in a queue.
/// Returns the fraction of rows that all of them leave.
double OrderFilters(const vm::Section& section, const std::vector<double>& selectivities,
                    const std::vector<const vm::TabletEncoding*>& tablets, const std::vector<const JoinShape*>& joins,
                    const std::vector<JoinRecord>& records, bool queue, std::vector<DeviceInstruction>* code);

/// Bytes of a slot's codes in the tablet where they have most.
uint32_t CodeWidth(const std::vector<const vm::TabletEncoding*>& tablets, size_t slot);
/// Bytes of a join table that are looked at to find out what a key has: values, or bits where there are only these.
uint64_t ProbedBytes(const JoinRecord& record);

}  // namespace tessera::kernels
