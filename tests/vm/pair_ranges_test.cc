// Ranges against values: whatever TryRanges says of two pieces must be true of every pair of their rows.
//
// Three ways, from small to large: each opcode's rule against the meaning of the opcode, over values at the edges;
// random steps with masks and registers against a machine of one row; SQL predicates through the compiler against the
// VM itself, which evaluates them for every pair of rows of two tables, so that the answer for any pair of pieces is
// known.
//
// An answer of kSome is never wrong, so the tests also say where kNone and kAll are expected.
#include "vm/encode/pair_ranges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "base/status.h"
#include "compiler/compiler.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/memory_tablet.h"
#include "vm/meaning/meaning.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/rows/row_set.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace tessera::vm {

void PrintTo(Coverage s, std::ostream* out) {
  *out << (s == Coverage::kNone ? "kNone" : s == Coverage::kAll ? "kAll" : "kSome");
}

}  // namespace tessera::vm

namespace tessera::test {
namespace {

using vm::Coverage;
using vm::Instruction;
using vm::KnownRange;
using vm::Opcode;
using vm::Operand;
using vm::RangeProgram;
using vm::RangeSource;
using vm::RangeStep;
using vm::RowColumn;
using vm::Section;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kTwo53 = int64_t{1} << 53;

// ---- Columns and steps ----------------------------------------------------------------------------------------------

/// A value of a row: bits, or NULL.
struct Cell {
  int64_t bits = 0;
  bool null = false;
};
Cell Int(int64_t v) { return {v, false}; }
Cell Float(double v) { return {std::bit_cast<int64_t>(v), false}; }
const Cell kNull = {0, true};

RowColumn Column(SqlType type, const std::vector<Cell>& cells) {
  RowColumn c;
  c.type = type;
  for (const Cell& cell : cells) {
    c.low.push_back(cell.bits);
    if (cell.null) c.null.resize(cells.size());
    if (cell.null) c.null[c.low.size() - 1] = 1;
  }
  return c;
}
KnownRange RangeOf(bool floats, const std::vector<Cell>& cells) {
  const RowColumn c = Column(SqlType::Of(floats ? TypeId::kDouble : TypeId::kBigint), cells);
  return RangeOfColumn(c, 0, cells.size());
}
KnownRange Ints(int64_t low, int64_t high) { return RangeOf(false, {Int(low), Int(high)}); }
KnownRange Floats(double low, double high) { return RangeOf(true, {Float(low), Float(high)}); }
KnownRange OrNull(KnownRange r) {
  r.may_be_null = true;
  return r;
}
const KnownRange kOnlyNull = vm::range::NoValue(true), kNoRow = vm::range::NoValue(false);

RangeStep Step(Opcode op, RangeSource source = RangeSource::kNothing, int index = 0) {
  RangeStep s;
  s.op = static_cast<uint16_t>(op);
  s.source = source;
  s.index = static_cast<uint16_t>(index);
  return s;
}
RangeStep WithConstant(Opcode op, const KnownRange& constant) {
  RangeStep s = Step(op, RangeSource::kConstant);
  s.constant = constant;
  return s;
}
RangeStep Load(const KnownRange& r) { return WithConstant(Opcode::Load, r); }
RangeStep Skip(int target) {
  RangeStep s = Step(Opcode::SkipIfNone);
  s.target = static_cast<uint16_t>(target);
  return s;
}
Coverage Try(const std::vector<RangeStep>& steps) {
  return TryRanges(steps.data(), static_cast<int>(steps.size()), nullptr, nullptr);
}
/// a op b for ranges.
Coverage Ask(const KnownRange& a, Opcode op, const KnownRange& b) { return Try({Load(a), WithConstant(op, b)}); }
Coverage Ask(const KnownRange& a, Opcode op) { return Try({Load(a), Step(op)}); }

// ---- What each rule says at its edges -------------------------------------------------------------------------------

TEST(PairRanges, NothingIsKnownWithoutSteps) { EXPECT_EQ(Try({}), Coverage::kSome); }

TEST(PairRanges, ComparisonsOfIntegers) {
  EXPECT_EQ(Ask(Ints(1, 4), Opcode::FilterLtI, Ints(5, 9)), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(1, 5), Opcode::FilterLtI, Ints(5, 9)), Coverage::kSome);
  EXPECT_EQ(Ask(Ints(9, 12), Opcode::FilterLtI, Ints(5, 9)), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(1, 5), Opcode::FilterLeI, Ints(5, 9)), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(9, 12), Opcode::FilterLeI, Ints(5, 9)), Coverage::kSome);
  EXPECT_EQ(Ask(Ints(10, 12), Opcode::FilterLeI, Ints(5, 9)), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(10, 12), Opcode::FilterGtI, Ints(5, 9)), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(1, 5), Opcode::FilterGtI, Ints(5, 9)), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(9, 12), Opcode::FilterGeI, Ints(5, 9)), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(1, 4), Opcode::FilterGeI, Ints(5, 9)), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(7, 7), Opcode::FilterEqI, Ints(7, 7)), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(7, 7), Opcode::FilterEqI, Ints(7, 8)), Coverage::kSome);
  EXPECT_EQ(Ask(Ints(1, 4), Opcode::FilterEqI, Ints(5, 9)), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(1, 4), Opcode::FilterNeI, Ints(5, 9)), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(7, 7), Opcode::FilterNeI, Ints(7, 7)), Coverage::kNone);
  EXPECT_EQ(Ask(vm::range::Unknown(false), Opcode::FilterLtI, Ints(5, 9)), Coverage::kSome);
}

TEST(PairRanges, IntegersThatAreNoDoubles) {
  // 2^53 + 1 lies between two doubles.
  const KnownRange between = Ints(kTwo53 + 1, kTwo53 + 1);
  EXPECT_EQ(between.low, static_cast<double>(kTwo53));
  EXPECT_EQ(between.high, static_cast<double>(kTwo53 + 2));
  EXPECT_EQ(Ask(between, Opcode::FilterEqI, between), Coverage::kSome);
  EXPECT_EQ(Ask(between, Opcode::FilterGtI, Ints(kTwo53, kTwo53)), Coverage::kSome);
  EXPECT_EQ(Ask(between, Opcode::FilterGtI, Ints(0, kTwo53 - 1)), Coverage::kAll);
  EXPECT_EQ(Ask(between, Opcode::FilterLtI, Ints(kTwo53, kTwo53)), Coverage::kNone);
  const KnownRange least = Ints(vm::kInt64Min, vm::kInt64Min), greatest = Ints(vm::kInt64Max, vm::kInt64Max);
  EXPECT_EQ(least.low, least.high);
  EXPECT_EQ(greatest.low, 9223372036854774784.0);
  EXPECT_EQ(greatest.high, 9223372036854775808.0);
  EXPECT_EQ(Ask(least, Opcode::FilterLtI, greatest), Coverage::kAll);
  EXPECT_EQ(Ints(-kTwo53 - 1, -kTwo53 - 1).low, static_cast<double>(-kTwo53 - 2));
  EXPECT_EQ(Ints(-kTwo53 - 1, -kTwo53 - 1).high, static_cast<double>(-kTwo53));
}

TEST(PairRanges, NullsKeepAllFromBeingSaid) {
  EXPECT_EQ(Ask(OrNull(Ints(1, 4)), Opcode::FilterLtI, Ints(5, 9)), Coverage::kSome);
  EXPECT_EQ(Ask(Ints(1, 4), Opcode::FilterNeI, OrNull(Ints(5, 9))), Coverage::kSome);
  EXPECT_EQ(Ask(OrNull(Ints(9, 9)), Opcode::FilterLtI, Ints(5, 9)), Coverage::kNone);
  for (Opcode op : {Opcode::FilterEqI, Opcode::FilterNeI, Opcode::FilterLtF, Opcode::FilterGeF}) {
    EXPECT_EQ(Ask(kOnlyNull, op, Ints(5, 9)), Coverage::kNone);
    EXPECT_EQ(Ask(Ints(5, 9), op, kOnlyNull), Coverage::kNone);
    EXPECT_EQ(Ask(vm::range::Unknown(), op, kOnlyNull), Coverage::kNone);
    EXPECT_EQ(Ask(kNoRow, op, Ints(5, 9)), Coverage::kNone);
  }
  EXPECT_EQ(Ask(kOnlyNull, Opcode::FilterNull), Coverage::kAll);
  EXPECT_EQ(Ask(kOnlyNull, Opcode::FilterNotNull), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(1, 2), Opcode::FilterNull), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(1, 2), Opcode::FilterNotNull), Coverage::kAll);
  EXPECT_EQ(Ask(OrNull(Ints(1, 2)), Opcode::FilterNull), Coverage::kSome);
  EXPECT_EQ(Ask(OrNull(Ints(1, 2)), Opcode::FilterNotNull), Coverage::kSome);
  EXPECT_EQ(Ask(vm::range::Unknown(false), Opcode::FilterNull), Coverage::kNone);
  EXPECT_EQ(Ask(vm::range::Unknown(), Opcode::FilterNotNull), Coverage::kSome);
}

