#include "compiler/co_location.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "vm/vm.h"

namespace tessera {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandKind;
using vm::Program;
using vm::Section;

/// The distributed table that a section scans, or nullptr.
const TableInfo* DistributedSource(const Snapshot& snapshot, const Program& program, const Section& s) {
  if (s.source_kind != Section::Source::kTable) return nullptr;
  const int64_t id = program.tables[static_cast<size_t>(s.source)].id;
  for (const auto& table : snapshot.tables) {
    if (table->id == id) return table->schema.distribute_by.empty() ? nullptr : table.get();
  }
  return nullptr;
}

/// Whether another section's rows are put behind those of this one.
bool IsAppendedTo(const Program& program, int32_t number) {
  return std::ranges::any_of(program.sections, [&](const Section& s) { return s.append_to == number; });
}

/// Whether the rows that a section makes of its own stay where they are, if they do not all go to the master.
bool LeavesRows(const Program& program, int32_t number) {
  const Section& s = program.sections[static_cast<size_t>(number)];
  if (IsAppendedTo(program, number) || s.append_to >= 0 || s.by_key || s.again >= 0) return false;
  const bool alone = s.sink == Section::Sink::kRows && s.order.empty() && s.fold == Section::Fold::kNone;
  return alone || (s.co_located && s.sink != Section::Sink::kJoin);
}

/// The distributed table whose rows a section reads, or what was made of them, on the ranks of their keys; or nullptr.
/// What was made may be on the master alone.
const TableInfo* TableBehind(const Snapshot& snapshot, const Program& program, const Section& s) {
  if (s.source_kind != Section::Source::kSection) return DistributedSource(snapshot, program, s);
  if (!LeavesRows(program, s.source)) return nullptr;
  return TableBehind(snapshot, program, program.sections[static_cast<size_t>(s.source)]);
}

/// Columns of the stored table behind a section.
class Columns {
 public:
  Columns(const Program& program, const Section& section) : program_(program), section_(section) {}

  /// The one whose value an operand is in every live row; -1: none.
  int Of(const Operand& o) const {
    switch (o.kind) {
      case OperandKind::kSlot:
        return OfSlot(section_.slots[o.index]);
      case OperandKind::kRegister:
        return OfRegister(o);
      case OperandKind::kPayload:
        return OfPayload(o);
      case OperandKind::kConstant:
        break;
    }
    return -1;
  }

  /// Those of the first `count` registers.
  std::vector<int> OfRegisters(int32_t count) const {
    std::vector<int> columns;
    for (int32_t r = 0; r < count; ++r) columns.push_back(Of(Operand::Register(r)));
    return columns;
  }
  /// Those of the keys of a probe or of groups.
  std::vector<int> OfKeys(const Instruction& in) const {
    std::vector<int> columns;
    const Operand first = Operand::Unpack(in.p2);
    for (int32_t k = 0; k < in.p3; ++k) columns.push_back(Of(in.p3 == 1 ? first : Operand::Register(first.index + k)));
    return columns;
  }
  /// Those of vm::ExchangeKeys.
  std::vector<int> OfExchangeKeys() const {
    std::vector<int> columns;
    if (section_.sink == Section::Sink::kGroups) {
      const auto group = std::ranges::find(section_.code, Opcode::Group, &Instruction::op);
      if (group != section_.code.end()) columns = OfKeys(*group);
    } else {
      for (const int32_t r : vm::ExchangeKeys(section_)) columns.push_back(Of(Operand::Register(r)));
    }
    return columns;
  }

 private:
  int OfSlot(const vm::Slot& slot) const {
    if (slot.map >= 0) return -1;
    if (section_.source_kind == Section::Source::kTable) return slot.column;
    if (section_.source_kind != Section::Source::kSection) return -1;
    const Section& source = program_.sections[static_cast<size_t>(section_.source)];
    const Columns columns(program_, source);
    const auto column = static_cast<size_t>(slot.column);
    if (column >= source.columns.size()) return -1;  // of a window
    if (source.sink == Section::Sink::kRows) return columns.Of(Operand::Register(slot.column));
    const std::vector<int> keys = columns.OfExchangeKeys();
    return column < keys.size() ? keys[column] : -1;
  }

  /// What is stored there, if that is once and of an operand.
  int OfRegister(const Operand& o) const {
    int column = -1;
    bool is_first = true;
    for (size_t i = 0; i < section_.code.size(); ++i) {
      const Instruction& in = section_.code[i];
      const vm::OperandSpec to = Info(in.op).p[1];
      if ((to != vm::OperandSpec::Reg && to != vm::OperandSpec::RegW) || in.p2 != o.index) continue;
      if (!std::exchange(is_first, false) || i == 0) return -1;
      const Instruction& before = section_.code[i - 1];
      const bool loads = (in.op == Opcode::Store && before.op == Opcode::Load) ||
                         (in.op == Opcode::StoreW && before.op == Opcode::LoadW);
      const Operand from = Operand::Unpack(before.p2);
      if (!loads || from.kind == OperandKind::kRegister) return -1;
      column = Of(from);
    }
    return column;
  }

