#include "kernels/plan/lower.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include "kernels/join/product_kernels.h"

namespace tessera::kernels {

using vm::Instruction;
using vm::Opcode;
using vm::OpcodeInfo;
using vm::Operand;
using vm::OperandKind;
using vm::Section;
using vm::Shape;

namespace {

/// Columns are staged from this share of sectors on: a bulk copy moves all of them, but at the full rate of the memory.
constexpr double kStagedShare = 0.5;
/// Tablets whose predicates are looked at to estimate how many rows pass.
constexpr size_t kSampledTablets = 16;
/// Rows wait in a queue where at most this share of those before is left.
constexpr double kFewRows = 0.35;
constexpr uint32_t kMaxSharedCode = 128;     ///< instructions; 8 KiB
constexpr uint32_t kMaxStagedRecord = 4096;  ///< bytes
constexpr uint32_t kLeastPrivateGroups = 256, kMaxPrivateGroups = 1024;
constexpr uint32_t kMaxDirectGroups = 4096;  ///< in shared memory
/// In device memory: as many as that, and not so many that clearing them takes longer than the rows do.
constexpr uint64_t kMostFarGroups = 1 << 20, kRowsPerFarGroup = 16;
constexpr uint32_t kCheapPrivateBytes = 6 << 10;
/// From so many rows on groups in shared memory are worth the blocks that they cost: an addition in device memory takes
/// four times as long.
constexpr double kManyGroupedRows = 16e6;
constexpr uint32_t kReservedPerBlock = 1024;  ///< shared memory that the system takes from each block

/// Bytes of an aggregate's state where a block keeps a group apart; 0: it does not.
uint32_t PrivateBytes(Opcode op) {
  uint32_t bytes = 0;
  vm::WithAggregate(op, [&]<class M>() { bytes = vm::PrivateStateBytes(M::kGroupState); });
  return bytes;
}

class Lowerer {
 public:
  Lowerer(const vm::Program& program, const Section& section, vm::StringPool* strings)
      : program_(program), section_(section), strings_(strings) {}

  LoweredProgram Run() {
    for (const SqlType& t : section_.registers) out_.wide_registers.push_back(IsWide(t));
    out_.masks = static_cast<uint32_t>(section_.masks);
    out_.slot_values.resize(section_.slots.size());
    out_.slot_codes.resize(section_.slots.size());
    LayOutStates();
    out_.reads_cursors.resize(program_.joins.size());
    out_.probe_slots.resize(program_.joins.size());
    int feeds = 0;
    bool repeats = false;
    for (size_t address = 0; address < section_.code.size(); ++address) {
      const Instruction& in = section_.code[address];
      const Shape shape = vm::Info(in.op).shape;
      if (shape == Shape::Emit || shape == Shape::Build || (shape == Shape::Group && section_.keys > 0)) ++feeds;
      repeats |= shape == Shape::Next || shape == Shape::NextOuter;
      out_.code.push_back(Lower(in, static_cast<uint32_t>(address)));
    }
    out_.repeats = repeats;
    if (out_.product >= 0) {
      out_.ranges =
          vm::MakeRangeProgram(program_, static_cast<int>(&section_ - program_.sections.data()), out_.product);
      for (vm::RangeStep& step : out_.ranges.steps) {
        const bool column = step.source == vm::RangeSource::kOuter || step.source == vm::RangeSource::kInner;
        if (column && step.index >= kMaxRangeColumns) step.source = vm::RangeSource::kUnknown;
      }
    }
    out_.two_passes = feeds > 1 || (feeds > 0 && repeats);
    for (size_t k = 0; k < out_.keys.size(); ++k) out_.key_sources.push_back(SourceOfKey(out_.keys[k]));
    if (section_.sink == Section::Sink::kJoin && section_.keys > 0) {
      const KeySource key = SourceOfKey(0);
      if (key.source == OperandSource::kSlot) out_.first_build_key = key.slot;
    }
    if (section_.sink == Section::Sink::kRows || section_.sink == Section::Sink::kJoin) {
      for (size_t c = 0; c < section_.columns.size(); ++c) out_.outputs.push_back(static_cast<uint32_t>(c));
    }
    return std::move(out_);
  }

 private:
  /// Words of a group: seen bits, the state of each aggregate, the lock.
  void LayOutStates() {
    if (section_.sink != Section::Sink::kGroups) return;
    for (int k = 0; k < section_.keys; ++k)
      out_.record_words += IsWide(section_.columns[static_cast<size_t>(k)]) ? 2 : 1;
    if (section_.keys > 0) ++out_.record_words;
    out_.state_words = static_cast<uint32_t>((section_.aggregates.size() + 63) / 64);
    out_.initial_state.resize(out_.state_words);
    bool lock = false;
    for (const vm::AggregateSpec& a : section_.aggregates) {
      vm::WithAggregate(a.op, [&]<class M>() {
        LayOutState<M>(a.op);
        lock |= M::kGroupState == vm::GroupState::kLocked;
      });
    }
    if (lock) out_.lock_word = out_.state_words++;
    out_.state_words = std::max<uint32_t>(out_.state_words, 1);
    out_.initial_state.resize(out_.state_words);
  }

  template <class M>
  void LayOutState(Opcode op) {
    constexpr vm::GroupState kKept = M::kGroupState;
    DeviceInstruction fold;
    fold.head.op = op;
    fold.state = out_.state_words;
    uint64_t words[3] = {};
    uint32_t count = 1;
    if constexpr (kKept != vm::GroupState::kCount) {
      vm::ToWords(M::Identity(), words);
      count = vm::kStateWords<typename M::State>;
    }
    assert(words[2] == 0);
    if (section_.keys > 0 && (kKept == vm::GroupState::kLeastFloat || kKept == vm::GroupState::kGreatestFloat))
      words[0] = OrderedFloat(std::bit_cast<double>(words[0]));
    fold.low = static_cast<int64_t>(words[0]);
    fold.high = static_cast<int64_t>(words[1]);
    if (kKept == vm::GroupState::kHalves) out_.narrow_sums.push_back(fold.state);
    if (kKept == vm::GroupState::kParts) out_.wide_sums.push_back(fold.state);
    out_.state_words += vm::GroupStateWords(kKept, count);
    out_.initial_state.resize(out_.state_words);
    std::copy_n(words, std::min(count, vm::GroupStateWords(kKept, count)), out_.initial_state.begin() + fold.state);
    out_.folds.push_back(fold);
  }

  void SetConstant(DeviceInstruction* d, size_t index) {
    const Value& v = program_.constants[index];
    d->head.null_constant = v.null;
    if (v.null) return;
    switch (v.type.storage()) {
      case StorageClass::kInt:
        d->low = v.i64;
        break;
      case StorageClass::kFloat:
        d->low = std::bit_cast<int64_t>(v.f64);
        break;
      case StorageClass::kText:
        d->low = strings_->Intern(v.text);
        break;
      case StorageClass::kWide:
        d->low = Low64(v.wide);
        d->high = High64(v.wide);
        break;
    }
  }

  void SetOperand(DeviceInstruction* d, int32_t packed, bool wide) {
    const Operand o = Operand::Unpack(packed);
    OperandSource source = OperandSource::kNone;
    switch (o.kind) {
      case OperandKind::kSlot:
        source = OperandSource::kSlot;
        d->head.slot = o.index;
        out_.slot_values[o.index] = true;
        break;
      case OperandKind::kRegister:
        source = OperandSource::kRegister;
        d->head.place = o.index;
        break;
      case OperandKind::kConstant:
        source = OperandSource::kConstant;
        SetConstant(d, o.index);
        break;
      case OperandKind::kPayload:
        source = OperandSource::kPayload;
        d->head.slot = o.table;
        d->upper_high = o.index;  // until PlanLaunch knows where it lies
        out_.reads_cursors[o.table] = true;
        break;
    }
    (wide ? d->head.wide_source : d->head.source) = source;
  }

