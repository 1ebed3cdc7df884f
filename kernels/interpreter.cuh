// The VM kernel: a producer warp feeds tiles into the ring, interpreter warps run the program over their slices of each tile.
// README.md beside this describes the machine; opcodes.def lists the instructions, vm/meaning.h says what they mean.
//
// One switch, expanded from the opcode table, calls one loop per shape, instantiated with the opcode's meaning. All lanes of a warp take
// the same way through it; warps of a block do not wait for each other, so a warp's slice (512 rows) is what is applied
// wholly or not at all. Accumulator A and the operand are arrays of 16 registers: every index must be a constant after unrolling, or
// they move to local memory. Long meanings therefore run in loops that rotate the array past its first element.
//
// Start at: VmKernel.
#pragma once

#include <type_traits>

#include "kernels/group_table.cuh"
#include "kernels/machine.h"
#include "kernels/ring.cuh"
#include "vm/meaning.h"

namespace tessera::kernels {

namespace meaning = vm::meaning;
using vm::Lane;
using vm::LaneError;

/// Three blocks of 5 warps put 4 warps on each quarter of a multiprocessor and leave 128 registers a thread, just enough for all
/// opcodes. Four put 5 there and leave 96.
inline constexpr uint32_t kFullBlocks = 3;
inline constexpr uint32_t kLeanBlocks = 4;

inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;
inline constexpr uint32_t kAllRows = 0xFFFFu;

/// Meanings of more than some 30 machine instructions: unrolled 16 times they would crowd the instruction cache, and their
/// temporaries would cost every opcode registers.
template <class M>
inline constexpr bool kLong = false;
template <> inline constexpr bool kLong<meaning::MulIX> = true;
template <> inline constexpr bool kLong<meaning::DivI> = true;
template <> inline constexpr bool kLong<meaning::ModI> = true;
template <> inline constexpr bool kLong<meaning::DivRoundI> = true;
template <> inline constexpr bool kLong<meaning::FloorDivI> = true;
template <> inline constexpr bool kLong<meaning::AddMonthsD> = true;
template <> inline constexpr bool kLong<meaning::AddMonthsT> = true;
template <> inline constexpr bool kLong<meaning::DatePartD> = true;
template <> inline constexpr bool kLong<meaning::DatePartT> = true;
template <> inline constexpr bool kLong<meaning::DivF> = true;
template <> inline constexpr bool kLong<meaning::ModF> = true;
template <> inline constexpr bool kLong<meaning::RoundDigitsF> = true;

template <class T>
__device__ __forceinline__ T FromBits(int64_t v) {
  if constexpr (std::is_same_v<T, double>) {
    return __longlong_as_double(v);
  } else {
    return v;
  }
}
__device__ __forceinline__ int64_t ToBits(int64_t v) { return v; }
__device__ __forceinline__ int64_t ToBits(double v) { return __double_as_longlong(v); }

template <class T>
inline constexpr bool kIsWide = std::is_same_v<T, int128_t>;

template <class T>
__device__ __forceinline__ T ShuffleXor(T v, int d) {
  if constexpr (kIsWide<T>) {
    return Make128(__shfl_xor_sync(kAllLanes, High64(v), d), __shfl_xor_sync(kAllLanes, Low64(v), d));
  } else {
    return __shfl_xor_sync(kAllLanes, v, d);
  }
}

/// An aggregate state in a Partial, and back.
template <class State>
__device__ __forceinline__ State StateOf(const Partial& p) {
  if constexpr (kIsWide<State>) {
    return Make128(p.high, p.low);
  } else {
    return FromBits<State>(p.low);
  }
}
template <class State>
__device__ __forceinline__ void SetState(Partial* p, State s) {
  if constexpr (kIsWide<State>) {
    p->low = Low64(s);
    p->high = High64(s);
  } else {
    p->low = ToBits(s);
  }
}

/// What a thread fetched for an instruction: its 16 rows' values (doubles as bits) and NULL bits.
struct OperandRows {
  int64_t v[kRows];
  uint32_t null;
};

/// A head of 16 bytes in one load.
template <class Head>
__device__ __forceinline__ Head LoadHead(const Head& head) {
  static_assert(sizeof(Head) == 16 && alignof(Head) == 16);
  const uint4 raw = *reinterpret_cast<const uint4*>(&head);
  return __builtin_bit_cast(Head, raw);
}

/// threadIdx.x, read anew: what is computed from it cannot be moved out of the loop over instructions, where it would hold a
/// register for each address that any opcode uses (24 registers, measured with ptxas for sm_90).
__device__ __forceinline__ uint32_t ReadThread() {
  uint32_t t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
}

template <class V>
__device__ __forceinline__ void RotateBy1(V (&v)[kRows]) {
#pragma unroll
  for (uint32_t i = 0; i + 1 < kRows; ++i) v[i] = v[i + 1];
}
/// The first four rows go to the end.
template <class V>
__device__ __forceinline__ void RotateBy4(V (&v)[kRows]) {
  const V v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
#pragma unroll
  for (uint32_t i = 0; i + 4 < kRows; ++i) v[i] = v[i + 4];
  v[kRows - 4] = v0, v[kRows - 3] = v1, v[kRows - 2] = v2, v[kRows - 1] = v3;
}

/// The thread's vectors of a stream: part i of the vectors of row group g is [g][i]. kOnDemand: the stream is in device memory, and only
/// groups of four rows with a live one are read (the others are zeros); otherwise it is in the ring. All loads come before the first use.
template <bool kOnDemand, class V, uint32_t kEach = 1>
struct OwnVectors {
  V at[4][kEach];

  __device__ __forceinline__ OwnVectors(const uint8_t* stream, uint32_t thread, uint32_t live) {
    const V* p = reinterpret_cast<const V*>(stream) + thread * kEach;
    // Or else index and thread are added first, two more instructions a load. (A shared address must stay known as one.)
    if constexpr (kOnDemand) asm("" : "+l"(p));
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
#pragma unroll
      for (uint32_t i = 0; i < kEach; ++i) {
        const V* from = p + g * kThreads * kEach + i;
        if constexpr (kOnDemand) {
          at[g][i] = V{};
          if ((live >> (4 * g) & 15) != 0) at[g][i] = __ldg(from);
        } else {
          at[g][i] = *from;
        }
      }
    }
  }
};

/// base + code for the thread's rows; codes have `width` bytes (not 16).
template <bool kOnDemand>
__device__ __forceinline__ void LoadCodes(const uint8_t* p, uint32_t width, uint32_t thread, uint32_t live, uint64_t base, int64_t (&v)[kRows]) {
  auto set = [&](uint32_t i, uint64_t code) { v[i] = static_cast<int64_t>(base + code); };
  switch (width) {
    case 1: {
      const OwnVectors<kOnDemand, uint32_t> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        const uint32_t c = codes.at[g][0];
        set(4 * g, c & 255), set(4 * g + 1, c >> 8 & 255), set(4 * g + 2, c >> 16 & 255), set(4 * g + 3, c >> 24);
      }
      break;
    }
    case 2: {
      const OwnVectors<kOnDemand, uint2> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        const uint2 c = codes.at[g][0];
        set(4 * g, c.x & 65535), set(4 * g + 1, c.x >> 16), set(4 * g + 2, c.y & 65535), set(4 * g + 3, c.y >> 16);
      }
      break;
    }
    case 4: {
      const OwnVectors<kOnDemand, uint4> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        const uint4 c = codes.at[g][0];
        set(4 * g, c.x), set(4 * g + 1, c.y), set(4 * g + 2, c.z), set(4 * g + 3, c.w);
      }
      break;
    }
    default: {
      const OwnVectors<kOnDemand, ulonglong2, 2> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        set(4 * g, codes.at[g][0].x), set(4 * g + 1, codes.at[g][0].y);
        set(4 * g + 2, codes.at[g][1].x), set(4 * g + 3, codes.at[g][1].y);
      }
    }
  }
}

/// mask = 2 * mask + (x > ~not_span): the carry of an addition goes straight into the mask. Two instructions; a comparison, a selection
/// and the merging of bits take four.
__device__ __forceinline__ void ShiftIn(uint32_t& mask, uint32_t x, uint32_t not_span) {
  asm("{\n .reg .u32 sum;\n add.cc.u32 sum, %1, %2;\n addc.u32 %0, %0, %0;\n}" : "+r"(mask) : "r"(x), "r"(not_span));
}

/// One bit a row: low <= code <= low + span, for codes of 1, 2 or 4 bytes. A code of 1 or 2 bytes is compared where it stands at the top
/// of a word, with whatever lies below it: one multiplication shifts it there and subtracts the bound. Rows that are not read get any bit.
template <bool kOnDemand>
__device__ __forceinline__ uint32_t TestRange(const uint8_t* p, uint32_t width, uint32_t thread, uint32_t live, uint32_t low, uint32_t span) {
  uint32_t fail = 0;
  if (width == 1) {
    const uint32_t top_low = low << 24, not_span = ~(span << 24 | 0xFFFFFF);
    const OwnVectors<kOnDemand, uint32_t> codes(p, thread, live);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint32_t c = codes.at[g][0];
      uint32_t bits = 0;
      ShiftIn(bits, c - top_low, not_span);
      ShiftIn(bits, c * 0x100u - top_low, not_span);
      ShiftIn(bits, c * 0x10000u - top_low, not_span);
      ShiftIn(bits, c * 0x1000000u - top_low, not_span);
      fail |= bits << (4 * g);
    }
  } else if (width == 2) {
    const uint32_t top_low = low << 16, not_span = ~(span << 16 | 0xFFFF);
    const OwnVectors<kOnDemand, uint2> codes(p, thread, live);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint2 c = codes.at[g][0];
      uint32_t bits = 0;
      ShiftIn(bits, c.y - top_low, not_span);
      ShiftIn(bits, c.y * 0x10000u - top_low, not_span);
      ShiftIn(bits, c.x - top_low, not_span);
      ShiftIn(bits, c.x * 0x10000u - top_low, not_span);
      fail |= bits << (4 * g);
    }
  } else {
    const uint32_t not_span = ~span;
    const OwnVectors<kOnDemand, uint4> codes(p, thread, live);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint4 c = codes.at[g][0];
      uint32_t bits = 0;
      ShiftIn(bits, c.w - low, not_span);
      ShiftIn(bits, c.z - low, not_span);
      ShiftIn(bits, c.y - low, not_span);
      ShiftIn(bits, c.x - low, not_span);
      fail |= bits << (4 * g);
    }
  }
  return ~fail;
}

