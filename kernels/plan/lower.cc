#include "kernels/plan/lower.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <string>

#include "kernels/launch/join_record.h"
#include "kernels/launch/sinks.h"
#include "kernels/launch/unit_search.h"
#include "kernels/plan/join_shape.h"
#include "vm/meaning/meaning.h"
#include "vm/program/section_traits.h"

namespace tessera::kernels {

using vm::Instruction;
using vm::Opcode;
using vm::OpcodeInfo;
using vm::Operand;
using vm::OperandKind;
using vm::Section;
using vm::Shape;

namespace {

/// Words that device memory moves at a time: what rows of a group change is in as few of these as can be.
constexpr uint32_t kSectorWords = 4;

class Lowerer {
 public:
  Lowerer(const vm::Program& program, int section, const vm::SectionTraits& traits, vm::StringPool* strings)
      : program_(program),
        number_(section),
        section_(program.sections[static_cast<size_t>(section)]),
        traits_(traits),
        strings_(strings) {}

  LoweredProgram Run() {
    for (const SqlType& t : section_.registers) out_.machine.wide_registers.push_back(IsWide(t));
    out_.machine.masks = static_cast<uint32_t>(section_.masks);
    out_.slots.text_tests = TextTests(program_, section_);
    out_.slots.values.resize(section_.slots.size());
    out_.slots.codes.resize(section_.slots.size());
    LayOutStates();
    out_.joins.reads_cursors.resize(program_.joins.size());
    out_.joins.probe_slots.resize(program_.joins.size());
    for (size_t address = 0; address < section_.code.size(); ++address)
      out_.code.push_back(Lower(section_.code[address], static_cast<uint32_t>(address)));
    for (const vm::ProbeTrait& p : traits_.probes) NoteProbeSlots(p);
    out_.joins.grid = traits_.grid;
    if (out_.joins.grid >= 0) {
      out_.joins.ranges = vm::MakeRangeProgram(program_, number_, traits_, out_.joins.grid);
      for (vm::RangeStep& step : out_.joins.ranges.steps) {
        const bool column = step.source == vm::RangeSource::kOuter || step.source == vm::RangeSource::kInner;
        if (column && step.index >= kMaxRangeColumns) step.source = vm::RangeSource::kUnknown;
      }
    }
    out_.machine.repeats = traits_.repeats;
    out_.machine.two_passes = traits_.feeds > 1 || (traits_.feeds > 0 && out_.machine.repeats);
    for (size_t k = 0; k < out_.keys.registers.size(); ++k)
      out_.keys.sources.push_back(SourceOfKey(out_.keys.registers[k]));
    if (section_.sink == Section::Sink::kJoin && section_.keys > 0) {
      const KeySource key = SourceOfKey(0);
      if (key.source == OperandSource::kSlot) out_.keys.build_slot = key.slot;
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
      out_.groups.record_words += IsWide(section_.columns[static_cast<size_t>(k)]) ? 2 : 1;
    if (section_.keys > 0) ++out_.groups.record_words;
    out_.groups.state_words = static_cast<uint32_t>((section_.aggregates.size() + 63) / 64);
    out_.groups.initial_state.resize(out_.groups.state_words);
    bool lock = false, windows = false;
    for (const vm::AggregateSpec& a : section_.aggregates) {
      vm::WithAggregate(a.op, [&]<class M>() {
        LayOutState<M>(a.op);
        lock |= vm::NeedsLock(M::kGroupState);
        windows |= M::kGroupState == vm::GroupState::kFloatWindow;
      });
    }
    if (lock) out_.groups.lock_word = out_.groups.state_words++;
    if (windows) out_.groups.state_words = (out_.groups.state_words + kSectorWords - 1) / kSectorWords * kSectorWords;
    out_.groups.state_words = std::max<uint32_t>(out_.groups.state_words, 1);
    out_.groups.initial_state.resize(out_.groups.state_words);
  }

  template <class M>
  void LayOutState(Opcode op) {
    constexpr vm::GroupState kKept = M::kGroupState;
    DeviceInstruction fold;
    fold.head.op = op;
    fold.state = out_.groups.state_words;
    uint64_t words[vm::kMostStateWords] = {};
    uint32_t count = 1;
    if constexpr (kKept != vm::GroupState::kCount) {
      vm::ToWords(M::Identity(), words);
      count = vm::kStateWords<typename M::State>;
    }
    assert(std::all_of(words + 2, std::end(words), [](uint64_t w) { return w == 0; }));
    if (section_.keys > 0 && (kKept == vm::GroupState::kLeastFloat || kKept == vm::GroupState::kGreatestFloat))
      words[0] = OrderedFloat(std::bit_cast<double>(words[0]));
    fold.low = static_cast<int64_t>(words[0]);
    fold.high = static_cast<int64_t>(words[1]);
    if (section_.keys == 0) {
      fold.state = out_.partials;
      out_.partials += PartialsOf(count);
      out_.folds.push_back(fold);
      return;
    }
    if (kKept == vm::GroupState::kHalves) out_.groups.narrow_sums.push_back(fold.state);
    if (kKept == vm::GroupState::kParts) out_.groups.wide_sums.push_back(fold.state);
    out_.groups.state_words += vm::GroupStateWords(kKept, count);
    out_.groups.initial_state.resize(out_.groups.state_words);
    std::copy_n(words, std::min(count, vm::GroupStateWords(kKept, count)),
                out_.groups.initial_state.begin() + fold.state);
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
        out_.slots.values[o.index] = true;
        break;
      case OperandKind::kRegister:
        source = OperandSource::kRegister;
        d->head.register_at = o.index;
        break;
      case OperandKind::kConstant:
        source = OperandSource::kConstant;
        SetConstant(d, o.index);
        break;
      case OperandKind::kPayload:
        source = OperandSource::kPayload;
        d->head.slot = o.table;
        d->low = o.index;  // until PlanLaunch knows where it is
        out_.joins.reads_cursors[o.table] = true;
        break;
    }
    (wide ? d->head.wide_source : d->head.source) = source;
  }

