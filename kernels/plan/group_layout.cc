#include "kernels/plan/group_layout.h"

#include <algorithm>

#include "vm/meaning/meaning.h"

namespace tessera::kernels {

using vm::Opcode;

namespace {

/// Bytes of an aggregate's state in a block's private groups; 0: private groups cannot have it.
uint32_t PrivateBytes(Opcode op) {
  uint32_t bytes = 0;
  vm::WithAggregate(op, [&]<class M>() { bytes = vm::PrivateStateBytes(M::kGroupState); });
  return bytes;
}

}  // namespace

uint32_t LayOutPrivate(const LoweredProgram& lowered, bool direct, uint32_t n, uint32_t at, Layout* layout,
                       std::vector<DeviceInstruction>* folds) {
  const uint32_t begin = at;
  if (layout != nullptr) layout->private_begin = layout->private_records = at;
  if (!direct) at += n * lowered.groups.record_words * 8;
  for (size_t k = 0; k < lowered.folds.size(); ++k) {
    const uint32_t bytes = PrivateBytes(lowered.folds[k].head.op);
    if (bytes == 0) continue;
    if (folds != nullptr) (*folds)[k].private_state = at;
    at += RoundUp(n * bytes, 16);
  }
  if (layout != nullptr) layout->private_slots = at;
  at += RoundUp(direct ? n : 2 * n * 4, 16);
  if (layout != nullptr) layout->private_seen = at;
  at += RoundUp(static_cast<uint32_t>(lowered.folds.size()) * n, 16);
  if (layout != nullptr) layout->private_end = at;
  return at - begin;
}

uint32_t PlanDirect(const LoweredProgram& lowered, const std::vector<const vm::TabletEncoding*>& tablets,
                    const std::vector<const JoinShape*>& joins, uint32_t most, DirectKey* keys) {
  if (lowered.keys.sources.empty() || lowered.keys.sources.size() > kMaxDirectKeys) return 0;
  for (const DeviceInstruction& fold : lowered.folds) {
    if (PrivateBytes(fold.head.op) == 0) return 0;
  }
  uint64_t domain = 1;
  for (size_t k = 0; k < lowered.keys.sources.size(); ++k) {
    const KeySource& source = lowered.keys.sources[k];
    if (source.source == OperandSource::kNone) return 0;
    const size_t slot = source.slot;
    int128_t low = kInt128Max, high = kInt128Min;
    bool nullable = false;
    if (source.source == OperandSource::kPayload) {
      const PayloadShape& payload = joins[slot]->payload[source.payload];
      if (payload.wide) return 0;
      nullable = payload.nullable;
      low = payload.low;
      high = payload.high;
    }
    for (const vm::TabletEncoding* t : tablets) {
      if (source.source != OperandSource::kSlot) break;
      const vm::SlotEncoding& b = t->slots[slot];
      const Chunk& chunk = *t->chunks[slot];
      nullable |= b.MayBeNull();
      if (b.all_null) continue;
      if (b.wide || chunk.type.IsFloat()) return 0;
      if (b.map != nullptr) {
        if (b.map_entries > 65536) return 0;  // too many to look through
        // The last entry is for NULL codes.
        for (uint64_t i = 0; i + 1 < b.map_entries; ++i) {
          low = std::min<int128_t>(low, b.map[i]);
          high = std::max<int128_t>(high, b.map[i]);
        }
      } else if (b.decode == vm::Decode::kConstant) {
        low = std::min<int128_t>(low, static_cast<int64_t>(b.base));
        high = std::max<int128_t>(high, static_cast<int64_t>(b.base));
      } else {
        low = std::min(low, chunk.min);
        high = std::max(high, chunk.max);
      }
    }
    if (low > high) low = high = 0;
    if (high - low >= most) return 0;
    keys[k] = {static_cast<int64_t>(low), static_cast<uint32_t>(domain), nullable ? 1u : 0u};
    domain *= static_cast<uint64_t>(high - low) + 1 + (nullable ? 1 : 0);
    if (domain > most) return 0;
  }
  return static_cast<uint32_t>(domain);
}

}  // namespace tessera::kernels
