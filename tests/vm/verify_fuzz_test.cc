// Damaged programs: the programs of the opcode walk, with bytes or fields changed at random. Either Parse or Verify
// refuses the result, or it runs on its small tables to an end: rows or an error, but no crash and, in a sanitizer's
// build, no finding.
//
// TESSERA_FUZZ_SEED=n damages them in other ways, TESSERA_FUZZ_ROUNDS=n sets how often. TESSERA_FUZZ_TRACE=file keeps
// the listing of the program that runs, in case it crashes.
#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/memory_tablet.h"
#include "tests/vm/opcode_walk.h"
#include "vm/program/program.h"
#include "vm/vm.h"

namespace tessera::test {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandSpec;
using vm::Program;
using vm::Section;

struct Case {
  Program program;
  std::shared_ptr<const Snapshot> snapshot;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

/// Every n-th program of the walk, with tables of one to two tiles.
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> out;
    size_t number = 0;
    WalkOptions options;
    options.seed = FromEnvironment("TESSERA_FUZZ_SEED", 1);
    options.greatest_rows = 2100;
    options.collect = [&](const Program& program, const std::shared_ptr<const Snapshot>& snapshot) {
      if (number++ % 23 == 0 || program.sections.size() > 2) out.push_back({program, snapshot});
    };
    const WalkReport report = RunOpcodeWalk(options);
    EXPECT_TRUE(report.failures.empty()) << report.Summary();
    return out;
  }();
  return cases;
}