/// The machine of one thread: 16 rows of a tile. kFull: everything. Otherwise the opcodes of IsLean, no sink that can run full (no keys, or
/// direct ones), and program, record and registers in shared memory.
template <bool kFull>
struct Machine {
  const Launch& launch;
  uint8_t* shared;
  uint32_t thread;

  // The tile.
  const TileHeader* tile;
  const uint8_t* stage;
  const uint8_t* record;  ///< kFull; otherwise it is at the head of the stage

  // The rows: bit i of a word is row RowOf(i).
  int64_t a[kRows];
  uint32_t live, null, null_w;

  uint32_t next;  ///< byte offset of the next instruction in the code
  bool ended;
  // The instruction: rows that it failed on, and why.
  uint32_t failed;
  LaneError failure;

  // The sink.
  bool reserve;           ///< first of two passes: groups are made and rows counted, nothing is applied
  bool full;              ///< the sink has no room for this slice

  __device__ __forceinline__ bool IsReserving() const { return kFull && reserve; }
  __device__ __forceinline__ bool IsFull() const { return kFull && full; }
  __device__ __forceinline__ uint32_t RowOf(uint32_t i) const { return (i >> 2) * (4 * kThreads) + thread * 4 + (i & 3); }
  __device__ __forceinline__ uint32_t Lane32() const { return thread & 31; }

  __device__ __forceinline__ const uint8_t* Record() const {
    if constexpr (kFull) {
      return record;
    } else {
      return stage;
    }
  }
  __device__ __forceinline__ const SlotRecord& Slot(uint32_t i) const { return reinterpret_cast<const SlotRecord*>(Record())[i]; }
  __device__ __forceinline__ const PredicateRecord& Predicate(uint32_t i) const {
    return reinterpret_cast<const PredicateRecord*>(Record() + launch.slots * sizeof(SlotRecord))[i];
  }
  __device__ __forceinline__ uint32_t* MaskRegister(uint32_t i) const {
    return reinterpret_cast<uint32_t*>(shared + launch.layout.masks) + i * kThreads + thread;
  }
  __device__ __forceinline__ uint8_t* Register(uint32_t place) const {
    uint8_t* base = shared;
    if constexpr (kFull) {
      if ((place & kInScratch) != 0) base = launch.scratch + blockIdx.x * launch.scratch_bytes;
    }
    return base + (place & kPlaceOffset);
  }
  static __device__ __forceinline__ uint32_t* RegisterNulls(uint8_t* r, uint32_t thread) { return reinterpret_cast<uint32_t*>(r) + thread; }
  /// The value of row i is [i * kThreads].
  template <class T>
  static __device__ __forceinline__ T* RegisterValues(uint8_t* r, uint32_t thread) {
    return reinterpret_cast<T*>(r + kThreads * 4) + thread;
  }
  __device__ __forceinline__ longlong2* Wide() const { return reinterpret_cast<longlong2*>(shared + launch.layout.wide) + thread; }
  __device__ __forceinline__ int128_t LoadWide(uint32_t i) const {
    const longlong2 v = Wide()[i * kThreads];
    return Make128(v.y, v.x);
  }
  __device__ __forceinline__ void StoreWide(uint32_t i, int128_t v) const { Wide()[i * kThreads] = make_longlong2(Low64(v), High64(v)); }
  __device__ __forceinline__ const DeviceInstruction& Code(uint32_t offset) const {
    const uint8_t* code = shared + launch.layout.code;
    if constexpr (kFull) {
      if (launch.layout.code == kNowhere) code = reinterpret_cast<const uint8_t*>(launch.code);
    }
    return *reinterpret_cast<const DeviceInstruction*>(code + offset);
  }
  __device__ __forceinline__ WarpState* Warp() const {
    return reinterpret_cast<WarpState*>(shared + launch.layout.warps) + (thread >> 5);
  }
  __device__ __forceinline__ Partial* Aggregate(uint32_t aggregate) const {
    return reinterpret_cast<Partial*>(shared + launch.layout.warp_states) + (thread >> 5) * launch.aggregates + aggregate;
  }
  __device__ __forceinline__ uint32_t* Ordinals() const { return reinterpret_cast<uint32_t*>(shared + launch.layout.ordinals) + thread; }

  __device__ __forceinline__ void Note(uint32_t i, LaneError error) {
    if (error != LaneError::kNone) {
      failed |= 1u << i;
      failure = error;
    }
  }
  __device__ __forceinline__ void Stop(uint32_t reason) const {
    atomicOr(&launch.control->reasons, reason);
    atomicExch(&launch.control->stop, 1u);
  }

