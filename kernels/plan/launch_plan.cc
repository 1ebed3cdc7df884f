#include "kernels/plan/launch_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/plan/filter_order.h"
#include "kernels/plan/group_layout.h"
#include "kernels/plan/launch_code.h"
#include "kernels/plan/narrow_codes.h"
#include "kernels/plan/selectivity.h"

namespace tessera::kernels {

using vm::Section;
using vm::Shape;

namespace {

/// A column is staged if at least this fraction of its sectors is read: a bulk copy moves all sectors, but at the full
/// rate of the memory.
constexpr double kStagedShare = 0.5;
constexpr uint32_t kMaxSharedCode = 128;     ///< instructions; 8 KiB
constexpr uint32_t kMaxStagedRecord = 4096;  ///< bytes
constexpr uint32_t kLeastPrivateGroups = 256, kMaxPrivateGroups = 1024;
constexpr uint32_t kMaxDirectGroups = 4096;  ///< in shared memory
/// Direct groups in device memory: kFarGroupsPerRow for each row that is grouped. To clear a group and to look at it
/// once more takes a tenth of the time that a row takes to find its group by a hash (on an H200, 1.1 M rows of 1.5 M
/// customers: 2.7 ms, by hash 10.9). Or, whatever the filters leave, as many as take less time than to read the rows.
constexpr uint64_t kMostFarGroups = 1 << 30, kCheapFarGroups = 1 << 20, kRowsPerCheapGroup = 16;
constexpr double kFarGroupsPerRow = 4;
constexpr uint32_t kCheapPrivateBytes = 6 << 10;
/// From this number of rows on, groups in shared memory are worth the occupancy that they cost: an addition in device
/// memory takes four times as long.
constexpr double kManyGroupedRows = 16e6;
constexpr uint32_t kReservedPerBlock = 1024;  ///< shared memory that the system takes from each block

/// Whether the instantiation for nested-loop joins can do the instruction.
bool IsOfProduct(const DeviceInstruction& d, const std::vector<JoinRecord>& joins) {
  if ((d.head.op == Op::Probe || d.head.op == Op::Next) && joins[d.head.p1].probe != ProbeKind::kNestedLoop)
    return false;
  if (d.head.source == OperandSource::kPayload && joins[d.head.slot].probe != ProbeKind::kNestedLoop) return false;
  return IsIn(Variant::kPairs, d.head.op);
}

bool IsStar(const DeviceInstruction& d, const std::vector<JoinRecord>& joins) {
  if (d.head.op == Op::Probe) {
    const ProbeKind probe = joins[d.head.p1].probe;
    if (probe != ProbeKind::kBits && probe != ProbeKind::kDirect && probe != ProbeKind::kHash32) return false;
  }
  return IsIn(Variant::kStar, d.head.op);
}

/// Fraction of a column's 32-byte sectors that hold a live row.
double TouchedShare(double live, uint32_t width) { return 1 - std::pow(1 - live, 32.0 / width); }

/// Makes one plan, step by step: each step takes shared memory and writes its part of the plan.
class LaunchPlanner {
 public:
  /// `queue`: rows may wait in queues. A plan with queues for the full instantiation cannot be used: that has none.
  LaunchPlanner(const Section& section, const LoweredProgram& lowered,
                const std::vector<const vm::TabletEncoding*>& tablets, const std::vector<uint32_t>& widths,
                const std::vector<const JoinShape*>& joins, const DeviceLimits& limits, bool queue)
      : section_(section),
        lowered_(lowered),
        tablets_(tablets),
        widths_(widths),
        joins_(joins),
        limits_(limits),
        queue_(queue),
        keys_(section.sink == Section::Sink::kGroups ? static_cast<uint32_t>(section.keys) : 0),
        half_(limits.shared_per_multiprocessor / 2 - kReservedPerBlock),
        selectivities_(PredicateSelectivities(section, tablets, joins)) {}

