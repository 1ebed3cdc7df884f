// Cases of sinks: groups with aggregates; rows with an order, a limit, an offset.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tablet/values/ordered_float.h"
#include "tests/vm/opcode_cases.h"
#include "vm/meaning/aggregate.h"

namespace tessera::test::walk {

using vm::Opcode;
using vm::Operand;
using vm::Program;
using vm::Section;

/// A table is grouped by `keys` and every aggregate there is computed; a second section reads the groups.
void Walk::GroupCase(const std::string& name, const std::vector<SqlType>& keys, size_t rows, size_t distinct,
                     bool small_aggregates) {
  if (!Wanted(name)) return;
  Program p;
  std::vector<TestTable> tables = {MaskedTable(rows)};
  if (Turn(3) == 0 && rows > 0)
    std::fill(tables[0].columns[kMaskColumn].values.fixed.begin(), tables[0].columns[kMaskColumn].values.fixed.end(),
              Turn(2) == 0 ? 1 : 0);
  std::vector<int> key_columns;
  for (size_t k = 0; k < keys.size(); ++k) {
    key_columns.push_back(static_cast<int>(tables[0].columns.size()));
    const size_t some = k == 0 ? distinct : std::min<size_t>(distinct, 4);
    ColumnVector values =
        KeyValues(keys[k], key_width_ != 0 ? 0 : static_cast<int>(Turn(4)), rows, some, false, Turn(2) == 0, random_);
    const ChunkForm form = AnyForm(values, random_, key_width_);
    tables[0].columns.push_back({fmt::format("k{}", k), std::move(values), {form}});
  }
  // Sums must not overflow in any order of the rows, extremes may be anything.
  auto add = [&](const SqlType& type, int128_t low, int128_t high, int width) {
    Form f = FrameForm(width, Turn(2) == 0);
    f.low = low;
    f.high = high;
    if (type.id != TypeId::kText) f.chunk.base = low;
    if (type.id == TypeId::kText) f = Pick(random_, FormsOf(kText));
    return AddColumn(&tables[0], {type, f}, rows);
  };
  const int any_integer = AddColumn(&tables[0], {kBigint, Pick(random_, FormsOf(kBigint))}, rows);
  const int any_double = AddColumn(&tables[0], {kDouble, Pick(random_, FormsOf(kDouble))}, rows);
  const int any_wide = AddColumn(&tables[0], {kWide, Pick(random_, FormsOf(kWide))}, rows);
  const int text = add(kText, 0, 0, 4);
  const int small_wide = add(kWide, -PowerOf10(25), PowerOf10(25), 16);
  const int finite = add(SqlType::Of(TypeId::kReal), OrderedFloat32(-1000.0f), OrderedFloat32(1000.0f), 4);
  AddTables(&p, tables);

  Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
  Head(&m, &p);
  m.s.keys = static_cast<int32_t>(keys.size());
  m.s.columns = keys;
  const bool direct = keys.size() == 1 && !keys[0].IsFloat() && (key_width_ != 0 || Turn(3) != 0);
  if (keys.empty()) {
    m.Op(Opcode::Group);
  } else if (direct) {
    m.Op(Opcode::Group, 0, Operand::Slot(m.Slot(key_columns[0], keys[0])).Pack(), 1);
  } else {
    const int first = static_cast<int>(m.s.registers.size());
    for (size_t k = 0; k < keys.size(); ++k) {
      m.Load(keys[k], Operand::Slot(m.Slot(key_columns[k], keys[k])));
      if (keys[k].IsFloat()) m.Op(Opcode::CanonF);
      m.Store(m.Register(keys[k]));
    }
    m.Op(Opcode::Group, 0, Operand::Register(first).Pack(), static_cast<int32_t>(keys.size()));
  }
  auto aggregate = [&](Opcode op, const SqlType& type) {
    m.s.aggregates.push_back({op, type});
    m.s.columns.push_back(type);
    for (const vm::AccumulatorSpec word : vm::ColumnClasses(op).subspan(1))
      m.s.columns.push_back(word == vm::AccumulatorSpec::F   ? kDouble
                            : word == vm::AccumulatorSpec::W ? kWide
                                                             : kBigint);
    m.Op(op, static_cast<int>(m.s.aggregates.size()) - 1);
  };
  const bool host = gpu_ == nullptr;
  aggregate(Opcode::CountRows, kBigint);
  m.Load(kBigint, Operand::Slot(m.Slot(any_integer, kBigint)));
  aggregate(Opcode::SumI, kWide);
  aggregate(Opcode::Count, kBigint);
  aggregate(Opcode::MinI, kBigint);
  aggregate(Opcode::MaxI, kBigint);
  if (host) {
    aggregate(Opcode::BitAndI, kBigint);
    aggregate(Opcode::BitOrI, kBigint);
    aggregate(Opcode::BitXorI, kBigint);
  }
  if (!small_aggregates) {
    m.Load(kDouble, Operand::Slot(m.Slot(any_double, kDouble)));
    aggregate(Opcode::MinF, kDouble);
    aggregate(Opcode::MaxF, kDouble);
    aggregate(Opcode::Count, kBigint);
    m.Load(kDouble, Operand::Slot(m.Slot(finite, SqlType::Of(TypeId::kReal))));
    aggregate(Opcode::SumF, kBigint);
    aggregate(Opcode::MomentsF, kBigint);
    if (host) {  // of numbers that do not grow: an infinite product depends on the order
      const auto bound = [&](double v) { return Operand::Constant(AddConstant(&p, Value::Float(kDouble, v))).Pack(); };
      m.Op(Opcode::ClampF, 0, bound(-1), bound(1));
      aggregate(Opcode::ProductF, kDouble);
    }
    m.Load(kWide, Operand::Slot(m.Slot(any_wide, kWide)));
    aggregate(Opcode::MinW, kWide);
    aggregate(Opcode::MaxW, kWide);
    aggregate(Opcode::CountW, kBigint);
    m.Load(kWide, Operand::Slot(m.Slot(small_wide, kWide)));
    aggregate(Opcode::SumW, kWide);
    m.Load(kText, Operand::Slot(m.Slot(text, kText)));
    aggregate(Opcode::Count, kBigint);
    if (host) {
      aggregate(Opcode::MinT, kText);
      aggregate(Opcode::MaxT, kText);
    }
    if (Turn(2) == 0) {
      // A conditional aggregate: rows masked off for it only.
      const int all = m.Mask();
      m.Op(Opcode::MaskSave, all);
      m.Load(kBigint, Operand::Slot(m.Slot(any_integer, kBigint)));
      m.Op(Opcode::FilterGtI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
      aggregate(Opcode::SumI, kWide);
      m.Op(Opcode::MaskLoad, all);
      aggregate(Opcode::CountRows, kBigint);
    }
  }
  const std::vector<SqlType> columns = m.s.columns;
  const std::vector<size_t> firsts = vm::AggregateColumns(m.s);
  const std::vector<vm::AggregateSpec> aggregates = m.s.aggregates;
  const int groups = AddSection(&p, m.End());
  Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
  for (size_t c = 0; c < columns.size(); ++c)
    out.Keep(columns[c], Operand::Slot(out.Slot(static_cast<int>(c), columns[c])));
  // What states of several words stand for.
  const auto total_of = [](Opcode op) { return op == Opcode::SumF ? Opcode::TotalF : Opcode::DeviationsF; };
  std::vector<std::pair<size_t, int>> totals;
  for (size_t k = 0; k < aggregates.size(); ++k) {
    const bool is_there = host || vm::Info(total_of(aggregates[k].op)).tier != vm::Tier::Host;
    if (is_there && firsts[k + 1] > firsts[k] + 1) totals.emplace_back(k, out.Register(kDouble));
  }
  const size_t emitted = out.s.registers.size();
  for (const auto& [k, result] : totals) {
    const int first = static_cast<int>(firsts[k]), words = static_cast<int>(firsts[k + 1] - firsts[k]) - 1;
    const int others = static_cast<int>(out.s.registers.size());
    for (int w = 1; w <= words; ++w) out.Keep(kBigint, Operand::Slot(out.Slot(first + w, kBigint)));
    out.Load(kBigint, Operand::Slot(out.Slot(first, kBigint)));
    out.Op(total_of(aggregates[k].op), 0, Operand::Register(others).Pack(), words);
    out.Store(result);
  }
  AddSection(&p, out.Finish(Opcode::Emit, static_cast<int>(emitted)));
  NameColumns(&p);
  Check(name, std::move(p), std::move(tables));
}

void Walk::Groups() {
  const SqlType kInteger = SqlType::Of(TypeId::kInteger), kBoolean = SqlType::Of(TypeId::kBoolean),
                kReal = SqlType::Of(TypeId::kReal);
  const std::vector<std::pair<const char*, std::vector<SqlType>>> kinds = {
      {"no keys", {}},
      {"bigint", {kBigint}},
      {"text", {kText}},
      {"double", {kDouble}},
      {"real", {kReal}},
      {"wide", {kWide}},
      {"integer text", {kInteger, kText}},
      {"double bigint", {kDouble, kBigint}},
      {"wide double text", {kWide, kDouble, kText}},
      {"boolean wide bigint text", {kBoolean, kWide, kBigint, kText}},
      {"four integers", {kInteger, kBigint, kInteger, kInteger}},
  };
  int number = 0;
  for (const auto& [what, keys] : kinds) {
    for (int i = 0; i < (keys.empty() ? 40 : 24); ++i) {
      const size_t distinct = std::vector<size_t>{1, 3, 35, 1000}[static_cast<size_t>(i) % 4];
      GroupCase(fmt::format("group by {} #{}", what, number++), keys, NextSize(), distinct, false);
    }
  }
  for (int width : {1, 2, 4, 8}) {
    key_width_ = width;
    for (int i = 0; i < 6; ++i)
      GroupCase(fmt::format("group by integer of width {} #{}", width, number++), {kInteger}, NextSize(), 20, false);
  }
  key_width_ = 0;
  if (options_.greatest_rows >= 150000) {
    GroupCase("group 100000 bigint", {kBigint}, 150000, 100000, true);
    GroupCase("group 100000 text", {kText}, 120000, 100000, true);
    GroupCase("group 100000 wide double", {kWide, kDouble}, 150000, 100000, false);
  }

  // Keys that are constants, payloads, results; the overflow of an exact sum.
  for (int i = 0; i < 12; ++i) {
    const std::string name = fmt::format("group by a constant or a payload #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    TestTable u;
    u.name = "u";
    u.columns.push_back({"k", KeyValues(kBigint, 0, 20, 20, true, false, random_), {FrameForm(1).chunk}});
    const SqlType type = std::vector<SqlType>{kBigint, kText, kWide}[static_cast<size_t>(i) % 3];
    ColumnVector grouped = KeyValues(type, 2, 20, 4, false, true, random_);
    const ChunkForm grouped_form = AnyForm(grouped, random_);
    u.columns.push_back({"g", std::move(grouped), {grouped_form}});
    tables.push_back(u);
    const int key = static_cast<int>(tables[0].columns.size());
    ColumnVector leads = KeyValues(kBigint, 0, rows, 20, false, true, random_);
    const ChunkForm leads_form = AnyForm(leads, random_);
    tables[0].columns.push_back({"k", std::move(leads), {leads_form}});
    AddTables(&p, tables);
    Maker b(Section::Source::kTable, 1, Section::Sink::kJoin, "build u");
    b.Keep(kBigint, Operand::Slot(b.Slot(0, kBigint)));
    b.Keep(type, Operand::Slot(b.Slot(1, type)));
    b.s.join = 0;
    b.s.keys = 1;
    p.joins.push_back({true, AddSection(&p, b.Finish(Opcode::Build, 2))});
    Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
    Head(&m, &p);
    m.Op(Opcode::Probe, 0, Operand::Slot(m.Slot(key, kBigint)).Pack(), 1);
    Operand g = Operand::Payload(0, 0);
    if (i % 2 == 1)
      g = Operand::Constant(AddConstant(&p, i % 4 == 1 ? RandomConstant(type, nullptr) : Value::Null(type)));
    m.s.keys = 1;
    m.Op(Opcode::Group, 0, g.Pack(), 1);
    m.Op(Opcode::CountRows, 0);
    m.Load(kBigint, Operand::Register(0));
    m.Op(Opcode::SumI, 1);
    m.s.aggregates = {{Opcode::CountRows, kBigint}, {Opcode::SumI, kWide}};
    m.s.columns = {type, kBigint, kWide};
    const int groups = AddSection(&p, m.End());
    Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
    for (int c = 0; c < 3; ++c)
      out.Keep(m.s.columns[static_cast<size_t>(c)], Operand::Slot(out.Slot(c, m.s.columns[static_cast<size_t>(c)])));
    AddSection(&p, out.Finish(Opcode::Emit, 3));
    NameColumns(&p);
    Check(name, std::move(p), std::move(tables));
  }
  for (size_t rows : {size_t{2}, size_t{2049}, size_t{70000}}) {
    const std::string name = fmt::format("sum of {} that overflows", rows);
    if (!Wanted(name)) continue;
    for (int keys = 0; keys < 2; ++keys) {
      Program p;
      std::vector<TestTable> tables = {MaskedTable(rows)};
      std::fill(tables[0].columns[kMaskColumn].values.fixed.begin(), tables[0].columns[kMaskColumn].values.fixed.end(),
                1);
      MemoryColumn big;
      big.name = "w";
      big.values.type = kWide;
      big.values.wide.assign(rows, kInt128Max / static_cast<int128_t>(rows) + 1);
      big.forms = {FrameForm(16).chunk};
      tables[0].columns.push_back(std::move(big));
      AddTables(&p, tables);
      Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
      Head(&m, &p);
      m.s.keys = keys;
      m.s.columns.assign(static_cast<size_t>(keys), SqlType::Of(TypeId::kBoolean));
      m.Op(Opcode::Group, 0, keys == 0 ? 0 : Operand::Slot(1).Pack(), keys);
      m.Load(kWide, Operand::Slot(m.Slot(2, kWide)));
      m.Op(Opcode::SumW, 0);
      m.s.aggregates = {{Opcode::SumW, kWide}};
      m.s.columns.push_back(kWide);
      const int groups = AddSection(&p, m.End());
      Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
      out.Keep(kWide, Operand::Slot(out.Slot(keys, kWide)));
      AddSection(&p, out.Finish(Opcode::Emit, 1));
      NameColumns(&p);
      CheckOptions check;
      check.must_fail = true;
      Check(name, std::move(p), std::move(tables), check);
    }
  }
}

void Walk::Rows() {
  for (int i = 0; i < 160; ++i) {
    const std::string name = fmt::format("rows #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    const std::vector<SqlType> types = {kBigint, kDouble, kText, kWide, SqlType::Of(TypeId::kReal)};
    std::vector<int> columns;
    for (const SqlType& t : types)
      columns.push_back(AddColumn(&tables[0], {t, Pick(random_, FormsOf(t)), nullptr, 5}, rows));
    AddTables(&p, tables);
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    for (size_t c = 0; c < types.size(); ++c) m.Keep(types[c], Operand::Slot(m.Slot(columns[c], types[c])));
    Section s = m.Finish(Opcode::Emit, static_cast<int>(types.size()) + 1);
    CheckOptions check;
    const bool ordered = i % 4 != 3;
    if (ordered) {
      std::vector<int> by = {1, 2, 3, 4, 5};
      std::shuffle(by.begin(), by.end(), random_);
      by.resize(Below(random_, 4));
      for (int c : by) s.after.order.push_back({c, Turn(2) == 0, Turn(3) == 0});
      s.after.order.push_back({0, Turn(2) == 0, false});  // the row's number makes the order total
    }
    const std::vector<int64_t> limits = {-1, 0, 1, 10, 2048, 100000, kGreatest};
    const std::vector<int64_t> offsets = {0, 0, 1, 2047, 5000, kGreatest};
    s.after.limit = Pick(random_, limits);
    s.after.offset = Pick(random_, offsets);
    check.ordered = ordered;
    check.subset = !ordered;
    // The bounds may apply in the middle of a program, too.
    if (i % 5 == 4 && ordered) {
      const int from = AddSection(&p, std::move(s));
      Maker out(Section::Source::kSection, from, Section::Sink::kRows, "rows");
      for (int c = 0; c <= static_cast<int>(types.size()); ++c) {
        const SqlType& t = p.sections.back().columns[static_cast<size_t>(c)];
        out.Keep(t, Operand::Slot(out.Slot(c, t)));
      }
      AddSection(&p, out.Finish(Opcode::Emit, static_cast<int>(types.size()) + 1));
      check.ordered = false;
    } else {
      AddSection(&p, std::move(s));
    }
    NameColumns(&p);
    Check(name, std::move(p), std::move(tables), check);
  }
  // One row without a table: SELECT 1, 'a', NULL; and no row, and twice the row.
  for (int i = 0; i < 3; ++i) {
    const std::string name = fmt::format("rows of no table #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    Maker m(Section::Source::kOneRow, 0, Section::Sink::kRows, "one row");
    m.Keep(kBigint, Operand::Constant(AddConstant(&p, Value::Int(kBigint, kLeast))));
    m.Keep(kText, Operand::Constant(AddConstant(&p, Value::Text("a"))));
    m.Keep(kWide, Operand::Constant(AddConstant(&p, Value::Wide(kWide, kInt128Min))));
    m.Keep(kDouble, Operand::Constant(AddConstant(&p, Value::Null(kDouble))));
    m.Load(kBigint, Operand::Register(0));
    if (i == 1) m.Op(Opcode::FilterEqI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
    if (i == 2) m.Op(Opcode::Emit);
    AddSection(&p, m.Finish(Opcode::Emit, 4));
    NameColumns(&p);
    Check(name, std::move(p), {});
  }
}

}  // namespace tessera::test::walk
