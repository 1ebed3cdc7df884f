#include "kernels/plan/tablet_record.h"

#include <cstddef>
#include <new>

#include "kernels/launch/tablet_record.h"
#include "kernels/plan/narrow_codes.h"

namespace tessera::kernels {
namespace {

void FillSlot(const vm::SlotEncoding& b, size_t i, const LaunchPlan& plan, const TabletAddresses& addresses,
              SlotRecord* r) {
  r->head.codes = addresses.codes[i];
  // Codes that are not uploaded are not read, and must not be copied to the ring.
  r->head.width = r->head.codes != nullptr ? b.width : 0;
  r->head.stage = r->head.width != 0 ? plan.columns.stage_of_slot[i] : kNowhere;
  r->head.decode = b.decode;
  r->head.all_null = b.all_null;
  r->has_null_code = b.has_null_code && !b.all_null;
  r->null_bytes = addresses.nulls[i];
  r->head.may_be_null = r->has_null_code || r->null_bytes != nullptr;
  r->map = addresses.maps[i];
  r->map_null = addresses.map_nulls[i];
  if (b.all_null) r->head.decode = vm::Decode::kConstant;
  // Maps are indexed by codes; their slots have no base.
  r->base = b.decode == vm::Decode::kMap || b.decode == vm::Decode::kMapRow ? 0 : b.base;
  r->base_high = b.base_high;
  r->null_code = b.wide ? b.null_code : r->base + b.null_code;
  if (const BitStream& bits = addresses.bits[i]; bits.at != nullptr && r->head.width != 0) {
    r->head.width = static_cast<uint8_t>(kOfBits + bits.bits);
    r->base += bits.base;
  }
  r->null_code_high = b.width == 16 ? b.null_code_high : 0;
}

/// A predicate that a byte for each row decides: nonzero for those that pass.
void FillByteTest(const uint8_t* bytes, bool negated, PredicateRecord* r) {
  r->head.kind = PredicateKind::kRange;
  r->head.codes = bytes;
  r->head.width = 1;
  r->head.negated = negated;
  r->low = 1, r->span = 254;
}

void FillRange(const vm::PredicateEncoding& p, const Chunk& chunk, PredicateRecord* r) {
  r->head.kind = PredicateKind::kRange;
  r->head.negated = p.negated;
  r->head.exclude_null = p.exclude_null;
  r->low = p.low, r->low_high = p.low_high;
  r->span = p.span, r->span_high = p.span_high;
  r->null_code = chunk.width == 16 ? static_cast<uint64_t>(Low64(chunk.null_code_wide)) : chunk.null_code;
  r->null_code_high = chunk.width == 16 ? High64(chunk.null_code_wide) : 0;
  if (chunk.width > 2) return;
  const uint64_t mask = (uint64_t{1} << (8 * chunk.width)) - 1;
  r->low &= mask;
  r->span &= mask;
  if (r->span == mask) {
    r->low = 0;
  } else if (r->low + r->span > mask) {  // wraps around, but its complement does not
    const uint64_t low = (r->low + r->span + 1) & mask;
    r->span = mask - 1 - r->span;
    r->low = low;
    r->head.negated = !r->head.negated;
  }
}

/// `set`: of the predicate.
void FillPredicate(const vm::PredicateEncoding& p, const Chunk& chunk, const LaunchPlan& plan,
                   const TabletAddresses& addresses, const uint8_t* set, PredicateRecord* r) {
  using Kind = vm::PredicateEncoding::Kind;
  const size_t slot = static_cast<size_t>(p.slot);
  switch (p.kind) {
    case Kind::kAll:
      r->head.kind = PredicateKind::kAll;
      return;
    case Kind::kNone:
      r->head.kind = PredicateKind::kNone;
      return;
    case Kind::kNulls:
      return FillByteTest(addresses.nulls[slot], p.negated, r);
    case Kind::kSet:
      if (p.by_row) return FillByteTest(set, false, r);
      r->head.kind = PredicateKind::kSet;
      r->set = set;
      break;
    case Kind::kRange:
      FillRange(p, chunk, r);
      break;
  }
  r->head.codes = addresses.codes[slot];
  r->head.width = chunk.width;
  r->head.stage = plan.columns.stage_of_slot[slot];
}

void FillProbe(const vm::TabletEncoding& tablet, const PlannedRecord::Probe& probe, const LaunchPlan& plan,
               const TabletAddresses& addresses, ProbeRecord* r) {
  const bool is_staged = plan.columns.stage_of_slot[probe.slot] != kNowhere && addresses.codes[probe.slot] != nullptr;
  if (!IsNarrowProbe(tablet, probe.slot, plan.joins[probe.join], is_staged)) return;
  const vm::SlotEncoding& b = tablet.slots[probe.slot];
  r->head.kind = PredicateKind::kRange;
  r->head.codes = addresses.codes[probe.slot];
  r->head.stage = plan.columns.stage_of_slot[probe.slot];
  r->head.width = b.width;
  const JoinRecord& join = plan.joins[probe.join];
  const Chunk& chunk = *tablet.chunks[probe.slot];
  r->delta = static_cast<uint32_t>(b.base - static_cast<uint64_t>(join.low[0]));
  r->is_inside = chunk.min >= join.low[0] && chunk.max - join.low[0] <= static_cast<int128_t>(join.span[0]);
}

/// A new record at *at, which moves on to after it.
template <class T>
T* Next(uint8_t** at) {
  T* const record = new (*at) T;
  *at += sizeof(T);
  return record;
}

}  // namespace

void FillRecord(const vm::TabletEncoding& tablet, const LaunchPlan& plan, const TabletAddresses& addresses,
                uint8_t* record) {
  for (size_t i = 0; i < tablet.slots.size(); ++i)
    FillSlot(tablet.slots[i], i, plan, addresses, Next<SlotRecord>(&record));
  for (size_t i = 0; i < tablet.predicates.size(); ++i) {
    const vm::PredicateEncoding& p = tablet.predicates[i];
    FillPredicate(p, *tablet.chunks[static_cast<size_t>(p.slot)], plan, addresses, addresses.sets[i],
                  Next<PredicateRecord>(&record));
  }
  for (const PlannedRecord::Probe& probe : plan.record.probes)
    FillProbe(tablet, probe, plan, addresses, Next<ProbeRecord>(&record));
}

}  // namespace tessera::kernels
