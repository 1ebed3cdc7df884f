// Rewrites the code for a launch: drops what this launch does not need, and adds what only some launches need. Private
// to kernels/plan/; any thread.
//
// Start at: Compact.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/plan/join_shape.h"
#include "kernels/plan/lower.h"

namespace tessera::kernels {

/// Whether an instruction probes a join table.
inline bool Probes(const DeviceInstruction& d) { return d.head.op == Op::Probe || d.head.op == Op::ProbeOuter; }

/// Whether p3 registers, from head.register_at on, are listed in the instruction: keys of a probe, if there are several or
/// one has 128 bits; words of a state.
inline bool ListsRegisters(const DeviceInstruction& d) {
  if (vm::Info(d.head.op).shape == vm::Shape::Total) return true;
  return Probes(d) && d.p3 > 0 && d.head.source == OperandSource::kNone;
}

/// Whether an instruction makes the rows that are left wait in a queue.
inline bool QueuesRows(const DeviceInstruction& d) { return d.head.op == Op::SkipIfNone && d.head.p1 != 0; }

/// Whether the second operand of an instruction is a register.
inline bool ReadsSecondRegister(const DeviceInstruction& d) {
  return HasSecond(d.head.op) && SecondOf(d).source == OperandSource::kRegister;
}

/// Registers that the code uses, or that groups and rows are made from.
std::vector<bool> UsedRegisters(const LoweredProgram& lowered, bool direct, const std::vector<DeviceInstruction>& code);

/// For direct groups: Group becomes one instruction per key, which reads the key's column. Instructions that only moved
/// keys into registers are dropped.
void ReadKeysDirectly(const LoweredProgram& lowered, std::vector<DeviceInstruction>* code);

/// Drops instructions without effect: Group without keys, and loads of A that nothing reads (at a jump's target A has
/// no value, so what comes next in the code decides). Then jumps, which were addresses in the program, become
/// distances.
void Compact(int keys, const LoweredProgram& lowered, std::vector<DeviceInstruction>* code);

/// What a mark measures if it does not stand after the probes of a join table: the begin, or the end, of a slice.
inline constexpr int kSliceBegin = -1, kSliceEnd = -2;
/// Puts marks before the SkipIfNone after the probes of each join table, and at both ends of the program. Returns what
/// each of them measures: rows and time after the probes of this join table, kSliceBegin or kSliceEnd; none without
/// joins.
std::vector<int> AddMarks(std::vector<DeviceInstruction>* code);

/// Sets where a payload operand is found.
void SetPayload(const JoinShape& join, DeviceInstruction* d);

}  // namespace tessera::kernels
