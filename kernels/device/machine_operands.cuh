// The operands of an instruction: values and NULL bits of a slot, a register, a constant or a payload column, for the
// rows of a thread. Members of Machine (machine.cuh).
//
// Apart because all shapes get their operands here: those of 64 bits are fetched once, before the switch over opcodes,
// those of 128 bits row by row in the loops that need them.
//
// Start at: Fetch, FetchWide.
#pragma once

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/machine.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// Values and NULL bits of a 64-bit operand.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::Fetch(const DeviceInstruction& in,
                                                                const InstructionHead& head, int64_t (&v)[R]) const {
  if (head.source == OperandSource::kSlot) return FetchSlot(head.slot, v);
  if (head.source == OperandSource::kRegister) return FetchRegister(head.register_at, v);
  if constexpr (kJoins) {
    if (head.source == OperandSource::kPayload) return FetchPayload(in, head, v);
  }
  const int64_t constant = in.low;
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) v[i] = constant;
  return head.null_constant ? kAllRows : 0;
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::FetchCodes(const uint8_t* codes, uint32_t stage_offset,
                                                                 uint32_t width, uint64_t base, int64_t (&v)[R]) const {
  if constexpr (kQueued) {
    LoadCodesScattered<HasBits(kVariant)>(codes, width, QueuedRows() + entry, live, base, v);
  } else if (stage_offset != kNowhere) {
    LoadCodes<false>(stage + stage_offset, width, thread, live, base, v);
  } else {
    LoadCodes<true>(codes + static_cast<uint64_t>(tile->first) * width, width, thread, live, base, v);
  }
}

/// A slot's values and their NULL bits.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::FetchSlot(uint32_t number, int64_t (&v)[R]) const {
  const SlotRecord& s = Slot(number);
  const SlotHead head = LoadHead(s.head);
  const uint64_t base = s.base;
  if (head.width != 0) {
    FetchCodes(head.codes, head.stage, head.width, base, v);
  } else {
    asm volatile("");  // without it these 32 moves are made before every branch to the codes
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) v[i] = static_cast<int64_t>(base);
  }
  uint32_t nulls = head.all_null ? kAllRows : 0;
  if (head.may_be_null) {
    if (s.has_null_code) {
      const int64_t null_value = static_cast<int64_t>(s.null_code);  // base + NULL code; v[i] is base + code
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) nulls |= static_cast<uint32_t>(v[i] == null_value) << i;
    }
    if constexpr (!kQueued) {
      if (s.null_bytes != nullptr)
        nulls |= TestRange<true>(s.null_bytes + tile->first, 1, thread, live, 1, 254) & kAllRows;
    }
  }
  switch (head.decode) {
    case vm::Decode::kConstant:
    case vm::Decode::kFrame:
    case vm::Decode::kRaw:
      break;
    case vm::Decode::kFloat:
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) v[i] = ToBits(FromOrderedFloat(static_cast<uint64_t>(v[i])));
      break;
    case vm::Decode::kReal:
#pragma unroll
      for (uint32_t i = 0; i < R; ++i)
        v[i] = ToBits(static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(v[i]))));
      break;
    case vm::Decode::kMap:
    case vm::Decode::kMapRow: {
      const bool by_row = !kQueued && head.decode == vm::Decode::kMapRow;
      const int64_t* map = s.map;
      const uint8_t* map_null = s.map_null;
      const uint32_t wanted = live & ~nulls;  // codes of other rows may lie outside the map
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        if ((wanted >> i & 1) == 0) continue;
        const uint64_t at = by_row ? tile->first + RowOf(i) : static_cast<uint64_t>(v[i]);
        v[i] = __ldg(reinterpret_cast<const long long*>(map) + at);
        if (map_null != nullptr && __ldg(map_null + at) != 0) nulls |= 1u << i;
      }
      break;
    }
  }
  return nulls;
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::FetchRegister(uint32_t register_at, int64_t (&v)[R]) const {
  uint8_t* r = Register(register_at);
  const int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) v[i] = values[i * kThreads];
  return *RegisterNulls(r, thread);
}