  // ---- Operands --------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ void FetchCodes(const uint8_t* codes, uint32_t stage_offset, uint32_t width, uint64_t base, int64_t (&v)[kRows]) const {
    if (stage_offset != kNowhere) {
      LoadCodes<false>(stage + stage_offset, width, thread, live, base, v);
    } else {
      LoadCodes<true>(codes + static_cast<uint64_t>(tile->first) * width, width, thread, live, base, v);
    }
  }

  /// A slot's values and their NULL bits.
  __device__ __forceinline__ uint32_t FetchSlot(uint32_t number, int64_t (&v)[kRows]) const {
    const SlotRecord& s = Slot(number);
    const SlotHead head = LoadHead(s.head);
    const uint64_t base = s.base;
    if (head.width != 0) {
      FetchCodes(head.codes, head.stage, head.width, base, v);
    } else {
      asm volatile("");  // or else these 32 moves are made before every branch to the codes
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) v[i] = static_cast<int64_t>(base);
    }
    uint32_t nulls = head.all_null ? kAllRows : 0;
    if (head.may_be_null) {
      if (s.has_null_code) {
        const int64_t null_value = static_cast<int64_t>(s.null_code);  // base + NULL code, as the values are so far
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) nulls |= static_cast<uint32_t>(v[i] == null_value) << i;
      }
      if (s.null_bytes != nullptr) {
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
        for (uint32_t i = 0; i < kRows; ++i) v[i] = ToBits(FromOrderedFloat(static_cast<uint64_t>(v[i])));
        break;
      case vm::Decode::kReal:
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) v[i] = ToBits(static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(v[i]))));
        break;
      case vm::Decode::kMap:
      case vm::Decode::kMapRow: {
        const bool by_row = head.decode == vm::Decode::kMapRow;
        const int64_t* map = s.map;
        const uint8_t* map_null = s.map_null;
        const uint32_t wanted = live & ~nulls;  // codes of other rows may lie outside the map
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) {
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

  /// Values and NULL bits of a 64-bit operand.
  __device__ __forceinline__ uint32_t Fetch(const DeviceInstruction& in, const InstructionHead& head, int64_t (&v)[kRows]) const {
    if (head.source == OperandSource::kSlot) return FetchSlot(head.slot, v);
    if (head.source == OperandSource::kRegister) return FetchRegister(head.place, v);
    const int64_t constant = in.low;
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) v[i] = constant;
    return head.null_constant ? kAllRows : 0;
  }

  __device__ __forceinline__ uint32_t FetchRegister(uint32_t place, int64_t (&v)[kRows]) const {
    uint8_t* r = Register(place);
    const int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) v[i] = values[i * kThreads];
    return *RegisterNulls(r, thread);
  }

  /// Row i of an operand of class W.
  __device__ __forceinline__ int128_t FetchWide(const DeviceInstruction& in, uint32_t i, bool* is_null) const {
    *is_null = false;
    if (in.head.wide_source == OperandSource::kConstant) {
      *is_null = in.head.null_constant;
      return Make128(in.high, in.low);
    }
    if (in.head.wide_source == OperandSource::kRegister) {
      uint8_t* r = Register(in.head.place);
      *is_null = (*RegisterNulls(r, thread) >> i & 1) != 0;
      const longlong2 v = RegisterValues<longlong2>(r, thread)[i * kThreads];
      return Make128(v.y, v.x);
    }
    const SlotRecord& s = Slot(in.head.slot);
    const SlotHead& head = s.head;
    uint64_t low = 0, high = 0;
    if (head.width != 0) {
      const uint8_t* p = head.stage != kNowhere ? stage + head.stage : head.codes + static_cast<uint64_t>(tile->first) * head.width;
      p += RowOf(i) * head.width;
      switch (head.width) {
        case 1: low = *p; break;
        case 2: low = *reinterpret_cast<const uint16_t*>(p); break;
        case 4: low = *reinterpret_cast<const uint32_t*>(p); break;
        case 8: low = *reinterpret_cast<const uint64_t*>(p); break;
        default:
          low = reinterpret_cast<const uint64_t*>(p)[0];
          high = reinterpret_cast<const uint64_t*>(p)[1];
      }
    }
    *is_null = head.all_null || (s.has_null_code && low == s.null_code && high == static_cast<uint64_t>(s.null_code_high)) ||
               (s.null_bytes != nullptr && s.null_bytes[tile->first + RowOf(i)] != 0);
    return vm::WrapAdd(Make128(static_cast<int64_t>(high), static_cast<int64_t>(low)), Make128(s.base_high, static_cast<int64_t>(s.base)));
  }

  // ---- One loop per shape ----------------------------------------------------------------------------------------------

  template <class M>
  __device__ __forceinline__ void DoEnd(const DeviceInstruction&, OperandRows&) {
    ended = true;
  }
  template <class M>
  __device__ __forceinline__ void DoSkipIfNone(const DeviceInstruction& in, OperandRows&) {
    if (!__any_sync(kAllLanes, live != 0)) next += (static_cast<uint32_t>(in.p3) - 1) * sizeof(DeviceInstruction);
  }
  // Joins: Gpu::CanRun refuses these so far.
  template <class M>
  __device__ __forceinline__ void DoNext(const DeviceInstruction&, OperandRows&) {}
  template <class M>
  __device__ __forceinline__ void DoProbe(const DeviceInstruction&, OperandRows&) {}
  template <class M>
  __device__ __forceinline__ void DoBuild(const DeviceInstruction&, OperandRows&) {}

  template <class M>
  __device__ __forceinline__ void DoMaskRegister(const DeviceInstruction& in, OperandRows&) {
    uint32_t* saved = MaskRegister(in.head.p1);
    uint32_t bits = *saved;
    M::Apply(live, bits);
    *saved = bits;
  }

  /// Filters whose codes had to be fetched as 64-bit values, or have 128.
  template <class M>
  __device__ __forceinline__ void DoFilter(const DeviceInstruction& in, OperandRows& b) {
    const PredicateRecord& p = Predicate(in.head.p1);
    uint32_t pass = 0;
    if (p.head.kind == PredicateKind::kSet) {
      const uint8_t* set = p.set;
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) {
        if ((live >> i & 1) != 0 && __ldg(set + b.v[i]) != 0) pass |= 1u << i;
      }
      live &= pass;
      return;
    }
    if (p.head.width == 8) {
      const uint64_t low = p.low, span = p.span, null_code = p.null_code;
      uint32_t nulls = 0;
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) {
        pass |= static_cast<uint32_t>(static_cast<uint64_t>(b.v[i]) - low <= span) << i;
        nulls |= static_cast<uint32_t>(static_cast<uint64_t>(b.v[i]) == null_code) << i;
      }
      if (p.head.negated) pass = ~pass;
      if (p.head.exclude_null) pass &= ~nulls;
      live &= pass;
      return;
    }
    const uint8_t* codes = p.head.stage != kNowhere ? stage + p.head.stage : p.head.codes + static_cast<uint64_t>(tile->first) * 16;
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) {
      if ((live >> i & 1) == 0) continue;
      const longlong2 c = reinterpret_cast<const longlong2*>(codes)[RowOf(i)];
      const uint128_t code = static_cast<uint128_t>(Make128(c.y, c.x));
      const uint128_t low = static_cast<uint128_t>(Make128(static_cast<int64_t>(p.low_high), static_cast<int64_t>(p.low)));
      const uint128_t span = static_cast<uint128_t>(Make128(static_cast<int64_t>(p.span_high), static_cast<int64_t>(p.span)));
      bool keep = (code - low <= span) != p.head.negated;
      if (p.head.exclude_null && code == static_cast<uint128_t>(Make128(p.null_code_high, static_cast<int64_t>(p.null_code)))) keep = false;
      pass |= static_cast<uint32_t>(keep) << i;
    }
    live &= pass;
  }

  template <class M>
  __device__ __forceinline__ void DoTest(const DeviceInstruction&, OperandRows&) {
    uint32_t pass = 0;
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) pass |= static_cast<uint32_t>(M::Apply(a[i], (null >> i & 1) != 0)) << i;
    live &= pass;
  }

  template <class M>
  __device__ __forceinline__ void DoTestNull(const DeviceInstruction&, OperandRows&) {
    const uint32_t nulls = M::kWide ? null_w : null;
    live &= M::Apply(true) ? nulls : ~nulls;
  }

  template <class M>
  __device__ __forceinline__ void DoCompare(const DeviceInstruction& in, OperandRows& b) {
    using T = typename M::Type;
    if constexpr (kIsWide<T>) {
      uint32_t pass = 0;
#pragma unroll 1
      for (uint32_t i = 0; i < kRows; ++i) {
        if (((live & ~null_w) >> i & 1) == 0) continue;
        bool is_null;
        const int128_t v = FetchWide(in, i, &is_null);
        pass |= static_cast<uint32_t>(!is_null && M::Apply(LoadWide(i), v)) << i;
      }
      live &= pass;
    } else {
      uint32_t pass = 0;
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) pass |= static_cast<uint32_t>(M::Apply(FromBits<T>(a[i]), FromBits<T>(b.v[i]))) << i;
      live &= pass & ~(null | b.null);
    }
  }

  /// Load is done where operands are fetched: straight into the accumulator.
  template <class M>
  __device__ __forceinline__ void DoLoad(const DeviceInstruction&, OperandRows&) {}

  template <class M>
  __device__ __forceinline__ void DoLoadWide(const DeviceInstruction& in, OperandRows&) {
    null_w = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) {
      if ((live >> i & 1) == 0) continue;
      bool is_null;
      StoreWide(i, FetchWide(in, i, &is_null));
      null_w |= static_cast<uint32_t>(is_null) << i;
    }
  }

  template <class M>
  __device__ __forceinline__ void DoStore(const DeviceInstruction& in, OperandRows&) {
    uint8_t* r = Register(in.head.place);
    uint32_t* nulls = RegisterNulls(r, thread);
    *nulls = (*nulls & ~live) | (null & live);
    int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      if ((live >> i & 1) != 0) values[i * kThreads] = a[i];
    }
  }

  template <class M>
  __device__ __forceinline__ void DoStoreWide(const DeviceInstruction& in, OperandRows&) {
    uint8_t* r = Register(in.head.place);
    uint32_t* nulls = RegisterNulls(r, thread);
    *nulls = (*nulls & ~live) | (null_w & live);
    longlong2* values = RegisterValues<longlong2>(r, thread);
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) {
      if ((live >> i & 1) != 0) values[i * kThreads] = Wide()[i * kThreads];
    }
  }

  template <class M>
  __device__ __forceinline__ void DoBinary(const DeviceInstruction& in, OperandRows& b) {
    using T = typename M::Type;
    if constexpr (kIsWide<T>) {
#pragma unroll 1
      for (uint32_t i = 0; i < kRows; ++i) {
        if ((live >> i & 1) == 0) continue;
        bool is_null;
        const int128_t v = FetchWide(in, i, &is_null);
        null_w |= static_cast<uint32_t>(is_null) << i;
        if ((null_w >> i & 1) != 0) continue;
        Lane lane;
        StoreWide(i, M::Apply(LoadWide(i), v, lane));
        null_w |= static_cast<uint32_t>(lane.null) << i;
        Note(i, lane.error);
      }
    } else {
      null |= b.null;
      const uint32_t count = live & ~null;
      uint32_t made_null = 0;
      if constexpr (kLong<M>) {
#pragma unroll 1
        for (uint32_t i = 0; i < kRows; ++i) {
          int64_t x = a[0];
          const int64_t y = b.v[0];
          RotateBy1(a);
          RotateBy1(b.v);
          if ((count >> i & 1) != 0) {
            Lane lane;
            x = ToBits(M::Apply(FromBits<T>(x), FromBits<T>(y), lane));
            made_null |= static_cast<uint32_t>(lane.null) << i;
            Note(i, lane.error);
          }
          a[kRows - 1] = x;
        }
      } else {
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) {
          Lane lane;
          a[i] = ToBits(M::Apply(FromBits<T>(a[i]), FromBits<T>(b.v[i]), lane));
          made_null |= static_cast<uint32_t>(lane.null) << i;
          if ((count >> i & 1) != 0) Note(i, lane.error);
        }
      }
      null |= made_null;
    }
  }

  /// a[i] = f(i, a[i]) in a loop that is not unrolled; f may do anything but index a.
  template <class F>
  __device__ __forceinline__ void Rotating(F f) {
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) {
      const int64_t x = a[0];
      RotateBy1(a);
      a[kRows - 1] = f(i, x);
    }
  }

  template <class M>
  __device__ __forceinline__ void DoUnary(const DeviceInstruction&, OperandRows&) {
    using In = typename M::In;
    using Out = typename M::Out;
    if constexpr (kIsWide<In> && kIsWide<Out>) {
#pragma unroll 1
      for (uint32_t i = 0; i < kRows; ++i) {
        if (((live & ~null_w) >> i & 1) == 0) continue;
        Lane lane;
        StoreWide(i, M::Apply(LoadWide(i), lane));
        Note(i, lane.error);
      }
    } else if constexpr (kIsWide<In>) {
      null = null_w;
      Rotating([&](uint32_t i, int64_t x) {
        if (((live & ~null) >> i & 1) == 0) return x;
        Lane lane;
        x = ToBits(M::Apply(LoadWide(i), lane));
        Note(i, lane.error);
        return x;
      });
    } else if constexpr (kIsWide<Out>) {
      null_w = null;
      Rotating([&](uint32_t i, int64_t x) {
        if (((live & ~null) >> i & 1) == 0) return x;
        Lane lane;
        StoreWide(i, M::Apply(FromBits<In>(x), lane));
        Note(i, lane.error);
        return x;
      });
    } else if constexpr (kLong<M>) {
      Rotating([&](uint32_t i, int64_t x) {
        if (((live & ~null) >> i & 1) == 0) return x;
        Lane lane;
        x = ToBits(M::Apply(FromBits<In>(x), lane));
        Note(i, lane.error);
        return x;
      });
    } else {
      const uint32_t count = live & ~null;
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) {
        Lane lane;
        a[i] = ToBits(M::Apply(FromBits<In>(a[i]), lane));
        if ((count >> i & 1) != 0) Note(i, lane.error);
      }
    }
  }

  template <class M>
  __device__ __forceinline__ void DoUnaryField(const DeviceInstruction& in, OperandRows&) {
    using T = typename M::Type;
    const int field = in.p3;
    Rotating([&](uint32_t i, int64_t x) {
      if (((live & ~null) >> i & 1) == 0) return x;
      Lane lane;
      return ToBits(M::Apply(FromBits<T>(x), field, lane));
    });
  }

  template <class M>
  __device__ __forceinline__ void DoCheck(const DeviceInstruction& in, OperandRows&) {
    using T = typename M::Type;
    if constexpr (kIsWide<T>) {
#pragma unroll 1
      for (uint32_t i = 0; i < kRows; ++i) {
        if (((live & ~null_w) >> i & 1) == 0) continue;
        Lane lane;
        M::Apply(LoadWide(i), Make128(in.high, in.low), Make128(in.upper_high, in.upper_low), lane);
        Note(i, lane.error);
      }
    } else {
      const int64_t low = in.low, high = in.upper_low;
      const uint32_t count = live & ~null;
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) {
        Lane lane;
        M::Apply(a[i], low, high, lane);
        if ((count >> i & 1) != 0) Note(i, lane.error);
      }
    }
  }

  // ---- Groups ----------------------------------------------------------------------------------------------------------

  /// The key of row i, whose parts are in registers. Its hash, NULL bits and first word are kept: one key of 64 bits, the usual case, is
  /// compared without reading it again.
  struct RowKey {
    const Machine& machine;
    uint32_t i;
    uint64_t nulls = 0, first = 0, hash;

    __device__ __forceinline__ RowKey(const Machine& m, uint32_t row) : machine(m), i(row) {
      KeyHash h;
      uint32_t count = 0;
      Words([&](uint64_t w) {
        h.Add(w);
        if (count++ == 0) first = w;
      }, &nulls);
      h.Add(nulls);
      hash = h.Finish();
    }
    /// f(word) for each word after the NULL bits; a NULL key gives zeros.
    template <class F>
    __device__ __forceinline__ void Words(F f, uint64_t* null_bits) const {
      uint64_t bits = 0;
      const uint32_t keys = machine.launch.keys;
#pragma unroll 1
      for (uint32_t k = 0; k < keys; ++k) {
        const uint32_t place = machine.launch.key_places[k];
        uint8_t* r = machine.Register(place);
        const bool is_null = (*RegisterNulls(r, machine.thread) >> i & 1) != 0;
        bits |= static_cast<uint64_t>(is_null) << k;
        if ((place & kWidePlace) != 0) {
          const longlong2 v = RegisterValues<longlong2>(r, machine.thread)[i * kThreads];
          f(is_null ? 0 : static_cast<uint64_t>(v.x));
          f(is_null ? 0 : static_cast<uint64_t>(v.y));
        } else {
          f(is_null ? 0 : static_cast<uint64_t>(RegisterValues<int64_t>(r, machine.thread)[i * kThreads]));
        }
      }
      *null_bits = bits;
    }
    /// `load` reads a word of a record.
    template <class Word, class Load>
    __device__ __forceinline__ bool EqualsLoaded(Word* record, Load load) const {
      if (load(record) != nulls || load(record + 1) != first) return false;
      if (machine.launch.groups.record_words == 2) return true;
      bool equal = true;
      Word* at = record + 1;
      uint64_t ignored;
      Words([&](uint64_t w) { equal &= load(at++) == w; }, &ignored);
      return equal;
    }
    __device__ __forceinline__ bool Equals(const uint64_t* record) const {
      return EqualsLoaded(record, [](const uint64_t* p) { return __ldcg(reinterpret_cast<const unsigned long long*>(p)); });
    }
    __device__ __forceinline__ bool EqualsPrivate(const volatile uint64_t* record) const {
      return EqualsLoaded(record, [](const volatile uint64_t* p) { return *p; });
    }
    template <class Word>
    __device__ __forceinline__ void Write(Word* record) const {
      Word* at = record + 1;
      uint64_t ignored;
      Words([&](uint64_t w) { *at++ = w; }, &ignored);
      *record = nulls;
    }
  };

  /// The block's own table from keys to ordinals below private_groups: a cache in front of the global one, filled first come
  /// first served and never emptied in a launch. Its slots: 0 free, else 20 bits of the hash and below them 1 (being written) or
  /// ordinal + 2.
  __device__ __forceinline__ volatile uint32_t* PrivateSlots() const {
    return reinterpret_cast<volatile uint32_t*>(shared + launch.layout.private_slots);
  }
  __device__ __forceinline__ volatile uint64_t* PrivateRecord(uint32_t ordinal) const {
    return reinterpret_cast<volatile uint64_t*>(shared + launch.layout.private_records) + ordinal * launch.groups.record_words;
  }
  static constexpr uint32_t kPrivateProbes = 8;
  static constexpr uint32_t kPrivateOrdinal = 0xFFF;
  static __device__ __forceinline__ uint32_t PrivateTag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32) & ~kPrivateOrdinal; }

  __device__ __forceinline__ uint32_t FindPrivate(const RowKey& key, uint64_t hash) const {
    const uint32_t mask = 2 * launch.private_groups - 1;
    uint32_t at = static_cast<uint32_t>(hash) & mask;
#pragma unroll 1
    for (uint32_t probe = 0; probe < kPrivateProbes; ++probe) {
      const uint32_t slot = PrivateSlots()[at];
      if (slot == 0) return kNowhere;
      const uint32_t ordinal = (slot & kPrivateOrdinal) - 2;
      if ((slot & ~kPrivateOrdinal) == PrivateTag(hash) && (slot & kPrivateOrdinal) != 1 && key.EqualsPrivate(PrivateRecord(ordinal))) return ordinal;
      at = (at + 1) & mask;
    }
    return kNowhere;
  }

  __device__ __forceinline__ void InsertPrivate(const RowKey& key, uint64_t hash, uint32_t ordinal) const {
    const uint32_t mask = 2 * launch.private_groups - 1, tag = PrivateTag(hash);
    uint32_t at = static_cast<uint32_t>(hash) & mask;
#pragma unroll 1
    for (uint32_t probe = 0; probe < kPrivateProbes; ++probe) {
      const uint32_t slot = PrivateSlots()[at];
      if (slot == 0) {
        if (atomicCAS(const_cast<uint32_t*>(PrivateSlots()) + at, 0u, tag | 1) != 0) return;
        key.Write(PrivateRecord(ordinal));
        __threadfence_block();
        PrivateSlots()[at] = tag | (ordinal + 2);
        return;
      }
      if ((slot & kPrivateOrdinal) == 1 || (slot & kPrivateOrdinal) == ordinal + 2) return;  // someone else is at it, perhaps with this key
      at = (at + 1) & mask;
    }
  }

  /// The keys have a small domain: they give the group's number by themselves. Lowering has made an instruction for each key.
  __device__ __forceinline__ void GroupDirectly(const DeviceInstruction& in, OperandRows& b) {
    uint32_t* numbers = Ordinals();
    const uint32_t k = static_cast<uint32_t>(in.p3);
    const DirectKey key = launch.direct_keys[k];
    const bool last = k + 1 == launch.keys;
    uint8_t* touched = shared + launch.layout.private_slots;
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      uint32_t number = (static_cast<uint32_t>(b.v[i]) - static_cast<uint32_t>(key.low) + key.nullable) * key.stride;
      if ((b.null >> i & 1) != 0) number = 0;
      if (k != 0) number += numbers[i * kThreads];
      // The ranges come from the tablets' descriptors; if those lied, memory must not suffer.
      number = min(number, launch.private_groups - 1);
      numbers[i * kThreads] = number;
      if (last && (live >> i & 1) != 0) touched[number] = 1;
    }
  }

  template <class M>
  __device__ __forceinline__ void DoGroup(const DeviceInstruction& in, OperandRows& b) {
    if constexpr (!kFull) {
      GroupDirectly(in, b);
    } else if (launch.direct) {
      GroupDirectly(in, b);
    } else {
      GroupByHash(in, b);
    }
  }

  __device__ __forceinline__ void GroupByHash(const DeviceInstruction& in, OperandRows& b) {
    if (in.head.source != OperandSource::kNone || in.head.wide_source != OperandSource::kNone) {  // a key that is in no register gets one
      uint8_t* r = Register(in.state);
      if (in.head.wide_source != OperandSource::kNone) {
        uint32_t nulls = 0;
#pragma unroll 1
        for (uint32_t i = 0; i < kRows; ++i) {
          if ((live >> i & 1) == 0) continue;
          bool is_null;
          const int128_t v = FetchWide(in, i, &is_null);
          RegisterValues<longlong2>(r, thread)[i * kThreads] = make_longlong2(Low64(v), High64(v));
          nulls |= static_cast<uint32_t>(is_null) << i;
        }
        *RegisterNulls(r, thread) = nulls;
      } else {
        *RegisterNulls(r, thread) = b.null;
        int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) values[i * kThreads] = b.v[i];
      }
    }
    bool no_room = false;
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) {
      // The lanes come together after each step: left to themselves they would go through the next ones one by one.
      const bool wanted = (live >> i & 1) != 0 && !no_room;
      const RowKey key(*this, i);
      const uint64_t hash = key.hash;
      uint32_t ordinal = kNowhere;
      if (wanted && launch.private_groups != 0) ordinal = FindPrivate(key, hash);
      __syncwarp();
      if (wanted && ordinal == kNowhere) {
        ordinal = FindOrMakeGroup(launch.groups, launch.control, key, hash);
        if (ordinal == kTableFull) {
          no_room = true;
        } else if (ordinal < launch.private_groups) {
          InsertPrivate(key, hash, ordinal);
        }
      }
      __syncwarp();
      if (wanted) Ordinals()[i * kThreads] = ordinal;
    }
    if (__any_sync(kAllLanes, no_room)) {
      if (Lane32() == 0) Stop(kGrow);
      full = true;
    }
  }

  __device__ __forceinline__ uint32_t* PrivateArray(const DeviceInstruction& in) const {
    return reinterpret_cast<uint32_t*>(shared + in.private_state);
  }
  __device__ __forceinline__ uint64_t* GlobalState(uint32_t ordinal) const {
    return launch.groups.states + static_cast<uint64_t>(ordinal) * launch.groups.state_words;
  }
  /// Notes that the aggregate has a value in a group. Bits are only ever set in a launch, so an old line of L1 does no harm.
  __device__ __forceinline__ void MarkSeen(uint64_t* state, uint32_t aggregate) const {
    uint64_t* word = state + aggregate / 64;
    const uint64_t bit = uint64_t{1} << (aggregate % 64);
    if ((__ldca(reinterpret_cast<const unsigned long long*>(word)) & bit) == 0) atomicOr(AtomicWord(word), static_cast<unsigned long long>(bit));
  }
  __device__ __forceinline__ void MarkSeenPrivate(uint32_t ordinal, uint32_t aggregate) const {
    shared[launch.layout.private_seen + aggregate * launch.private_groups + ordinal] = 1;
  }

  /// A value into the state of a group in device memory. Integer sums keep the lower halves of their values apart from the upper
  /// ones: neither half can overflow 64 bits in 2^32 rows, and no addition needs the result of another.
  template <class M>
  static __device__ __forceinline__ void AddToGlobal(uint64_t* s, int64_t v) {
    if constexpr (std::is_same_v<M, meaning::SumI>) {
      atomicAdd(AtomicWord(s), static_cast<unsigned long long>(static_cast<uint32_t>(v)));
      if ((v >> 32) != 0) atomicAdd(AtomicWord(s + 1), static_cast<unsigned long long>(v >> 32));
    } else if constexpr (std::is_same_v<M, meaning::SumF>) {
      atomicAdd(reinterpret_cast<double*>(s), __longlong_as_double(v));
    } else if constexpr (std::is_same_v<M, meaning::MinI>) {
      atomicMin(reinterpret_cast<long long*>(s), static_cast<long long>(v));
    } else if constexpr (std::is_same_v<M, meaning::MaxI>) {
      atomicMax(reinterpret_cast<long long*>(s), static_cast<long long>(v));
    } else if constexpr (std::is_same_v<M, meaning::MinF>) {
      atomicMin(AtomicWord(s), static_cast<unsigned long long>(OrderedFloat(__longlong_as_double(v))));
    } else {
      static_assert(std::is_same_v<M, meaning::MaxF>);
      atomicMax(AtomicWord(s), static_cast<unsigned long long>(OrderedFloat(__longlong_as_double(v))));
    }
  }

  /// The same in the block's arrays: sums are four words of 32 bits each, as shared memory adds no 64-bit words at once.
  template <class M>
  __device__ __forceinline__ void AddToPrivate(const DeviceInstruction& in, uint32_t ordinal, int64_t v) const {
    const uint32_t n = launch.private_groups;
    if constexpr (std::is_same_v<M, meaning::SumI>) {
      uint32_t* s = PrivateArray(in) + ordinal;
      const uint32_t low = static_cast<uint32_t>(v);
      const int32_t high = static_cast<int32_t>(v >> 32);
      if (atomicAdd(s, low) + low < low) atomicAdd(s + n, 1u);
      if (high != 0) {
        const uint32_t h = static_cast<uint32_t>(high);
        const uint32_t carry = (atomicAdd(s + 2 * n, h) + h < h ? 1u : 0u) + static_cast<uint32_t>(high >> 31);
        if (carry != 0) atomicAdd(s + 3 * n, carry);
      }
    } else {
      uint64_t* s = reinterpret_cast<uint64_t*>(PrivateArray(in)) + ordinal;
      if constexpr (std::is_same_v<M, meaning::MinI>) {
        if (*reinterpret_cast<volatile int64_t*>(s) <= v) return;
      } else if constexpr (std::is_same_v<M, meaning::MaxI>) {
        if (*reinterpret_cast<volatile int64_t*>(s) >= v) return;
      }
      AddToGlobal<M>(s, v);
    }
  }

  /// Wide states: a sum is four sums of 32-bit parts, the last one signed; an extreme is kept under the group's lock.
  template <class M>
  __device__ __forceinline__ void AddWide(uint32_t ordinal, uint32_t word, int128_t v) const {
    uint64_t* group = GlobalState(ordinal);
    uint64_t* s = group + word;
    if constexpr (std::is_same_v<M, meaning::SumW>) {
      const int64_t low = Low64(v), high = High64(v);
      atomicAdd(AtomicWord(s), static_cast<unsigned long long>(static_cast<uint32_t>(low)));
      atomicAdd(AtomicWord(s + 1), static_cast<unsigned long long>(static_cast<uint64_t>(low) >> 32));
      atomicAdd(AtomicWord(s + 2), static_cast<unsigned long long>(static_cast<uint32_t>(high)));
      atomicAdd(AtomicWord(s + 3), static_cast<unsigned long long>(high >> 32));
    } else {
      for (bool done = false; !done;) {
        if (atomicCAS(AtomicWord(group + launch.groups.lock_word), 0ull, 1ull) == 0) {
          __threadfence();
          int128_t now = Make128(static_cast<int64_t>(LoadRelaxed(s + 1)), static_cast<int64_t>(LoadRelaxed(s)));
          Lane lane;
          M::Apply(now, v, lane);
          atomicExch(AtomicWord(s), static_cast<unsigned long long>(Low64(now)));
          atomicExch(AtomicWord(s + 1), static_cast<unsigned long long>(High64(now)));
          __threadfence();
          atomicExch(AtomicWord(group + launch.groups.lock_word), 0ull);
          done = true;
        }
      }
    }
  }

  __device__ __forceinline__ void CountGroups(const DeviceInstruction& in, uint32_t count) const {
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) {
      if ((count >> i & 1) == 0) continue;
      const uint32_t ordinal = Ordinals()[i * kThreads];
      if (!kFull || (ordinal < launch.private_groups && in.private_state != kNowhere)) {
        atomicAdd(PrivateArray(in) + ordinal, 1u);
      } else {
        atomicAdd(AtomicWord(GlobalState(ordinal) + in.state), 1ull);
      }
    }
  }
  __device__ __forceinline__ void CountAll(const DeviceInstruction& in, uint32_t count) const {
    if (launch.keys != 0) return CountGroups(in, count);
    const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(count)));
    if (Lane32() == 0) Aggregate(in.head.p1)->count += n;
  }

  template <class M>
  __device__ __forceinline__ void DoCountRows(const DeviceInstruction& in, OperandRows&) {
    if (!IsReserving()) CountAll(in, live);
  }
  template <class M>
  __device__ __forceinline__ void DoCountValues(const DeviceInstruction& in, OperandRows&) {
    if (!IsReserving()) CountAll(in, live & ~(M::kWide ? null_w : null));
  }

  template <class M>
  __device__ __forceinline__ void DoFold(const DeviceInstruction& in, OperandRows&) {
    using T = typename M::Type;
    using State = typename M::State;
    if (IsReserving()) return;
    const uint32_t take = live & ~(kIsWide<T> ? null_w : null);
    if (!__any_sync(kAllLanes, take != 0)) return;
    if (launch.keys != 0) {
      if constexpr (kIsWide<T>) {
#pragma unroll 1
        for (uint32_t i = 0; i < kRows; ++i) {
          if ((take >> i & 1) == 0) continue;
          const uint32_t ordinal = Ordinals()[i * kThreads];
          AddWide<M>(ordinal, in.state, LoadWide(i));
          MarkSeen(GlobalState(ordinal), in.head.p1);
        }
      } else {
        const uint32_t private_groups = in.private_state != kNowhere ? launch.private_groups : 0;
#pragma unroll 1
        for (uint32_t g = 0; g < 4; ++g) {
#pragma unroll
          for (uint32_t e = 0; e < 4; ++e) {
            if ((take >> (4 * g + e) & 1) == 0) continue;
            const uint32_t ordinal = Ordinals()[(4 * g + e) * kThreads];
            if (!kFull || ordinal < private_groups) {
              AddToPrivate<M>(in, ordinal, a[e]);
              MarkSeenPrivate(ordinal, in.head.p1);
            } else {
              AddToGlobal<M>(GlobalState(ordinal) + in.state, a[e]);
              MarkSeen(GlobalState(ordinal), in.head.p1);
            }
          }
          RotateBy4(a);
        }
      }
      return;
    }
    const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(take)));
    Partial* state = Aggregate(in.head.p1);
    if constexpr (std::is_same_v<M, meaning::SumI>) {
      // Upper and lower halves apart: a wide multiplication by the row's bit adds 32 bits to 64 in one instruction, without a carry
      // and without a predicate (with them ptxas takes twelve instructions a row).
      uint64_t low_sum = 0;
      int64_t high_sum = 0;
#pragma unroll
      for (uint32_t i = 0; i < kRows; ++i) {
        const uint32_t bit = take >> i & 1;
        asm("mad.wide.u32 %0, %1, %2, %0;" : "+l"(low_sum) : "r"(static_cast<uint32_t>(a[i])), "r"(bit));
        asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(high_sum) : "r"(static_cast<int32_t>(a[i] >> 32)), "r"(bit));
      }
      // As one number of 96 bits.
      const uint64_t middle = (low_sum >> 32) + static_cast<uint32_t>(high_sum);
      const uint32_t s0 = static_cast<uint32_t>(low_sum), s1 = static_cast<uint32_t>(middle);
      const uint32_t s2 = static_cast<uint32_t>(high_sum >> 32) + static_cast<uint32_t>(middle >> 32);
      // The lanes' sums are added in parts of 24 bits, which one instruction each does for a warp.
      const uint32_t part0 = __reduce_add_sync(kAllLanes, s0 & 0xFFFFFF);
      const uint32_t part1 = __reduce_add_sync(kAllLanes, __funnelshift_r(s0, s1, 24) & 0xFFFFFF);
      const uint32_t part2 = __reduce_add_sync(kAllLanes, __funnelshift_r(s1, s2, 16) & 0xFFFFFF);
      const int32_t part3 = __reduce_add_sync(kAllLanes, static_cast<int32_t>(s2) >> 8);
      if (Lane32() == 0) {
        const uint64_t low = part0 + (static_cast<uint64_t>(part1) << 24);
        const int64_t high = static_cast<int64_t>(part2) + (static_cast<int64_t>(part3) << 24);  // in units of 2^48
        const int128_t sum = static_cast<int128_t>(high) * (int128_t{1} << 48) + static_cast<int128_t>(low);
        SetState(state, vm::WrapAdd(StateOf<State>(*state), sum));
        state->count += n;
      }
    } else {
      State s = M::Identity();
      Lane lane;
      if constexpr (kIsWide<T>) {
#pragma unroll 1
        for (uint32_t i = 0; i < kRows; ++i) {
          if ((take >> i & 1) != 0) M::Apply(s, LoadWide(i), lane);
        }
      } else {
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) {
          State next = s;
          M::Apply(next, FromBits<T>(a[i]), lane);
          s = (take >> i & 1) != 0 ? next : s;
        }
      }
