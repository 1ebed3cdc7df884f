// The code of a launch, rewritten: what only some launches need, or need in another order. Private to kernels/plan/; any
// thread.
//
// Start at: Compact.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/plan/join_shape.h"
#include "kernels/plan/lower.h"

namespace tessera::kernels {

/// Whether an instruction looks keys up.
inline bool Probes(const DeviceInstruction& d) { return d.head.op == Op::Probe || d.head.op == Op::ProbeOuter; }

/// Lets the rows that are left wait in a queue.
inline bool QueuesRows(const DeviceInstruction& d) { return d.head.op == Op::SkipIfNone && d.head.p1 != 0; }

/// Whether the second operand of an instruction is a register.
inline bool ReadsSecondRegister(const DeviceInstruction& d) {
  return HasSecond(d.head.op) && SecondOf(d).source == OperandSource::kRegister;
}

/// Registers that the code reads, or that groups and rows are made from.
std::vector<bool> UsedRegisters(const LoweredProgram& lowered, bool direct, const std::vector<DeviceInstruction>& code);

/// Direct groups: Group becomes an instruction per key, which fetches the key's column; what only moved keys into
/// registers goes.
void ReadKeysDirectly(const LoweredProgram& lowered, std::vector<DeviceInstruction>* code);

/// Drops instructions without effect: Group without keys, and loads of A that nothing reads (at a jump's target A has
/// no value, so what comes next in the code decides). Then jumps, which are addresses of the program so far, become
/// distances.
void Compact(int keys, const LoweredProgram& lowered, std::vector<DeviceInstruction>* code);

/// Puts marks before the SkipIfNone behind the look-ups of each join table, and at both ends of the program. Returns
/// what they are, see LaunchPlan::marks; without joins none.
std::vector<int> AddMarks(std::vector<DeviceInstruction>* code);

/// Says where a payload operand is found.
void SetPayload(const JoinShape& join, DeviceInstruction* d);

}  // namespace tessera::kernels
