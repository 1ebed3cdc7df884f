// From a section's code to steps over ranges, and ranges of rows on the host.
//
// TryRanges relies on two things that are made sure of here: no instruction after the last step can bring a pair that
// the steps dropped to a sink, and the steps include everything that writes a register or makes rows live again.
#include "vm/encode/pair_ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsNext(Opcode op) { return Info(op).role == Role::Next; }
bool IsLookUp(Opcode op) { return Info(op).role == Role::Probe || IsNext(op); }
bool SetsMask(Opcode op) { return op == Opcode::MaskLoad || op == Opcode::MaskAndNot; }

/// Whether an instruction may change which rows are live.
bool ChangesMask(const Instruction& in) {
  return Info(in.op).role == Role::Filter || SetsMask(in.op) || IsLookUp(in.op);
}

/// Whether it is an instruction of class I or F that cannot fail and leaves the mask alone, but whose result the steps
/// do not follow.
bool CannotFail(Opcode op) {
  switch (op) {
    case Opcode::ModI:
    case Opcode::DatePartD:
    case Opcode::DatePartT:
    case Opcode::ModF:
    case Opcode::RoundF:
    case Opcode::FloorF:
    case Opcode::CeilF:
    case Opcode::RoundDigitsF:
    case Opcode::WToF:
      return true;
    default:
      return false;
  }
}

bool IsExact(const SqlType& t) { return t.storage() == StorageClass::kInt; }
bool IsFollowed(const SqlType& t) { return IsExact(t) || t.IsFloat(); }

KnownRange RangeOfConstant(const Value& v) {
  if (!IsFollowed(v.type)) return range::Unknown(v.null);
  if (v.null) return range::NoValue(true);
  if (IsExact(v.type)) return {range::DoubleAtMost(v.i64), range::DoubleAtLeast(v.i64), false, false};
  return range::Floats(v.f64, v.f64, false);
}

class RangeMaker {
 public:
  RangeMaker(const Program& program, int section, const SectionTraits& traits, int join)
      : program_(program),
        section_(program.sections[static_cast<size_t>(section)]),
        traits_(traits),
        code_(section_.code),
        join_(join),
        registers_(section_.registers.size(), -1),
        masks_(static_cast<size_t>(section_.masks), -1),
        saved_in_loop_(static_cast<size_t>(section_.masks)) {}

  RangeProgram Make() {
    if (!FindLoop() || !Translate()) return {};
    program_out_.all_from = AllFrom();
    return std::move(program_out_);
  }

 private:
  /// Finds the parts of the loop. False if the section does not have the form of a nested-loop join.
  bool FindLoop() {
    if (traits_.probes.empty()) return false;
    const ProbeTrait& probe = traits_.probes[0];
    const bool loops = probe.form == ProbeForm::kInnerLoop || probe.form == ProbeForm::kSearch;
    if (probe.join != join_ || probe.keys != 0 || !loops || traits_.feed < probe.at || traits_.feed > probe.next)
      return false;
    probe_ = static_cast<int>(probe.at);
    next_ = static_cast<int>(probe.next);
    end_ = static_cast<int>(traits_.feed);
    // A sink after the loop could get rows that found no pair.
    for (int i = next_; i < Size(); ++i) {
      if (FeedsSink(Info(At(i).op))) return false;
    }
    // The steps end where another table is probed, if that comes before a sink.
    for (int i = probe_ + 1; i < end_; ++i) {
      if (IsLookUp(At(i).op)) end_ = i;
    }
    return true;
  }

  bool Translate() {
    std::vector<int> step_of(static_cast<size_t>(end_));
    for (int i = 0; i < end_; ++i) {
      step_of[static_cast<size_t>(i)] = Steps();
      if (!Translate(i)) return false;
    }
    for (RangeStep& s : program_out_.steps) {
      if (static_cast<Opcode>(s.op) != Opcode::SkipIfNone) continue;
      s.target = static_cast<uint16_t>(s.target < end_ ? step_of[s.target] : Steps());
    }
    // Rows that are dead at the end become live after it if a mask register has them, so both count. (Next restores
    // the loop's mask, but that is for other pairs.)
    for (int m : MasksReadFrom(end_, next_)) {
      const int number = masks_[static_cast<size_t>(m)];
      if (number < 0) return false;
      Add(Opcode::MaskOr)->index = static_cast<uint16_t>(number);
      Add(Opcode::MaskLoad)->index = static_cast<uint16_t>(number);
      whole_ = false;
    }
    if (IsLookUp(At(end_).op)) whole_ = false;
    if (!whole_) Add(Opcode::Probe)->source = RangeSource::kUnknown;  // perhaps not all get further
    return true;
  }