  DeviceInstruction Lower(const Instruction& in, uint32_t address) {
    const OpcodeInfo& info = vm::Info(in.op);
    DeviceInstruction d;
    d.head.op = in.op;
    d.head.p1 = in.p1;
    d.p3 = in.p3;
    d.address = address;
    out_.uses_wide |= info.in == vm::AccumulatorSpec::W || info.out == vm::AccumulatorSpec::W;
    switch (info.shape) {
      case Shape::SkipIfNone:
        d.p3 = in.p2;  // an address until Compact
        break;
      case Shape::Filter:
        out_.slot_codes[static_cast<size_t>(section_.predicates[in.p1].slot)] = true;
        break;
      case Shape::Store:
      case Shape::StoreWide:
        d.head.place = static_cast<uint32_t>(in.p2);
        break;
      case Shape::Check: {
        DeviceInstruction upper;
        SetConstant(&upper, static_cast<size_t>(in.p3));
        SetConstant(&d, static_cast<size_t>(in.p2));
        d.upper_low = upper.low;
        d.upper_high = upper.high;
        break;
      }
      case Shape::ProbeOuter:
      case Shape::Probe:
        if (vm::IsCutBothWays(program_.joins[in.p1].strategy)) out_.product = in.p1;
        if (in.p3 == 1) {
          SetOperand(&d, in.p2, false);
        } else {
          if (in.p3 > 1) d.head.place = Operand::Unpack(in.p2).index;  // registers, until PlanLaunch
          out_.full_only |= in.p3 > 1;
        }
        NoteProbeSlots(in);
        break;
      case Shape::TestMatch:
        out_.reads_cursors[in.p1] = true;
        break;
      case Shape::NextOuter:
      case Shape::Next:
        d.p3 = in.p2;  // an address until Compact
        d.head.slot = static_cast<uint16_t>(in.p3);
        out_.reads_cursors[in.p1] = true;
        break;
      case Shape::Group:
        LowerGroup(in, &d);
        break;
      case Shape::CountRows:
      case Shape::CountValues:
      case Shape::Fold:
        d.state = out_.folds[in.p1].state;
        out_.folds[in.p1].address = address;
        break;
      default:
        if (info.p[1] == vm::OperandSpec::Src) SetOperand(&d, in.p2, false);
        if (info.p[1] == vm::OperandSpec::SrcW) SetOperand(&d, in.p2, true);
    }
    return d;
  }

  /// The slot or payload whose values a key register holds, if it is stored once, right after a Load of that.
  KeySource SourceOfKey(uint32_t reg) const {
    return own_key_.source != OperandSource::kNone ? own_key_ : SourceOfRegister(reg);
  }
  KeySource SourceOfRegister(uint32_t reg) const {
    KeySource source;
    for (size_t i = 0; i < section_.code.size(); ++i) {
      const Instruction& in = section_.code[i];
      if (in.op == Opcode::StoreW && static_cast<uint32_t>(in.p2) == reg) return {};
      if (in.op != Opcode::Store || static_cast<uint32_t>(in.p2) != reg) continue;
      if (source.source != OperandSource::kNone || i == 0 || section_.code[i - 1].op != Opcode::Load) return {};
      source = SourceOf(Operand::Unpack(section_.code[i - 1].p2));
      if (source.source == OperandSource::kNone) return {};
    }
    return source;
  }
  static KeySource SourceOf(const Operand& o) {
    if (o.kind == OperandKind::kSlot) return {OperandSource::kSlot, o.index, 0};
    if (o.kind == OperandKind::kPayload) return {OperandSource::kPayload, o.table, o.index};
    return {};
  }

  /// The slots that a look-up's keys are copies of, if all are.
  void NoteProbeSlots(const Instruction& in) {
    std::vector<uint32_t>& slots = out_.probe_slots[in.p1];
    const Operand first = Operand::Unpack(in.p2);
    slots.clear();
    for (int32_t k = 0; k < in.p3; ++k) {
      const KeySource source = first.kind == OperandKind::kRegister
                                   ? SourceOfRegister(first.index + static_cast<uint32_t>(k))
                                   : SourceOf(first);
      if (source.source != OperandSource::kSlot) return slots.clear();
      slots.push_back(source.slot);
    }
  }

  void LowerGroup(const Instruction& in, DeviceInstruction* d) {
    if (section_.keys == 0) return;
    const Operand o = Operand::Unpack(in.p2);
    const bool first = out_.keys.empty();
    if (o.kind == OperandKind::kRegister) {
      for (int k = 0; first && k < in.p3; ++k) out_.keys.push_back(o.index + static_cast<uint32_t>(k));
      if (first || out_.keys[0] == o.index) return;
    }
    // The key is copied to a register of ours, where every Group finds it.
    const bool wide = IsWide(section_.columns[0]);
    if (first) {
      out_.keys.push_back(static_cast<uint32_t>(out_.wide_registers.size()));
      out_.wide_registers.push_back(wide);
      out_.own_key_register = true;
      if (!wide) own_key_ = SourceOf(o);
    } else {
      own_key_ = {};
    }
    SetOperand(d, in.p2, wide);
    d->p3 = static_cast<int32_t>(out_.keys[0]);
  }

  const vm::Program& program_;
  const Section& section_;
  vm::StringPool* strings_;
  KeySource own_key_;  ///< the key register is ours and a copy of this
  LoweredProgram out_;
};

constexpr const char* kManyJoinKeys = "a join on keys of 128 bits, or on more than 4 keys,";
bool CanBuild(const Section& s) {
  if (s.keys > static_cast<int>(kMaxJoinKeys)) return false;
  return std::none_of(s.columns.begin(), s.columns.begin() + s.keys, IsWide);
}

}  // namespace

Status CanLower(const vm::Program& program, int section) {
  const Section& s = program.sections[static_cast<size_t>(section)];
  auto no = [](const std::string& reason) {
    return Unsupported(reason + " runs on the host only", -1, "Use --device auto or host.");
  };
  if (s.source_kind == Section::Source::kJoin) {
    const Section& builder =
        program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(s.source)].section)];
    if (!CanBuild(builder) || builder.keys > 0) return no("a section over the rows of a join table with keys");
    if (std::any_of(s.slots.begin(), s.slots.end(), [](const vm::Slot& slot) { return IsWide(slot.type); }))
      return no("a section over rows with values of 128 bits");
  } else if (s.source_kind != Section::Source::kTable) {
    return no("a section over an intermediate result");
  }
  if (s.sink == Section::Sink::kMap) return no("a dictionary section");
  if (s.sink == Section::Sink::kGroups && s.keys > static_cast<int>(kMaxGroupKeys))
    return no("GROUP BY of more than 63 keys");
  if (s.sink == Section::Sink::kJoin && !CanBuild(s)) return no(kManyJoinKeys);
  bool grouped = false;
  for (const Instruction& in : s.code) {
    const OpcodeInfo& info = vm::Info(in.op);
    if (info.tier == vm::Tier::Host) return no(info.name);
    if (info.shape == Shape::Probe || info.shape == Shape::ProbeOuter) {
      const vm::JoinTable& join = program.joins[in.p1];
      if (!CanBuild(program.sections[static_cast<size_t>(join.section)])) return no(kManyJoinKeys);
      if (join.strategy == vm::JoinStrategy::kDp && s.source_kind != Section::Source::kJoin)
        return no("a dp join over a stored table");
      if (join.strategy == vm::JoinStrategy::kLoop) return no("a loop over all rows of a table");
    }
    if (info.shape == Shape::Group && s.keys > 0) {
      // Several Groups that number different registers would need the keys to be moved.
      if (grouped && s.keys > 1) return no("a section with several GROUP BYs of several keys");
      grouped = true;
    }
  }
  return Status::Ok();
}