TEST(PairRanges, TruthOfIntegers) {
  EXPECT_EQ(Ask(Ints(1, 1), Opcode::FilterTrue), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(-3, -1), Opcode::FilterTrue), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(0, 1), Opcode::FilterTrue), Coverage::kSome);
  EXPECT_EQ(Ask(OrNull(Ints(0, 0)), Opcode::FilterTrue), Coverage::kNone);
  EXPECT_EQ(Ask(Ints(0, 0), Opcode::FilterFalse), Coverage::kAll);
  EXPECT_EQ(Ask(OrNull(Ints(0, 0)), Opcode::FilterFalse), Coverage::kSome);
  EXPECT_EQ(Ask(Ints(1, 5), Opcode::FilterFalse), Coverage::kNone);
  EXPECT_EQ(Ask(kOnlyNull, Opcode::FilterFalse), Coverage::kNone);
}

TEST(PairRanges, ComparisonsOfFloats) {
  EXPECT_EQ(Ask(Floats(-0.0, -0.0), Opcode::FilterEqF, Floats(0.0, 0.0)), Coverage::kAll);
  EXPECT_EQ(Ask(Floats(-0.0, 0.0), Opcode::FilterLtF, Floats(0.0, 0.0)), Coverage::kNone);
  EXPECT_EQ(Ask(Floats(1, kInf), Opcode::FilterLeF, Floats(kInf, kInf)), Coverage::kAll);
  EXPECT_EQ(Ask(Floats(-kInf, 1), Opcode::FilterGtF, Floats(2, 3)), Coverage::kNone);
  // NaN is the greatest value, which no range says.
  const KnownRange with_nan = RangeOf(true, {Float(1), Float(kNan)});
  EXPECT_TRUE(with_nan.unknown);
  EXPECT_FALSE(with_nan.may_be_null);
  EXPECT_EQ(Ask(with_nan, Opcode::FilterLtF, Floats(5, 9)), Coverage::kSome);
  EXPECT_EQ(Ask(with_nan, Opcode::FilterNotNull), Coverage::kAll);
}

TEST(PairRanges, ArithmeticOnInfinitiesIsUnknown) {
  for (Opcode op : {Opcode::AddF, Opcode::SubF, Opcode::RSubF, Opcode::MulF, Opcode::DivF}) {
    EXPECT_EQ(Try({Load(Floats(0, kInf)), WithConstant(op, Floats(1, 2)),
                   WithConstant(Opcode::FilterGeF, Floats(-1e300, -1e300))}),
              Coverage::kSome)
        << Info(op).name;
  }
  // An infinite result of finite operands is what the machine has, too.
  EXPECT_EQ(Try({Load(Floats(1e308, 1e308)), WithConstant(Opcode::MulF, Floats(10, 10)),
                 WithConstant(Opcode::FilterEqF, Floats(kInf, kInf))}),
            Coverage::kAll);
  EXPECT_EQ(Try({Load(Floats(1, 2)), WithConstant(Opcode::DivF, Floats(-1, 1)), Step(Opcode::FilterNotNull)}),
            Coverage::kSome);
}

TEST(PairRanges, WhatCanFailKeepsAllFromBeingSaid) {
  const KnownRange wide = Ints(0, vm::kInt64Max), narrow = Ints(0, 100);
  for (Opcode op : {Opcode::AddIX, Opcode::SubIX, Opcode::RSubIX, Opcode::MulIX}) {
    EXPECT_EQ(Try({Load(narrow), WithConstant(op, narrow)}), Coverage::kAll) << Info(op).name;
    EXPECT_EQ(Try({Load(wide), WithConstant(op, Ints(-100, 100))}), Coverage::kSome) << Info(op).name;
    EXPECT_EQ(Try({Load(kOnlyNull), WithConstant(op, Ints(-100, 100))}), Coverage::kAll) << Info(op).name;
    // Nothing is live.
    EXPECT_EQ(Try({Load(wide), WithConstant(Opcode::FilterLtI, Ints(-1, -1)), WithConstant(op, wide)}), Coverage::kNone)
        << Info(op).name;
  }
  EXPECT_EQ(Ask(Ints(-5, 5), Opcode::AbsI), Coverage::kAll);
  EXPECT_EQ(Ask(Ints(vm::kInt64Min, 5), Opcode::AbsI), Coverage::kSome);
  RangeStep check = Step(Opcode::CheckI);
  check.constant = {-10, 10, false, false};
  EXPECT_EQ(Try({Load(Ints(-10, 10)), check}), Coverage::kAll);
  EXPECT_EQ(Try({Load(Ints(-10, 11)), check}), Coverage::kSome);
  EXPECT_EQ(Try({Load(Floats(1, 2)), Step(Opcode::FToI)}), Coverage::kSome);
  // What was done before the loop is done anyway.
  EXPECT_EQ(Try({Load(Ints(-10, 11)), check, Step(Opcode::Probe)}), Coverage::kAll);
  EXPECT_EQ(Try({Load(Ints(0, 1)), Step(Opcode::FilterTrue), Step(Opcode::Probe)}), Coverage::kAll);
  EXPECT_EQ(Try({Load(Ints(0, 0)), Step(Opcode::FilterTrue), Step(Opcode::Probe)}), Coverage::kNone);
}

TEST(PairRanges, OpcodesWithoutARule) {
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    const auto op = static_cast<Opcode>(i);
    const vm::OpcodeInfo& info = Info(op);
    SCOPED_TRACE(info.name);
    // Nothing but a mask register brings dead rows back to life.
    const std::vector<RangeStep> dead = {Load(Ints(0, 0)), Step(Opcode::FilterTrue), Step(op, RangeSource::kUnknown)};
    if (op != Opcode::MaskLoad) {
      EXPECT_EQ(TryRanges(dead.data(), op == Opcode::SkipIfNone ? 2 : 3, nullptr, nullptr), Coverage::kNone);
    }
    // A filter of unknown values keeps some.
    if (info.role == vm::Role::Filter) {
      EXPECT_EQ(Try({Load(vm::range::Unknown()), Step(op, RangeSource::kUnknown)}), Coverage::kSome);
    }
  }
}

TEST(PairRanges, Masks) {
  const RangeStep all = WithConstant(Opcode::FilterLtI, Ints(5, 9)), none = WithConstant(Opcode::FilterGtI, Ints(5, 9)),
                  some = WithConstant(Opcode::FilterLtI, Ints(2, 2)), a = Load(Ints(1, 4));
  auto mask = [](Opcode op, int m) { return Step(op, RangeSource::kNothing, m); };
  auto either = [&](const RangeStep& x, const RangeStep& y) {
    return Try({mask(Opcode::MaskSave, 0), mask(Opcode::MaskClear, 1), a, x, mask(Opcode::MaskOr, 1),
                mask(Opcode::MaskLoad, 0), mask(Opcode::MaskAndNot, 1), a, y, mask(Opcode::MaskOr, 1),
                mask(Opcode::MaskLoad, 1)});
  };
  EXPECT_EQ(either(none, none), Coverage::kNone);
  EXPECT_EQ(either(none, all), Coverage::kAll);
  EXPECT_EQ(either(all, none), Coverage::kAll);
  EXPECT_EQ(either(all, all), Coverage::kAll);
  EXPECT_EQ(either(some, none), Coverage::kSome);
  EXPECT_EQ(either(none, some), Coverage::kSome);
  EXPECT_EQ(Try({mask(Opcode::MaskClear, 1), mask(Opcode::MaskOr, 1), a, some, mask(Opcode::MaskOr, 1),
                 mask(Opcode::MaskLoad, 1)}),
            Coverage::kAll);
  // A mask register of before may hold anything.
  EXPECT_EQ(Try({mask(Opcode::MaskLoad, 3)}), Coverage::kSome);
  EXPECT_EQ(Try({mask(Opcode::MaskOr, 3), mask(Opcode::MaskLoad, 3)}), Coverage::kAll);
  EXPECT_EQ(Try({a, none, Skip(4), mask(Opcode::MaskLoad, 3)}), Coverage::kNone);
  EXPECT_EQ(Try({a, some, Skip(4), mask(Opcode::MaskLoad, 3)}), Coverage::kSome);
  // Rows that come back to life have another accumulator.
  EXPECT_EQ(Try({mask(Opcode::MaskSave, 0), a, some, a, mask(Opcode::MaskLoad, 0), all}), Coverage::kSome);
}

TEST(PairRanges, Registers) {
  auto store = [](int r) { return Step(Opcode::Store, RangeSource::kNothing, r); };
  auto load = [](int r) { return Step(Opcode::Load, RangeSource::kRegister, r); };
  auto mask = [](Opcode op, int m) { return Step(op, RangeSource::kNothing, m); };
  const RangeStep below10 = WithConstant(Opcode::FilterLtI, Ints(10, 10)),
                  below3 = WithConstant(Opcode::FilterLtI, Ints(3, 3));
  EXPECT_EQ(Try({load(0), below10}), Coverage::kSome);  // what it held before
  EXPECT_EQ(Try({Load(Ints(1, 4)), store(0), load(0), below10}), Coverage::kAll);
  // Stored for some rows: known for those, and for the others as it was before.
  const std::vector<RangeStep> partly = {
      Load(Ints(1, 4)), store(0), mask(Opcode::MaskSave, 0), below3, Load(Ints(7, 8)), store(0), load(0)};
  auto then = [&](std::vector<RangeStep> more) {
    std::vector<RangeStep> steps = partly;
    steps.insert(steps.end(), more.begin(), more.end());
    return Try(steps);
  };
  EXPECT_EQ(then({WithConstant(Opcode::FilterLtI, Ints(7, 7))}), Coverage::kNone);
  EXPECT_EQ(then({mask(Opcode::MaskLoad, 0), load(0), WithConstant(Opcode::FilterLtI, Ints(7, 7))}), Coverage::kSome);
  EXPECT_EQ(then({mask(Opcode::MaskLoad, 0), load(0), WithConstant(Opcode::FilterLtI, Ints(9, 9))}), Coverage::kAll);
  EXPECT_EQ(then({mask(Opcode::MaskLoad, 0), load(0), WithConstant(Opcode::FilterLtI, Ints(1, 1))}), Coverage::kNone);
  // Nothing is live: nothing is stored.
  EXPECT_EQ(Try({Load(Ints(1, 4)), store(0), mask(Opcode::MaskSave, 0), WithConstant(Opcode::FilterGtI, Ints(9, 9)),
                 Load(Ints(50, 50)), store(0), mask(Opcode::MaskLoad, 0), load(0), below10}),
            Coverage::kAll);
}