#pragma unroll
      for (int d = 16; d > 0; d >>= 1) M::Merge(s, ShuffleXor(s, d), lane);
      if (Lane32() == 0) {
        State now = StateOf<State>(*state);
        M::Merge(now, s, lane);
        SetState(state, now);
        state->count += n;
      }
      if constexpr (kIsWide<T>) Note(0, lane.error);
    }
  }

  // ---- Rows ------------------------------------------------------------------------------------------------------------

  /// The warp takes `n` rows of the output, or finds that there is no room.
  __device__ __forceinline__ bool ReserveRows(uint32_t n, unsigned long long* at) {
    unsigned long long base = 0;
    if (Lane32() == 0) {
      base = atomicAdd(&launch.control->rows, static_cast<unsigned long long>(n));
      if (base + n > launch.output.capacity) {
        // The counter only grows, so whoever comes later is refused as well: rows below the least refused base are written.
        atomicMin(&launch.control->rows_valid, base);
        atomicMax(&launch.control->rows_wanted, static_cast<unsigned long long>(n));
        Stop(kOutputFull);
      } else if (base + n >= launch.enough) {
        Stop(kEnough);
      }
    }
    base = __shfl_sync(kAllLanes, base, 0);
    *at = base;
    return base + n <= launch.output.capacity;
  }

  template <class M>
  __device__ __forceinline__ void DoEmit(const DeviceInstruction&, OperandRows&) {
    const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(live)));
    if (IsReserving()) {
      if (Lane32() == 0) Warp()->rows_counted += n;
      __syncwarp();
      return;
    }
    if (n == 0) return;
    unsigned long long at;
    if (launch.two_passes) {
      at = Warp()->rows_at;
      __syncwarp();
      if (Lane32() == 0) Warp()->rows_at = at + n;
    } else if (!ReserveRows(n, &at)) {
      full = true;
      return;
    }
    const Output& out = launch.output;
    const uint32_t below = (1u << Lane32()) - 1;
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) {
      const bool mine = (live >> i & 1) != 0;
      const uint32_t lanes = __ballot_sync(kAllLanes, mine);
      if (mine) {
        const unsigned long long row = at + static_cast<uint32_t>(__popc(lanes & below));
#pragma unroll 1
        for (uint32_t c = 0; c < out.columns; ++c) {
          const uint32_t place = __ldg(out.places + c);
          uint8_t* r = Register(place);
          const unsigned long long to = static_cast<unsigned long long>(c) * out.capacity + row;
          if ((place & kWidePlace) != 0) {
            const longlong2 v = RegisterValues<longlong2>(r, thread)[i * kThreads];
            out.low[to] = static_cast<uint64_t>(v.x);
            out.high[static_cast<unsigned long long>(__ldg(out.highs + c)) * out.capacity + row] = static_cast<uint64_t>(v.y);
          } else {
            out.low[to] = static_cast<uint64_t>(RegisterValues<int64_t>(r, thread)[i * kThreads]);
          }
          out.null[to] = static_cast<uint8_t>(*RegisterNulls(r, thread) >> i & 1);
        }
      }
      at += static_cast<uint32_t>(__popc(lanes));
    }
  }

  // ---- The interpreter -------------------------------------------------------------------------------------------------

  __device__ __forceinline__ void AllRowsLive() {
    live = kAllRows;
    if (tile->rows == kTileRows) return;
    live = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < kRows; ++i) live |= static_cast<uint32_t>(RowOf(i) < tile->rows) << i;
  }

  __device__ __forceinline__ void ReportFailure(const DeviceInstruction& in) const {
    Control* c = launch.control;
    if (atomicCAS(&c->error_claimed, 0u, 1u) == 0) {
      c->error_address = in.address;
      c->error_code = static_cast<uint32_t>(failure);
      c->error_tablet = tile->tablet;
      c->error_row = tile->first + RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(failed))) - 1);
    }
    Stop(kFailed);
  }

  /// Tests the codes of a predicate without making 64-bit values of them. Returns false if the codes must be fetched.
  __device__ __forceinline__ bool FilterNarrow(const PredicateRecord& p, const PredicateHead& head) {
    if (head.kind == PredicateKind::kAll) return true;
    if (head.kind == PredicateKind::kNone) {
      live = 0;
      return true;
    }
    if (head.kind != PredicateKind::kRange || head.width > 4) return false;
    const ulonglong2 range = *reinterpret_cast<const ulonglong2*>(&p.low);
    uint32_t low = static_cast<uint32_t>(range.x), span = static_cast<uint32_t>(range.y);
    bool negated = head.negated;
#pragma unroll 1
    for (bool last = !head.exclude_null;; last = true) {
      uint32_t pass;
      if (head.stage != kNowhere) {
        pass = TestRange<false>(stage + head.stage, head.width, thread, live, low, span);
      } else {
        pass = TestRange<true>(head.codes + static_cast<uint64_t>(tile->first) * head.width, head.width, thread, live, low, span);
      }
      live &= negated ? ~pass : pass;
      if (last) return true;
      low = static_cast<uint32_t>(p.null_code), span = 0, negated = true;  // the second test drops the NULL code
    }
  }

  /// Runs the program over the warp's slice of a tile. If the sink has no room, `full` is set and nothing was applied.
  __device__ __forceinline__ void Run() {
#pragma unroll 1
    for (uint32_t pass = kFull && launch.two_passes ? 0 : 1; pass < 2; ++pass) {
      reserve = pass == 0;
      AllRowsLive();
      null = null_w = 0;
      RunOnce();
      if (IsFull()) return;
      if (IsReserving()) {
        const uint32_t n = Warp()->rows_counted;
        unsigned long long at = 0;
        if (n != 0 && !ReserveRows(n, &at)) full = true;
        if (Lane32() == 0) {
          Warp()->rows_counted = 0;
          Warp()->rows_at = at;
        }
        __syncwarp();
        if (full) return;
      }
    }
  }

  __device__ __forceinline__ void RunOnce() {
    next = 0;
    ended = false;
#pragma unroll 1
    for (;;) {
      thread = ReadThread();
      uint32_t at = next;
      next += sizeof(DeviceInstruction);
      const InstructionHead head = LoadHead(Code(at).head);
      const Op op = head.op;
      OperandRows b;
      b.null = 0;
      failed = 0;
      if (op == Op::Filter) {
        const PredicateRecord& p = Predicate(head.p1);
        const PredicateHead predicate = LoadHead(p.head);
        if (FilterNarrow(p, predicate)) continue;
        FetchCodes(predicate.codes, predicate.stage, predicate.width, 0, b.v);
      } else if (op == Op::Load) {
        null = Fetch(Code(at), head, a);
        continue;
      } else if (head.source != OperandSource::kNone) {
        b.null = Fetch(Code(at), head, b.v);
      } else {
        // Without a value on every path the operand counts as live from one instruction to the next: 900 bytes of spills.
        asm volatile("");
#pragma unroll
        for (uint32_t i = 0; i < kRows; ++i) b.v[i] = 0;
      }
      // What the head said is not kept in registers for the shapes; the few that need more of it read it again.
      asm volatile("" : "+r"(at));
      const DeviceInstruction& in = Code(at);
      switch (op) {
#define TESSERA_CASE_Any(Name, Shape)                                                        \
  case Op::Name:                                                                             \
    if constexpr (kFull || IsLean(Op::Name)) Do##Shape<meaning::Name>(in, b);                \
    break;
#define TESSERA_CASE_Host(Name, Shape)
#define OPCODE(Name, Shape, P1, P2, P3, P4, In, Out, Where, ...) TESSERA_CASE_##Where(Name, Shape)
#include "vm/opcodes.def"
#undef OPCODE
#undef TESSERA_CASE_Any
#undef TESSERA_CASE_Host
        default:
          break;
      }
      if (ended) return;
      if (failed != 0) ReportFailure(in);
      if (IsFull()) return;
    }
  }
};

