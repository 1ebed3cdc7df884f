// What the VM kernel reads of an encoded tablet, written on the host: the records of kernels/launch/tablet_record.h.
// Private to kernels/; any thread.
//
// Start at: FillRecord.
#pragma once

#include <cstdint>

#include "kernels/plan/launch_plan.h"

namespace tessera::kernels {

/// Device addresses of what an encoded tablet points to; nullptr where it is not needed.
struct TabletAddresses {
  const uint8_t* const* codes;  ///< per slot: the chunk's streams
  const uint8_t* const* nulls;
  const int64_t* const* maps;  ///< per slot
  const uint8_t* const* map_nulls;
  const uint8_t* const* sets;  ///< per predicate
};
/// Writes the SlotRecords, PredicateRecords and ProbeRecords of a tablet to `record`, plan.record_bytes long. REQUIRES:
/// it is aligned to 16 bytes.
void FillRecord(const vm::TabletEncoding& tablet, const LaunchPlan& plan, const TabletAddresses& addresses,
                uint8_t* record);

}  // namespace tessera::kernels