std::string WithChecksum(std::string body) {
  const uint64_t checksum = XXH3_64bits(body.data(), body.size());
  return body.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  size_t Below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }

  void Bytes(std::string* bytes) {
    for (size_t n = 1 + Below(4); n-- > 0 && !bytes->empty();) {
      char& c = (*bytes)[Below(bytes->size())];
      switch (Below(4)) {
        case 0:
          c = static_cast<char>(c ^ (1 << Below(8)));
          break;
        case 1:
          c = static_cast<char>(c + (Below(2) == 0 ? 1 : -1));
          break;
        case 2:
          c = static_cast<char>(random_());
          break;
        default:
          c = Below(2) == 0 ? 0 : '\xFF';
      }
    }
  }

  /// One field of one section, mostly of its code, to a value that often is a valid one.
  void Fields(Program* p) {
    Section& s = p->sections[Below(p->sections.size())];
    if (Below(4) != 0 && !s.code.empty()) return Code(*p, &s);
    switch (Below(15)) {
      case 0:
        s.masks = Number();
        break;
      case 1:
        s.keys = static_cast<int32_t>(Below(4));
        break;
      case 2:
        s.after.limit = Below(2) == 0 ? -1 : static_cast<int64_t>(random_() >> Below(64));
        break;
      case 3:
        s.after.offset = static_cast<int64_t>(random_() >> (1 + Below(63)));
        break;
      case 4:
        s.after.order.push_back({static_cast<int32_t>(Below(s.columns.size() + 1)), Below(2) == 0, Below(2) == 0});
        break;
      case 5:
        if (!s.slots.empty()) s.slots[Below(s.slots.size())].column = static_cast<int32_t>(Below(8));
        break;
      case 6:
        if (!s.slots.empty()) s.slots[Below(s.slots.size())].type = Type();
        break;
      case 7:
        if (!s.slots.empty()) s.slots[Below(s.slots.size())].map = static_cast<int32_t>(Below(3)) - 1;
        break;
      case 8:
        if (!s.registers.empty()) s.registers[Below(s.registers.size())] = Type();
        break;
      case 9:
        if (!s.columns.empty()) s.columns.resize(Below(s.columns.size() + 1));
        break;
      case 10:
        if (!s.aggregates.empty()) s.aggregates[Below(s.aggregates.size())].op = AnyOpcode();
        break;
      case 11:
        if (!s.predicates.empty()) {
          vm::Predicate& f = s.predicates[Below(s.predicates.size())];
          switch (Below(7)) {
            case 0:
              f.kind = static_cast<vm::Predicate::Kind>(Below(6));
              break;
            case 1:
              f.negated = !f.negated;
              break;
            case 2:
              f.slot = static_cast<int32_t>(Below(s.slots.size() + 1));
              break;
            case 3:
              f.low = static_cast<int32_t>(Below(p->constants.size() + 1)) - 1;
              break;
            case 4:
              f.high = static_cast<int32_t>(Below(p->constants.size() + 1)) - 1;
              break;
            case 5:
              f.join = static_cast<int32_t>(Below(p->joins.size() + 1)) - 1;
              break;
            default:
              f.list.push_back(static_cast<int32_t>(Below(p->constants.size())));
          }
        }
        break;
      case 12:
        if (!p->joins.empty())
          p->joins[Below(p->joins.size())] = {Below(2) == 0, static_cast<int32_t>(Below(p->sections.size() + 1)) - 1,
                                              static_cast<vm::JoinStrategy>(Below(5)),
                                              static_cast<int32_t>(Below(4)) - 1};
        break;
      case 13:
        s.source_kind = static_cast<Section::Source>(Below(6));
        s.source = static_cast<int32_t>(Below(p->sections.size() + 1)) - 1;
        break;
      default:
        if (!p->constants.empty()) {
          Value& v = p->constants[Below(p->constants.size())];
          if (Below(3) == 0) v.null = !v.null;
          v.i64 = static_cast<int64_t>(random_());
          v.wide = Make128(static_cast<int64_t>(random_()), static_cast<int64_t>(random_()));
          if (Below(4) == 0) v.type = Type();
          if (Below(4) == 0) v.text.assign(Below(6), static_cast<char>(random_()));
        }
    }
  }

 private:
  int32_t Number() {
    return Below(3) == 0 ? static_cast<int32_t>(random_() >> Below(64)) : static_cast<int32_t>(Below(6)) - 1;
  }
  Opcode AnyOpcode() { return static_cast<Opcode>(Below(static_cast<size_t>(Opcode::kCount))); }
  SqlType Type() {
    static const std::vector<SqlType> types = {SqlType::Of(TypeId::kBigint),  SqlType::Of(TypeId::kDouble),
                                               SqlType::Of(TypeId::kReal),    SqlType::Text(),
                                               SqlType::Decimal(38, 2),       SqlType::Decimal(9, 2),
                                               SqlType::Of(TypeId::kDate),    SqlType::Of(TypeId::kTimestamp),
                                               SqlType::Of(TypeId::kBoolean), SqlType::Of(TypeId::kNull)};
    return types[Below(types.size())];
  }
  int32_t AnyOperand(const Program& p, const Section& s) {
    switch (Below(9)) {
      case 0:
      case 1:
      case 2:
        return Operand::Slot(static_cast<int>(Below(s.slots.size() + 1))).Pack();
      case 3:
      case 4:
        return Operand::Register(static_cast<int>(Below(s.registers.size() + 1))).Pack();
      case 5:
      case 6:
        return Operand::Constant(static_cast<int>(Below(p.constants.size() + 1))).Pack();
      case 7:
        return Operand::Payload(static_cast<int>(Below(p.joins.size() + 1)), static_cast<int>(Below(5))).Pack();
      default:
        return Number();
    }
  }
  int32_t AnyFor(OperandSpec spec, const Program& p, const Section& s) {
    switch (spec) {
      case OperandSpec::None:
        return Below(20) == 0 ? Number() : 0;
      case OperandSpec::Src:
      case OperandSpec::SrcW:
      case OperandSpec::SrcPlain:
      case OperandSpec::SrcInt:
        return AnyOperand(p, s);
      case OperandSpec::Reg:
      case OperandSpec::RegW:
        return static_cast<int32_t>(Below(s.registers.size() + 1));
      case OperandSpec::Mask:
        return static_cast<int32_t>(Below(static_cast<size_t>(std::max(s.masks, 0)) + 1));
      case OperandSpec::Pred:
        return static_cast<int32_t>(Below(s.predicates.size() + 1));
      case OperandSpec::Join:
        return static_cast<int32_t>(Below(p.joins.size() + 1));
      case OperandSpec::Agg:
        return static_cast<int32_t>(Below(s.aggregates.size() + 1));
      case OperandSpec::Addr:
        return static_cast<int32_t>(Below(s.code.size() + 1));
      case OperandSpec::Const:
      case OperandSpec::ConstW:
      case OperandSpec::ConstT:
        return static_cast<int32_t>(Below(p.constants.size() + 1));
      case OperandSpec::Int:
        return Number();
    }
    return 0;
  }
  void Code(const Program& p, Section* s) {
    const size_t at = Below(s->code.size());
    Instruction& in = s->code[at];
    switch (Below(8)) {
      case 0: {  // another opcode, operands of its kinds
        Instruction made;
        made.op = AnyOpcode();
        const vm::OpcodeInfo& info = vm::Info(made.op);
        made.p1 = static_cast<uint16_t>(AnyFor(info.p[0], p, *s));
        made.p2 = AnyFor(info.p[1], p, *s);
        made.p3 = AnyFor(info.p[2], p, *s);
        made.p4 = AnyFor(info.p[3], p, *s);
        if (Below(2) == 0) {
          in = made;
        } else {
          s->code.insert(s->code.begin() + static_cast<ptrdiff_t>(at), made);
        }
        break;
      }
      case 1: {  // another opcode of the same shape
        if (in.op >= Opcode::kCount) break;
        for (int tries = 0; tries < 50; ++tries) {
          const Opcode other = AnyOpcode();
          if (vm::Info(other).shape != vm::Info(in.op).shape) continue;
          in.op = other;
          break;
        }
        break;
      }
      case 2:
      case 3:
        if (in.op >= Opcode::kCount) break;
        switch (Below(4)) {
          case 0:
            in.p1 = static_cast<uint16_t>(AnyFor(vm::Info(in.op).p[0], p, *s));
            break;
          case 1:
          case 2:
            in.p2 = AnyFor(vm::Info(in.op).p[1], p, *s);
            break;
          default:
            in.p3 = AnyFor(vm::Info(in.op).p[2], p, *s);
        }
        break;
      case 4:
        std::swap(in, s->code[Below(s->code.size())]);
        break;
      case 5:
        s->code.erase(s->code.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 6: {
        const Instruction copy = s->code[Below(s->code.size())];
        s->code.insert(s->code.begin() + static_cast<ptrdiff_t>(at), copy);
        break;
      }
      default:
        switch (Below(5)) {
          case 0:
            in.op = static_cast<Opcode>(random_() >> (48 + Below(16)));
            break;
          case 1:
            in.p1 = static_cast<uint16_t>(Number());
            break;
          case 2:
            in.p2 = Number();
            break;
          case 3:
            in.p3 = Number();
            break;
          default:
            in.p4 = Number();
        }
    }
  }

  std::mt19937_64 random_;
};