  void SetSecondOperand(DeviceInstruction* d, int32_t packed) {
    const Operand o = Operand::Unpack(packed);
    DeviceOperand second;
    if (o.kind == OperandKind::kSlot) {
      second.source = OperandSource::kSlot;
      second.slot = o.index;
      out_.slots.values[o.index] = true;
    } else if (o.kind == OperandKind::kRegister) {
      second.source = OperandSource::kRegister;
      second.register_at = o.index;
    } else {
      DeviceInstruction constant;
      SetConstant(&constant, o.index);
      second.source = OperandSource::kConstant;
      second.null_constant = constant.head.null_constant;
      second.constant = constant.low;
    }
    SetSecond(d, second);
  }

  DeviceInstruction Lower(const Instruction& in, uint32_t address) {
    const OpcodeInfo& info = vm::Info(in.op);
    DeviceInstruction d;
    d.head.op = in.op;
    d.head.p1 = in.p1;
    d.p3 = in.p3;
    d.address = address;
    out_.machine.uses_wide |= info.in == vm::AccumulatorSpec::W || info.out == vm::AccumulatorSpec::W;
    switch (info.shape) {
      case Shape::SkipIfNone:
        d.p3 = in.p2;  // an address until Compact
        break;
      case Shape::Filter:
        out_.slots.codes[static_cast<size_t>(section_.predicates[in.p1].slot)] = true;
        break;
      case Shape::Store:
      case Shape::StoreWide:
        d.head.register_at = static_cast<uint32_t>(in.p2);
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
        if (in.p3 == 1 && !IsWide(BuilderOf(program_, in.p1).columns[0])) {
          SetOperand(&d, in.p2, false);
        } else {
          if (in.p3 > 0) d.head.register_at = Operand::Unpack(in.p2).index;  // registers, until PlanLaunch
          out_.machine.full_only |= in.p3 > 0;
        }
        break;
      case Shape::Total:
        d.head.register_at = Operand::Unpack(in.p2).index;  // the first of them, until PlanLaunch
        break;
      case Shape::TestMatch:
        out_.joins.reads_cursors[in.p1] = true;
        break;
      case Shape::NextOuter:
      case Shape::Next:
        d.p3 = in.p2;  // an address until Compact
        d.head.slot = static_cast<uint16_t>(in.p3);
        out_.joins.reads_cursors[in.p1] = true;
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
        SetOperands(info, in, &d);
    }
    return d;
  }

