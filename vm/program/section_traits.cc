#include "vm/program/section_traits.h"

#include <algorithm>
#include <utility>

namespace tessera::vm {
namespace {

/// Reads mask register P1 as it was left by other instructions.
bool ReadsMask(Opcode op) { return op == Opcode::MaskLoad || op == Opcode::MaskOr || op == Opcode::MaskAndNot; }

/// Follows a section's code from its first instruction to its last.
class Follower {
 public:
  Follower(const Program& program, const Section& section)
      : program_(program), section_(section), stored_(section.registers.size()) {
    out_.reads_slot.resize(section.slots.size());
    out_.computes_slot.resize(section.slots.size());
    out_.copies.resize(section.registers.size());
    out_.only_moves = out_.only_filters = out_.takes_all = true;
  }

  SectionTraits Run() {
    for (size_t i = 0; i < section_.code.size(); ++i) {
      FollowRows(i);
      FollowValues(i);
    }
    for (ProbeTrait& p : out_.probes) p.form = FormOf(p);
    if (!out_.probes.empty() && Info(program_.joins[static_cast<size_t>(out_.probes[0].join)].strategy).cuts)
      out_.grid = out_.probes[0].join;  // a grid is the first join
    out_.takes_all = out_.takes_all && out_.feed != kNoInstruction;
    return std::move(out_);
  }

 private:
  const Instruction& At(size_t i) const { return section_.code[i]; }

  /// What the instruction does with rows: finds matches, drops some, hands them to the sink.
  void FollowRows(size_t i) {
    const Instruction& in = At(i);
    const OpcodeInfo& info = Info(in.op);
    if (info.role == Role::Probe) {
      out_.probes.push_back({.join = in.p1, .at = i, .keys = in.p3, .key = Operand::Unpack(in.p2)});
      is_counted_ = false;
    }
    if (info.role == Role::Next) FollowNext(i);
    if (in.op == Opcode::SkipIfNone) {
      if (!std::exchange(is_counted_, true)) out_.probes.back().counted = i;
    } else if (in.op != Opcode::Filter) {
      is_head_ = false;
    } else if (is_head_) {
      out_.head_filters.push_back(in.p1);
    }
    if (out_.feed == kNoInstruction && info.role != Role::Control && info.role != Role::Value && !FeedsSink(info))
      out_.takes_all = false;
    const bool moves = OnlyMoves(in) || info.shape == Shape::Emit || info.shape == Shape::End;
    out_.only_moves &= moves;
    out_.only_filters &= moves || info.shape == Shape::Filter || info.shape == Shape::SkipIfNone;
    out_.numbers_rows |= in.op == Opcode::PlaceI;
    if (!FeedsSink(info)) return;
    out_.feed = std::min(out_.feed, i);
    if (info.shape != Shape::Emit && info.shape != Shape::Build && info.shape != Shape::Group) return;
    fed_.push_back(i);
    if (info.shape != Shape::Group || section_.keys > 0) ++out_.feeds;
  }

  void FollowNext(size_t i) {
    const auto body = static_cast<size_t>(At(i).p2);
    out_.repeats |= std::ranges::any_of(fed_, [&](size_t feed) { return feed >= body; });
    for (ProbeTrait& p : out_.probes) {
      if (p.join == At(i).p1) p.next = std::min(p.next, i);
    }
  }

  void FollowValues(size_t i) {
    const Instruction& in = At(i);
    const bool probes = Probes(in);
    ForEachOperand(in, [&](const Operand& o) {
      if (o.kind != OperandKind::kSlot || o.index >= out_.reads_slot.size()) return;
      out_.reads_slot[o.index] = true;
      if (!probes) out_.computes_slot[o.index] = true;
    });
    const OperandSpec to = Info(in.op).p[1];
    if (to != OperandSpec::Reg && to != OperandSpec::RegW) return;
    const auto reg = static_cast<size_t>(in.p2);
    out_.copies[reg].reset();
    const bool again = stored_[reg];
    stored_[reg] = true;
    if (again || i == 0) return;
    const Instruction& before = At(i - 1);
    const bool wide = in.op == Opcode::StoreW;
    if (before.op != (wide ? Opcode::LoadW : Opcode::Load)) return;
    const Operand from = Operand::Unpack(before.p2);
    if (from.kind == OperandKind::kSlot || from.kind == OperandKind::kPayload) out_.copies[reg] = {from, wide};
  }

  ProbeForm FormOf(const ProbeTrait& p) const {
    const bool outer = At(p.at).op == Opcode::ProbeOuter;
    if (!p.HasLoop()) return outer ? ProbeForm::kOuterLook : ProbeForm::kLook;
    const Instruction& next = At(p.next);
    if (outer) return next.op == Opcode::Next ? ProbeForm::kOuterLoop : ProbeForm::kOuterTurns;
    const Instruction& save = At(p.at + 1);
    if (save.op != Opcode::MaskSave || next.op != Opcode::Next || static_cast<size_t>(next.p2) != p.at + 2 ||
        next.p3 != static_cast<int32_t>(save.p1))
      return ProbeForm::kOther;
    for (size_t i = p.at + 2; i < p.next; ++i) {
      if (Info(At(i).op).role == Role::Mask && At(i).p1 == save.p1) return ProbeForm::kSearch;
    }
    return ProbeForm::kInnerLoop;
  }