/// The values that the rows' matches have in a payload column, and their NULL bits.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::FetchPayload(const DeviceInstruction& in,
                                                                       const InstructionHead& head,
                                                                       int64_t (&v)[R]) const {
  const JoinRecord& join = Join(head.slot);
  uint32_t nulls = 0;
  if constexpr (kNestedLoops) {
    if (!kFull || head.payload_of_nested_loop) {
      const uint32_t row = LoopCursor(join)->row;
      const uint8_t* null_bytes = reinterpret_cast<const uint8_t*>(in.high);
      const bool is_null = row >= join.rows || (null_bytes != nullptr && __ldg(null_bytes + row) != 0);
      const int64_t value = is_null ? 0 : __ldg(reinterpret_cast<const long long*>(in.low) + row);
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) v[i] = value;
      return is_null ? kAllRows : 0;
    }
  }
  if constexpr (IsPairs(kVariant)) return 0;
  if (head.payload_packed) {
    const uint32_t shift = static_cast<uint32_t>(in.high), mask = static_cast<uint32_t>(in.high >> 32);
    const uint32_t null_field = static_cast<uint32_t>(in.upper_low);
    const int64_t base = in.low;
#pragma unroll
    for (uint32_t g = 0; g < R / 4; ++g) {
      uint32_t cursor[4];
      LoadCursors(join, g, cursor);
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t field = cursor[e] >> shift & mask;
        nulls |= static_cast<uint32_t>(field == null_field) << (4 * g + e);
        v[4 * g + e] = base + field;
      }
    }
    return nulls;
  }
  const long long* column = reinterpret_cast<const long long*>(in.low);
  const uint8_t* null_bytes = reinterpret_cast<const uint8_t*>(in.high);
  const uint32_t rows = join.rows;
#pragma unroll
  for (uint32_t g = 0; g < R / 4; ++g) {
    uint32_t cursor[4];
    LoadCursors(join, g, cursor);
#pragma unroll
    for (uint32_t e = 0; e < 4; ++e) {
      const uint32_t i = 4 * g + e;
      v[i] = 0;
      // The cursor of a masked-off row may be any number; that of a live row without a match is beyond all rows.
      if (kFull && cursor[e] >= rows) nulls |= 1u << i;
      if ((live >> i & 1) == 0 || cursor[e] >= rows) continue;
      v[i] = __ldg(column + cursor[e]);
      if (null_bytes != nullptr) nulls |= static_cast<uint32_t>(__ldg(null_bytes + cursor[e]) != 0) << i;
    }
  }
  return nulls;
}

/// Cursors of the g-th group of rows.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::LoadCursors(const JoinRecord& join, uint32_t g,
                                                                  uint32_t (&cursor)[4]) const {
  if constexpr (kQueued) {
    LoadCursors(join.queue_cursors, QueueAt() + entry + 32 * 4 * g, cursor);
  } else if (kHasShortCursors && (join.cursors & kShortCursors) != 0) {
    const uint2 four = reinterpret_cast<const uint2*>(shared + join.cursors - kShortCursors)[g * kThreads + thread];
    cursor[0] = four.x & 0xFFFF, cursor[1] = four.x >> 16, cursor[2] = four.y & 0xFFFF, cursor[3] = four.y >> 16;
  } else {
    const uint4 four = reinterpret_cast<const uint4*>(Cursors(join))[g * kThreads + thread];
    cursor[0] = four.x, cursor[1] = four.y, cursor[2] = four.z, cursor[3] = four.w;
  }
}