LoweredProgram LowerProgram(const vm::Program& program, int section, vm::StringPool* strings) {
  return Lowerer(program, program.sections[static_cast<size_t>(section)], strings).Run();
}

// ---- Which columns are staged ---------------------------------------------------------------------------------------

namespace {

/// Share of the rows of a tablet that pass a predicate, if values are spread evenly.
double PassingShare(const vm::BoundPredicate& p, const Chunk& chunk) {
  using Kind = vm::BoundPredicate::Kind;
  const double values = std::max(1.0, static_cast<double>(chunk.max) - static_cast<double>(chunk.min) + 1);
  double share = 1;
  switch (p.kind) {
    case Kind::kAll:
      return 1;
    case Kind::kNone:
      return 0;
    case Kind::kRange:
      share = (static_cast<double>(p.span_high) * 0x1p64 + static_cast<double>(p.span) + 1) / values;
      if (p.negated) share = 1 - share;
      break;
    case Kind::kSet: {
      const uint64_t n =
          p.by_row ? std::min<uint64_t>(chunk.rows, 4096)
                   : std::min<uint64_t>(chunk.type.id == TypeId::kText ? chunk.entries : static_cast<uint64_t>(values),
                                        65536);
      share = static_cast<double>(std::count_if(p.set, p.set + n, [](uint8_t b) { return b != 0; })) /
              static_cast<double>(std::max<uint64_t>(n, 1));
      break;
    }
    case Kind::kNulls:
      share = static_cast<double>(chunk.null_count) / static_cast<double>(std::max<uint32_t>(chunk.rows, 1));
      if (p.negated) share = 1 - share;
      break;
  }
  return std::clamp(share, 0.0, 1.0);
}

/// Whether an instruction looks keys up.
bool Probes(const DeviceInstruction& d) { return d.head.op == Op::Probe || d.head.op == Op::ProbeOuter; }

/// Lets the rows that are left wait in a queue.
bool QueuesRows(const DeviceInstruction& d) { return d.head.op == Op::SkipIfNone && d.head.p1 != 0; }

/// Of the rows that get to a Probe of the table behind the test of its key range, those that find a match.
double MatchShare(const JoinShape& join) { return std::clamp(join.share / join.range_share, 0.0, 1.0); }

/// Per predicate of the section: the share of rows that pass.
std::vector<double> PredicateShares(const Section& section, const std::vector<const vm::BoundTablet*>& tablets,
                                    const std::vector<const JoinShape*>& joins) {
  std::vector<double> shares(section.predicates.size(), 0);
  const size_t step = std::max<size_t>(1, tablets.size() / kSampledTablets);
  size_t sampled = 0;
  for (size_t t = 0; t < tablets.size(); t += step, ++sampled) {
    for (size_t i = 0; i < shares.size(); ++i) {
      shares[i] +=
          PassingShare(tablets[t]->predicates[i], *tablets[t]->chunks[static_cast<size_t>(section.predicates[i].slot)]);
    }
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i] /= static_cast<double>(std::max<size_t>(sampled, 1));
    // Keys may lie far apart, as dates written as numbers do: what is known of the table says more.
    const vm::Predicate& p = section.predicates[i];
    if (p.kind == vm::Predicate::Kind::kKeyRange && joins[static_cast<size_t>(p.join)] != nullptr)
      shares[i] = joins[static_cast<size_t>(p.join)]->range_share;
  }
  return shares;
}

struct FirstUse {
  uint32_t slot;
  double live;  ///< share of rows that are live then
  bool waited;  ///< they come from a queue and have left the ring
};

/// visit(instruction, share of rows that are live when it begins) in the order of the code.
template <class F>
void WalkLive(uint32_t mask_registers, const std::vector<DeviceInstruction>& code, const std::vector<double>& shares,
              const std::vector<const JoinShape*>& joins, F visit) {
  double live = 1;
  std::vector<double> masks(mask_registers, 1);
  for (const DeviceInstruction& d : code) {
    const size_t p1 = d.head.p1;
    visit(d, live);
    switch (vm::Info(d.head.op).shape) {
      case Shape::Filter:
        live *= shares[p1];
        continue;
      case Shape::MaskRegister:
        switch (d.head.op) {
          case Op::MaskSave:
            masks[p1] = live;
            break;
          case Op::MaskLoad:
            live = masks[p1];
            break;
          case Op::MaskClear:
            masks[p1] = 0;
            break;
          case Op::MaskOr:
            masks[p1] = std::min(1.0, masks[p1] + live);
            break;
          default:
            live = std::max(live / 4, live - masks[p1]);
            break;
        }
        continue;
      default:
        break;
    }
    const Shape shape = vm::Info(d.head.op).shape;
    if (shape == Shape::Compare || shape == Shape::Test) live /= 2;  // nothing is known of it
    if (shape == Shape::Probe && joins[p1] != nullptr) live *= MatchShare(*joins[p1]);
  }
}

/// Slots in the order of their first use, before the rows wait in a queue and behind it.
std::vector<FirstUse> FirstUses(const Section& section, uint32_t mask_registers,
                                const std::vector<DeviceInstruction>& code, const std::vector<double>& shares,
                                const std::vector<const JoinShape*>& joins) {
  std::vector<FirstUse> uses;
  std::vector<bool> used(section.slots.size());
  bool waited = false;
  WalkLive(mask_registers, code, shares, joins, [&](const DeviceInstruction& d, double live) {
    const auto use = [&](uint32_t slot) {
      if (!used[slot]) uses.push_back({slot, live, waited});
      used[slot] = true;
    };
    if (QueuesRows(d) && !waited) {
      waited = true;
      used.assign(used.size(), false);
    }
    if (vm::Info(d.head.op).shape == Shape::Filter) use(static_cast<uint32_t>(section.predicates[d.head.p1].slot));
    if (d.head.source == OperandSource::kSlot || d.head.wide_source == OperandSource::kSlot) use(d.head.slot);
  });
  return uses;
}

/// Share of a column's 32-byte sectors that hold a live row.
double TouchedShare(double live, uint32_t width) { return 1 - std::pow(1 - live, 32.0 / width); }

uint32_t RoundUp(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }

/// Bytes of the private table for n groups; fills in the offsets if `layout` is given. `at` is a multiple of 16.
uint32_t LayOutPrivate(const LoweredProgram& lowered, bool direct, uint32_t n, uint32_t at, Layout* layout,
                       std::vector<DeviceInstruction>* folds) {
  const uint32_t begin = at;
  if (layout != nullptr) layout->private_begin = layout->private_records = at;
  if (!direct) at += n * lowered.record_words * 8;
  for (size_t k = 0; k < lowered.folds.size(); ++k) {
    const uint32_t bytes = PrivateBytes(lowered.folds[k].head.op);
    if (bytes == 0) continue;
    if (folds != nullptr) (*folds)[k].private_state = at;
    at += RoundUp(n * bytes, 16);
  }
  if (layout != nullptr) layout->private_slots = at;
  at += RoundUp(direct ? n : 2 * n * 4, 16);
  if (layout != nullptr) layout->private_seen = at;
  at += RoundUp(static_cast<uint32_t>(lowered.folds.size()) * n, 16);
  if (layout != nullptr) layout->private_end = at;
  return at - begin;
}

