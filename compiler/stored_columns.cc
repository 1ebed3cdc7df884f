#include "compiler/stored_columns.h"

#include <algorithm>
#include <utility>

#include "vm/vm.h"

namespace tessera {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandKind;
using vm::Section;

int StoredColumns::Of(const Operand& o) const {
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

std::vector<int> StoredColumns::OfRegisters(int32_t count) const {
  std::vector<int> columns;
  for (int32_t r = 0; r < count; ++r) columns.push_back(Of(Operand::Register(r)));
  return columns;
}

std::vector<int> StoredColumns::OfKeys(const Instruction& in) const {
  std::vector<int> columns;
  const Operand first = Operand::Unpack(in.p2);
  for (int32_t k = 0; k < in.p3; ++k) columns.push_back(Of(in.p3 == 1 ? first : Operand::Register(first.index + k)));
  return columns;
}

std::vector<int> StoredColumns::OfExchangeKeys() const {
  std::vector<int> columns;
  if (section_.sink == Section::Sink::kGroups) {
    const auto group = std::ranges::find(section_.code, Opcode::Group, &Instruction::op);
    if (group != section_.code.end()) columns = OfKeys(*group);
  } else {
    for (const int32_t r : vm::ExchangeKeys(section_)) columns.push_back(Of(Operand::Register(r)));
  }
  return columns;
}

int StoredColumns::OfSlot(const vm::Slot& slot) const {
  if (slot.map >= 0) return -1;
  if (section_.source_kind == Section::Source::kTable) return slot.column;
  if (section_.source_kind != Section::Source::kSection) return -1;
  const Section& source = program_.sections[static_cast<size_t>(section_.source)];
  const StoredColumns columns(program_, source);
  const auto column = static_cast<size_t>(slot.column);
  if (column >= source.columns.size()) return -1;  // of a window
  if (source.sink == Section::Sink::kRows) return columns.Of(Operand::Register(slot.column));
  const std::vector<int> keys = columns.OfExchangeKeys();
  return column < keys.size() ? keys[column] : -1;
}

int StoredColumns::OfRegister(const Operand& o) const {
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

int StoredColumns::OfPayload(const Operand& o) const {
  const Section& builder = program_.sections[static_cast<size_t>(program_.joins[o.table].section)];
  const auto probes = [&](const Instruction& in) { return Probes(in) && in.p1 == o.table; };
  const auto probe = std::ranges::find_if(section_.code, probes);
  if (probe == section_.code.end() || probe->op != Opcode::Probe || probe->p3 != builder.keys) return -1;
  const StoredColumns built(program_, builder);
  const int column = built.Of(Operand::Register(builder.keys + o.index));
  const std::vector<int> built_keys = built.OfRegisters(builder.keys);
  const auto key = std::ranges::find(built_keys, column);
  if (column < 0 || builder.source_kind != Section::Source::kTable || key == built_keys.end()) return -1;
  return OfKeys(*probe)[static_cast<size_t>(key - built_keys.begin())];
}

std::optional<std::vector<JoinProbe>> ProbesOf(const vm::Program& program, int join) {
  std::vector<JoinProbe> probes;
  for (size_t i = 0; i < program.sections.size(); ++i) {
    const Section& s = program.sections[i];
    if (s.source_kind == Section::Source::kJoin && s.source == join) return {};
    const size_t before = probes.size();
    for (const Instruction& in : s.code) {
      if (Probes(in) && in.p1 == join) probes.push_back({i, StoredColumns(program, s).OfKeys(in)});
    }
    const auto asks = [&](const vm::Predicate& p) { return p.join == join; };
    if (probes.size() == before && std::ranges::any_of(s.predicates, asks)) return {};
  }
  return probes;
}

bool IsAppendedTo(const vm::Program& program, int32_t number) {
  return std::ranges::any_of(program.sections, [&](const Section& s) { return s.append_to == number; });
}

}  // namespace tessera
