#include "compiler/ranks/exchange_joins.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tablet/catalog/table_info.h"
#include "tablet/values/types.h"
#include "vm/program/distribution.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandKind;
using vm::Program;
using vm::ProgramTraits;
using vm::Section;

bool IsPartOfRecursion(const Program& program, size_t section) {
  for (size_t i = section; i < program.sections.size(); ++i) {
    const int32_t again = program.sections[i].recursion.first;
    if (again >= 0 && static_cast<size_t>(again) <= section) return true;
  }
  return false;
}

/// Cuts one section before one of its probes.
class Cut {
 public:
  /// `behind_saves`: cuts before the masks that are saved right before the probe: all rows are live there.
  Cut(const Program& program, size_t number, size_t probe, bool behind_saves)
      : program_(program), whole_(program.sections[number]), number_(number), probe_(probe), begin_(probe) {
    // (A LEFT JOIN with conditions clears a mask first; an anti join saves one.)
    const auto belongs = [&](Opcode op) { return op == Opcode::MaskClear || (behind_saves && op == Opcode::MaskSave); };
    while (begin_ > 0 && belongs(at(begin_ - 1).op)) --begin_;
  }

  /// False if the section cannot be cut there: more than rows passes the place.
  bool Make() {
    FindOpenLoops();
    if (!FindLiveValues()) return false;
    MakeFirst();
    MakeSecond();
    return true;
  }
  Section first, second;

 private:
  const Instruction& at(size_t i) const { return whole_.code[i]; }
  bool IsMoved(size_t i) const { return std::binary_search(moved_.begin(), moved_.end(), i); }

  /// The ends of loops over matches in whose body the probe is: they stay with the loops' heads.
  void FindOpenLoops() {
    for (size_t i = begin_; i < whole_.code.size(); ++i) {
      if (Info(at(i).op).role == vm::Role::Next && static_cast<size_t>(at(i).p2) <= begin_) moved_.push_back(i);
    }
  }

  SqlType TypeOf(const Operand& o) const {
    switch (o.kind) {
      case OperandKind::kSlot:
        return whole_.slots[o.index].type;
      case OperandKind::kRegister:
        return whole_.registers[o.index];
      case OperandKind::kConstant:
        return program_.constants[o.index].type;
      case OperandKind::kPayload: {
        const Section& builder = program_.sections[static_cast<size_t>(program_.joins[o.table].section)];
        return builder.columns[static_cast<size_t>(builder.keys) + o.index];
      }
    }
    return {};
  }

  /// The column of the first part's rows that holds the operand's value.
  int32_t ColumnOf(const Operand& o) {
    const auto [known, is_new] = columns_.try_emplace(o.Pack(), static_cast<int32_t>(values_.size()));
    if (is_new) values_.push_back(o);
    return known->second;
  }

  /// Finds what the code from the probe on reads and the code before has made, the join's keys first.
  bool FindLiveValues() {
    const Instruction& probe = at(probe_);
    ForEachOperand(probe, [&](const Operand& o) { ColumnOf(o); });
    if (values_.size() != static_cast<size_t>(probe.p3)) return false;  // (a key that stands twice)
    std::vector<bool> probed(program_.joins.size()), written(whole_.registers.size()), saved(64);
    for (size_t i = 0; i < begin_; ++i) {
      if (Probes(at(i))) probed[at(i).p1] = true;
      if (Info(at(i).op).p[1] == vm::OperandSpec::Reg || Info(at(i).op).p[1] == vm::OperandSpec::RegW)
        written[static_cast<size_t>(at(i).p2)] = true;
    }
    for (size_t i = begin_; i < whole_.code.size(); ++i) {
      if (IsMoved(i)) continue;
      if (!CanBeBehind(at(i), probed, &saved)) return false;
      ForEachOperand(at(i), [&](const Operand& o) {
        if (o.kind == OperandKind::kSlot || (o.kind == OperandKind::kPayload && probed[o.table]) ||
            (o.kind == OperandKind::kRegister && written[o.index])) {
          ColumnOf(o);
        }
      });
    }
    return values_.size() + whole_.registers.size() <= vm::kMaxRegisters;
  }