TEST(VerifyFuzz, CorruptedBytesAreRefused) {
  Damage damage(FromEnvironment("TESSERA_FUZZ_SEED", 1));
  for (size_t i = 0; i < 5000; ++i) {
    const std::string bytes = Cases()[damage.Below(Cases().size())].program.Serialize();
    std::string changed = bytes;
    damage.Bytes(&changed);
    if (changed == bytes) continue;
    Result<Program> p = Program::Parse(changed);
    ASSERT_FALSE(p.ok());
    ASSERT_EQ(p.status().code(), ErrorCode::kCorrupt);
  }
}

TEST(VerifyFuzz, WhatIsNotRefusedRuns) {
  Damage damage(1000 + FromEnvironment("TESSERA_FUZZ_SEED", 1));
  const size_t rounds = FromEnvironment("TESSERA_FUZZ_ROUNDS", 20000);
  vm::Executor executor(2);
  const char* const trace = std::getenv("TESSERA_FUZZ_TRACE");
  size_t unread = 0, refused = 0, failed = 0, ran = 0;
  for (size_t i = 0; i < rounds; ++i) {
    const Case& c = Cases()[damage.Below(Cases().size())];
    std::string bytes;
    if (i % 3 == 0) {
      // With the right checksum, so that the reader itself meets the damage.
      bytes = c.program.Serialize();
      bytes.resize(bytes.size() - 8);
      damage.Bytes(&bytes);
      bytes = WithChecksum(std::move(bytes));
    } else {
      Program changed = c.program;
      for (size_t n = 1 + damage.Below(3); n-- > 0;) damage.Fields(&changed);
      bytes = changed.Serialize();
    }
    Result<Program> p = Program::Parse(bytes);
    if (!p.ok()) {
      ASSERT_EQ(p.status().code(), ErrorCode::kCorrupt);
      ++unread;
      continue;
    }
    const Status verified = vm::Verify(*p);
    if (!verified.ok()) {
      ASSERT_EQ(verified.code(), ErrorCode::kCorrupt);
      ++refused;
      continue;
    }
    const std::string listing = vm::Listing(*p);
    if (trace != nullptr) std::ofstream(trace) << "round " << i << "\n" << listing;
    uint64_t rows = 0;
    const Status status = executor.Run(
        *p, *c.snapshot, {},
        [&](RowBatch&& batch) {
          rows += batch.rows;
          for (const ColumnVector& column : batch.columns) {
            std::string text;
            if (batch.rows > 0) AppendText(column, batch.rows - 1, &text);
          }
          return Status::Ok();
        },
        nullptr);
    ++(status.ok() ? ran : failed);
    if (status.ok()) continue;
    ASSERT_NE(status.code(), ErrorCode::kInternal) << status.message() << "\n" << vm::Listing(*p);
  }
  printf("%zu rounds over %zu programs: %zu unreadable, %zu refused, %zu ended in an error, %zu ran\n", rounds,
         Cases().size(), unread, refused, failed, ran);
  EXPECT_GT(ran, rounds / 20);  // else the damage is too coarse to test anything
  EXPECT_GT(refused, rounds / 20);
}

