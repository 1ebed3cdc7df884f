// Programs as data: bytes and back, the listing, and what the verifier refuses.
#include "vm/program/program.h"

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tessera::vm {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kText = SqlType::Text();
const SqlType kWide = SqlType::Decimal(38, 2);

Instruction Make(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0, int32_t p4 = 0) {
  return {op, static_cast<uint16_t>(p1), p2, p3, p4};
}
int32_t Slot(int i) { return Operand::Slot(i).Pack(); }
int32_t Register(int i) { return Operand::Register(i).Pack(); }
int32_t Constant(int i) { return Operand::Constant(i).Pack(); }
int32_t Payload(int t, int i) { return Operand::Payload(t, i).Pack(); }

// Sections of Valid(), and addresses in its section kScan.
enum { kDictionary, kBuild, kScan, kResult };
enum {
  kFirstFilter,
  kSkip,
  kSecondFilter,
  kLoadKey,
  kAdd,
  kStoreKey,
  kProbe,
  kSave,
  kBody,
  kStorePayload,
  kGroup,
  kCountRows,
  kLoadInt,
  kSumI,
  kLoadW,
  kSumW,
  kNext,
  kEnd
};

/// SELECT t.a + 5, u.b, count(*), sum(t.a), sum(t.d) FROM t JOIN u ON t.a + 5 = u.a WHERE ... GROUP BY 1, 2 ORDER BY 1
/// DESC LIMIT 10, with something of everything that a program can hold.
Program Valid() {
  Program p;
  p.constants = {Value::Int(kBigint, 5),     Value::Text("a%"),
                 Value::Float(kDouble, 1.5), Value::Wide(kWide, PowerOf10(20)),
                 Value::Null(kBigint),       Value::Int(kBigint, 100)};
  p.tables = {{11, "t"}, {12, "u", 1, {5, 1}}};
  p.joins = {{false, kBuild}};

  Section d;
  d.source_kind = Section::Source::kDictionary;
  d.sink = Section::Sink::kMap;
  d.slots = {{0, kText, -1}};
  d.registers = {kBigint};
  d.columns = {kBigint};
  d.code = {Make(Opcode::Load, 0, Slot(0)),
            Make(Opcode::FilterLike, 0, 1),
            Make(Opcode::LengthT),
            Make(Opcode::Store, 0, 0),
            Make(Opcode::Emit),
            Make(Opcode::End)};
  d.label = "dictionary";

  Section b;
  b.source_kind = Section::Source::kTable;
  b.source = 1;
  b.sink = Section::Sink::kJoin;
  b.join = 0;
  b.keys = 1;
  b.slots = {{0, kBigint, -1}, {1, kText, -1}};
  b.registers = {kBigint, kText};
  b.columns = {kBigint, kText};
  b.code = {Make(Opcode::Load, 0, Slot(0)), Make(Opcode::Store, 0, 0), Make(Opcode::Load, 0, Slot(1)),
            Make(Opcode::Store, 0, 1),      Make(Opcode::Build),       Make(Opcode::End)};
  b.label = "build u";

  Section s;
  s.source_kind = Section::Source::kTable;
  s.source = 0;
  s.sink = Section::Sink::kGroups;
  s.keys = 2;
  s.slots = {{0, kBigint, -1}, {1, kText, -1}, {2, kDouble, -1}, {3, kWide, -1}, {1, kBigint, kDictionary}};
  Predicate range;
  range.slot = 0;
  range.low = 0;
  range.high = 5;
  range.high_inclusive = false;
  Predicate mapped;
  mapped.kind = Predicate::Kind::kMapped;
  mapped.slot = 1;
  mapped.map = kDictionary;
  mapped.negated = true;
  Predicate keys;
  keys.kind = Predicate::Kind::kKeyRange;
  keys.slot = 0;
  keys.join = 0;
  Predicate in;
  in.kind = Predicate::Kind::kIn;
  in.slot = 0;
  in.list = {0, 5};
  s.predicates = {range, mapped, keys, in};
  s.registers = {kBigint, kText, kWide};
  s.masks = 1;
  s.columns = {kBigint, kText, kBigint, SqlType::Decimal(38, 0), kWide};
  s.aggregates = {{Opcode::CountRows, kBigint}, {Opcode::SumI, SqlType::Decimal(38, 0)}, {Opcode::SumW, kWide}};
  s.code = {
      Make(Opcode::Filter, 0),
      Make(Opcode::SkipIfNone, 0, kEnd),
      Make(Opcode::Filter, 1),
      Make(Opcode::Load, 0, Slot(0)),
      Make(Opcode::AddIX, 0, Constant(0)),
      Make(Opcode::Store, 0, 0),
      Make(Opcode::Probe, 0, Register(0), 1),
      Make(Opcode::MaskSave, 0),
      Make(Opcode::Load, 0, Payload(0, 0)),
      Make(Opcode::Store, 0, 1),
      Make(Opcode::Group, 0, Register(0), 2),
      Make(Opcode::CountRows, 0),
      Make(Opcode::Load, 0, Slot(0)),
      Make(Opcode::SumI, 1),
      Make(Opcode::LoadW, 0, Slot(3)),
      Make(Opcode::SumW, 2),
      Make(Opcode::Next, 0, kBody, 0),
      Make(Opcode::End),
  };
  s.label = "scan t";

  Section r;
  r.source_kind = Section::Source::kSection;
  r.source = kScan;
  r.sink = Section::Sink::kRows;
  for (int c = 0; c < 5; ++c) {
    const SqlType& type = s.columns[static_cast<size_t>(c)];
    const bool wide = type.storage() == StorageClass::kWide;
    r.slots.push_back({c, type, -1});
    r.registers.push_back(type);
    r.code.push_back(Make(wide ? Opcode::LoadW : Opcode::Load, 0, Slot(c)));
    r.code.push_back(Make(wide ? Opcode::StoreW : Opcode::Store, 0, c));
  }
  r.code.push_back(Make(Opcode::Emit));
  r.code.push_back(Make(Opcode::End));
  r.columns = r.registers;
  r.after.order = {{0, true, true}, {1, false, false}};
  r.after.limit = 10;
  r.after.offset = 2;
  r.label = "groups";

  p.sections = {d, b, s, r};
  p.columns = {{"a", kBigint}, {"b", kText}, {"n", kBigint}, {"s", SqlType::Decimal(38, 0)}, {"w", kWide}};
  return p;
}

bool Same(const Value& a, const Value& b) {
  return a.type == b.type && a.null == b.null && a.i64 == b.i64 &&
         std::bit_cast<uint64_t>(a.f64) == std::bit_cast<uint64_t>(b.f64) && a.wide == b.wide && a.text == b.text;
}
bool Same(const Program& a, const Program& b) {
  return a.constants.size() == b.constants.size() &&
         std::equal(a.constants.begin(), a.constants.end(), b.constants.begin(),
                    [](const Value& x, const Value& y) { return Same(x, y); }) &&
         a.tables == b.tables && a.joins == b.joins && a.sections == b.sections && a.columns == b.columns;
}

// ---- Bytes

TEST(ProgramBytes, RoundTripOfAValidProgram) {
  const Program p = Valid();
  ASSERT_TRUE(Verify(p).ok()) << Verify(p).message();
  const std::string bytes = p.Serialize();
  Result<Program> back = Program::Parse(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(Same(p, *back));
  EXPECT_EQ(back->Serialize(), bytes);
  EXPECT_TRUE(Verify(*back).ok());
  EXPECT_EQ(Valid().Serialize(), bytes);  // the same program gives the same bytes
}

/// A program whose fields hold anything: Parse promises well-formed, not valid.
class AnyProgram {
 public:
  explicit AnyProgram(uint64_t seed) : random_(seed) {}

  Program Make() {
    Program p;
    List(&p.constants, [&](Value* v) {
      v->type = Type();
      v->null = Bool();
      v->i64 = Number<int64_t>();
      v->f64 = std::bit_cast<double>(random_());
      v->wide = Make128(Number<int64_t>(), Number<int64_t>());
      v->text = Text();
    });
    List(&p.tables, [&](TableRef* t) {
      *t = {Number<int64_t>(), Text(), Number<int32_t>(), {}};
      List(&t->runs, [&](int32_t* i) { *i = Number<int32_t>(); });
    });
    List(&p.joins, [&](JoinSpec* j) {
      *j = {Bool(), Number<int32_t>(), static_cast<JoinStrategy>(random_() % 4), Number<int32_t>()};
    });
    List(&p.sections, [&](Section* s) {
      s->source_kind = static_cast<Section::Source>(random_() % 5);
      s->source = Number<int32_t>();
      s->sink = static_cast<Section::Sink>(random_() % 4);
      s->join = Number<int32_t>();
      List(&s->slots, [&](vm::Slot* x) { *x = {Number<int32_t>(), Type(), Number<int32_t>()}; });
      List(&s->predicates, [&](Predicate* f) {
        f->kind = static_cast<Predicate::Kind>(random_() % 6);
        f->negated = Bool();
        f->low_inclusive = Bool();
        f->high_inclusive = Bool();
        for (int32_t* i : {&f->slot, &f->low, &f->high, &f->map, &f->join}) *i = Number<int32_t>();
        List(&f->list, [&](int32_t* i) { *i = Number<int32_t>(); });
      });
      List(&s->registers, [&](SqlType* t) { *t = Type(); });
      s->masks = Number<int32_t>();
      List(&s->code, [&](Instruction* i) {
        *i = {static_cast<Opcode>(random_() % static_cast<uint64_t>(Opcode::kCount)), Number<uint16_t>(),
              Number<int32_t>(), Number<int32_t>(), Number<int32_t>()};
      });
      List(&s->columns, [&](SqlType* t) { *t = Type(); });
      List(&s->aggregates, [&](AggregateSpec* a) {
        *a = {static_cast<Opcode>(random_() % static_cast<uint64_t>(Opcode::kCount)), Type()};
      });
      s->keys = Number<int32_t>();
      List(&s->after.order, [&](SortKey* k) { *k = {Number<int32_t>(), Bool(), Bool()}; });
      s->after.limit = Number<int64_t>();
      s->after.offset = Number<int64_t>();
      s->after.append_to = Number<int32_t>();
      s->after.repeat = Number<int32_t>();
      s->after.fold.kind = static_cast<Section::Fold>(random_() % 8);
      s->after.fold.distinct = Bool();
      s->after.fold.constant = Number<int32_t>();
      s->recursion.first = Number<int32_t>();
      s->recursion.distinct = Bool();
      s->recursion.limit = Number<int64_t>();
      s->placement.by_key = Bool();
      s->placement.co_located = Bool();
      List(&s->placement.spans, [&](vm::TabletSpan* t) { *t = {Number<uint32_t>(), Number<uint32_t>()}; });
      List(&s->after.windows, [&](WindowSpec* w) {
        w->function = static_cast<WindowFunction>(Number<uint8_t>());
        w->aggregate = static_cast<Opcode>(Number<uint16_t>());
        w->type = Type();
        for (int32_t* n : {&w->partition_keys, &w->order_keys, &w->value, &w->count, &w->fallback, &w->frame.key,
                           &w->frame.start_column, &w->frame.end_column}) {
          *n = Number<int32_t>();
        }
        w->number = Number<int64_t>();
        w->frame.mode = static_cast<WindowFrame::Mode>(Number<uint8_t>());
        w->frame.start = static_cast<WindowFrame::Bound>(Number<uint8_t>());
        w->frame.end = static_cast<WindowFrame::Bound>(Number<uint8_t>());
        w->frame.exclusion = static_cast<WindowFrame::Exclusion>(Number<uint8_t>());
        w->frame.start_offset = Number<int64_t>();
        w->frame.end_offset = Number<int64_t>();
        w->ignore_nulls = Bool();
        w->distinct = Bool();
        w->fold = static_cast<tessera::vm::Fold>(random_() % 8);
        w->fold_constant = Number<int32_t>();
        List(&w->order, [&](SortKey* k) { *k = {Number<int32_t>(), Bool(), Bool()}; });
      });
      s->label = Text();
    });
    List(&p.columns, [&](ResultColumn* c) { *c = {Text(), Type()}; });
    return p;
  }

 private:
  bool Bool() { return (random_() & 1) != 0; }
  template <class T>
  T Number() {
    return static_cast<T>(random_() >> (random_() % 64));
  }
  SqlType Type() {
    return {static_cast<TypeId>(random_() % 12), Number<uint8_t>(), Number<uint8_t>(), Number<int32_t>()};
  }
  std::string Text() {
    std::string s(random_() % 20, '\0');
    for (char& c : s) c = static_cast<char>(random_());
    return s;
  }
  template <class T, class F>
  void List(std::vector<T>* v, F f) {
    v->resize(random_() % 5);
    for (T& x : *v) f(&x);
  }
  std::mt19937_64 random_;
};

TEST(ProgramBytes, RoundTripOfAnyProgram) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Program p = AnyProgram(seed).Make();
    const std::string bytes = p.Serialize();
    Result<Program> back = Program::Parse(bytes);
    ASSERT_TRUE(back.ok()) << seed << ": " << back.status().message();
    ASSERT_TRUE(Same(p, *back)) << seed;
    ASSERT_EQ(back->Serialize(), bytes) << seed;
    (void)Verify(*back);  // refuses or not, but returns
  }
}

