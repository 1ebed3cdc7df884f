// Writes the records of kernels/launch/tablet_record.h on the host, from which the VM kernel reads an encoded tablet.
// Private to kernels/; any thread.
//
// Start at: FillRecord.
#pragma once

#include <cstdint>

#include "kernels/plan/launch_plan.h"
#include "kernels/unpack/bit_stream.h"

namespace tessera::kernels {

/// Device addresses of an encoded tablet's arrays; nullptr if not needed.
struct TabletAddresses {
  const uint8_t* const* codes;  ///< per slot: the chunk's streams
  const uint8_t* const* nulls;
  const BitStream* bits;       ///< per slot: what its codes are, if they are that
  const int64_t* const* maps;  ///< per slot
  const uint8_t* const* map_nulls;
  const uint8_t* const* sets;  ///< per predicate
};
/// Writes the SlotRecords, PredicateRecords and ProbeRecords of a tablet to `record`, plan.record.bytes long. REQUIRES:
/// it is aligned to 16 bytes.
void FillRecord(const vm::TabletEncoding& tablet, const LaunchPlan& plan, const TabletAddresses& addresses,
                uint8_t* record);

}  // namespace tessera::kernels