  const Program& program_;
  const Section& section_;
  SectionTraits out_;
  std::vector<size_t> fed_;
  std::vector<bool> stored_;  // by register
  bool is_head_ = true;
  bool is_counted_ = true;  // the rows that the latest probe left
};

int ExchangedProber(const Program& program, const ProgramTraits& traits, size_t join) {
  const JoinTraits& uses = traits.joins[join];
  const Section& builder = program.sections[static_cast<size_t>(program.joins[join].section)];
  if (!builder.placement.by_key || !uses.scanners.empty() || uses.probers.size() != 1) return -1;
  const int prober = uses.probers[0];
  const Section& s = program.sections[static_cast<size_t>(prober)];
  if (traits.section(prober).probes[0].join != static_cast<int>(join) || s.source_kind != Section::Source::kSection)
    return -1;
  const Section& source = program.sections[static_cast<size_t>(s.source)];
  const auto reads = [&](const Section& r) {
    return r.source_kind == Section::Source::kSection && r.source == s.source;
  };
  const bool is_plain = source.placement.by_key && source.sink == Section::Sink::kRows && source.after.append_to < 0;
  return is_plain && std::ranges::count_if(program.sections, reads) == 1 ? prober : -1;
}

}  // namespace

const ProbeTrait* SectionTraits::Probe(int join) const {
  const auto found = std::ranges::find(probes, join, &ProbeTrait::join);
  return found == probes.end() ? nullptr : &*found;
}

bool SectionTraits::ComparesPairs() const {
  return std::ranges::any_of(probes, [](const ProbeTrait& p) { return p.keys == 0; });
}

bool SectionTraits::HasLoops() const { return std::ranges::any_of(probes, &ProbeTrait::HasLoop); }

int SectionTraits::SlotOf(size_t reg) const {
  const std::optional<RegisterCopy>& copy = copies[reg];
  return copy && !copy->wide && copy->of.kind == OperandKind::kSlot ? copy->of.index : -1;
}

int SectionTraits::SlotOfKey(const Operand& first, int32_t keys, size_t number) const {
  if (first.kind == OperandKind::kRegister) return SlotOf(first.index + number);
  return keys == 1 && first.kind == OperandKind::kSlot ? first.index : -1;
}

SectionTraits TraitsOf(const Program& program, const Section& section) { return Follower(program, section).Run(); }

ProgramTraits TraitsOf(const Program& program) {
  ProgramTraits traits;
  traits.joins.resize(program.joins.size());
  traits.probed_with.assign(program.sections.size(), -1);
  for (size_t i = 0; i < program.sections.size(); ++i) {
    const Section& s = program.sections[i];
    traits.sections.push_back(TraitsOf(program, s));
    if (s.source_kind == Section::Source::kJoin)
      traits.joins[static_cast<size_t>(s.source)].scanners.push_back(static_cast<int>(i));
    for (const ProbeTrait& p : traits.sections[i].probes) {
      JoinTraits& join = traits.joins[static_cast<size_t>(p.join)];
      join.probers.push_back(static_cast<int>(i));
      join.has_loop |= p.HasLoop();
      join.has_outer |= IsOuter(p.form);
    }
  }
  for (const Section& b : program.sections) {
    if (b.sink != Section::Sink::kJoin) continue;
    JoinTraits& join = traits.joins[static_cast<size_t>(b.join)];
    join.exchanged_prober = ExchangedProber(program, traits, static_cast<size_t>(b.join));
    if (join.exchanged_prober < 0) continue;
    join.inner = traits.section(join.exchanged_prober).probes[0].form == ProbeForm::kInnerLoop;
    traits.probed_with[static_cast<size_t>(program.sections[static_cast<size_t>(join.exchanged_prober)].source)] =
        b.join;
  }
  return traits;
}

uint64_t TopRowsOf(const Section& section) {
  // With more rows, sorting twice costs more than it saves.
  constexpr uint64_t kMostKept = 4096;
  if (section.sink != Section::Sink::kRows || section.after.order.empty()) return 0;
  if (section.after.fold.kind == Section::Fold::kFirst && section.keys == 0) return 1;
  if (section.after.limit <= 0) return 0;
  const uint64_t keep = section.after.Needed();
  return keep > kMostKept ? 0 : keep;
}

bool UsesJoin(const Section& section, const SectionTraits& traits, int join) {
  return (section.source_kind == Section::Source::kJoin && section.source == join) || traits.Probe(join) != nullptr;
}

bool DropsForGood(const Section& section, const ProbeTrait& probe) {
  std::vector<bool> before(static_cast<size_t>(section.masks));
  for (size_t i = 0; i < probe.at; ++i) {
    const Instruction& in = section.code[i];
    if (ReadsMask(in.op) || in.op == Opcode::MaskSave || in.op == Opcode::MaskClear) before[in.p1] = true;
  }
  for (size_t i = probe.at + 1; i < section.code.size(); ++i) {
    const Instruction& in = section.code[i];
    if (ReadsMask(in.op) && before[in.p1]) return false;
    if (in.op == Opcode::MaskSave || in.op == Opcode::MaskClear) before[in.p1] = false;
  }
  return true;
}

}  // namespace tessera::vm