std::string WithChecksum(std::string body) {
  const uint64_t checksum = XXH3_64bits(body.data(), body.size());
  return body.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}
void ExpectRefused(std::string_view bytes, const char* reason) {
  Result<Program> p = Program::Parse(bytes);
  ASSERT_FALSE(p.ok()) << reason;
  EXPECT_EQ(p.status().code(), ErrorCode::kCorrupt);
  EXPECT_NE(p.status().message().find(reason), std::string::npos) << p.status().message();
}

TEST(ProgramBytes, RefusesWhatIsNoProgram) {
  const std::string bytes = Valid().Serialize();
  const std::string body = bytes.substr(0, bytes.size() - 8);
  ExpectRefused("", "too short");
  ExpectRefused("TESP", "too short");
  ExpectRefused(std::string(15, '\0'), "too short");
  ExpectRefused(std::string(16, '\0'), "checksum");
  ExpectRefused(bytes + "x", "checksum");
  ExpectRefused(bytes.substr(1), "checksum");
  std::string changed = body;
  changed[0] ^= 1;
  ExpectRefused(WithChecksum(changed), "not a program");
  changed = body;
  changed[4] ^= 2;
  ExpectRefused(WithChecksum(changed), "version");
  ExpectRefused(WithChecksum(body + '\0'), "bytes after its end");
  for (size_t n = 8; n < body.size(); ++n) {
    Result<Program> p = Program::Parse(WithChecksum(body.substr(0, n)));
    ASSERT_FALSE(p.ok()) << n;
    ASSERT_EQ(p.status().code(), ErrorCode::kCorrupt);
  }
}

TEST(ProgramBytes, EveryBitCounts) {
  const std::string bytes = Valid().Serialize();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      ASSERT_FALSE(Program::Parse(changed).ok()) << i;
    }
  }
}

TEST(ProgramBytes, AHugeCountAllocatesNothing) {
  // A list of 2^32 - 1 constants in a program of 12 bytes.
  std::string body("TESP\x0C\0\0\0\xFF\xFF\xFF\xFF", 12);
  ExpectRefused(WithChecksum(body), "ends early");
}

TEST(ProgramBytes, OperandsPack) {
  for (const Operand& o : {Operand::Slot(0), Operand::Slot(65535), Operand::Register(1023), Operand::Constant(32767),
                           Operand::Payload(63, 65535)}) {
    const Operand back = Operand::Unpack(o.Pack());
    EXPECT_EQ(back.kind, o.kind);
    EXPECT_EQ(back.table, o.table);
    EXPECT_EQ(back.index, o.index);
    EXPECT_GE(o.Pack(), 0);
  }
  for (const SqlType& t : {kBigint, kWide, SqlType::Decimal(18, 18), kText}) EXPECT_EQ(UnpackType(PackType(t)), t);
}

