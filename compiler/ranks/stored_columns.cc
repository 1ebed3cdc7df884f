#include "compiler/ranks/stored_columns.h"

#include <algorithm>

#include "vm/program/distribution.h"
#include "vm/program/program.h"

namespace tessera {

using vm::Operand;
using vm::OperandKind;
using vm::Section;

int StoredColumns::Of(const Operand& o) const {
  switch (o.kind) {
    case OperandKind::kSlot:
      return OfSlot(section_.slots[o.index]);
    case OperandKind::kRegister:
      return own_.copies[o.index] ? Of(own_.copies[o.index]->of) : -1;
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

std::vector<int> StoredColumns::OfKeys(const Operand& first, int32_t keys) const {
  std::vector<int> columns;
  for (int32_t k = 0; k < keys; ++k) columns.push_back(Of(keys == 1 ? first : Operand::Register(first.index + k)));
  return columns;
}

std::vector<int> StoredColumns::OfExchangeKeys() const {
  std::vector<int> columns;
  if (section_.sink == Section::Sink::kGroups) {
    if (own_.feed == vm::kNoInstruction) return columns;
    const vm::Instruction& group = section_.code[own_.feed];
    if (group.op == vm::Opcode::Group) columns = OfKeys(Operand::Unpack(group.p2), group.p3);
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
  const StoredColumns columns(program_, traits_, source);
  const auto column = static_cast<size_t>(slot.column);
  if (column >= source.columns.size()) return -1;  // of a window
  if (source.sink == Section::Sink::kRows) return columns.Of(Operand::Register(slot.column));
  const std::vector<int> keys = columns.OfExchangeKeys();
  return column < keys.size() ? keys[column] : -1;
}

int StoredColumns::OfPayload(const Operand& o) const {
  const Section& builder = program_.sections[static_cast<size_t>(program_.joins[o.table].section)];
  const vm::ProbeTrait* const probe = own_.Probe(o.table);
  if (probe == nullptr || vm::IsOuter(probe->form) || probe->keys != builder.keys) return -1;
  const StoredColumns built(program_, traits_, builder);
  const int column = built.Of(Operand::Register(builder.keys + o.index));
  const std::vector<int> built_keys = built.OfRegisters(builder.keys);
  const auto key = std::ranges::find(built_keys, column);
  if (column < 0 || builder.source_kind != Section::Source::kTable || key == built_keys.end()) return -1;
  return OfKeys(probe->key, probe->keys)[static_cast<size_t>(key - built_keys.begin())];
}

std::optional<std::vector<JoinProbe>> ProbesOf(const vm::Program& program, const vm::ProgramTraits& traits, int join) {
  if (!traits.join(join).scanners.empty()) return {};
  std::vector<JoinProbe> probes;
  for (size_t i = 0; i < program.sections.size(); ++i) {
    const Section& s = program.sections[i];
    const auto asks = [&](const vm::Predicate& p) { return p.join == join; };
    if (const vm::ProbeTrait* const probe = traits.sections[i].Probe(join); probe != nullptr) {
      probes.push_back({i, StoredColumns(program, traits, s).OfKeys(probe->key, probe->keys)});
    } else if (std::ranges::any_of(s.predicates, asks)) {
      return {};
    }
  }
  return probes;
}

bool IsAppendedTo(const vm::Program& program, int32_t number) {
  return std::ranges::any_of(program.sections, [&](const Section& s) { return s.after.append_to == number; });
}

}  // namespace tessera
