// The interpreter: the VM's machine for the 16 rows of a thread, and one loop per shape of opcode. README.md beside
// this describes the machine; opcodes.def lists the instructions, vm/meaning.h says what they mean for a row.
//
// One switch, expanded from the opcode table, calls the loop of the opcode's shape, instantiated with its meaning. All
// lanes of a warp take the same way through it; warps of a block do not wait for each other, so a warp's slice (512
// rows) is what is applied wholly or not at all.
//
// Start at: Machine::Run.
#pragma once

#include <type_traits>

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/group_table.cuh"
#include "kernels/device/ptx.cuh"
#include "kernels/device/ring.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"
#include "vm/meaning.h"

namespace tessera::kernels {

/// Those of IsLong: unrolled 16 times they would crowd the instruction cache, and their temporaries would cost every
/// opcode registers.
template <class M>
inline constexpr bool kLong = false;
#define TESSERA_LONG(Name) \
  template <>              \
  inline constexpr bool kLong<meaning::Name> = true;
TESSERA_LONG_OPCODES(TESSERA_LONG)
#undef TESSERA_LONG

/// The machine of one thread: R rows of a tile. kFull: everything but queues. Otherwise the opcodes of IsIn, no sink
/// that can run full (no keys, or direct ones), and program, record and registers in shared memory. With kQueuedRows
/// rows it works on a batch from a queue, whose rows lie anywhere in a tablet.
template <Variant kVariant, uint32_t R = kRows>
struct Machine {
  static constexpr bool kFull = HasAll(kVariant);
  static constexpr bool kProducts = HasProducts(kVariant);
  static constexpr bool kJoins = kVariant != Variant::kLean;
  static constexpr bool kQueued = R != kRows;
  /// Groups, if there are any, are all in shared memory.
  static constexpr bool kPrivateGroups = kVariant == Variant::kLean || IsPairs(kVariant);

  const Launch& launch;
  uint8_t* shared;
  uint32_t thread;

  // The tile.
  const TileHeader* tile;
  const uint8_t* stage;
  const uint8_t* record;  ///< kFull, kQueued; otherwise it is at the head of the stage

  // The rows: bit i of a word is row RowOf(i).
  uint32_t entry;  ///< kQueued: that of the thread's first row; the next is 32 further on
  int64_t a[R];
  uint32_t live, null, null_w;

  uint32_t next;  ///< byte offset of the next instruction in the code
  bool ended;
  bool paused;                ///< at an instruction where rows are queued
  uint32_t queued0, queued1;  ///< rows in the warp's queues
  // The instruction: rows that it failed on, and why.
  uint32_t failed;
  LaneError failure;

  // The sink.
  bool reserve;  ///< first of two passes: groups are made and rows counted, nothing is applied
  bool full;     ///< the sink has no room for this slice

  __device__ __forceinline__ bool IsReserving() const { return kFull && reserve; }
  __device__ __forceinline__ bool IsFull() const { return kProducts && full; }
  __device__ __forceinline__ uint32_t RowOf(uint32_t i) const {
    if constexpr (kQueued) {
      return QueuedRows()[entry + 32 * i];
    } else {
      return (i >> 2) * (4 * kThreads) + thread * 4 + (i & 3);
    }
  }
  __device__ __forceinline__ uint32_t Lane32() const { return thread & 31; }

  __device__ __forceinline__ const uint8_t* Record() const {
    if constexpr (kFull || kQueued) {
      return record;
    } else {
      return stage;
    }
  }
  __device__ __forceinline__ const SlotRecord& Slot(uint32_t i) const {
    return reinterpret_cast<const SlotRecord*>(Record())[i];
  }
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
  static __device__ __forceinline__ uint32_t* RegisterNulls(uint8_t* r, uint32_t thread) {
    return reinterpret_cast<uint32_t*>(r) + thread;
  }
  /// The value of row i is [i * kThreads].
  template <class T>
  static __device__ __forceinline__ T* RegisterValues(uint8_t* r, uint32_t thread) {
    return reinterpret_cast<T*>(r + kThreads * 4) + thread;
  }
  __device__ __forceinline__ longlong2* Wide() const {
    return reinterpret_cast<longlong2*>(shared + launch.layout.wide) + thread;
  }
  __device__ __forceinline__ int128_t LoadWide(uint32_t i) const {
    const longlong2 v = Wide()[i * kThreads];
    return Make128(v.y, v.x);
  }
  __device__ __forceinline__ void StoreWide(uint32_t i, int128_t v) const {
    Wide()[i * kThreads] = make_longlong2(Low64(v), High64(v));
  }
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
    return reinterpret_cast<Partial*>(shared + launch.layout.warp_states) + (thread >> 5) * launch.aggregates +
           aggregate;
  }
  __device__ __forceinline__ bool KeepsThreadStates() const {
    return kProducts && launch.layout.thread_states != kNowhere;
  }
  __device__ __forceinline__ ThreadState* StateOfThread(uint32_t aggregate) const {
    return reinterpret_cast<ThreadState*>(shared + launch.layout.thread_states) + aggregate * kThreads + thread;
  }
  __device__ __forceinline__ uint32_t* CountOfThread(uint32_t aggregate) const {
    return reinterpret_cast<uint32_t*>(shared + launch.layout.thread_counts) + aggregate * kThreads + thread;
  }
  __device__ __forceinline__ uint32_t* Ordinals() const {
    return reinterpret_cast<uint32_t*>(shared + launch.layout.ordinals) + thread;
  }
  __device__ __forceinline__ const JoinRecord& Join(uint32_t i) const {
    return reinterpret_cast<const JoinRecord*>(shared + launch.layout.joins)[i];
  }
  /// The rows of the warp's queues, the first one's, then the second one's.
  __device__ __forceinline__ uint32_t* QueuedRows() const { return QueueArray(launch.layout.queues); }
  __device__ __forceinline__ uint32_t* QueueArray(uint32_t offset) const {
    return reinterpret_cast<uint32_t*>(shared + offset) + (thread >> 5) * kQueueEntries;
  }
  /// REQUIRES: the launch is a product that is cut both ways.
  __device__ __forceinline__ const UnitHeader& Unit() const {
    return reinterpret_cast<const UnitHeader*>(
        shared + launch.layout.units)[tile - reinterpret_cast<const TileHeader*>(shared + launch.layout.headers)];
  }
  __device__ __forceinline__ ProductCursor* Product(const JoinRecord& join) const {
    return reinterpret_cast<ProductCursor*>(shared + join.cursors) + thread;
  }
  /// By row of the tile.
  __device__ __forceinline__ uint32_t* Cursors(const JoinRecord& join) const {
    return reinterpret_cast<uint32_t*>(shared + join.cursors);
  }

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

  // ---- Operands -----------------------------------------------------------------------------------------------------

  __device__ __forceinline__ void FetchCodes(const uint8_t* codes, uint32_t stage_offset, uint32_t width, uint64_t base,
                                             int64_t (&v)[R]) const {
    if constexpr (kQueued) {
      LoadCodesScattered(codes, width, QueuedRows() + entry, live, base, v);
    } else if (stage_offset != kNowhere) {
      LoadCodes<false>(stage + stage_offset, width, thread, live, base, v);
    } else {
      LoadCodes<true>(codes + static_cast<uint64_t>(tile->first) * width, width, thread, live, base, v);
    }
  }

