// Programs under construction, for the cases of the opcode walk: a section with its slots, registers and instructions.
//
// Start at: Maker.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/vm/opcode_values.h"
#include "vm/program/program.h"

namespace tessera::test::walk {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::Predicate;
using vm::Program;
using vm::Section;

/// A section under construction.
struct Maker {
  Section s;
  Maker(Section::Source kind, int source, Section::Sink sink, std::string label) {
    s.source_kind = kind;
    s.source = source;
    s.sink = sink;
    s.label = std::move(label);
  }
  int Slot(int column, const SqlType& type, int map = -1) {
    s.slots.push_back({column, type, map});
    return static_cast<int>(s.slots.size()) - 1;
  }
  int Register(const SqlType& type) {
    s.registers.push_back(type);
    return static_cast<int>(s.registers.size()) - 1;
  }
  int Mask() { return s.masks++; }
  int Filter(Predicate f) {
    s.predicates.push_back(std::move(f));
    Op(Opcode::Filter, static_cast<int>(s.predicates.size()) - 1);
    return static_cast<int>(s.predicates.size()) - 1;
  }
  int Op(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0, int32_t p4 = 0) {
    s.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, p4});
    return static_cast<int>(s.code.size()) - 1;
  }
  void Load(const SqlType& type, Operand from) {
    Op(type.storage() == StorageClass::kWide ? Opcode::LoadW : Opcode::Load, 0, from.Pack());
  }
  void Store(int reg) {
    Op(s.registers[static_cast<size_t>(reg)].storage() == StorageClass::kWide ? Opcode::StoreW : Opcode::Store, 0, reg);
  }
  /// Loads an operand into a new register.
  int Keep(const SqlType& type, Operand from) {
    const int r = Register(type);
    Load(type, from);
    Store(r);
    return r;
  }
  int Here() const { return static_cast<int>(s.code.size()); }
  /// Emit or Build the first `columns` registers, then End.
  Section Finish(Opcode sink, int columns) {
    s.columns.assign(s.registers.begin(), s.registers.begin() + columns);
    Op(sink);
    return End();
  }
  Section End() {
    Op(Opcode::End);
    for (Instruction& in : s.code) {
      if (in.op == Opcode::SkipIfNone && in.p2 == 0) in.p2 = static_cast<int32_t>(s.code.size()) - 1;
    }
    return s;
  }
};

int AddConstant(Program* p, Value v);
int AddSection(Program* p, Section s);
void AddTables(Program* p, const std::vector<TestTable>& tables);

/// The result is the columns of the last section.
void NameColumns(Program* p);

}  // namespace tessera::test::walk