TEST(PairRanges, RangeOfColumn) {
  const RowColumn c = Column(SqlType::Of(TypeId::kInteger), {Int(5), kNull, Int(-3), Int(9), kNull, kNull});
  KnownRange r = RangeOfColumn(c, 0, 6);
  EXPECT_EQ(r.low, -3);
  EXPECT_EQ(r.high, 9);
  EXPECT_TRUE(r.may_be_null);
  EXPECT_FALSE(r.unknown);
  r = RangeOfColumn(c, 2, 2);
  EXPECT_FALSE(r.may_be_null);
  r = RangeOfColumn(c, 4, 2);
  EXPECT_TRUE(vm::range::HasNoValue(r) && r.may_be_null);
  r = RangeOfColumn(c, 3, 0);
  EXPECT_TRUE(vm::range::HasNoValue(r) && !r.may_be_null);
  EXPECT_TRUE(RangeOfColumn(Column(SqlType::Text(), {Int(5)}), 0, 1).unknown);
  EXPECT_FALSE(RangeOfColumn(Column(SqlType::Text(), {Int(5)}), 0, 1).may_be_null);
  EXPECT_TRUE(RangeOfColumn(Column(SqlType::Decimal(30, 2), {Int(5)}), 0, 1).unknown);
  EXPECT_EQ(RangeOfColumn(Column(SqlType::Of(TypeId::kReal), {Float(-kInf), Float(2)}), 0, 2).low, -kInf);
}

// ---- From code to steps ---------------------------------------------------------------------------------------------

/// A section over table r (columns c0, c1 BIGINT, c2 DOUBLE PRECISION) that multiplies it with t0 (two BIGINT columns);
/// t1 has a key. Its code is given from the start; registers r0 .. are BIGINT, r0 is emitted.
class Code {
 public:
  explicit Code(int masks = 4) {
    const SqlType bigint = SqlType::Of(TypeId::kBigint);
    program_.tables = {{1, "r"}, {2, "s"}};
    for (int join = 0; join < 2; ++join) {
      Section b;
      b.source_kind = Section::Source::kTable;
      b.source = 1;
      b.sink = Section::Sink::kJoin;
      b.join = join;
      b.keys = join;
      for (int c = 0; c < 2; ++c) {
        b.slots.push_back({c, bigint, -1});
        b.registers.push_back(bigint);
        b.columns.push_back(bigint);
        b.code.push_back({Opcode::Load, 0, Operand::Slot(c).Pack(), 0, 0});
        b.code.push_back({Opcode::Store, 0, c, 0, 0});
      }
      b.code.push_back({Opcode::Build, 0, 0, 0, 0});
      b.code.push_back({Opcode::End, 0, 0, 0, 0});
      program_.sections.push_back(b);
      program_.joins.push_back({false, join, vm::JoinStrategy::kHash, -1});
    }
    section_.source_kind = Section::Source::kTable;
    section_.slots = {{0, bigint, -1}, {1, bigint, -1}, {2, SqlType::Of(TypeId::kDouble), -1}};
    section_.registers.assign(20, bigint);
    section_.columns = {bigint};
    section_.masks = masks;
  }
  Code& Op(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0) {
    section_.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, 0});
    return *this;
  }
  Code& Op(Opcode op, Operand o) { return Op(op, 0, o.Pack()); }
  /// The loop's begin: Probe and MaskSave in m0.
  Code& Loop() {
    Op(Opcode::Probe, 0, 0, 0).Op(Opcode::MaskSave, 0);
    body_ = Next();
    return *this;
  }
  Code& CloseLoop() { return Op(Opcode::Next, 0, body_, 0); }
  /// Emits column c0.
  Code& Emit() { return Op(Opcode::Load, kC0).Op(Opcode::Store, 0, 0).Op(Opcode::Emit); }
  int Next() const { return static_cast<int>(section_.code.size()); }
  Operand Constant(Value v) {
    program_.constants.push_back(std::move(v));
    return Operand::Constant(static_cast<int>(program_.constants.size()) - 1);
  }
  Operand Constant(int64_t v) { return Constant(Value::Int(SqlType::Of(TypeId::kBigint), v)); }
  int Predicate(const vm::Predicate& p) {
    section_.predicates.push_back(p);
    return static_cast<int>(section_.predicates.size()) - 1;
  }

  RangeProgram Make() {
    vm::Program p = program_;
    p.sections.push_back(section_);
    p.sections.back().code.push_back({Opcode::End, 0, 0, 0, 0});
    p.columns = {{"c", SqlType::Of(TypeId::kBigint)}};
    const Status status = Verify(p);
    EXPECT_TRUE(status.ok()) << status.message();
    return MakeRangeProgram(p, 2, TraitsOf(p, p.sections[2]), 0);
  }
  /// What is said where c0 has the range `outer`, t0.0 `inner`, all else is unknown.
  Coverage Ask(const KnownRange& outer, const KnownRange& inner) {
    const RangeProgram p = Make();
    const KnownRange o[3] = {outer, {}, {}}, i[2] = {inner, {}};
    return TryRanges(p.steps.data(), static_cast<int>(p.steps.size()), o, i);
  }

  static constexpr Operand kC0 = Operand::Slot(0), kC1 = Operand::Slot(1), kT0 = Operand::Payload(0, 0),
                           kT1 = Operand::Payload(0, 1);

 private:
  vm::Program program_;
  Section section_;
  int body_ = 0;
};

const KnownRange kLow = Ints(1, 4), kHigh = Ints(5, 9);

/// Keeps the pairs with c0 < t0.0.
Code& Less(Code& c) { return c.Op(Opcode::Load, Code::kC0).Op(Opcode::FilterLtI, Code::kT0); }

TEST(RangePrograms, OneComparison) {
  Code c;
  Less(c.Loop()).Emit().CloseLoop();
  EXPECT_EQ(c.Make().all_from, 4);
  EXPECT_FALSE(c.Make().filtered_before);
  EXPECT_EQ(c.Ask(kLow, kHigh), Coverage::kAll);
  EXPECT_EQ(c.Ask(kHigh, kLow), Coverage::kNone);
  EXPECT_EQ(c.Ask(kLow, kLow), Coverage::kSome);
}

TEST(RangePrograms, NoFilterAtAll) {
  Code c;
  c.Loop().Emit().CloseLoop();
  EXPECT_EQ(c.Make().all_from, 2);
  EXPECT_EQ(c.Ask({}, {}), Coverage::kAll);
}

TEST(RangePrograms, FiltersBeforeTheLoop) {
  Code c;
  c.Op(Opcode::Load, Code::kC0).Op(Opcode::FilterGtI, c.Constant(2)).Op(Opcode::SkipIfNone, 0, 10);
  Less(c.Loop()).Emit().CloseLoop().Op(Opcode::SkipIfNone, 0, 12);
  EXPECT_TRUE(c.Make().filtered_before);
  EXPECT_EQ(c.Ask(Ints(1, 2), kHigh), Coverage::kNone);
  EXPECT_EQ(c.Ask(Ints(1, 3), kHigh), Coverage::kAll);  // of those that get to the loop
}

TEST(RangePrograms, AnotherTableIsLookedUp) {
  Code c;
  Less(c.Loop()).Op(Opcode::Probe, 1, Code::kC1.Pack(), 1).Emit().CloseLoop();
  EXPECT_EQ(c.Ask(kLow, kHigh), Coverage::kSome);
  EXPECT_EQ(c.Ask(kHigh, kLow), Coverage::kNone);
  EXPECT_EQ(c.Make().all_from, -1);
  // ... whose values are not known, but those of the table are not its own.
  Code d;
  d.Loop()
      .Op(Opcode::Probe, 1, Code::kC1.Pack(), 1)
      .Op(Opcode::Load, Code::kC0)
      .Op(Opcode::FilterLtI, Operand::Payload(1, 0))
      .Emit()
      .CloseLoop();
  EXPECT_EQ(d.Ask(kHigh, kLow), Coverage::kSome);
}

TEST(RangePrograms, RowsThatComeBackBehindTheSink) {
  Code before, behind;
  Less(before.Loop().Op(Opcode::MaskSave, 1)).Emit().Op(Opcode::MaskLoad, 1).Emit().CloseLoop();
  EXPECT_EQ(before.Ask(kHigh, kLow), Coverage::kSome);
  EXPECT_EQ(before.Ask(kLow, kHigh), Coverage::kSome);
  Less(behind.Loop())
      .Op(Opcode::MaskSave, 1)
      .Emit()
      .Op(Opcode::MaskClear, 2)
      .Op(Opcode::MaskLoad, 1)
      .Emit()
      .CloseLoop();
  EXPECT_EQ(behind.Ask(kHigh, kLow), Coverage::kNone);
  Code neither;  // none comes back, but some have got there
  Less(neither.Loop().Op(Opcode::MaskClear, 1)).Emit().Op(Opcode::MaskLoad, 1).Emit().CloseLoop();
  EXPECT_EQ(neither.Ask(kLow, kHigh), Coverage::kSome);
  EXPECT_EQ(neither.Ask(kHigh, kLow), Coverage::kNone);
  // The loop's own mask, but not for the next turn.
  Code loop;
  Less(loop.Loop()).Emit().Op(Opcode::MaskLoad, 0).Emit().CloseLoop();
  EXPECT_EQ(loop.Ask(kHigh, kLow), Coverage::kSome);
}

