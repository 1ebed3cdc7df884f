// Random programs, and tables of about the size of the largest tablet.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/vm/opcode_cases.h"

namespace tessera::test::walk {

using vm::AccumulatorSpec;
using vm::Info;
using vm::Opcode;
using vm::OpcodeInfo;
using vm::Operand;
using vm::Program;
using vm::Section;
using vm::Shape;
using vm::Tier;

/// Blocks of a few instructions that narrow, save and widen the mask and change registers under it. Each begins with a
/// load, so that no accumulator is read that a masked-off row left unspecified.
void Walk::RandomPrograms() {
  std::vector<Opcode> by_class[4][2];  // class -> binary, unary; class -> comparisons in filters[]
  std::vector<Opcode> filters[4];
  auto index = [](AccumulatorSpec c) {
    return c == AccumulatorSpec::F ? 1 : c == AccumulatorSpec::W ? 2 : c == AccumulatorSpec::T ? 3 : 0;
  };
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    const OpcodeInfo& info = Info(static_cast<Opcode>(i));
    if (info.tier == Tier::Host && gpu_ != nullptr) continue;
    if (info.in == AccumulatorSpec::X || info.in == AccumulatorSpec::None) continue;
    if (info.shape == Shape::Binary || info.shape == Shape::TextConcat)
      by_class[index(info.in)][0].push_back(static_cast<Opcode>(i));
    if (info.shape == Shape::TextUnary || (info.shape == Shape::Unary && info.in == info.out))
      by_class[index(info.in)][1].push_back(static_cast<Opcode>(i));
    if (info.shape == Shape::Compare || info.shape == Shape::TextCompare)
      filters[index(info.in)].push_back(static_cast<Opcode>(i));
  }
  const SqlType types[4] = {kBigint, kDouble, kWide, kText};
  for (int i = 0; i < 250; ++i) {
    const std::string name = fmt::format("random #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    std::vector<int> columns;
    for (int c = 0; c < 8; ++c)
      columns.push_back(AddColumn(&tables[0], {types[c / 2], Pick(random_, FormsOf(types[c / 2])), nullptr, 40}, rows));
    AddTables(&p, tables);
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    std::vector<Operand> operands[4];
    std::vector<int> registers[4];
    for (int c = 0; c < 8; ++c) {
      const Operand slot = Operand::Slot(m.Slot(columns[static_cast<size_t>(c)], types[c / 2]));
      operands[c / 2].push_back(slot);
      const int r = m.Keep(types[c / 2], slot);
      registers[c / 2].push_back(r);
      operands[c / 2].push_back(Operand::Register(r));
    }
    for (int c = 0; c < 4; ++c) {
      for (int k = 0; k < 3; ++k)
        operands[c].push_back(
            Operand::Constant(AddConstant(&p, k == 2 ? Value::Null(types[c]) : RandomConstant(types[c], nullptr))));
    }
    std::vector<int> masks;
    const int everything = m.Mask();
    m.Op(Opcode::MaskSave, everything);
    masks.push_back(everything);
    const size_t blocks = 3 + Below(random_, 14);
    int concats = 0;
    for (size_t b = 0; b < blocks; ++b) {
      const size_t c = Below(random_, 4);
      switch (Below(random_, 10)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4: {
          const int skip = Below(random_, 4) == 0 ? m.Op(Opcode::SkipIfNone, 0, 1) : -1;
          m.Load(types[c], Pick(random_, operands[c]));
          for (size_t k = Below(random_, 4); k-- > 0;) {
            const bool binary = Below(random_, 3) != 0 || by_class[c][1].empty();
            if (by_class[c][binary ? 0 : 1].empty()) continue;
            const Opcode op = Pick(random_, by_class[c][binary ? 0 : 1]);
            if (op == Opcode::ConcatT && ++concats > 3) continue;  // lengths double
            m.Op(op, 0, binary ? Pick(random_, operands[c]).Pack() : 0);
          }
          m.Store(Pick(random_, registers[c]));
          if (skip >= 0) m.s.code[static_cast<size_t>(skip)].p2 = m.Here();
          break;
        }
        case 5:
        case 6: {
          m.Load(types[c], Pick(random_, operands[c]));
          if (filters[c].empty() || Below(random_, 4) == 0) {
            m.Op(c == 2 ? Opcode::FilterNotNullW : Opcode::FilterNotNull);
          } else {
            m.Op(Pick(random_, filters[c]), 0, Pick(random_, operands[c]).Pack());
          }
          break;
        }
        case 7:
          if (masks.size() < 8) masks.push_back(m.Mask());
          m.Op(Opcode::MaskSave, masks.back());
          break;
        case 8:
          m.Op(Below(random_, 2) == 0 ? Opcode::MaskOr : Opcode::MaskAndNot, Pick(random_, masks));
          break;
        default:
          m.Op(Opcode::MaskLoad, Pick(random_, masks));
          break;
      }
    }
    m.Op(Opcode::MaskLoad, Below(random_, 3) == 0 ? masks.back() : everything);
    AddSection(&p, m.Finish(Opcode::Emit, static_cast<int>(m.s.registers.size())));
    NameColumns(&p);
    CheckOptions check;
    check.masked = true;
    Check(name, std::move(p), std::move(tables), check);
  }
}

/// Around the greatest tablet: the last row of one, the first of the next.
void Walk::Large() {
  if (options_.greatest_rows <= size_t{1} << 20) return;
  for (size_t rows : {(size_t{1} << 20) - 1, size_t{1} << 20, (size_t{1} << 20) + 1}) {
    for (int i = 0; i < 4; ++i) {
      const std::string name = fmt::format("large {} #{}", rows, i);
      if (!Wanted(name)) continue;
      Program p;
      std::vector<TestTable> tables = {MaskedTable(rows)};
      tables[0].tablet_rows = 1u << 20;
      Form f = FrameForm(i % 2 == 0 ? 4 : 2, i >= 2);
      f.chunk.base = f.low = -1000;
      f.high = 60000;
      const int a = AddColumn(&tables[0], {kBigint, f}, rows);
      AddTables(&p, tables);
      const int32_t constant = Operand::Constant(AddConstant(&p, Value::Int(kBigint, 59000))).Pack();
      if (i < 2) {
        Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
        Head(&m, &p);
        m.Load(kBigint, Operand::Slot(m.Slot(a, kBigint)));
        m.Op(i == 0 ? Opcode::FilterGeI : Opcode::FilterLtI, 0, constant);
        m.Op(Opcode::MulIX, 0, constant);
        m.Store(m.Register(kBigint));
        AddSection(&p, m.Finish(Opcode::Emit, 2));
      } else {
        Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
        Head(&m, &p);
        m.Load(kBigint, Operand::Slot(m.Slot(a, kBigint)));
        m.Op(Opcode::ModI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 7))).Pack());
        m.Store(m.Register(kBigint));
        m.s.keys = i == 2 ? 0 : 1;
        m.Op(Opcode::Group, 0, i == 2 ? 0 : Operand::Register(1).Pack(), m.s.keys);
        m.Op(Opcode::CountRows, 0);
        m.Load(kBigint, Operand::Slot(2));
        m.Op(Opcode::SumI, 1);
        m.Op(Opcode::MaxI, 2);
        m.s.aggregates = {{Opcode::CountRows, kBigint}, {Opcode::SumI, kWide}, {Opcode::MaxI, kBigint}};
        m.s.columns = {kBigint, kWide, kBigint};
        if (i == 3) m.s.columns.insert(m.s.columns.begin(), kBigint);
        const std::vector<SqlType> columns = m.s.columns;
        const int groups = AddSection(&p, m.End());
        Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
        for (size_t c = 0; c < columns.size(); ++c)
          out.Keep(columns[c], Operand::Slot(out.Slot(static_cast<int>(c), columns[c])));
        AddSection(&p, out.Finish(Opcode::Emit, static_cast<int>(columns.size())));
      }
      NameColumns(&p);
      CheckOptions check;
      check.masked = i < 2;
      Check(name, std::move(p), std::move(tables), check);
    }
  }
}

}  // namespace tessera::test::walk