/// The numbers of groups, if the keys are copies of columns whose values in these tablets make a domain of at most
/// `most`. Returns the size of the domain, or 0.
uint32_t PlanDirect(const LoweredProgram& lowered, const std::vector<const vm::BoundTablet*>& tablets,
                    const std::vector<const JoinShape*>& joins, uint32_t most, DirectKey* keys) {
  if (lowered.key_sources.empty() || lowered.key_sources.size() > kMaxDirectKeys) return 0;
  for (const DeviceInstruction& fold : lowered.folds) {
    if (PrivateBytes(fold.head.op) == 0) return 0;
  }
  uint64_t domain = 1;
  for (size_t k = 0; k < lowered.key_sources.size(); ++k) {
    const KeySource& source = lowered.key_sources[k];
    if (source.source == OperandSource::kNone) return 0;
    const size_t slot = source.slot;
    int128_t low = kInt128Max, high = kInt128Min;
    bool nullable = false;
    if (source.source == OperandSource::kPayload) {
      const PayloadShape& payload = joins[slot]->payload[source.payload];
      if (payload.wide) return 0;
      nullable = payload.nullable;
      low = payload.low;
      high = payload.high;
    }
    for (const vm::BoundTablet* t : tablets) {
      if (source.source != OperandSource::kSlot) break;
      const vm::BoundSlot& b = t->slots[slot];
      const Chunk& chunk = *t->chunks[slot];
      nullable |= b.MayBeNull();
      if (b.all_null) continue;
      if (b.wide || chunk.type.IsFloat()) return 0;
      if (b.map != nullptr) {
        if (b.map_entries > 65536) return 0;  // not worth looking through
        // The last entry is for NULL codes.
        for (uint64_t i = 0; i + 1 < b.map_entries; ++i) {
          low = std::min<int128_t>(low, b.map[i]);
          high = std::max<int128_t>(high, b.map[i]);
        }
      } else if (b.decode == vm::Decode::kConstant) {
        low = std::min<int128_t>(low, static_cast<int64_t>(b.base));
        high = std::max<int128_t>(high, static_cast<int64_t>(b.base));
      } else {
        low = std::min(low, chunk.min);
        high = std::max(high, chunk.max);
      }
    }
    if (low > high) low = high = 0;
    if (high - low >= most) return 0;
    keys[k] = {static_cast<int64_t>(low), static_cast<uint32_t>(domain), nullable ? 1u : 0u};
    domain *= static_cast<uint64_t>(high - low) + 1 + (nullable ? 1 : 0);
    if (domain > most) return 0;
  }
  return static_cast<uint32_t>(domain);
}

// ---- Rewriting the code of a launch ---------------------------------------------------------------------------------

/// Whether an instruction reads or sets accumulator A.
bool ReadsA(Op op) {
  const vm::AccumulatorSpec in = vm::Info(op).in;
  return in != vm::AccumulatorSpec::None && in != vm::AccumulatorSpec::W;
}
bool SetsA(Op op) {
  const OpcodeInfo& info = vm::Info(op);
  return !ReadsA(op) && info.out != vm::AccumulatorSpec::None && info.out != vm::AccumulatorSpec::W;
}

/// Registers that the code reads, or that groups and rows are made from.
std::vector<bool> UsedRegisters(const LoweredProgram& lowered, bool direct,
                                const std::vector<DeviceInstruction>& code) {
  std::vector<bool> used(lowered.wide_registers.size());
  for (const DeviceInstruction& d : code) {
    if (d.head.source == OperandSource::kRegister || d.head.wide_source == OperandSource::kRegister)
      used[d.head.place] = true;
    for (int32_t k = 0; Probes(d) && d.p3 > 1 && k < d.p3; ++k) used[d.head.place + static_cast<uint32_t>(k)] = true;
  }
  for (uint32_t r : lowered.outputs) used[r] = true;
  for (uint32_t r : lowered.keys) used[r] = used[r] || !direct;
  // A register that is only written still needs its place.
  for (const DeviceInstruction& d : code) {
    if (d.head.op == Op::Store || d.head.op == Op::StoreW) used[d.head.place] = true;
  }
  return used;
}

/// Direct groups: Group becomes an instruction per key, which fetches the key's column; what only moved keys into
/// registers goes.
void ReadKeysDirectly(const LoweredProgram& lowered, std::vector<DeviceInstruction>* code) {
  std::vector<bool> read(lowered.wide_registers.size());
  for (const DeviceInstruction& d : *code) {
    if (d.head.op != Op::Group && d.head.source == OperandSource::kRegister) read[d.head.place] = true;
    for (int32_t k = 0; Probes(d) && d.p3 > 1 && k < d.p3; ++k) read[d.head.place + static_cast<uint32_t>(k)] = true;
  }
  std::vector<DeviceInstruction> out;
  for (const DeviceInstruction& d : *code) {
    const bool key = d.head.op == Op::Store && !read[d.head.place] &&
                     std::find(lowered.keys.begin(), lowered.keys.end(), d.head.place) != lowered.keys.end();
    if (key) continue;
    if (d.head.op != Op::Group) {
      out.push_back(d);
      continue;
    }
    for (size_t k = 0; k < lowered.key_sources.size(); ++k) {
      DeviceInstruction part = d;
      part.head.source = lowered.key_sources[k].source;
      part.head.slot = lowered.key_sources[k].slot;
      part.upper_high = lowered.key_sources[k].payload;
      part.p3 = static_cast<int32_t>(k);
      out.push_back(part);
    }
  }
  *code = std::move(out);
}

/// Drops instructions without effect: Group without keys, and loads of A that nothing reads (at a jump's target A has
/// no value, so what comes next in the code decides). Then jumps, which are addresses of the program so far, become
/// distances.
void Compact(int keys, const LoweredProgram& lowered, std::vector<DeviceInstruction>* code) {
  std::vector<DeviceInstruction> out;
  bool a_read = false;
  for (size_t i = code->size(); i-- > 0;) {
    const DeviceInstruction& d = (*code)[i];
    if (d.head.op == Op::Group && keys == 0) continue;
    if (d.head.op == Op::Load && !a_read) continue;
    if (ReadsA(d.head.op)) {
      a_read = true;
    } else if (SetsA(d.head.op)) {
      a_read = false;
    }
    out.push_back(d);
  }
  std::reverse(out.begin(), out.end());
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].head.op == Op::Next || out[i].head.op == Op::NextOuter) {  // backwards
      size_t to = i;
      while (to > 0 && out[to - 1].address >= static_cast<uint32_t>(out[i].p3)) --to;
      out[i].p3 = static_cast<int32_t>(i + 1 - to);
      if (out[i].head.p1 == lowered.product && lowered.ranges.all_from >= 0) {
        while (out[to].address < static_cast<uint32_t>(lowered.ranges.all_from)) ++to;
        out[i].low = static_cast<int64_t>(i + 1 - to);
      }
    }
    if (out[i].head.op != Op::SkipIfNone) continue;
    // The first instruction that is left at or behind the address.
    size_t to = i + 1;
    while (out[to].address < static_cast<uint32_t>(out[i].p3)) ++to;
    out[i].p3 = static_cast<int32_t>(to - i);
  }
  *code = std::move(out);
}