TEST(RangePrograms, OtherFormsHaveNoSteps) {
  Code without;
  without.Emit();
  EXPECT_TRUE(without.Make().steps.empty());
  Code after;
  Less(after.Op(Opcode::MaskSave, 1).Loop()).Emit().CloseLoop().Op(Opcode::MaskLoad, 1).Emit();
  EXPECT_TRUE(after.Make().steps.empty());
  Code behind;  // an anti join
  Less(behind.Op(Opcode::MaskClear, 1).Loop()).Op(Opcode::MaskOr, 1).Emit().CloseLoop().Op(Opcode::MaskLoad, 1).Emit();
  EXPECT_TRUE(behind.Make().steps.empty());
  Code once;
  Less(once.Op(Opcode::Probe, 0, 0, 0)).Emit();
  EXPECT_TRUE(once.Make().steps.empty());
  Code keyed;
  Less(keyed.Op(Opcode::Probe, 1, Code::kC1.Pack(), 1).Loop()).Emit().CloseLoop();
  EXPECT_TRUE(keyed.Make().steps.empty());
  Code outer;
  Less(outer.Op(Opcode::ProbeOuter, 0, 0, 0).Op(Opcode::MaskSave, 0)).Emit().Op(Opcode::NextOuter, 0, 2, 0);
  EXPECT_TRUE(outer.Make().steps.empty());
  // Masks of before the loop, or of another turn.
  Code old;
  old.Op(Opcode::MaskSave, 1);
  Less(old.Loop()).Op(Opcode::MaskLoad, 1).Emit().CloseLoop();
  EXPECT_TRUE(old.Make().steps.empty());
  Code collects;
  Less(collects.Op(Opcode::MaskClear, 1).Loop()).Op(Opcode::MaskOr, 1).Emit().CloseLoop();
  EXPECT_TRUE(collects.Make().steps.empty());
}

TEST(RangePrograms, MoreRegistersAndMasksThanAreFollowed) {
  for (int count : {vm::kRangeRegisters, vm::kRangeRegisters + 1}) {
    Code c;
    c.Loop();
    for (int r = 1; r <= count; ++r) c.Op(Opcode::Load, Code::kC0).Op(Opcode::Store, 0, r);
    c.Op(Opcode::Load, Operand::Register(count)).Op(Opcode::FilterLtI, Code::kT0).Emit().CloseLoop();
    EXPECT_EQ(c.Ask(kHigh, kLow), count == vm::kRangeRegisters ? Coverage::kNone : Coverage::kSome);
  }
  for (int count : {vm::kRangeMasks, vm::kRangeMasks + 1}) {
    Code c(count);
    c.Loop();
    for (int m = 1; m < count; ++m) c.Op(Opcode::MaskSave, m);
    Less(c).Emit().CloseLoop();
    EXPECT_EQ(c.Make().steps.empty(), count > vm::kRangeMasks);
    EXPECT_EQ(c.Ask(kHigh, kLow), count == vm::kRangeMasks ? Coverage::kNone : Coverage::kSome);
  }
}

TEST(RangePrograms, WhereATurnMayBegin) {
  auto from = [](auto make) {
    Code c;
    c.Loop();
    make(c);
    c.CloseLoop();
    return c.Make().all_from;
  };
  const Operand r5 = Operand::Register(5);
  auto scratch = [&](Code& c) -> Code& {  // c0 < t0.0 with t0.0 in r5
    return c.Op(Opcode::Load, Code::kT0).Op(Opcode::Store, 0, 5).Op(Opcode::Load, Code::kC0).Op(Opcode::FilterLtI, r5);
  };
  EXPECT_EQ(from([&](Code& c) { scratch(c).Emit(); }), 6);
  EXPECT_EQ(from([&](Code& c) { scratch(c).Op(Opcode::Load, r5).Op(Opcode::Store, 0, 0).Op(Opcode::Emit); }), -1);
  // r0 is emitted.
  EXPECT_EQ(from([&](Code& c) { Less(c.Op(Opcode::Load, Code::kC0).Op(Opcode::Store, 0, 0)).Op(Opcode::Emit); }), -1);
  // Stored anew, for all rows of the turn or for some.
  EXPECT_EQ(from([&](Code& c) {
              scratch(c)
                  .Op(Opcode::Load, Code::kT0)
                  .Op(Opcode::Store, 0, 5)
                  .Op(Opcode::Load, r5)
                  .Op(Opcode::Store, 0, 0)
                  .Op(Opcode::Emit);
            }),
            6);
  EXPECT_EQ(from([&](Code& c) {
              scratch(c)
                  .Emit()
                  .Op(Opcode::MaskSave, 1)
                  .Op(Opcode::Load, Code::kC1)
                  .Op(Opcode::FilterNotNull)
                  .Op(Opcode::Store, 0, 5);
              c.Op(Opcode::MaskLoad, 1).Op(Opcode::Load, r5).Op(Opcode::Store, 0, 0).Op(Opcode::Emit);
            }),
            -1);
  // Read before it is stored: that of an earlier turn.
  EXPECT_EQ(from([&](Code& c) { scratch(Less(c.Op(Opcode::Load, r5)).Op(Opcode::FilterGtI, r5)).Emit(); }), -1);
  // The accumulator.
  EXPECT_EQ(from([](Code& c) { Less(c).Op(Opcode::Store, 0, 0).Op(Opcode::Emit); }), -1);
  // An OR whose masks are not read after it, and one whose masks are.
  auto either = [](Code& c) -> Code& {
    Less(c.Op(Opcode::MaskSave, 1).Op(Opcode::MaskClear, 2))
        .Op(Opcode::MaskOr, 2)
        .Op(Opcode::MaskLoad, 1)
        .Op(Opcode::MaskAndNot, 2);
    return c.Op(Opcode::Load, Code::kC1).Op(Opcode::FilterLtI, Code::kT1).Op(Opcode::MaskOr, 2).Op(Opcode::MaskLoad, 2);
  };
  EXPECT_EQ(from([&](Code& c) { either(c).Emit(); }), 13);
  EXPECT_EQ(from([&](Code& c) { either(c).Emit().Op(Opcode::MaskLoad, 2).Emit(); }), -1);
  EXPECT_EQ(from([&](Code& c) { either(c).Emit().Op(Opcode::MaskSave, 2).Op(Opcode::MaskLoad, 2).Emit(); }), 13);
  EXPECT_EQ(from([&](Code& c) { Less(c.Op(Opcode::MaskClear, 0)).Emit(); }), -1);  // what Next restores
}

TEST(RangePrograms, ConditionsOnEncodedColumns) {
  auto ask = [](bool floats, std::optional<double> low, bool low_inclusive, std::optional<double> high,
                bool high_inclusive, bool negated, KnownRange range) {
    Code c;
    vm::Predicate p;
    p.slot = floats ? 2 : 0;
    p.negated = negated;
    p.low_inclusive = low_inclusive;
    p.high_inclusive = high_inclusive;
    auto constant = [&](double v) {
      return static_cast<int32_t>(
          (floats ? c.Constant(Value::Float(SqlType::Of(TypeId::kDouble), v)) : c.Constant(static_cast<int64_t>(v)))
              .index);
    };
    if (low) p.low = constant(*low);
    if (high) p.high = constant(*high);
    const int number = c.Predicate(p);
    c.Loop().Op(Opcode::Filter, number).Emit().CloseLoop();
    const RangeProgram steps = c.Make();
    const KnownRange o[3] = {range, {}, range};
    return TryRanges(steps.steps.data(), static_cast<int>(steps.steps.size()), o, nullptr);
  };
  EXPECT_EQ(ask(false, 5, false, {}, true, false, Ints(4, 5)), Coverage::kNone);
  EXPECT_EQ(ask(false, 5, false, {}, true, false, Ints(5, 6)), Coverage::kSome);
  EXPECT_EQ(ask(false, 5, false, {}, true, false, Ints(6, 9)), Coverage::kAll);
  EXPECT_EQ(ask(false, 5, true, 7, false, false, Ints(5, 6)), Coverage::kAll);
  EXPECT_EQ(ask(false, 5, true, 7, false, false, Ints(7, 9)), Coverage::kNone);
  EXPECT_EQ(ask(false, 5, true, 7, true, false, OrNull(Ints(5, 6))), Coverage::kSome);
  EXPECT_EQ(ask(false, 5, true, 7, true, true, Ints(5, 6)), Coverage::kSome);
  EXPECT_EQ(ask(false, {}, true, 0x1p53, true, false, Ints(0, 1)), Coverage::kSome);  // not told
  EXPECT_EQ(ask(true, 0.0, false, {}, true, false, Floats(-1, -0.0)), Coverage::kNone);
  EXPECT_EQ(ask(true, -0.0, true, {}, true, false, Floats(0, 1)), Coverage::kAll);
  EXPECT_EQ(ask(true, 0.0, true, {}, true, false, Floats(-0.0, 1)), Coverage::kAll);
  EXPECT_EQ(ask(true, {}, true, 0.0, false, false, Floats(-0.0, 1)), Coverage::kNone);
  EXPECT_EQ(ask(true, {}, true, 0.0, false, false, Floats(-2, -5e-324)), Coverage::kAll);
  EXPECT_EQ(ask(true, {}, true, kNan, true, false, Floats(1, 2)), Coverage::kSome);
}

