// Lowering: from a section to the instructions that the VM kernel reads, as far as the section alone decides. No CUDA
// here. Private to kernels/; any thread.
//
// Start at: LowerProgram.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/launch/instruction.h"
#include "vm/pair_ranges.h"
#include "vm/program.h"
#include "vm/string_pool.h"

namespace tessera::kernels {

/// OK, or kUnsupported with the reason why the VM kernel cannot run the section.
Status CanLower(const vm::Program& program, int section);

/// What a group key is a copy of.
struct KeySource {
  OperandSource source = OperandSource::kNone;  ///< kSlot, kPayload; kNone: it is computed
  uint16_t slot = 0;                            ///< the slot, the join table
  uint32_t payload = 0;
};

/// What follows from the section alone. Registers are given by number here; PlanLaunch makes offsets of
/// them.
struct LoweredProgram {
  std::vector<DeviceInstruction> code;
  std::vector<DeviceInstruction> folds;  ///< one per aggregate: op, state; low and high are the identity
  std::vector<bool> wide_registers;      ///< one per register; the section's, then at most one of ours for a group key
  std::vector<uint32_t> keys;            ///< the register of each group key
  std::vector<KeySource> key_sources;    ///< per key
  bool own_key_register = false;         ///< the last register is ours
  std::vector<uint32_t> outputs;         ///< ... of each emitted column
  int32_t first_build_key = -1;          ///< join tables: the slot that the first key is a copy of, -1 if there is none
  std::vector<bool> slot_values, slot_codes;  ///< per slot: read as values; read by a predicate through its codes
  uint32_t masks = 0;
  bool uses_wide = false;  ///< accumulator W
  bool two_passes = false;
  bool repeats = false;             ///< a row can reach the sink more than once
  int32_t grid_join = -1;           ///< the join table of the grid; -1: none
  vm::RangeProgram ranges;          ///< ... which of its units can hold a match, if both sides are sorted
  bool full_only = false;           ///< has a join that only the full instantiation can do
  std::vector<bool> reads_cursors;  ///< per join table
  /// Per join table: the slots that the keys of its latest look-up are copies of; none: it is not looked up, or by
  /// others.
  std::vector<std::vector<uint32_t>> probe_slots;
  // Groups.
  uint32_t record_words = 0, state_words = 0, lock_word = kNowhere;
  std::vector<uint64_t> initial_state;
  std::vector<uint32_t> narrow_sums, wide_sums;  ///< state words of SumI and SumW
};
/// REQUIRES: CanLower, and the program is verified.
LoweredProgram LowerProgram(const vm::Program& program, int section, vm::StringPool* strings);

}  // namespace tessera::kernels