  /// Whether an instruction of the second part finds there what it needs. `probed`: join tables of the first part;
  /// `saved`: mask registers that the second part has set.
  static bool CanBeBehind(const Instruction& in, const std::vector<bool>& probed, std::vector<bool>* saved) {
    if (in.op == Opcode::PlaceI || Info(in.op).shape == vm::Shape::Filter) return false;
    if (Info(in.op).shape == vm::Shape::TestMatch) return !probed[in.p1];
    if (Info(in.op).role == vm::Role::Next) return !probed[in.p1] && (*saved)[static_cast<size_t>(in.p3)];
    if (Info(in.op).role != vm::Role::Mask) return true;
    if (in.op == Opcode::MaskSave || in.op == Opcode::MaskClear) (*saved)[in.p1] = true;
    return (*saved)[in.p1];
  }

  static Instruction Load(const SqlType& type, const Operand& o) {
    return {IsWide(type) ? Opcode::LoadW : Opcode::Load, 0, o.Pack(), 0, 0};
  }
  static Instruction Store(const SqlType& type, int32_t reg) {
    return {IsWide(type) ? Opcode::StoreW : Opcode::Store, 0, reg, 0, 0};
  }

  /// A copy of the instruction with its operands changed.
  template <class F>
  static Instruction WithOperands(Instruction in, F change) {
    const vm::OpcodeInfo& info = Info(in.op);
    int32_t* const p[4] = {nullptr, &in.p2, &in.p3, &in.p4};
    for (int k = 1; k < 4; ++k) {
      if (vm::IsReference(info.p[k]) && *p[k] != -1) *p[k] = change(Operand::Unpack(*p[k])).Pack();
      if (info.p[k] == vm::OperandSpec::Reg || info.p[k] == vm::OperandSpec::RegW)
        *p[k] = change(Operand::Register(*p[k])).index;
    }
    return in;
  }

  /// The code before the probe, which emits the values that live there.
  void MakeFirst() {
    const int shift = static_cast<int>(values_.size());  // emitted are registers from 0 on
    first.source_kind = whole_.source_kind;
    first.source = whole_.source;
    first.source_rows = whole_.source_rows;
    first.slots = whole_.slots;
    first.predicates = whole_.predicates;
    first.masks = whole_.masks;
    first.placement.spans = whole_.placement.spans;
    first.label = whole_.label;
    first.keys = at(probe_).p3;
    first.placement.by_key = true;
    for (const Operand& o : values_) first.columns.push_back(TypeOf(o));
    first.registers = first.columns;
    first.registers.insert(first.registers.end(), whole_.registers.begin(), whole_.registers.end());
    const auto shifted = [&](Operand o) {
      return o.kind == OperandKind::kRegister ? Operand::Register(o.index + shift) : o;
    };
    for (size_t i = 0; i < begin_; ++i) first.code.push_back(WithOperands(at(i), shifted));
    for (size_t v = 0; v < values_.size(); ++v) {
      first.code.push_back(Load(first.columns[v], shifted(values_[v])));
      first.code.push_back(Store(first.columns[v], static_cast<int32_t>(v)));
    }
    first.code.push_back({Opcode::Emit, 0, 0, 0, 0});
    const size_t ends = first.code.size();
    for (const size_t i : moved_) first.code.push_back(at(i));
    first.code.push_back({Opcode::End, 0, 0, 0, 0});
    for (Instruction& in : first.code) {
      if (in.op != Opcode::SkipIfNone || static_cast<size_t>(in.p2) < begin_) continue;
      // Without live rows nothing happens up to the end of a loop.
      const auto next = std::lower_bound(moved_.begin(), moved_.end(), static_cast<size_t>(in.p2));
      in.p2 = static_cast<int32_t>(ends + static_cast<size_t>(next - moved_.begin()));
    }
  }