// ---- Programs that the verifier accepts although a compiler would not write them: what they give is unspecified, that
// they end is not.

Instruction Make(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0, int32_t p4 = 0) {
  return {op, static_cast<uint16_t>(p1), p2, p3, p4};
}

/// Runs `code` over 5000 rows (k BIGINT 0.., d DATE, s TEXT), with a join table of 10 rows (k BIGINT, s TEXT).
void RunsToAnEnd(const char* what, std::vector<Instruction> code, Section::Sink sink = Section::Sink::kRows) {
  const SqlType bigint = SqlType::Of(TypeId::kBigint), date = SqlType::Of(TypeId::kDate), text = SqlType::Text(),
                wide = SqlType::Decimal(38, 0);
  auto column = [&](const SqlType& type, size_t rows, auto value) {
    ColumnVector c;
    c.type = type;
    if (type.id == TypeId::kText) c.offsets.push_back(0);
    for (size_t i = 0; i < rows; ++i) {
      if (type.id == TypeId::kText) {
        c.bytes += std::to_string(value(i));
        c.offsets.push_back(c.bytes.size());
      } else {
        c.fixed.push_back(value(i));
      }
    }
    return c;
  };
  auto number = [](size_t i) { return static_cast<int64_t>(i); };
  auto anything = [](size_t i) { return static_cast<int64_t>((i + 1) * 0x9E3779B97F4A7C15u); };
  ChunkForm frame, dictionary;
  dictionary.encoding = Encoding::kDictionary;
  dictionary.width = 2;
  auto t = MakeMemoryTable(1, "t",
                           {{"k", column(bigint, 5000, number), {frame}},
                            {"d", column(date, 5000, anything), {frame}},
                            {"s", column(text, 5000, number), {dictionary}}});
  auto u = MakeMemoryTable(2, "u",
                           {{"k", column(bigint, 10, number), {frame}}, {"s", column(text, 10, number), {dictionary}}});
  ASSERT_TRUE(t.ok() && u.ok());
  const auto snapshot = MakeSnapshot({*t, *u});

  Program p;
  p.tables = {{1, "t"}, {2, "u"}};
  p.joins = {{false, 0}};
  p.constants = {Value::Int(bigint, -1), Value::Int(bigint, 5), Value::Text("%1%")};
  Section b;
  b.source_kind = Section::Source::kTable;
  b.source = 1;
  b.sink = Section::Sink::kJoin;
  b.join = 0;
  b.keys = 1;
  b.slots = {{0, bigint, -1}, {1, text, -1}};
  b.registers = b.columns = {bigint, text};
  b.code = {Make(Opcode::Load, 0, Operand::Slot(0).Pack()),
            Make(Opcode::Store, 0, 0),
            Make(Opcode::Load, 0, Operand::Slot(1).Pack()),
            Make(Opcode::Store, 0, 1),
            Make(Opcode::Build),
            Make(Opcode::End)};
  Section s;
  s.source_kind = Section::Source::kTable;
  s.sink = sink;
  s.slots = {{0, bigint, -1}, {1, date, -1}, {2, text, -1}};
  s.registers = {bigint, text, wide};
  s.masks = 3;
  s.code = std::move(code);
  s.code.push_back(Make(Opcode::End));
  p.sections = {b, s};
  if (sink == Section::Sink::kGroups) {
    p.sections[1].keys = 1;
    p.sections[1].columns = {bigint, bigint, wide, text};
    p.sections[1].aggregates = {{Opcode::CountRows, bigint}, {Opcode::SumI, wide}, {Opcode::MinT, text}};
    Section r;
    r.source_kind = Section::Source::kSection;
    r.source = 1;
    r.slots = {{1, bigint, -1}};
    r.registers = r.columns = {bigint};
    r.code = {Make(Opcode::Load, 0, Operand::Slot(0).Pack()), Make(Opcode::Store, 0, 0), Make(Opcode::Emit),
              Make(Opcode::End)};
    p.sections.push_back(r);
  } else {
    p.sections[1].columns = s.registers;
  }
  p.columns.push_back({"c", bigint});
  ASSERT_TRUE(vm::Verify(p).ok()) << what << ": " << vm::Verify(p).message();
  vm::Executor executor(2);
  uint64_t rows = 0;
  const Status status = executor.Run(
      p, *snapshot, {},
      [&](RowBatch&& batch) {
        rows += batch.rows;
        return Status::Ok();
      },
      nullptr);
  if (status.ok()) return;
  EXPECT_EQ(status.code(), ErrorCode::kSql) << what << ": " << status.message();
}