// ---- Joins of a launch ----------------------------------------------------------------------------------------------

/// Rough costs a row in units of reading a byte of a staged column: an H100 looks some 2,000 G bits a second up in
/// shared memory, 200 G values in L2, 40 G in device memory.
constexpr double kFilterCost = 0.7, kSharedLookUpCost = 1.5, kCachedLookUpCost = 15, kFarLookUpCost = 60;
constexpr uint64_t kCachedBytes = uint64_t{24} << 20;
/// A block's copies of bitmaps: what more than that costs in blocks it does not gain.
constexpr uint32_t kMaxSharedBits = 24 << 10;
/// A bitmap that is not in shared memory is asked only where it spares most accesses to a large table.
constexpr double kSparseShare = 0.5;
/// A test of the key range that lets more than this share pass is left to the probe.
constexpr double kUselessRange = 0.5;

uint64_t ValueBytes(const JoinRecord& r) {
  switch (r.lookup) {
    case JoinLookup::kDirect:
      return (r.last + 1) * r.width;
    case JoinLookup::kHash32:
      return (uint64_t{r.slot_mask} + 1) * 8;
    case JoinLookup::kHash64:
      return (uint64_t{r.slot_mask} + 1) * 16;
    default:
      return 0;
  }
}

/// The records of the tables that `code` probes; the smallest bitmaps that keep few rows go to shared memory.
std::vector<JoinRecord> PlanJoins(const std::vector<DeviceInstruction>& code,
                                  const std::vector<const JoinShape*>& joins) {
  std::vector<JoinRecord> records(joins.size());
  std::vector<size_t> small;
  std::vector<bool> probed(joins.size());
  for (const DeviceInstruction& d : code) {
    if (Probes(d)) probed[d.head.p1] = true;
  }
  for (size_t j = 0; j < joins.size(); ++j) {
    if (!probed[j]) continue;
    JoinRecord& r = records[j] = joins[j]->record;
    if (r.bits == nullptr) continue;
    const bool only_bits = r.lookup == JoinLookup::kBits;
    if (only_bits || MatchShare(*joins[j]) < kSparseShare) small.push_back(j);
    if (!only_bits && (joins[j]->share > kSparseShare || ValueBytes(r) < kCachedBytes)) r.bits = nullptr;
  }
  std::stable_sort(small.begin(), small.end(),
                   [&](size_t a, size_t b) { return joins[a]->record.bits_bytes < joins[b]->record.bits_bytes; });
  uint32_t bytes = 0;
  for (size_t j : small) {
    const JoinRecord& r = joins[j]->record;
    if (bytes + r.bits_bytes > kMaxSharedBits) break;
    bytes += r.bits_bytes;
    records[j].bits = r.bits;
    records[j].shared_bits = 0;  // its offset comes with the layout
  }
  return records;
}

/// The code begins with filters and look-ups that may come in any order: each drops rows and changes nothing else.
/// Those come first that drop most for their price. Where that leaves few rows, they are told to wait in a queue.
/// Returns the share of rows that all of them leave.
double OrderFilters(const Section& section, const std::vector<double>& shares,
                    const std::vector<const vm::BoundTablet*>& tablets, const std::vector<const JoinShape*>& joins,
                    const std::vector<JoinRecord>& records, bool queue, std::vector<DeviceInstruction>* code) {
  struct Item {
    DeviceInstruction instruction;
    double rank, share;
  };
  std::vector<Item> items;
  size_t end = 0;
  const DeviceInstruction* skip = nullptr;
  for (; end < code->size(); ++end) {
    const DeviceInstruction& d = (*code)[end];
    const size_t p1 = d.head.p1;
    double cost = 0, share = 1;
    if (d.head.op == Op::SkipIfNone) {
      if (skip != nullptr && skip->p3 != d.p3) break;
      skip = &d;
      continue;
    }
    if (d.head.op == Op::Filter) {
      share = shares[p1];
      cost = kFilterCost + CodeWidth(tablets, static_cast<size_t>(section.predicates[p1].slot));
      const vm::Predicate& p = section.predicates[p1];
      if (p.kind == vm::Predicate::Kind::kKeyRange && share > kUselessRange) continue;
    } else if (d.head.op == Op::Probe && d.head.source == OperandSource::kSlot && records[p1].next == nullptr) {
      share = MatchShare(*joins[p1]);
      const JoinRecord& r = records[p1];
      cost = CodeWidth(tablets, d.head.slot);
      if (r.shared_bits != kNowhere) cost += kSharedLookUpCost;
      if (r.shared_bits == kNowhere || r.lookup != JoinLookup::kBits) {
        const uint64_t bytes = LookUpBytes(r);
        cost += (bytes < kCachedBytes ? kCachedLookUpCost : kFarLookUpCost) * (r.shared_bits != kNowhere ? share : 1);
      }
    } else {
      break;
    }
    items.push_back({d, cost / std::max(1 - share, 1e-3), share});
  }
  double live = 1;
  if (skip == nullptr) {
    for (const Item& i : items) live *= i.share;
    return live;
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.rank < b.rank; });
  std::vector<DeviceInstruction> out;
  uint32_t queues = 0;
  double most = kFewRows;
  size_t probes = 0;
  auto skip_or_queue = [&] {
    out.push_back(*skip);
    if (!queue || live > most || queues == kQueues || probes > kMaxCarried) return;
    out.back().head.p1 = 1;
    ++queues;
    most = live * kFewRows;
  };
  for (const Item& i : items) {
    if (!out.empty() && i.instruction.head.op == Op::Probe) skip_or_queue();
    out.push_back(i.instruction);
    probes += i.instruction.head.op == Op::Probe ? 1 : 0;
    live *= i.share;
  }
  skip_or_queue();
  out.insert(out.end(), code->begin() + static_cast<std::ptrdiff_t>(end), code->end());
  *code = std::move(out);
  return live;
}

/// Marks before the SkipIfNone behind the look-ups of each join table, and at both ends of the program; what they are.
/// Without joins none.
std::vector<int> AddMarks(std::vector<DeviceInstruction>* code) {
  std::vector<int> marks;
  std::vector<DeviceInstruction> out;
  const auto add = [&](int what, uint32_t address) {
    marks.push_back(what);
    DeviceInstruction mark;  // an End that does not end
    mark.address = address;
    mark.low = static_cast<int64_t>(marks.size());
    out.push_back(mark);
  };
  add(LaunchPlan::kBegin, 0);
  int join = -1;
  for (const DeviceInstruction& d : *code) {
    if (Probes(d)) join = d.head.p1;
    if (d.head.op == Op::SkipIfNone && join >= 0) add(std::exchange(join, -1), d.address);
    if (d.head.op == Op::End) add(LaunchPlan::kEnd, d.address);
    out.push_back(d);
  }
  if (marks.size() == 2) return {};
  *code = std::move(out);
  return marks;
}

/// Where a payload operand is found.
void SetPayload(const JoinShape& join, DeviceInstruction* d) {
  const PayloadShape& p = join.payload[static_cast<size_t>(d->upper_high)];
  d->head.payload_packed = join.packed;
  d->head.payload_of_product = join.record.lookup == JoinLookup::kCross;
  d->upper_high = 0;
  if (join.packed) {
    d->low = p.base;
    d->high = static_cast<int64_t>(uint64_t{p.mask} << 32 | p.shift);
    d->upper_low = p.null_field;
  } else {
    d->low = static_cast<int64_t>(p.column);
    d->high = static_cast<int64_t>(p.nulls);
    d->upper_low = static_cast<int64_t>(p.column_high);
  }
}