TEST(OpcodeTable, IsComplete) {
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    const OpcodeInfo& info = Info(static_cast<Opcode>(i));
    EXPECT_NE(info.name, nullptr);
    EXPECT_NE(std::string(info.synopsis), "") << info.name;
    // The synopsis names only operands that the opcode has.
    for (int k = 0; k < 4; ++k) {
      const char place[] = {'{', static_cast<char>('1' + k), '}', 0};
      if (std::string(info.synopsis).find(place) == std::string::npos) continue;
      EXPECT_NE(info.p[k], OperandSpec::None) << info.name;
    }
    // P1 has 16 bits: no packed operand or constant fits it.
    for (OperandSpec wide : {OperandSpec::Src, OperandSpec::SrcW, OperandSpec::SrcInt, OperandSpec::Addr,
                             OperandSpec::Const, OperandSpec::ConstW, OperandSpec::ConstT}) {
      EXPECT_NE(info.p[0], wide) << info.name;
    }
  }
}

// ---- The listing

TEST(Listing, OfAProgram) {
  const char* const kExpected = R"(-- section 0: dictionary -> map of entries
addr  opcode           p1    p2         p3         p4         comment
----  ---------------  ----  ---------  ---------  ---------  -------
0     Load                   c0                               A = c0
1     FilterLike             #1                               A like 'a%'
2     LengthT                                                 A = length(A)
3     Store                  r0                               r0 = A
4     Emit                                                    emit row
5     End                                                     end of tile

-- section 1: build u -> build t0
addr  opcode           p1    p2         p3         p4         comment
----  ---------------  ----  ---------  ---------  ---------  -------
0     Load                   c0                               A = c0
1     Store                  r0                               r0 = A
2     Load                   c1                               A = c1
3     Store                  r1                               r1 = A
4     Build                                                   insert keys and payload
5     End                                                     end of tile

-- section 2: scan t -> groups of 2 keys
addr  opcode           p1    p2         p3         p4         comment
----  ---------------  ----  ---------  ---------  ---------  -------
0     Filter           f0                                     5 <= c0 < 100
1     SkipIfNone             17                               if no row is live goto 17
2     Filter           f1                                     not (c1 kept by section 0)
3     Load                   c0                               A = c0
4     AddIX                  #0                               A += 5 (checked)
5     Store                  r0                               r0 = A
6     Probe            t0    r0         1                     first match in t0 for r0
7     MaskSave         m0                                     m0 = mask
8       Load                 t0.0                             A = t0.0
9       Store                r1                               r1 = A
10      Group                r0         2                     group of r0..r1
11      CountRows      a0                                     a0 += 1
12      Load                 c0                               A = c0
13      SumI           a1                                     a1 += A
14      LoadW                c3                               W = c3
15      SumW           a2                                     a2 += W
16    Next             t0    8          m0                    next match in t0, goto 8 while any
17    End                                                     end of tile

-- section 3: groups -> rows, order by r0 desc, r1, limit 10, offset 2
addr  opcode           p1    p2         p3         p4         comment
----  ---------------  ----  ---------  ---------  ---------  -------
0     Load                   c0                               A = c0
1     Store                  r0                               r0 = A
2     Load                   c1                               A = c1
3     Store                  r1                               r1 = A
4     Load                   c2                               A = c2
5     Store                  r2                               r2 = A
6     LoadW                  c3                               W = c3
7     StoreW                 r3                               r3 = W
8     LoadW                  c4                               W = c4
9     StoreW                 r4                               r4 = W
10    Emit                                                    emit row
11    End                                                     end of tile
)";
  EXPECT_EQ(Listing(Valid()), kExpected);
}

// ---- The verifier

struct Refusal {
  const char* what;
  std::function<void(Program&)> breaks;
  const char* reason;
};

Instruction& At(Program& p, int address) { return p.sections[kScan].code[static_cast<size_t>(address)]; }
Section& Scan(Program& p) { return p.sections[kScan]; }
Section& Result_(Program& p) { return p.sections[kResult]; }
/// A section of rows (integer, text) that the last one reads, folded by its first column.
Section& Folded(Program& p, Section::Fold fold) {
  Section s = Result_(p);
  s.columns = s.registers = {kBigint, kText};
  s.slots.clear();
  s.source_kind = Section::Source::kOneRow;
  s.code = {Make(Opcode::Emit), Make(Opcode::End)};
  s.after.order = {{0}};
  s.after.limit = -1;
  s.after.offset = 0;
  s.keys = 1;
  s.after.fold.kind = fold;
  p.sections.insert(p.sections.end() - 1, s);
  return p.sections[p.sections.size() - 2];
}
int32_t AddFloat(Program& p, double v) {
  p.constants.push_back(Value::Float(SqlType::Of(TypeId::kDouble), v));
  return static_cast<int32_t>(p.constants.size()) - 1;
}
/// The scan becomes just this code between two bookends: rows of one BIGINT register.
void Code(Program& p, std::vector<Instruction> code) {
  Section& s = Scan(p);
  s.sink = Section::Sink::kRows;
  s.aggregates.clear();
  s.keys = 0;
  s.columns = {kBigint};
  s.masks = 2;
  s.code = std::move(code);
  s.code.push_back(Make(Opcode::Emit));
  s.code.push_back(Make(Opcode::End));
  p.sections.resize(kScan + 1);
  p.columns = {{"a", kBigint}};
}
/// The build has no keys and makes a grid, which the scan, with this code, is to probe.
void Grid(Program& p, std::vector<Instruction> code) {
  p.sections[kBuild].keys = 0;
  p.joins[0].strategy = JoinStrategy::kGrid;
  Scan(p).predicates.clear();
  Code(p, std::move(code));
}
/// The scan is of the build's rows instead of a table's.
void ScanJoin(Program& p) {
  Scan(p).source_kind = Section::Source::kJoin;
  Scan(p).source = 0;
  Scan(p).slots.resize(2);
}
/// The result's rows get a window, the sum of the first column, and a section that reads them becomes the last.
WindowSpec& Window(Program& p) {
  Section& s = Result_(p);
  s.after.limit = -1;
  s.after.offset = 0;
  WindowSpec w;
  w.function = WindowFunction::kAggregate;
  w.aggregate = Opcode::SumI;
  w.type = SqlType::Decimal(38, 0);
  w.partition_keys = w.order_keys = 1;
  w.value = 0;
  s.after.windows = {w};
  Section reader;
  reader.source_kind = Section::Source::kSection;
  reader.source = kResult;
  const auto number = static_cast<int32_t>(s.columns.size());
  reader.slots = {{number, w.type, -1}};
  reader.registers = reader.columns = {w.type};
  reader.code = {Make(Opcode::LoadW, 0, Slot(0)), Make(Opcode::StoreW, 0, 0), Make(Opcode::Emit), Make(Opcode::End)};
  p.sections.push_back(reader);
  p.columns = {{"sum", w.type}};
  return Result_(p).after.windows[0];
}
/// The rows of section `source`, as they are.
Section ReaderOf(const Program& p, int32_t source) {
  Section reader;
  reader.source_kind = Section::Source::kSection;
  reader.source = source;
  reader.columns = reader.registers = p.sections[static_cast<size_t>(source)].columns;
  for (int32_t i = 0; i < static_cast<int32_t>(reader.columns.size()); ++i) {
    const bool wide = IsWide(reader.columns[static_cast<size_t>(i)]);
    reader.slots.push_back({i, reader.columns[static_cast<size_t>(i)], -1});
    reader.code.push_back(Make(wide ? Opcode::LoadW : Opcode::Load, 0, Slot(i)));
    reader.code.push_back(Make(wide ? Opcode::StoreW : Opcode::Store, 0, i));
  }
  reader.code.push_back(Make(Opcode::Emit));
  reader.code.push_back(Make(Opcode::End));
  return reader;
}

/// The result's rows, then turns that replace them, then a reader of all. Returns the section of the turns.
Section& Turns(Program& p) {
  Section& first = Result_(p);
  first.after.limit = -1;
  first.after.offset = 0;
  first.after.order.clear();
  p.sections.push_back(ReaderOf(p, kResult));
  p.sections.back().recursion.first = kResult;
  p.sections.push_back(ReaderOf(p, kResult + 1));
  return p.sections[kResult + 1];
}
/// The same, with a RANGE of values of the first column.
WindowFrame& Range(Program& p) {
  WindowFrame& f = Window(p).frame;
  f.start = WindowFrame::Bound::kPreceding;
  f.key = f.start_column = 0;
  return f;
}
const Instruction kLoadInteger = Make(Opcode::Load, 0, Slot(0)), kLoadText = Make(Opcode::Load, 0, Slot(1)),
                  kLoadDouble = Make(Opcode::Load, 0, Slot(2)), kLoadWide = Make(Opcode::LoadW, 0, Slot(3));

