#include "kernels/plan/narrow_codes.h"

#include "base/int128.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kMostBytes = 4;

}  // namespace

bool IsNarrowFilter(const vm::TabletEncoding& tablet, const vm::PredicateEncoding& predicate, bool is_staged) {
  using Kind = vm::PredicateEncoding::Kind;
  switch (predicate.kind) {
    case Kind::kAll:
    case Kind::kNone:
    case Kind::kNulls:
      return true;
    case Kind::kRange:
      return tablet.chunks[static_cast<size_t>(predicate.slot)]->width <= kMostBytes;
    case Kind::kSet:
      return predicate.by_row ||
             (is_staged && tablet.chunks[static_cast<size_t>(predicate.slot)]->width <= kMostBytes);
  }
  return false;
}

bool IsNarrowProbe(const vm::TabletEncoding& tablet, uint32_t slot, const JoinRecord& join, bool is_staged) {
  const vm::SlotEncoding& b = tablet.slots[slot];
  const Chunk& chunk = *tablet.chunks[slot];
  const bool direct = join.probe == ProbeKind::kBits || join.probe == ProbeKind::kDirect;
  if (!direct || join.keys != 1 || b.decode != vm::Decode::kFrame || b.MayBeNull() || b.wide || b.width < 1 ||
      b.width > kMostBytes || !is_staged)
    return false;
  // The least and greatest slot of the tablet's keys. Neither may wrap around, in 32 bits, to a slot of the table.
  const int128_t least = chunk.min - join.low[0], greatest = chunk.max - join.low[0];
  const int128_t around = int128_t{1} << 32;
  return least > static_cast<int128_t>(join.span[0]) - around && greatest < around;
}

}  // namespace tessera::kernels
