// The state of the VM's machine for the rows of one thread, and where each part of it lies. Device code; a thread of an
// interpreting warp has one.
//
// What the machine does is defined by matter, one file each: machine_operands.cuh, machine_filters.cuh and so on. The
// declarations below name the files; comments on members stand there, with the definitions. interpreter.cuh includes
// them all and has the loop over instructions.
//
// Do<Shape><M> is the loop over the thread's rows for the opcodes of a shape (vm/program/opcodes.def), instantiated with the
// meaning M of one opcode (vm/meaning/meaning.h). It gets the instruction and the operand that was fetched for it.
//
// Start at: Machine.
#pragma once

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

/// The machine of one thread: R rows of a tile. kFull: everything but queues. Otherwise the opcodes of IsIn, no sink
/// that can run full (no keys, or direct ones), and program, record and registers in shared memory. With kQueuedRows
/// rows it works on a batch from a queue, whose rows lie anywhere in a tablet; where HasAllQueued says so, it is full then
/// (IsBehindQueue).
template <Variant kVariant, uint32_t R = kRows>
struct Machine {
  static constexpr bool kQueued = R != kRows;
  static constexpr bool kFull = HasAll(kVariant) || (HasAllQueued(kVariant) && kQueued);
  static constexpr bool kNestedLoops = HasNestedLoops(kVariant);
  static constexpr bool kJoins = kVariant != Variant::kLean;
  static constexpr bool kHasShortCursors = HasQueues(kVariant);
  /// Whether it has an opcode.
  static constexpr bool Has(Op op) {
    if (Selects(kVariant) && !kQueued) return IsOfSelection(op);
    return HasAllQueued(kVariant) && kQueued ? IsBehindQueue(op) : IsIn(kVariant, op);
  }
  /// Groups, if there are any, are all in shared memory.
  static constexpr bool kPrivateGroups = kVariant == Variant::kLean || IsPairs(kVariant);

  // ---- State --------------------------------------------------------------------------------------------------------

  const Launch& launch;
  uint8_t* shared;  ///< the block's shared memory, laid out as launch.layout says
  uint32_t thread;  ///< number in the block

  // The tile.
  const TileHeader* tile;
  const uint8_t* stage;   ///< of the ring: its staged columns
  const uint8_t* record;  ///< its tablet's record. kFull, kQueued; otherwise it is at the head of the stage

  // The rows: bit i of a word is row RowOf(i).
  uint32_t entry;   ///< kQueued: the queue's entry of the thread's first row; the next one is 32 entries on
  int64_t a[R];     ///< accumulator A; doubles as bits
  uint32_t live;    ///< the selection mask
  uint32_t null;    ///< NULL bits of A
  uint32_t null_w;  ///< NULL bits of W, whose values are in shared memory

  // The program.
  uint32_t next;  ///< byte offset of the next instruction in the code
  bool ended;
  bool paused;                ///< at an instruction where rows are queued
  uint32_t queued0, queued1;  ///< rows in the warp's queues

  // The instruction: rows that it failed on, and why.
  uint32_t failed;
  LaneError failure;

  // The sink.
  bool reserve;  ///< first of two passes: groups are made and rows counted, nothing is applied
  bool full;     ///< the sink has no room for this slice; it always has where HasAllQueued says so

  // ---- Where things lie ---------------------------------------------------------------------------------------------