  Result<LaunchPlan> Run(bool measure) {
    plan_.code = lowered_.code;
    plan_.folds = lowered_.folds;
    plan_.joins = PlanJoins(plan_.code, joins_);
    live_ = OrderFilters(section_, selectivities_, widths_, joins_, plan_.joins, queue_, &plan_.code);
    if (measure) plan_.marks = AddMarks(&plan_.code);
    PlaceState();
    PlaceRecords();
    ChooseStaging();
    if (keys_ > 0) PlaceDirectGroups();
    Compact(static_cast<int>(keys_), lowered_, &plan_.code);
    NoteQueues();
    TESSERA_TRY(PlaceRegisters());
    ChooseKernel();
    if (HasAll(plan_.variant) && layout_.queues != kNowhere) return std::move(plan_);
    TESSERA_TRY(FitBlocks());
    PatchAddresses();
    return std::move(plan_);
  }

 private:
  /// Takes the next `bytes` bytes of shared memory.
  uint32_t Take(uint32_t bytes) {
    const uint32_t offset = at_;
    at_ += RoundUp(bytes, 16);
    return offset;
  }

  /// Everything that shared memory holds in any case.
  void PlaceState() {
    layout_.barriers = Take(2 * kMaxStages * 8);
    layout_.headers = Take(kMaxStages * sizeof(TileHeader));
    layout_.warps = Take(kWarps * sizeof(WarpState));
    if (lowered_.joins.grid >= 0) layout_.units = Take(kMaxStages * sizeof(UnitHeader));
    if (plan_.code.size() <= kMaxSharedCode) {
      const uint32_t more = keys_ > 0 ? kMaxDirectKeys : 0;  // direct groups may take one more instruction per key
      layout_.code = Take(static_cast<uint32_t>((plan_.code.size() + more) * sizeof(DeviceInstruction)));
    }
    if (keys_ == 0) layout_.warp_states = Take(static_cast<uint32_t>(kWarps * lowered_.partials * sizeof(Partial)));
    if (keys_ == 0 && lowered_.machine.repeats && !lowered_.folds.empty()) {
      const uint32_t states = static_cast<uint32_t>(lowered_.folds.size()) * kThreads;
      layout_.thread_states = Take(states * sizeof(ThreadState));
      layout_.thread_counts = Take(states * sizeof(uint32_t));
    }
    if (!plan_.marks.empty()) layout_.marks = Take(static_cast<uint32_t>(kWarps * plan_.marks.size() * sizeof(Mark)));
    layout_.masks = Take(lowered_.machine.masks * kThreads * 4);
    layout_.joins = Take(static_cast<uint32_t>(plan_.joins.size() * sizeof(JoinRecord)));
    const auto queues = std::count_if(plan_.code.begin(), plan_.code.end(), QueuesRows);
    plan_.queues.entries = static_cast<uint32_t>(queues) * kQueueRows;
    PlaceCursors();
    if (plan_.queues.entries != 0) {
      layout_.queues = Take(kWarps * plan_.queues.entries * 4);
      layout_.row_places = kThreads * kQueuedRows;
    }
    if (lowered_.machine.uses_wide) layout_.wide = Take(layout_.row_places * 16);
    if (keys_ > 0) layout_.ordinals = Take(layout_.row_places * 4);
  }

  /// Bitmaps of join tables, and rows' cursors into them, also those of rows that wait in queues.
  void PlaceCursors() {
    for (size_t j = 0; j < plan_.joins.size(); ++j) {
      if (joins_[j] == nullptr) continue;
      if (plan_.joins[j].shared_bits != kNowhere) plan_.joins[j].shared_bits = Take(plan_.joins[j].bits_bytes);
      if (!lowered_.joins.reads_cursors[j] && plan_.joins[j].hashed == 0) continue;  // (hashed keys are compared there)
      if (plan_.joins[j].probe == ProbeKind::kNestedLoop) {
        plan_.joins[j].cursors = Take(kThreads * sizeof(NestedLoopCursor));
        continue;
      }
      // Whether cursors are set before rows are queued for the first time, for the second time, or later.
      uint32_t queues = 0, before = 0;
      bool probed = false;
      for (const DeviceInstruction& d : plan_.code) {
        queues += QueuesRows(d) ? 1 : 0;
        probed |= Probes(d) && d.head.p1 == j;
        if (!probed) before = queues;
      }
      const bool is_short = queues > 0 && HasShortCursors(j);
      const uint32_t bytes = is_short ? 2 : 4, kind = is_short ? kShortCursors : 0;
      if (before == 0) plan_.joins[j].cursors = Take(kTileRows * bytes) | kind;
      if (queues == 0) continue;
      const uint32_t waiting = Take(kWarps * plan_.queues.entries * bytes) | kind;
      plan_.joins[j].queue_cursors = waiting;
      if (before == 0) {
        plan_.queues.carried_from.push_back(plan_.joins[j].cursors);
        plan_.queues.carried_to[0].push_back(waiting);
      }
      if (before <= 1) plan_.queues.carried_to[1].push_back(waiting);
    }
  }

