// Cases of joins: keys of every kind, one match or several, inner and outer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/vm/opcode_cases.h"

namespace tessera::test::walk {

using vm::Opcode;
using vm::Operand;
using vm::Predicate;
using vm::Program;
using vm::Section;

ColumnVector KeyValues(const SqlType& type, int style, size_t rows, size_t distinct, bool each_once, bool nulls,
                       Random& random) {
  ColumnVector c;
  c.type = type;
  if (nulls) {
    c.null.resize(rows);
    for (uint8_t& n : c.null) n = random() % 9 == 0 ? 1 : 0;
  }
  if (type.id == TypeId::kText && rows > 0) c.offsets.push_back(0);
  for (size_t i = 0; i < rows; ++i) {
    const int64_t k = static_cast<int64_t>(each_once ? i : Below(random, distinct + 2));
    int64_t v = k;                                                                             // dense
    if (style == 1) v = -k - 5;                                                                // dense, negative
    if (style == 2) v = (k - 3) * 1000003;                                                     // sparse, around 0
    if (style == 3) v = static_cast<int64_t>(static_cast<uint64_t>(k) * 0x9E3779B97F4A7C15u);  // anywhere in 64 bits
    if (style == 4) v = k % 2 == 0 ? kLeast + k : kGreatest - k;                               // at both ends
    switch (type.storage()) {
      case StorageClass::kText:
        if (!c.IsNull(i)) c.bytes += k == 0 ? "" : fmt::format("key{}", v);
        c.offsets.push_back(c.bytes.size());
        break;
      case StorageClass::kWide:
        c.wide.push_back(style == 2 ? v * PowerOf10(20) : v);
        break;
      case StorageClass::kFloat: {
        double f = static_cast<double>(v) / 4;
        if (k == 0) f = 0.125;  // zero is k = 2, with either sign: one key
        if (k == 1) f = std::numeric_limits<double>::quiet_NaN();
        if (k == 2) f = random() % 2 == 0 ? -0.0 : 0.0;
        if (k == 3) f = -std::numeric_limits<double>::infinity();
        c.fixed.push_back(AsBits(type.id == TypeId::kReal ? static_cast<double>(static_cast<float>(f)) : f));
        break;
      }
      case StorageClass::kInt:
        c.fixed.push_back(type.id == TypeId::kBigint ? v : k);
        break;
    }
  }
  return c;
}

ChunkForm AnyForm(const ColumnVector& values, Random& random, int width) {
  const size_t rows = RowsOf(values);
  ChunkForm f;
  f.null_code = ChunkForm::NullCode::kGap;
  if (values.type.id == TypeId::kText) {
    f.encoding = rows > 0 && random() % 2 == 0 ? Encoding::kPlain : Encoding::kDictionary;
    f.width = 4;
    return f;
  }
  int128_t low = 0, high = 0;
  bool any = false;
  for (size_t i = 0; i < rows; ++i) {
    if (values.IsNull(i)) continue;
    const int128_t v = OrderedValue(values, i);
    low = any ? std::min(low, v) : v;
    high = any ? std::max(high, v) : v;
    any = true;
  }
  const int widest = values.type.storage() == StorageClass::kWide ? 16 : values.type.id == TypeId::kReal ? 4 : 8;
  std::vector<int> widths = {widest};
  for (int w = 1; w < widest; w *= 2) {
    if ((static_cast<uint128_t>(high) - static_cast<uint128_t>(low)) >> (8 * w - 1) == 0) widths.push_back(w);
  }
  f.width = std::count(widths.begin(), widths.end(), width) > 0 ? width : Pick(random, widths);
  return f;
}

/// `style`: 0 slot keys, 1 register keys, 2 constant key, 3 the payload of an earlier join is the key, 4 left outer
/// (unique) by masks. `outer`: 0 Probe; 1 ProbeOuter; 2 ProbeOuter and NextOuter, with a condition on the matches; 3
/// the same, where a match that meets it is an error.
void Walk::JoinCase(const std::string& name, const std::vector<SqlType>& keys, int key_style, size_t build_rows,
                    bool unique, int style, int outer) {
  if (!Wanted(name)) return;
  Program p;
  const size_t rows = std::min<size_t>(NextSize(), build_rows > 0 && keys.empty() ? 300 : SIZE_MAX);
  std::vector<TestTable> tables = {MaskedTable(rows)};
  TestTable u;
  u.name = "u";
  u.tablet_rows = TabletRows(build_rows);
  const bool nulls = Turn(2) == 0;
  std::vector<int> probe_columns;
  auto add = [&](TestTable* table, ColumnVector values) {
    const ChunkForm form = AnyForm(values, random_, key_width_);
    table->columns.push_back({fmt::format("c{}", table->columns.size()), std::move(values), {form}});
  };
  for (size_t k = 0; k < keys.size(); ++k) {
    // The first key is distinct if the join is unique; several keys have few values each, so that they meet.
    const size_t distinct = k == 0 ? std::max<size_t>(1, unique ? build_rows : build_rows / 3) : 3;
    probe_columns.push_back(static_cast<int>(tables[0].columns.size()));
    add(&tables[0], KeyValues(keys[k], key_style, rows, distinct, false, nulls, random_));
    add(&u, KeyValues(keys[k], key_style, build_rows, distinct, unique && k == 0, nulls && !unique, random_));
  }
  // Payload of every class, with NULLs.
  const std::vector<SqlType> payload = {kBigint, kDouble, kText, kWide};
  std::vector<int> payload_columns;
  for (const SqlType& t : payload) payload_columns.push_back(AddColumn(&u, {t, Pick(random_, FormsOf(t))}, build_rows));
  if (keys.size() == 1 && keys[0].id == TypeId::kBigint && style == 3) {
    // The first payload leads to the keys of a second table.
    MemoryColumn& leads = u.columns[static_cast<size_t>(payload_columns[0])];
    leads.values = KeyValues(kBigint, 0, build_rows, 50, false, true, random_);
    leads.forms = {AnyForm(leads.values, random_)};
  }
  tables.push_back(std::move(u));
  if (style == 3) {
    TestTable v;
    v.name = "v";
    add(&v, KeyValues(kBigint, 0, 50, 50, true, false, random_));
    add(&v, KeyValues(kBigint, 3, 50, 50, true, true, random_));
    tables.push_back(std::move(v));
  }
  AddTables(&p, tables);

  auto canonical = [&](Maker* m, const SqlType& type, Operand from) {
    m->Load(type, from);
    if (type.IsFloat()) m->Op(Opcode::CanonF);
    const int r = m->Register(type);
    m->Store(r);
    return r;
  };
  Maker b(Section::Source::kTable, 1, Section::Sink::kJoin, "build u");
  for (size_t k = 0; k < keys.size(); ++k) canonical(&b, keys[k], Operand::Slot(b.Slot(static_cast<int>(k), keys[k])));
  for (size_t k = 0; k < payload.size(); ++k) b.Keep(payload[k], Operand::Slot(b.Slot(payload_columns[k], payload[k])));
  b.s.join = 0;
  b.s.keys = static_cast<int32_t>(keys.size());
  p.joins.push_back({unique, AddSection(&p, b.Finish(Opcode::Build, static_cast<int>(keys.size() + payload.size())))});
  if (style == 3) {
    Maker second(Section::Source::kTable, 2, Section::Sink::kJoin, "build v");
    for (int c = 0; c < 2; ++c) second.Keep(kBigint, Operand::Slot(second.Slot(c, kBigint)));
    second.s.join = 1;
    second.s.keys = 1;
    p.joins.push_back({true, AddSection(&p, second.Finish(Opcode::Build, 2))});
  }

  Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "probe u");
  Head(&m, &p);
  bool floats = false;
  for (const SqlType& t : keys) floats = floats || t.IsFloat();
  Operand key = Operand::Register(0);
  std::vector<int> slots;
  for (size_t k = 0; k < keys.size(); ++k) slots.push_back(m.Slot(probe_columns[k], keys[k]));
  if (keys.size() == 1 && keys[0].storage() == StorageClass::kInt && style != 2 && style != 4 && outer == 0 &&
      Turn(2) == 0) {
    Predicate range;
    range.kind = Predicate::Kind::kKeyRange;
    range.slot = slots[0];
    range.join = 0;
    m.Filter(range);
  }
  if (style == 2 && keys.size() == 1 && !floats) {
    Value v = RandomConstant(keys[0], nullptr);
    const ColumnVector& from = tables[1].columns[0].values;
    if (RowsOf(from) > 0 && Turn(4) != 0) {
      const size_t row = Below(random_, RowsOf(from));
      if (from.IsNull(row)) {
        v = Value::Null(keys[0]);
      } else if (keys[0].id == TypeId::kText) {
        v = Value::Text(std::string(from.Text(row)));
      } else {
        v = ToValue(keys[0], OrderedValue(from, row));
      }
    }
    key = Operand::Constant(AddConstant(&p, v));
  } else if (keys.size() == 1 && style != 1 && !floats) {
    key = Operand::Slot(slots[0]);
  } else if (!keys.empty()) {
    key = Operand::Register(static_cast<int>(m.s.registers.size()));
    for (size_t k = 0; k < keys.size(); ++k) canonical(&m, keys[k], Operand::Slot(slots[k]));
  }
  const int all = style == 4 ? m.Mask() : -1, matched = style == 4 ? m.Mask() : -1;
  if (style == 4) {
    m.Op(Opcode::MaskSave, all);
    m.Op(Opcode::MaskClear, matched);
  }
  const Opcode probe = outer == 0 ? Opcode::Probe : Opcode::ProbeOuter;
  const int found = outer >= 2 ? m.Mask() : -1;
  if (outer >= 2) m.Op(Opcode::MaskClear, found);
  m.Op(probe, 0, keys.empty() ? 0 : key.Pack(), static_cast<int32_t>(keys.size()));
  const bool loops = !unique || outer >= 2;
  const int loop = loops ? m.Mask() : -1;
  if (loops) m.Op(Opcode::MaskSave, loop);
  const int body = m.Here();
  if (outer >= 2) {
    // Matches whose first payload is positive count; a row without one goes on in its last turn.
    const int turn = m.Mask(), candidates = m.Mask(), passed = m.Mask();
    m.Op(Opcode::MaskSave, turn);
    m.Op(Opcode::FilterMatched, 0);
    m.Op(Opcode::MaskSave, candidates);
    m.Load(kBigint, Operand::Payload(0, 0));
    m.Op(Opcode::FilterGtI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
    if (outer == 3) m.Op(Opcode::RefuseMatch);
    m.Op(Opcode::MaskSave, passed);
    m.Op(Opcode::MaskOr, found);
    m.Op(Opcode::MaskLoad, turn);
    m.Op(Opcode::MaskAndNot, candidates);
    m.Op(Opcode::MaskAndNot, found);
    m.Op(Opcode::MaskOr, passed);
    m.Op(Opcode::MaskLoad, passed);
  }
  std::vector<int> outs;
  for (size_t k = 0; k < payload.size(); ++k)
    outs.push_back(m.Keep(payload[k], Operand::Payload(0, static_cast<int>(k))));
  if (style == 3) {
    m.Op(probe, 1, Operand::Payload(0, 0).Pack(), 1);
    m.Keep(kBigint, Operand::Payload(1, 0));
  }
  if (style == 4) {
    m.Op(Opcode::MaskOr, matched);
    m.Op(Opcode::MaskLoad, all);
    m.Op(Opcode::MaskAndNot, matched);
    for (size_t k = 0; k < payload.size(); ++k) {
      m.Load(payload[k], Operand::Constant(AddConstant(&p, Value::Null(payload[k]))));
      m.Store(outs[k]);
    }
    m.Op(Opcode::MaskLoad, all);
  }
  m.s.columns = m.s.registers;
  m.Op(Opcode::Emit);
  if (loops) m.Op(outer >= 2 ? Opcode::NextOuter : Opcode::Next, 0, body, loop);
  AddSection(&p, m.End());
  NameColumns(&p);
  CheckOptions check;
  check.masked = outer == 3;
  Check(name, std::move(p), std::move(tables), check);
}

void Walk::Joins() {
  const SqlType kInteger = SqlType::Of(TypeId::kInteger), kDate = SqlType::Of(TypeId::kDate);
  const size_t sizes[] = {0, 1, 7, 300, 5000};
  int number = 0;
  auto run = [&](const char* what, const std::vector<SqlType>& keys, int key_style, size_t build, bool unique,
                 int style) {
    JoinCase(fmt::format("join {} keys, style {}, {} {}, {} rows #{}", what, key_style, unique ? "unique" : "N:M",
                         std::array<const char*, 5>{"slots", "registers", "constant", "chained",
                                                    "outer"}[static_cast<size_t>(style)],
                         build, number++),
             keys, key_style, build, unique, style);
    if (style == 4) return;
    for (int outer = 1; outer <= 3; ++outer) {
      JoinCase(fmt::format("outer join {} keys, style {}, form {}, {} {}, {} rows #{}", what, key_style, outer,
                           unique ? "unique" : "N:M", style, build, number++),
               keys, key_style, build, unique, style, outer);
    }
  };
  for (size_t build : sizes) {
    for (bool unique : {true, false}) {
      for (int key_style = 0; key_style < 5; ++key_style) {
        for (int style = 0; style < (unique ? 5 : 4); ++style)
          run("bigint", {kBigint}, key_style, build, unique, style);
      }
      for (int style = 0; style < 3; ++style) {
        run("date", {kDate}, 0, build, unique, style);
        run("text", {kText}, style, build, unique, style);
        run("wide", {kWide}, style, build, unique, style);
        run("float", {kDouble}, style % 3, build, unique, 1);
      }
      for (int key_style = 0; key_style < 4; ++key_style) {
        run("bigint integer", {kBigint, kInteger}, key_style, build, unique, 1);
        run("text bigint", {kText, kBigint}, key_style, build, unique, 1);
        run("wide text double", {kWide, kText, kDouble}, key_style, build, unique, 1);
        run("bigint wide date", {kBigint, kWide, kDate}, key_style, build, unique, unique ? 4 : 1);
      }
    }
    // Every width of a key in a slot.
    for (int width : {1, 2, 4, 8}) {
      key_width_ = width;
      for (bool unique : {true, false}) run("narrow bigint", {kBigint}, 0, std::min<size_t>(build, 40), unique, 0);
    }
    key_width_ = 0;
    if (build <= 300) run("no", {}, 0, std::min<size_t>(build, 40), false, 1);
    if (build <= 1) run("no", {}, 0, build, true, 4);
  }
}

}  // namespace tessera::test::walk