  /// A slot's values and their NULL bits.
  __device__ __forceinline__ uint32_t FetchSlot(uint32_t number, int64_t (&v)[R]) const {
    const SlotRecord& s = Slot(number);
    const SlotHead head = LoadHead(s.head);
    const uint64_t base = s.base;
    if (head.width != 0) {
      FetchCodes(head.codes, head.stage, head.width, base, v);
    } else {
      asm volatile("");  // or else these 32 moves are made before every branch to the codes
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) v[i] = static_cast<int64_t>(base);
    }
    uint32_t nulls = head.all_null ? kAllRows : 0;
    if (head.may_be_null) {
      if (s.has_null_code) {
        const int64_t null_value = static_cast<int64_t>(s.null_code);  // base + NULL code, as the values are so far
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

  /// Values and NULL bits of a 64-bit operand.
  __device__ __forceinline__ uint32_t Fetch(const DeviceInstruction& in, const InstructionHead& head,
                                            int64_t (&v)[R]) const {
    if (head.source == OperandSource::kSlot) return FetchSlot(head.slot, v);
    if (head.source == OperandSource::kRegister) return FetchRegister(head.place, v);
    if constexpr (kJoins) {
      if (head.source == OperandSource::kPayload) return FetchPayload(in, head, v);
    }
    const int64_t constant = in.low;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) v[i] = constant;
    return head.null_constant ? kAllRows : 0;
  }

  __device__ __forceinline__ uint32_t FetchRegister(uint32_t place, int64_t (&v)[R]) const {
    uint8_t* r = Register(place);
    const int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) v[i] = values[i * kThreads];
    return *RegisterNulls(r, thread);
  }

  /// What the rows' matches hold in a payload column.
  __device__ __forceinline__ uint32_t FetchPayload(const DeviceInstruction& in, const InstructionHead& head,
                                                   int64_t (&v)[R]) const {
    const JoinRecord& join = Join(head.slot);
    uint32_t nulls = 0;
    if constexpr (kProducts) {
      if (!kFull || head.payload_of_product) {
        const uint32_t row = Product(join)->row;
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
        // What a masked-off row points to may be any number; a live one without a match points at no row.
        if (kFull && cursor[e] >= rows) nulls |= 1u << i;
        if ((live >> i & 1) == 0 || cursor[e] >= rows) continue;
        v[i] = __ldg(column + cursor[e]);
        if (null_bytes != nullptr) nulls |= static_cast<uint32_t>(__ldg(null_bytes + cursor[e]) != 0) << i;
      }
    }
    return nulls;
  }

  /// Cursors of the g-th group of rows.
  __device__ __forceinline__ void LoadCursors(const JoinRecord& join, uint32_t g, uint32_t (&cursor)[4]) const {
    if constexpr (kQueued) {
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) cursor[e] = QueueArray(join.queue_cursors)[entry + 32 * (4 * g + e)];
    } else {
      const uint4 four = reinterpret_cast<const uint4*>(Cursors(join))[g * kThreads + thread];
      cursor[0] = four.x, cursor[1] = four.y, cursor[2] = four.z, cursor[3] = four.w;
    }
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
    if (in.head.wide_source == OperandSource::kPayload) {
      const JoinRecord& join = Join(in.head.slot);
      const uint32_t row = in.head.payload_of_product ? Product(join)->row : Cursors(join)[RowOf(i)];
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
      const uint8_t* p =
          head.stage != kNowhere ? stage + head.stage : head.codes + static_cast<uint64_t>(tile->first) * head.width;
      p += RowOf(i) * head.width;
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
          break;
        default:
          low = reinterpret_cast<const uint64_t*>(p)[0];
          high = reinterpret_cast<const uint64_t*>(p)[1];
      }
    }
    *is_null = head.all_null ||
               (s.has_null_code && low == s.null_code && high == static_cast<uint64_t>(s.null_code_high)) ||
               (s.null_bytes != nullptr && s.null_bytes[tile->first + RowOf(i)] != 0);
    return vm::WrapAdd(Make128(static_cast<int64_t>(high), static_cast<int64_t>(low)),
                       Make128(s.base_high, static_cast<int64_t>(s.base)));
  }

  // ---- One loop per shape -------------------------------------------------------------------------------------------

  template <class M>
  __device__ __forceinline__ void DoEnd(const DeviceInstruction& in, OperandRows<R>&) {
    if (in.low == 0) {
      ended = true;
    } else {
      MeasureAt(static_cast<uint32_t>(in.low) - 1);
    }
  }
  template <class M>
  __device__ __forceinline__ void DoSkipIfNone(const DeviceInstruction& in, OperandRows<R>&) {
    if (!__any_sync(kAllLanes, live != 0)) {
      next += (static_cast<uint32_t>(in.p3) - 1) * sizeof(DeviceInstruction);
    } else if constexpr (kVariant == Variant::kStar) {
      paused = in.head.p1 != 0;
    }
  }

  __device__ __forceinline__ void MeasureAt(uint32_t mark) const {
    const uint32_t rows = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(live)));
    if (Lane32() != 0) return;
    WarpState* warp = Warp();
    const unsigned long long now = clock64();
    Mark* m = reinterpret_cast<Mark*>(shared + launch.layout.marks) + (thread >> 5) * launch.mark_count + mark;
    m->cycles += now - warp->marked_at;
    warp->marked_at = now;
    if (!IsReserving()) m->rows += rows;
  }

  // ---- Queues -------------------------------------------------------------------------------------------------------

  /// What a few rows cost is nearly what 512 do: where filters leave few, the warp collects the rows of many slices in
  /// a queue and runs the rest of the program over batches of 128. Adds the live rows of a slice that paused (`first`:
  /// of its tile, in the tablet), then runs full batches; before rows of another tablet, and at the end, also the last,
  /// shorter one. Batches come from the ends of the queues. REQUIRES: of what the program has set before it pauses,
  /// only cursors are read later.
  __device__ __forceinline__ void RunQueues(bool end, uint32_t tablet, uint32_t first) {
    WarpState* warp = Warp();
    bool flush = end || (warp->tablet != tablet && (queued0 | queued1) != 0);
    if (end || !paused) live = 0;
    Machine<kVariant, kQueuedRows> few{launch, shared, thread};
    few.tile = tile;
    few.full = false;
    few.null = few.null_w = 0;
#pragma unroll
    for (uint32_t k = 0; k < kQueuedRows; ++k) few.a[k] = 0;
#pragma unroll 1
    for (;;) {
      uint32_t count, resume;
      bool is_first = false;
      if (queued1 >= kBatchRows || (flush && queued0 == 0 && queued1 != 0)) {
        count = min(queued1, kBatchRows);
        queued1 -= count;
        few.entry = kFirstQueue + queued1;
        resume = launch.resume[1];
      } else if (queued0 >= kBatchRows || (flush && queued0 != 0)) {
        count = min(queued0, kBatchRows);
        queued0 -= count;
        few.entry = queued0;
        resume = launch.resume[0];
        is_first = true;
      } else {
        if (!__any_sync(kAllLanes, live != 0)) return;
        __syncwarp();
        if (Lane32() == 0) warp->tablet = tablet;
        AddSlice(first);
        flush = false;
        continue;
      }
      few.entry += Lane32();
      const uint32_t mine = count > Lane32() ? (count - Lane32() + 31) / 32 : 0;
      few.live = (1u << mine) - 1;
      few.record = launch.records + static_cast<uint64_t>(warp->tablet) * launch.record_bytes;
      few.RunFrom(resume);
      if (is_first && few.paused) AddBatch(few);
    }
  }

  /// The live rows of a slice, with their cursors, go to the first queue: all of them, or the first half, if it is
  /// many. They are live no more.
  __device__ __forceinline__ void AddSlice(uint32_t first) {
    uint32_t adding = live;
    if (queued0 + __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(adding))) > kFirstQueue)
      adding &= (1u << R / 2) - 1;
    live &= ~adding;
    const uint32_t mine = static_cast<uint32_t>(__popc(adding));
    uint32_t through = mine;