  /// Where a row without a match stays, its cursor says that, which takes more bytes.
  bool HasShortCursors(size_t join) const {
    const JoinRecord& r = plan_.joins[join];
    return r.probe == ProbeKind::kDirect && r.width <= 2 &&
           std::none_of(plan_.code.begin(), plan_.code.end(),
                        [&](const DeviceInstruction& d) { return d.head.op == Op::ProbeOuter && d.head.p1 == join; });
  }

  /// The records of a tablet.
  void PlaceRecords() {
    plan_.record.bytes = static_cast<uint32_t>(section_.slots.size() * sizeof(SlotRecord) +
                                               section_.predicates.size() * sizeof(PredicateRecord));
    for (DeviceInstruction& d : plan_.code) {
      if (d.head.op != Op::Probe || d.head.source != OperandSource::kSlot) continue;
      plan_.record.probes.push_back({d.head.p1, d.head.slot});
      d.state = plan_.record.bytes;
      plan_.record.bytes += sizeof(ProbeRecord);
    }
    plan_.record.bytes = std::max<uint32_t>(plan_.record.bytes, 16);
    plan_.record.staged = plan_.record.bytes <= kMaxStagedRecord;
  }

  /// A stage of the ring: the record, then columns in the order of their first use.
  void ChooseStaging() {
    plan_.columns.stage_of_slot.assign(section_.slots.size(), kNowhere);
    uint32_t stage = plan_.record.staged ? RoundUp(plan_.record.bytes, 128) : 0;
    for (const FirstUse& use : FirstUses(section_, lowered_.machine.masks, plan_.code, selectivities_, joins_)) {
      const uint32_t width = widths_[use.slot];
      if (width == 0) continue;
      const double touched = TouchedShare(use.live, width);
      if (use.waited || touched < kStagedShare || at_ + 2 * (stage + width * kTileRows) > half_) {
        plan_.columns.on_demand.push_back({use.slot, touched});
        if (use.waited && touched >= kStagedShare && plan_.columns.prefetched.size() < kMaxPrefetched)
          plan_.columns.prefetched.push_back(use.slot);
        continue;
      }
      plan_.columns.stage_of_slot[use.slot] = stage;
      plan_.columns.staged.push_back({use.slot, stage});
      stage += width * kTileRows;
    }
    layout_.stage_bytes = RoundUp(std::max<uint32_t>(stage, 128), 128);
  }

  /// Direct groups: in shared memory if that costs no block, or if there are many rows; else in device memory.
  void PlaceDirectGroups() {
    uint64_t rows = 0;
    for (const vm::TabletEncoding* t : tablets_) rows += t->rows;
    const auto grouped = static_cast<uint64_t>(static_cast<double>(rows) * live_ * kFarGroupsPerRow);
    const uint64_t far = std::clamp(grouped, std::min(kCheapFarGroups, rows / kRowsPerCheapGroup), kMostFarGroups);
    const uint64_t most = std::min(std::max<uint64_t>(kMaxDirectGroups, far), limits_.groups);
    plan_.groups.domain = PlanDirect(lowered_, tablets_, joins_, static_cast<uint32_t>(most), plan_.groups.keys);
    plan_.groups.direct = plan_.groups.domain != 0;
    if (plan_.groups.direct && plan_.groups.domain <= kMaxDirectGroups) {
      const uint32_t private_bytes = LayOutPrivate(lowered_, true, plan_.groups.domain, 0, nullptr, nullptr);
      const bool fits = at_ + private_bytes + 2 * layout_.stage_bytes + 512 <= half_;
      if (fits && (private_bytes <= kCheapPrivateBytes || static_cast<double>(rows) * live_ > kManyGroupedRows))
        plan_.groups.private_groups = plan_.groups.domain;
    }
    if (plan_.groups.direct) ReadKeysDirectly(lowered_, &plan_.code);
    if (plan_.groups.private_groups != 0)
      at_ += LayOutPrivate(lowered_, true, plan_.groups.private_groups, at_, &layout_, &plan_.folds);
  }