TEST(RangePrograms, ConstantsThatAreNaN) {
  Code c;
  c.Loop()
      .Op(Opcode::Load, Operand::Slot(2))
      .Op(Opcode::FilterLtF, c.Constant(Value::Float(SqlType::Of(TypeId::kDouble), kNan)))
      .Emit()
      .CloseLoop();
  const RangeProgram p = c.Make();
  const KnownRange o[3] = {{}, {}, Floats(1, 2)};
  EXPECT_EQ(TryRanges(p.steps.data(), static_cast<int>(p.steps.size()), o, nullptr), Coverage::kSome);
}

// ---- Rules against meanings -----------------------------------------------------------------------------------------

struct Operation {
  Opcode op;
  bool in_float, out_float;
  std::function<int64_t(int64_t, int64_t, vm::Lane&)> apply;
};

template <class M>
Operation Binary(Opcode op) {
  using T = typename M::Type;
  const bool floats = std::is_same_v<T, double>;
  return {op, floats, floats, [](int64_t a, int64_t b, vm::Lane& lane) {
            return std::bit_cast<int64_t>(M::Apply(std::bit_cast<T>(a), std::bit_cast<T>(b), lane));
          }};
}
template <class M>
Operation Unary(Opcode op) {
  using I = typename M::In;
  using O = typename M::Out;
  return {op, std::is_same_v<I, double>, std::is_same_v<O, double>, [](int64_t a, int64_t, vm::Lane& lane) {
            return std::bit_cast<int64_t>(M::Apply(std::bit_cast<I>(a), lane));
          }};
}

const std::vector<Operation>& Operations() {
  static const std::vector<Operation> operations = {
#define BINARY(Name) Binary<vm::meaning::Name>(Opcode::Name)
#define UNARY(Name) Unary<vm::meaning::Name>(Opcode::Name)
      BINARY(AddI),  BINARY(SubI),  BINARY(RSubI), BINARY(MulI),      BINARY(AddIX),     BINARY(SubIX), BINARY(RSubIX),
      BINARY(MulIX), BINARY(DivI),  BINARY(ModI),  BINARY(DivRoundI), BINARY(FloorDivI), BINARY(AddF),  BINARY(SubF),
      BINARY(RSubF), BINARY(MulF),  BINARY(DivF),  BINARY(ModF),      UNARY(AbsI),       UNARY(NegF),   UNARY(AbsF),
      UNARY(RoundF), UNARY(FloorF), UNARY(CeilF),  UNARY(SingleF),    UNARY(CanonF),     UNARY(IToF),   UNARY(FToI),
#undef BINARY
#undef UNARY
  };
  return operations;
}