  bool Translate(int address) {
    const Instruction& in = At(address);
    const OpcodeInfo& info = Info(in.op);
    if (address < probe_ && ChangesMask(in)) program_out_.filtered_before = true;
    // The steps end before these.
    if (FeedsSink(info) || info.role == Role::Next || info.shape == Shape::ProbeOuter || info.shape == Shape::End)
      return false;
    switch (info.shape) {
      case Shape::SkipIfNone:
        Add(in.op)->target = static_cast<uint16_t>(in.p2);  // an address until all steps are known
        return true;
      case Shape::Probe:
        Add(in.op);
        return true;
      case Shape::MaskRegister:
        return TranslateMask(address);
      case Shape::Filter:
        TranslatePredicate(section_.predicates[in.p1]);
        return true;
      case Shape::LoadWide:
      case Shape::StoreWide:
        return true;  // W is not followed
      case Shape::Store: {
        const int r = NumberOf(in.p2, kRangeRegisters, &registers_, &register_count_);
        if (r >= 0) Add(in.op)->index = static_cast<uint16_t>(r);
        return true;
      }
      case Shape::Check: {
        RangeStep* s = Add(in.op);
        if (in.op != Opcode::CheckI) return true;
        const Value &low = Constant(in.p2), &high = Constant(in.p3);
        s->constant = {range::DoubleAtLeast(low.i64), range::DoubleAtMost(high.i64), false, false};
        return true;
      }
      default:
        if (in.op == Opcode::IToW) return true;
        if (CannotFail(in.op)) {
          Add(Opcode::Load)->source = RangeSource::kUnknown;
        } else {
          RangeStep* s = Add(in.op);
          if (info.p[1] == OperandSpec::Src) SetOperand(in.p2, s);
        }
        return true;
    }
  }

  bool TranslateMask(int address) {
    const Instruction& in = At(address);
    const int m = NumberOf(in.p1, kRangeMasks, &masks_, &mask_count_);
    if (m < 0) return false;
    switch (in.op) {
      case Opcode::MaskSave:
      case Opcode::MaskClear:
        if (address > probe_) saved_in_loop_[in.p1] = true;
        break;
      case Opcode::MaskLoad:
      case Opcode::MaskOr:
      case Opcode::MaskAndNot:
        // In the loop, a mask saved before it may have rows that did not get there; an earlier turn's, other pairs.
        if (address > probe_ && !saved_in_loop_[in.p1]) return false;
        break;
      default:
        return false;
    }
    Add(in.op)->index = static_cast<uint16_t>(m);
    return true;
  }

  /// A condition on an encoded column. If it is not one range of values, the answer is kSome.
  void TranslatePredicate(const Predicate& p) {
    const Slot& slot = section_.slots[static_cast<size_t>(p.slot)];
    const int32_t operand = Operand::Slot(p.slot).Pack();
    if (p.kind == Predicate::Kind::kIsNull || p.kind == Predicate::Kind::kIsNotNull) {
      SetOperand(operand, Add(p.kind == Predicate::Kind::kIsNull ? Opcode::FilterNull : Opcode::FilterNotNull));
      return;
    }
    RangeStep* s = Add(Opcode::Filter);
    s->source = RangeSource::kUnknown;
    if (p.kind != Predicate::Kind::kRange || p.negated || !IsFollowed(slot.type)) return;
    double low = -kInfinity, high = kInfinity;
    if (IsExact(slot.type)) {
      // An exclusive bound is moved to the next integer; beyond the last there is none.
      const int64_t least = p.low < 0 ? 0 : Constant(p.low).i64, greatest = p.high < 0 ? 0 : Constant(p.high).i64;
      const bool above = p.low >= 0 && !p.low_inclusive, below = p.high >= 0 && !p.high_inclusive;
      if ((above && least == std::numeric_limits<int64_t>::max()) ||
          (below && greatest == std::numeric_limits<int64_t>::min()))
        return;
      if (p.low >= 0) low = range::DoubleAtLeast(above ? least + 1 : least);
      if (p.high >= 0) high = range::DoubleAtMost(below ? greatest - 1 : greatest);
      // Values between the bound and the next double inside it pass, but their doubles may not: "none" would be wrong.
      if (std::max(std::fabs(p.low < 0 ? 0 : low), std::fabs(p.high < 0 ? 0 : high)) >= range::kTwo53) return;
    } else {
      if (p.low >= 0) low = Constant(p.low).f64;
      if (p.high >= 0) high = Constant(p.high).f64;
      if (!std::isfinite(p.low < 0 ? 0 : low) || !std::isfinite(p.high < 0 ? 0 : high)) return;
      if (p.low >= 0 && !p.low_inclusive) low = range::NextDouble(low, true);
      if (p.high >= 0 && !p.high_inclusive) high = range::NextDouble(high, false);
    }
    s->constant = {low, high, false, false};
    SetOperand(operand, s);
  }

