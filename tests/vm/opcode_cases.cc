// Tables and heads of programs for all cases; every opcode with every kind of operand.
#include "tests/vm/opcode_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test::walk {

using vm::AccumulatorSpec;
using vm::Info;
using vm::Opcode;
using vm::OpcodeInfo;
using vm::Operand;
using vm::OperandSpec;
using vm::PackType;
using vm::Predicate;
using vm::Program;
using vm::Section;
using vm::Shape;
using vm::Tier;
using vm::UnpackType;

size_t Walk::NextSize() {
  // Around the edges of warps, tiles and units of work; the large ones less often.
  static const size_t sizes[] = {33, 2048, 1, 4097, 31, 2049, 32, 4095, 2047, 4096};
  const size_t turn = size_turn_++;
  if (options_.greatest_rows < 70000) {
    const size_t size = turn % 41 == 33 ? 0 : sizes[turn % 10];
    return size <= options_.greatest_rows ? size : 33;
  }
  if (turn % 41 == 17) return turn % 82 == 17 ? 65537 : 65535;
  if (turn % 41 == 33) return 0;
  return sizes[turn % 10];
}

/// Mostly one tablet; sometimes several, with an odd number of rows so that they end within a tile.
uint32_t Walk::TabletRows(size_t rows) {
  if (rows < 64 || Turn(4) != 0) return 1u << 20;
  return rows > 10000 ? 32768 + 33 : std::array<uint32_t, 4>{31, 1000, 2048, 2049}[Turn(4)];
}

std::vector<int64_t> Walk::MaskValues(size_t rows) {
  std::vector<int64_t> mask(rows, 0);
  switch (Turn(8)) {
    case 0:
    case 1:
    case 2:
      std::fill(mask.begin(), mask.end(), 1);
      break;
    case 3:
      break;  // none
    case 4:
      for (size_t i = 0; i < rows; ++i) mask[i] = static_cast<int64_t>(i % 2);
      break;
    case 5:
      for (size_t i = 0; i < rows; ++i) mask[i] = i % 61 == 7 ? 1 : 0;
      break;
    case 6:
      if (rows > 0) mask[Turn(2) == 0 ? rows - 1 : Below(random_, rows)] = 1;
      break;
    default:
      for (size_t i = 0; i < rows; ++i) mask[i] = random_() % 8 < 3 ? 1 : 0;
  }
  return mask;
}

TestTable Walk::MaskedTable(size_t rows) {
  TestTable t;
  t.name = "t";
  t.tablet_rows = TabletRows(rows);
  std::vector<int64_t> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  t.columns.push_back({"row", Integers(kBigint, std::move(numbers)), {FrameForm(4).chunk}});
  t.columns.push_back({"mask", Integers(SqlType::Of(TypeId::kBoolean), MaskValues(rows)), {FrameForm(1).chunk}});
  t.columns[kMaskColumn].forms[0].base = 0;
  return t;
}

int Walk::AddColumn(TestTable* table, const ColumnSpec& spec, size_t rows) {
  MemoryColumn c;
  c.name = fmt::format("c{}", table->columns.size());
  c.values = MakeValues(spec, rows, random_);
  c.forms = {spec.form.chunk};
  if (rows > table->tablet_rows) {
    // A form that holds any values.
    ChunkForm other;
    other.encoding = spec.type.id == TypeId::kText ? Encoding::kPlain : Encoding::kFrame;
    other.width = spec.type.storage() == StorageClass::kWide          ? 16
                  : spec.type.id == TypeId::kReal && !spec.form.nulls ? 4
                                                                      : 8;
    other.null_code = ChunkForm::NullCode::kGap;
    c.forms.push_back(other);
  }
  table->columns.push_back(std::move(c));
  return static_cast<int>(table->columns.size()) - 1;
}

