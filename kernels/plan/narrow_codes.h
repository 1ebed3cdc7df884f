// Which filters and probes the VM kernel can do on the codes of a tablet as they lie in the ring, without making values of
// 64 bits of them. Private to kernels/plan/; any thread.
//
// Start at: IsNarrowFilter, IsNarrowProbe.
#pragma once

#include <cstdint>

#include "kernels/launch/join_record.h"
#include "vm/encode/section_encoder.h"

namespace tessera::kernels {

/// `is_staged`: the codes are in the ring.
bool IsNarrowFilter(const vm::TabletEncoding& tablet, const vm::PredicateEncoding& predicate, bool is_staged);
/// A probe with the column of a slot as key.
bool IsNarrowProbe(const vm::TabletEncoding& tablet, uint32_t slot, const JoinRecord& join, bool is_staged);

}  // namespace tessera::kernels
