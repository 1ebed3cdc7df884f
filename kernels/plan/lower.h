// Lowering: turns a section into the instructions of the VM kernel, as far as this depends on the section alone. No
// CUDA here. Private to kernels/; any thread.
//
// Start at: LowerProgram.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/launch/instruction.h"
#include "kernels/text/text_tests.h"
#include "vm/encode/pair_ranges.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {
struct SectionTraits;
}

namespace tessera::kernels {

/// OK, or kUnsupported with the reason why the VM kernel cannot run the section.
Status CanLower(const vm::Program& program, int section);

/// What a group key is a copy of.
struct KeySource {
  OperandSource source = OperandSource::kNone;  ///< kSlot, kPayload; kNone: the key is computed
  uint16_t slot = 0;                            ///< the slot; kPayload: the join table
  uint32_t payload = 0;
};

/// What the code needs of the machine.
struct MachineNeeds {
  std::vector<bool> wide_registers;  ///< one per register; the section's, then at most one that we add for a key
  uint32_t masks = 0;
  bool uses_wide = false;   ///< accumulator W
  bool two_passes = false;  ///< see LaunchInput::two_passes
  bool repeats = false;     ///< a row can reach the sink more than once
  bool full_only = false;   ///< has a join that only the full instantiation can run
};

/// What the code reads of the section's slots.
struct SlotReads {
  std::vector<bool> values, codes;  ///< per slot: read as values; read by a predicate through its codes
  TextTests text_tests;             ///< predicates that are decided from texts in device memory
};

/// The keys of groups, or of the join table that the section builds.
struct LoweredKeys {
  std::vector<uint32_t> registers;  ///< of each group key
  std::vector<KeySource> sources;   ///< per group key
  int32_t build_slot = -1;          ///< sink join table: the slot that the first key copies, or -1
};

/// The join tables that the section probes.
struct LoweredJoins {
  int32_t grid = -1;                ///< the join table of the grid; -1: none
  vm::RangeProgram ranges;          ///< ... and its ranges, to find units with matches if both sides are sorted
  std::vector<bool> reads_cursors;  ///< per join table
  /// Per join table: the slots that the keys of its last probe copy. Empty: it is not probed, or not all keys are
  /// copies of slots.
  std::vector<std::vector<uint32_t>> probe_slots;
};

/// Records and states of groups, in words: see DeviceGroups.
struct GroupWordLayout {
  uint32_t record_words = 0, state_words = 0, lock_word = kNowhere;
  std::vector<uint64_t> initial_state;
  std::vector<uint32_t> narrow_sums, wide_sums;  ///< state words of SumI and SumW
};

/// Everything that depends on the section alone. Registers are numbers here; PlanLaunch turns them into offsets.
struct LoweredProgram {
  std::vector<DeviceInstruction> code;
  std::vector<DeviceInstruction> folds;  ///< one per aggregate: op, state; low and high are the identity
  uint32_t partials = 0;                 ///< without keys: of all aggregates
  std::vector<uint32_t> outputs;         ///< the register of each emitted column
  MachineNeeds machine;
  SlotReads slots;
  LoweredKeys keys;
  LoweredJoins joins;
  GroupWordLayout groups;
};
/// `traits`: of the section. REQUIRES: CanLower, and the program is verified.
LoweredProgram LowerProgram(const vm::Program& program, int section, const vm::SectionTraits& traits,
                            vm::StringPool* strings);

}  // namespace tessera::kernels
