// Probes of join tables: finding the matches of rows, keeping the rows that have one, going on to their next match.
// Members of Machine (machine.cuh); JoinRecord says how a join table is laid out.
//
// Apart because nothing else reads hash slots, and because what a match leaves behind (the row's cursor) is set here
// and only read elsewhere (FetchPayload, the queues).
//
// Start at: DoProbe.
#pragma once

#include <type_traits>

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/machine.cuh"
#include "kernels/device/ptx.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// Makes one number of each row's keys, in b.v. Returns the rows whose keys all lie in the table's ranges.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::JoinNumbers(const DeviceInstruction& in,
                                                                      const JoinRecord& join, OperandRows<R>& b) const {
  uint32_t inside = 0;
  if constexpr (kFull) {
    if (join.keys > 1 || join.hashed != 0) {
      inside = live;
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        uint64_t number = join.hashed != 0 ? static_cast<uint64_t>(join.low[0]) : 0;
#pragma unroll 1
        for (uint32_t k = 0; k < join.keys; ++k) {
          const uint32_t register_at = reinterpret_cast<const uint32_t*>(&in.low)[k];
          uint8_t* r = Register(register_at);
          bool valued = (*RegisterNulls(r, thread) >> i & 1) == 0;
          const uint64_t* words = RegisterWords(r, register_at, i);
          if (join.hashed != 0) {
            number = AddToKeyNumber(number, words[0]);
            if ((register_at & kWideRegister) != 0) number = AddToKeyNumber(number, words[1]);
          } else {
            const uint64_t part = words[0] - static_cast<uint64_t>(join.low[k]);
            valued &= part <= join.span[k];
            number += part * join.stride[k];
          }
          if (!valued) inside &= ~(1u << i);
        }
        RotateBy<1>(b.v);
        b.v[R - 1] = static_cast<int64_t>(number);
      }
      return inside;
    }
  }
  const uint64_t low = static_cast<uint64_t>(join.low[0]), span = join.span[0];
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) {
    const uint64_t number = static_cast<uint64_t>(b.v[i]) - low;
    inside |= static_cast<uint32_t>(number <= span) << i;
    b.v[i] = static_cast<int64_t>(number);
  }
  return inside & live & ~b.null;
}

/// Drops the rows whose keys are others than those of the row that their cursors point at: the hash is the same by chance.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::DropOtherKeys(const DeviceInstruction& in,
                                                                    const JoinRecord& join) {
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    const uint32_t row = CursorOf(join, i);
    if (row >= join.rows) continue;
    uint32_t wide = 0;
    bool same = true;
#pragma unroll 1
    for (uint32_t k = 0; k < join.keys; ++k) {
      const uint32_t register_at = reinterpret_cast<const uint32_t*>(&in.low)[k];
      const uint64_t* words = RegisterWords(Register(register_at), register_at, i);
      same &= static_cast<uint64_t>(__ldg(join.row_columns + k * join.row_capacity + row)) == words[0];
      if ((register_at & kWideRegister) == 0) continue;
      same &= static_cast<uint64_t>(__ldg(join.row_columns + (join.columns + wide++) * join.row_capacity + row)) ==
              words[1];
    }
    if (same) continue;
    SetCursor(join, i, kNowhere);
    live &= ~(1u << i);
  }
}

/// Replaces each row's slot number in `at` by the direct table's value there; by 0 if the row is not in `wanted`.
template <Variant kVariant, uint32_t R>
template <class T>
__device__ __forceinline__ void Machine<kVariant, R>::LookUpDirect(const void* values, uint32_t wanted,
                                                                   uint32_t (&at)[R]) {
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) {
    const uint32_t slot = at[i];
    at[i] = 0;
    if ((wanted >> i & 1) != 0) at[i] = __ldg(static_cast<const T*>(values) + slot);
  }
}