/// Slots row and mask, rows where mask is 1 stay, r0 = row. In one of several ways.
void Walk::Head(Maker* m, Program* p) {
  m->Slot(kRowColumn, kBigint);
  const int mask = m->Slot(kMaskColumn, SqlType::Of(TypeId::kBoolean));
  const int row = m->Register(kBigint);
  const size_t way = Turn(6);
  const Operand slot = Operand::Slot(mask);
  switch (way) {
    case 0:
    case 1: {
      Predicate f;
      f.slot = mask;
      f.low = f.high = AddConstant(p, Value::Int(SqlType::Of(TypeId::kBoolean), 1));
      if (way == 1) f.negated = true, p->constants.back().i64 = 0;
      m->Filter(f);
      break;
    }
    case 2:
      m->Load(kBigint, slot);
      m->Op(Opcode::FilterTrue);
      break;
    case 3: {
      // Those that an earlier arm has not taken.
      const int all = m->Mask(), taken = m->Mask();
      m->Op(Opcode::MaskSave, all);
      m->Op(Opcode::MaskClear, taken);
      m->Load(kBigint, slot);
      m->Op(Opcode::FilterFalse);
      m->Op(Opcode::MaskOr, taken);
      m->Op(Opcode::MaskLoad, all);
      m->Op(Opcode::MaskAndNot, taken);
      break;
    }
    case 4:
      m->Load(kBigint, slot);
      m->Op(Opcode::FilterEqI, 0, Operand::Constant(AddConstant(p, Value::Int(kBigint, 1))).Pack());
      m->Op(Opcode::SkipIfNone);  // Maker::End makes it jump there
      break;
    default: {
      Predicate f;
      f.kind = Predicate::Kind::kIn;
      f.slot = mask;
      for (int64_t v : {1, 5, -3}) f.list.push_back(AddConstant(p, Value::Int(SqlType::Of(TypeId::kBoolean), v)));
      m->Filter(f);
    }
  }
  m->Load(kBigint, Operand::Slot(0));
  m->Store(row);
}

Value Walk::RandomConstant(const SqlType& type, const std::vector<std::string>* strings) {
  if (type.id == TypeId::kText) {
    Value v = Value::Text(Pick(random_, strings != nullptr ? *strings : PlainStrings()));
    v.type = type;
    return v;
  }
  const auto [low, high] = RangeOf(type);
  std::vector<int128_t> edges;
  for (int128_t v : EdgesOf(type, low, high)) {
    if (IsValue(type, v)) edges.push_back(v);
  }
  return ToValue(type, Pick(random_, edges));
}

/// A SQL type of a class, another one each time; of the kind that the opcode works on.
SqlType Walk::TypeFor(AccumulatorSpec c, Opcode op) {
  switch (c) {
    case AccumulatorSpec::F:
      return Turn(3) == 0 ? SqlType::Of(TypeId::kReal) : kDouble;
    case AccumulatorSpec::T:
      return kText;
    case AccumulatorSpec::W:
      return Turn(2) == 0 ? kWide : SqlType::Decimal(38, 10);
    default:
      break;
  }
  if (op == Opcode::DatePartD || op == Opcode::AddMonthsD) return SqlType::Of(TypeId::kDate);
  if (op == Opcode::DatePartT || op == Opcode::AddMonthsT) return SqlType::Of(TypeId::kTimestamp);
  if (Info(op).shape == Shape::AddInterval || Info(op).shape == Shape::Between) return SqlType::Of(TypeId::kTimestamp);
  static const std::vector<SqlType> types = {kBigint,
                                             kBigint,
                                             SqlType::Of(TypeId::kInteger),
                                             SqlType::Decimal(18, 4),
                                             SqlType::Of(TypeId::kSmallint),
                                             SqlType::Of(TypeId::kBoolean),
                                             SqlType::Of(TypeId::kTimestamp),
                                             SqlType::Of(TypeId::kDate)};
  return types[Turn(types.size())];
}

AccumulatorSpec ClassOf(const SqlType& t) {
  switch (t.storage()) {
    case StorageClass::kFloat:
      return AccumulatorSpec::F;
    case StorageClass::kText:
      return AccumulatorSpec::T;
    case StorageClass::kWide:
      return AccumulatorSpec::W;
    default:
      return AccumulatorSpec::I;
  }
}