/// Row i of an operand of class W.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ int128_t Machine<kVariant, R>::FetchWide(const DeviceInstruction& in, uint32_t i,
                                                                    bool* is_null) const {
  *is_null = false;
  if (in.head.wide_source == OperandSource::kConstant) {
    *is_null = in.head.null_constant;
    return Make128(in.high, in.low);
  }
  if (in.head.wide_source == OperandSource::kRegister) {
    uint8_t* r = Register(in.head.register_at);
    *is_null = (*RegisterNulls(r, thread) >> i & 1) != 0;
    const longlong2 v = RegisterValues<longlong2>(r, thread)[i * kThreads];
    return Make128(v.y, v.x);
  }
  if (in.head.wide_source == OperandSource::kPayload) {
    const JoinRecord& join = Join(in.head.slot);
    const uint32_t row = in.head.payload_of_nested_loop ? LoopCursor(join)->row : CursorOf(join, i);
    *is_null = row >= join.rows;
    if (*is_null) return 0;
    *is_null = in.high != 0 && __ldg(reinterpret_cast<const uint8_t*>(in.high) + row) != 0;
    return Make128(__ldg(reinterpret_cast<const long long*>(in.upper_low) + row),
                   __ldg(reinterpret_cast<const long long*>(in.low) + row));
  }
  const SlotRecord& s = Slot(in.head.slot);
  const SlotHead& head = s.head;
  uint64_t low = 0, high = 0;
  if (head.width != 0) {
    const uint8_t* const p = CodeOf(head, i);
    switch (head.width) {
      case 1:
        low = *p;
        break;
      case 2:
        low = *reinterpret_cast<const uint16_t*>(p);
        break;
      case 4:
        low = *reinterpret_cast<const uint32_t*>(p);
        break;
      case 8:
        low = *reinterpret_cast<const uint64_t*>(p);
        if (head.decode == vm::Decode::kRaw)
          high = static_cast<uint64_t>(__ldg(reinterpret_cast<const long long*>(s.map) + TabletRow(i)));
        break;
      default:
        low = reinterpret_cast<const uint64_t*>(p)[0];
        high = reinterpret_cast<const uint64_t*>(p)[1];
    }
  }
  *is_null = head.all_null ||
             (s.has_null_code && low == s.null_code && high == static_cast<uint64_t>(s.null_code_high)) ||
             (s.null_bytes != nullptr && s.null_bytes[TabletRow(i)] != 0);
  return vm::WrapAdd(Make128(static_cast<int64_t>(high), static_cast<int64_t>(low)),
                     Make128(s.base_high, static_cast<int64_t>(s.base)));
}

/// Row i of the second operand of an instruction. Row by row, because rows of a third operand would take 32 registers that
/// there are not.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ int64_t Machine<kVariant, R>::FetchSecond(const DeviceOperand& second, uint32_t i,
                                                                     bool* is_null) const {
  if (second.source == OperandSource::kConstant) {
    *is_null = second.null_constant;
    return second.constant;
  }
  if (second.source == OperandSource::kRegister) {
    uint8_t* r = Register(second.register_at);
    *is_null = (*RegisterNulls(r, thread) >> i & 1) != 0;
    return RegisterValues<int64_t>(r, thread)[i * kThreads];
  }
  const SlotRecord& s = Slot(second.slot);
  const SlotHead& head = s.head;
  uint64_t value = s.base;
  if (head.width != 0) {
    const uint8_t* const p = CodeOf(head, i);
    switch (head.width) {
      case 1:
        value += *p;
        break;
      case 2:
        value += *reinterpret_cast<const uint16_t*>(p);
        break;
      case 4:
        value += *reinterpret_cast<const uint32_t*>(p);
        break;
      default:
        value += *reinterpret_cast<const uint64_t*>(p);
    }
  }
  *is_null = head.all_null || (s.has_null_code && value == s.null_code) ||
             (s.null_bytes != nullptr && s.null_bytes[TabletRow(i)] != 0);
  if (*is_null) return 0;
  switch (head.decode) {
    case vm::Decode::kConstant:
    case vm::Decode::kFrame:
    case vm::Decode::kRaw:
      break;
    case vm::Decode::kFloat:
      return ToBits(FromOrderedFloat(value));
    case vm::Decode::kReal:
      return ToBits(static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(value))));
    case vm::Decode::kMap:
    case vm::Decode::kMapRow: {
      const uint64_t at = head.decode == vm::Decode::kMapRow ? TabletRow(i) : value;
      *is_null = s.map_null != nullptr && __ldg(s.map_null + at) != 0;
      return __ldg(reinterpret_cast<const long long*>(s.map) + at);
    }
  }
  return static_cast<int64_t>(value);
}

}  // namespace tessera::kernels
