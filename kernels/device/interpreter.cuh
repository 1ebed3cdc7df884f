// The interpreter's loop: one switch, expanded from the opcode table, calls the loop of the opcode's shape,
// instantiated with its meaning. kernels/README.md describes the machine; opcodes.def lists the instructions,
// vm/meaning/meaning.h says what they mean for a row. Includes the whole of Machine (machine.cuh declares it).
//
// All lanes of a warp take the same way through the loop; warps of a block do not wait for each other, so a warp's
// slice (512 rows) is what is applied wholly or not at all.
//
// Start at: Machine::Run.
#pragma once

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/machine.cuh"
#include "kernels/device/machine_arithmetic.cuh"
#include "kernels/device/machine_filters.cuh"
#include "kernels/device/machine_folds.cuh"
#include "kernels/device/machine_groups.cuh"
#include "kernels/device/machine_operands.cuh"
#include "kernels/device/machine_probes.cuh"
#include "kernels/device/machine_queues.cuh"
#include "kernels/device/machine_rows.cuh"
#include "kernels/device/ptx.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

/// Runs the program over the warp's slice of a tile. If the sink has no room, `full` is set and nothing was applied.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::Run() {
#pragma unroll 1
  for (uint32_t pass = kFull && launch.input.two_passes ? 0 : 1; pass < 2; ++pass) {
    reserve = pass == 0;
    AllRowsLive();
    null = null_w = 0;
    if constexpr (Selects(kVariant)) {
      RunSelection();
    } else {
      RunFrom(0);
    }
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
  if constexpr (kNestedLoops) {
    if (KeepsThreadStates()) AddThreadsToWarp();
    if (launch.repeats && Lane32() == 0 && Warp()->fed != 0) {
      const unsigned long long before =
          atomicAdd(&launch.state.control->fed, static_cast<unsigned long long>(Warp()->fed));
      if (before + Warp()->fed >= kMostFed) Stop(kManyFed);
      Warp()->fed = 0;
    }
  }
}

/// Runs the instructions from a byte offset of the code on.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::RunFrom(uint32_t start) {
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
    } else if (HasQueues(kVariant) && op == Op::Probe && ProbeAtOnce(head, Code(at))) {
      continue;
    } else if (head.source != OperandSource::kNone) {
      b.null = Fetch(Code(at), head, b.v);
    } else {
      // With a path that gives it no value, the operand would count as live from one instruction to the next: 900 bytes
      // of spills.
      asm volatile("");
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) b.v[i] = 0;
    }
    // What the head said is not kept in registers for the shapes; the few that need more of it read it again.
    asm volatile("" : "+r"(at));
    const DeviceInstruction& in = Code(at);
    switch (op) {
#define TESSERA_CASE_Full(Name, Shape)                            \
  case Op::Name:                                                  \
    if constexpr (Has(Op::Name)) Do##Shape<meaning::Name>(in, b); \
    break;
#define TESSERA_CASE_Lean TESSERA_CASE_Full
#define TESSERA_CASE_Star TESSERA_CASE_Full
#define TESSERA_CASE_Pairs TESSERA_CASE_Full
#define TESSERA_CASE_States TESSERA_CASE_Full
#define TESSERA_CASE_Host(Name, Shape)
#define OPCODE(Name, Shape, In, Out, Tier, ...) TESSERA_CASE_##Tier(Name, Shape)
#include "vm/program/opcodes.def"
#undef OPCODE
#undef TESSERA_CASE_Full
#undef TESSERA_CASE_Lean
#undef TESSERA_CASE_Star
#undef TESSERA_CASE_Pairs
#undef TESSERA_CASE_States
#undef TESSERA_CASE_Host
#ifdef TESSERA_MORE_CASES  // what more opcodes would cost: bench/gpu_opcode_bench_more.cu
      TESSERA_MORE_CASES
#endif
      default:
        break;
    }
    if (ended) return;
    if (HasQueues(kVariant) && paused) return;
    if (failed != 0) ReportFailure(in);
    if (IsFull()) return;
  }
}

/// Runs a program that selects up to where its rows wait. No operand becomes a value of 64 bits, so this takes few registers
/// and little code: more warps, which is what hides how long each of these steps waits for the one before it.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::RunSelection() {
  next = 0;
  ended = paused = false;
#pragma unroll 1
  while (!ended && !paused) {
    thread = ReadThread();
    const DeviceInstruction& in = Code(next);
    next += sizeof(DeviceInstruction);
    const InstructionHead head = LoadHead(in.head);
    OperandRows<R> none;
    if (head.op == Op::Filter) {
      const PredicateRecord& p = Predicate(head.p1);
      FilterAtOnce(p, LoadHead(p.head));
    } else if (head.op == Op::Probe) {
      ProbeAtOnce(head, in);
    } else if (head.op == Op::SkipIfNone) {
      DoSkipIfNone<meaning::SkipIfNone>(in, none);
    } else {
      DoEnd<meaning::End>(in, none);
    }
  }
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::AllRowsLive() {
  live = kAllRows;
  if (tile->rows != kTileRows) {
    live = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) live |= static_cast<uint32_t>(RowOf(i) < tile->rows) << i;
  }
  if constexpr (HasAll(kVariant)) {
    if (launch.input.part_bits != 0) live &= RowsOfPart(PartNumber(), launch.input.part_bits);
  }
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::ReportFailure(const DeviceInstruction& in) const {
  Control* c = launch.state.control;
  if (atomicCAS(&c->error_claimed, 0u, 1u) == 0) {
    c->error_address = in.address;
    c->error_code = static_cast<uint32_t>(failure);
    c->error_tablet = kQueued ? Warp()->tablet : tile->tablet;
    c->error_row = (kQueued ? 0 : tile->first) + RowOf(static_cast<uint32_t>(__ffs(static_cast<int>(failed))) - 1);
  }
  Stop(kFailed);
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoEnd(const DeviceInstruction& in, OperandRows<R>&) {
  if (in.low == 0) {
    ended = true;
  } else {
    MeasureAt(static_cast<uint32_t>(in.low) - 1);
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoSkipIfNone(const DeviceInstruction& in, OperandRows<R>&) {
  if (!__any_sync(kAllLanes, live != 0)) {
    next += (static_cast<uint32_t>(in.p3) - 1) * sizeof(DeviceInstruction);
  } else if constexpr (HasQueues(kVariant)) {
    paused = in.head.p1 != 0;
  }
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::MeasureAt(uint32_t mark) const {
  const uint32_t rows = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(live)));
  if (Lane32() != 0) return;
  WarpState* warp = Warp();
  const unsigned long long now = clock64();
  Mark* m = reinterpret_cast<Mark*>(shared + launch.layout.marks) + (thread >> 5) * launch.joins.mark_count + mark;
  m->cycles += now - warp->marked_at;
  warp->marked_at = now;
  if (!IsReserving()) m->rows += rows;
}

}  // namespace tessera::kernels
