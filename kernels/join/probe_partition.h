// The rows of a launch in the order of a join table's slots: when that is worth its time, and what the tablets become.
// README.md beside this file, Partitioned probes. No CUDA calls here. Private to kernels/.
//
// Start at: PlanProbePartition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/join/radix_partition.h"
#include "kernels/plan/launch_plan.h"
#include "tablet/chunk/chunk.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// The columns that a section reads of a launch's tablets, put together as one tablet: its codes are those of the
/// tablets plus RadixSource::add.
struct ProbePartition {
  int join = -1;                                   ///< -1: the launch reads its tablets
  RadixPartition radix;                            ///< all but addresses and blocks; rows == 0: it has been made
  std::vector<uint32_t> slots;                     ///< of the columns; the first ones are the keys
  std::vector<RadixSource> sources;                ///< [tablet][column]
  std::vector<uint32_t> first_tiles, tablet_rows;  ///< [tablet]
  std::vector<Chunk> chunks;                       ///< [slot], width 0 where nothing is read; `bound` points to them
  vm::TabletEncoding encoded;                      ///< what the launch reads instead
  uint64_t bytes = 0;                              ///< of device memory, for the columns
};

struct ProbePartitionQuestion {
  const vm::Section& section;
  const LoweredProgram& lowered;
  const LaunchPlan& plan;  ///< of the launch over its tablets
  const std::vector<const vm::TabletEncoding*>& tablets;
  const std::vector<const uint8_t*>& codes;  ///< [tablet][slot]: device addresses, nullptr if they are not read
  const std::vector<const JoinShape*>& joins;
  const vm::SectionEncoder& encoder;
  uint64_t cache_bytes = 0;  ///< of the device
  uint64_t room = 0;         ///< bytes of device memory that the partitions may take
  bool always = false;       ///< wherever it can be done, even where it does not pay
};
/// join < 0: no probe gains by it, or a column of the section cannot be moved (128 bits, text that is stored plain or
/// with dictionaries that differ).
Result<ProbePartition> PlanProbePartition(const ProbePartitionQuestion& q);

/// Whether rows may be brought into the order of a table's slots: as the setting says; if that is auto, if the table
/// does not stay in a device's L2 cache of `cache_bytes`.
bool MayOrder(vm::JoinPartitioning setting, const JoinRecord& record, uint64_t cache_bytes);
/// Sets the radix partitions of a table's slots, small enough to stay in the cache, and how rows find theirs:
/// first_values[k] is the value of the k-th key whose code is 0.
void SetKeys(const JoinRecord& record, const std::vector<uint64_t>& first_values, RadixPartition* p);

/// For EXPLAIN ANALYZE.
std::string Describe(const ProbePartition& p);

}  // namespace tessera::kernels