/// Whether the instantiation for products can do the instruction.
bool IsOfProduct(const DeviceInstruction& d, const std::vector<JoinRecord>& joins) {
  if ((d.head.op == Op::Probe || d.head.op == Op::Next) && joins[d.head.p1].lookup != JoinLookup::kCross) return false;
  if (d.head.source == OperandSource::kPayload && joins[d.head.slot].lookup != JoinLookup::kCross) return false;
  return IsIn(Variant::kPairs, d.head.op);
}

bool IsStar(const DeviceInstruction& d, const std::vector<JoinRecord>& joins) {
  if (d.head.op == Op::Probe) {
    const JoinLookup lookup = joins[d.head.p1].lookup;
    if (lookup != JoinLookup::kBits && lookup != JoinLookup::kDirect && lookup != JoinLookup::kHash32) return false;
  }
  return IsIn(Variant::kStar, d.head.op);
}

}  // namespace

namespace {

/// `queue`: rows may wait in queues. Then a plan for the full instantiation, which has none, is of no use.
Result<LaunchPlan> PlanWith(const Section& section, const LoweredProgram& lowered,
                            const std::vector<const vm::BoundTablet*>& tablets,
                            const std::vector<const JoinShape*>& joins, const DeviceLimits& limits, bool measure,
                            bool queue) {
  LaunchPlan plan;
  plan.code = lowered.code;
  plan.folds = lowered.folds;
  Layout& layout = plan.layout;
  const uint32_t keys = section.sink == Section::Sink::kGroups ? static_cast<uint32_t>(section.keys) : 0;
  const std::vector<double> shares = PredicateShares(section, tablets, joins);
  plan.joins = PlanJoins(plan.code, joins);
  const double live = OrderFilters(section, shares, tablets, joins, plan.joins, queue, &plan.code);
  if (measure) plan.marks = AddMarks(&plan.code);

  // What shared memory holds in any case.
  uint32_t at = 0;
  auto take = [&](uint32_t bytes) {
    const uint32_t offset = at;
    at += RoundUp(bytes, 16);
    return offset;
  };
  layout.barriers = take(2 * kMaxStages * 8);
  layout.headers = take(kMaxStages * sizeof(TileHeader));
  layout.warps = take(kWarps * sizeof(WarpState));
  if (lowered.product >= 0) layout.units = take(kMaxStages * sizeof(UnitHeader));
  if (plan.code.size() <= kMaxSharedCode) {
    const uint32_t more = keys > 0 ? kMaxDirectKeys : 0;  // direct groups may take an instruction more a key
    layout.code = take(static_cast<uint32_t>((plan.code.size() + more) * sizeof(DeviceInstruction)));
  }
  if (keys == 0) layout.warp_states = take(static_cast<uint32_t>(kWarps * lowered.folds.size() * sizeof(Partial)));
  if (keys == 0 && lowered.repeats && !lowered.folds.empty()) {
    const uint32_t states = static_cast<uint32_t>(lowered.folds.size()) * kThreads;
    layout.thread_states = take(states * sizeof(ThreadState));
    layout.thread_counts = take(states * sizeof(uint32_t));
  }
  if (!plan.marks.empty()) layout.marks = take(static_cast<uint32_t>(kWarps * plan.marks.size() * sizeof(Mark)));
  layout.masks = take(lowered.masks * kThreads * 4);
  layout.joins = take(static_cast<uint32_t>(plan.joins.size() * sizeof(JoinRecord)));
  for (size_t j = 0; j < plan.joins.size(); ++j) {
    if (joins[j] == nullptr) continue;
    if (plan.joins[j].shared_bits != kNowhere) plan.joins[j].shared_bits = take(plan.joins[j].bits_bytes);
    if (!lowered.reads_cursors[j]) continue;
    if (plan.joins[j].lookup == JoinLookup::kCross) {
      plan.joins[j].cursors = take(kThreads * sizeof(ProductCursor));
      continue;
    }
    // Set before the rows are queued for the first time, for the second time, or later.
    uint32_t queues = 0, before = 0;
    bool probed = false;
    for (const DeviceInstruction& d : plan.code) {
      queues += QueuesRows(d) ? 1 : 0;
      probed |= Probes(d) && d.head.p1 == j;
      if (!probed) before = queues;
    }
    if (before == 0) plan.joins[j].cursors = take(kTileRows * 4);
    if (queues == 0) continue;
    const uint32_t waiting = take(kWarps * kQueueEntries * 4);
    plan.joins[j].queue_cursors = waiting;
    if (before == 0) {
      plan.carried_from.push_back(plan.joins[j].cursors);
      plan.carried_to[0].push_back(waiting);
    }
    if (before <= 1) plan.carried_to[1].push_back(waiting);
  }
  if (std::any_of(plan.code.begin(), plan.code.end(), QueuesRows)) layout.queues = take(kWarps * kQueueEntries * 4);
  if (lowered.uses_wide) layout.wide = take(kTileRows * 16);
  if (keys > 0) layout.ordinals = take(kTileRows * 4);

  // The ring: the record, then columns in the order of their first use.
  plan.record_bytes = static_cast<uint32_t>(section.slots.size() * sizeof(SlotRecord) +
                                            section.predicates.size() * sizeof(PredicateRecord));
  for (DeviceInstruction& d : plan.code) {
    if (d.head.op != Op::Probe || d.head.source != OperandSource::kSlot) continue;
    plan.probes.push_back({d.head.p1, d.head.slot});
    d.state = plan.record_bytes;
    plan.record_bytes += sizeof(ProbeRecord);
  }
  plan.record_bytes = std::max<uint32_t>(plan.record_bytes, 16);
  plan.record_staged = plan.record_bytes <= kMaxStagedRecord;
  plan.stage_of_slot.assign(section.slots.size(), kNowhere);
  const uint32_t half = limits.shared_per_multiprocessor / 2 - kReservedPerBlock;  // two blocks a multiprocessor
  uint32_t stage = plan.record_staged ? RoundUp(plan.record_bytes, 128) : 0;
  for (const FirstUse& use : FirstUses(section, lowered.masks, plan.code, shares, joins)) {
    const uint32_t width = CodeWidth(tablets, use.slot);
    if (width == 0) continue;
    const double touched = TouchedShare(use.live, width);
    if (use.waited || touched < kStagedShare || at + 2 * (stage + width * kTileRows) > half) {
      plan.on_demand.push_back({use.slot, touched});
      continue;
    }
    plan.stage_of_slot[use.slot] = stage;
    plan.staged.push_back({use.slot, stage});
    stage += width * kTileRows;
  }
  layout.stage_bytes = RoundUp(std::max<uint32_t>(stage, 128), 128);

  // Groups whose number follows from their keys: in shared memory if that costs no block or many rows come to each,
  // else in device memory.
  if (keys > 0) {
    uint64_t rows = 0;
    for (const vm::BoundTablet* t : tablets) rows += t->rows;
    const uint64_t far = std::min(kMostFarGroups, rows / kRowsPerFarGroup);
    const uint64_t most = std::min(std::max<uint64_t>(kMaxDirectGroups, far), limits.groups);
    plan.direct_groups = PlanDirect(lowered, tablets, joins, static_cast<uint32_t>(most), plan.direct_keys);
    plan.direct = plan.direct_groups != 0;
    if (plan.direct && plan.direct_groups <= kMaxDirectGroups) {
      const uint32_t private_bytes = LayOutPrivate(lowered, true, plan.direct_groups, 0, nullptr, nullptr);
      const bool fits = at + private_bytes + 2 * layout.stage_bytes + 512 <= half;
      if (fits && (private_bytes <= kCheapPrivateBytes || static_cast<double>(rows) * live > kManyGroupedRows))
        plan.private_groups = plan.direct_groups;
    }
    if (plan.direct) ReadKeysDirectly(lowered, &plan.code);
    if (plan.private_groups != 0) at += LayOutPrivate(lowered, true, plan.private_groups, at, &layout, &plan.folds);
  }

  Compact(static_cast<int>(keys), lowered, &plan.code);

  for (size_t i = 0, queues = 0; i < plan.code.size(); ++i) {
    if (QueuesRows(plan.code[i])) plan.resume[queues++] = static_cast<uint32_t>((i + 1) * sizeof(DeviceInstruction));
  }

  // Registers in shared memory as long as two blocks fit on a multiprocessor, the others in device memory.
  const std::vector<bool> used = UsedRegisters(lowered, plan.direct, plan.code);
  for (size_t r = 0; r < lowered.wide_registers.size(); ++r) {
    const bool wide = lowered.wide_registers[r];
    if (!used[r]) {
      plan.places.push_back(0);
      continue;
    }
    const uint32_t bytes = RegisterBytes(wide), kind = wide ? kWidePlace : 0;
    if (at + bytes + 2 * layout.stage_bytes + 256 <= half) {
      plan.places.push_back(take(bytes) | kind);
    } else {
      if (plan.scratch_bytes + bytes > kPlaceOffset)
        return Status(ErrorCode::kResource, "the section has too many registers for a GPU");
      plan.places.push_back(static_cast<uint32_t>(plan.scratch_bytes) | kInScratch | kind);
      plan.scratch_bytes += bytes;
    }
  }

  bool by_row = false;
  for (const vm::BoundTablet* t : tablets) {
    for (const vm::BoundSlot& b : t->slots) by_row |= b.decode == vm::Decode::kMapRow || b.null_bytes != nullptr;
  }
  const bool simple = layout.code != kNowhere && plan.record_staged && plan.scratch_bytes == 0 &&
                      (keys == 0 || plan.direct) && (!lowered.two_passes || plan.direct) && !lowered.full_only;
  const bool far_groups = plan.direct && plan.private_groups == 0;
  if (simple && !far_groups && layout.queues == kNowhere &&
      std::all_of(plan.code.begin(), plan.code.end(), [](const DeviceInstruction& d) {
        return IsIn(Variant::kLean, d.head.op) && d.head.source != OperandSource::kPayload;
      })) {
    plan.variant = Variant::kLean;
  } else if (simple && !by_row && std::all_of(plan.code.begin(), plan.code.end(), [&](const DeviceInstruction& d) {
               return IsStar(d, plan.joins);
             })) {
    plan.variant = Variant::kStar;
  } else if (layout.queues != kNowhere) {
    return plan;
  } else if (simple && !far_groups && lowered.product >= 0 &&
             std::all_of(plan.code.begin(), plan.code.end(),
                         [&](const DeviceInstruction& d) { return IsOfProduct(d, plan.joins); })) {
    plan.variant = Variant::kPairs;
  }

  // As many blocks as fit with two stages; then three stages and private groups as far as that costs no block.
  const uint32_t least = RoundUp(at, 128) + 2 * layout.stage_bytes;
  uint32_t room = limits.shared_per_block;
  for (uint32_t blocks = BlocksOf(plan.variant); blocks >= 1; --blocks) {
    const uint32_t share =
        std::min(limits.shared_per_block, limits.shared_per_multiprocessor / blocks - kReservedPerBlock);
    // Groups in shared memory are worth a block.
    const uint32_t groups = keys > 0 && !plan.direct && blocks > 1
                                ? LayOutPrivate(lowered, false, kLeastPrivateGroups, 0, nullptr, nullptr)
                                : 0;
    if (least + groups + 256 <= share) {
      room = share;
      break;
    }
  }
  if (least + 256 > room)
    return Status(ErrorCode::kResource, "the section needs more shared memory than a GPU block has");
  layout.stages = RoundUp(at, 128) + 3 * layout.stage_bytes + 256 <= room ? 3 : 2;
  if (keys > 0 && !plan.direct) {
    const uint32_t left = room - 256 - RoundUp(at, 128) - layout.stages * layout.stage_bytes;
    for (uint32_t n = kMaxPrivateGroups; n >= 32; n /= 2) {
      if (LayOutPrivate(lowered, false, n, 0, nullptr, nullptr) > left) continue;
      plan.private_groups = n;
      at += LayOutPrivate(lowered, false, n, at, &layout, &plan.folds);
      break;
    }
  }
  layout.ring = RoundUp(at, 128);
  layout.bytes = layout.ring + layout.stages * layout.stage_bytes;

  // Addresses into the code.
  for (DeviceInstruction& d : plan.code) {
    const Shape shape = vm::Info(d.head.op).shape;
    if (d.head.source == OperandSource::kPayload || d.head.wide_source == OperandSource::kPayload)
      SetPayload(*joins[d.head.slot], &d);
    if (Probes(d) && d.p3 > 1) {
      uint32_t places[kMaxJoinKeys] = {};
      for (uint32_t k = 0; k < static_cast<uint32_t>(d.p3); ++k) places[k] = plan.places[d.head.place + k];
      memcpy(&d.low, places, sizeof places);
    }
    const bool reads = d.head.source == OperandSource::kRegister || d.head.wide_source == OperandSource::kRegister;
    if (reads || shape == Shape::Store || shape == Shape::StoreWide) d.head.place = plan.places[d.head.place];
    if (shape == Shape::Group && !plan.direct &&
        (d.head.source != OperandSource::kNone || d.head.wide_source != OperandSource::kNone)) {
      d.state = plan.places[static_cast<size_t>(d.p3)];
    }
    if (shape == Shape::CountRows || shape == Shape::CountValues || shape == Shape::Fold) {
      d.private_state = plan.folds[d.head.p1].private_state;
    }
  }
  return plan;
}

}  // namespace

