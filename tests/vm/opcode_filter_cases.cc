// Cases that filter rows: masks, predicates, dictionary sections.
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/vm/opcode_cases.h"

namespace tessera::test::walk {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::PackType;
using vm::Predicate;
using vm::Program;
using vm::Section;

/// OR and CASE as the compiler makes them: arms collected in mask registers, results in one register.
void Walk::Masks() {
  for (int i = 0; i < 60; ++i) {
    const std::string name = fmt::format("masks {}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    const int a = AddColumn(&tables[0], {kBigint, Pick(random_, FormsOf(kBigint))}, rows);
    const int b = AddColumn(&tables[0], {kDouble, Pick(random_, FormsOf(kDouble))}, rows);
    const int d = AddColumn(&tables[0], {kWide, Pick(random_, FormsOf(kWide))}, rows);
    AddTables(&p, tables);
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    const Operand sa = Operand::Slot(m.Slot(a, kBigint)), sb = Operand::Slot(m.Slot(b, kDouble)),
                  sd = Operand::Slot(m.Slot(d, kWide));
    const int all = m.Mask(), taken = m.Mask(), third = m.Mask();
    const int out = m.Register(kBigint), wide = m.Register(kWide);
    m.Op(Opcode::MaskSave, all);
    m.Op(Opcode::MaskClear, taken);
    // An arm: where A > constant, out = A; with or without a jump over an empty one.
    m.Load(kBigint, sa);
    m.Op(Opcode::FilterGtI, 0, Operand::Constant(AddConstant(&p, RandomConstant(kBigint, nullptr))).Pack());
    m.Op(Opcode::MaskOr, taken);
    const int skip = i % 2 == 0 ? m.Op(Opcode::SkipIfNone, 0, 1) : -1;
    m.Load(kBigint, sa);
    m.Store(out);
    m.Load(kWide, sd);
    m.Store(wide);
    if (skip >= 0) m.s.code[static_cast<size_t>(skip)].p2 = m.Here();
    // The next: where B is not NULL and B <= constant, and not taken before.
    m.Op(Opcode::MaskLoad, all);
    m.Op(Opcode::MaskAndNot, taken);
    m.Op(Opcode::MaskSave, third);
    m.Load(kDouble, sb);
    m.Op(Opcode::FilterNotNull);
    m.Op(Opcode::FilterLeF, 0, Operand::Constant(AddConstant(&p, RandomConstant(kDouble, nullptr))).Pack());
    m.Op(Opcode::MaskOr, taken);
    m.Load(kBigint, Operand::Constant(AddConstant(&p, i % 3 == 0 ? Value::Null(kBigint) : Value::Int(kBigint, 17))));
    m.Store(out);
    m.Load(kWide,
           Operand::Constant(AddConstant(&p, i % 3 == 1 ? Value::Null(kWide) : Value::Wide(kWide, PowerOf10(30)))));
    m.Store(wide);
    // ELSE, or nothing: then only the rows taken are emitted.
    m.Op(Opcode::MaskLoad, third);
    m.Op(Opcode::MaskAndNot, taken);
    m.Load(kBigint, Operand::Constant(AddConstant(&p, Value::Int(kBigint, -1))));
    m.Store(out);
    m.Load(kWide, Operand::Constant(AddConstant(&p, Value::Wide(kWide, -1))));
    m.Store(wide);
    m.Op(Opcode::MaskLoad, i % 4 == 3 ? taken : all);
    AddSection(&p, m.Finish(Opcode::Emit, 3));
    NameColumns(&p);
    CheckOptions check;
    check.masked = true;
    Check(name, std::move(p), std::move(tables), check);
  }
}

void Walk::Predicates() {
  std::vector<SqlType> types = {kBigint,
                                SqlType::Of(TypeId::kBoolean),
                                SqlType::Of(TypeId::kSmallint),
                                SqlType::Of(TypeId::kInteger),
                                SqlType::Of(TypeId::kReal),
                                kDouble,
                                SqlType::Decimal(9, 2),
                                SqlType::Decimal(18, 4),
                                SqlType::Decimal(38, 10),
                                SqlType::Of(TypeId::kDate),
                                SqlType::Of(TypeId::kTimestamp),
                                kText};
  for (const SqlType& type : types) {
    const bool text = type.id == TypeId::kText;
    size_t number = 0;
    for (const Form& form : FormsOf(type)) {
      for (int i = 0; i < (text ? 40 : 9); ++i) {
        const std::string name = fmt::format("predicate {} {} #{}", type.ToString(), form.ToString(), number++);
        if (!Wanted(name)) continue;
        Program p;
        const size_t rows = NextSize();
        std::vector<TestTable> tables = {MaskedTable(rows)};
        const int column = AddColumn(&tables[0], {type, form}, rows);
        AddTables(&p, tables);
        const ColumnVector& values = tables[0].columns[static_cast<size_t>(column)].values;
        // Bounds: the column's own values and their neighbours, the ends of the type and what lies beyond the column's.
        auto bound = [&]() -> int32_t {
          Value v = RandomConstant(type, nullptr);
          const size_t kind = Below(random_, 6);
          if (kind < 3 && rows > 0) {
            const size_t row = Below(random_, rows);
            if (!values.IsNull(row)) {
              if (text) {
                v.text = std::string(values.Text(row)) + (kind == 2 ? "\x01" : "");
              } else {
                const int128_t at = OrderedValue(values, row);
                const auto [least, greatest] = RangeOf(type);
                const int128_t near = kind == 0   ? at
                                      : kind == 1 ? at - (at > least ? 1 : 0)
                                                  : at + (at < greatest ? 1 : 0);
                v = ToValue(type, IsValue(type, near) ? near : at);
              }
            }
          } else if (kind == 3 && !text) {
            const int128_t end = Turn(2) == 0 ? form.low : form.high;
            if (IsValue(type, end)) v = ToValue(type, end);
          } else if (kind == 4 && type.id == TypeId::kReal) {
            v.f64 = std::vector<double>{
                0.1, -0.1, 1e300, -1e300, 1e-300, -1e-300, 16777217.0, 3.4028236e38}[Below(random_, 8)];  // no singles
          }
          return AddConstant(&p, v);
        };
        Predicate f;
        f.negated = Turn(3) == 0;
        std::optional<Section> map;
        const size_t kind = text ? Turn(5) : Turn(4) == 3 ? 3 : i % 9 < 6 ? 0 : i % 9 < 8 ? 1 : 2;
        switch (kind) {
          case 0:
          case 4:
            f.kind = Predicate::Kind::kRange;
            f.low = Turn(5) == 0 ? -1 : bound();
            f.high = Turn(5) == 1 ? -1 : Turn(6) == 0 ? f.low : bound();
            f.low_inclusive = Turn(3) != 0;
            f.high_inclusive = Turn(3) != 1;
            break;
          case 1:
          case 3: {
            if (kind == 3 && text) {
              f.kind = Predicate::Kind::kMapped;
              Maker d(Section::Source::kDictionary, 0, Section::Sink::kMap, "dictionary");
              d.Slot(0, kText);
              d.Load(kText, Operand::Slot(0));
              if (Turn(2) == 0) {
                d.Op(Turn(2) == 0 ? Opcode::FilterLike : Opcode::FilterNotLike, 0,
                     AddConstant(&p, Value::Text(Turn(2) == 0 ? "%a%" : "k%9")));
              } else {
                d.Op(Opcode::LengthT);
                d.Op(Opcode::FilterLtI, 0,
                     Operand::Constant(AddConstant(&p, Value::Int(kBigint, static_cast<int64_t>(Below(random_, 8)))))
                         .Pack());
              }
              map = d.Finish(Opcode::Emit, 0);
              break;
            }
            f.kind = Predicate::Kind::kIn;
            const size_t n = std::vector<size_t>{1, 2, 0, 5, 40}[Turn(5)];
            for (size_t k = 0; k < n; ++k) f.list.push_back(bound());
            break;
          }
          default:
            f.kind = Turn(2) == 0 ? Predicate::Kind::kIsNull : Predicate::Kind::kIsNotNull;
            f.negated = false;
        }
        if (map) f.map = AddSection(&p, *map);
        Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
        const bool first = Turn(3) != 0;  // at the head it can skip tablets
        const int slot_first = first ? m.Slot(column, type) : -1;
        if (first) {
          f.slot = slot_first;
          m.Filter(f);
          const int row = m.Slot(kRowColumn, kBigint);
          m.Keep(kBigint, Operand::Slot(row));
        } else {
          Head(&m, &p);
          f.slot = m.Slot(column, type);
          m.Filter(f);
        }
        AddSection(&p, m.Finish(Opcode::Emit, 1));
        NameColumns(&p);
        Check(name, std::move(p), std::move(tables));
      }
    }
  }
}

/// Functions of TEXT, evaluated once per entry, as the value of a slot.
void Walk::TextMaps() {
  struct Function {
    const char* name;
    SqlType type;
    std::vector<Instruction> code;
  };
  auto op = [](Opcode o, int32_t p2 = 0, int32_t p3 = 0) { return Instruction{o, 0, p2, p3, 0}; };
  for (int i = 0; i < 400; ++i) {
    Program p;
    const int32_t one = Operand::Constant(AddConstant(&p, Value::Int(kBigint, 1 + i % 3))).Pack();
    const int32_t three = Operand::Constant(AddConstant(&p, Value::Int(kBigint, 3))).Pack();
    const int32_t suffix = Operand::Constant(AddConstant(&p, Value::Text("#\xC3\xA9"))).Pack();
    const int32_t middle = Operand::Constant(AddConstant(&p, Value::Text("b"))).Pack();
    const int32_t null = Operand::Constant(AddConstant(&p, Value::Null(kText))).Pack();
    const int32_t pattern = AddConstant(&p, Value::Text(i % 2 == 0 ? "%a%" : "_%"));
    const int32_t regex =
        AddConstant(&p, Value::Text(RegexPatterns()[static_cast<size_t>(i) % RegexPatterns().size()]));
    const int32_t hash = AddConstant(&p, Value::Text("#\\&"));
    const std::vector<Function> functions = {
        {"upper", kText, {op(Opcode::UpperT)}},
        {"lower", kText, {op(Opcode::LowerT)}},
        {"trim", kText, {op(Opcode::TrimT)}},
        {"ltrim", kText, {op(Opcode::TrimLeftT)}},
        {"rtrim", kText, {op(Opcode::TrimRightT)}},
        {"cut", kText, {op(Opcode::CutT, 0, 2)}},
        {"length", kBigint, {op(Opcode::LengthT)}},
        {"concat", kText, {op(Opcode::ConcatT, suffix)}},
        {"concat null", kText, {op(Opcode::ConcatT, null)}},
        {"substring", kText, {op(Opcode::SubstringT, one, three)}},
        {"rest", kText, {op(Opcode::SubstringT, three, -1)}},
        {"reverse", kText, {op(Opcode::ReverseT)}},
        {"initcap of reverse", kText, {op(Opcode::ReverseT), op(Opcode::InitcapT)}},
        {"md5", kText, {op(Opcode::Md5T)}},
        {"sha256", kText, {op(Opcode::Sha256T)}},
        {"hash", kBigint, {op(Opcode::HashT)}},
        {"ascii", kBigint, {op(Opcode::AsciiT)}},
        {"left", kText, {op(Opcode::LeftT, one)}},
        {"right if equal", kText, {op(Opcode::RightT, one), op(Opcode::FilterEqT, middle)}},
        {"repeat", kText, {op(Opcode::RepeatT, three)}},
        {"position", kBigint, {op(Opcode::PositionT, middle)}},
        {"replace", kText, {op(Opcode::ReplaceT, middle, suffix)}},
        {"translate if different", kText, {op(Opcode::TranslateT, middle, suffix), op(Opcode::FilterNeT, middle)}},
        {"lpad", kText, {op(Opcode::LpadT, three, suffix)}},
        {"rpad", kText, {op(Opcode::RpadT, three, middle)}},
        {"split_part", kText, {op(Opcode::SplitPartT, middle, one)}},
        {"length to double",
         kDouble,
         {op(Opcode::LengthT), op(Opcode::IToF),
          op(Opcode::MulF, Operand::Constant(AddConstant(&p, Value::Float(kDouble, 0.1))).Pack())}},
        {"length to text", kText, {op(Opcode::LengthT), op(Opcode::IToT, 0, PackType(kBigint))}},
        {"and back",
         kBigint,
         {op(Opcode::LengthT), op(Opcode::IToT, 0, PackType(kBigint)), op(Opcode::TToI, 0, PackType(kBigint))}},
        {"and double",
         kDouble,
         {op(Opcode::LengthT), op(Opcode::IToF), op(Opcode::FToT, 0, PackType(kDouble)),
          op(Opcode::TToF, 0, PackType(kDouble))}},
        {"and wide",
         kText,
         {op(Opcode::LengthT), op(Opcode::IToT, 0, PackType(kBigint)),
          op(Opcode::TToW, 0, PackType(SqlType::Decimal(30, 2))),
          op(Opcode::WToT, 0, PackType(SqlType::Decimal(30, 2)))}},
        {"tried", kBigint, {{Opcode::TToI, 0, 0, PackType(kBigint), 1}}},
        {"tried as wide",
         kText,
         {{Opcode::TToW, 0, 0, PackType(SqlType::Decimal(30, 2)), 1},
          op(Opcode::WToT, 0, PackType(SqlType::Decimal(30, 2)))}},
        {"if like", kText, {op(Opcode::FilterLike, pattern)}},
        {"if not like", kText, {op(Opcode::FilterNotLike, pattern), op(Opcode::UpperT)}},
        {"if regex", kText, {op(Opcode::FilterRegex, regex)}},
        {"if not regex", kBigint, {op(Opcode::FilterNotRegex, regex), op(Opcode::LengthT)}},
        {"part", kText, {{Opcode::RegexPartT, 0, regex, 0, i % 3}}},
        {"count", kBigint, {op(Opcode::RegexCountT, regex)}},
        {"place", kBigint, {op(Opcode::RegexPlaceT, regex)}},
        {"regex replace", kText, {{Opcode::RegexReplaceT, 0, regex, hash, i % 2}}},
        {"if less", kText, {op(Opcode::FilterLtT, middle)}},
        {"if at most", kText, {op(Opcode::FilterLeT, middle)}},
        {"if greater", kText, {op(Opcode::FilterGtT, middle)}},
        {"if at least", kText, {op(Opcode::FilterGeT, middle)}},
        {"if equal", kText, {op(Opcode::FilterEqT, middle)}},
        {"if not", kText, {op(Opcode::FilterNeT, middle)}},
    };
    const Function& f = functions[static_cast<size_t>(i) % functions.size()];
    const Form& form = FormsOf(kText)[Turn(FormsOf(kText).size())];
    const std::string name = fmt::format("map {} {} #{}", f.name, form.ToString(), i);
    if (!Wanted(name)) continue;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    const int column = AddColumn(&tables[0], {kText, form}, rows);
    AddTables(&p, tables);
    Maker d(Section::Source::kDictionary, 0, Section::Sink::kMap, "dictionary");
    d.Slot(0, kText);
    d.Load(kText, Operand::Slot(0));
    for (const Instruction& in : f.code) d.s.code.push_back(in);
    d.Store(d.Register(f.type));
    const int map = AddSection(&p, d.Finish(Opcode::Emit, 1));
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    const Operand slot = Operand::Slot(m.Slot(column, f.type, map));
    m.Keep(f.type, slot);
    m.Keep(kText, Operand::Slot(m.Slot(column, kText)));
    if (Turn(2) == 0) {
      Predicate kept;  // an entry that the section drops is NULL in the slot, and fails the predicate
      kept.kind = Predicate::Kind::kMapped;
      kept.map = map;
      kept.slot = m.Slot(column, kText);
      kept.negated = Turn(2) == 0;
      m.Filter(kept);
    }
    AddSection(&p, m.Finish(Opcode::Emit, 3));
    NameColumns(&p);
    Check(name, std::move(p), std::move(tables));
  }
}

}  // namespace tessera::test::walk