/// Keeps the rows of `found` whose slots in a direct table have a match, and sets their cursors. REQUIRES: the keys of
/// `found` are in the table's range.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::ProbePlaces(const JoinRecord& join, uint32_t found,
                                                                  uint32_t (&at)[R]) {
  if (join.bits != nullptr) {
    uint32_t pass = 0;
    if (join.shared_bits != kNowhere) {
      const uint32_t* bits = reinterpret_cast<const uint32_t*>(shared + join.shared_bits);
      // The keys of the others may lie outside. (Two loops take more registers than the full machine has.)
      if (!kFull && found != (1u << R) - 1) {
#pragma unroll
        for (uint32_t i = 0; i < R; ++i) at[i] = (found >> i & 1) != 0 ? at[i] : 0;
      }
#pragma unroll
      for (uint32_t i = R; i-- > 0;) {
        const uint32_t slot = !kFull || (found >> i & 1) != 0 ? at[i] : 0;
        pass = 2 * pass + (bits[slot >> 5] >> (slot & 31) & 1);
      }
    } else {
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        if ((found >> i & 1) != 0) pass |= (__ldg(join.bits + (at[i] >> 5)) >> (at[i] & 31) & 1) << i;
      }
    }
    found &= pass;
  }
  if (join.probe == ProbeKind::kBits) {
    live = found;
    return;
  }
  if (join.width == 1) {
    LookUpDirect<uint8_t>(join.values, found, at);
  } else if (join.width == 2) {
    LookUpDirect<uint16_t>(join.values, found, at);
  } else {
    LookUpDirect<uint32_t>(join.values, found, at);
  }
  SetCursors(join, at);
}

/// Keeps the rows whose value is not 0; the values become their cursors.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::SetCursors(const JoinRecord& join, const uint32_t (&value)[R]) {
  uint32_t matched = 0;
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) matched |= static_cast<uint32_t>(value[i] != 0) << i;
  live = matched;
  const uint32_t less = join.rows_in_values ? 1 : 0;
  if constexpr (kQueued) {
    if (join.queue_cursors == kNowhere) return;
    uint32_t cursors[R];
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) cursors[i] = value[i] - less;
    StoreCursors(join.queue_cursors, QueueAt() + entry, cursors);
  } else {
    if (join.cursors == kNowhere) return;
    if (kHasShortCursors && (join.cursors & kShortCursors) != 0) {
#pragma unroll
      for (uint32_t g = 0; g < R / 4; ++g) {
        const uint32_t first = __byte_perm(value[4 * g] - less, value[4 * g + 1] - less, 0x5410);
        const uint32_t second = __byte_perm(value[4 * g + 2] - less, value[4 * g + 3] - less, 0x5410);
        reinterpret_cast<uint2*>(shared + join.cursors - kShortCursors)[g * kThreads + thread] =
            make_uint2(first, second);
      }
      return;
    }
#pragma unroll
    for (uint32_t g = 0; g < R / 4; ++g) {
      reinterpret_cast<uint4*>(Cursors(join))[g * kThreads + thread] =
          make_uint4(value[4 * g] - less, value[4 * g + 1] - less, value[4 * g + 2] - less, value[4 * g + 3] - less);
    }
  }
}

/// A probe of a direct table with a narrow key, without making 64-bit values of the codes. Returns false if the key
/// must be fetched.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ bool Machine<kVariant, R>::ProbeAtOnce(const InstructionHead& head,
                                                                  const DeviceInstruction& in) {
  if (kQueued || head.source != OperandSource::kSlot) return false;
  const ProbeRecord& p = *reinterpret_cast<const ProbeRecord*>(Record() + in.state);
  const PredicateHead bound = LoadHead(p.head);
  if (bound.kind != PredicateKind::kRange) return false;
  const JoinRecord& join = Join(head.p1);
  if constexpr (!kQueued) {
    uint32_t at[R];
    LoadNarrow(stage + bound.stage, bound.width, thread, p.delta, at);
    uint32_t found = live;
    if (!p.is_inside) {
      const uint32_t span = static_cast<uint32_t>(join.span[0]);
      uint32_t inside = 0;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) inside |= static_cast<uint32_t>(at[i] <= span) << i;
      found &= inside;
    }
    ProbePlaces(join, found, at);
  }
  return true;
}

/// Looks for a key in one sector of a hashed table. Returns its value, 0 if it is not there; *ends: the search ends
/// here.
template <Variant kVariant, uint32_t R>
template <class Slot>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::FindInSector(uint4 first, uint4 second, uint64_t key,
                                                                       bool* ends) {
  const uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  uint32_t found, least;
  // (The value of a free slot is 0, whatever its key.)
  if constexpr (sizeof(Slot) == 16) {
    found = (first.x == low && first.y == high ? first.z : 0) | (second.x == low && second.y == high ? second.z : 0);
    least = min(first.z, second.z);
  } else {
    found = (first.x == low ? first.y : 0) | (first.z == low ? first.w : 0) | (second.x == low ? second.y : 0) |
            (second.z == low ? second.w : 0);
    least = min(min(first.y, first.w), min(second.y, second.w));
  }
  *ends = found != 0 || least == 0;
  return found;
}

