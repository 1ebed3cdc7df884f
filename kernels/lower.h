// Lowering: from a section and bound tablets to what a launch needs, decided on the host. Which columns go through the
// ring, where registers live, how groups are kept. No CUDA here. Private to kernels/.
//
// Start at: LowerProgram, PlanLaunch, FillRecord.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/machine.h"
#include "vm/bind.h"
#include "vm/program.h"
#include "vm/string_pool.h"

namespace tessera::kernels {

/// OK, or kUnsupported with the reason why the VM kernel cannot run the section.
Status CanLower(const vm::Program& program, int section);

/// What follows from the section alone. Register places are numbers of registers here; PlanLaunch makes addresses of
/// them.
struct LoweredProgram {
  std::vector<DeviceInstruction> code;
  std::vector<DeviceInstruction> folds;  ///< one per aggregate: op, state; low and high are the identity
  std::vector<bool> wide_registers;      ///< one per register; the section's, then at most one of ours for a group key
  std::vector<uint32_t> keys;            ///< the register of each group key
  std::vector<int32_t> key_slots;        ///< per key: the slot that it is a copy of, -1 if it is computed
  bool own_key_register = false;         ///< the last register is ours
  std::vector<uint32_t> outputs;         ///< ... of each emitted column
  std::vector<bool> slot_values, slot_codes;  ///< per slot: read as values; read by a predicate through its codes
  uint32_t masks = 0;
  bool uses_wide = false;  ///< accumulator W
  bool two_passes = false;
  // Groups.
  uint32_t record_words = 0, state_words = 0, lock_word = kNowhere;
  std::vector<uint64_t> initial_state;
  std::vector<uint32_t> narrow_sums, wide_sums;  ///< state words of SumI and SumW
};
/// REQUIRES: CanLower, and the program is verified.
LoweredProgram LowerProgram(const vm::Program& program, int section, vm::StringPool* strings);

struct DeviceLimits {
  uint32_t shared_per_block = 0;  ///< with opt-in
  uint32_t shared_per_multiprocessor = 0;
};

/// What depends on the tablets of a launch, too.
struct LaunchPlan {
  Layout layout;
  std::vector<StagedSlot> staged;
  std::vector<uint32_t> stage_of_slot;         ///< per slot: offset in a stage, kNowhere
  std::vector<uint32_t> places;                ///< per register
  std::vector<DeviceInstruction> code, folds;  ///< with places and private arrays
  uint64_t scratch_bytes = 0;                  ///< per block
  uint32_t record_bytes = 0;
  bool record_staged = false;
  uint32_t private_groups = 0;
  bool direct = false;
  bool lean = false;  ///< the lean instantiation can run it
  DirectKey direct_keys[kMaxDirectKeys];
};
Result<LaunchPlan> PlanLaunch(const vm::Section& section, const LoweredProgram& lowered,
                              const std::vector<const vm::BoundTablet*>& tablets, const DeviceLimits& limits);

/// Device addresses of what a bound tablet points to; nullptr where it is not needed.
struct TabletAddresses {
  std::vector<const uint8_t*> codes, nulls;  ///< per slot: the chunk's streams
  std::vector<const int64_t*> maps;          ///< per slot
  std::vector<const uint8_t*> map_nulls;
  std::vector<const uint8_t*> sets;  ///< per predicate
};
/// Writes the SlotRecords and PredicateRecords of a tablet to `record`, plan.record_bytes long.
void FillRecord(const vm::BoundTablet& tablet, const LaunchPlan& plan, const TabletAddresses& addresses,
                uint8_t* record);

}  // namespace tessera::kernels
