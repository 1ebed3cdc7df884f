// Lowering: from a section and bound tablets to what a launch needs, decided on the host. Which columns go through the
// ring, where registers live, how groups are kept. No CUDA here. Private to kernels/.
//
// Start at: LowerProgram, PlanLaunch, FillRecord.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/launch/launch.h"
#include "vm/bind.h"
#include "vm/meaning.h"
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

/// A payload column of a join table on the device: a field of the cursor, or a column of the table's rows.
struct PayloadShape {
  bool wide = false;
  bool nullable = false;
  int64_t low = 0, high = -1;  ///< range of its values, not wide; low > high: it has none
  // Packed.
  uint32_t shift = 0, mask = 0;
  int64_t base = 0;         ///< value = base + field
  int64_t null_field = -1;  ///< the field of a NULL
  // Otherwise device addresses; 0: no NULL, not wide.
  uint64_t column = 0, column_high = 0, nulls = 0;
};

/// A join table on the device, as far as planning has to know it.
struct JoinShape {
  JoinRecord record;  ///< but for what a launch decides, the places in shared memory
  bool packed = false;
  std::vector<PayloadShape> payload;
  double share = 1;            ///< of the rows of the table it is made from that are in it
  double range_share = 1;      ///< of foreign keys that lie between its least and greatest key, as an estimate
  bool rows_by_place = false;  ///< its rows are in the order of the parts of its places
};

/// What follows from the section alone. Register places are numbers of registers here; PlanLaunch makes addresses of
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
  int32_t product = -1;             ///< the join table whose product with the source is cut both ways
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

struct DeviceLimits {
  uint32_t shared_per_block = 0;  ///< with opt-in
  uint32_t shared_per_multiprocessor = 0;
  uint64_t cache_bytes = 0;      ///< L2
  uint64_t groups = UINT64_MAX;  ///< that a table in device memory has room for
};

/// What depends on the tablets of a launch, too.
struct LaunchPlan {
  Layout layout;
  struct OnDemand {
    uint32_t slot;
    double touched;  ///< share of its 32-byte sectors that are read, as estimated
  };
  std::vector<StagedSlot> staged;
  std::vector<OnDemand> on_demand;
  std::vector<uint32_t> stage_of_slot;         ///< per slot: offset in a stage, kNowhere
  std::vector<uint32_t> places;                ///< per register
  std::vector<DeviceInstruction> code, folds;  ///< with places and private arrays
  uint64_t scratch_bytes = 0;                  ///< per block
  uint32_t record_bytes = 0;
  bool record_staged = false;
  uint32_t private_groups = 0;
  bool direct = false;
  uint32_t direct_groups = 0;        ///< all there can be; in device memory if private_groups is 0
  Variant variant = Variant::kFull;  ///< the least instantiation that can run it
  std::vector<JoinRecord> joins;     ///< of the whole program, by number
  struct Probe {
    uint32_t join, slot;
  };
  uint32_t resume[kQueues] = {};  ///< as in Launch, as what follows
  std::vector<uint32_t> carried_from, carried_to[kQueues];
  std::vector<Probe> probes;  ///< with a slot as key, in the order of their ProbeRecords
  DirectKey direct_keys[kMaxDirectKeys];
  /// What is measured, by number of the mark: what lies behind the look-ups in a join table, or kBegin, kEnd: of the
  /// slice. Empty: nothing.
  static constexpr int kBegin = -1, kEnd = -2;
  std::vector<int> marks;
};
/// `joins` has an entry for each join table of the program, nullptr for those that are not on the device. `measure`:
/// with marks, if there are joins.
Result<LaunchPlan> PlanLaunch(const vm::Section& section, const LoweredProgram& lowered,
                              const std::vector<const vm::BoundTablet*>& tablets,
                              const std::vector<const JoinShape*>& joins, const DeviceLimits& limits, bool measure);

/// Bytes of a slot's codes in the tablet where they have most.
uint32_t CodeWidth(const std::vector<const vm::BoundTablet*>& tablets, size_t slot);

/// A look-up in the code of a plan, in the order in which rows come to them.
struct LookUp {
  uint16_t join = 0;
  double live = 1;  ///< share of the source's rows that get there, as an estimate
};
std::vector<LookUp> LookUps(const vm::Section& section, const LoweredProgram& lowered, const LaunchPlan& plan,
                            const std::vector<const vm::BoundTablet*>& tablets,
                            const std::vector<const JoinShape*>& joins);
/// Bytes of a join table that are looked at to find out what a key has: values, or bits where there are only these.
uint64_t LookUpBytes(const JoinRecord& record);

/// For EXPLAIN ANALYZE: the instantiation, the staged columns, how each table is looked up and in which order, the
/// groups.
std::string Describe(const LaunchPlan& plan);

/// Device addresses of what a bound tablet points to; nullptr where it is not needed.
struct TabletAddresses {
  const uint8_t* const* codes;  ///< per slot: the chunk's streams
  const uint8_t* const* nulls;
  const int64_t* const* maps;  ///< per slot
  const uint8_t* const* map_nulls;
  const uint8_t* const* sets;  ///< per predicate
};
/// Writes the SlotRecords, PredicateRecords and ProbeRecords of a tablet to `record`, plan.record_bytes long. REQUIRES:
/// it is aligned to 16 bytes.
void FillRecord(const vm::BoundTablet& tablet, const LaunchPlan& plan, const TabletAddresses& addresses,
                uint8_t* record);

}  // namespace tessera::kernels