  /// Notes where the program goes on with rows from a queue.
  void NoteQueues() {
    for (size_t i = 0, queues = 0; i < plan_.code.size(); ++i) {
      if (QueuesRows(plan_.code[i]))
        plan_.queues.resume[queues++] = static_cast<uint32_t>((i + 1) * sizeof(DeviceInstruction));
    }
  }

  /// Registers are in shared memory while two blocks fit on a multiprocessor, the others in device memory.
  Status PlaceRegisters() {
    const std::vector<bool> used = UsedRegisters(lowered_, plan_.groups.direct, plan_.code);
    for (size_t r = 0; r < lowered_.machine.wide_registers.size(); ++r) {
      const bool wide = lowered_.machine.wide_registers[r];
      if (!used[r]) {
        plan_.registers.push_back(0);
        continue;
      }
      const uint32_t bytes = RegisterBytes(layout_.row_places, wide), kind = wide ? kWideRegister : 0;
      if (at_ + bytes + 2 * layout_.stage_bytes + 256 <= half_) {
        plan_.registers.push_back(Take(bytes) | kind);
      } else {
        if (plan_.scratch_bytes + bytes > kRegisterOffset)
          return Status(ErrorCode::kResource, "the section has too many registers for a GPU");
        plan_.registers.push_back(static_cast<uint32_t>(plan_.scratch_bytes) | kInScratch | kind);
        plan_.scratch_bytes += bytes;
      }
    }
    return Status::Ok();
  }

  /// Chooses the smallest instantiation that can run the code.
  void ChooseKernel() {
    const auto has_states = [](const DeviceInstruction& d) { return !IsIn(Variant::kFull, d.head.op); };
    if (std::ranges::any_of(plan_.code, has_states)) {
      plan_.variant = Variant::kStates;
      return;
    }
    bool by_row = false;
    for (const vm::TabletEncoding* t : tablets_) {
      for (const vm::SlotEncoding& b : t->slots) by_row |= b.decode == vm::Decode::kMapRow || b.null_bytes != nullptr;
    }
    const bool simple = layout_.code != kNowhere && plan_.record.staged && plan_.scratch_bytes == 0 &&
                        (keys_ == 0 || plan_.groups.direct) && (!lowered_.machine.two_passes || plan_.groups.direct) &&
                        !lowered_.machine.full_only;
    const bool far_groups = plan_.groups.direct && plan_.groups.private_groups == 0;
    if (simple && !far_groups && layout_.queues == kNowhere &&
        std::all_of(plan_.code.begin(), plan_.code.end(), [](const DeviceInstruction& d) {
          return IsIn(Variant::kLean, d.head.op) && d.head.source != OperandSource::kPayload;
        })) {
      plan_.variant = Variant::kLean;
    } else if (simple && !by_row && std::all_of(plan_.code.begin(), plan_.code.end(), [&](const DeviceInstruction& d) {
                 return IsStar(d, plan_.joins);
               })) {
      plan_.variant = IsSelection() ? Variant::kSelect : Variant::kStar;
    } else if (layout_.queues != kNowhere) {
      if (!by_row && MayQueue()) plan_.variant = IsSelection() ? Variant::kSelectFull : Variant::kQueue;
    } else if (simple && !far_groups && lowered_.joins.grid >= 0 &&
               std::all_of(plan_.code.begin(), plan_.code.end(),
                           [&](const DeviceInstruction& d) { return IsOfProduct(d, plan_.joins); })) {
      plan_.variant = Variant::kPairs;
    }
  }