// ---- The producer ------------------------------------------------------------------------------------------------------

/// What a lane of the producer has looked up for a tile: the tile, and its own staged column.
struct LookedUp {
  TileHeader header;
  const uint8_t* codes;
  uint32_t width;
};

/// The producer. Memory answers after some 600 cycles and a tile should take 2000, so it never looks up one thing after the other for the
/// tile at hand: lane i finds the tablet of the i-th tile to come, for 32 tiles at once, and columns are looked up one tile ahead.
class Producer {
 public:
  __device__ __forceinline__ Producer(const Launch& launch, uint8_t* shared) : launch_(launch), shared_(shared), lane_(threadIdx.x & 31) {}

  /// One warp: tells the interpreters which tiles there are and copies the staged columns of each into the ring, as far ahead as
  /// the ring has stages.
  __device__ __forceinline__ void Run() {
    const Layout& layout = launch_.layout;
    TileHeader* headers = reinterpret_cast<TileHeader*>(shared_ + layout.headers);
    uint64_t* filled = reinterpret_cast<uint64_t*>(shared_ + layout.barriers);
    uint64_t* emptied = filled + layout.stages;
    // The warps were perhaps suspended in different tiles; the rearmost decides.
    const uint32_t cursor = lane_ < kWarps ? launch_.cursors[blockIdx.x * kWarps + lane_] : kNowhere;
    first_ = max(__reduce_min_sync(kAllLanes, cursor), blockIdx.x);
    if (lane_ < launch_.staged_count) my_slot_ = launch_.staged[lane_];
    LookedUp now = LookUp(0);
    for (uint32_t count = 0, stage = 0, parity = 1;; ++count) {
      const uint32_t stop = LoadRelaxed(&launch_.control->stop);
      const LookedUp next = LookUp(count + 1);
      BarrierWait(emptied + stage, parity);
      if (__any_sync(kAllLanes, stop != 0)) now.header.rows = 0;
      Fill(now, shared_ + layout.ring + stage * layout.stage_bytes, headers + stage, filled + stage);
      if (now.header.rows == 0) return;
      now = next;
      if (++stage == layout.stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

 private:
  /// The block's count-th tile from its cursor on. Counts come in order.
  __device__ __forceinline__ LookedUp LookUp(uint32_t count) {
    if (count % 32 == 0) {
      my_tile_ = {first_ + (count + lane_) * gridDim.x, 0, 0, 0};
      if (my_tile_.index < launch_.tiles) {
        // The last tablet that does not start behind the tile.
        uint32_t low = 0, high = launch_.tablets;
        while (high - low > 1) {
          const uint32_t middle = (low + high) / 2;
          if (__ldg(launch_.first_tile + middle) <= my_tile_.index) {
            low = middle;
          } else {
            high = middle;
          }
        }
        my_tile_.tablet = low;
        my_tile_.first = (my_tile_.index - __ldg(launch_.first_tile + low)) * kTileRows;
        my_tile_.rows = min(kTileRows, __ldg(launch_.tablet_rows + low) - my_tile_.first);
      }
    }
    LookedUp to;
    to.header.index = __shfl_sync(kAllLanes, my_tile_.index, count % 32);
    to.header.tablet = __shfl_sync(kAllLanes, my_tile_.tablet, count % 32);
    to.header.first = __shfl_sync(kAllLanes, my_tile_.first, count % 32);
    to.header.rows = __shfl_sync(kAllLanes, my_tile_.rows, count % 32);
    to.codes = nullptr;
    to.width = 0;
    if (lane_ < launch_.staged_count && to.header.rows != 0) {
      const SlotHead head = LoadHead(Records(to.header)[my_slot_.slot].head);
      to.codes = head.codes;
      to.width = head.width;
    }
    return to;
  }

  __device__ __forceinline__ const SlotRecord* Records(const TileHeader& tile) const {
    return reinterpret_cast<const SlotRecord*>(launch_.records + static_cast<uint64_t>(tile.tablet) * launch_.record_bytes);
  }
  static __device__ __forceinline__ uint32_t CopyBytes(const TileHeader& tile, uint32_t width) { return (tile.rows * width + 15) / 16 * 16; }

  /// Starts the copies of a tile into a stage that is free. Without rows: tells that there are no more tiles.
  __device__ __forceinline__ void Fill(const LookedUp& now, uint8_t* to, TileHeader* header, uint64_t* filled) const {
    const SlotRecord* records = Records(now.header);
    const uint32_t staged = now.header.rows != 0 ? launch_.staged_count : 0;
    uint32_t bytes = now.header.rows != 0 ? CopyBytes(now.header, now.width) : 0;
    for (uint32_t k = lane_ + 32; k < staged; k += 32) bytes += CopyBytes(now.header, records[launch_.staged[k].slot].head.width);
    if (lane_ == 0 && launch_.record_staged && now.header.rows != 0) bytes += launch_.record_bytes;
    bytes = __reduce_add_sync(kAllLanes, bytes);
    if (lane_ == 0) {
      *header = now.header;
      if (bytes != 0) {
        BarrierExpect(filled, bytes);
      } else if (TESSERA_BULK_COPY) {
        BarrierArrive(filled);
      }
    }
    __syncwarp();
    if (now.header.rows != 0) {
#if TESSERA_BULK_COPY
      if (lane_ == 31 && launch_.record_staged) CopyBulk(to, records, launch_.record_bytes, filled);
      if (now.width != 0) {
        CopyBulk(to + my_slot_.offset, now.codes + static_cast<uint64_t>(now.header.first) * now.width, CopyBytes(now.header, now.width), filled);
      }
      for (uint32_t k = lane_ + 32; k < staged; k += 32) {
        const SlotHead& s = records[launch_.staged[k].slot].head;
        if (s.width == 0) continue;
        CopyBulk(to + launch_.staged[k].offset, s.codes + static_cast<uint64_t>(now.header.first) * s.width, CopyBytes(now.header, s.width), filled);
      }
#else
      if (launch_.record_staged) CopyByLanes(to, reinterpret_cast<const uint8_t*>(records), launch_.record_bytes, lane_);
      for (uint32_t k = 0; k < staged; ++k) {
        const SlotHead& s = records[launch_.staged[k].slot].head;
        CopyByLanes(to + launch_.staged[k].offset, s.codes + static_cast<uint64_t>(now.header.first) * s.width, CopyBytes(now.header, s.width), lane_);
      }
#endif
    }
    ArriveAfterCopies(filled);
  }

  const Launch& launch_;
  uint8_t* shared_;
  const uint32_t lane_;
  uint32_t first_ = 0;
  StagedSlot my_slot_ = {};
  TileHeader my_tile_ = {};
};

// ---- Start and end of a launch -----------------------------------------------------------------------------------------

/// Calls f.template operator()<meaning::Op>() for an aggregate of shape Fold.
template <class F>
__device__ __forceinline__ void WithFold(Op op, F f) {
  switch (op) {
    case Op::SumI: return f.template operator()<meaning::SumI>();
    case Op::SumF: return f.template operator()<meaning::SumF>();
    case Op::SumW: return f.template operator()<meaning::SumW>();
    case Op::MinI: return f.template operator()<meaning::MinI>();
    case Op::MaxI: return f.template operator()<meaning::MaxI>();
    case Op::MinF: return f.template operator()<meaning::MinF>();
    case Op::MaxF: return f.template operator()<meaning::MaxF>();
    case Op::MinW: return f.template operator()<meaning::MinW>();
    case Op::MaxW: return f.template operator()<meaning::MaxW>();
    default: break;
  }
}

__device__ __forceinline__ bool IsExtreme(Op op) {
  return op == Op::MinI || op == Op::MaxI || op == Op::MinF || op == Op::MaxF;
}

/// Copies the program, clears aggregate states. All threads of the block; the caller synchronises.
__device__ __forceinline__ void SetUpBlock(const Launch& launch, uint8_t* shared) {
  const Layout& layout = launch.layout;
  const uint32_t threads = blockDim.x;
  if (layout.code != kNowhere) {
    const uint4* from = reinterpret_cast<const uint4*>(launch.code);
    uint4* to = reinterpret_cast<uint4*>(shared + layout.code);
    for (uint32_t i = threadIdx.x; i < launch.code_length * sizeof(DeviceInstruction) / 16; i += threads) to[i] = from[i];
  }
  if (launch.keys == 0) {
    Partial* states = reinterpret_cast<Partial*>(shared + layout.warp_states);
    for (uint32_t i = threadIdx.x; i < kWarps * launch.aggregates; i += threads) {
      const DeviceInstruction& fold = launch.folds[i % launch.aggregates];
      states[i] = Partial{fold.low, fold.high, 0, 0};
    }
  } else {
    for (uint32_t at = layout.private_begin + 4 * threadIdx.x; at < layout.private_end; at += 4 * threads) {
      *reinterpret_cast<uint32_t*>(shared + at) = 0;
    }
    __syncthreads();
    for (uint32_t k = 0; k < launch.aggregates; ++k) {
      const DeviceInstruction& fold = launch.folds[k];
      if (fold.private_state == kNowhere || !IsExtreme(fold.head.op)) continue;
      for (uint32_t g = threadIdx.x; g < launch.private_groups; g += threads) {
        reinterpret_cast<int64_t*>(shared + fold.private_state)[g] = fold.low;
      }
    }
  }
}

/// The key that a direct group's number stands for.
struct NumberKey {
  const Launch& launch;
  uint32_t number;

  /// f(word) for each key; returns the NULL bits. As RowKey::Words.
  template <class F>
  __device__ __forceinline__ uint64_t Words(F f) const {
    uint64_t nulls = 0;
#pragma unroll 1
    for (uint32_t k = 0; k < launch.keys; ++k) {
      // The next key's stride bounds this key's part.
      const DirectKey key = launch.direct_keys[k];
      const uint32_t end = k + 1 < launch.keys ? launch.direct_keys[k + 1].stride : launch.private_groups;
      const uint32_t part = number % end / key.stride;
      const bool is_null = key.nullable != 0 && part == 0;
      nulls |= static_cast<uint64_t>(is_null) << k;
      f(is_null ? 0 : static_cast<uint64_t>(key.low) + part - key.nullable);
    }
    return nulls;
  }
  __device__ __forceinline__ uint64_t Hash() const {
    KeyHash hash;
    const uint64_t nulls = Words([&](uint64_t w) { hash.Add(w); });
    hash.Add(nulls);
    return hash.Finish();
  }
  __device__ __forceinline__ bool Equals(const uint64_t* record) const {
    bool equal = true;
    const uint64_t* at = record + 1;
    const uint64_t nulls = Words([&](uint64_t w) { equal &= __ldcg(reinterpret_cast<const unsigned long long*>(at++)) == w; });
    return equal && __ldcg(reinterpret_cast<const unsigned long long*>(record)) == nulls;
  }
  __device__ __forceinline__ void Write(uint64_t* record) const {
    uint64_t* at = record + 1;
    const uint64_t nulls = Words([&](uint64_t w) { *at++ = w; });
    *record = nulls;
  }
};

/// The block's aggregates into device memory. All interpreter threads, after the last of them has finished its tiles.
__device__ __forceinline__ void TearDownBlock(const Launch& launch, uint8_t* shared) {
  const Layout& layout = launch.layout;
  if (launch.keys == 0) {
    const Partial* states = reinterpret_cast<const Partial*>(shared + layout.warp_states);
    for (uint32_t k = threadIdx.x; k < launch.aggregates; k += kThreads) {
      Partial all = states[k];
#pragma unroll 1
      for (uint32_t w = 1; w < kWarps; ++w) {
        const Partial& p = states[w * launch.aggregates + k];
        WithFold(launch.folds[k].head.op, [&]<class M>() {
          using State = typename M::State;
          State s = StateOf<State>(all);
          Lane lane;
          M::Merge(s, StateOf<State>(p), lane);
          SetState(&all, s);
          if (lane.error != LaneError::kNone && atomicCAS(&launch.control->error_claimed, 0u, 1u) == 0) {
            launch.control->error_address = launch.folds[k].address;
            launch.control->error_code = static_cast<uint32_t>(lane.error);
            atomicOr(&launch.control->reasons, kFailed);
          }
        });
        all.count += p.count;
      }
      launch.partials[blockIdx.x * launch.aggregates + k] = all;
    }
    return;
  }
  const uint32_t n = launch.private_groups;
  const uint32_t groups = launch.direct ? n : min(n, LoadRelaxed(&launch.control->groups));
  for (uint32_t g = threadIdx.x; g < groups; g += kThreads) {
    uint32_t ordinal = g;
    if (launch.direct) {
      if (shared[layout.private_slots + g] == 0) continue;
      const NumberKey key{launch, g};
      ordinal = FindOrMakeGroup(launch.groups, launch.control, key, key.Hash());
      if (ordinal == kTableFull) {  // the host has made room
        atomicOr(&launch.control->reasons, kFailed);
        continue;
      }
    }
    uint64_t* group = launch.groups.states + static_cast<uint64_t>(ordinal) * launch.groups.state_words;
    for (uint32_t k = 0; k < launch.aggregates; ++k) {
      const DeviceInstruction& fold = launch.folds[k];
      if (fold.private_state == kNowhere) continue;
      uint64_t* to = group + fold.state;
      const uint32_t* words = reinterpret_cast<const uint32_t*>(shared + fold.private_state) + g;
      const Op op = fold.head.op;
      if (op == Op::CountRows || op == Op::Count || op == Op::CountW) {
        if (*words != 0) atomicAdd(AtomicWord(to), static_cast<unsigned long long>(*words));
        continue;
      }
      if (shared[layout.private_seen + k * n + g] == 0) continue;
      if (op == Op::SumI) {
        const uint64_t low = words[0] | static_cast<uint64_t>(words[n]) << 32;
        const uint64_t high = words[2 * n] | static_cast<uint64_t>(words[3 * n]) << 32;
        atomicAdd(AtomicWord(to), static_cast<unsigned long long>(low));
        if (high != 0) atomicAdd(AtomicWord(to + 1), static_cast<unsigned long long>(high));
      } else {
        const uint64_t whole = reinterpret_cast<const uint64_t*>(shared + fold.private_state)[g];
        switch (op) {
          case Op::SumF: atomicAdd(reinterpret_cast<double*>(to), __longlong_as_double(static_cast<int64_t>(whole))); break;
          case Op::MinI: atomicMin(reinterpret_cast<long long*>(to), static_cast<long long>(whole)); break;
          case Op::MaxI: atomicMax(reinterpret_cast<long long*>(to), static_cast<long long>(whole)); break;
          case Op::MinF: atomicMin(AtomicWord(to), static_cast<unsigned long long>(whole)); break;
          case Op::MaxF: atomicMax(AtomicWord(to), static_cast<unsigned long long>(whole)); break;
          default: break;
        }
      }
      atomicOr(AtomicWord(group + k / 64), 1ull << (k % 64));
    }
  }
}

// ---- The kernel --------------------------------------------------------------------------------------------------------

/// Blocks of kThreads + 32 threads, as many as fit on the device at once: a block takes every gridDim.x-th tile. At the end each
/// warp's cursor is the first of its block's tiles that it has not applied.
template <bool kFull>
__global__ void __launch_bounds__(kThreads + 32, kFull ? kFullBlocks : kLeanBlocks) VmKernel(const __grid_constant__ Launch launch) {
  extern __shared__ __align__(128) uint8_t shared[];
  const Layout& layout = launch.layout;
  uint64_t* filled = reinterpret_cast<uint64_t*>(shared + layout.barriers);
  uint64_t* emptied = filled + layout.stages;
  TileHeader* headers = reinterpret_cast<TileHeader*>(shared + layout.headers);
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < layout.stages; ++s) {
      BarrierInit(filled + s, kFullArrivals);
      BarrierInit(emptied + s, kWarps);
    }
    BarrierInitDone();
  }
  SetUpBlock(launch, shared);
  __syncthreads();
  if (threadIdx.x >= kThreads) {
    Producer(launch, shared).Run();
    return;
  }
  Machine<kFull> machine{launch, shared, threadIdx.x};
  machine.full = false;
#pragma unroll
  for (uint32_t i = 0; i < kRows; ++i) machine.a[i] = 0;
  uint32_t* cursor = launch.cursors + blockIdx.x * kWarps + threadIdx.x / 32;
  WarpState* warp = machine.Warp();
  if ((threadIdx.x & 31) == 0) *warp = WarpState{0, 0, *cursor};
  __syncwarp();
  for (uint32_t stage = 0, parity = 0;;) {
    BarrierWait(filled + stage, parity);
    machine.tile = headers + stage;
    if (machine.tile->rows == 0) break;
    // A warp that was suspended lets the tiles pass that the producer had already fetched.
    if (!machine.IsFull() && machine.tile->index >= warp->next) {
      machine.stage = shared + layout.ring + stage * layout.stage_bytes;
      if constexpr (kFull) {
        machine.record = launch.record_staged
                             ? machine.stage
                             : launch.records + static_cast<uint64_t>(machine.tile->tablet) * launch.record_bytes;
      }
      machine.Run();
      if ((threadIdx.x & 31) == 0) warp->next = machine.tile->index + (machine.IsFull() ? 0 : gridDim.x);
    }
    __syncwarp();
    if ((threadIdx.x & 31) == 0) BarrierArrive(emptied + stage);
    if (++stage == layout.stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if ((threadIdx.x & 31) == 0) *cursor = warp->next;
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
  TearDownBlock(launch, shared);
}

}  // namespace tessera::kernels