const std::vector<Refusal>& Refusals() {
  using P = Program&;
  static const std::vector<Refusal> cases = {
      // The whole
      {"no section", [](P p) { p.sections.clear(); p.joins.clear(); }, "number of sections"},
      {"too many sections", [](P p) { p.sections.resize(kMaxSections + 1); }, "number of sections"},
      {"too many constants", [](P p) { p.constants.resize(kMaxConstants + 1, Value::Int(kBigint, 0)); }, "number of constants"},
      {"too many join tables", [](P p) { p.joins.resize(kMaxJoins + 1); }, "number of join tables"},
      {"a constant without a type", [](P p) { p.constants[0].type = SqlType::Of(TypeId::kNull); }, "type of a constant"},
      {"a constant of no type", [](P p) { p.constants[0].type = SqlType::Of(static_cast<TypeId>(99)); }, "type of a constant"},
      {"an unknown type", [](P p) { p.constants[0].type.id = static_cast<TypeId>(200); }, "type of a constant"},
      {"a decimal of no digits", [](P p) { p.constants[3].type.precision = 0; }, "type of a constant"},
      {"a decimal of 39 digits", [](P p) { p.constants[3].type.precision = 39; }, "type of a constant"},
      {"a scale beyond the precision", [](P p) { p.constants[3].type = SqlType::Decimal(20, 21); }, "type of a constant"},
      {"a join table that is not built", [](P p) { p.joins[0].section = kScan; }, "no section that builds it"},
      {"a join table of no section", [](P p) { p.joins[0].section = 99; }, "no section that builds it"},
      {"a join table of section -1", [](P p) { p.joins[0].section = -1; }, "no section that builds it"},
      {"a build for join table -1", [](P p) { p.sections[kBuild].join = -1; }, "no section that builds it"},
      {"a build for a join table that is not there", [](P p) { p.sections[kBuild].join = 1000000000; }, "no section that builds it"},
      {"two join tables of one section", [](P p) { p.joins.push_back(p.joins[0]); }, "no section that builds it"},
      {"the last section builds groups", [](P p) { p.sections.pop_back(); }, "last section emits no rows"},
      {"more result columns than columns", [](P p) { p.columns.push_back(p.columns[0]); }, "result columns"},
      {"a result column of another class", [](P p) { p.columns[0].type = kText; }, "type of a result column"},
      // Sources and sinks
      {"an unknown source", [](P p) { Scan(p).source_kind = static_cast<Section::Source>(6); }, "kind of source or sink"},
      {"an unknown sink", [](P p) { Scan(p).sink = static_cast<Section::Sink>(4); }, "kind of source or sink"},
      {"a table that is not there", [](P p) { Scan(p).source = 2; }, "source table"},
      {"table -1", [](P p) { Scan(p).source = -1; }, "source table"},
      {"a section that reads itself", [](P p) { Result_(p).source = kResult; }, "not an earlier one"},
      {"a section that reads a later one", [](P p) { Result_(p).source = 7; }, "not an earlier one"},
      {"a section that reads section -1", [](P p) { Result_(p).source = -1; }, "not an earlier one"},
      {"a section that reads a join table", [](P p) { Result_(p).source = kBuild; }, "has no rows"},
      {"a section that reads a dictionary", [](P p) { Result_(p).source = kDictionary; }, "has no rows"},
      {"one row with columns", [](P p) { Scan(p).source_kind = Section::Source::kOneRow; }, "no columns"},
      {"a series with columns of a table", [](P p) { Scan(p).source_kind = Section::Source::kSeries; }, "of a series"},
      {"rows of no series", [](P p) { Scan(p).source_rows = 1; }, "rows of a series"},
      {"a dictionary without a map", [](P p) { p.sections[kDictionary].sink = Section::Sink::kRows; }, "belong together"},
      {"a map of no dictionary", [](P p) { p.sections[kBuild].sink = Section::Sink::kMap; p.joins.clear(); }, "belong together"},
      {"a dictionary of two columns", [](P p) { p.sections[kDictionary].slots.push_back({0, kText, -1}); }, "slots of a dictionary"},
      {"a dictionary of numbers", [](P p) { p.sections[kDictionary].slots[0].type = kBigint; }, "slots of a dictionary"},
      {"the second column of a dictionary", [](P p) { p.sections[kDictionary].slots[0].column = 1; }, "slots of a dictionary"},
      {"a map of two values", [](P p) { auto& d = p.sections[kDictionary]; d.registers.push_back(kBigint); d.columns.push_back(kBigint); }, "a map has one value"},
      {"a map of wide values", [](P p) { auto& d = p.sections[kDictionary]; d.registers = {kWide}; d.columns = {kWide}; }, "a map of wide values"},
      {"the wrong join table", [](P p) { p.joins.push_back({true, kDictionary}); }, "no section that builds it"},
      // Limits
      {"too many slots", [](P p) { Scan(p).slots.resize(kMaxSlots + 1, {0, kBigint, -1}); }, "more slots"},
      {"too many registers", [](P p) { Scan(p).registers.resize(kMaxRegisters + 1, kBigint); }, "more slots, registers"},
      {"too many masks", [](P p) { Scan(p).masks = kMaxMasks + 1; }, "masks than"},
      {"less than no masks", [](P p) { Scan(p).masks = -1; }, "masks than"},
      {"no code", [](P p) { Scan(p).code.clear(); }, "number of instructions"},
      {"too much code", [](P p) { Scan(p).code.insert(Scan(p).code.begin(), kMaxInstructions, Make(Opcode::Filter, 0)); }, "number of instructions"},
      {"no End", [](P p) { Scan(p).code.pop_back(); }, "not End"},
      {"an End before the end", [](P p) { At(p, kSecondFilter) = Make(Opcode::End); }, "End before the end"},
      // Types
      {"a register without a type", [](P p) { Scan(p).registers[2].id = TypeId::kNull; }, "type of a register"},
      {"a column without a type", [](P p) { Scan(p).columns[0].id = TypeId::kNull; }, "type of a column"},
      {"a slot without a type", [](P p) { Scan(p).slots[2].type.id = TypeId::kNull; }, "a slot"},
      {"a slot of column -1", [](P p) { Scan(p).slots[2].column = -1; }, "a slot"},
      {"a mapped slot of a result", [](P p) { Result_(p).slots[1].map = kDictionary; }, "mapped slot of no stored table"},
      {"a slot mapped by a later section", [](P p) { Scan(p).slots[4].map = kResult; }, "not an earlier dictionary"},
      {"a slot mapped by no dictionary", [](P p) { Scan(p).slots[4].map = kBuild; }, "not an earlier dictionary"},
      {"a mapped slot of another class", [](P p) { Scan(p).slots[4].type = kDouble; }, "type of a mapped slot"},
      {"a mapped slot without a value", [](P p) { p.sections[kDictionary].columns.clear(); }, "type of a mapped slot"},
      {"a slot of a column that the source has not", [](P p) { Result_(p).slots[0].column = 5; }, "does not fit its source"},
      {"a slot of another class than its source", [](P p) { Result_(p).slots[0].type = kText; }, "does not fit its source"},
      // Predicates
      {"a predicate on a result", [](P p) { Result_(p).predicates.push_back(Scan(p).predicates[0]); }, "predicate on no stored table"},
      {"an unknown predicate", [](P p) { Scan(p).predicates[0].kind = static_cast<Predicate::Kind>(6); }, "a predicate"},
      {"a predicate on no slot", [](P p) { Scan(p).predicates[0].slot = 5; }, "a predicate"},
      {"a predicate on slot -1", [](P p) { Scan(p).predicates[0].slot = -1; }, "a predicate"},
      {"a predicate on a mapped slot", [](P p) { Scan(p).predicates[0].slot = 4; }, "on a mapped slot"},
      {"a bound that is not there", [](P p) { Scan(p).predicates[0].low = 6; }, "bound of a predicate"},
      {"a bound before the first", [](P p) { Scan(p).predicates[0].high = -2; }, "bound of a predicate"},
      {"a bound of another class", [](P p) { Scan(p).predicates[0].low = 2; }, "bound of a predicate"},
      {"a NULL bound", [](P p) { Scan(p).predicates[0].low = 4; }, "bound of a predicate"},
      {"a NULL in a list", [](P p) { Scan(p).predicates[3].list.push_back(4); }, "list of a predicate"},
      {"a list of another class", [](P p) { Scan(p).predicates[3].list.push_back(1); }, "list of a predicate"},
      {"a list with a constant that is not there", [](P p) { Scan(p).predicates[3].list.push_back(-1); }, "list of a predicate"},
      {"a mapped predicate on numbers", [](P p) { Scan(p).predicates[1].slot = 0; }, "not TEXT"},
      {"a predicate mapped by no dictionary", [](P p) { Scan(p).predicates[1].map = kBuild; }, "not an earlier dictionary"},
      {"a predicate mapped by section -1", [](P p) { Scan(p).predicates[1].map = -1; }, "not an earlier dictionary"},
      {"a key range of text", [](P p) { Scan(p).predicates[2].slot = 1; }, "a key range"},
      {"a key range of no join table", [](P p) { Scan(p).predicates[2].join = 1; }, "a key range"},
      {"a negated key range", [](P p) { Scan(p).predicates[2].negated = true; }, "a key range"},
      {"a key range of a table without keys", [](P p) { p.sections[kBuild].keys = 0; }, "no key"},
      {"a key range of a table that is built later", [](P p) { auto& b = p.sections[kBuild]; b.predicates = {Scan(p).predicates[2]}; }, "not built yet"},
      // Columns, aggregates, order
      {"less than no keys", [](P p) { Scan(p).keys = -1; }, "number of keys"},
      {"more keys than columns", [](P p) { Scan(p).keys = 6; }, "number of keys"},
      {"too many keys", [](P p) { p.sections[kBuild].keys = kMaxKeys + 1; }, "number of keys"},
      {"ordered groups", [](P p) { Scan(p).after.order = {{0, false, false}}; }, "order or limit without rows"},
      {"limited groups", [](P p) { Scan(p).after.limit = 1; }, "order or limit without rows"},
      {"a build from an offset", [](P p) { p.sections[kBuild].after.offset = 1; }, "order or limit without rows"},
      {"limit -2", [](P p) { Result_(p).after.limit = -2; }, "limit or offset"},
      {"offset -1", [](P p) { Result_(p).after.offset = -1; }, "limit or offset"},
      {"a sort key that is not there", [](P p) { Result_(p).after.order[0].column = 5; }, "sort key"},
      {"sort key -1", [](P p) { Result_(p).after.order[0].column = -1; }, "sort key"},
      {"aggregates without groups", [](P p) { Result_(p).aggregates = {{Opcode::CountRows, kBigint}}; }, "aggregates without groups"},
      {"more columns than registers", [](P p) { Result_(p).columns.push_back(kBigint); }, "columns without registers"},
      {"an emitted register of another class", [](P p) { Result_(p).columns[0] = kText; }, "type of an emitted register"},
      {"groups without a column for an aggregate", [](P p) { Scan(p).aggregates.push_back({Opcode::CountRows, kBigint}); }, "columns of a group table"},
      {"an opcode that is no aggregate", [](P p) { Scan(p).aggregates[0].op = Opcode::AddI; }, "an aggregate"},
      {"an aggregate that is no opcode", [](P p) { Scan(p).aggregates[0].op = static_cast<Opcode>(9999); }, "an aggregate"},
      {"a sum in 64 bits", [](P p) { Scan(p).aggregates[1].type = Scan(p).columns[3] = kBigint; }, "type of an aggregate"},
      {"a count of doubles", [](P p) { Scan(p).aggregates[0].type = Scan(p).columns[2] = kDouble; }, "type of an aggregate"},
      {"an aggregate and its column differ", [](P p) { Scan(p).columns[2] = SqlType::Of(TypeId::kInteger); }, "type of an aggregate"},
      // Instructions
      {"an unknown opcode", [](P p) { At(p, kAdd).op = static_cast<Opcode>(static_cast<int>(Opcode::kCount)); }, "unknown opcode"},
      {"an operand where there is none", [](P p) { At(p, kAdd).p3 = 1; }, "operand p3"},
      {"a first operand where there is none", [](P p) { At(p, kAdd).p1 = 1; }, "operand p1"},
      {"a fourth operand where there is none", [](P p) { At(p, kEnd).p4 = 1; }, "operand p4"},
      {"A without a value", [](P p) { Code(p, {Make(Opcode::AddI, 0, Constant(0))}); }, "A has no value"},
      {"A tested without a value", [](P p) { Code(p, {Make(Opcode::FilterNull)}); }, "A has no value"},
      {"A stored without a value", [](P p) { Code(p, {Make(Opcode::Store, 0, 0)}); }, "A has no value"},
      {"W without a value", [](P p) { Code(p, {kLoadInteger, Make(Opcode::AddW, 0, Constant(3))}); }, "W has no value"},
      {"an integer opcode on a double", [](P p) { Code(p, {kLoadDouble, Make(Opcode::AddI, 0, Constant(0))}); }, "no value of this class"},
      {"a double opcode on text", [](P p) { Code(p, {kLoadText, Make(Opcode::NegF)}); }, "no value of this class"},
      {"a text opcode on an integer", [](P p) { Code(p, {kLoadInteger, Make(Opcode::UpperT)}); }, "no value of this class"},
      {"A after it was widened is still A, but no double", [](P p) { Code(p, {kLoadInteger, Make(Opcode::IToW), Make(Opcode::NegF)}); }, "no value of this class"},
      {"an operand of another class", [](P p) { Code(p, {kLoadInteger, Make(Opcode::AddI, 0, Constant(2))}); }, "operand p2"},
      {"a wide operand of A", [](P p) { Code(p, {kLoadInteger, Make(Opcode::AddI, 0, Slot(3))}); }, "operand p2"},
      {"a narrow operand of W", [](P p) { Code(p, {kLoadWide, Make(Opcode::AddW, 0, Slot(0))}); }, "operand p2"},
      {"a wide load into A", [](P p) { Code(p, {Make(Opcode::Load, 0, Slot(3))}); }, "operand p2"},
      {"a slot that is not there", [](P p) { Code(p, {Make(Opcode::Load, 0, Slot(5))}); }, "operand p2"},
      {"a register that is not there", [](P p) { Code(p, {Make(Opcode::Load, 0, Register(3))}); }, "operand p2"},
      {"a constant that is not there", [](P p) { Code(p, {Make(Opcode::Load, 0, Constant(6))}); }, "operand p2"},
      {"a payload before the probe", [](P p) { Code(p, {Make(Opcode::Load, 0, Payload(0, 0))}); }, "operand p2"},
      {"a payload of no join table", [](P p) { Code(p, {Make(Opcode::Load, 0, Payload(1, 0))}); }, "operand p2"},
      {"a payload column that is not there", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::Load, 0, Payload(0, 1))}); }, "operand p2"},
      {"a slot of a join table", [](P p) { Code(p, {Make(Opcode::Load, 0, Slot(0) | 1 << 16)}); }, "operand p2"},
      {"an operand with its sign set", [](P p) { Code(p, {Make(Opcode::Load, 0, INT32_MIN)}); }, "operand p2"},
      {"a store into a register that is not there", [](P p) { Code(p, {kLoadInteger, Make(Opcode::Store, 0, 3)}); }, "operand p2"},
      {"a store into register -1", [](P p) { Code(p, {kLoadInteger, Make(Opcode::Store, 0, -1)}); }, "operand p2"},
      {"a store of an integer as text", [](P p) { Code(p, {kLoadInteger, Make(Opcode::Store, 0, 1)}); }, "operand p2"},
      {"a store of an integer as wide", [](P p) { Code(p, {kLoadInteger, Make(Opcode::Store, 0, 2)}); }, "operand p2"},
      {"a wide store as an integer", [](P p) { Code(p, {kLoadWide, Make(Opcode::StoreW, 0, 0)}); }, "operand p2"},
      {"a mask register that is not there", [](P p) { Code(p, {Make(Opcode::MaskSave, 2)}); }, "operand p1"},
      {"a predicate that is not there", [](P p) { Code(p, {Make(Opcode::Filter, 4)}); }, "operand p1"},
      {"a pattern that is no text", [](P p) { Code(p, {kLoadText, Make(Opcode::FilterLike, 0, 0)}); }, "operand p2"},
      {"a pattern that is not there", [](P p) { Code(p, {kLoadText, Make(Opcode::FilterLike, 0, -1)}); }, "operand p2"},
      {"a NULL limit", [](P p) { Code(p, {kLoadInteger, Make(Opcode::CheckI, 0, 4, 0)}); }, "operand p2"},
      {"a limit of another class", [](P p) { Code(p, {kLoadInteger, Make(Opcode::CheckI, 0, 0, 2)}); }, "operand p3"},
      {"a narrow limit of W", [](P p) { Code(p, {kLoadWide, Make(Opcode::CheckW, 0, 3, 0)}); }, "operand p3"},
      {"a substring from a double", [](P p) { Code(p, {kLoadText, Make(Opcode::SubstringT, 0, Constant(2), -1)}); }, "operand p2"},
      {"a substring from nowhere", [](P p) { Code(p, {kLoadText, Make(Opcode::SubstringT, 0, -1, -1)}); }, "operand p2"},
      {"a substring of length -2", [](P p) { Code(p, {kLoadText, Make(Opcode::SubstringT, 0, Constant(0), -2)}); }, "operand p3"},
      {"a date field that is none", [](P p) { Code(p, {kLoadInteger, Make(Opcode::DatePartD, 0, 0, 12)}); }, "date field"},
      {"date field -1", [](P p) { Code(p, {kLoadInteger, Make(Opcode::DatePartT, 0, 0, -1)}); }, "date field"},
      {"a padding to a text", [](P p) { Code(p, {kLoadText, Make(Opcode::LpadT, 0, Slot(1), Slot(1))}); }, "operand p2"},
      {"a field of no number", [](P p) { Code(p, {kLoadText, Make(Opcode::SplitPartT, 0, Slot(1), Constant(2))}); }, "operand p3"},
      {"a place of an integer", [](P p) { Code(p, {kLoadText, Make(Opcode::PositionT, 0, Constant(0), 0)}); }, "operand p2"},
      {"a function of one operand that is none", [](P p) { Code(p, {kLoadDouble, Make(Opcode::MathF, 0, 0, 16)}); }, "function of one operand"},
      {"a function of two operands with one", [](P p) { Code(p, {kLoadDouble, Make(Opcode::MathF, 0, 0, 17)}); }, "function of one operand"},
      {"a function of one operand with two", [](P p) { Code(p, {kLoadDouble, Make(Opcode::MathPairF, 0, Constant(2), 3)}); }, "function of two operands"},
      {"a function of two operands that is none", [](P p) { Code(p, {kLoadDouble, Make(Opcode::MathPairF, 0, Constant(2), 19)}); }, "function of two operands"},
      {"too many digits", [](P p) { Code(p, {kLoadDouble, Make(Opcode::RoundDigitsF, 0, 0, 1000)}); }, "number of digits"},
      {"a text of length -1", [](P p) { Code(p, {kLoadText, Make(Opcode::CutT, 0, 0, -1)}); }, "length"},
      {"an integer as the text of a double", [](P p) { Code(p, {kLoadInteger, Make(Opcode::IToT, 0, 0, PackType(kDouble))}); }, "type in p3"},
      {"text as an integer of wide type", [](P p) { Code(p, {kLoadText, Make(Opcode::TToI, 0, 0, PackType(kWide))}); }, "type in p3"},
      {"text tried twice", [](P p) { Code(p, {kLoadText, Make(Opcode::TToI, 0, 0, PackType(kBigint), 2)}); }, "bad text"},
      {"text as a value of no type", [](P p) { Code(p, {kLoadText, Make(Opcode::TToI, 0, 0, 0)}); }, "type in p3"},
      // Jumps
      {"a jump to itself", [](P p) { Code(p, {Make(Opcode::SkipIfNone, 0, 0)}); }, "backwards"},
      {"a jump back", [](P p) { Code(p, {Make(Opcode::MaskSave, 0), Make(Opcode::SkipIfNone, 0, 0)}); }, "backwards"},
      {"a jump out of the section", [](P p) { Code(p, {Make(Opcode::SkipIfNone, 0, 3)}); }, "operand p2"},
      {"A after a jump over its load", [](P p) { Code(p, {Make(Opcode::SkipIfNone, 0, 2), kLoadInteger, Make(Opcode::AbsI)}); }, "A has no value"},
      {"W after a jump over its load", [](P p) { Code(p, {Make(Opcode::SkipIfNone, 0, 2), kLoadWide, Make(Opcode::AbsW)}); }, "W has no value"},
      {"Next without a probe", [](P p) { Code(p, {Make(Opcode::Next, 0, 0, 0)}); }, "after its probe"},
      {"Next to its probe", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::Next, 0, 0, 0)}); }, "after its probe"},
      {"Next forward", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::Next, 0, 2, 0)}); }, "after its probe"},
      {"Next out of the section", [](P p) { At(p, kNext).p2 = 18; }, "operand p2"},
      {"Next in a join table that is not there", [](P p) { At(p, kNext).p1 = 1; }, "not built yet"},
      {"Next with a mask register that is not there", [](P p) { At(p, kNext).p3 = 1; }, "operand p3"},
      {"A after Next", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::MaskSave, 0), kLoadInteger, Make(Opcode::Next, 0, 2, 0), Make(Opcode::AbsI)}); },
       "A has no value"},
      {"A from before the loop", [](P p) { Code(p, {kLoadInteger, Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::MaskSave, 0), Make(Opcode::AbsI), kLoadText, Make(Opcode::Next, 0, 3, 0)}); },
       "A has no value"},
      {"W from before the loop", [](P p) { Code(p, {kLoadWide, Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::MaskSave, 0), Make(Opcode::AbsW), Make(Opcode::Next, 0, 3, 0)}); },
       "W has no value"},
      {"NextOuter after a probe that drops rows", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::MaskSave, 0), Make(Opcode::NextOuter, 0, 2, 0)}); },
       "drops rows without a match"},
      {"NextOuter to its probe", [](P p) { Code(p, {Make(Opcode::ProbeOuter, 0, Slot(0), 1), Make(Opcode::NextOuter, 0, 0, 0)}); }, "after its probe"},
      {"A from before the outer loop", [](P p) { Code(p, {kLoadInteger, Make(Opcode::ProbeOuter, 0, Slot(0), 1), Make(Opcode::MaskSave, 0), Make(Opcode::AbsI), Make(Opcode::NextOuter, 0, 3, 0)}); },
       "A has no value"},
      // Joins and groups
      {"an outer probe with a key of another class", [](P p) { Code(p, {Make(Opcode::ProbeOuter, 0, Slot(1), 1)}); }, "class of a key"},
      {"an outer probe with no key", [](P p) { Code(p, {Make(Opcode::ProbeOuter, 0, 0, 0)}); }, "number of keys"},
      {"a test for a match without a probe", [](P p) { Code(p, {Make(Opcode::FilterMatched, 0)}); }, "not probed yet"},
      {"groups after rows", [](P p) { Scan(p).after.append_to = kBuild; }, "appended to"},
      {"the last section's rows after others", [](P p) { Result_(p).after.append_to = kScan; }, "appended to"},
      {"rows after their own", [](P p) { Result_(p).after.append_to = kResult; }, "appended to"},
      {"groups that are repeated", [](P p) { p.sections[kBuild].after.repeat = 0; }, "how often its rows stand"},
      {"the last section's rows repeated", [](P p) { Result_(p).after.repeat = 0; }, "how often its rows stand"},
      {"rows of a table repeated", [](P p) { Scan(p).after.repeat = 0; }, "how often its rows stand"},
      {"groups that are folded", [](P p) { p.sections[kBuild].after.fold.kind = Section::Fold::kFirst; }, "a fold of rows"},
      {"the last section's rows folded", [](P p) { Result_(p).after.fold.kind = Section::Fold::kMode; }, "a fold of rows"},
      {"a fold that there is not", [](P p) { Folded(p, static_cast<Section::Fold>(9)); }, "a fold of rows"},
      {"a fold without a value", [](P p) { Folded(p, Section::Fold::kFirst).keys = 2; }, "a fold of rows"},
      {"a fold with another order", [](P p) { Folded(p, Section::Fold::kFirst).after.order = {{1}, {0}}; }, "the order of a fold"},
      {"a fold with a constant too many", [](P p) { Folded(p, Section::Fold::kFirst).after.fold.constant = 0; }, "constant of a fold"},
      {"a quantile without a fraction", [](P p) { Folded(p, Section::Fold::kQuantile); }, "constant of a fold"},
      {"a quantile of more than all", [](P p) { Folded(p, Section::Fold::kQuantile).after.fold.constant = AddFloat(p, 1.5); }, "constant of a fold"},
      {"a quantile between texts", [](P p) { Folded(p, Section::Fold::kBetween).after.fold.constant = AddFloat(p, 0.5); }, "class of a fold"},
      {"rows on the rank of no key", [](P p) { Result_(p).placement.co_located = true; }, "not exchanged"},
      {"rows exchanged and not", [](P p) { p.sections[kBuild].placement.by_key = p.sections[kBuild].placement.co_located = true; }, "not exchanged"},
      {"tablets of no table", [](P p) { Result_(p).placement.spans = {{0, 1}}; }, "the ranks' tablets"},
      {"tablets of a join table that is not co-located", [](P p) { p.sections[kBuild].placement.spans = {{0, 1}}; }, "the ranks' tablets"},
      {"tablets that no rank scans", [](P p) { p.sections[kScan].placement.spans = {{0, 1}, {2, 3}}; }, "the ranks' tablets"},
      {"fewer than no tablets", [](P p) { p.sections[kScan].placement.spans = {{0, 1}, {1, 0}}; }, "the ranks' tablets"},
      {"groups that run again", [](P p) { p.sections[kBuild].recursion.first = kScan; }, "what it runs again"},
      {"the last section running again", [](P p) { Result_(p).recursion.first = kScan; }, "what it runs again"},
      {"a section running again by itself", [](P p) { Turns(p).recursion.first = kResult + 1; }, "what it runs again"},
      {"turns up to -2 rows", [](P p) { Turns(p).recursion.limit = -2; }, "what it runs again"},
      {"turns that are sorted", [](P p) { Turns(p).after.order = {{0}}; }, "what it runs again"},
      {"turns that replace groups", [](P p) { Turns(p).recursion.first = kScan; }, "the rows that it replaces"},
      {"turns with a column too many", [](P p) { Turns(p).columns.push_back(kBigint); }, "columns without registers"},
      {"turns whose rows are read outside", [](P p) { Turns(p); p.sections.back().source = kResult; }, "rows that are replaced are read"},
      {"windows of groups", [](P p) { Window(p); p.sections[kScan].after.windows = Result_(p).after.windows; }, "windows of such rows"},
      {"windows of the last section", [](P p) { Window(p); p.sections.pop_back(); p.columns.clear(); }, "windows of such rows"},
      {"windows before a limit", [](P p) { Window(p); Result_(p).after.limit = 1; }, "windows of such rows"},
      {"windows after an offset", [](P p) { Window(p); Result_(p).after.offset = 1; }, "windows of such rows"},
      {"windows in the order of 251 keys", [](P p) { Window(p); Result_(p).after.order.resize(251); }, "windows of such rows"},
      {"a window that is not read as it is", [](P p) { Window(p); p.sections.back().slots[0].type = kBigint; }, "does not fit its source section"},
      {"a column after the windows", [](P p) { Window(p); ++p.sections.back().slots[0].column; }, "does not fit its source section"},
      {"an unknown window function", [](P p) { Window(p).function = static_cast<WindowFunction>(13); }, "function of a window"},
      {"a window without a type", [](P p) { Window(p).type.id = TypeId::kNull; }, "function of a window"},
      {"a partition by -1 keys", [](P p) { Window(p).partition_keys = -1; }, "keys of a window"},
      {"peers by -1 keys", [](P p) { Window(p).order_keys = -1; }, "keys of a window"},
      {"peers by a third key", [](P p) { Window(p).order_keys = 2; }, "keys of a window"},
      {"more keys than an integer has", [](P p) { WindowSpec& w = Window(p); w.partition_keys = w.order_keys = INT32_MAX; }, "keys of a window"},
      {"an aggregate that is none", [](P p) { Window(p).aggregate = Opcode::AddI; }, "aggregate of a window"},
      {"an aggregate of an unknown opcode", [](P p) { Window(p).aggregate = Opcode::kCount; }, "aggregate of a window"},
      {"a sum of a text", [](P p) { Window(p).value = 1; }, "argument of a window"},
      {"a sum of nothing", [](P p) { Window(p).value = -1; }, "argument of a window"},
      {"a sum of a column that is not there", [](P p) { Window(p).value = 5; }, "argument of a window"},
      {"a count of rows of a column", [](P p) { Window(p).aggregate = Opcode::CountRows; }, "argument of a window"},
      {"a rank of a column", [](P p) { Window(p).function = WindowFunction::kRank; }, "argument of a window"},
      {"a narrow sum", [](P p) { Window(p).type = kBigint; }, "type of a window"},
      {"a rank in 128 bits", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kRank; w.value = -1; }, "type of a window"},
      {"the value before of no column", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kLag; w.value = -1; }, "type of a window"},
      {"the text before as a number", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kLag; w.value = 1; }, "type of a window"},
      {"a sum with a number", [](P p) { Window(p).count = 0; }, "number of a window"},
      {"the value a number of rows before, given as a text", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kLag; w.type = kBigint; w.count = 1; }, "number of a window"},
      {"a sum with a fallback", [](P p) { Window(p).fallback = 0; }, "fallback of a window"},
      {"a text in place of a number before", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kLag; w.type = kBigint; w.fallback = 1; }, "fallback of a window"},
      {"an aggregate with a fold", [](P p) { Window(p).fold = Section::Fold::kFirst; }, "fold of a window"},
      {"an aggregate with an order of values", [](P p) { Window(p).order = {{0}}; }, "fold of a window"},
      {"a fold of no kind", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kFold; w.type = kBigint; }, "fold of a window"},
      {"a fold in the order of a column that is not there", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kFold; w.type = kBigint; w.fold = Section::Fold::kFirst; w.order = {{9}}; }, "order of a window's values"},
      {"a mode in another order", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kFold; w.type = kBigint; w.fold = Section::Fold::kMode; w.order = {{1}}; }, "order of a window's values"},
      {"a quantile over rows without a fraction", [](P p) { WindowSpec& w = Window(p); w.function = WindowFunction::kFold; w.type = kBigint; w.fold = Section::Fold::kQuantile; w.order = {{0}}; }, "constant of a fold"},
      {"different values of no column", [](P p) { WindowSpec& w = Window(p); w.aggregate = Opcode::CountRows; w.value = -1; w.type = kBigint; w.distinct = true; }, "different values of a window"},
      {"an unknown mode", [](P p) { Window(p).frame.mode = static_cast<WindowFrame::Mode>(3); }, "frame of a window"},
      {"an unknown exclusion", [](P p) { Window(p).frame.exclusion = static_cast<WindowFrame::Exclusion>(4); }, "frame of a window"},
      {"a frame from the last row", [](P p) { Window(p).frame.start = WindowFrame::Bound::kUnboundedFollowing; }, "frame of a window"},
      {"a frame to the first row", [](P p) { Window(p).frame.end = WindowFrame::Bound::kUnboundedPreceding; }, "frame of a window"},
      {"an unknown bound", [](P p) { Window(p).frame.end = static_cast<WindowFrame::Bound>(5); }, "frame of a window"},
      {"a frame of -1 rows", [](P p) { Window(p).frame.start_offset = -1; }, "frame of a window"},
      {"a frame to -1 rows", [](P p) { Window(p).frame.end_offset = -1; }, "frame of a window"},
      {"a range without a bound", [](P p) { Range(p).start_column = -1; }, "range of a window"},
      {"a range without a key", [](P p) { Range(p).key = -1; }, "range of a window"},
      {"a range of a text", [](P p) { WindowFrame& f = Range(p); f.key = f.start_column = 1; }, "range of a window"},
      {"a range of two classes", [](P p) { Range(p).key = 3; }, "range of a window"},
      {"a range by two keys", [](P p) { Range(p); Result_(p).after.windows[0].partition_keys = 0; Result_(p).after.windows[0].order_keys = 2; }, "range of a window"},
      {"rows whose offsets vary", [](P p) { WindowFrame& f = Window(p).frame; f.mode = WindowFrame::Mode::kRows; f.varies = true; }, "frame of a window"},
      {"a key without a range", [](P p) { Window(p).frame.key = 0; }, "range of a window"},
      {"a bound without a range", [](P p) { Range(p).end_column = 0; }, "range of a window"},
      {"an unknown strategy", [](P p) { p.joins[0].strategy = static_cast<JoinStrategy>(4); }, "strategy of a join table"},
      {"a grid with keys", [](P p) { p.joins[0].strategy = JoinStrategy::kGrid; }, "with keys"},
      {"a dp of one row a key", [](P p) { Grid(p, {}); p.joins[0] = {true, kBuild, JoinStrategy::kDp}; }, "with keys"},
      {"an order by a column that is not there", [](P p) { p.joins[0].order = 2; }, "order of a join table"},
      {"an order by column -2", [](P p) { p.joins[0].order = -2; }, "order of a join table"},
      {"an order by text", [](P p) { p.joins[0].order = 1; }, "class of the order"},
      {"an outer probe of a grid", [](P p) { Grid(p, {Make(Opcode::ProbeOuter, 0, 0, 0)}); }, "not the first that is probed"},
      {"a grid that is probed second",
       [](P p) {
         Grid(p, {Make(Opcode::Probe, 1, 0, 0), Make(Opcode::Probe, 0, 0, 0)});
         p.sections[kDictionary] = p.sections[kBuild];
         p.sections[kDictionary].join = 1;
         p.joins.push_back({false, kDictionary});
         Scan(p).slots.resize(4);
       },
       "not the first that is probed"},
      {"a scan of a join table that is not there", [](P p) { ScanJoin(p); Scan(p).source = 1; }, "not built yet"},
      {"a scan of the join table that it builds", [](P p) { p.sections[kBuild].source_kind = Section::Source::kJoin; p.sections[kBuild].source = 0; }, "not built yet"},
      {"a scan of a join table's third column", [](P p) { ScanJoin(p); Scan(p).slots[1].column = 2; }, "does not fit its source join table"},
      {"a scan of a join table's text as numbers", [](P p) { ScanJoin(p); Scan(p).slots[0].column = 1; }, "does not fit its source join table"},
      {"a predicate on the rows of a join table", [](P p) { ScanJoin(p); }, "on no stored table"},
      {"a mapped slot of a join table", [](P p) { ScanJoin(p); Scan(p).slots[1] = {1, kBigint, kDictionary}; }, "of no stored table"},
      {"a probe of no join table", [](P p) { At(p, kProbe).p1 = 1; }, "not built yet"},
      {"a probe of a table that is built later", [](P p) { p.sections[kDictionary].code.insert(p.sections[kDictionary].code.begin(), Make(Opcode::Probe, 0, Slot(0), 1)); },
       "not built yet"},
      {"a build that probes its own table", [](P p) { p.sections[kBuild].code.insert(p.sections[kBuild].code.begin(), Make(Opcode::Probe, 0, Slot(0), 1)); }, "not built yet"},
      {"a second probe of a table", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(0), 1), Make(Opcode::Probe, 0, Slot(0), 1)}); }, "probed once"},
      {"a probe with two keys", [](P p) { At(p, kProbe).p3 = 2; }, "number of keys"},
      {"a probe with no key", [](P p) { At(p, kProbe).p3 = 0; }, "number of keys"},
      {"a probe with a key of another class", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(1), 1)}); }, "class of a key"},
      {"a probe with a key that is not there", [](P p) { Code(p, {Make(Opcode::Probe, 0, Slot(9), 1)}); }, "class of a key"},
      {"keys beyond the registers", [](P p) { At(p, kGroup).p2 = Register(2); }, "class of a key"},
      {"several keys that are no registers", [](P p) { At(p, kGroup).p2 = Slot(0); }, "several keys are registers"},
      {"groups with another number of keys", [](P p) { At(p, kGroup).p3 = 1; }, "number of keys"},
      {"keys of no group with an operand", [](P p) { Scan(p).keys = 0; Scan(p).columns.erase(Scan(p).columns.begin(), Scan(p).columns.begin() + 2);
                                                     At(p, kGroup).p3 = 0; }, "operand p2"},
      {"a group without a group table", [](P p) { Code(p, {Make(Opcode::Group)}); }, "number of keys"},
      {"an aggregate without a group", [](P p) { At(p, kGroup) = Make(Opcode::MaskSave, 0); }, "operand p1"},
      {"an aggregate that is not there", [](P p) { At(p, kCountRows).p1 = 3; }, "operand p1"},
      {"an aggregate fed by another opcode", [](P p) { At(p, kSumI).p1 = 0; }, "operand p1"},
      {"an aggregate of rows", [](P p) { Code(p, {Make(Opcode::CountRows, 0)}); }, "operand p1"},
      {"Build without a join table", [](P p) { Code(p, {Make(Opcode::Build)}); }, "sink is no join table"},
      {"Emit into groups", [](P p) { At(p, kSecondFilter) = Make(Opcode::Emit); }, "sink takes no rows"},
      {"nothing that feeds the sink", [](P p) { p.sections[kBuild].code[4] = Make(Opcode::MaskSave, 0); p.sections[kBuild].masks = 1; }, "feeds the sink"},
  };
  return cases;
}