  __device__ __forceinline__ bool IsReserving() const { return kFull && reserve; }
  __device__ __forceinline__ bool IsFull() const { return kNestedLoops && full; }
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
    return reinterpret_cast<const PredicateRecord*>(Record() + launch.code.slots * sizeof(SlotRecord))[i];
  }
  __device__ __forceinline__ uint32_t* MaskRegister(uint32_t i) const {
    return reinterpret_cast<uint32_t*>(shared + launch.layout.masks) + i * kThreads + thread;
  }
  __device__ __forceinline__ uint8_t* Register(uint32_t register_at) const {
    uint8_t* base = shared;
    if constexpr (kFull) {
      if ((register_at & kInScratch) != 0) base = launch.state.scratch + blockIdx.x * launch.state.scratch_bytes;
    }
    return base + (register_at & kRegisterOffset);
  }
  static __device__ __forceinline__ uint32_t* RegisterNulls(uint8_t* r, uint32_t thread) {
    return reinterpret_cast<uint32_t*>(r) + thread;
  }
  /// The value of row i is [i * kThreads].
  template <class T>
  static __device__ __forceinline__ T* RegisterValues(uint8_t* r, uint32_t thread) {
    return reinterpret_cast<T*>(r + kThreads * 4) + thread;
  }
  /// The words of row i in a register, wide or not.
  __device__ __forceinline__ const uint64_t* RegisterWords(uint8_t* r, uint32_t register_at, uint32_t i) const {
    const uint32_t shift = (register_at & kWideRegister) != 0 ? 4 : 3;
    return reinterpret_cast<const uint64_t*>(r + kThreads * 4 + ((i * kThreads + thread) << shift));
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
      if (launch.layout.code == kNowhere) code = reinterpret_cast<const uint8_t*>(launch.code.instructions);
    }
    return *reinterpret_cast<const DeviceInstruction*>(code + offset);
  }
  __device__ __forceinline__ WarpState* Warp() const {
    return reinterpret_cast<WarpState*>(shared + launch.layout.warps) + (thread >> 5);
  }
  __device__ __forceinline__ Partial* PartialOf(const DeviceInstruction& fold) const {
    return reinterpret_cast<Partial*>(shared + launch.layout.warp_states) +
           (thread >> 5) * launch.aggregates.block_partials + fold.state;
  }
  __device__ __forceinline__ bool KeepsThreadStates() const {
    return kNestedLoops && launch.layout.thread_states != kNowhere;
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
  __device__ __forceinline__ uint32_t* QueuedRows() const {
    return reinterpret_cast<uint32_t*>(shared + launch.layout.queues) + QueueAt();
  }
  /// Where the warp's part of an array of queues begins.
  __device__ __forceinline__ uint32_t QueueAt() const { return (thread >> 5) * launch.queues.entries; }
  /// REQUIRES: tiles are cut into parts.
  __device__ __forceinline__ uint32_t PartNumber() const { return tile->index / launch.input.whole_tiles; }
  /// REQUIRES: the launch is a grid.
  __device__ __forceinline__ const UnitHeader& Unit() const {
    return reinterpret_cast<const UnitHeader*>(
        shared + launch.layout.units)[tile - reinterpret_cast<const TileHeader*>(shared + launch.layout.headers)];
  }
  __device__ __forceinline__ NestedLoopCursor* LoopCursor(const JoinRecord& join) const {
    return reinterpret_cast<NestedLoopCursor*>(shared + join.cursors) + thread;
  }
  /// The number of row i in its tablet, and its code there.
  __device__ __forceinline__ uint32_t TabletRow(uint32_t i) const { return (kQueued ? 0 : tile->first) + RowOf(i); }
  __device__ __forceinline__ const uint8_t* CodeOf(const SlotHead& head, uint32_t i) const {
    if (!kQueued && head.stage != kNowhere) return stage + head.stage + RowOf(i) * head.width;
    return head.codes + static_cast<uint64_t>(TabletRow(i)) * head.width;
  }
  /// The cursor of row i.
  __device__ __forceinline__ uint32_t CursorOf(const JoinRecord& join, uint32_t i) const {
    if constexpr (kQueued) {
      return LoadCursor(join.queue_cursors, QueueAt() + entry + 32 * i);
    } else {
      return LoadCursor(join.cursors, RowOf(i));
    }
  }
  /// REQUIRES: the table is hashed, so that its cursors are long ones.
  __device__ __forceinline__ void SetCursor(const JoinRecord& join, uint32_t i, uint32_t cursor) const {
    if constexpr (kQueued) {
      StoreCursor(join.queue_cursors, QueueAt() + entry + 32 * i, cursor);
    } else {
      Cursors(join)[RowOf(i)] = cursor;
    }
  }
  /// An element of the cursors that lie at an offset, which says how many bytes they have.
  __device__ __forceinline__ uint32_t LoadCursor(uint32_t offset, uint32_t i) const {
    if (kHasShortCursors && (offset & kShortCursors) != 0)
      return reinterpret_cast<const uint16_t*>(shared + offset - kShortCursors)[i];
    return reinterpret_cast<const uint32_t*>(shared + offset)[i];
  }
  __device__ __forceinline__ void StoreCursor(uint32_t offset, uint32_t i, uint32_t cursor) const {
    if (kHasShortCursors && (offset & kShortCursors) != 0) {
      reinterpret_cast<uint16_t*>(shared + offset - kShortCursors)[i] = static_cast<uint16_t>(cursor);
    } else {
      reinterpret_cast<uint32_t*>(shared + offset)[i] = cursor;
    }
  }
  /// Those of a batch: every 32nd from the i-th on.
  __device__ __forceinline__ void LoadCursors(uint32_t offset, uint32_t i, uint32_t (&cursor)[kQueuedRows]) const {
    if (kHasShortCursors && (offset & kShortCursors) != 0) {
      const uint16_t* from = reinterpret_cast<const uint16_t*>(shared + offset - kShortCursors) + i;
#pragma unroll
      for (uint32_t k = 0; k < kQueuedRows; ++k) cursor[k] = from[32 * k];
    } else {
      const uint32_t* from = reinterpret_cast<const uint32_t*>(shared + offset) + i;
#pragma unroll
      for (uint32_t k = 0; k < kQueuedRows; ++k) cursor[k] = from[32 * k];
    }
  }
  __device__ __forceinline__ void StoreCursors(uint32_t offset, uint32_t i,
                                               const uint32_t (&cursor)[kQueuedRows]) const {
    if (kHasShortCursors && (offset & kShortCursors) != 0) {
      uint16_t* to = reinterpret_cast<uint16_t*>(shared + offset - kShortCursors) + i;
#pragma unroll
      for (uint32_t k = 0; k < kQueuedRows; ++k) to[32 * k] = static_cast<uint16_t>(cursor[k]);
    } else {
      uint32_t* to = reinterpret_cast<uint32_t*>(shared + offset) + i;
#pragma unroll
      for (uint32_t k = 0; k < kQueuedRows; ++k) to[32 * k] = cursor[k];
    }
  }
  /// By row of the tile. REQUIRES: they are long ones.
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
    atomicOr(&launch.state.control->reasons, reason);
    atomicExch(&launch.state.control->stop, 1u);
  }

  // ---- Operands: machine_operands.cuh -------------------------------------------------------------------------------

  __device__ uint32_t Fetch(const DeviceInstruction& in, const InstructionHead& head, int64_t (&v)[R]) const;
  __device__ void FetchCodes(const uint8_t* codes, uint32_t stage_offset, uint32_t width, uint64_t base,
                             int64_t (&v)[R]) const;
  __device__ uint32_t FetchSlot(uint32_t number, int64_t (&v)[R]) const;
  __device__ uint32_t FetchRegister(uint32_t register_at, int64_t (&v)[R]) const;
  __device__ uint32_t FetchPayload(const DeviceInstruction& in, const InstructionHead& head, int64_t (&v)[R]) const;
  __device__ void LoadCursors(const JoinRecord& join, uint32_t g, uint32_t (&cursor)[4]) const;
  __device__ int128_t FetchWide(const DeviceInstruction& in, uint32_t i, bool* is_null) const;
  __device__ int64_t FetchSecond(const DeviceOperand& second, uint32_t i, bool* is_null) const;

  // ---- Filters: machine_filters.cuh ---------------------------------------------------------------------------------

  __device__ bool FilterAtOnce(const PredicateRecord& p, const PredicateHead& head);
  template <class M>
  __device__ void DoFilter(const DeviceInstruction& in, OperandRows<R>& b);
  template <class M>
  __device__ void DoTest(const DeviceInstruction&, OperandRows<R>&);
  template <class M>
  __device__ void DoTestNull(const DeviceInstruction&, OperandRows<R>&);
  template <class M>
  __device__ void DoCompare(const DeviceInstruction& in, OperandRows<R>& b);
  template <class M>
  __device__ void DoMaskRegister(const DeviceInstruction& in, OperandRows<R>&);

  // ---- Values: machine_arithmetic.cuh -------------------------------------------------------------------------------

  template <class M>
  __device__ void DoLoad(const DeviceInstruction&, OperandRows<R>&);
  template <class M>
  __device__ void DoLoadWide(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoStore(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoStoreWide(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoBinary(const DeviceInstruction& in, OperandRows<R>& b);
  template <class M>
  __device__ void DoTernary(const DeviceInstruction& in, OperandRows<R>& b);
  template <class F>
  __device__ void Rotating(F f);
  template <class M>
  __device__ void DoTotal(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoUnary(const DeviceInstruction&, OperandRows<R>&);
  template <class M>
  __device__ void DoUnaryField(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoCheck(const DeviceInstruction& in, OperandRows<R>&);

  // ---- Probes of join tables: machine_probes.cuh --------------------------------------------------------------------

  __device__ static uint32_t MatchAfter(const JoinRecord& join, uint32_t row, uint32_t steps);
  __device__ void SkipMatches(const JoinRecord& join);
  __device__ uint32_t JoinNumbers(const DeviceInstruction& in, const JoinRecord& join, OperandRows<R>& b) const;
  __device__ void DropOtherKeys(const DeviceInstruction& in, const JoinRecord& join);
  template <class T>
  static __device__ void LookUpDirect(const void* values, uint32_t wanted, uint32_t (&at)[R]);
  __device__ void ProbePlaces(const JoinRecord& join, uint32_t found, uint32_t (&at)[R]);
  __device__ void SetCursors(const JoinRecord& join, const uint32_t (&value)[R]);
  __device__ bool ProbeAtOnce(const InstructionHead& head, const DeviceInstruction& in);
  template <class Slot>
  static __device__ uint32_t FindInSector(uint4 first, uint4 second, uint64_t key, bool* ends);
  template <class Slot>
  __device__ void LookUpHashed(const JoinRecord& join, uint32_t wanted, OperandRows<R>& b) const;
  template <class M>
  __device__ void DoProbe(const DeviceInstruction& in, OperandRows<R>& b);
  template <class M>
  __device__ void DoProbeOuter(const DeviceInstruction& in, OperandRows<R>& b);
  template <class M>
  __device__ void DoTestMatch(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoRefuse(const DeviceInstruction&, OperandRows<R>&);
  template <class M>
  __device__ void DoNextOuter(const DeviceInstruction& in, OperandRows<R>& b);
  template <class M>
  __device__ void DoNext(const DeviceInstruction& in, OperandRows<R>&);

  // ---- Queues: machine_queues.cuh -----------------------------------------------------------------------------------

  __device__ void RunQueues();
  __device__ void AddSlice();
  __device__ void AddBatch(const Machine<kVariant, kQueuedRows>& few);

  // ---- Groups: machine_groups.cuh -----------------------------------------------------------------------------------

  struct RowKey;
  __device__ uint32_t* PrivateSlots() const;
  __device__ volatile uint64_t* PrivateRecord(uint32_t ordinal) const;
  static __device__ uint32_t PrivateTag(uint64_t hash);
  __device__ uint32_t FindPrivate(const RowKey& key, uint64_t hash) const;
  __device__ void InsertPrivate(const RowKey& key, uint64_t hash, uint32_t ordinal) const;
  __device__ void GroupDirectly(const DeviceInstruction& in, OperandRows<R>& b);
  template <class M>
  __device__ void DoGroup(const DeviceInstruction& in, OperandRows<R>& b);
  __device__ uint32_t FindLive(uint32_t number, uint32_t through, uint32_t* i) const;
  __device__ void GroupByHash(const DeviceInstruction& in, OperandRows<R>& b);

  // ---- Aggregates: machine_folds.cuh --------------------------------------------------------------------------------

  __device__ uint32_t* PrivateArray(const DeviceInstruction& in) const;
  __device__ uint64_t* GlobalState(uint32_t ordinal) const;
  __device__ void MarkSeen(uint64_t* state, uint32_t aggregate) const;
  __device__ void MarkSeenPrivate(uint32_t ordinal, uint32_t aggregate) const;
  template <class M>
  static __device__ void AddToGlobal(uint64_t* s, int64_t v);
  template <class M>
  __device__ void AddToPrivate(const DeviceInstruction& in, uint32_t ordinal, int64_t v) const;
  template <class M>
  __device__ void AddToShared(uint32_t ordinal, const DeviceInstruction& in, typename M::Type v) const;
  template <class M>
  __device__ uint32_t AddLargeGroups(const DeviceInstruction& in, uint32_t take);
  __device__ void AddOutsideOfWindow(uint32_t ordinal, uint32_t window, double v) const;
  template <class M>
  __device__ void AddToWindows(const DeviceInstruction& in, uint32_t take);
  template <class M>
  __device__ uint32_t AddToBlockWindows(const DeviceInstruction& in, uint32_t take);
  __device__ void CountGroups(const DeviceInstruction& in, uint32_t count) const;
  __device__ void CountAll(const DeviceInstruction& in, uint32_t count) const;
  template <class M>
  __device__ void DoCountRows(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoCountValues(const DeviceInstruction& in, OperandRows<R>&);
  __device__ void AddHalves(uint32_t take, uint64_t* low, uint64_t* high) const;
  template <class M>
  __device__ void AddToThread(uint32_t aggregate, uint32_t take);
  __device__ void AddThreadsToWarp();
  template <class M>
  __device__ void DoFold(const DeviceInstruction& in, OperandRows<R>&);

  // ---- Rows: machine_rows.cuh ---------------------------------------------------------------------------------------

  __device__ bool ReserveRows(unsigned long long n, unsigned long long* at);
  template <class M>
  __device__ void DoEmit(const DeviceInstruction&, OperandRows<R>&);
  template <class M>
  __device__ void DoBuild(const DeviceInstruction& in, OperandRows<R>& b);

  // ---- The loop over instructions: interpreter.cuh ------------------------------------------------------------------

  __device__ void Run();
  __device__ void RunFrom(uint32_t start);
  __device__ void RunSelection();
  __device__ void AllRowsLive();
  __device__ void ReportFailure(const DeviceInstruction& in) const;
  template <class M>
  __device__ void DoEnd(const DeviceInstruction& in, OperandRows<R>&);
  template <class M>
  __device__ void DoSkipIfNone(const DeviceInstruction& in, OperandRows<R>&);
  __device__ void MeasureAt(uint32_t mark) const;
};

}  // namespace tessera::kernels