  /// Sets all operands of a shape that has no case of its own.
  void SetOperands(const OpcodeInfo& info, const Instruction& in, DeviceInstruction* d) {
    const int32_t p[4] = {in.p1, in.p2, in.p3, in.p4};
    for (int k = 0; k < 4; ++k) {
      switch (info.p[k]) {
        case vm::OperandSpec::Src:
          SetOperand(d, p[k], false);
          break;
        case vm::OperandSpec::SrcW:
          SetOperand(d, p[k], true);
          break;
        case vm::OperandSpec::SrcPlain:
          SetSecondOperand(d, p[k]);
          break;
        case vm::OperandSpec::None:
        case vm::OperandSpec::Mask:  // in head.p1
        case vm::OperandSpec::Agg:
        case vm::OperandSpec::Int:  // in p3
          break;
        case vm::OperandSpec::Pred:  // of shapes with a case of their own, or of the host's alone
        case vm::OperandSpec::Join:
        case vm::OperandSpec::Addr:
        case vm::OperandSpec::Reg:
        case vm::OperandSpec::RegW:
        case vm::OperandSpec::Const:
        case vm::OperandSpec::ConstW:
        case vm::OperandSpec::ConstT:
        case vm::OperandSpec::SrcInt:
          assert(false);
          break;
      }
    }
  }

  /// The slot or payload whose values a key register holds wherever it is read.
  KeySource SourceOfKey(uint32_t reg) const {
    return own_key_.source != OperandSource::kNone ? own_key_ : SourceOfRegister(reg);
  }
  KeySource SourceOfRegister(uint32_t reg) const {
    if (reg >= traits_.copies.size()) return {};  // it was added here, for a key that is computed or a constant
    const std::optional<vm::RegisterCopy>& copy = traits_.copies[reg];
    return copy && !copy->wide ? SourceOf(copy->of) : KeySource();
  }
  static KeySource SourceOf(const Operand& o) {
    if (o.kind == OperandKind::kSlot) return {OperandSource::kSlot, o.index, 0};
    if (o.kind == OperandKind::kPayload) return {OperandSource::kPayload, o.table, o.index};
    return {};
  }

  /// Notes the slots that a probe's keys copy, if all keys are copies of slots.
  void NoteProbeSlots(const vm::ProbeTrait& probe) {
    std::vector<uint32_t>& slots = out_.joins.probe_slots[static_cast<size_t>(probe.join)];
    for (int32_t k = 0; k < probe.keys; ++k) {
      const int slot = traits_.SlotOfKey(probe.key, probe.keys, static_cast<size_t>(k));
      if (slot < 0) return slots.clear();
      slots.push_back(static_cast<uint32_t>(slot));
    }
  }

  void LowerGroup(const Instruction& in, DeviceInstruction* d) {
    if (section_.keys == 0) return;
    const Operand o = Operand::Unpack(in.p2);
    const bool first = out_.keys.registers.empty();
    if (o.kind == OperandKind::kRegister) {
      for (int k = 0; first && k < in.p3; ++k) out_.keys.registers.push_back(o.index + static_cast<uint32_t>(k));
      if (first || out_.keys.registers[0] == o.index) return;
    }
    // The key is copied to an added register, where every Group finds it.
    const bool wide = IsWide(section_.columns[0]);
    if (first) {
      out_.keys.registers.push_back(static_cast<uint32_t>(out_.machine.wide_registers.size()));
      out_.machine.wide_registers.push_back(wide);
      if (!wide) own_key_ = SourceOf(o);
    } else {
      own_key_ = {};
    }
    SetOperand(d, in.p2, wide);
    d->p3 = static_cast<int32_t>(out_.keys.registers[0]);
  }

