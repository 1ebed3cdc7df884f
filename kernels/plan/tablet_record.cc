#include "kernels/plan/tablet_record.h"

#include <new>

#include "kernels/launch/tablet_record.h"

namespace tessera::kernels {

void FillRecord(const vm::TabletEncoding& tablet, const LaunchPlan& plan, const TabletAddresses& addresses,
                uint8_t* record) {
  for (size_t i = 0; i < tablet.slots.size(); ++i) {
    const vm::SlotEncoding& b = tablet.slots[i];
    SlotRecord& r = *new (record + i * sizeof(SlotRecord)) SlotRecord;
    r.head.codes = addresses.codes[i];
    // Codes that are not uploaded are not read, and must not be copied to the ring.
    r.head.width = r.head.codes != nullptr ? b.width : 0;
    r.head.stage = r.head.width != 0 ? plan.columns.stage_of_slot[i] : kNowhere;
    r.head.decode = b.decode;
    r.head.all_null = b.all_null;
    r.has_null_code = b.has_null_code && !b.all_null;
    r.null_bytes = addresses.nulls[i];
    r.head.may_be_null = r.has_null_code || r.null_bytes != nullptr;
    r.map = addresses.maps[i];
    r.map_null = addresses.map_nulls[i];
    if (b.all_null) r.head.decode = vm::Decode::kConstant;
    // Maps are indexed by codes; their slots have no base.
    r.base = b.decode == vm::Decode::kMap || b.decode == vm::Decode::kMapRow ? 0 : b.base;
    r.base_high = b.base_high;
    r.null_code = b.wide ? b.null_code : r.base + b.null_code;
    if (const BitStream& bits = addresses.bits[i]; bits.at != nullptr && r.head.width != 0) {
      r.head.width = static_cast<uint8_t>(kOfBits + bits.bits);
      r.base += bits.base;
    }
    r.null_code_high = b.width == 16 ? b.null_code_high : 0;
  }
  record += tablet.slots.size() * sizeof(SlotRecord);
  for (size_t i = 0; i < tablet.predicates.size(); ++i) {
    const vm::PredicateEncoding& p = tablet.predicates[i];
    const size_t slot = static_cast<size_t>(p.slot);
    const Chunk& chunk = *tablet.chunks[slot];
    using Kind = vm::PredicateEncoding::Kind;
    PredicateRecord& r = *new (record + i * sizeof(PredicateRecord)) PredicateRecord;
    switch (p.kind) {
      case Kind::kAll:
      case Kind::kNone:
        r.head.kind = p.kind == Kind::kAll ? PredicateKind::kAll : PredicateKind::kNone;
        break;
      case Kind::kNulls:
        r.head.kind = PredicateKind::kRange;
        r.head.codes = addresses.nulls[slot];
        r.head.width = 1;
        r.head.negated = p.negated;
        r.low = 1, r.span = 254;
        break;
      case Kind::kSet:
        r.head.kind = p.by_row ? PredicateKind::kRange : PredicateKind::kSet;
        if (p.by_row) {
          r.head.codes = addresses.sets[i];
          r.head.width = 1;
          r.low = 1, r.span = 254;
        } else {
          r.head.codes = addresses.codes[slot];
          r.head.width = chunk.width;
          r.head.stage = plan.columns.stage_of_slot[slot];
          r.set = addresses.sets[i];
        }
        break;
      case Kind::kRange: {
        r.head.kind = PredicateKind::kRange;
        r.head.codes = addresses.codes[slot];
        r.head.width = chunk.width;
        r.head.stage = plan.columns.stage_of_slot[slot];
        r.head.negated = p.negated;
        r.head.exclude_null = p.exclude_null;
        r.low = p.low, r.low_high = p.low_high;
        r.span = p.span, r.span_high = p.span_high;
        r.null_code = chunk.width == 16 ? static_cast<uint64_t>(Low64(chunk.null_code_wide)) : chunk.null_code;
        r.null_code_high = chunk.width == 16 ? High64(chunk.null_code_wide) : 0;
        if (chunk.width <= 2) {
          const uint64_t mask = (uint64_t{1} << (8 * chunk.width)) - 1;
          r.low &= mask;
          r.span &= mask;
          if (r.span == mask) {
            r.low = 0;
          } else if (r.low + r.span > mask) {  // wraps around, but its complement does not
            const uint64_t low = (r.low + r.span + 1) & mask;
            r.span = mask - 1 - r.span;
            r.low = low;
            r.head.negated = !r.head.negated;
          }
        }
        break;
      }
    }
  }
  record += tablet.predicates.size() * sizeof(PredicateRecord);
  for (size_t i = 0; i < plan.record.probes.size(); ++i) {
    const PlannedRecord::Probe& probe = plan.record.probes[i];
    const JoinRecord& join = plan.joins[probe.join];
    const vm::SlotEncoding& b = tablet.slots[probe.slot];
    const Chunk& chunk = *tablet.chunks[probe.slot];
    ProbeRecord& r = *new (record + i * sizeof(ProbeRecord)) ProbeRecord;
    const bool direct = join.probe == ProbeKind::kBits || join.probe == ProbeKind::kDirect;
    // The least and greatest slot of the tablet's keys. Neither may wrap around, in 32 bits, to a slot of the table.
    const int128_t least = chunk.min - join.low[0], greatest = chunk.max - join.low[0];
    const int128_t around = int128_t{1} << 32;
    if (direct && join.keys == 1 && b.decode == vm::Decode::kFrame && !b.MayBeNull() && !b.wide && b.width >= 1 &&
        b.width <= 4 && addresses.codes[probe.slot] != nullptr && plan.columns.stage_of_slot[probe.slot] != kNowhere &&
        least > static_cast<int128_t>(join.span[0]) - around && greatest < around) {
      r.head.kind = PredicateKind::kRange;
      r.head.codes = addresses.codes[probe.slot];
      r.head.stage = plan.columns.stage_of_slot[probe.slot];
      r.head.width = b.width;
      r.delta = static_cast<uint32_t>(b.base - static_cast<uint64_t>(join.low[0]));
    }
  }
}

}  // namespace tessera::kernels