const char* ClassName(AccumulatorSpec c) {
  switch (c) {
    case AccumulatorSpec::F:
      return "F";
    case AccumulatorSpec::T:
      return "T";
    case AccumulatorSpec::W:
      return "W";
    default:
      return "I";
  }
}

SqlType AnyType(AccumulatorSpec c) {
  switch (c) {
    case AccumulatorSpec::F:
      return kDouble;
    case AccumulatorSpec::T:
      return kText;
    case AccumulatorSpec::W:
      return kWide;
    default:
      return kBigint;
  }
}

/// One program: A or W is loaded from a column, the opcode is applied with an operand of `kind`, the result is emitted
/// beside the row's number. The operand is stored under `form`; for opcodes without one, the accumulator is.
void Walk::OperandCase(Opcode op, AccumulatorSpec c, Kind kind, const SqlType& type, const Form& form,
                       int32_t variant) {
  const OpcodeInfo& info = Info(op);
  static const char* const kinds[] = {"slot", "register", "constant", "payload", "result"};
  const std::string name = fmt::format("{} {} {} {} {} #{}", info.name, ClassName(c), kinds[static_cast<int>(kind)],
                                       type.ToString(), form.ToString(), variant);
  if (!Wanted(name)) return;
  Program p;
  std::vector<TestTable> tables;
  const size_t rows = NextSize();
  tables.push_back(MaskedTable(rows));

  const bool has_operand =
      info.p[1] == OperandSpec::Src || info.p[1] == OperandSpec::SrcW || info.p[1] == OperandSpec::SrcInt;
  const bool loads = info.in == AccumulatorSpec::None;  // Load, LoadW
  const bool substring = info.shape == Shape::TextSubstring;
  // Texts of other lengths than a few characters would fill the memory.
  const bool lengthens = op == Opcode::RepeatT || info.shape == Shape::TextPad;
  const bool counts = substring || info.shape == Shape::TextNumber || info.shape == Shape::TextPad;
  const std::vector<std::string>* const strings =
      info.shape == Shape::FromText || op == Opcode::ZoneParseT ? &NumberStrings() : nullptr;

  // `type` and `form` are the operand's, or the accumulator's if there is no operand. Months, places and lengths are
  // small most of the time.
  const bool months = op == Opcode::AddMonthsD || op == Opcode::AddMonthsT;
  const SqlType b_type = type;
  const bool moments = info.shape == Shape::Zone && c == AccumulatorSpec::I;
  const SqlType a_type = info.shape == Shape::ToText ? UnpackType(variant)
                         : moments                   ? SqlType::Of(TypeId::kTimestamp)
                         : has_operand               ? TypeFor(c, op)
                                                     : type;
  const Form a_form = has_operand || a_type != type ? Pick(random_, FormsOf(a_type)) : form;
  Form b_form = form;
  if (lengthens && form.chunk.encoding == Encoding::kConstant) {
    b_form.low = b_form.high = 3;
  } else if (lengthens || ((counts || months) && Turn(3) != 0)) {
    b_form = FrameForm(form.chunk.width == 0 || form.chunk.width == 16 ? 4 : form.chunk.width, form.nulls);
    b_form.low = counts ? -3 : -60;
    b_form.high = counts ? 12 : 60;
    b_form.chunk.base = b_form.low;
  }
  const size_t edges_of_a =
      c == AccumulatorSpec::T ? PlainStrings().size() : EdgesOf(a_type, a_form.low, a_form.high).size();
  const int a_column = loads ? -1 : AddColumn(&tables[0], {a_type, a_form, strings}, rows);

  // Where the operand is.
  const bool by_column = has_operand && kind != Kind::kConstant;
  const bool payload = kind == Kind::kPayload;
  const size_t build_rows = payload ? std::array<size_t, 4>{1, 40, 700, 5}[Turn(4)] : 0;
  int b_column = -1, length_column = -1;
  const ColumnSpec b_spec{b_type, b_form, nullptr, 0, payload ? 1 : std::max<size_t>(1, edges_of_a)};
  int key_column = -1;
  if (payload) {
    std::vector<int64_t> keys(rows);
    for (int64_t& k : keys) k = static_cast<int64_t>(Below(random_, build_rows + 2)) - 1;
    key_column = static_cast<int>(tables[0].columns.size());
    tables[0].columns.push_back({"key", Integers(kBigint, std::move(keys)), {FrameForm(2).chunk}});
    TestTable build;
    build.name = "u";
    build.tablet_rows = 1u << 20;
    std::vector<int64_t> build_keys(build_rows);
    std::iota(build_keys.begin(), build_keys.end(), int64_t{0});
    build.columns.push_back({"key", Integers(kBigint, std::move(build_keys)), {FrameForm(4).chunk}});
    tables.push_back(std::move(build));
    b_column = AddColumn(&tables[1], b_spec, build_rows);
    if (substring) length_column = AddColumn(&tables[1], {kBigint, b_form, nullptr, 0, 3}, build_rows);
  } else if (by_column) {
    b_column = AddColumn(&tables[0], b_spec, rows);
    if (substring) length_column = AddColumn(&tables[0], {kBigint, b_form, nullptr, 0, 3}, rows);
  }
  if (info.shape == Shape::TextPart) {
    Form numbers = FrameForm(std::array<int, 4>{8, 1, 2, 4}[text_parts_ % 4], Turn(3) == 0);
    numbers.low = -3;
    numbers.high = 6;
    if (text_parts_ % 7 == 6) {
      numbers = Form{};
      numbers.chunk.encoding = Encoding::kConstant;
      numbers.low = numbers.high = 2;
    } else {
      numbers.chunk.base = numbers.low;
    }
    length_column = AddColumn(&tables[0], {kBigint, numbers, nullptr, 0, 3}, rows);
  }
  AddTables(&p, tables);
  if (payload) {
    // The host may build from what a GPU emits, or from the table.
    const bool from_rows = Turn(2) == 0;
    const std::vector<SqlType> types =
        substring ? std::vector<SqlType>{kBigint, b_type, kBigint} : std::vector<SqlType>{kBigint, b_type};
    const std::vector<int> columns = {0, b_column, length_column};
    if (from_rows) {
      Maker r(Section::Source::kTable, 1, Section::Sink::kRows, "scan u");
      for (size_t i = 0; i < types.size(); ++i) r.Keep(types[i], Operand::Slot(r.Slot(columns[i], types[i])));
      AddSection(&p, r.Finish(Opcode::Emit, static_cast<int>(types.size())));
    }
    Maker b(from_rows ? Section::Source::kSection : Section::Source::kTable, from_rows ? 0 : 1, Section::Sink::kJoin,
            "build u");
    for (size_t i = 0; i < types.size(); ++i) {
      b.Keep(types[i], Operand::Slot(b.Slot(from_rows ? static_cast<int>(i) : columns[i], types[i])));
    }
    b.s.join = 0;
    b.s.keys = 1;
    p.joins.push_back({true, AddSection(&p, b.Finish(Opcode::Build, static_cast<int>(types.size())))});
  }

  Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
  Head(&m, &p);
  if (kind == Kind::kResult) {
    // The opcode works on rows that an earlier section emitted: here it only copies them.
    std::vector<SqlType> types;
    std::vector<int> columns;
    for (int column : {a_column, b_column, length_column}) {
      if (column < 0) continue;
      columns.push_back(column);
      types.push_back(tables[0].columns[static_cast<size_t>(column)].values.type);
      m.Keep(types.back(), Operand::Slot(m.Slot(column, types.back())));
    }
    const int from = AddSection(&p, m.Finish(Opcode::Emit, static_cast<int>(types.size()) + 1));
    m = Maker(Section::Source::kSection, from, Section::Sink::kRows, "scan rows");
    m.Keep(kBigint, Operand::Slot(m.Slot(0, kBigint)));
    int next = 1;
    for (size_t i = 0; i < types.size(); ++i) m.Slot(next++, types[i]);
    // Slots 1.. are the columns in the order above.
  }
  auto slot_of = [&](int column, const SqlType& slot_type) {
    if (kind != Kind::kResult) return m.Slot(column, slot_type);
    int at = 1;
    for (int other : {a_column, b_column, length_column}) {
      if (other == column) break;
      if (other >= 0) ++at;
    }
    return at;
  };
  if (payload) m.Op(Opcode::Probe, 0, Operand::Slot(m.Slot(key_column, kBigint)).Pack(), 1);

  auto operand = [&](int column, const SqlType& operand_type, int payload_index) {
    switch (kind) {
      case Kind::kSlot:
      case Kind::kResult:
        return Operand::Slot(slot_of(column, operand_type));
      case Kind::kRegister:
        return Operand::Register(m.Keep(operand_type, Operand::Slot(slot_of(column, operand_type))));
      case Kind::kPayload:
        return Operand::Payload(0, payload_index);
      case Kind::kConstant:
        break;
    }
    Value v = RandomConstant(operand_type, strings);
    if (op == Opcode::LabelT)
      v = Value::Text(
          "type\x1F"
          "a\x1F"
          "abc\x1F\x1F"
          "MFGR#12");
    constexpr Opcode kOfRegex[] = {Opcode::RegexMatchT, Opcode::RegexGroupT, Opcode::RegexFirstT,
                                   Opcode::RegexAllT,   Opcode::RegexTimesT, Opcode::RegexBeginT};
    if (op == Opcode::PatternT) v = Value::Text(Turn(4) == 0 ? "" : Turn(2) == 0 ? "\\" : "a");
    if (std::find(std::begin(kOfRegex), std::end(kOfRegex), op) != std::end(kOfRegex))
      v = Value::Text(Pick(random_, RegexPatterns()));
    if (counts) v = Value::Int(kBigint, static_cast<int64_t>(Below(random_, 12)) - 2);
    if (counts && Turn(7) == 0) v = Value::Int(kBigint, Turn(2) == 0 ? INT64_MAX : INT64_MIN);
    if (months && Turn(3) != 0) v = Value::Int(kBigint, static_cast<int64_t>(Below(random_, 100)) - 50);
    if (Turn(11) == 3) v = Value::Null(operand_type);
    return Operand::Constant(AddConstant(&p, v));
  };
  int32_t p2 = 0, p3 = 0, p4 = 0;
  if (has_operand) {
    p2 = operand(b_column, b_type, 0).Pack();
    if (substring) p3 = variant == 1 && kind != Kind::kPayload ? -1 : operand(length_column, kBigint, 1).Pack();
  }
  if (info.shape == Shape::Ternary || info.shape == Shape::MakeWide) {
    const Operand slot = Operand::Slot(slot_of(a_column, a_type));
    const Value v = Turn(5) == 0 ? Value::Null(b_type) : RandomConstant(b_type, nullptr);
    const int turn = static_cast<int>(Turn(3));
    p3 = (turn == 0   ? slot
          : turn == 1 ? Operand::Register(m.Keep(a_type, slot))
                      : Operand::Constant(AddConstant(&p, v)))
             .Pack();
  }
  if (info.shape == Shape::TextReplace || info.shape == Shape::TextPad) {
    const Operand slot = Operand::Slot(slot_of(a_column, a_type));
    const Value v = Turn(5) == 0 ? Value::Null(kText) : Value::Text(Turn(4) == 0 ? "" : Pick(random_, PlainStrings()));
    const int turn = static_cast<int>(Turn(4));
    p3 = (turn == 0   ? slot
          : turn == 1 ? Operand::Register(m.Keep(a_type, slot))
                      : Operand::Constant(AddConstant(&p, v)))
             .Pack();
  }
  if (info.shape == Shape::TextPart) {
    const Value v = Turn(9) == 0 ? Value::Null(kBigint) : Value::Int(kBigint, static_cast<int64_t>(Turn(8)) - 3);
    const Operand number = Operand::Constant(AddConstant(&p, v));
    const size_t turn = text_parts_++ / 4 % 4;
    p3 = (turn == 0   ? Operand::Slot(slot_of(length_column, kBigint))
          : turn == 1 ? Operand::Register(m.Keep(kBigint, number))
                      : number)
             .Pack();
  }
  if (!loads) m.Load(a_type, Operand::Slot(slot_of(a_column, a_type)));
  switch (info.shape) {
    case Shape::UnaryField:
    case Shape::BinaryField:
    case Shape::TextCut:
    case Shape::ToText:
    case Shape::FromText:
      p3 = variant;
      break;
    case Shape::Format:
      p3 = variant;
      p4 = UnpackType(variant).IsNumeric() ? 0 : static_cast<int32_t>(Turn(2));
      p2 = AddConstant(&p, Value::Text(FormatFor(UnpackType(variant), p4)));
      break;
    case Shape::Check: {
      Value low = RandomConstant(AnyType(c), nullptr), high = RandomConstant(AnyType(c), nullptr);
      if (c == AccumulatorSpec::W ? low.wide > high.wide : low.i64 > high.i64) std::swap(low, high);
      p2 = AddConstant(&p, low);
      p3 = AddConstant(&p, high);
      p4 = PackType(c == AccumulatorSpec::W ? SqlType::Decimal(20, 2) : SqlType::Of(TypeId::kInteger));
      break;
    }
    case Shape::Like: {
      static const std::vector<std::string> patterns = {"",      "%",     "_",      "a%",        "%a",
                                                        "%a%",   "__",    "_%_",    "MFGR#12%",  "%12__",
                                                        "a\\%b", "a\\_b", "a\\\\b", "%\xC3\xA9", "\xC3\xA9_\xC3\xA9",
                                                        "%a%b%", "%%",    "_b",     "A%A",       "abc",
                                                        "%aab",  "___ %", "key%9"};
      const bool regex = op == Opcode::FilterRegex || op == Opcode::FilterNotRegex;
      const std::vector<std::string>& list = regex ? RegexPatterns() : patterns;
      p2 = AddConstant(&p, Value::Text(list[static_cast<size_t>(variant) % list.size()]));
      break;
    }
    case Shape::RegexPart: {
      const std::string& pattern = RegexPatterns()[static_cast<size_t>(variant) % RegexPatterns().size()];
      const bool group = pattern.find("(b)") != std::string::npos;
      p2 = AddConstant(&p, Value::Text(pattern));
      if (op == Opcode::RegexPartT) {
        p3 = group ? static_cast<int32_t>(Turn(2)) : 0;
        p4 = static_cast<int32_t>(Turn(4));
      }
      break;
    }
    case Shape::Zone: {
      static constexpr const char* kZones[] = {"UTC", "Europe/Berlin", "America/New_York"};
      p2 = AddConstant(&p, Value::Text(kZones[variant]));
      p3 = op == Opcode::ZoneParseT ? static_cast<int32_t>(Turn(2)) : 0;
      break;
    }
    case Shape::RegexReplace: {
      static const std::vector<std::string> replacements = {"", "<\\&>", "\\1-\\1", "\\\\", "\xC3\xA9", "\\7\\"};
      p2 = AddConstant(&p, Value::Text(RegexPatterns()[static_cast<size_t>(variant) % RegexPatterns().size()]));
      p3 = AddConstant(&p, Value::Text(Pick(random_, replacements)));
      p4 = static_cast<int32_t>(Turn(2));
      break;
    }
    default:
      break;
  }
  m.Op(op, 0, p2, p3, p4);
  if (info.out != AccumulatorSpec::None) {
    const SqlType out = info.out == AccumulatorSpec::X            ? (loads ? b_type : a_type)
                        : info.out == AccumulatorSpec::W && loads ? b_type
                                                                  : AnyType(info.out);
    m.Store(m.Register(out));
    if (ClassOf(out) != c && ClassOf(out) == AccumulatorSpec::I && Turn(3) == 0) {
      // The accumulator is still what the opcode made of it.
      m.Op(Opcode::FilterGeI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
    }
    AddSection(&p, m.Finish(Opcode::Emit, static_cast<int>(m.s.registers.size())));
  } else {
    AddSection(&p, m.Finish(Opcode::Emit, 1));
  }
  NameColumns(&p);
  CheckOptions check;
  check.masked = true;
  Check(name, std::move(p), std::move(tables), check);
}

namespace {

/// Values of the field in P3 that an opcode is walked with.
std::vector<int32_t> VariantsOf(Opcode op) {
  const OpcodeInfo& info = Info(op);
  std::vector<int32_t> out = {0};
  switch (info.shape) {
    case Shape::UnaryField:
      out.clear();
      if (op == Opcode::RoundDigitsF) {
        out = {0, 1, 2, 3, 6, 15, 22, -1, -2, -6, -15, -22};
      } else if (op == Opcode::MathF) {
        for (int32_t function = 0; function < kMathNames; ++function) out.push_back(function);
      } else {
        for (int32_t field = 0; field < 12; ++field) out.push_back(field);
      }
      break;
    case Shape::BinaryField:
      out = {kMathNames, kMathNames + 1, kMathNames + 2};
      break;
    case Shape::TextCut:
      out = {0, 1, 2, 5, 100, INT32_MAX};
      break;
    case Shape::Zone:
      out = {0, 1, 2};
      break;
    case Shape::TextSubstring:
      out = {0, 1};
      break;
    case Shape::Like:
    case Shape::RegexPart:
    case Shape::RegexReplace:
      out.clear();
      for (int32_t i = 0; i < 23; ++i) out.push_back(i);
      break;
    case Shape::Format:
    case Shape::ToText:
    case Shape::FromText: {
      out.clear();
      const AccumulatorSpec c = info.shape == Shape::FromText ? info.out : info.in;
      std::vector<SqlType> types;
      if (c == AccumulatorSpec::W) {
        types = {SqlType::Decimal(38, 0), SqlType::Decimal(38, 10), SqlType::Decimal(19, 2)};
      } else if (c == AccumulatorSpec::F) {
        types = {SqlType::Of(TypeId::kReal), kDouble};
      } else {
        for (TypeId id : {TypeId::kBoolean, TypeId::kSmallint, TypeId::kInteger, TypeId::kBigint, TypeId::kDate,
                          TypeId::kTimestamp})
          types.push_back(SqlType::Of(id));
        types.push_back(SqlType::Decimal(18, 4));
        types.push_back(SqlType::Decimal(9, 2));
        types.push_back(SqlType::Decimal(5, 0));
      }
      for (const SqlType& t : types) {
        if (info.shape != Shape::Format || t.id != TypeId::kBoolean) out.push_back(PackType(t));
      }
      break;
    }
    default:
      break;
  }
  return out;
}

}  // namespace

/// An opcode with an accumulator of class `c` (or, for loads, an operand of it): every form of its operand, every kind
/// of operand.
void Walk::WalkOperands(Opcode op, AccumulatorSpec c) {
  const OpcodeInfo& info = Info(op);
  const bool has_operand =
      info.p[1] == OperandSpec::Src || info.p[1] == OperandSpec::SrcW || info.p[1] == OperandSpec::SrcInt;
  const std::vector<int32_t> variants = VariantsOf(op);
  std::vector<SqlType> types;
  if (info.p[1] == OperandSpec::SrcInt || op == Opcode::AddMonthsD || op == Opcode::AddMonthsT) {
    types = {kBigint};
  } else if (info.shape == Shape::AddInterval || info.shape == Shape::IntervalTimes) {
    types = {kWide};
  } else if (info.shape == Shape::Between) {
    types = {SqlType::Of(TypeId::kTimestamp)};
  } else if (!has_operand && (op == Opcode::DatePartD || op == Opcode::DatePartT)) {
    types = {TypeFor(c, op)};
  } else if (c == AccumulatorSpec::F) {
    types = {kDouble, SqlType::Of(TypeId::kReal)};
  } else {
    types = {AnyType(c)};
    if (!has_operand && c == AccumulatorSpec::I) types.push_back(TypeFor(c, op));
  }
  const Kind first = Kind::kSlot;
  for (const SqlType& type : types) {
    const std::vector<Form>& forms = FormsOf(type);
    for (size_t i = 0; i < std::max(forms.size(), variants.size()); ++i)
      OperandCase(op, c, first, type, forms[i % forms.size()], variants[i % variants.size()]);
    // The host interprets sections over the results of others.
    for (int i = 0; i < 3 && gpu_ == nullptr; ++i)
      OperandCase(op, c, Kind::kResult, type, Pick(random_, forms), Pick(random_, variants));
    if (!has_operand) continue;
    for (int i = 0; i < 6; ++i)
      OperandCase(op, c, Kind::kRegister, type, Pick(random_, forms), Pick(random_, variants));
    for (int i = 0; i < 16; ++i)
      OperandCase(op, c, Kind::kConstant, type, Pick(random_, forms), Pick(random_, variants));
    for (int i = 0; i < 6; ++i) OperandCase(op, c, Kind::kPayload, type, Pick(random_, forms), Pick(random_, variants));
  }
}

/// Every opcode has its case here: by its shape, or in a part of its own that Run() calls. There is no default: a new
/// shape does not compile, and a new opcode of a known shape is walked and fails until Reference knows its meaning.
void Walk::WalkOpcode(Opcode op) {
  const OpcodeInfo& info = Info(op);
  if (gpu_ != nullptr && info.tier == Tier::Host) return;  // in TextMaps
  switch (info.shape) {
    case Shape::End:
    case Shape::SkipIfNone:
    case Shape::MaskRegister:
    case Shape::Store:
    case Shape::StoreWide:
    case Shape::Emit:    // everywhere; Masks
    case Shape::Filter:  // Predicates
    case Shape::Next:
    case Shape::NextOuter:
    case Shape::Probe:
    case Shape::ProbeOuter:
    case Shape::TestMatch:
    case Shape::Refuse:
    case Shape::Build:  // Joins
    case Shape::Group:
    case Shape::CountRows:
    case Shape::CountValues:
    case Shape::Fold:
    case Shape::FoldText:
    case Shape::Total:  // Groups
      return;
    case Shape::Test:
    case Shape::TestNull:
    case Shape::Compare:
    case Shape::TextCompare:
    case Shape::Like:
    case Shape::Load:
    case Shape::LoadWide:
    case Shape::Binary:
    case Shape::Ternary:
    case Shape::Unary:
    case Shape::UnaryField:
    case Shape::BinaryField:
    case Shape::Check:
    case Shape::TextUnary:
    case Shape::TextCut:
    case Shape::TextLength:
    case Shape::TextNumber:
    case Shape::TextFind:
    case Shape::TextReplace:
    case Shape::TextPad:
    case Shape::TextPart:
    case Shape::RegexPart:
    case Shape::AddInterval:
    case Shape::Between:
    case Shape::IntervalTimes:
    case Shape::MakeWide:
    case Shape::Zone:
    case Shape::RegexReplace:
    case Shape::TextConcat:
    case Shape::TextSubstring:
    case Shape::ToText:
    case Shape::FromText:
    case Shape::Place:
    case Shape::Format:
      break;
  }
  // X stands for the three narrow classes, before (tests) or after (loads).
  const AccumulatorSpec c = info.in == AccumulatorSpec::None ? info.out : info.in;
  if (c != AccumulatorSpec::X) return WalkOperands(op, c);
  for (AccumulatorSpec one : {AccumulatorSpec::I, AccumulatorSpec::F, AccumulatorSpec::T}) WalkOperands(op, one);
}

}  // namespace tessera::test::walk