Result<LaunchPlan> PlanLaunch(const Section& section, const LoweredProgram& lowered,
                              const std::vector<const vm::BoundTablet*>& tablets,
                              const std::vector<const JoinShape*>& joins, const DeviceLimits& limits, bool measure) {
  Result<LaunchPlan> plan = PlanWith(section, lowered, tablets, joins, limits, measure, true);
  if (plan.ok() && (plan->variant != Variant::kFull || plan->layout.queues == kNowhere)) return plan;
  return PlanWith(section, lowered, tablets, joins, limits, measure, false);
}

uint32_t CodeWidth(const std::vector<const vm::BoundTablet*>& tablets, size_t slot) {
  uint32_t width = 0;
  for (const vm::BoundTablet* t : tablets) width = std::max<uint32_t>(width, t->chunks[slot]->width);
  return width;
}

std::vector<LookUp> LookUps(const Section& section, const LoweredProgram& lowered, const LaunchPlan& plan,
                            const std::vector<const vm::BoundTablet*>& tablets,
                            const std::vector<const JoinShape*>& joins) {
  std::vector<LookUp> found;
  const std::vector<double> shares = PredicateShares(section, tablets, joins);
  WalkLive(lowered.masks, plan.code, shares, joins, [&](const DeviceInstruction& d, double live) {
    if (Probes(d)) found.push_back({d.head.p1, live});
  });
  return found;
}