bool Compared(int comparison, bool floats, int64_t a, int64_t b) {
  const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
  switch (comparison) {
    case 0:
      return floats ? vm::FloatEqual(x, y) : a == b;
    case 1:
      return floats ? !vm::FloatEqual(x, y) : a != b;
    case 2:
      return floats ? vm::FloatLess(x, y) : a < b;
    case 3:
      return floats ? !vm::FloatLess(y, x) : a <= b;
    case 4:
      return floats ? vm::FloatLess(y, x) : a > b;
    default:
      return floats ? !vm::FloatLess(x, y) : a >= b;
  }
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t Below(size_t n) { return engine_() % n; }
  bool Chance(int percent) { return Below(100) < static_cast<size_t>(percent); }
  template <class T>
  const T& Pick(const std::vector<T>& v) {
    return v[Below(v.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// A few values, close together or at the edges, perhaps with NULL.
std::vector<Cell> Some(Random* random, bool floats) {
  static const std::vector<int64_t> ints = {0,
                                            1,
                                            -1,
                                            2,
                                            3,
                                            -7,
                                            100,
                                            int64_t{1} << 31,
                                            -(int64_t{1} << 31),
                                            3037000499,
                                            3037000500,
                                            kTwo53 - 1,
                                            kTwo53,
                                            kTwo53 + 1,
                                            kTwo53 + 2,
                                            kTwo53 + 3,
                                            -kTwo53,
                                            -kTwo53 - 1,
                                            int64_t{1} << 62,
                                            -(int64_t{1} << 62),
                                            vm::kInt64Max - 1024,
                                            vm::kInt64Max - 1,
                                            vm::kInt64Max,
                                            vm::kInt64Min,
                                            vm::kInt64Min + 1};
  static const std::vector<double> doubles = {0.0,
                                              -0.0,
                                              1.0,
                                              -1.0,
                                              0.1,
                                              1.5,
                                              -2.5,
                                              3.0,
                                              5e-324,
                                              -5e-324,
                                              2.2250738585072014e-308,
                                              1e-200,
                                              16777217.0,
                                              1e38,
                                              3.5e38,
                                              9007199254740993.0,
                                              1e200,
                                              -1e200,
                                              1.7976931348623157e308,
                                              kInf,
                                              -kInf,
                                              kNan};
  std::vector<Cell> cells;
  const size_t count = 1 + random->Below(4);
  const int64_t base = random->Pick(ints);
  const double near = static_cast<double>(random->Below(2000)) / 8 - 100;
  const bool close = random->Chance(50);
  for (size_t i = 0; i < count; ++i) {
    if (random->Chance(6)) {
      cells.push_back(kNull);
    } else if (floats) {
      cells.push_back(Float(close ? near + static_cast<double>(random->Below(5)) * 0.3 : random->Pick(doubles)));
    } else {
      const auto step = static_cast<int64_t>(random->Below(4));
      cells.push_back(
          Int(close ? vm::WrapAdd(random->Chance(50) ? base : static_cast<int64_t>(near), step) : random->Pick(ints)));
    }
  }
  return cells;
}

/// `answer` against what happened to all pairs.
void Judge(Coverage answer, size_t live, size_t failed, size_t all, const std::string& what) {
  const bool right = answer == Coverage::kNone ? live == 0 : answer == Coverage::kSome || (live == all && failed == 0);
  EXPECT_TRUE(right) << testing::PrintToString(answer) << ", but " << live << " of " << all << " are live: " << what;
}

std::string Shown(const std::vector<Cell>& cells, bool floats) {
  std::string out = "{";
  for (const Cell& c : cells) {
    out += c.null ? " NULL" : floats ? fmt::format(" {}", std::bit_cast<double>(c.bits)) : fmt::format(" {}", c.bits);
  }
  return out + " }";
}

TEST(PairRanges, ArithmeticAgainstItsMeaning) {
  Random random(1);
  std::map<Opcode, size_t> told;
  for (const Operation& o : Operations()) {
    for (int round = 0; round < 3000; ++round) {
      const std::vector<Cell> as = Some(&random, o.in_float), bs = Some(&random, o.in_float);
      const std::vector<Cell> cs = Some(&random, o.out_float);
      // The results, and one value to compare them with: one of them, or another.
      struct Result {
        Cell cell;
        bool failed;
      };
      std::vector<Result> results;
      for (const Cell& a : as) {
        for (const Cell& b : bs) {
          vm::Lane lane;
          const int64_t v = o.apply(a.bits, b.bits, lane);
          const bool unary = Info(o.op).shape == vm::Shape::Unary;
          const bool null = a.null || (!unary && b.null);
          results.push_back({{v, null || lane.null}, !null && lane.error != vm::LaneError::kNone});
        }
      }
      Cell c = random.Chance(70) ? results[random.Below(results.size())].cell : cs[0];
      if (!o.out_float && random.Chance(30)) c.bits = vm::WrapAdd(c.bits, random.Chance(50) ? 1 : -1);
      const KnownRange ra = RangeOf(o.in_float, as), rb = RangeOf(o.in_float, bs), rc = RangeOf(o.out_float, {c});
      for (int comparison = 0; comparison < 6; ++comparison) {
        const Opcode filter =
            static_cast<Opcode>(static_cast<int>(o.out_float ? Opcode::FilterEqF : Opcode::FilterEqI) + comparison);
        const Coverage answer = Try({Load(ra), WithConstant(o.op, rb), WithConstant(filter, rc)});
        size_t live = 0, failed = 0;
        for (const Result& r : results) {
          failed += r.failed ? 1 : 0;
          live +=
              !r.failed && !r.cell.null && !c.null && Compared(comparison, o.out_float, r.cell.bits, c.bits) ? 1 : 0;
        }
        told[o.op] += answer != Coverage::kSome ? 1 : 0;
        Judge(answer, live, failed, results.size(),
              fmt::format("{} of {} and {}, comparison {} with {}", Info(o.op).name, Shown(as, o.in_float),
                          Shown(bs, o.in_float), comparison, Shown({c}, o.out_float)));
        if (HasFailure()) return;
      }
      const Coverage null = Try({Load(ra), WithConstant(o.op, rb), Step(Opcode::FilterNull)});
      size_t nulls = 0, failed = 0;
      for (const Result& r : results) nulls += r.cell.null ? 1 : 0, failed += r.failed ? 1 : 0;
      Judge(null, nulls, failed, results.size(), fmt::format("{} is null", Info(o.op).name));
      if (HasFailure()) return;
    }
  }
  for (Opcode op : {Opcode::AddI, Opcode::SubI, Opcode::RSubI, Opcode::MulI, Opcode::AddIX, Opcode::MulIX, Opcode::AddF,
                    Opcode::SubF, Opcode::RSubF, Opcode::MulF, Opcode::DivF, Opcode::AbsI, Opcode::AbsF, Opcode::NegF,
                    Opcode::SingleF, Opcode::CanonF, Opcode::IToF}) {
    EXPECT_GT(told[op], 2000u) << Info(op).name << " is never told";
  }
}

// ---- Masks and registers against a machine of one row ---------------------------------------------------------------

/// Runs steps for one pair of rows. What a dead row holds is garbage.
bool RunRow(const std::vector<RangeStep>& steps, const std::vector<std::vector<Cell>>& columns,
            const std::vector<size_t>& row, Random* random) {
  bool live = true;
  std::vector<bool> saved(vm::kRangeMasks);
  for (size_t m = 0; m < saved.size(); ++m) saved[m] = random->Chance(50);
  std::vector<Cell> registers(vm::kRangeRegisters);
  auto garbage = [&] { return Cell{static_cast<int64_t>(random->Below(60)) - 20, random->Chance(20)}; };
  for (Cell& r : registers) r = garbage();
  Cell a = garbage();
  for (const RangeStep& s : steps) {
    Cell operand = s.source == RangeSource::kOuter      ? columns[s.index][row[s.index]]
                   : s.source == RangeSource::kRegister ? registers[s.index]
                                                        : Cell{static_cast<int64_t>(s.constant.low), false};
    const auto op = static_cast<Opcode>(s.op);
    const size_t i = s.index;
    switch (op) {
      case Opcode::MaskSave:
        saved[i] = live;
        break;
      case Opcode::MaskLoad:
        live = saved[i];
        break;
      case Opcode::MaskClear:
        saved[i] = false;
        break;
      case Opcode::MaskOr:
        saved[i] = saved[i] || live;
        break;
      case Opcode::MaskAndNot:
        live = live && !saved[i];
        break;
      case Opcode::Load:
        a = live ? operand : garbage();
        break;
      case Opcode::Store:
        if (live) registers[i] = a;
        break;
      case Opcode::AddI:
        a = live ? Cell{a.bits + operand.bits, a.null || operand.null} : garbage();
        break;
      case Opcode::FilterNull:
        live = live && a.null;
        break;
      case Opcode::FilterNotNull:
        live = live && !a.null;
        break;
      default:
        live = live && !a.null && !operand.null &&
               Compared(s.op - static_cast<int>(Opcode::FilterEqI), false, a.bits, operand.bits);
    }
  }
  return live;
}

TEST(PairRanges, RandomStepsAgainstOneRow) {
  Random random(2);
  size_t none = 0, all = 0;
  const std::vector<Opcode> ops = {Opcode::MaskSave,      Opcode::MaskLoad,  Opcode::MaskClear, Opcode::MaskOr,
                                   Opcode::MaskAndNot,    Opcode::Load,      Opcode::Load,      Opcode::Load,
                                   Opcode::Store,         Opcode::Store,     Opcode::AddI,      Opcode::FilterNull,
                                   Opcode::FilterNotNull, Opcode::FilterEqI, Opcode::FilterNeI, Opcode::FilterLtI,
                                   Opcode::FilterLeI,     Opcode::FilterGtI, Opcode::FilterGeI};
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::vector<Cell>> columns(3);
    std::vector<KnownRange> ranges;
    for (std::vector<Cell>& c : columns) {
      const auto base = static_cast<int64_t>(random.Below(12));
      for (size_t i = 0; i < 3; ++i)
        c.push_back(random.Chance(5) ? kNull : Int(base + static_cast<int64_t>(random.Below(3))));
      ranges.push_back(RangeOf(false, c));
    }
    std::vector<RangeStep> steps;
    const size_t count = 4 + random.Below(20);
    while (steps.size() < count) {
      RangeStep s = Step(random.Pick(ops));
      const auto op = static_cast<Opcode>(s.op);
      const vm::OpcodeInfo& info = Info(op);
      if (info.p[1] == vm::OperandSpec::Src) {
        const size_t kind = random.Below(3);
        s.source = kind == 0 ? RangeSource::kOuter : kind == 1 ? RangeSource::kRegister : RangeSource::kConstant;
        s.index = static_cast<uint16_t>(random.Below(kind == 1 ? 2 : 3));
        const auto constant = static_cast<int64_t>(random.Below(16));
        if (kind == 2) s.constant = Ints(constant, constant);
      } else {
        s.index = static_cast<uint16_t>(random.Below(2));
      }
      steps.push_back(s);
    }
    const Coverage answer = TryRanges(steps.data(), static_cast<int>(steps.size()), ranges.data(), nullptr);
    if (answer == Coverage::kSome) continue;
    size_t live = 0, rows = 0;
    for (int turn = 0; turn < 4; ++turn) {  // other garbage each time
      for (size_t i = 0; i < 27; ++i, ++rows)
        live += RunRow(steps, columns, {i % 3, i / 3 % 3, i / 9}, &random) ? 1 : 0;
    }
    (answer == Coverage::kNone ? none : all) += 1;
    std::string listing;
    for (const RangeStep& s : steps)
      listing += fmt::format("{} source {} index {} {}\n", Info(static_cast<Opcode>(s.op)).name,
                             static_cast<int>(s.source), s.index, s.constant.low);
    for (const std::vector<Cell>& c : columns) listing += Shown(c, false);
    Judge(answer, live, 0, rows, listing);
    if (HasFailure()) return;
  }
  EXPECT_GT(none, 2000u);
  EXPECT_GT(all, 200u);
}

// ---- SQL ------------------------------------------------------------------------------------------------------------

/// Tables r and s of the same columns: id, the number of the row; a, k ascending, x ascending in steps; the others in
/// no order.
///   id INTEGER, a INTEGER, b BIGINT, c BIGINT (near 2^53 and the ends), d DECIMAL(12,2), e DECIMAL(10,1), f DOUBLE
///   (with NaN, infinities, -0.0), g DOUBLE ascending, h REAL, n INTEGER with NULLs, t TEXT, day DATE, w DECIMAL(30,2)
constexpr const char* kNames[] = {"id", "a", "b", "c", "d", "e", "f", "g", "h", "n", "t", "day", "w"};

std::vector<MemoryColumn> MakeColumns(size_t rows, uint64_t seed) {
  Random random(seed);
  const SqlType types[] = {SqlType::Of(TypeId::kInteger),
                           SqlType::Of(TypeId::kInteger),
                           SqlType::Of(TypeId::kBigint),
                           SqlType::Of(TypeId::kBigint),
                           SqlType::Decimal(12, 2),
                           SqlType::Decimal(10, 1),
                           SqlType::Of(TypeId::kDouble),
                           SqlType::Of(TypeId::kDouble),
                           SqlType::Of(TypeId::kReal),
                           SqlType::Of(TypeId::kInteger),
                           SqlType::Text(),
                           SqlType::Of(TypeId::kDate),
                           SqlType::Decimal(30, 2)};
  std::vector<MemoryColumn> columns;
  for (size_t c = 0; c < std::size(types); ++c) {
    const SqlType type = types[c];
    const std::string name = kNames[c];
    ColumnVector v;
    v.type = type;
    for (size_t i = 0; i < rows; ++i) {
      const auto row = static_cast<int64_t>(i), small = static_cast<int64_t>(random.Below(200));
      const double g = static_cast<double>(row) * 1.25 + static_cast<double>(random.Below(10)) / 16;
      Value value = Value::Int(type, small - 50);
      if (name == "id") value = Value::Int(type, row);
      if (name == "a") value = Value::Int(type, row + static_cast<int64_t>(random.Below(3)));
      if (name == "c") {
        const int64_t near[] = {kTwo53, -kTwo53, vm::kInt64Max - 200, vm::kInt64Min, 0};
        value = Value::Int(type, near[i / 8 % 5] + small % 7);
      }
      if (name == "d") value = Value::Int(type, row * 100 + small);
      if (name == "f")
        value = Value::Float(type, i % 16 == 5   ? kNan
                                   : i % 16 == 9 ? (i % 32 == 9 ? kInf : -kInf)
                                   : i % 7 == 0  ? -0.0
                                                 : g - 40);
      if (name == "g") value = Value::Float(type, g);
      if (name == "h") value = Value::Float(type, static_cast<double>(static_cast<float>(g / 3)));
      if (name == "n") value = i / 8 % 4 == 1 || random.Chance(10) ? Value::Null(type) : Value::Int(type, row);
      if (name == "t") value = Value::Text(fmt::format("{}", small % 5));
      if (name == "day") value = Value::Int(type, 9000 + row);
      if (name == "w") value = Value::Wide(type, static_cast<int128_t>(row) * 100 + small);
      v.Append(value);
    }
    ChunkForm form;
    if (type.id == TypeId::kText) form.encoding = Encoding::kDictionary, form.width = 1;
    if (type.storage() == StorageClass::kWide) form.width = 16;
    columns.push_back({name, std::move(v), {form}});
  }
  return columns;
}

RowColumn ToRowColumn(const ColumnVector& v) {
  RowColumn c;
  c.type = v.type;
  const size_t rows = RowsOf(v);
  c.low = v.fixed;
  c.low.resize(rows);
  c.null = v.null;
  return c;
}

/// The theta-join of r and s in all forms that the test needs.
class Product {
 public:
  static constexpr size_t kRows[2] = {160, 120};

  Product() {
    for (size_t t = 0; t < 2; ++t) {
      columns_[t] = MakeColumns(kRows[t], 17 + t);
      Result<std::shared_ptr<const TableInfo>> table =
          MakeMemoryTable(static_cast<int64_t>(t) + 1, t == 0 ? "r" : "s", columns_[t], 1000);
      EXPECT_TRUE(table.ok());
      tables_.push_back(*table);
    }
    snapshot_ = MakeSnapshot(tables_);
  }

  /// False if `condition` gives no nested-loop join over ranges; the pairs of rows are those of the section's source
  /// and join table.
  bool Set(const std::string& condition) {
    SCOPED_TRACE(condition);
    const std::string sql = "SELECT r.id, s.id, r.a * 2 + s.a FROM r, s WHERE " + condition;
    Result<Compiled> compiled = Compile(sql, *snapshot_);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    if (!compiled.ok()) return false;
    program_ = std::move(compiled->program);
    join_ = -1;
    for (size_t s = 0; s < program_->sections.size(); ++s) {
      for (const Instruction& in : program_->sections[s].code) {
        if (in.op == Opcode::Probe && in.p3 == 0) section_ = static_cast<int>(s), join_ = in.p1;
      }
    }
    if (join_ < 0) return false;
    const Section& section = program_->sections[static_cast<size_t>(section_)];
    steps_ = MakeRangeProgram(*program_, section_, TraitsOf(*program_, section), join_);
    // The rows of both sides.
    const bool swapped = program_->tables[static_cast<size_t>(section.source)].name == "s";
    const std::vector<MemoryColumn>& source = columns_[swapped ? 1 : 0];
    outer_.clear();
    for (const MemoryColumn& c : source) outer_.push_back(ToRowColumn(c.values));
    outer_rows_ = kRows[swapped ? 1 : 0];
    FindInner();
    // Which pairs get to the sink, and which to the loop.
    pairs_ = Run(*program_, swapped);
    reach_.clear();
    if (steps_.all_from >= 0) reach_ = Run(WithoutFilters(), swapped);
    return true;
  }

  const RangeProgram& steps() const { return steps_; }
  size_t rows(bool inner) const { return inner ? inner_rows_ : outer_rows_; }
  std::string Listing() const { return vm::Listing(*program_); }

  struct Piece {
    size_t first, count;
  };
  Coverage Ask(Piece outer, Piece inner) const {
    std::vector<KnownRange> o, i;
    for (const RowColumn& c : outer_) o.push_back(RangeOfColumn(c, outer.first, outer.count));
    for (const RowColumn& c : inner_) i.push_back(RangeOfColumn(c, inner.first, inner.count));
    return TryRanges(steps_.steps.data(), static_cast<int>(steps_.steps.size()), o.data(), i.data());
  }
  /// How many of the pairs that get to the loop get to the sink.
  struct Live {
    size_t live = 0, all = 0;
    bool Fits(Coverage s) const { return s == Coverage::kNone ? live == 0 : s == Coverage::kSome || live == all; }
  };
  Live Truth(Piece outer, Piece inner) const {
    Live n;
    auto& [live, all] = n;
    for (size_t o = outer.first; o < outer.first + outer.count; ++o) {
      for (size_t i = inner.first; i < inner.first + inner.count; ++i) {
        const auto key = std::pair(static_cast<int64_t>(o), inner_ids_[i]);
        const auto at = pairs_.find(key);
        live += at != pairs_.end() ? 1 : 0;
        if (steps_.all_from < 0) {
          ++all;
        } else if (const auto reached = reach_.find(key); reached != reach_.end()) {
          ++all;
          EXPECT_TRUE(at == pairs_.end() || at->second == reached->second);
        }
      }
    }
    return n;
  }

 private:
  using Pairs = std::map<std::pair<int64_t, int64_t>, int64_t>;

  static Result<std::vector<RowBatch>> Execute(const vm::Program& program, const Snapshot& snapshot) {
    TESSERA_TRY(Verify(program));
    std::vector<RowBatch> batches;
    vm::Executor executor(1);
    vm::RunStatistics statistics;
    auto consume = [&](RowBatch&& b) {
      batches.push_back(std::move(b));
      return Status::Ok();
    };
    TESSERA_TRY(executor.Run(program, snapshot, {}, consume, &statistics));
    return batches;
  }

  /// (row of the source, id of the join table's row) -> third output.
  Pairs Run(const vm::Program& program, bool swapped) const {
    Pairs pairs;
    Result<std::vector<RowBatch>> batches = Execute(program, *snapshot_);
    EXPECT_TRUE(batches.ok()) << batches.status().message() << vm::Listing(program);
    if (!batches.ok()) return pairs;
    for (const RowBatch& b : *batches) {
      for (size_t i = 0; i < b.rows; ++i) {
        const int64_t r = b.columns[0].fixed[i], s = b.columns[1].fixed[i];
        EXPECT_TRUE(pairs.emplace(swapped ? std::pair(s, r) : std::pair(r, s), b.columns[2].fixed[i]).second);
      }
    }
    return pairs;
  }

  /// The join table's rows: those that the section which builds it would emit.
  void FindInner() {
    vm::Program p = *program_;
    const auto builder = static_cast<size_t>(p.joins[static_cast<size_t>(join_)].section);
    p.sections.resize(builder + 1);
    p.joins.clear();
    Section& s = p.sections[builder];
    s.sink = Section::Sink::kRows;
    s.join = -1;
    for (Instruction& in : s.code) {
      if (in.op == Opcode::Build) in.op = Opcode::Emit;
    }
    p.columns.clear();
    for (const SqlType& t : s.columns) p.columns.push_back({"c", t});
    Result<std::vector<RowBatch>> batches = Execute(p, *snapshot_);
    ASSERT_TRUE(batches.ok()) << batches.status().message();
    std::vector<ColumnVector> all;
    for (const SqlType& t : s.columns) all.emplace_back().type = t;
    inner_rows_ = 0;
    for (const RowBatch& b : *batches) {
      for (size_t c = 0; c < all.size(); ++c) all[c].AppendAll(b.columns[c]);
      inner_rows_ += b.rows;
    }
    inner_.clear();
    for (const ColumnVector& c : all) inner_.push_back(ToRowColumn(c));
    // Its column id is the payload that goes into the first or second output.
    inner_ids_.clear();
    const Section& section = program_->sections[static_cast<size_t>(section_)];
    for (size_t i = 1; i < section.code.size(); ++i) {
      const Instruction &load = section.code[i - 1], &store = section.code[i];
      if (store.op != Opcode::Store || store.p2 > 1 || load.op != Opcode::Load) continue;
      const Operand o = Operand::Unpack(load.p2);
      if (o.kind == vm::OperandKind::kPayload) inner_ids_ = inner_[o.index].low;
    }
    ASSERT_EQ(inner_ids_.size(), inner_rows_);
  }

  /// The program as it runs for kAll: each turn begins at all_from.
  vm::Program WithoutFilters() const {
    vm::Program p = *program_;
    std::vector<Instruction>& code = p.sections[static_cast<size_t>(section_)].code;
    int32_t body = -1;
    for (size_t i = 0; i < code.size(); ++i) {
      if (code[i].op == Opcode::Next && code[i].p1 == join_) body = code[i].p2;
    }
    const int32_t gone = steps_.all_from - body;
    EXPECT_GE(gone, 0);
    for (Instruction& in : code) {
      const bool jump = Info(in.op).p[1] == vm::OperandSpec::Addr;
      if (jump && in.p2 > body) in.p2 = std::max(body, in.p2 - gone);
    }
    code.erase(code.begin() + body, code.begin() + steps_.all_from);
    return p;
  }

  std::vector<MemoryColumn> columns_[2];
  std::vector<std::shared_ptr<const TableInfo>> tables_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<vm::Program> program_;
  int section_ = 0, join_ = 0;
  RangeProgram steps_;
  std::vector<RowColumn> outer_, inner_;
  size_t outer_rows_ = 0, inner_rows_ = 0;
  std::vector<int64_t> inner_ids_;
  Pairs pairs_, reach_;
};

/// kNone and kAll are said wherever they are true, if `exact`.
struct Counts {
  size_t asked = 0, none = 0, all = 0, true_none = 0, true_all = 0;
};

Counts Compare(const Product& p, Random* random, int rounds, bool exact) {
  Counts n;
  for (int round = 0; round < rounds && p.rows(true) > 0; ++round) {
    auto piece = [&](bool inner) {
      const size_t first = random->Below(p.rows(inner));
      const size_t count = std::min(p.rows(inner) - first, 1 + random->Below(random->Chance(50) ? 8 : 60));
      return Product::Piece{first, count};
    };
    const Product::Piece outer = piece(false), inner = piece(true);
    const Coverage answer = p.Ask(outer, inner);
    const Product::Live truth = p.Truth(outer, inner);
    const bool none = truth.Fits(Coverage::kNone), all = truth.Fits(Coverage::kAll);
    ++n.asked;
    n.none += answer == Coverage::kNone ? 1 : 0;
    n.all += answer == Coverage::kAll ? 1 : 0;
    n.true_none += none ? 1 : 0;
    n.true_all += all ? 1 : 0;
    const bool right = truth.Fits(answer) && !(exact && answer == Coverage::kSome && (none || all));
    EXPECT_TRUE(right) << "rows " << outer.first << " + " << outer.count << " with " << inner.first << " + "
                       << inner.count << ": " << testing::PrintToString(answer) << ", in truth " << truth.live << " of "
                       << truth.all << "\n"
                       << p.Listing();
    if (!right) break;
  }
  return n;
}

TEST(PairRangesSql, PlainComparisonsAreExact) {
  Product p;
  Random random(3);
  for (const char* condition :
       {"r.a < s.a", "r.a <= s.b", "r.b > s.a", "r.g >= s.g", "r.h < s.h", "r.d < s.d", "r.day > s.day",
        "r.a < s.a AND r.d < s.d", "s.g < r.g AND s.day <= r.day", "r.a + 10 < s.a", "r.a < s.a - 10", "r.g * 2 < s.g",
        "r.a < 20 + s.a * 2", "r.b > 0 AND r.a < s.a", "s.b > 0 AND r.a < s.a"}) {
    SCOPED_TRACE(condition);
    ASSERT_TRUE(p.Set(condition));
    EXPECT_GE(p.steps().all_from, 0);
    const bool several = std::string(condition).find("AND") != std::string::npos;  // may exclude each other
    const Counts n = Compare(p, &random, 200, !several);
    EXPECT_GE(n.none, 5u);
    EXPECT_GE(n.all, 5u);
    if (HasFailure()) return;
  }
}

TEST(PairRangesSql, Predicates) {
  Product p;
  Random random(4);
  // What should be told of a third of the pairs at least of which it is true is marked.
  struct Case {
    bool told;
    const char* condition;
  };
  const Case cases[] = {
      {true, "r.a < s.a OR r.g > s.g + 50"},
      {true, "r.a < s.a OR r.d > s.d OR r.day = s.day"},
      {true, "NOT (r.a < s.a OR r.g > s.g)"},
      {true, "NOT (r.a < s.a AND r.g < s.g)"},
      {true, "r.a BETWEEN s.a - 5 AND s.a + 5"},
      {true, "r.a NOT BETWEEN s.a - 20 AND s.a + 20"},
      {true, "abs(r.a - s.a) <= 5"},
      {true, "abs(r.g - s.g) > 7.5"},
      {true, "(r.a - s.a) * (r.a - s.a) + (r.g - s.g) * (r.g - s.g) < 400"},
      {true, "r.a - s.a IN (0, 3, 70)"},
      {true, "r.a - s.a NOT IN (0, 3, 70)"},
      {true, "r.n < s.n"},
      {true, "r.n < s.a OR s.n IS NULL"},
      {true, "r.n + s.n IS NULL"},
      {true, "r.n + s.a IS NOT NULL"},
      {true, "NOT (r.n < s.n)"},
      {true, "r.a < s.g"},
      {true, "r.d < s.g"},
      {true, "r.d <= s.a"},
      {true, "r.d > s.e"},
      {true, "r.h * r.h < s.g"},
      {true, "r.h + s.h < 40"},
      {false, "r.f < s.f"},
      {false, "r.f >= s.g"},
      {false, "r.f <> s.f"},
      {true, "r.c < s.c"},
      {true, "r.c <= s.c OR r.c > s.b"},
      {true, "r.c <> s.c"},
      {true, "CASE WHEN r.a < s.a THEN r.g ELSE s.g END < 60"},
      {true, "CASE WHEN r.a < s.a THEN 1 WHEN r.a > s.a + 30 THEN 2 ELSE 3 END = 2"},
      {false, "CASE r.a - s.a WHEN 0 THEN s.n ELSE r.n END > 5"},
      {true, "(r.a < s.a) = (r.g < s.g)"},
      {false, "(r.n < s.n) IS NULL"},
      {true, "r.a < s.a AND (r.g < s.g OR r.d < s.d)"},
      {true, "r.a < s.a AND (r.a + s.a) * 2 < (s.g - r.g) * 3"},
      {false, "(r.a + r.b) * 2 < (s.a + s.b) * 3 AND (r.d - 1) * 2 < (s.d + 1) * 4"},
      {true, "(r.a < 50 AND s.a < 20) OR (r.a > 100 AND s.a >= 90)"},
      {true, "(r.g < 50.5 AND s.g < 20) OR (r.n IS NULL AND s.n IS NOT NULL)"},
      {true, "(r.b IN (1, 2, 3) AND s.a < 20) OR r.a > s.a + 100"},
      {true, "r.a < 100 AND s.b BETWEEN 0 AND 100 AND r.b < s.b"},
      {true, "r.day > s.day + INTERVAL '10 days'"},
      {false, "extract(month FROM r.day) < extract(month FROM s.day)"},
      {false, "r.t <> s.t"},
      {false, "r.t <> s.t AND r.a < s.a"},
      {false, "r.w < s.w"},
      {false, "r.w < s.w OR r.a < s.a"},
      {false, "floor(r.g) = round(s.g) OR r.a / 3 = s.a"},
      {false, "r.a % 7 < s.a % 5"},
      {false, "coalesce(r.n, s.n) < s.a"},
      {false, "CAST(r.g AS INTEGER) < s.a"},
      {false, "CAST(r.g AS REAL) < s.h"},
      {false, "-r.g < s.a - 100"},
      {true, "1 = 1"},
  };
  Counts sum;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.condition);
    ASSERT_TRUE(p.Set(c.condition));
    ASSERT_FALSE(p.steps().steps.empty());
    const Counts n = Compare(p, &random, 150, false);
    EXPECT_TRUE(!c.told || (n.none + n.all) * 3 >= n.true_none + n.true_all)
        << "kNone said for " << n.none << " of " << n.true_none << ", kAll for " << n.all << " of " << n.true_all
        << "\n"
        << p.Listing();
    EXPECT_TRUE(!c.told || p.steps().all_from >= 0) << p.Listing();
    sum.asked += n.asked, sum.none += n.none, sum.all += n.all, sum.true_none += n.true_none,
        sum.true_all += n.true_all;
    if (HasFailure()) return;
  }
  fmt::print("{} pairs of pieces: kNone said for {} of {}, kAll for {} of {}\n", sum.asked, sum.none, sum.true_none,
             sum.all, sum.true_all);
}

/// A random condition over columns of both tables.
std::string Condition(Random* random, int depth) {
  auto number = [&](auto&& self, int d) -> std::string {
    static const std::vector<std::string> names = {"r.a", "s.a", "r.b", "s.b", "r.d", "s.d", "r.e", "s.e",
                                                   "r.g", "s.g", "r.h", "s.h", "r.n", "s.n", "r.f", "s.f"};
    if (d == 0 || random->Chance(40))
      return random->Chance(80) ? random->Pick(names) : fmt::format("{}", random->Below(120));
    if (random->Chance(10)) return "abs(" + self(self, d - 1) + ")";
    if (random->Chance(10))
      return "CASE WHEN " + Condition(random, 0) + " THEN " + self(self, d - 1) + " ELSE " + self(self, d - 1) + " END";
    static const std::vector<std::string> ops = {"+", "-", "*"};
    return "(" + self(self, d - 1) + " " + random->Pick(ops) + " " + self(self, d - 1) + ")";
  };
  if (depth > 0 && random->Chance(70)) {
    if (random->Chance(20)) return "NOT (" + Condition(random, depth - 1) + ")";
    return "(" + Condition(random, depth - 1) + (random->Chance(50) ? " OR " : " AND ") + Condition(random, depth - 1) +
           ")";
  }
  if (random->Chance(10)) return number(number, 1) + (random->Chance(50) ? " IS NULL" : " IS NOT NULL");
  if (random->Chance(15))
    return number(number, 1) + (random->Chance(50) ? " BETWEEN " : " NOT BETWEEN ") + number(number, 1) + " AND " +
           number(number, 1);
  if (random->Chance(10)) return number(number, 1) + (random->Chance(50) ? " IN " : " NOT IN ") + "(1, 5, 40, 90)";
  static const std::vector<std::string> ops = {"<", "<=", ">", ">=", "<>", "="};
  return number(number, 2) + " " + random->Pick(ops) + " " + number(number, 2);
}

TEST(PairRangesSql, RandomPredicates) {
  Product p;
  Random random(5);
  Counts sum;
  size_t products = 0, skipping = 0;
  for (int round = 0; round < 150; ++round) {
    // An equation alone would be a hash join.
    const std::string condition = "(r.id + s.id >= 0 OR r.a > s.a) AND (" + Condition(&random, 2) + ")";
    SCOPED_TRACE(condition);
    if (!p.Set(condition)) continue;
    ++products;
    skipping += p.steps().all_from >= 0 ? 1 : 0;
    const Counts n = Compare(p, &random, 60, false);
    sum.asked += n.asked, sum.none += n.none, sum.all += n.all, sum.true_none += n.true_none,
        sum.true_all += n.true_all;
    if (HasFailure()) return;
  }
  fmt::print(
      "{} products, {} of which may leave out filters; {} pairs of pieces: kNone said for {} of {}, kAll for {} of "
      "{}\n",
      products, skipping, sum.asked, sum.none, sum.true_none, sum.all, sum.true_all);
  EXPECT_GT(products, 75u);
  EXPECT_GT(skipping * 3, products);
  EXPECT_GT(sum.none * 3, sum.true_none);
  EXPECT_GT(sum.all * 3, sum.true_all);
}

}  // namespace
}  // namespace tessera::test