  /// The probe and the code after it, over the first part's rows.
  void MakeSecond() {
    second = whole_;
    second.source_kind = Section::Source::kSection;
    second.source = static_cast<int32_t>(number_);
    second.source_rows = 0;
    second.placement.spans.clear();
    second.predicates.clear();
    second.slots.clear();
    second.code.clear();
    if (const std::string scan = "scan "; whole_.label.starts_with(scan))
      second.label = "exchanged " + whole_.label.substr(scan.size());
    for (size_t v = 0; v < values_.size(); ++v) {
      const auto column = static_cast<int32_t>(v);
      second.slots.push_back({column, first.columns[v], -1});
      if (values_[v].kind != OperandKind::kRegister) continue;
      second.code.push_back(Load(first.columns[v], Operand::Slot(column)));
      second.code.push_back(Store(first.columns[v], values_[v].index));
    }
    const auto from_slots = [&](Operand o) {
      const auto known = columns_.find(o.Pack());
      const bool is_slot = known != columns_.end() && o.kind != OperandKind::kRegister;
      return is_slot ? Operand::Slot(known->second) : o;
    };
    std::vector<int32_t> places(whole_.code.size());
    for (size_t i = begin_; i < whole_.code.size(); ++i) {
      places[i] = static_cast<int32_t>(second.code.size());
      if (!IsMoved(i)) second.code.push_back(WithOperands(at(i), from_slots));
    }
    for (Instruction& in : second.code) {
      if (in.op == Opcode::SkipIfNone || Info(in.op).role == vm::Role::Next) in.p2 = places[static_cast<size_t>(in.p2)];
    }
  }

  const Program& program_;
  const Section& whole_;
  const size_t number_, probe_;
  size_t begin_;  // of the second part
  std::vector<size_t> moved_;
  std::map<int32_t, int32_t> columns_;  // of packed operands
  std::vector<Operand> values_;         // by column
};

/// The only place where the join is used, a probe by key; false if there are others.
bool FindProbe(const Program& program, const ProgramTraits& traits, int join, size_t* section, size_t* address) {
  const vm::JoinTraits& uses = traits.join(join);
  if (!uses.scanners.empty() || uses.probers.size() != 1) return false;
  const vm::ProbeTrait& probe = *traits.section(uses.probers[0]).Probe(join);
  *section = static_cast<size_t>(uses.probers[0]);
  *address = probe.at;
  return probe.keys > 0 && !IsPartOfRecursion(program, *section) &&
         program.sections[*section].source_kind != Section::Source::kOneRow;
}

/// All references to sections from `number` on move by one.
void MakeRoomFor(size_t number, Program* program) {
  const auto move = [&](int32_t* section) { *section += *section >= static_cast<int32_t>(number) ? 1 : 0; };
  for (Section& s : program->sections) {
    if (s.source_kind == Section::Source::kSection) move(&s.source);
    move(&s.after.append_to);
    move(&s.recursion.first);
    for (vm::Slot& slot : s.slots) move(&slot.map);
    for (vm::Predicate& p : s.predicates) move(&p.map);
  }
  for (vm::JoinSpec& j : program->joins) move(&j.section);
}

bool IsCoLocated(const Program& program, size_t join) {
  return program.sections[static_cast<size_t>(program.joins[join].section)].placement.co_located;
}

/// The rows that probe a join table are not where its rows are.
void SeparateBuilder(const ProgramTraits& traits, int join, Program* program) {
  const int32_t number = program->joins[static_cast<size_t>(join)].section;
  Section& builder = program->sections[static_cast<size_t>(number)];
  builder.placement.co_located = false;
  if (builder.placement.spans.empty()) return;
  // It will scan other tablets than those for which the tables are made that it probes.
  builder.placement.spans.clear();
  for (const vm::ProbeTrait& p : traits.section(number).probes) SeparateBuilder(traits, p.join, program);
}

/// The rows of a section have moved, and what reads its rows: they are not where those of other tables with their keys
/// are.
void SeparateBehind(const ProgramTraits& traits, size_t number, Program* program) {
  program->sections[number].placement.co_located = false;
  for (const vm::ProbeTrait& p : traits.sections[number].probes) SeparateBuilder(traits, p.join, program);
  for (size_t i = number + 1; i < program->sections.size(); ++i) {
    const Section& s = program->sections[i];
    if (s.source_kind == Section::Source::kSection && static_cast<size_t>(s.source) == number)
      SeparateBehind(traits, i, program);
  }
}