  void SetOperand(int32_t packed, RangeStep* s) {
    const Operand o = Operand::Unpack(packed);
    s->source = RangeSource::kUnknown;
    switch (o.kind) {
      case OperandKind::kSlot: {
        const Slot& slot = section_.slots[o.index];
        if (slot.map < 0 && IsFollowed(slot.type)) SetColumn(RangeSource::kOuter, slot.column, s);
        break;
      }
      case OperandKind::kPayload: {
        const Section& builder = program_.sections[static_cast<size_t>(program_.joins[o.table].section)];
        const int column = builder.keys + o.index;
        if (o.table == join_ && IsFollowed(builder.columns[static_cast<size_t>(column)]))
          SetColumn(RangeSource::kInner, column, s);
        break;
      }
      case OperandKind::kConstant:
        s->source = RangeSource::kConstant;
        s->constant = RangeOfConstant(program_.constants[o.index]);
        break;
      case OperandKind::kRegister: {
        if (!IsFollowed(section_.registers[o.index])) break;
        const int r = NumberOf(o.index, kRangeRegisters, &registers_, &register_count_);
        if (r < 0) break;
        s->source = RangeSource::kRegister;
        s->index = static_cast<uint16_t>(r);
        break;
      }
    }
  }
  static void SetColumn(RangeSource source, int column, RangeStep* s) {
    if (column > std::numeric_limits<uint16_t>::max()) return;
    s->source = source;
    s->index = static_cast<uint16_t>(column);
  }

  /// The number in the steps of a register or mask of the section; -1 if there are too many.
  static int NumberOf(int i, int limit, std::vector<int>* numbers, int* count) {
    int& number = (*numbers)[static_cast<size_t>(i)];
    if (number < 0 && *count < limit) number = (*count)++;
    return number;
  }

  // ---- Where a turn may begin

  /// RangeProgram::all_from.
  int32_t AllFrom() const {
    if (!whole_) return -1;
    const int body = probe_ + 2;
    int from = body;
    for (int i = body; i < end_; ++i) {
      if (ChangesMask(At(i))) from = i + 1;
    }
    // The instructions that are left out. If they read a register before they store it, its value comes from an earlier
    // turn.
    std::vector<bool> stored(section_.registers.size()), saved(static_cast<size_t>(section_.masks));
    std::vector<int> read;
    for (int i = body; i < from; ++i) {
      const Instruction& in = At(i);
      RegistersReadBy(in, &read);
      if (IsStore(in)) {
        const auto r = static_cast<size_t>(in.p2);
        if (!stored[r] && std::find(read.begin(), read.end(), in.p2) != read.end()) return -1;
        stored[r] = true;
      }
      if (Info(in.op).shape == Shape::MaskRegister && !SetsMask(in.op)) saved[in.p1] = true;
    }
    if (AccumulatorReadFrom(from)) return -1;
    for (int m : MasksReadFrom(from)) {
      if (saved[static_cast<size_t>(m)]) return -1;
    }
    // A later store sets a register anew only while the mask is the one that the turn begins with.
    bool same_mask = true;
    for (int i = from; i < Size(); ++i) {
      const Instruction& in = At(i);
      read.clear();
      RegistersReadBy(in, &read);
      for (int r : read) {
        if (stored[static_cast<size_t>(r)]) return -1;
      }
      if (ChangesMask(in)) same_mask = false;
      if (IsStore(in) && same_mask) stored[static_cast<size_t>(in.p2)] = false;
    }
    return from;
  }

  static bool IsStore(const Instruction& in) {
    const Shape shape = Info(in.op).shape;
    return shape == Shape::Store || shape == Shape::StoreWide;
  }

  void RegistersReadBy(const Instruction& in, std::vector<int>* out) const {
    ForEachOperand(in, [&](const Operand& o) {
      if (o.kind == OperandKind::kRegister) out->push_back(o.index);
    });
    if (Info(in.op).role == Role::Rows) {
      for (size_t r = 0; r < section_.columns.size(); ++r) out->push_back(static_cast<int>(r));
    }
  }