  /// Whether the program up to where rows wait is filters and probes of narrow codes alone, in all tablets.
  bool IsSelection() const {
    const auto queue = std::find_if(plan_.code.begin(), plan_.code.end(), QueuesRows);
    if (queue == plan_.code.end()) return false;
    for (auto d = plan_.code.begin(); d <= queue; ++d) {
      if (!IsOfSelection(d->head.op)) return false;
      if (d->head.op == Op::SkipIfNone && !EndsAt(d + d->p3)) return false;
      for (const vm::TabletEncoding* t : tablets_) {
        if (d->head.op == Op::Filter) {
          const vm::PredicateEncoding& p = t->predicates[d->head.p1];
          if (!IsNarrowFilter(*t, p, IsStaged(static_cast<size_t>(p.slot)))) return false;
        } else if (d->head.op == Op::Probe) {
          if (d->head.source != OperandSource::kSlot) return false;
          if (!IsNarrowProbe(*t, d->head.slot, plan_.joins[d->head.p1], IsStaged(d->head.slot))) return false;
        }
      }
    }
    return true;
  }
  bool IsStaged(size_t slot) const { return plan_.columns.stage_of_slot[slot] != kNowhere; }
  /// (A mark is an End that does not end.)
  bool EndsAt(std::vector<DeviceInstruction>::const_iterator d) const {
    while (d->head.op == Op::End && d->low != 0) ++d;
    return d->head.op == Op::End;
  }

  /// Whether the instantiation with queues can do what the others cannot: rows are queued before anything that it has not
  /// for whole tiles, and all that come from the queue have room in the sink.
  bool MayQueue() {
    for (size_t j = 0; j < joins_.size(); ++j) {
      if (joins_[j] != nullptr && plan_.joins[j].probe == ProbeKind::kNestedLoop) return false;
    }
    const auto queue = std::find_if(plan_.code.begin(), plan_.code.end(), QueuesRows);
    const bool can =
        layout_.code != kNowhere && plan_.record.staged && !lowered_.machine.two_passes && !lowered_.machine.repeats &&
        lowered_.joins.grid < 0 &&
        std::all_of(plan_.code.begin(), queue, [&](const DeviceInstruction& d) { return IsStar(d, plan_.joins); }) &&
        std::all_of(queue, plan_.code.end(), [](const DeviceInstruction& d) { return IsBehindQueue(d.head.op); });
    const bool groups = section_.sink == Section::Sink::kGroups;
    if (!can || (groups && (keys_ == 0 || plan_.groups.direct))) return can;
    const uint64_t warps = uint64_t{limits_.multiprocessors} * BlocksOf(Variant::kSelectFull) * kWarps;
    uint64_t rows = 0;
    for (const vm::TabletEncoding* t : tablets_) rows += t->rows;
    plan_.queues.spare = static_cast<uint32_t>(std::min(rows, warps * RowsUnderWay(kMaxStages)));
    return plan_.queues.spare <= (groups ? limits_.groups / 8 : limits_.rows);
  }

  /// As many blocks as fit with two stages. Then three stages and private groups, if they cost no block.
  Status FitBlocks() {
    const uint32_t least = RoundUp(at_, 128) + 2 * layout_.stage_bytes;
    uint32_t room = limits_.shared_per_block;
    for (uint32_t blocks = BlocksOf(plan_.variant); blocks >= 1; --blocks) {
      const uint32_t share =
          std::min(limits_.shared_per_block, limits_.shared_per_multiprocessor / blocks - kReservedPerBlock);
      // Groups in shared memory are worth a block.
      const uint32_t groups = keys_ > 0 && !plan_.groups.direct && blocks > 1
                                  ? LayOutPrivate(lowered_, false, kLeastPrivateGroups, 0, nullptr, nullptr)
                                  : 0;
      if (least + groups + 256 <= share) {
        room = share;
        break;
      }
    }
    if (least + 256 > room)
      return Status(ErrorCode::kResource, "the section needs more shared memory than a GPU block has");
    layout_.stages = RoundUp(at_, 128) + 3 * layout_.stage_bytes + 256 <= room ? 3 : 2;
    if (keys_ > 0 && !plan_.groups.direct) {
      const uint32_t left = room - 256 - RoundUp(at_, 128) - layout_.stages * layout_.stage_bytes;
      for (uint32_t n = kMaxPrivateGroups; n >= 32; n /= 2) {
        if (LayOutPrivate(lowered_, false, n, 0, nullptr, nullptr) > left) continue;
        plan_.groups.private_groups = n;
        at_ += LayOutPrivate(lowered_, false, n, at_, &layout_, &plan_.folds);
        break;
      }
    }
    layout_.ring = RoundUp(at_, 128);
    layout_.bytes = layout_.ring + layout_.stages * layout_.stage_bytes;
    return Status::Ok();
  }