/// Makes *traits those of the changed program.
void ExchangeJoin(int join, Code* code, ProgramTraits* traits) {
  const auto j = static_cast<size_t>(join);
  size_t number = 0, probe = 0;
  if (!vm::Info(code->program->joins[j].strategy).exchanges || code->program->sections.size() == vm::kMaxSections ||
      !FindProbe(*code->program, *traits, join, &number, &probe))
    return;
  Program changed = *code->program;
  // The rows of a join table that is aligned with what probes it will have moved before they are in it.
  if (const Section& whole = changed.sections[number];
      whole.sink == Section::Sink::kJoin && !whole.placement.spans.empty())
    SeparateBuilder(*traits, whole.join, &changed);
  Cut cut(changed, number, probe, false), earlier(changed, number, probe, true);
  const bool is_cut = cut.Make();
  if (!is_cut && !earlier.Make()) return;
  Cut& made = is_cut ? cut : earlier;
  changed.sections[number] = std::move(made.second);
  // (The second part reads the first, which takes its place: that reference does not move.)
  changed.sections[number].source_kind = Section::Source::kTable;
  MakeRoomFor(number, &changed);
  changed.sections[number].source_kind = Section::Source::kSection;
  changed.sections.insert(changed.sections.begin() + static_cast<ptrdiff_t>(number), std::move(made.first));
  ProgramTraits after = vm::TraitsOf(changed);
  SeparateBehind(after, number + 1, &changed);
  changed.sections[static_cast<size_t>(changed.joins[j].section)].placement.by_key = true;
  if (!Verify(changed).ok()) return;  // an accumulator lives across the probe
  *code->program = std::move(changed);
  *traits = std::move(after);
  code->estimates.insert(code->estimates.begin() + static_cast<ptrdiff_t>(number), -1);
}

/// Rows that the section reads, as far as that is known.
double SourceRows(const Snapshot& snapshot, const Code& code, const Section& s) {
  if (s.source_kind == Section::Source::kSection) return code.estimates[static_cast<size_t>(s.source)];
  const TableInfo* const table = vm::ScannedTable(snapshot, *code.program, s);
  return table == nullptr ? -1 : static_cast<double>(table->rows);
}

/// Whether exchanging both sides is expected to be better than giving every rank the build side, which every rank
/// receives and builds whole; of both sides it receives and builds its share. What the other side's rows cost is twice
/// that: they leave the section that scans them.
bool IsBetterExchanged(const Snapshot& snapshot, const PlanOptions& options, const Code& code,
                       const ProgramTraits& traits, int join) {
  const Program& program = *code.program;
  const auto builder = static_cast<size_t>(program.joins[static_cast<size_t>(join)].section);
  const double rows = code.estimates[builder];
  const double bytes = rows * static_cast<double>(vm::BuildRowBytes(program.sections[builder]));
  if (bytes > static_cast<double>(options.broadcast_bytes)) return true;
  size_t section = 0, probe = 0;
  if (bytes < static_cast<double>(options.exchange_bytes) || !FindProbe(program, traits, join, &section, &probe))
    return false;
  const double probing = SourceRows(snapshot, code, program.sections[section]);
  return probing >= 0 && rows * (options.ranks - 1) > 2 * probing;
}

}  // namespace

void ExchangeJoins(const Snapshot& snapshot, const PlanOptions& options, Code* code) {
  if (options.ranks < 2 || options.join_exchange == ExchangeChoice::kOff) return;
  ProgramTraits traits = vm::TraitsOf(*code->program);
  std::vector<bool> tried(code->program->joins.size());
  // A join may not be co-located any more when another one was exchanged.
  for (bool again = true; std::exchange(again, false);) {
    for (size_t join = 0; join < tried.size(); ++join) {
      if (tried[join] || IsCoLocated(*code->program, join)) continue;
      tried[join] = again = true;
      const int number = static_cast<int>(join);
      if (options.join_exchange == ExchangeChoice::kOn || IsBetterExchanged(snapshot, options, *code, traits, number))
        ExchangeJoin(number, code, &traits);
    }
  }
}

}  // namespace tessera