#pragma unroll
    for (uint32_t d = 1; d < 32; d <<= 1) {
      const uint32_t before = __shfl_up_sync(kAllLanes, through, d);
      if (Lane32() >= d) through += before;
    }
    const uint32_t place = queued0 + through - mine;
    uint32_t* to = QueuedRows() + place;
#pragma unroll 1
    for (uint32_t left = adding; left != 0; left &= left - 1)
      *to++ = first + RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1);
#pragma unroll 1
    for (uint32_t j = 0; j < launch.carried[0]; ++j) {
      const uint32_t* from = reinterpret_cast<const uint32_t*>(shared + launch.carried_from[j]);
      to = QueueArray(launch.carried_to[0][j]) + place;
#pragma unroll 1
      for (uint32_t left = adding; left != 0; left &= left - 1)
        *to++ = from[RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1)];
    }
    queued0 += __shfl_sync(kAllLanes, through, 31);
    __syncwarp();
  }

  /// The live rows of a batch, with their cursors, go to the second queue.
  __device__ __forceinline__ void AddBatch(const Machine<kVariant, kQueuedRows>& few) {
#pragma unroll 1
    for (uint32_t i = 0; i < kQueuedRows; ++i) {
      const bool keep = (few.live >> i & 1) != 0;
      const uint32_t keeping = __ballot_sync(kAllLanes, keep);
      const uint32_t from = few.entry + 32 * i;
      const uint32_t to = kFirstQueue + queued1 + static_cast<uint32_t>(__popc(keeping & ((1u << Lane32()) - 1)));
      if (keep) {
        QueuedRows()[to] = QueuedRows()[from];
#pragma unroll 1
        for (uint32_t j = 0; j < launch.carried[1]; ++j) {
          uint32_t* cursors = QueueArray(launch.carried_to[1][j]);
          cursors[to] = cursors[from];
        }
      }
      queued1 += static_cast<uint32_t>(__popc(keeping));
    }
    __syncwarp();
  }

  // ---- Joins --------------------------------------------------------------------------------------------------------

  /// Makes one number of each row's keys, in b.v. Returns the rows whose keys all lie in the table's ranges.
  __device__ __forceinline__ uint32_t JoinNumbers(const DeviceInstruction& in, const JoinRecord& join,
                                                  OperandRows<R>& b) const {
    uint32_t inside = 0;
    if constexpr (kFull) {
      if (join.keys > 1) {
#pragma unroll 1
        for (uint32_t i = 0; i < R; ++i) {
          uint64_t number = 0;
          bool in_ranges = true;
#pragma unroll 1
          for (uint32_t k = 0; k < join.keys; ++k) {
            const uint32_t place = reinterpret_cast<const uint32_t*>(&in.low)[k];
            uint8_t* r = Register(place);
            const uint64_t part = static_cast<uint64_t>(RegisterValues<int64_t>(r, thread)[i * kThreads]) -
                                  static_cast<uint64_t>(join.low[k]);
            in_ranges &= part <= join.span[k] && (*RegisterNulls(r, thread) >> i & 1) == 0;
            number += part * join.stride[k];
          }
          RotateBy<1>(b.v);
          b.v[R - 1] = static_cast<int64_t>(number);
          inside |= static_cast<uint32_t>(in_ranges) << i;
        }
        return inside & live;
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

  /// The places of the rows of `wanted` become the direct table's values there, those of the others 0.
  template <class T>
  static __device__ __forceinline__ void LookUpDirect(const void* values, uint32_t wanted, uint32_t (&at)[R]) {
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      const uint32_t place = at[i];
      at[i] = 0;
      if ((wanted >> i & 1) != 0) at[i] = __ldg(static_cast<const T*>(values) + place);
    }
  }

  /// The rows of `found`, which lie in the range of a direct table, whose places have a match. Sets their cursors.
  __device__ __forceinline__ void ProbePlaces(const JoinRecord& join, uint32_t found, uint32_t (&at)[R]) {
    if (join.bits != nullptr) {
      uint32_t pass = 0;
      if (join.shared_bits != kNowhere) {
        const uint32_t* bits = reinterpret_cast<const uint32_t*>(shared + join.shared_bits);
#pragma unroll
        for (uint32_t i = 0; i < R; ++i) {
          const uint32_t place = (found >> i & 1) != 0 ? at[i] : 0;
          pass |= (bits[place >> 5] >> (place & 31) & 1) << i;
        }
      } else {
#pragma unroll
        for (uint32_t i = 0; i < R; ++i) {
          if ((found >> i & 1) != 0) pass |= (__ldg(join.bits + (at[i] >> 5)) >> (at[i] & 31) & 1) << i;
        }
      }
      found &= pass;
    }
    if (join.lookup == JoinLookup::kBits) {
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

  /// Keeps the rows whose value is not 0.
  __device__ __forceinline__ void SetCursors(const JoinRecord& join, const uint32_t (&value)[R]) {
    uint32_t matched = 0;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) matched |= static_cast<uint32_t>(value[i] != 0) << i;
    live = matched;
    const uint32_t less = join.rows_in_values ? 1 : 0;
    if constexpr (kQueued) {
      if (join.queue_cursors == kNowhere) return;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) QueueArray(join.queue_cursors)[entry + 32 * i] = value[i] - less;
    } else {
      if (join.cursors == kNowhere) return;
#pragma unroll
      for (uint32_t g = 0; g < R / 4; ++g) {
        reinterpret_cast<uint4*>(Cursors(join))[g * kThreads + thread] =
            make_uint4(value[4 * g] - less, value[4 * g + 1] - less, value[4 * g + 2] - less, value[4 * g + 3] - less);
      }
    }
  }

  /// A probe of a direct table with a narrow key, without making 64-bit values of the codes. Returns false if the key
  /// must be fetched.
  __device__ __forceinline__ bool ProbeAtOnce(const InstructionHead& head, const DeviceInstruction& in) {
    if (kQueued || head.source != OperandSource::kSlot) return false;
    const ProbeRecord& p = *reinterpret_cast<const ProbeRecord*>(Record() + in.state);
    const PredicateHead bound = LoadHead(p.head);
    if (bound.kind != PredicateKind::kRange) return false;
    const JoinRecord& join = Join(head.p1);
    if constexpr (!kQueued) {
      uint32_t at[R];
      LoadNarrow(stage + bound.stage, bound.width, thread, p.delta, at);
      const uint32_t span = static_cast<uint32_t>(join.span[0]);
      uint32_t found = 0;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) found |= static_cast<uint32_t>(at[i] <= span) << i;
      ProbePlaces(join, found & live, at);
    }
    return true;
  }

  /// What a sector of a hashed table has for a key: its value, 0 if it is not there; *ends: the search ends here.
  template <class Slot>
  static __device__ __forceinline__ uint32_t FindInSector(uint4 first, uint4 second, uint64_t key, bool* ends) {
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

  /// The same by open addressing; two rows together, so that their loads overlap, where there are registers for that.
  /// Slot: uint2 or uint4, a free one has the value 0. A step reads a whole sector of 32 bytes: slot by slot the
  /// instructions took longer than the memory (16 M keys: 7.9 ms).
  template <class Slot>
  __device__ __forceinline__ void LookUpHashed(const JoinRecord& join, uint32_t wanted, OperandRows<R>& b) const {
    constexpr bool kWideKey = sizeof(Slot) == 16;
    constexpr uint32_t kTogether = kFull ? 1 : 2;  // more of them take more registers than there are
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
      // (One step for all 16 rows and then the next took 1.6 times as long for 16 M keys: lanes wait for the longest
      // search.)
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

  template <class M>
  __device__ __forceinline__ void DoProbe(const DeviceInstruction& in, OperandRows<R>& b) {
    const JoinRecord& join = Join(in.head.p1);
    if constexpr (kProducts) {
      if (!kFull || join.lookup == JoinLookup::kCross) {
        ProductCursor all{0, join.rows};
        if (in.head.p1 == launch.product) {
          all.row = Unit().part * launch.part_rows;
          all.end = min(join.rows, all.row + Unit().count * launch.part_rows);
        }
        if (all.row >= all.end) live = 0;
        if (join.cursors != kNowhere) *Product(join) = all;
        return;
      }
    }
    if constexpr (IsPairs(kVariant)) return;
    const uint32_t found = JoinNumbers(in, join, b);
    bool hashed = false;
    if constexpr (kJoins && !IsPairs(kVariant)) {
      hashed = join.lookup == JoinLookup::kHash32;
      if (hashed) LookUpHashed<uint2>(join, found, b);
    }
    if constexpr (kFull) {
      if (join.lookup == JoinLookup::kHash64) {
        LookUpHashed<uint4>(join, found, b);
        hashed = true;
      }
    }
    uint32_t at[R];
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) at[i] = static_cast<uint32_t>(b.v[i]);
    if (hashed) {
      SetCursors(join, at);
    } else {
      ProbePlaces(join, found, at);
    }
  }

  /// All rows stay; one without a match points at no row. Its table holds numbers of rows, see DeviceJoins::Fill.
  template <class M>
  __device__ __forceinline__ void DoProbeOuter(const DeviceInstruction& in, OperandRows<R>& b) {
    const uint32_t all = live;
    DoProbe<meaning::Probe>(in, b);
    live = all;
    const JoinRecord& join = Join(in.head.p1);
    if (join.lookup == JoinLookup::kCross && join.rows == 0 && join.cursors != kNowhere)
      *Product(join) = ProductCursor{kNowhere, 0};
  }

  template <class M>
  __device__ __forceinline__ void DoTestMatch(const DeviceInstruction& in, OperandRows<R>&) {
    const JoinRecord& join = Join(in.head.p1);
    if (join.lookup == JoinLookup::kCross) {
      if (Product(join)->row >= join.rows) live = 0;
      return;
    }
    uint32_t pass = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) pass |= static_cast<uint32_t>(Cursors(join)[RowOf(i)] < join.rows) << i;
    live &= pass;
  }

  template <class M>
  __device__ __forceinline__ void DoRefuse(const DeviceInstruction&, OperandRows<R>&) {
    failed |= live;
    failure = LaneError::kSeveralRows;
  }

  /// As DoNext, but a row that had a match stays for a turn in which it points at no row.
  template <class M>
  __device__ __forceinline__ void DoNextOuter(const DeviceInstruction& in, OperandRows<R>& b) {
    DoNext<meaning::NextOuter>(in, b);
  }

  template <class M>
  __device__ __forceinline__ void DoNext(const DeviceInstruction& in, OperandRows<R>&) {
    constexpr bool kOuter = std::is_same_v<M, meaning::NextOuter>;
    const JoinRecord& join = Join(in.head.p1);
    uint32_t* saved = MaskRegister(static_cast<uint32_t>(in.head.slot));
    live = *saved;
    uint32_t more = 0;
    uint32_t back = static_cast<uint32_t>(in.p3);
    if (!kFull || join.lookup == JoinLookup::kCross) {
      ProductCursor* at = Product(join);
      if (kOuter && at->row != kNowhere) more = live;
      if (at->row != kNowhere && ++at->row < at->end) {
        more = live;
      } else {
        at->row = kNowhere;
      }
      if (in.head.p1 == launch.product && Unit().all != 0) back = static_cast<uint32_t>(in.low);
    } else {
      uint32_t* cursors = Cursors(join);
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        if ((live >> i & 1) == 0) continue;
        const uint32_t row = cursors[RowOf(i)];
        uint32_t after = 0;  // 1 + its number
        if (join.next != nullptr && row < join.rows) after = __ldg(join.next + row);
        if (after == 0 && (!kOuter || row >= join.rows)) continue;
        cursors[RowOf(i)] = after - 1;
        more |= 1u << i;
      }
    }
    live = more;
    *saved = more;
    if (__any_sync(kAllLanes, more != 0)) {
      // A long chain must not outlast the host's wish to cancel, which stands in device memory: one look in 32 steps.
      const uint32_t now = __shfl_sync(kAllLanes, static_cast<uint32_t>(clock()), 0);
      if ((now >> 4 & 31) == 0 && LoadRelaxed(&launch.control->stop) != 0 &&
          LoadRelaxed(&launch.control->reasons) == 0) {
        full = true;
        return;
      }
      next -= back * sizeof(DeviceInstruction);
    }
  }

  /// A row of a join table: as Emit, without the rows that have a NULL key.
  template <class M>
  __device__ __forceinline__ void DoBuild(const DeviceInstruction& in, OperandRows<R>& b) {
#pragma unroll 1
    for (uint32_t k = 0; k < launch.build_keys; ++k) live &= ~*RegisterNulls(Register(launch.key_places[k]), thread);
    DoEmit<M>(in, b);
  }

  template <class M>
  __device__ __forceinline__ void DoMaskRegister(const DeviceInstruction& in, OperandRows<R>&) {
    uint32_t* saved = MaskRegister(in.head.p1);
    uint32_t bits = *saved;
    M::Apply(live, bits);
    *saved = bits;
  }

  /// Filters whose codes had to be fetched as 64-bit values, or have 128.
  template <class M>
  __device__ __forceinline__ void DoFilter(const DeviceInstruction& in, OperandRows<R>& b) {
    const PredicateRecord& p = Predicate(in.head.p1);
    uint32_t pass = 0;
    if (p.head.kind == PredicateKind::kSet) {
      const uint8_t* set = p.set;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        if ((live >> i & 1) != 0 && __ldg(set + b.v[i]) != 0) pass |= 1u << i;
      }
      live &= pass;
      return;
    }
    if (kQueued && p.head.width <= 4) {
      const uint32_t low = static_cast<uint32_t>(p.low), span = static_cast<uint32_t>(p.span);
      const uint32_t null_code = static_cast<uint32_t>(p.null_code);
      uint32_t nulls = 0;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        const uint32_t code = static_cast<uint32_t>(b.v[i]);
        pass |= static_cast<uint32_t>(code - low <= span) << i;
        nulls |= static_cast<uint32_t>(code == null_code) << i;
      }
      if (p.head.negated) pass = ~pass;
      if (p.head.exclude_null) pass &= ~nulls;
      live &= pass;
      return;
    }
    if (p.head.width == 8) {
      const uint64_t low = p.low, span = p.span, null_code = p.null_code;
      uint32_t nulls = 0;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        pass |= static_cast<uint32_t>(static_cast<uint64_t>(b.v[i]) - low <= span) << i;
        nulls |= static_cast<uint32_t>(static_cast<uint64_t>(b.v[i]) == null_code) << i;
      }
      if (p.head.negated) pass = ~pass;
      if (p.head.exclude_null) pass &= ~nulls;
      live &= pass;
      return;
    }
    const uint8_t* codes =
        p.head.stage != kNowhere ? stage + p.head.stage : p.head.codes + static_cast<uint64_t>(tile->first) * 16;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if ((live >> i & 1) == 0) continue;
      const longlong2 c = reinterpret_cast<const longlong2*>(codes)[RowOf(i)];
      const uint128_t code = static_cast<uint128_t>(Make128(c.y, c.x));
      const uint128_t low =
          static_cast<uint128_t>(Make128(static_cast<int64_t>(p.low_high), static_cast<int64_t>(p.low)));
      const uint128_t span =
          static_cast<uint128_t>(Make128(static_cast<int64_t>(p.span_high), static_cast<int64_t>(p.span)));
      bool keep = (code - low <= span) != p.head.negated;
      if (p.head.exclude_null &&
          code == static_cast<uint128_t>(Make128(p.null_code_high, static_cast<int64_t>(p.null_code))))
        keep = false;
      pass |= static_cast<uint32_t>(keep) << i;
    }
    live &= pass;
  }

  template <class M>
  __device__ __forceinline__ void DoTest(const DeviceInstruction&, OperandRows<R>&) {
    uint32_t pass = 0;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) pass |= static_cast<uint32_t>(M::Apply(a[i], (null >> i & 1) != 0)) << i;
    live &= pass;
  }

  template <class M>
  __device__ __forceinline__ void DoTestNull(const DeviceInstruction&, OperandRows<R>&) {
    const uint32_t nulls = M::kWide ? null_w : null;
    live &= M::Apply(true) ? nulls : ~nulls;
  }

  template <class M>
  __device__ __forceinline__ void DoCompare(const DeviceInstruction& in, OperandRows<R>& b) {
    using T = typename M::Type;
    if constexpr (kIsWide<T>) {
      uint32_t pass = 0;
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        if (((live & ~null_w) >> i & 1) == 0) continue;
        bool is_null;
        const int128_t v = FetchWide(in, i, &is_null);
        pass |= static_cast<uint32_t>(!is_null && M::Apply(LoadWide(i), v)) << i;
      }
      live &= pass;
    } else {
      uint32_t pass = 0;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i)
        pass |= static_cast<uint32_t>(M::Apply(FromBits<T>(a[i]), FromBits<T>(b.v[i]))) << i;
      live &= pass & ~(null | b.null);
    }
  }

  /// Load is done where operands are fetched: straight into the accumulator.
  template <class M>
  __device__ __forceinline__ void DoLoad(const DeviceInstruction&, OperandRows<R>&) {}

  template <class M>
  __device__ __forceinline__ void DoLoadWide(const DeviceInstruction& in, OperandRows<R>&) {
    null_w = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if ((live >> i & 1) == 0) continue;
      bool is_null;
      StoreWide(i, FetchWide(in, i, &is_null));
      null_w |= static_cast<uint32_t>(is_null) << i;
    }
  }

  template <class M>
  __device__ __forceinline__ void DoStore(const DeviceInstruction& in, OperandRows<R>&) {
    uint8_t* r = Register(in.head.place);
    uint32_t* nulls = RegisterNulls(r, thread);
    *nulls = (*nulls & ~live) | (null & live);
    int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      if ((live >> i & 1) != 0) values[i * kThreads] = a[i];
    }
  }

  template <class M>
  __device__ __forceinline__ void DoStoreWide(const DeviceInstruction& in, OperandRows<R>&) {
    uint8_t* r = Register(in.head.place);
    uint32_t* nulls = RegisterNulls(r, thread);
    *nulls = (*nulls & ~live) | (null_w & live);
    longlong2* values = RegisterValues<longlong2>(r, thread);
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if ((live >> i & 1) != 0) values[i * kThreads] = Wide()[i * kThreads];
    }
  }

  template <class M>
  __device__ __forceinline__ void DoBinary(const DeviceInstruction& in, OperandRows<R>& b) {
    using T = typename M::Type;
    if constexpr (kIsWide<T>) {
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
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
        for (uint32_t i = 0; i < R; ++i) {
          int64_t x = a[0];
          const int64_t y = b.v[0];
          RotateBy<1>(a);
          RotateBy<1>(b.v);
          if ((count >> i & 1) != 0) {
            Lane lane;
            x = ToBits(M::Apply(FromBits<T>(x), FromBits<T>(y), lane));
            made_null |= static_cast<uint32_t>(lane.null) << i;
            Note(i, lane.error);
          }
          a[R - 1] = x;
        }
      } else {
#pragma unroll
        for (uint32_t g = 0; g < R / 4; ++g) {
#pragma unroll
          for (uint32_t i = 4 * g; i < 4 * g + 4; ++i) {
            Lane lane;
            a[i] = ToBits(M::Apply(FromBits<T>(a[i]), FromBits<T>(b.v[i]), lane));
            made_null |= static_cast<uint32_t>(lane.null) << i;
            if ((count >> i & 1) != 0) Note(i, lane.error);
          }
        }
      }
      null |= made_null;
    }
  }

  /// a[i] = f(i, a[i]) in a loop that is not unrolled; f may do anything but index a.
  template <class F>
  __device__ __forceinline__ void Rotating(F f) {
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      const int64_t x = a[0];
      RotateBy<1>(a);
      a[R - 1] = f(i, x);
    }
  }

  template <class M>
  __device__ __forceinline__ void DoUnary(const DeviceInstruction&, OperandRows<R>&) {
    using In = typename M::In;
    using Out = typename M::Out;
    if constexpr (kIsWide<In> && kIsWide<Out>) {
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
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
      for (uint32_t i = 0; i < R; ++i) {
        Lane lane;
        a[i] = ToBits(M::Apply(FromBits<In>(a[i]), lane));
        if ((count >> i & 1) != 0) Note(i, lane.error);
      }
    }
  }

  template <class M>
  __device__ __forceinline__ void DoUnaryField(const DeviceInstruction& in, OperandRows<R>&) {
    using T = typename M::Type;
    const int field = in.p3;
    Rotating([&](uint32_t i, int64_t x) {
      if (((live & ~null) >> i & 1) == 0) return x;
      Lane lane;
      return ToBits(M::Apply(FromBits<T>(x), field, lane));
    });
  }

  template <class M>
  __device__ __forceinline__ void DoCheck(const DeviceInstruction& in, OperandRows<R>&) {
    using T = typename M::Type;
    if constexpr (kIsWide<T>) {
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        if (((live & ~null_w) >> i & 1) == 0) continue;
        Lane lane;
        M::Apply(LoadWide(i), Make128(in.high, in.low), Make128(in.upper_high, in.upper_low), lane);
        Note(i, lane.error);
      }
    } else {
      const int64_t low = in.low, high = in.upper_low;
      const uint32_t count = live & ~null;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        Lane lane;
        M::Apply(a[i], low, high, lane);
        if ((count >> i & 1) != 0) Note(i, lane.error);
      }
    }
  }

  // ---- Groups -------------------------------------------------------------------------------------------------------

  /// The key of row i, whose parts are in registers. Its hash, NULL bits and first word are kept: one key of 64 bits,
  /// the usual case, is compared without reading it again.
  struct RowKey {
    const Machine& machine;
    uint32_t i;
    uint64_t nulls = 0, first = 0, hash;

    __device__ __forceinline__ RowKey(const Machine& m, uint32_t row) : machine(m), i(row) {
      KeyHash h;
      uint32_t count = 0;
      Words(
          [&](uint64_t w) {
            h.Add(w);
            if (count++ == 0) first = w;
          },
          &nulls);
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
      return EqualsLoaded(record,
                          [](const uint64_t* p) { return __ldcg(reinterpret_cast<const unsigned long long*>(p)); });
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

  /// The block's own table from keys to ordinals below private_groups: a cache in front of the global one, filled first
  /// come first served and never emptied in a launch. Its slots: 0 free, else 20 bits of the hash and below them 1
  /// (being written) or ordinal + 2.
  __device__ __forceinline__ uint32_t* PrivateSlots() const {
    return reinterpret_cast<uint32_t*>(shared + launch.layout.private_slots);
  }
  __device__ __forceinline__ volatile uint64_t* PrivateRecord(uint32_t ordinal) const {
    return reinterpret_cast<volatile uint64_t*>(shared + launch.layout.private_records) +
           ordinal * launch.groups.record_words;
  }
  static constexpr uint32_t kPrivateProbes = 8;
  static constexpr uint32_t kPrivateOrdinal = 0xFFF;
  static __device__ __forceinline__ uint32_t PrivateTag(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 32) & ~kPrivateOrdinal;
  }

  __device__ __forceinline__ uint32_t FindPrivate(const RowKey& key, uint64_t hash) const {
    const uint32_t mask = 2 * launch.private_groups - 1;
    uint32_t at = static_cast<uint32_t>(hash) & mask;
#pragma unroll 1
    for (uint32_t probe = 0; probe < kPrivateProbes; ++probe) {
      const uint32_t slot = LoadAcquireShared(PrivateSlots() + at);
      if (slot == 0) return kNowhere;
      const uint32_t ordinal = (slot & kPrivateOrdinal) - 2;
      if ((slot & ~kPrivateOrdinal) == PrivateTag(hash) && (slot & kPrivateOrdinal) != 1 &&
          key.EqualsPrivate(PrivateRecord(ordinal)))
        return ordinal;
      at = (at + 1) & mask;
    }
    return kNowhere;
  }

  __device__ __forceinline__ void InsertPrivate(const RowKey& key, uint64_t hash, uint32_t ordinal) const {
    const uint32_t mask = 2 * launch.private_groups - 1, tag = PrivateTag(hash);
    uint32_t at = static_cast<uint32_t>(hash) & mask;
#pragma unroll 1
    for (uint32_t probe = 0; probe < kPrivateProbes; ++probe) {
      const uint32_t slot = LoadAcquireShared(PrivateSlots() + at);
      if (slot == 0) {
        if (atomicCAS(PrivateSlots() + at, 0u, tag | 1) != 0) return;
        key.Write(PrivateRecord(ordinal));
        StoreReleaseShared(PrivateSlots() + at, tag | (ordinal + 2));
        return;
      }
      if ((slot & kPrivateOrdinal) == 1 || (slot & kPrivateOrdinal) == ordinal + 2)
        return;  // someone else is at it, perhaps with this key
      at = (at + 1) & mask;
    }
  }

  /// The keys have a small domain: they give the group's number by themselves. Lowering has made an instruction for
  /// each key.
  __device__ __forceinline__ void GroupDirectly(const DeviceInstruction& in, OperandRows<R>& b) {
    uint32_t* numbers = Ordinals();
    const uint32_t k = static_cast<uint32_t>(in.p3);
    const DirectKey key = launch.direct_keys[k];
    const bool last = k + 1 == launch.keys;
    uint8_t* touched = shared + launch.layout.private_slots;
    if (!kPrivateGroups && launch.private_groups == 0) touched = launch.touched;
    const uint32_t most = launch.direct_groups - 1;
    const uint32_t copy = !kPrivateGroups && last && launch.direct_copies > 1
                              ? blockIdx.x % launch.direct_copies * launch.direct_groups
                              : 0;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      uint32_t number = (static_cast<uint32_t>(b.v[i]) - static_cast<uint32_t>(key.low) + key.nullable) * key.stride;
      if ((b.null >> i & 1) != 0) number = 0;
      if (k != 0) number += numbers[i * kThreads];
      // The ranges come from the tablets' descriptors; if those lied, memory must not suffer.
      number = min(number, most) + copy;
      numbers[i * kThreads] = number;
      if (last && (live >> i & 1) != 0) touched[number] = 1;
    }
  }

  template <class M>
  __device__ __forceinline__ void DoGroup(const DeviceInstruction& in, OperandRows<R>& b) {
    if constexpr (kProducts) {
      if (launch.repeats && !IsReserving()) {
        const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(live)));
        if (Lane32() == 0) Warp()->fed += n;
      }
    }
    if constexpr (!kFull) {
      GroupDirectly(in, b);
    } else {
      if (launch.direct) {
        GroupDirectly(in, b);
      } else {
        GroupByHash(in, b);
      }
    }
  }

  __device__ __forceinline__ void GroupByHash(const DeviceInstruction& in, OperandRows<R>& b) {
    if (in.head.source != OperandSource::kNone ||
        in.head.wide_source != OperandSource::kNone) {  // a key that is in no register gets one
      uint8_t* r = Register(in.state);
      if (in.head.wide_source != OperandSource::kNone) {
        uint32_t nulls = 0;
#pragma unroll 1
        for (uint32_t i = 0; i < R; ++i) {
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
        for (uint32_t i = 0; i < R; ++i) values[i * kThreads] = b.v[i];
      }
    }
    // One row after the other: looking several up at once, so that their loads overlap, gained nothing with millions of
    // groups (the additions that follow are what takes the time) and cost a sixth with few.
    bool no_room = false;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      // The lanes come together after each step; left to themselves they would go through the next ones one by one.
      const bool wanted = (live >> i & 1) != 0 && !no_room;
      const RowKey key(*this, i);
      uint32_t ordinal = kNowhere;
      if (wanted && launch.private_groups != 0) ordinal = FindPrivate(key, key.hash);
      __syncwarp();
      if (wanted && ordinal == kNowhere) {
        ordinal = FindOrMakeGroup(launch.groups, launch.control, key, key.hash);
        if (ordinal == kTableFull) {
          no_room = true;
        } else if (ordinal < launch.private_groups) {
          InsertPrivate(key, key.hash, ordinal);
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
  /// Notes that the aggregate has a value in a group. Bits are only ever set in a launch, so an old line of L1 does no
  /// harm.
  __device__ __forceinline__ void MarkSeen(uint64_t* state, uint32_t aggregate) const {
    uint64_t* word = state + aggregate / 64;
    const uint64_t bit = uint64_t{1} << (aggregate % 64);
    if ((__ldca(reinterpret_cast<const unsigned long long*>(word)) & bit) == 0)
      atomicOr(AtomicWord(word), static_cast<unsigned long long>(bit));
  }
  __device__ __forceinline__ void MarkSeenPrivate(uint32_t ordinal, uint32_t aggregate) const {
    shared[launch.layout.private_seen + aggregate * launch.private_groups + ordinal] = 1;
  }

  /// A value into the state of a group in device memory. Integer sums keep the lower halves of their values apart from
  /// the upper ones: neither half can overflow 64 bits in 2^32 rows, and no addition needs the result of another.
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

  /// The same in the block's arrays: sums are four words of 32 bits each, as shared memory adds no 64-bit words at
  /// once.
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
    for (uint32_t i = 0; i < R; ++i) {
      if ((count >> i & 1) == 0) continue;
      const uint32_t ordinal = Ordinals()[i * kThreads];
      if (kPrivateGroups || (ordinal < launch.private_groups && in.private_state != kNowhere)) {
        atomicAdd(PrivateArray(in) + ordinal, 1u);
      } else {
        atomicAdd(AtomicWord(GlobalState(ordinal) + in.state), 1ull);
      }
    }
  }
  __device__ __forceinline__ void CountAll(const DeviceInstruction& in, uint32_t count) const {
    if (launch.keys != 0) return CountGroups(in, count);
    if (KeepsThreadStates()) {
      *CountOfThread(in.head.p1) += static_cast<uint32_t>(__popc(count));
      return;
    }
    const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(count)));
    if (Lane32() == 0) Aggregate(in.head.p1)->count += n;
  }

  template <class M>
  __device__ __forceinline__ void DoCountRows(const DeviceInstruction& in, OperandRows<R>&) {
    if (!IsReserving()) CountAll(in, live);
  }
  template <class M>
  __device__ __forceinline__ void DoCountValues(const DeviceInstruction& in, OperandRows<R>&) {
    if (!IsReserving()) CountAll(in, live & ~(M::kWide ? null_w : null));
  }

  /// Adds the lower halves of the values of `take`, which have no sign, and the upper ones, which have. Apart: a wide
  /// multiplication by the row's bit adds 32 bits to 64 in one instruction, without a carry and without a predicate
  /// (with them ptxas takes twelve instructions a row).
  __device__ __forceinline__ void AddHalves(uint32_t take, uint64_t* low, uint64_t* high) const {
#pragma unroll
    for (uint32_t g = 0; g < R / 4; ++g) {
#pragma unroll
      for (uint32_t i = 4 * g; i < 4 * g + 4; ++i) {
        const uint32_t bit = take >> i & 1;
        MulAddWide(low, static_cast<uint32_t>(a[i]), bit);
        MulAddWide(high, static_cast<int32_t>(a[i] >> 32), static_cast<int32_t>(bit));
      }
    }
  }

  template <class M>
  __device__ __forceinline__ void AddToThread(uint32_t aggregate, uint32_t take) {
    *CountOfThread(aggregate) += static_cast<uint32_t>(__popc(take));
    ThreadState* state = StateOfThread(aggregate);
    ThreadState now = *state;
    if constexpr (std::is_same_v<M, meaning::SumI>) {
      AddHalves(take, &now.low, &now.high);
    } else {
      using T = typename M::Type;
      typename M::State s = FromBits<typename M::State>(static_cast<int64_t>(now.low));
      Lane lane;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        typename M::State next = s;
        M::Apply(next, FromBits<T>(a[i]), lane);
        s = (take >> i & 1) != 0 ? next : s;
      }
      now.low = static_cast<uint64_t>(ToBits(s));
    }
    *state = now;
  }

  /// What the threads have added up in a slice goes to the warp. One lane does it: that is rare, and takes few
  /// registers.
  __device__ __forceinline__ void AddThreadsToWarp() {
    __syncwarp();
#pragma unroll 1
    for (uint32_t k = 0; k < launch.aggregates; ++k) {
      const DeviceInstruction& fold = launch.folds[k];
      if (Lane32() == 0) {
        Partial* to = Aggregate(k);
#pragma unroll 1
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const uint32_t n = CountOfThread(k)[lane];
          if (n == 0) continue;
          to->count += n;
          const ThreadState from = StateOfThread(k)[lane];
          WithFold(fold.head.op, [&]<class M>() {
            if constexpr (!kIsWide<typename M::Type>) {
              using State = typename M::State;
              State s;
              if constexpr (kIsWide<State>) {
                s = vm::WrapAdd(static_cast<int128_t>(static_cast<int64_t>(from.high)) * (int128_t{1} << 32),
                                static_cast<int128_t>(from.low));
              } else {
                s = FromBits<State>(static_cast<int64_t>(from.low));
              }
              State now = StateOf<State>(*to);
              Lane ignored;
              M::Merge(now, s, ignored);
              SetState(to, now);
            }
          });
        }
      }
      __syncwarp();
      *CountOfThread(k) = 0;
      *StateOfThread(k) = {static_cast<uint64_t>(fold.low), 0};
    }
    __syncwarp();
  }

  template <class M>
  __device__ __forceinline__ void DoFold(const DeviceInstruction& in, OperandRows<R>&) {
    using T = typename M::Type;
    using State = typename M::State;
    if (IsReserving()) return;
    const uint32_t take = live & ~(kIsWide<T> ? null_w : null);
    if (!__any_sync(kAllLanes, take != 0)) return;
    if (launch.keys != 0) {
      if constexpr (kIsWide<T>) {
#pragma unroll 1
        for (uint32_t i = 0; i < R; ++i) {
          if ((take >> i & 1) == 0) continue;
          const uint32_t ordinal = Ordinals()[i * kThreads];
          AddWide<M>(ordinal, in.state, LoadWide(i));
          MarkSeen(GlobalState(ordinal), in.head.p1);
        }
      } else {
        const uint32_t private_groups = in.private_state != kNowhere ? launch.private_groups : 0;
#pragma unroll 1
        for (uint32_t g = 0; g < R / 4; ++g) {
#pragma unroll
          for (uint32_t e = 0; e < 4; ++e) {
            if ((take >> (4 * g + e) & 1) == 0) continue;
            const uint32_t ordinal = Ordinals()[(4 * g + e) * kThreads];
            if (kPrivateGroups || ordinal < private_groups) {
              AddToPrivate<M>(in, ordinal, a[e]);
              MarkSeenPrivate(ordinal, in.head.p1);
            } else {
              AddToGlobal<M>(GlobalState(ordinal) + in.state, a[e]);
              MarkSeen(GlobalState(ordinal), in.head.p1);
            }
          }
          RotateBy<4>(a);
        }
      }
      return;
    }
    if constexpr (kProducts && !kIsWide<T>) {
      if (KeepsThreadStates()) {
        AddToThread<M>(in.head.p1, take);
        return;
      }
    }
    const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(take)));
    Partial* state = Aggregate(in.head.p1);
    if constexpr (std::is_same_v<M, meaning::SumI>) {
      uint64_t low_sum = 0, high_sum = 0;
      AddHalves(take, &low_sum, &high_sum);
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
        for (uint32_t i = 0; i < R; ++i) {
          if ((take >> i & 1) != 0) M::Apply(s, LoadWide(i), lane);
        }
      } else {
#pragma unroll
        for (uint32_t i = 0; i < R; ++i) {
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

  // ---- Rows ---------------------------------------------------------------------------------------------------------

  /// The warp takes `n` rows of the output, or finds that there is no room.
  __device__ __forceinline__ bool ReserveRows(unsigned long long n, unsigned long long* at) {
    unsigned long long base = 0;
    if (Lane32() == 0) {
      base = atomicAdd(&launch.control->rows, n);
      if (base + n > launch.output.capacity) {
        // The counter only grows, so whoever comes later is refused as well: rows below the least refused base are
        // written.
        atomicMin(&launch.control->rows_valid, base);
        atomicMax(&launch.control->rows_wanted, n);
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
  __device__ __forceinline__ void DoEmit(const DeviceInstruction&, OperandRows<R>&) {
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
      __syncwarp();
    } else if (!ReserveRows(n, &at)) {
      full = true;
      return;
    }
    const Output& out = launch.output;
    const uint32_t below = (1u << Lane32()) - 1;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
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
            out.high[static_cast<unsigned long long>(__ldg(out.highs + c)) * out.capacity + row] =
                static_cast<uint64_t>(v.y);
          } else {
            out.low[to] = static_cast<uint64_t>(RegisterValues<int64_t>(r, thread)[i * kThreads]);
          }
          out.null[to] = static_cast<uint8_t>(*RegisterNulls(r, thread) >> i & 1);
        }
      }
      at += static_cast<uint32_t>(__popc(lanes));
    }
  }

  // ---- The interpreter ----------------------------------------------------------------------------------------------

  __device__ __forceinline__ void AllRowsLive() {
    live = kAllRows;
    if (tile->rows == kTileRows) return;
    live = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) live |= static_cast<uint32_t>(RowOf(i) < tile->rows) << i;
  }

  __device__ __forceinline__ void ReportFailure(const DeviceInstruction& in) const {
    Control* c = launch.control;
    if (atomicCAS(&c->error_claimed, 0u, 1u) == 0) {
      c->error_address = in.address;
      c->error_code = static_cast<uint32_t>(failure);
      c->error_tablet = kQueued ? Warp()->tablet : tile->tablet;
      c->error_row = (kQueued ? 0 : tile->first) + RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(failed))) - 1);
    }
    Stop(kFailed);
  }

  /// Tests the codes of a predicate without making 64-bit values of them. Returns false if the codes must be fetched.
  __device__ __forceinline__ bool FilterAtOnce(const PredicateRecord& p, const PredicateHead& head) {
    if (head.kind == PredicateKind::kAll) return true;
    if (head.kind == PredicateKind::kNone) {
      live = 0;
      return true;
    }
    // Few rows: a test of 64-bit values costs no more.
    if (kQueued || head.kind != PredicateKind::kRange || head.width > 4) return false;
    const ulonglong2 range = *reinterpret_cast<const ulonglong2*>(&p.low);
    uint32_t low = static_cast<uint32_t>(range.x), span = static_cast<uint32_t>(range.y);
    bool negated = head.negated;
#pragma unroll 1
    for (bool last = !head.exclude_null;; last = true) {
      uint32_t pass;
      if (head.stage != kNowhere) {
        pass = TestRange<false>(stage + head.stage, head.width, thread, live, low, span);
      } else {
        pass = TestRange<true>(head.codes + static_cast<uint64_t>(tile->first) * head.width, head.width, thread, live,
                               low, span);
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
      RunFrom(0);
      if (IsFull()) return;
      if (IsReserving()) {
        const unsigned long long n = Warp()->rows_counted;
        __syncwarp();
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
    if constexpr (kProducts) {
      if (KeepsThreadStates()) AddThreadsToWarp();
      if (launch.repeats && Lane32() == 0 && Warp()->fed != 0) {
        const unsigned long long before = atomicAdd(&launch.control->fed, static_cast<unsigned long long>(Warp()->fed));
        if (before + Warp()->fed >= kMostFed) Stop(kManyFed);
        Warp()->fed = 0;
      }
    }
  }

  /// Runs the instructions from a byte offset of the code on.
  __device__ __forceinline__ void RunFrom(uint32_t start) {
    next = start;
    ended = paused = false;
#pragma unroll 1
    for (;;) {
      thread = ReadThread();
      uint32_t at = next;
      next += sizeof(DeviceInstruction);
      const InstructionHead head = LoadHead(Code(at).head);
      const Op op = head.op;
      OperandRows<R> b;
      b.null = 0;
      failed = 0;
      if (op == Op::Filter) {
        const PredicateRecord& p = Predicate(head.p1);
        const PredicateHead predicate = LoadHead(p.head);
        if (FilterAtOnce(p, predicate)) continue;
        FetchCodes(predicate.codes, predicate.stage, predicate.width, 0, b.v);
      } else if (op == Op::Load) {
        null = Fetch(Code(at), head, a);
        continue;
      } else if (kVariant == Variant::kStar && op == Op::Probe && ProbeAtOnce(head, Code(at))) {
        continue;
      } else if (head.source != OperandSource::kNone) {
        b.null = Fetch(Code(at), head, b.v);
      } else {
        // Without a value on every path the operand counts as live from one instruction to the next: 900 bytes of
        // spills.
        asm volatile("");
#pragma unroll
        for (uint32_t i = 0; i < R; ++i) b.v[i] = 0;
      }
      // What the head said is not kept in registers for the shapes; the few that need more of it read it again.
      asm volatile("" : "+r"(at));
      const DeviceInstruction& in = Code(at);
      switch (op) {
#define TESSERA_CASE_Any(Name, Shape)                                        \
  case Op::Name:                                                             \
    if constexpr (IsIn(kVariant, Op::Name)) Do##Shape<meaning::Name>(in, b); \
    break;
#define TESSERA_CASE_Host(Name, Shape)
#define OPCODE(Name, Shape, P1, P2, P3, P4, In, Out, Where, ...) TESSERA_CASE_##Where(Name, Shape)
#include "vm/opcodes.def"
#undef OPCODE
#undef TESSERA_CASE_Any
#undef TESSERA_CASE_Host
#ifdef TESSERA_MORE_CASES  // what more opcodes would cost: bench/gpu_opcode_bench_more.cu
        TESSERA_MORE_CASES
#endif
        default:
          break;
      }
      if (ended) return;
      if (kVariant == Variant::kStar && paused) return;
      if (failed != 0) ReportFailure(in);
      if (IsFull()) return;
    }
  }
};

}  // namespace tessera::kernels