  /// Writes addresses into the code.
  void PatchAddresses() {
    for (DeviceInstruction& d : plan_.code) {
      const Shape shape = vm::Info(d.head.op).shape;
      if (d.head.source == OperandSource::kPayload || d.head.wide_source == OperandSource::kPayload)
        SetPayload(*joins_[d.head.slot], &d);
      if (ListsRegisters(d)) {
        uint32_t places[kMaxHashedKeys] = {};
        for (uint32_t k = 0; k < static_cast<uint32_t>(d.p3); ++k) places[k] = plan_.registers[d.head.register_at + k];
        memcpy(&d.low, places, sizeof places);
      }
      if (ReadsSecondRegister(d)) d.state = plan_.registers[d.state];
      const bool reads = d.head.source == OperandSource::kRegister || d.head.wide_source == OperandSource::kRegister;
      if (reads || shape == Shape::Store || shape == Shape::StoreWide)
        d.head.register_at = plan_.registers[d.head.register_at];
      if (shape == Shape::Group && !plan_.groups.direct &&
          (d.head.source != OperandSource::kNone || d.head.wide_source != OperandSource::kNone)) {
        d.state = plan_.registers[static_cast<size_t>(d.p3)];
      }
      if (shape == Shape::CountRows || shape == Shape::CountValues || shape == Shape::Fold) {
        d.private_state = plan_.folds[d.head.p1].private_state;
      }
    }
  }

  const Section& section_;
  const LoweredProgram& lowered_;
  const std::vector<const vm::TabletEncoding*>& tablets_;
  const std::vector<uint32_t>& widths_;  ///< by slot
  const std::vector<const JoinShape*>& joins_;
  const DeviceLimits& limits_;
  const bool queue_;
  const uint32_t keys_;                      ///< of groups
  const uint32_t half_;                      ///< shared memory of a block where two run on a multiprocessor
  const std::vector<double> selectivities_;  ///< by predicate
  double live_ = 1;                          ///< fraction of rows that are left after the head
  uint32_t at_ = 0;                          ///< shared memory that is taken
  LaunchPlan plan_;
  Layout& layout_ = plan_.layout;
};

}  // namespace

Result<LaunchPlan> PlanLaunch(const Section& section, const LoweredProgram& lowered,
                              const std::vector<const vm::TabletEncoding*>& tablets,
                              const std::vector<const JoinShape*>& joins, const DeviceLimits& limits, bool measure) {
  const std::vector<uint32_t> widths = CodeWidths(tablets, section.slots.size());
  Result<LaunchPlan> plan = LaunchPlanner(section, lowered, tablets, widths, joins, limits, true).Run(measure);
  if (plan.ok() && (!HasAll(plan->variant) || plan->layout.queues == kNowhere)) return plan;
  return LaunchPlanner(section, lowered, tablets, widths, joins, limits, false).Run(measure);
}

bool MayBeBits(const Section& section, const LaunchPlan& plan, uint32_t slot) {
  if (!HasBits(plan.variant)) return false;
  const auto queue = std::find_if(plan.code.begin(), plan.code.end(), QueuesRows);
  for (auto d = plan.code.begin(); d != plan.code.end(); ++d) {
    const bool is_operand = d->head.source == OperandSource::kSlot && d->head.slot == slot;
    const bool is_wide = d->head.wide_source == OperandSource::kSlot && d->head.slot == slot;
    const bool is_second =
        HasSecond(d->head.op) && SecondOf(*d).source == OperandSource::kSlot && SecondOf(*d).slot == slot;
    const bool is_tested = vm::Info(d->head.op).shape == Shape::Filter &&
                           static_cast<uint32_t>(section.predicates[d->head.p1].slot) == slot;
    if (is_wide || is_second || is_tested || (is_operand && d < queue)) return false;
  }
  return true;
}

std::vector<ProbeStep> ProbeSteps(const Section& section, const LoweredProgram& lowered, const LaunchPlan& plan,
                                  const std::vector<const vm::TabletEncoding*>& tablets,
                                  const std::vector<const JoinShape*>& joins) {
  std::vector<ProbeStep> found;
  const std::vector<double> selectivities = PredicateSelectivities(section, tablets, joins);
  WalkLive(lowered.machine.masks, plan.code, selectivities, joins, [&](const DeviceInstruction& d, double live) {
    if (Probes(d)) found.push_back({d.head.p1, live});
  });
  return found;
}

}  // namespace tessera::kernels