uint64_t LookUpBytes(const JoinRecord& record) {
  return record.lookup == JoinLookup::kBits ? record.bits_bytes : ValueBytes(record);
}

std::string Describe(const LaunchPlan& plan) {
  static constexpr const char* kVariants[] = {"lean kernel",
                                              "star kernel",
                                              "kernel for products",
                                              "full kernel",
                                              "kernel for products launched from the device",
                                              "full kernel launched from the device"};
  std::string out = kVariants[static_cast<size_t>(plan.variant)];
  std::string columns;
  for (const StagedSlot& s : plan.staged) columns += " c" + std::to_string(s.slot);
  out += columns.empty() ? "" : ", stages" + columns;
  std::string order;
  for (const DeviceInstruction& d : plan.code) {
    if (QueuesRows(d)) order += ", queue";
    if (d.head.op == Op::Filter) order += ", f" + std::to_string(d.head.p1);
    if (d.head.op != Op::Probe) continue;
    const JoinRecord& r = plan.joins[d.head.p1];
    order += ", t" + std::to_string(d.head.p1) + " by ";
    switch (r.lookup) {
      case JoinLookup::kCross:
        order += "product";
        break;
      case JoinLookup::kBits:
        order += "bitmap";
        break;
      case JoinLookup::kDirect:
        order += (r.bits != nullptr ? "bitmap and " : "") + std::to_string(r.width) + "-byte table";
        break;
      case JoinLookup::kHash32:
        order += "hash of 4-byte keys";
        break;
      case JoinLookup::kHash64:
        order += "hash of 8-byte keys";
        break;
    }
    if (r.shared_bits != kNowhere) order += " in shared memory";
  }
  out += order;
  if (plan.direct) {
    out += ", " + std::to_string(plan.direct_groups) + " groups by number in " +
           (plan.private_groups != 0 ? "shared" : "device") + " memory";
  } else if (plan.private_groups != 0) {
    out += ", groups by hash";
  }
  return out;
}

// ---- Records of tablets ---------------------------------------------------------------------------------------------

void FillRecord(const vm::BoundTablet& tablet, const LaunchPlan& plan, const TabletAddresses& addresses,
                uint8_t* record) {
  for (size_t i = 0; i < tablet.slots.size(); ++i) {
    const vm::BoundSlot& b = tablet.slots[i];
    SlotRecord& r = *new (record + i * sizeof(SlotRecord)) SlotRecord;
    r.head.codes = addresses.codes[i];
    // What is not uploaded is not read, and must not be copied to the ring.
    r.head.width = r.head.codes != nullptr ? b.width : 0;
    r.head.stage = r.head.width != 0 ? plan.stage_of_slot[i] : kNowhere;
    r.head.decode = b.decode;
    r.head.all_null = b.all_null;
    r.has_null_code = b.has_null_code && !b.all_null;
    r.null_bytes = addresses.nulls[i];
    r.head.may_be_null = r.has_null_code || r.null_bytes != nullptr;
    r.map = addresses.maps[i];
    r.map_null = addresses.map_nulls[i];
    if (b.all_null) r.head.decode = vm::Decode::kConstant;
    // Maps are indexed by codes; their slots have no base.
    r.base = b.decode == vm::Decode::kMap || b.decode == vm::Decode::kMapRow ? 0 : b.base;
    r.base_high = b.base_high;
    r.null_code = b.wide ? b.null_code : r.base + b.null_code;
    r.null_code_high = b.width == 16 ? b.null_code_high : 0;
  }
  record += tablet.slots.size() * sizeof(SlotRecord);
  for (size_t i = 0; i < tablet.predicates.size(); ++i) {
    const vm::BoundPredicate& p = tablet.predicates[i];
    const size_t slot = static_cast<size_t>(p.slot);
    const Chunk& chunk = *tablet.chunks[slot];
    using Kind = vm::BoundPredicate::Kind;
    PredicateRecord& r = *new (record + i * sizeof(PredicateRecord)) PredicateRecord;
    switch (p.kind) {
      case Kind::kAll:
      case Kind::kNone:
        r.head.kind = p.kind == Kind::kAll ? PredicateKind::kAll : PredicateKind::kNone;
        break;
      case Kind::kNulls:
        r.head.kind = PredicateKind::kRange;
        r.head.codes = addresses.nulls[slot];
        r.head.width = 1;
        r.head.negated = p.negated;
        r.low = 1, r.span = 254;
        break;
      case Kind::kSet:
        r.head.kind = p.by_row ? PredicateKind::kRange : PredicateKind::kSet;
        if (p.by_row) {
          r.head.codes = addresses.sets[i];
          r.head.width = 1;
          r.low = 1, r.span = 254;
        } else {
          r.head.codes = addresses.codes[slot];
          r.head.width = chunk.width;
          r.head.stage = plan.stage_of_slot[slot];
          r.set = addresses.sets[i];
        }
        break;
      case Kind::kRange: {
        r.head.kind = PredicateKind::kRange;
        r.head.codes = addresses.codes[slot];
        r.head.width = chunk.width;
        r.head.stage = plan.stage_of_slot[slot];
        r.head.negated = p.negated;
        r.head.exclude_null = p.exclude_null;
        r.low = p.low, r.low_high = p.low_high;
        r.span = p.span, r.span_high = p.span_high;
        r.null_code = chunk.width == 16 ? static_cast<uint64_t>(Low64(chunk.null_code_wide)) : chunk.null_code;
        r.null_code_high = chunk.width == 16 ? High64(chunk.null_code_wide) : 0;
        if (chunk.width <= 2) {
          const uint64_t mask = (uint64_t{1} << (8 * chunk.width)) - 1;
          r.low &= mask;
          r.span &= mask;
          if (r.span == mask) {
            r.low = 0;
          } else if (r.low + r.span > mask) {  // wraps around: what is left out does not
            const uint64_t low = (r.low + r.span + 1) & mask;
            r.span = mask - 1 - r.span;
            r.low = low;
            r.head.negated = !r.head.negated;
          }
        }
        break;
      }
    }
  }
  record += tablet.predicates.size() * sizeof(PredicateRecord);
  for (size_t i = 0; i < plan.probes.size(); ++i) {
    const LaunchPlan::Probe& probe = plan.probes[i];
    const JoinRecord& join = plan.joins[probe.join];
    const vm::BoundSlot& b = tablet.slots[probe.slot];
    const Chunk& chunk = *tablet.chunks[probe.slot];
    ProbeRecord& r = *new (record + i * sizeof(ProbeRecord)) ProbeRecord;
    const bool direct = join.lookup == JoinLookup::kBits || join.lookup == JoinLookup::kDirect;
    // Least and greatest place that a key of the tablet has: neither may come around to one of the table.
    const int128_t least = chunk.min - join.low[0], greatest = chunk.max - join.low[0];
    const int128_t around = int128_t{1} << 32;
    if (direct && join.keys == 1 && b.decode == vm::Decode::kFrame && !b.MayBeNull() && !b.wide && b.width >= 1 &&
        b.width <= 4 && addresses.codes[probe.slot] != nullptr && plan.stage_of_slot[probe.slot] != kNowhere &&
        least > static_cast<int128_t>(join.span[0]) - around && greatest < around) {
      r.head.kind = PredicateKind::kRange;
      r.head.codes = addresses.codes[probe.slot];
      r.head.stage = plan.stage_of_slot[probe.slot];
      r.head.width = b.width;
      r.delta = static_cast<uint32_t>(b.base - static_cast<uint64_t>(join.low[0]));
    }
  }
}

}  // namespace tessera::kernels