/// Replaces the keys of `wanted` in b.v by their values in a table with open addressing; by 0 where there is no match.
/// Slot: uint2 or uint4, a free one has the value 0. Two rows are looked up together where there are registers for
/// that, so that their loads overlap. A step reads a whole sector of 32 bytes: slot by slot the instructions took
/// longer than the memory (16 M keys: 7.9 ms).
template <Variant kVariant, uint32_t R>
template <class Slot>
__device__ __forceinline__ void Machine<kVariant, R>::LookUpHashed(const JoinRecord& join, uint32_t wanted,
                                                                   OperandRows<R>& b) const {
  constexpr bool kWideKey = sizeof(Slot) == 16;
  constexpr uint32_t kTogether = kFull && !kQueued ? 1 : 2;  // more of them take more registers than there are
  constexpr uint32_t kSlots = 32 / sizeof(Slot);
  const uint4* sectors = static_cast<const uint4*>(join.values);
  const uint32_t shift = join.slot_shift;
  const uint32_t mask = join.slot_mask / kSlots;
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) {
    if ((wanted >> i & 1) == 0) b.v[i] = 0;
  }
#pragma unroll 1
  for (uint32_t g = 0; g < R; g += kTogether) {
    // (Taking a step for all 16 rows before the next step took 1.6 times as long for 16 M keys: lanes wait for the
    // longest search.)
    uint32_t left = wanted >> g & ((1u << kTogether) - 1);
#pragma unroll 1
    for (uint32_t step = 0; left != 0; ++step) {
      uint4 first[kTogether], second[kTogether];
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        const uint64_t key = static_cast<uint64_t>(b.v[e]);
        const uint32_t home = kWideKey ? JoinSlot64(key, shift) : JoinSlot32(static_cast<uint32_t>(key), shift);
        const uint4* at = sectors + 2 * static_cast<uint64_t>((home / kSlots + step) & mask);
        if ((left >> e & 1) != 0) {
          first[e] = __ldg(at);
          second[e] = __ldg(at + 1);
        }
      }
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        if ((left >> e & 1) == 0) continue;
        bool ends;
        const uint32_t found = FindInSector<Slot>(first[e], second[e], static_cast<uint64_t>(b.v[e]), &ends);
        if (!ends) continue;
        b.v[e] = found;
        left &= ~(1u << e);
      }
    }
    RotateBy<kTogether>(b.v);
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoProbe(const DeviceInstruction& in, OperandRows<R>& b) {
  const JoinRecord& join = Join(in.head.p1);
  if constexpr (kNestedLoops) {
    if (!kFull || join.probe == ProbeKind::kNestedLoop) {
      NestedLoopCursor all{0, join.rows};
      if (in.head.p1 == launch.grid.join) {
        all.row = Unit().part * launch.grid.part_rows;
        all.end = min(join.rows, all.row + Unit().count * launch.grid.part_rows);
      }
      if (all.row >= all.end) live = 0;
      if (join.cursors != kNowhere) *LoopCursor(join) = all;
      return;
    }
  }
  if constexpr (IsPairs(kVariant)) return;
  const uint32_t found = JoinNumbers(in, join, b);
  bool hashed = false;
  if constexpr (kJoins && !IsPairs(kVariant)) {
    hashed = join.probe == ProbeKind::kHash32;
    if (hashed) LookUpHashed<uint2>(join, found, b);
  }
  if constexpr (kFull) {
    if (join.probe == ProbeKind::kHash64) {
      LookUpHashed<uint4>(join, found, b);
      hashed = true;
    }
  }
  uint32_t at[R];
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) at[i] = static_cast<uint32_t>(b.v[i]);
  if (hashed) {
    SetCursors(join, at);
    if constexpr (kFull) {
      if (join.hashed != 0) DropOtherKeys(in, join);
    }
  } else {
    ProbePlaces(join, found, at);
  }
  if constexpr (HasAll(kVariant)) {
    if (join.match_bits != 0) SkipMatches(join);
  }
}