TEST(Verify, AcceptsAValidProgram) {
  EXPECT_TRUE(Verify(Valid()).ok()) << Verify(Valid()).message();
  // What the cases below change, unchanged.
  Program p = Valid();
  Code(p, {kLoadInteger, Make(Opcode::Store, 0, 0)});
  EXPECT_TRUE(Verify(p).ok()) << Verify(p).message();
  p = Valid();
  Grid(p, {Make(Opcode::Probe, 0, 0, 0), Make(Opcode::MaskSave, 0), kLoadInteger, Make(Opcode::Store, 0, 0),
           Make(Opcode::Next, 0, 2, 0)});
  p.joins[0].order = 0;
  ScanJoin(p);
  EXPECT_TRUE(Verify(p).ok()) << Verify(p).message();
}

TEST(Verify, AcceptsWindows) {
  Program p = Valid();
  Window(p);
  EXPECT_TRUE(Verify(p).ok()) << Verify(p).message();
  p = Valid();
  Range(p);
  EXPECT_TRUE(Verify(p).ok()) << Verify(p).message();
  EXPECT_NE(Listing(p).find("window SumI(r0) of 1 + 1 keys, range from r0 to current"), std::string::npos)
      << Listing(p);
}

TEST(Verify, RefusesWithTheReason) {
  for (const Refusal& r : Refusals()) {
    Program p = Valid();
    r.breaks(p);
    const Status status = Verify(p);
    if (status.ok()) {
      ADD_FAILURE() << r.what << ": accepted";
      continue;
    }
    EXPECT_EQ(status.code(), ErrorCode::kCorrupt) << r.what;
    EXPECT_NE(status.message().find(r.reason), std::string::npos) << r.what << ": " << status.message();
    // It does not need the memory of the process that made it.
    Result<Program> parsed = Program::Parse(p.Serialize());
    if (!parsed.ok()) continue;
    EXPECT_EQ(Verify(*parsed).message(), status.message()) << r.what;
  }
}

TEST(Verify, NamesThePlace) {
  Program p = Valid();
  At(p, kSumI).p2 = 1;
  EXPECT_EQ(Verify(p).message(), "program refused: section 2, instruction 13 (SumI): operand p2");
  p = Valid();
  Scan(p).masks = -1;
  EXPECT_EQ(Verify(p).message(), "program refused: section 2: more slots, registers or masks than the machine has");
}

TEST(Verify, ADictionarySectionCannotProbe) {
  Program p = Valid();
  std::swap(p.sections[kDictionary], p.sections[kBuild]);
  p.joins[0].section = 0;
  Scan(p).slots[4].map = 1;
  Scan(p).predicates[1].map = 1;
  ASSERT_TRUE(Verify(p).ok()) << Verify(p).message();
  Section& d = p.sections[1];
  d.code.insert(d.code.begin() + 3, Make(Opcode::Store, 0, 0));
  d.code.insert(d.code.begin() + 4, Make(Opcode::Probe, 0, Register(0), 1));
  EXPECT_FALSE(Verify(p).ok());
}

}  // namespace
}  // namespace tessera::vm