  /// Whether an accumulator that was set before `from` is read at `from` or after it.
  bool AccumulatorReadFrom(int from) const {
    bool a = true, w = true;  // it still has its old value
    std::vector<int> targets;
    for (int i = from; i < Size() && (a || w); ++i) {
      const Instruction& in = At(i);
      const OpcodeInfo& info = Info(in.op);
      // At a jump's target, no accumulator has a value that can be read.
      if (std::find(targets.begin(), targets.end(), i) != targets.end() || IsNext(in.op)) return false;
      if (info.shape == Shape::SkipIfNone) targets.push_back(in.p2);
      const bool reads_w = info.in == AccumulatorSpec::W, reads_a = !reads_w && info.in != AccumulatorSpec::None;
      if ((a && reads_a) || (w && reads_w)) return true;
      const bool sets_w = info.out == AccumulatorSpec::W, sets_a = !sets_w && info.out != AccumulatorSpec::None;
      a &= !sets_a;
      w &= !sets_w;
    }
    return false;
  }

  /// The mask registers that were set before `from` and are read at `from` or after it, except by the instruction at
  /// `except`.
  std::vector<int> MasksReadFrom(int from, int except = -1) const {
    std::vector<int> read;
    std::vector<bool> known(static_cast<size_t>(section_.masks));  // already read, or set anew
    for (int i = from; i < Size(); ++i) {
      const Instruction& in = At(i);
      if ((Info(in.op).role != Role::Mask && !IsNext(in.op)) || i == except) continue;
      const auto m = static_cast<size_t>(IsNext(in.op) ? in.p3 : in.p1);
      const bool reads = in.op != Opcode::MaskSave && in.op != Opcode::MaskClear;
      if (reads && !known[m]) read.push_back(static_cast<int>(m));
      known[m] = true;
    }
    return read;
  }

  const Instruction& At(int i) const { return code_[static_cast<size_t>(i)]; }
  int Size() const { return static_cast<int>(code_.size()); }
  int Steps() const { return static_cast<int>(program_out_.steps.size()); }
  const Value& Constant(int32_t i) const { return program_.constants[static_cast<size_t>(i)]; }
  RangeStep* Add(Opcode op) {
    program_out_.steps.emplace_back();
    program_out_.steps.back().op = static_cast<uint16_t>(op);
    return &program_out_.steps.back();
  }

  const Program& program_;
  const Section& section_;
  const SectionTraits& traits_;
  const std::vector<Instruction>& code_;
  const int join_;
  int probe_ = -1, next_ = -1;          // addresses
  int end_ = -1;                        // the steps are for the instructions before it
  bool whole_ = true;                   // all pairs that are live at the end get to the sink
  std::vector<int> registers_, masks_;  // their numbers in the steps, or -1
  int register_count_ = 0, mask_count_ = 0;
  std::vector<bool> saved_in_loop_;  // masks that this turn of the loop has set
  RangeProgram program_out_;
};

}  // namespace

RangeProgram MakeRangeProgram(const Program& program, int section, const SectionTraits& traits, int join) {
  return RangeMaker(program, section, traits, join).Make();
}

KnownRange RangeOfColumn(const RowColumn& column, size_t first, size_t count) {
  auto is_null = [&](size_t row) { return !column.null.empty() && column.null[row] != 0; };
  bool any_null = false, any = false;
  if (!IsFollowed(column.type)) {
    for (size_t row = first; row < first + count; ++row) any_null |= is_null(row);
    return range::Unknown(any_null);
  }
  if (IsExact(column.type)) {
    int64_t low = 0, high = 0;
    for (size_t row = first; row < first + count; ++row) {
      if (is_null(row)) {
        any_null = true;
        continue;
      }
      const int64_t v = column.low[row];
      low = any ? std::min(low, v) : v;
      high = any ? std::max(high, v) : v;
      any = true;
    }
    if (!any) return range::NoValue(any_null);
    return {range::DoubleAtMost(low), range::DoubleAtLeast(high), any_null, false};
  }
  double low = 0, high = 0;
  bool nan = false;
  for (size_t row = first; row < first + count; ++row) {
    if (is_null(row)) {
      any_null = true;
      continue;
    }
    const double v = std::bit_cast<double>(column.low[row]);
    nan |= v != v;
    low = any ? std::min(low, v) : v;
    high = any ? std::max(high, v) : v;
    any = true;
  }
  if (nan) return range::Unknown(any_null);
  if (!any) return range::NoValue(any_null);
  return {low, high, any_null, false};
}

}  // namespace tessera::vm