  /// A key of the join table has the value that it was probed for.
  int OfPayload(const Operand& o) const {
    const Section& builder = program_.sections[static_cast<size_t>(program_.joins[o.table].section)];
    const auto probes = [&](const Instruction& in) { return Probes(in) && in.p1 == o.table; };
    const auto probe = std::ranges::find_if(section_.code, probes);
    if (probe == section_.code.end() || probe->op != Opcode::Probe || probe->p3 != builder.keys) return -1;
    const Columns built(program_, builder);
    const int column = built.Of(Operand::Register(builder.keys + o.index));
    const std::vector<int> built_keys = built.OfRegisters(builder.keys);
    const auto key = std::ranges::find(built_keys, column);
    if (column < 0 || builder.source_kind != Section::Source::kTable || key == built_keys.end()) return -1;
    return OfKeys(*probe)[static_cast<size_t>(key - built_keys.begin())];
  }

  const Program& program_;
  const Section& section_;
};

/// Whether rows with equal values in `columns` are in one bucket.
bool Cover(const std::vector<int>& columns, const TableSchema& schema) {
  return std::ranges::all_of(schema.distribute_by,
                             [&](int c) { return std::ranges::find(columns, c) != columns.end(); });
}

/// Whether equal values have equal hashes.
bool HashAlike(const SqlType& a, const SqlType& b) {
  const auto is_whole = [](const SqlType& t) {
    return t.storage() == StorageClass::kInt || t.storage() == StorageClass::kWide;
  };
  return a.storage() == b.storage() || (is_whole(a) && is_whole(b));
}

/// Whether rows of two tables with equal keys are in buckets of the same number.
bool Meet(const std::vector<int>& a_keys, const TableSchema& a, const std::vector<int>& b_keys, const TableSchema& b) {
  if (a.distribute_by.size() != b.distribute_by.size() || a_keys.size() != b_keys.size()) return false;
  for (size_t d = 0; d < a.distribute_by.size(); ++d) {
    const int of_a = a.distribute_by[d], of_b = b.distribute_by[d];
    bool same = false;
    for (size_t k = 0; k < a_keys.size(); ++k) same = same || (a_keys[k] == of_a && b_keys[k] == of_b);
    if (!same || !HashAlike(a.columns[static_cast<size_t>(of_a)].type, b.columns[static_cast<size_t>(of_b)].type))
      return false;
  }
  return true;
}

/// Whether a section makes all rows or groups with equal keys on one rank.
bool KeepsTogether(const Snapshot& snapshot, const Program& program, const Section& s) {
  if (vm::ExchangeKeys(s).empty()) return false;
  const TableInfo* const table = TableBehind(snapshot, program, s);
  return table != nullptr && Cover(Columns(program, s).OfExchangeKeys(), table->schema);
}

/// The distributed table whose rows a section reads: it scans the table, or plain rows or groups that other sections make
/// of it. These have to stay on their ranks then: they are added to *staying.
const TableInfo* DistributedRows(const Snapshot& snapshot, const Program& program, const Section& s,
                                 std::vector<int32_t>* staying) {
  if (s.source_kind != Section::Source::kSection) return DistributedSource(snapshot, program, s);
  const Section& source = program.sections[static_cast<size_t>(s.source)];
  if (IsAppendedTo(program, s.source) || !vm::MayStayDistributed(program)[static_cast<size_t>(s.source)])
    return nullptr;
  const bool groups = source.sink == Section::Sink::kGroups && KeepsTogether(snapshot, program, source);
  if (!groups && !vm::MakesPlainRows(source)) return nullptr;
  staying->push_back(s.source);
  return DistributedRows(snapshot, program, source, staying);
}

/// Whether all that probe the join table do so with rows that are on the rank of the matching rows. `staying`: the
/// sections whose rows have to stay on their ranks for that.
bool IsCoLocated(const Snapshot& snapshot, const Program& program, int join, std::vector<int32_t>* staying) {
  const vm::JoinSpec& spec = program.joins[static_cast<size_t>(join)];
  const Section& builder = program.sections[static_cast<size_t>(spec.section)];
  const TableInfo* const built = DistributedRows(snapshot, program, builder, staying);
  if (built == nullptr || builder.keys == 0 || spec.strategy != vm::JoinStrategy::kHash) return false;
  const std::vector<int> built_keys = Columns(program, builder).OfRegisters(builder.keys);
  for (const Section& s : program.sections) {
    if (s.source_kind == Section::Source::kJoin && s.source == join) return false;
    bool probes = false;
    for (const Instruction& in : s.code) {
      if (!Probes(in) || in.p1 != join) continue;
      probes = true;
      const TableInfo* const probing = DistributedRows(snapshot, program, s, staying);
      if (probing == nullptr || !Meet(Columns(program, s).OfKeys(in), probing->schema, built_keys, built->schema))
        return false;
    }
    // (A rank knows the least and greatest key of its own rows only.)
    const auto asks = [&](const vm::Predicate& p) { return p.join == join; };
    if (!probes && std::ranges::any_of(s.predicates, asks)) return false;
  }
  return true;
}

}  // namespace

void CoLocate(const Snapshot& snapshot, Code* code) {
  Program& program = *code->program;
  for (size_t j = 0; j < program.joins.size(); ++j) {
    std::vector<int32_t> staying;
    if (!IsCoLocated(snapshot, program, static_cast<int>(j), &staying)) continue;
    program.sections[static_cast<size_t>(program.joins[j].section)].co_located = true;
    for (const int32_t s : staying) program.sections[static_cast<size_t>(s)].co_located = true;
  }
  for (Section& s : program.sections) {  // (those before the ones that read their rows)
    if (s.sink != Section::Sink::kJoin && KeepsTogether(snapshot, program, s)) s.co_located = true;
  }
}

}  // namespace tessera
