#include "compiler/generate/copy_sections.h"

#include <algorithm>
#include <cstddef>

namespace tessera {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandKind;
using vm::Section;

/// The column of the source that each column of the section copies; empty if it does anything else.
std::vector<int32_t> CopiedColumns(const Section& s) {
  if (s.source_kind != Section::Source::kSection || s.sink != Section::Sink::kRows || !s.after.order.empty() ||
      s.after.limit >= 0 || s.after.offset > 0 || s.after.append_to >= 0 || s.recursion.first >= 0 ||
      s.after.repeat >= 0 || s.after.fold.kind != Section::Fold::kNone || !s.after.windows.empty() ||
      s.code.size() != 2 * s.columns.size() + 2)
    return {};
  std::vector<int32_t> columns(s.columns.size(), -1);
  for (size_t i = 0; i < s.columns.size(); ++i) {
    const Instruction &load = s.code[2 * i], &store = s.code[2 * i + 1];
    const bool wide = load.op == Opcode::LoadW && store.op == Opcode::StoreW;
    const Operand from = Operand::Unpack(load.p2);
    if ((!wide && (load.op != Opcode::Load || store.op != Opcode::Store)) || from.kind != OperandKind::kSlot ||
        store.p2 < 0 || static_cast<size_t>(store.p2) >= columns.size())
      return {};
    columns[static_cast<size_t>(store.p2)] = s.slots[from.index].column;
  }
  const bool emits = s.code[s.code.size() - 2].op == Opcode::Emit;
  const bool all = std::find(columns.begin(), columns.end(), -1) == columns.end();
  return emits && all ? columns : std::vector<int32_t>{};
}

/// Makes the readers of section `number` read its source.
void ReadSource(vm::Program* program, int32_t number, const std::vector<int32_t>& columns) {
  for (Section& reader : program->sections) {
    if (reader.source_kind != Section::Source::kSection || reader.source != number) continue;
    reader.source = program->sections[static_cast<size_t>(number)].source;
    for (vm::Slot& slot : reader.slots) slot.column = columns[static_cast<size_t>(slot.column)];
  }
}

void Erase(vm::Program* program, int32_t number) {
  program->sections.erase(program->sections.begin() + number);
  const auto move_up = [&](int32_t* section) {
    if (*section > number) --*section;
  };
  for (vm::JoinSpec& join : program->joins) move_up(&join.section);
  for (Section& s : program->sections) {
    if (s.source_kind == Section::Source::kSection) move_up(&s.source);
    move_up(&s.after.append_to);
    move_up(&s.recursion.first);
    for (vm::Slot& slot : s.slots) move_up(&slot.map);
    for (vm::Predicate& predicate : s.predicates) move_up(&predicate.map);
  }
}

}  // namespace

void RemoveCopies(vm::Program* program, std::vector<double>* estimates, PlanSections* of_plan) {
  // (The last section's rows are the result.)
  for (int32_t i = static_cast<int32_t>(program->sections.size()) - 2; i >= 0; --i) {
    const std::vector<int32_t> columns = CopiedColumns(program->sections[static_cast<size_t>(i)]);
    const bool appended_to = std::any_of(program->sections.begin(), program->sections.end(), [&](const Section& s) {
      return s.after.append_to == i || s.recursion.first == i;
    });
    if (columns.empty() || appended_to) continue;
    const int32_t source = program->sections[static_cast<size_t>(i)].source;
    of_plan->ForEach([&](int* section) { *section = *section == i ? source : *section > i ? *section - 1 : *section; });
    ReadSource(program, i, columns);
    Erase(program, i);
    estimates->erase(estimates->begin() + i);
  }
}

}  // namespace tessera