TEST(OddPrograms, RunToAnEnd) {
  const int32_t k = Operand::Slot(0).Pack(), d = Operand::Slot(1).Pack(), s = Operand::Slot(2).Pack();
  const int32_t minus_one = Operand::Constant(0).Pack(), five = Operand::Constant(1).Pack();
  const int32_t payload = Operand::Payload(0, 0).Pack();
  const Instruction save = Make(Opcode::MaskSave, 0), load = Make(Opcode::MaskLoad, 0), emit = Make(Opcode::Emit);
  RunsToAnEnd("a payload of rows without a match",
              {save, Make(Opcode::Probe, 0, k, 1), load, Make(Opcode::Load, 0, payload), Make(Opcode::LengthT), emit});
  RunsToAnEnd("a payload after a skipped probe",
              {save, Make(Opcode::Load, 0, k), Make(Opcode::FilterLtI, 0, minus_one), Make(Opcode::SkipIfNone, 0, 5),
               Make(Opcode::Probe, 0, k, 1), load, Make(Opcode::Load, 0, payload), Make(Opcode::UpperT),
               Make(Opcode::Store, 0, 1), emit});
  RunsToAnEnd("the next of rows without a match",
              {save, Make(Opcode::Probe, 0, k, 1), emit, Make(Opcode::Next, 0, 2, 0)});
  RunsToAnEnd("the next of rows of no mask", {Make(Opcode::Probe, 0, k, 1), emit, Make(Opcode::Next, 0, 1, 2)});
  RunsToAnEnd("a loop that saves its own mask", {Make(Opcode::MaskSave, 1), Make(Opcode::Probe, 0, k, 1), save,
                                                 Make(Opcode::MaskLoad, 1), save, emit, Make(Opcode::Next, 0, 3, 0)});
  RunsToAnEnd("a mask that was not saved", {load, Make(Opcode::MaskOr, 1), Make(Opcode::MaskLoad, 1), emit});
  RunsToAnEnd("a mask of the tile before",
              {Make(Opcode::MaskLoad, 1), emit, Make(Opcode::MaskClear, 0), Make(Opcode::MaskLoad, 0),
               Make(Opcode::MaskAndNot, 0), Make(Opcode::MaskSave, 1)});
  RunsToAnEnd("registers that were not stored",
              {Make(Opcode::Load, 0, Operand::Register(1).Pack()), Make(Opcode::FilterLike, 0, 2), emit});
  RunsToAnEnd("dates out of the calendar",
              {Make(Opcode::Load, 0, d), Make(Opcode::DatePartD, 0, 0, 7), Make(Opcode::Store, 0, 0),
               Make(Opcode::Load, 0, d), Make(Opcode::DatePartT, 0, 0, 7), Make(Opcode::Load, 0, d),
               Make(Opcode::IToT, 0, 0, vm::PackType(SqlType::Of(TypeId::kDate))), Make(Opcode::Load, 0, d),
               Make(Opcode::IToT, 0, 0, vm::PackType(SqlType::Of(TypeId::kTimestamp))), emit});
  RunsToAnEnd("a range error that names no type",
              {Make(Opcode::Load, 0, k), Make(Opcode::CheckI, 0, 0, 1, 0x7F), emit});
  RunsToAnEnd("the first wide value in a store",
              {Make(Opcode::LoadW, 0, Operand::Register(2).Pack()),
               Make(Opcode::WToT, 0, 0, vm::PackType(SqlType::Decimal(38, 2))), emit});

  const Section::Sink groups = Section::Sink::kGroups;
  const Instruction none = Make(Opcode::FilterLtI, 0, minus_one), group = Make(Opcode::Group, 0, k, 1),
                    count = Make(Opcode::CountRows, 0);
  const Instruction load_k = Make(Opcode::Load, 0, k), load_s = Make(Opcode::Load, 0, s);
  RunsToAnEnd("aggregates of rows in no group, where there is none",
              {save, load_k, none, group, load, count, load_k, Make(Opcode::SumI, 1), load_s, Make(Opcode::MinT, 2)},
              groups);
  RunsToAnEnd("aggregates of rows in no group, where there are some",
              {save, load_k, Make(Opcode::FilterEqI, 0, five), group, load, count, load_k, Make(Opcode::SumI, 1),
               load_s, Make(Opcode::MinT, 2)},
              groups);
  RunsToAnEnd("a group that is skipped", {save, load_k, none, Make(Opcode::SkipIfNone, 0, 5), group, load, count},
              groups);
}

}  // namespace
}  // namespace tessera::test