  const vm::Program& program_;
  const int number_;
  const Section& section_;
  const vm::SectionTraits& traits_;
  vm::StringPool* strings_;
  KeySource own_key_;  ///< the source of the added key register
  LoweredProgram out_;
};

/// What a launch is laid out for. Larger sections are rare, and the host has room for them.
constexpr size_t kMostSlots = 1024, kMostRegisters = 1024, kMostInstructions = 16384;
constexpr size_t kMostJoins = 64;  ///< join tables of a program: each has a record in shared memory

constexpr const char* kManyJoinKeys = "a join on more than 8 keys";
bool CanBuild(const Section& s) { return s.keys <= static_cast<int>(kMaxHashedKeys); }

}  // namespace

Status CanLower(const vm::Program& program, int section) {
  const Section& s = program.sections[static_cast<size_t>(section)];
  auto no = [](const std::string& reason) {
    return Unsupported(reason + " runs on the host only", -1, "Use --device auto or host.");
  };
  if (s.source_kind == Section::Source::kJoin) {
    const Section& builder = BuilderOf(program, s.source);
    if (!CanBuild(builder) || builder.keys > 0) return no("a section over the rows of a join table with keys");
  } else if (s.source_kind == Section::Source::kOneRow) {
    return no("a section over one row");
  } else if (s.source_kind == Section::Source::kSeries) {
    return no("a section over a series");
  }
  if (s.slots.size() > kMostSlots || s.registers.size() > kMostRegisters || s.code.size() > kMostInstructions)
    return no("a section with so many columns or instructions");
  if (s.sink == Section::Sink::kMap) return no("a dictionary section");
  if (s.sink == Section::Sink::kGroups && s.keys > static_cast<int>(kMaxGroupKeys))
    return no("GROUP BY of more than 63 keys");
  if (s.sink == Section::Sink::kJoin && !CanBuild(s)) return no(kManyJoinKeys);
  if (program.joins.size() > kMostJoins) return no("a program of more than 64 join tables");
  bool grouped = false;
  for (const Instruction& in : s.code) {
    const OpcodeInfo& info = vm::Info(in.op);
    if (info.tier == vm::Tier::Host) return no(info.name);
    if (info.shape == Shape::Probe || info.shape == Shape::ProbeOuter) {
      const vm::JoinSpec& join = program.joins[in.p1];
      const Section& builder = BuilderOf(program, in.p1);
      if (!CanBuild(builder)) return no(kManyJoinKeys);
      if (in.p3 == 1 && IsWide(builder.columns[0]) && Operand::Unpack(in.p2).kind != OperandKind::kRegister)
        return no("a probe with 128 bits that are in no register");
      const vm::JoinStrategyInfo& strategy = vm::Info(join.strategy);
      if (strategy.place == vm::JoinPlace::kDevice && s.source_kind != Section::Source::kJoin)
        return no(std::string("a ") + strategy.word + " join over a stored table");
      if (strategy.place == vm::JoinPlace::kHost)
        return no("a " + (strategy.word + std::string(" over all rows of a table")));
    }
    if (info.shape == Shape::Group && s.keys > 0) {
      // Several Groups with different key registers: the keys would have to be moved.
      if (grouped && s.keys > 1) return no("a section with several GROUP BYs of several keys");
      grouped = true;
    }
  }
  return Status::Ok();
}

LoweredProgram LowerProgram(const vm::Program& program, int section, const vm::SectionTraits& traits,
                            vm::StringPool* strings) {
  return Lowerer(program, section, traits, strings).Run();
}

}  // namespace tessera::kernels