/// The row of the table that comes `steps` rows with the same key after `row`; kNowhere if there are fewer.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::MatchAfter(const JoinRecord& join, uint32_t row,
                                                                     uint32_t steps) {
#pragma unroll 1
  for (; steps > 0 && row < join.rows; --steps) row = join.next == nullptr ? kNowhere : __ldg(join.next + row) - 1;
  return row;
}

/// Takes each row to the first of its matches that belongs to the part of the tile.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::SkipMatches(const JoinRecord& join) {
  const uint32_t steps = PartNumber() >> join.match_shift & ((1u << join.match_bits) - 1);
  uint32_t* cursors = Cursors(join);
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    if ((live >> i & 1) == 0) continue;
    const uint32_t row = MatchAfter(join, cursors[RowOf(i)], steps);
    if (row >= join.rows) live &= ~(1u << i);
    cursors[RowOf(i)] = row;
  }
}

/// All rows stay; one without a match points at no row. Its table holds numbers of rows, see DeviceJoins::Fill.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoProbeOuter(const DeviceInstruction& in, OperandRows<R>& b) {
  const uint32_t all = live;
  DoProbe<meaning::Probe>(in, b);
  live = all;
  const JoinRecord& join = Join(in.head.p1);
  if (join.probe == ProbeKind::kNestedLoop && join.rows == 0 && join.cursors != kNowhere)
    *LoopCursor(join) = NestedLoopCursor{kNowhere, 0};
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoTestMatch(const DeviceInstruction& in, OperandRows<R>&) {
  const JoinRecord& join = Join(in.head.p1);
  if (join.probe == ProbeKind::kNestedLoop) {
    if (LoopCursor(join)->row >= join.rows) live = 0;
    return;
  }
  uint32_t pass = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) pass |= static_cast<uint32_t>(CursorOf(join, i) < join.rows) << i;
  live &= pass;
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoRefuse(const DeviceInstruction&, OperandRows<R>&) {
  failed |= live;
  failure = LaneError::kSeveralRows;
}

/// As DoNext, but a row that had a match stays for a turn in which it points at no row.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoNextOuter(const DeviceInstruction& in, OperandRows<R>& b) {
  DoNext<meaning::NextOuter>(in, b);
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoNext(const DeviceInstruction& in, OperandRows<R>&) {
  constexpr bool kOuter = std::is_same_v<M, meaning::NextOuter>;
  const JoinRecord& join = Join(in.head.p1);
  uint32_t* saved = MaskRegister(static_cast<uint32_t>(in.head.slot));
  live = *saved;
  uint32_t more = 0;
  uint32_t back = static_cast<uint32_t>(in.p3);
  if (!kFull || join.probe == ProbeKind::kNestedLoop) {
    NestedLoopCursor* at = LoopCursor(join);
    if (kOuter && at->row != kNowhere) more = live;
    if (at->row != kNowhere && ++at->row < at->end) {
      more = live;
    } else {
      at->row = kNowhere;
    }
    if (in.head.p1 == launch.grid.join && Unit().all != 0) back = static_cast<uint32_t>(in.low);
  } else {
    uint32_t* cursors = Cursors(join);
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if ((live >> i & 1) == 0) continue;
      const uint32_t row = cursors[RowOf(i)];
      const uint32_t after = row < join.rows ? MatchAfter(join, row, 1u << join.match_bits) : kNowhere;
      if (after == kNowhere && (!kOuter || row >= join.rows)) continue;
      cursors[RowOf(i)] = after;
      more |= 1u << i;
    }
  }
  live = more;
  *saved = more;
  if (__any_sync(kAllLanes, more != 0)) {
    // A long chain of matches must not delay a cancellation. The host's flag is in device memory, so one step in 32
    // looks at it.
    const uint32_t now = __shfl_sync(kAllLanes, static_cast<uint32_t>(clock()), 0);
    if ((now >> 4 & 31) == 0 && LoadRelaxed(&launch.state.control->stop) != 0 &&
        LoadRelaxed(&launch.state.control->reasons) == 0) {
      full = true;
      return;
    }
    next -= back * sizeof(DeviceInstruction);
  }
}

}  // namespace tessera::kernels
