// The VM kernel against the host interpreter: the same programs over the same tablets. The opcode walk (at the end)
// tests what each opcode means; the other tests are about tiles, tablets, groups, output, suspension, cancellation and
// memory.
//
// Without a GPU every test is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>

#include "base/status.h"
#include "kernels/kernels.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/memory_tablet.h"
#include "tests/vm/opcode_walk.h"
#include "vm/meaning/aggregate.h"
#include "vm/program/program.h"
#include "vm/run/device.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace tessera::test {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::Predicate;
using vm::Program;
using vm::Section;

const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kWide = SqlType::Decimal(38, 0);

// ---- Programs -------------------------------------------------------------------------------------------------------

/// A program over table 1: a section of the test's own, and for groups a second one that emits them.
class Maker {
 public:
  explicit Maker(Section::Sink sink) {
    program.tables.push_back({1, "t"});
    section.source_kind = Section::Source::kTable;
    section.sink = sink;
    section.label = "scan t";
  }
  Program program;
  Section section;

  int Slot(int column, SqlType type) {
    section.slots.push_back({column, type, -1});
    return static_cast<int>(section.slots.size()) - 1;
  }
  int Register(SqlType type) {
    section.registers.push_back(type);
    return static_cast<int>(section.registers.size()) - 1;
  }
  int Constant(Value v) {
    program.constants.push_back(std::move(v));
    return static_cast<int>(program.constants.size()) - 1;
  }
  int Int(int64_t v) { return Constant(Value::Int(kBigint, v)); }
  int Range(int slot, int64_t low, int64_t high, bool negated = false) {
    Predicate p;
    p.slot = slot;
    p.low = Int(low);
    p.high = Int(high);
    p.negated = negated;
    section.predicates.push_back(p);
    return static_cast<int>(section.predicates.size()) - 1;
  }
  int In(int slot, const std::vector<int64_t>& values) {
    Predicate p;
    p.kind = Predicate::Kind::kIn;
    p.slot = slot;
    for (int64_t v : values) p.list.push_back(Int(v));
    section.predicates.push_back(p);
    return static_cast<int>(section.predicates.size()) - 1;
  }
  int Aggregate(Opcode op, SqlType type) {
    section.aggregates.push_back({op, type});
    return static_cast<int>(section.aggregates.size()) - 1;
  }
  Maker& Op(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0, int32_t p4 = 0) {
    section.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, p4});
    return *this;
  }
  Maker& Filter(int predicate) { return Op(Opcode::Filter, predicate); }
  Maker& Load(int slot) { return Op(Opcode::Load, 0, Operand::Slot(slot).Pack()); }
  /// slot -> new register
  int Keep(int slot) {
    const SqlType type = section.slots[static_cast<size_t>(slot)].type;
    const int r = Register(type);
    const bool wide = type.storage() == StorageClass::kWide;
    Op(wide ? Opcode::LoadW : Opcode::Load, 0, Operand::Slot(slot).Pack());
    Op(wide ? Opcode::StoreW : Opcode::Store, 0, r);
    return r;
  }

  /// Ends the section; key columns are given, aggregates follow. kRows: every register is emitted.
  Program Finish(const std::vector<SqlType>& keys = {}) {
    Op(Opcode::End);
    if (section.sink == Section::Sink::kRows) {
      section.columns = section.registers;
      for (const SqlType& t : section.columns) program.columns.push_back({"c", t});
      program.sections.push_back(section);
      return program;
    }
    section.keys = static_cast<int32_t>(keys.size());
    section.columns = keys;
    for (const vm::AggregateSpec& a : section.aggregates) {
      section.columns.push_back(a.type);
      section.columns.resize(section.columns.size() + vm::ColumnClasses(a.op).size() - 1, kBigint);
    }
    program.sections.push_back(section);
    Section emit;
    emit.source_kind = Section::Source::kSection;
    emit.source = 0;
    emit.label = "emit groups";
    for (size_t c = 0; c < section.columns.size(); ++c) {
      const SqlType type = section.columns[c];
      const bool wide = type.storage() == StorageClass::kWide;
      emit.slots.push_back({static_cast<int32_t>(c), type, -1});
      emit.registers.push_back(type);
      emit.code.push_back({wide ? Opcode::LoadW : Opcode::Load, 0, Operand::Slot(static_cast<int>(c)).Pack(), 0, 0});
      emit.code.push_back({wide ? Opcode::StoreW : Opcode::Store, 0, static_cast<int32_t>(c), 0, 0});
      emit.columns.push_back(type);
      program.columns.push_back({"c", type});
    }
    emit.code.push_back({Opcode::Emit, 0, 0, 0, 0});
    emit.code.push_back({Opcode::End, 0, 0, 0, 0});
    program.sections.push_back(emit);
    return program;
  }
};

// ---- Tables ---------------------------------------------------------------------------------------------------------

/// `rows` values of f(i); NULL where f gives no value.
template <class F>
ColumnVector Integers(size_t rows, F f, SqlType type = kBigint) {
  ColumnVector c;
  c.type = type;
  c.fixed.resize(rows);
  for (size_t i = 0; i < rows; ++i) {
    const std::optional<int64_t> v = f(i);
    c.fixed[i] = v.value_or(0);
    if (!v.has_value()) {
      c.null.resize(rows);
      c.null[i] = 1;
    }
  }
  return c;
}

MemoryColumn Column(ColumnVector values, int width) {
  ChunkForm form;
  form.width = width;
  return {"c", std::move(values), {form}};
}

std::shared_ptr<const Snapshot> Store(const std::vector<MemoryColumn>& columns, uint32_t tablet_rows = 1u << 20) {
  auto table = MakeMemoryTable(1, "t", columns, tablet_rows);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.status().message());
  return table.ok() ? MakeSnapshot({*table}) : nullptr;
}

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7FB5D329728EA185u;
  x = (x ^ (x >> 27)) * 0x81DADEF4BC2DD44Du;
  return x ^ (x >> 33);
}
int64_t Below(uint64_t seed, uint64_t i, uint64_t n) {
  return static_cast<int64_t>(Mix(seed * 0x9E3779B97F4A7C15u + i) % n);
}

// ---- Running --------------------------------------------------------------------------------------------------------

struct Answer {
  Status status;
  std::vector<std::string> rows;  ///< sorted, where the program has no order
  vm::RunStatistics statistics;
};

Answer Execute(const Program& program, const Snapshot& snapshot, vm::SectionBackend* gpu,
               const std::atomic<bool>* cancel = nullptr) {
  Answer answer;
  answer.status = vm::Verify(program);
  if (!answer.status.ok()) return answer;
  vm::Executor executor(4);
  vm::RunOptions options;
  options.gpu = gpu;
  options.gpu_required = gpu != nullptr;
  options.cancel = cancel;
  auto consume = [&](RowBatch&& batch) -> Status {
    for (size_t i = 0; i < batch.rows; ++i) {
      std::string line;
      for (const ColumnVector& c : batch.columns) {
        if (c.IsNull(i)) {
          line += "NULL";
        } else if (c.type.IsFloat()) {  // the order of additions is not fixed
          char text[32];
          snprintf(text, sizeof text, "%.9g", c.Float(i));
          line += text;
        } else {
          AppendText(c, i, &line);
        }
        line += '|';
      }
      answer.rows.push_back(std::move(line));
    }
    return Status::Ok();
  };
  answer.status = executor.Run(program, snapshot, options, consume, &answer.statistics);
  if (program.sections.back().after.order.empty()) std::sort(answer.rows.begin(), answer.rows.end());
  return answer;
}

class GpuVm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (GpuCount() == 0) GTEST_SKIP() << "no GPU on this machine (or built without CUDA): the VM kernel was not tested";
    gpu_ = Open(GpuOptions());
    ASSERT_NE(gpu_, nullptr);
    // For initcheck, which does not follow copies that are started together.
    if (getenv("TESSERA_TEST_PAGEABLE") != nullptr) {
      ASSERT_TRUE(gpu_->SetTransfer(Transfer::kPageable, 0).ok());
    }
  }
  static std::unique_ptr<Gpu> Open(const GpuOptions& options) {
    auto gpu = Gpu::Open(0, options);
    EXPECT_TRUE(gpu.ok()) << (gpu.ok() ? "" : gpu.status().message());
    return gpu.ok() ? std::move(*gpu) : nullptr;
  }
  /// Host and GPU give the same rows, or the same error.
  Answer Same(const Program& program, const Snapshot& snapshot, Gpu* gpu = nullptr) {
    const Answer host = Execute(program, snapshot, nullptr);
    Answer device = Execute(program, snapshot, gpu != nullptr ? gpu : gpu_.get());
    if (!host.status.ok()) {
      EXPECT_NE(host.status.code(), ErrorCode::kCorrupt) << host.status.message();
    }
    EXPECT_EQ(host.status.ok(), device.status.ok())
        << (host.status.ok() ? device.status.message() : host.status.message());
    if (!host.status.ok() || !device.status.ok()) {
      if (!host.status.ok() && !device.status.ok()) {
        EXPECT_EQ(host.status.message(), device.status.message());
      }
      return device;
    }
    EXPECT_TRUE(device.statistics.sections[0].on_gpu);
    // Of rows in order up to a limit the host leaves tablets out that are all after it.
    const vm::Section& section = program.sections[0];
    if (section.after.order.empty() || section.after.limit < 0) {
      EXPECT_EQ(host.statistics.sections[0].rows_in, device.statistics.sections[0].rows_in);
      EXPECT_EQ(host.statistics.sections[0].tablets_skipped, device.statistics.sections[0].tablets_skipped);
    }
    EXPECT_EQ(host.rows.size(), device.rows.size());
    for (size_t i = 0, shown = 0; i < std::min(host.rows.size(), device.rows.size()) && shown < 5; ++i) {
      if (host.rows[i] == device.rows[i]) continue;
      ADD_FAILURE() << "row " << i << ": host " << host.rows[i] << " GPU " << device.rows[i];
      ++shown;
    }
    return device;
  }

  std::unique_ptr<Gpu> gpu_;
};

/// SSB q1.1: three ranges, a column on demand, a product, a sum.
Program RevenueProgram(int64_t date_low, int64_t date_high) {
  Maker m(Section::Sink::kGroups);
  const int date = m.Slot(0, kInteger), discount = m.Slot(1, kInteger), quantity = m.Slot(2, kInteger),
            price = m.Slot(3, kInteger);
  const int sum = m.Aggregate(Opcode::SumI, kWide), count = m.Aggregate(Opcode::CountRows, kBigint);
  m.Filter(m.Range(date, date_low, date_high)).Filter(m.Range(discount, 1, 3)).Filter(m.Range(quantity, 1, 24));
  m.Load(price).Op(Opcode::MulI, 0, Operand::Slot(discount).Pack());
  m.Op(Opcode::Group).Op(Opcode::SumI, sum).Op(Opcode::CountRows, count);
  return m.Finish();
}

std::vector<MemoryColumn> RevenueColumns(size_t rows) {
  return {Column(Integers(
                     rows, [](size_t i) { return Below(1, i, 2406); }, kInteger),
                 2),
          Column(Integers(
                     rows, [](size_t i) { return Below(2, i, 11); }, kInteger),
                 1),
          Column(Integers(
                     rows, [](size_t i) { return 1 + Below(3, i, 50); }, kInteger),
                 1),
          Column(Integers(
                     rows, [](size_t i) { return 90000 + Below(4, i, 10000000); }, kInteger),
                 4)};
}

TEST_F(GpuVm, SumsAtTheEdgesOfTiles) {
  for (size_t rows : {0, 1, 31, 32, 33, 511, 512, 513, 2047, 2048, 2049, 4095, 4097, 65535, 65536, 65537}) {
    SCOPED_TRACE(rows);
    const auto snapshot = Store(RevenueColumns(rows), 1u << 15);
    Same(RevenueProgram(344, 687), *snapshot);
    Same(RevenueProgram(0, 2405), *snapshot);
    Same(RevenueProgram(5000, 6000), *snapshot);  // no tablet has such a date
  }
}

TEST_F(GpuVm, ManyTablets) {
  const auto snapshot = Store(RevenueColumns(3000000), 1u << 12);
  Same(RevenueProgram(344, 687), *snapshot);
  Same(RevenueProgram(344, 344), *snapshot);
}

TEST_F(GpuVm, CachedColumnsAreNotSentAgain) {
  const auto snapshot = Store(RevenueColumns(1 << 20));
  const Program program = RevenueProgram(344, 687);
  EXPECT_GT(Same(program, *snapshot).statistics.sections[0].bytes_transferred, 0u);
  EXPECT_EQ(Same(program, *snapshot).statistics.sections[0].bytes_transferred, 0u);
  EXPECT_GE(gpu_->memory().cached_bytes, uint64_t{8} << 20);
  ASSERT_TRUE(gpu_->DropCache().ok());
  EXPECT_EQ(gpu_->memory().cached_bytes, 0u);
  EXPECT_GT(Same(program, *snapshot).statistics.sections[0].bytes_transferred, 0u);
}

TEST_F(GpuVm, TabletsUnderOtherEncodings) {
  const size_t rows = 40000;
  std::vector<MemoryColumn> columns = RevenueColumns(rows);
  // The same column in all widths; with NULLs of all forms; constant and all-NULL tablets.
  columns[3].values = Integers(rows, [](size_t i) -> std::optional<int64_t> {
    if (i / 4096 == 3) return 77;            // a constant tablet
    if (i / 4096 == 4) return std::nullopt;  // a tablet of NULLs
    if (i % 17 == 0) return std::nullopt;
    return Below(9, i, 200);
  });
  columns[3].forms.clear();
  for (int width : {1, 2, 4, 8, 8}) {
    ChunkForm form;
    form.width = width;
    form.encoding = columns[3].forms.size() == 3 ? Encoding::kConstant : Encoding::kFrame;
    form.null_code = columns[3].forms.size() == 1 ? ChunkForm::NullCode::kLast : ChunkForm::NullCode::kNext;
    columns[3].forms.push_back(form);
  }
  columns[3].forms.push_back(columns[3].forms[2]);
  columns[3].forms[4].encoding = Encoding::kConstant;
  for (int width : {1, 2}) {
    ChunkForm form;
    form.width = width;
    columns[3].forms.push_back(form);
  }
  columns[3].forms.push_back(columns[3].forms[0]);
  columns[3].forms.push_back(columns[3].forms[1]);
  const auto snapshot = Store(columns, 4096);
  ASSERT_NE(snapshot, nullptr);
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    Maker m(Section::Sink::kGroups);
    const int v = m.Slot(3, kBigint), date = m.Slot(0, kInteger);
    const int sum = m.Aggregate(Opcode::SumI, kWide), least = m.Aggregate(Opcode::MinI, kBigint);
    const int count = m.Aggregate(Opcode::Count, kBigint), rows_in = m.Aggregate(Opcode::CountRows, kBigint);
    if (variant == 1) m.Filter(m.Range(v, 10, 150));
    if (variant == 2) m.Filter(m.Range(v, 10, 150, true));
    if (variant == 3) m.Filter(m.Range(date, 3, 20)).Filter(m.In(v, {3, 5, 77, 199}));
    m.Load(v)
        .Op(Opcode::Group)
        .Op(Opcode::SumI, sum)
        .Op(Opcode::MinI, least)
        .Op(Opcode::Count, count)
        .Op(Opcode::CountRows, rows_in);
    Same(m.Finish(), *snapshot);
  }
}

TEST_F(GpuVm, FailsLikeTheHost) {
  const size_t rows = 100000;
  std::vector<MemoryColumn> columns = RevenueColumns(rows);
  columns.push_back(Column(Integers(rows, [](size_t i) { return i == 77777 ? INT64_MAX : Below(5, i, 1000); }), 8));
  const auto snapshot = Store(columns, 1u << 14);
  for (int64_t high : {2405, 1}) {  // with the row, and (as it happens) without it
    Maker m(Section::Sink::kGroups);
    const int date = m.Slot(0, kInteger), v = m.Slot(4, kBigint), sum = m.Aggregate(Opcode::SumI, kWide);
    m.Filter(m.Range(date, 0, high)).Load(v).Op(Opcode::AddIX, 0, Operand::Constant(m.Int(1)).Pack());
    m.Op(Opcode::Group).Op(Opcode::SumI, sum);
    const Answer answer = Same(m.Finish(), *snapshot);
    EXPECT_EQ(answer.status.ok(), high == 1);
  }
  // The GPU is as good as new.
  Same(RevenueProgram(344, 687), *snapshot);
}

// ---- Groups ---------------------------------------------------------------------------------------------------------

struct GroupCase {
  std::vector<uint64_t> domains;  ///< one key each
  bool nulls = false;
  bool wide_key = false;
  size_t rows = 300000;
};

/// Which aggregates a program has: those of the lean kernel; all of 64 bits (small domains are then aggregated by
/// number); all.
enum class Aggregates { kLean, kNarrow, kAll };

void AddAggregates(Maker* m, Aggregates which, int v, int f, int w) {
  auto add = [&](Opcode op, SqlType type) { m->Op(op, m->Aggregate(op, type)); };
  add(Opcode::CountRows, kBigint);
  m->Load(v);
  add(Opcode::Count, kBigint);
  add(Opcode::SumI, kWide);
  add(Opcode::MinI, kBigint);
  add(Opcode::MaxI, kBigint);
  if (which == Aggregates::kLean) return;
  m->Load(f);
  add(Opcode::MinF, kDouble);
  add(Opcode::MaxF, kDouble);
  if (which == Aggregates::kNarrow) return;
  add(Opcode::SumF, kBigint);
  add(Opcode::MomentsF, kBigint);
  m->Op(Opcode::LoadW, 0, Operand::Slot(w).Pack());
  add(Opcode::CountW, kBigint);
  add(Opcode::SumW, kWide);
  add(Opcode::MinW, kWide);
  add(Opcode::MaxW, kWide);
}

std::vector<MemoryColumn> GroupColumns(const GroupCase& c) {
  std::vector<MemoryColumn> columns;
  for (size_t k = 0; k < c.domains.size(); ++k) {
    const uint64_t n = c.domains[k];
    columns.push_back(Column(Integers(c.rows,
                                      [&](size_t i) -> std::optional<int64_t> {
                                        if (c.nulls && Below(50 + k, i, 13) == 0) return std::nullopt;
                                        return Below(10 + k, i, n) - 5;
                                      }),
                             n > 60000 ? 4
                             : n > 250 ? 2
                                       : 1));
  }
  columns.push_back(Column(Integers(c.rows,
                                    [](size_t i) -> std::optional<int64_t> {
                                      if (Below(60, i, 9) == 0) return std::nullopt;
                                      return Below(61, i, uint64_t{1} << 62) -
                                             (int64_t{1} << 61);  // sums need more than 64 bits
                                    }),
                           8));
  ColumnVector f;
  f.type = kDouble;
  for (size_t i = 0; i < c.rows; ++i)
    f.Append(i % 7 == 0 ? Value::Null(kDouble)
                        : Value::Float(kDouble, static_cast<double>(Below(62, i, 1000)) / 8 - 50));
  columns.push_back({"f", f, {ChunkForm()}});
  ColumnVector w;
  w.type = kWide;
  for (size_t i = 0; i < c.rows; ++i) {
    w.Append(i % 11 == 0
                 ? Value::Null(kWide)
                 : Value::Wide(kWide, (static_cast<int128_t>(Below(63, i, 1 << 20)) - (1 << 19)) * (int128_t{1} << 80) +
                                          Below(64, i, 1000)));
  }
  ChunkForm form;
  form.width = 16;
  columns.push_back({"w", w, {form}});
  return columns;
}

TEST_F(GpuVm, Groups) {
  const GroupCase cases[] = {{{1}},
                             {{35}},
                             {{35}, true},
                             {{7, 5}},
                             {{7, 5}, true},
                             {{300, 11}},
                             {{1000000}},
                             {{1000, 1000}, true},
                             {{3, 4, 5, 6, 7}, true},
                             {{7}, false, true},
                             {{200000}, true, true},
                             {{35}, false, false, 1000}};
  for (size_t number = 0; number < std::size(cases); ++number) {
    const GroupCase& c = cases[number];
    SCOPED_TRACE(number);
    const auto snapshot = Store(GroupColumns(c), 1u << 16);
    ASSERT_NE(snapshot, nullptr);
    for (Aggregates which : {Aggregates::kLean, Aggregates::kNarrow, Aggregates::kAll}) {
      SCOPED_TRACE(static_cast<int>(which));
      Maker m(Section::Sink::kGroups);
      std::vector<int> slots;
      std::vector<SqlType> keys;
      for (size_t k = 0; k < c.domains.size(); ++k) slots.push_back(m.Slot(static_cast<int>(k), kBigint));
      const int base = static_cast<int>(c.domains.size());
      const int v = m.Slot(base, kBigint), f = m.Slot(base + 1, kDouble), w = m.Slot(base + 2, kWide);
      int32_t from = Operand::Slot(slots[0]).Pack();
      if (c.wide_key) {
        const int r = m.Register(kWide);
        m.Load(slots[0]).Op(Opcode::IToW).Op(Opcode::StoreW, 0, r);
        from = Operand::Register(r).Pack();
        keys.push_back(kWide);
      } else if (c.domains.size() > 1) {
        from = Operand::Register(static_cast<int>(m.section.registers.size())).Pack();
        for (int s : slots) m.Keep(s);
        keys.assign(c.domains.size(), kBigint);
      } else {
        keys.push_back(kBigint);
      }
      m.Op(Opcode::Group, 0, from, static_cast<int32_t>(keys.size()));
      AddAggregates(&m, which, v, f, w);
      Same(m.Finish(keys), *snapshot);
    }
  }
}

TEST_F(GpuVm, GroupsByNumberAndByHashMeet) {
  // Domains about the largest that keys number directly, and ranges that differ from tablet to tablet.
  for (int64_t domain : {4095, 4096, 4097}) {
    SCOPED_TRACE(domain);
    std::vector<MemoryColumn> columns = {
        Column(Integers(100000, [&](size_t i) { return static_cast<int64_t>(i) * domain / 100000 - 2000; }), 2),
        Column(Integers(100000, [](size_t i) { return Below(7, i, 100); }), 1)};
    const auto snapshot = Store(columns, 1u << 12);
    Maker m(Section::Sink::kGroups);
    const int key = m.Slot(0, kBigint), v = m.Slot(1, kBigint);
    const int sum = m.Aggregate(Opcode::SumI, kWide);
    m.Op(Opcode::Group, 0, Operand::Slot(key).Pack(), 1).Load(v).Op(Opcode::SumI, sum);
    Same(m.Finish({kBigint}), *snapshot);
  }
}

TEST_F(GpuVm, GroupsOfText) {
  const SqlType text = SqlType::Text();
  const size_t rows = 50000;
  std::vector<MemoryColumn> columns(2);
  for (size_t k = 0; k < 2; ++k) {
    columns[k].name = "t";
    columns[k].values.type = text;
    for (size_t i = 0; i < rows; ++i) {
      const int64_t n = Below(70 + k, i, k == 0 ? 5 : 40);
      columns[k].values.Append(n == 3 ? Value::Null(text) : Value::Text("word " + std::to_string(n)));
    }
    ChunkForm form;
    form.encoding = Encoding::kDictionary;
    form.width = 1;
    columns[k].forms = {form};
  }
  columns.push_back(Column(Integers(rows, [](size_t i) { return Below(7, i, 100); }), 1));
  const auto snapshot = Store(columns, 1u << 13);
  ASSERT_NE(snapshot, nullptr);
  for (size_t keys = 1; keys <= 2; ++keys) {
    Maker m(Section::Sink::kGroups);
    const int x = m.Slot(0, text), y = m.Slot(1, text), v = m.Slot(2, kBigint);
    const int sum = m.Aggregate(Opcode::SumI, kWide);
    int32_t from = Operand::Slot(x).Pack();
    if (keys == 2) {
      from = Operand::Register(m.Keep(x)).Pack();
      m.Keep(y);
    }
    m.Op(Opcode::Group, 0, from, static_cast<int32_t>(keys)).Load(v).Op(Opcode::SumI, sum);
    Same(m.Finish(std::vector<SqlType>(keys, text)), *snapshot);
  }
}

TEST_F(GpuVm, GroupsWithoutValues) {
  // Some groups see no value of an aggregate: its result is NULL.
  const auto snapshot = Store(GroupColumns({{500}, true, false, 20000}), 1u << 13);
  Maker m(Section::Sink::kGroups);
  const int key = m.Slot(0, kBigint), v = m.Slot(1, kBigint);
  const int saved = 0;
  m.section.masks = 1;
  const int all = m.Aggregate(Opcode::SumI, kWide), some = m.Aggregate(Opcode::SumI, kWide),
            least = m.Aggregate(Opcode::MinI, kBigint);
  m.Op(Opcode::Group, 0, Operand::Slot(key).Pack(), 1).Load(v).Op(Opcode::SumI, all).Op(Opcode::MaskSave, saved);
  m.Filter(m.Range(key, 0, 100)).Load(v).Op(Opcode::SumI, some).Op(Opcode::MinI, least).Op(Opcode::MaskLoad, saved);
  Same(m.Finish({kBigint}), *snapshot);
}

TEST_F(GpuVm, GroupsOfAnExpressionAndAConstant) {
  const auto snapshot = Store(GroupColumns({{500}, true, false, 20000}), 1u << 13);
  Maker m(Section::Sink::kGroups);
  const int key = m.Slot(0, kBigint);
  const int r = m.Register(kBigint), count = m.Aggregate(Opcode::CountRows, kBigint);
  m.Load(key).Op(Opcode::ModI, 0, Operand::Constant(m.Int(7)).Pack()).Op(Opcode::Store, 0, r);
  m.Op(Opcode::Group, 0, Operand::Register(r).Pack(), 1).Op(Opcode::CountRows, count);
  Same(m.Finish({kBigint}), *snapshot);
  Maker n(Section::Sink::kGroups);
  const int total = n.Aggregate(Opcode::CountRows, kBigint);
  n.Slot(0, kBigint);
  n.Op(Opcode::Group, 0, Operand::Constant(n.Int(7)).Pack(), 1).Op(Opcode::CountRows, total);
  Same(n.Finish({kBigint}), *snapshot);
}

TEST_F(GpuVm, TwoGroupsInOneSection) {
  // Each row goes to the group of either key: groups are reserved in a first pass.
  const auto snapshot = Store(GroupColumns({{90000, 90000}, true, false, 200000}), 1u << 16);
  Maker m(Section::Sink::kGroups);
  const int x = m.Slot(0, kBigint), y = m.Slot(1, kBigint), v = m.Slot(2, kBigint);
  const int sum = m.Aggregate(Opcode::SumI, kWide), count = m.Aggregate(Opcode::CountRows, kBigint);
  for (int key : {x, y}) {
    m.Op(Opcode::Group, 0, Operand::Slot(key).Pack(), 1).Load(v).Op(Opcode::SumI, sum).Op(Opcode::CountRows, count);
  }
  Same(m.Finish({kBigint}), *snapshot);
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

TEST_F(GpuVm, Rows) {
  for (size_t rows : {0, 1, 33, 2049, 70000}) {
    SCOPED_TRACE(rows);
    const auto snapshot = Store(GroupColumns({{300, 11}, true, false, rows}), 1u << 14);
    for (bool filtered : {false, true}) {
      Maker m(Section::Sink::kRows);
      const int x = m.Slot(0, kBigint), y = m.Slot(1, kBigint), v = m.Slot(2, kBigint), f = m.Slot(3, kDouble),
                w = m.Slot(4, kWide);
      if (filtered) m.Filter(m.Range(x, 3, 30));
      for (int slot : {x, w, y, v, f}) m.Keep(slot);
      m.Op(Opcode::Emit);
      Same(m.Finish(), *snapshot);
    }
  }
}

TEST_F(GpuVm, MoreRowsThanTheOutputHolds) {
  // 3 columns of 9 bytes in 32 MiB: 1.2 M rows at a time.
  const size_t rows = 4000000;
  const auto snapshot = Store(RevenueColumns(rows), 1u << 18);
  Maker m(Section::Sink::kRows);
  for (int c : {0, 1, 3}) m.Keep(m.Slot(c, kInteger));
  m.Op(Opcode::Emit);
  Same(m.Finish(), *snapshot);
  // The same, each row twice, in two passes.
  Maker n(Section::Sink::kRows);
  const int a = n.Slot(0, kInteger), b = n.Slot(1, kInteger);
  const int r = n.Register(kInteger);
  n.section.masks = 1;
  n.Filter(n.Range(b, 0, 5))
      .Load(a)
      .Op(Opcode::Store, 0, r)
      .Op(Opcode::Emit)
      .Load(b)
      .Op(Opcode::Store, 0, r)
      .Op(Opcode::Emit);
  Same(n.Finish(), *snapshot);
}

TEST_F(GpuVm, LimitEndsTheLaunch) {
  const auto snapshot = Store(RevenueColumns(2000000), 1u << 16);
  Maker m(Section::Sink::kRows);
  m.Keep(m.Slot(0, kInteger));
  m.Op(Opcode::Emit);
  m.section.after.limit = 10;
  m.section.after.offset = 5;
  const Answer answer = Execute(m.Finish(), *snapshot, gpu_.get());
  ASSERT_TRUE(answer.status.ok()) << answer.status.message();
  EXPECT_EQ(answer.rows.size(), 10u);
}

// ---- ORDER BY and LIMIT ---------------------------------------------------------------------------------------------

/// A column of every class, NULLs in each, and at the end one that numbers the rows.
std::vector<MemoryColumn> OrderColumns(size_t rows) {
  const auto null = [](uint64_t column, size_t i) { return Below(80 + column, i, 17) == 0; };
  std::vector<MemoryColumn> columns;
  columns.push_back(Column(Integers(rows,
                                    [&](size_t i) -> std::optional<int64_t> {
                                      if (null(0, i)) return std::nullopt;
                                      return Below(1, i, 7) - 3;
                                    }),
                           1));
  // All 64 bits, beside numbers that lie close together.
  columns.push_back(Column(Integers(rows,
                                    [&](size_t i) -> std::optional<int64_t> {
                                      if (null(1, i)) return std::nullopt;
                                      if (Below(2, i, 3) == 0) return Below(3, i, 100);
                                      return static_cast<int64_t>(Mix(i));
                                    }),
                           8));
  ColumnVector f, w, t;
  f.type = kDouble;
  w.type = kWide;
  t.type = SqlType::Text();
  const double special[] = {0.0, -0.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < rows; ++i) {
    const size_t n = static_cast<size_t>(Below(4, i, 10));
    f.Append(null(2, i) ? Value::Null(kDouble)
                        : Value::Float(kDouble, n < 5 ? special[n] : static_cast<double>(Below(5, i, 2000)) / 8 - 99));
    // Few upper halves, with all bits in the lower ones.
    w.Append(null(3, i) ? Value::Null(kWide)
                        : Value::Wide(kWide, static_cast<int128_t>(Below(6, i, 5) - 2) * (int128_t{1} << 70) +
                                                 static_cast<int64_t>(Mix(i + 1))));
    t.Append(null(4, i) ? Value::Null(t.type) : Value::Text("a common head " + std::to_string(Below(7, i, 300))));
  }
  columns.push_back({"f", std::move(f), {ChunkForm()}});
  ChunkForm wide, text;
  wide.width = 16;
  text.encoding = Encoding::kDictionary;
  text.width = 2;
  columns.push_back({"w", std::move(w), {wide}});
  columns.push_back({"t", std::move(t), {text}});
  columns.push_back(Column(Integers(rows, [](size_t i) { return static_cast<int64_t>(i); }), 4));
  return columns;
}
constexpr int kNumber = 5;  ///< the column that numbers the rows

/// All columns, ordered by `order` and then by the number, so that there is one order only.
Program OrderProgram(std::vector<vm::SortKey> order, int64_t limit, int64_t offset) {
  Maker m(Section::Sink::kRows);
  const SqlType types[] = {kBigint, kBigint, kDouble, kWide, SqlType::Text(), kBigint};
  for (int c = 0; c <= kNumber; ++c) m.Keep(m.Slot(c, types[c]));
  m.Op(Opcode::Emit);
  order.push_back({kNumber, true, false});
  m.section.after.order = std::move(order);
  m.section.after.limit = limit;
  m.section.after.offset = offset;
  return m.Finish();
}

TEST_F(GpuVm, Order) {
  const size_t rows = 300000;
  const auto snapshot = Store(OrderColumns(rows), 1u << 14);
  ASSERT_NE(snapshot, nullptr);
  // 32 MiB: an output takes 95,000 rows, so that it is cut, or drained as a run, some times.
  const auto small = Open({uint64_t{32} << 20});
  ASSERT_NE(small, nullptr);
  const std::vector<vm::SortKey> orders[] = {
      {},
      {{0, false, false}},
      {{0, true, true}, {1, false, true}},
      {{1, true, false}},
      {{2, false, false}},
      {{2, true, false}, {0, false, true}},
      {{3, false, true}},
      {{3, true, true}, {2, false, false}},
      {{4, false, false}},
      {{4, true, true}, {1, true, true}},
      {{0, false, false}, {2, true, true}, {4, false, true}, {3, true, false}},
  };
  const std::pair<int64_t, int64_t> bounds[] = {{-1, 0}, {-1, 299000}, {10, 0}, {100, 7000}, {0, 5}, {20000, 3}};
  int runs = 0, cuts = 0, whole = 0;
  for (size_t k = 0; k < std::size(orders); ++k) {
    for (const auto& [limit, offset] : bounds) {
      if (limit == -1 && k % 3 != 0) continue;  // (the host takes longest for these)
      for (Gpu* gpu : {gpu_.get(), small.get()}) {
        SCOPED_TRACE(testing::Message() << "order " << k << ", limit " << limit << ", offset " << offset << ", "
                                        << (gpu == small.get() ? "small" : "large"));
        const Answer answer = Same(OrderProgram(orders[k], limit, offset), *snapshot, gpu);
        ASSERT_FALSE(answer.statistics.sections.empty());
        const std::string& plan = answer.statistics.sections[0].device_plan;
        EXPECT_EQ(plan.find("on the host"), std::string::npos) << plan;
        runs += plan.find("runs that the host merged") != std::string::npos ? 1 : 0;
        cuts += plan.find(" times") != std::string::npos ? 1 : 0;
        whole += gpu == gpu_.get() && plan.find(", ordered by ") != std::string::npos ? 1 : 0;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(runs, 5);
  EXPECT_GT(cuts, 5);
  EXPECT_GT(whole, 20);
}

TEST_F(GpuVm, OrderOfFewRowsByManyTexts) {
  // 20,000 strings to rank for a handful of rows: the host compares those it needs. But if the section only hands them on,
  // those of the handful are all that get identifiers.
  constexpr int kRows = 50000;
  ColumnVector t, n;
  t.type = SqlType::Text();
  for (int i = 0; i < kRows; ++i)
    t.Append(Value::Text("text " + std::to_string(Mix(static_cast<uint64_t>(i % 20000)))));
  ChunkForm form;
  form.encoding = Encoding::kDictionary;
  form.width = 2;
  std::vector<MemoryColumn> columns = {{"t", std::move(t), {form}}};
  columns.push_back(Column(Integers(kRows, [](size_t i) { return static_cast<int64_t>(i); }), 4));
  const auto snapshot = Store(columns);
  for (const auto& [rows, reads] : {std::pair(50, true), {kRows, true}, {50, false}}) {
    Maker m(Section::Sink::kRows);
    const int text = m.Slot(0, SqlType::Text()), number = m.Slot(1, kBigint);
    m.Filter(m.Range(number, 0, rows - 1));
    if (reads) m.Load(text).Op(Opcode::FilterNotNull);
    m.Keep(text);
    m.Op(Opcode::Emit);
    m.section.after.order = {{0, false, false}};
    const Answer answer = Same(m.Finish(), *snapshot);
    EXPECT_EQ(answer.rows.size(), static_cast<size_t>(rows));
    const std::string& plan = answer.statistics.sections[0].device_plan;
    EXPECT_EQ(plan.find("ordered on the host") != std::string::npos, rows == 50 && reads) << plan;
  }
}

TEST_F(GpuVm, MoreRegistersThanSharedMemoryHolds) {
  const size_t rows = 30000;
  const auto snapshot = Store(GroupColumns({{300}, true, false, rows}), 1u << 14);
  Maker m(Section::Sink::kRows);
  const int x = m.Slot(0, kBigint), w = m.Slot(3, kWide);
  for (int i = 0; i < 20; ++i) {
    const int r = m.Register(i % 5 == 4 ? kWide : kBigint);
    if (i % 5 == 4) {
      m.Op(Opcode::LoadW, 0, Operand::Slot(w).Pack())
          .Op(Opcode::AddW, 0, Operand::Slot(w).Pack())
          .Op(Opcode::StoreW, 0, r);
    } else {
      m.Load(x).Op(Opcode::AddI, 0, Operand::Constant(m.Int(i)).Pack());
      if (i > 0) m.Op(Opcode::AddI, 0, Operand::Register(0).Pack());
      m.Op(Opcode::Store, 0, r);
    }
  }
  m.Op(Opcode::Emit);
  Same(m.Finish(), *snapshot);
}

TEST_F(GpuVm, MasksAndJumps) {
  const auto snapshot = Store(RevenueColumns(50000), 1u << 14);
  Maker m(Section::Sink::kGroups);
  m.section.masks = 2;
  const int date = m.Slot(0, kInteger), discount = m.Slot(1, kInteger), price = m.Slot(3, kInteger);
  const int sum = m.Aggregate(Opcode::SumI, kWide), count = m.Aggregate(Opcode::CountRows, kBigint);
  // date in 5 .. 9 or discount = 3, in two arms
  m.Op(Opcode::MaskSave, 0)
      .Op(Opcode::MaskClear, 1)
      .Filter(m.Range(date, 5, 9))
      .Op(Opcode::MaskOr, 1)
      .Op(Opcode::MaskLoad, 0);
  m.Op(Opcode::MaskAndNot, 1);
  const size_t skip = m.section.code.size();
  m.Op(Opcode::SkipIfNone, 0, 0).Filter(m.Range(discount, 3, 3)).Op(Opcode::MaskOr, 1);
  m.section.code[skip].p2 = static_cast<int32_t>(m.section.code.size());
  m.Op(Opcode::MaskLoad, 1).Op(Opcode::Group).Load(price).Op(Opcode::SumI, sum).Op(Opcode::CountRows, count);
  Same(m.Finish(), *snapshot);
}

// ---- Memory, cancelling ---------------------------------------------------------------------------------------------

TEST_F(GpuVm, ColumnsThatAreUsedAgainStay) {
  constexpr int kColumns = 12;
  const auto gpu = Open({uint64_t{24} << 20});
  ASSERT_NE(gpu, nullptr);
  std::vector<MemoryColumn> columns;
  for (int c = 0; c < kColumns; ++c) {
    columns.push_back(
        Column(Integers(
                   1 << 20, [c](size_t i) { return Below(static_cast<uint64_t>(c), i, 1 << 30); }, kInteger),
               4));
  }
  const auto snapshot = Store(columns);
  const auto sent = [&](int column) {
    Maker m(Section::Sink::kGroups);
    const int slot = m.Slot(column, kInteger), sum = m.Aggregate(Opcode::SumI, kWide);
    m.Op(Opcode::Group).Load(slot).Op(Opcode::SumI, sum);
    return Same(m.Finish(), *snapshot, gpu.get()).statistics.sections[0].bytes_transferred;
  };
  for (int c = 0; c < kColumns; ++c) {
    EXPECT_GT(sent(c), 0u) << c;
    EXPECT_EQ(sent(0), 0u) << "column 0 went for column " << c;
  }
  EXPECT_GT(sent(1), 0u) << "48 MB are in a memory of 24";
  EXPECT_GT(sent(2), 0u);
}

TEST_F(GpuVm, TableLargerThanTheBudget) {
  const auto gpu = Open({uint64_t{6} << 20});
  ASSERT_NE(gpu, nullptr);
  const auto snapshot = Store(RevenueColumns(4000000), 1u << 16);  // 32 MB in 62 tablets: several threads bind them
  for (int i = 0; i < 2; ++i) {
    Same(RevenueProgram(344, 687), *snapshot, gpu.get());
    EXPECT_LE(gpu->memory().cached_bytes, uint64_t{6} << 20);
  }
  Maker m(Section::Sink::kGroups);
  const int date = m.Slot(0, kInteger), price = m.Slot(3, kInteger), sum = m.Aggregate(Opcode::SumI, kWide);
  m.Op(Opcode::Group, 0, Operand::Slot(date).Pack(), 1).Load(price).Op(Opcode::SumI, sum);
  Same(m.Finish({kInteger}), *snapshot, gpu.get());
}

/// A table whose tablets are one and the same, many times: as many rows as one likes, in the memory of one tablet.
std::shared_ptr<const Snapshot> Repeated(const Snapshot& one, size_t times) {
  auto table = std::make_shared<TableInfo>(*one.tables[0]);
  const auto tablet = table->tablets[0];
  table->tablets.assign(times, tablet);
  table->rows = times * tablet->rows();
  return MakeSnapshot({table});
}

TEST_F(GpuVm, MoreRowsThanALaunchTakes) {
  // 5 * 2^30 rows: three launches, and sums of halves that have to be carried over.
  const size_t times = 5 << 10;
  const auto one = Store(RevenueColumns(1 << 20));
  const auto many = Repeated(*one, times);
  Maker m(Section::Sink::kGroups);
  const int discount = m.Slot(1, kInteger), sum = m.Aggregate(Opcode::SumI, kWide),
            count = m.Aggregate(Opcode::CountRows, kBigint);
  m.Op(Opcode::Group, 0, Operand::Slot(discount).Pack(), 1).Op(Opcode::Load, 0, Operand::Constant(m.Int(-1)).Pack());
  m.Op(Opcode::SumI, sum).Op(Opcode::CountRows, count);
  const Program program = m.Finish({kInteger});
  const Answer once = Execute(program, *one, nullptr), all = Execute(program, *many, gpu_.get());
  ASSERT_TRUE(once.status.ok() && all.status.ok()) << (all.status.ok() ? "" : all.status.message());
  ASSERT_EQ(once.rows.size(), all.rows.size());
  for (size_t i = 0; i < once.rows.size(); ++i) {
    long long key1, sum1, count1, key2, sum2, count2;
    ASSERT_EQ(sscanf(once.rows[i].c_str(), "%lld|%lld|%lld|", &key1, &sum1, &count1), 3);
    ASSERT_EQ(sscanf(all.rows[i].c_str(), "%lld|%lld|%lld|", &key2, &sum2, &count2), 3);
    EXPECT_EQ(key1, key2);
    EXPECT_EQ(sum1 * static_cast<long long>(times), sum2);
    EXPECT_EQ(count1 * static_cast<long long>(times), count2);
  }
}

TEST_F(GpuVm, LaunchesStartBeforeAllTabletsAreThere) {
  const auto many = Repeated(*Store(RevenueColumns(1 << 20)), 80);
  const auto launches = [&](const Program& program) {
    // (What has to be copied is not waited for, so the first time is another matter.)
    Execute(program, *many, gpu_.get());
    return Same(program, *many).statistics.sections[0].device_plan;
  };
  EXPECT_TRUE(launches(RevenueProgram(344, 687)).ends_with(" launches"));
  Maker few(Section::Sink::kGroups);
  int key = few.Slot(1, kInteger), sum = few.Aggregate(Opcode::SumI, kWide);
  few.Op(Opcode::Group, 0, Operand::Slot(key).Pack(), 1).Load(few.Slot(3, kInteger)).Op(Opcode::SumI, sum);
  EXPECT_TRUE(launches(few.Finish({kInteger})).ends_with(" launches"));
  Maker rows(Section::Sink::kRows);
  const int price = rows.Slot(3, kInteger);
  rows.Filter(rows.Range(rows.Slot(0, kInteger), 0, 0)).Filter(rows.Range(price, 90000, 200000));
  rows.Keep(price);
  rows.Op(Opcode::Emit);
  EXPECT_TRUE(launches(rows.Finish()).ends_with(" launches"));
}

/// Groups by this many numbers are made in one launch, whose tablets are encoded by several threads once there are
/// many.
TEST_F(GpuVm, ManyTabletsOfOneLaunch) {
  const auto many = Repeated(*Store(RevenueColumns(1 << 17)), 1024);
  Maker m(Section::Sink::kGroups);
  const int price = m.Slot(3, kInteger), sum = m.Aggregate(Opcode::SumI, kWide);
  m.Filter(m.Range(price, 90000, 190000)).Filter(m.Range(m.Slot(0, kInteger), 5, 9));
  m.Op(Opcode::Group, 0, Operand::Slot(price).Pack(), 1).Load(price).Op(Opcode::SumI, sum);
  const Program program = m.Finish({kInteger});
  for (int i = 0; i < 2; ++i) Same(program, *many);  // (the first time columns are copied)
}

TEST_F(GpuVm, Cancel) {
  const auto one = Store(RevenueColumns(1 << 20));
  const auto many = Repeated(*one, 2000);
  // Long enough to be cancelled on the way: dates and divisions for 2 G rows.
  Maker m(Section::Sink::kGroups);
  const int date = m.Slot(0, kInteger), sum = m.Aggregate(Opcode::SumI, kWide);
  m.Load(date);
  for (int i = 0; i < 8; ++i) {
    m.Op(Opcode::DatePartD, 0, 0, 0).Op(Opcode::ModI, 0, Operand::Constant(m.Int(1999)).Pack());
  }
  m.Op(Opcode::Group).Op(Opcode::SumI, sum);
  const Program program = m.Finish();
  std::atomic<bool> cancel{true};
  EXPECT_EQ(Execute(program, *many, gpu_.get(), &cancel).status.code(), ErrorCode::kCancelled);
  cancel = false;
  std::chrono::steady_clock::time_point told;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    told = std::chrono::steady_clock::now();
    cancel = true;
  });
  const Answer answer = Execute(program, *many, gpu_.get(), &cancel);
  const double waited = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - told).count();
  canceller.join();
  ASSERT_FALSE(answer.status.ok());
  EXPECT_EQ(answer.status.code(), ErrorCode::kCancelled);
  // (The threads of an emulated GPU wait for processors that other programs use, too.)
  EXPECT_LT(waited, gpu_->info().name == "emulated GPU" ? 1000 : 100);
  printf("cancelled after %.2f ms\n", waited);
  // The GPU is as good as new.
  Same(RevenueProgram(344, 687), *one);
}

TEST_F(GpuVm, DeclinesWhatItCannotDo) {
  Maker m(Section::Sink::kRows);
  const int t = m.Slot(0, SqlType::Text()), r = m.Register(SqlType::Text());
  m.Load(t).Op(Opcode::UpperT).Op(Opcode::Store, 0, r).Op(Opcode::Emit);
  const Program program = m.Finish();
  const Status can = gpu_->CanRun(program, 0);
  ASSERT_FALSE(can.ok());
  EXPECT_EQ(can.code(), ErrorCode::kUnsupported);
  EXPECT_NE(can.message().find("UpperT"), std::string::npos);
}

TEST(GpuOpen, NoSuchDevice) {
  const auto gpu = Gpu::Open(GpuCount(), GpuOptions());
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.status().code(), ErrorCode::kUnsupported);
}

// ---- Every opcode ---------------------------------------------------------------------------------------------------

TEST_F(GpuVm, OpcodeWalk) {
  WalkOptions options;
  if (const char* only = std::getenv("TESSERA_WALK_ONLY")) options.only = only;
  if (const char* seed = std::getenv("TESSERA_WALK_SEED")) options.seed = std::strtoull(seed, nullptr, 10);
  const WalkReport report = RunOpcodeWalk(options, gpu_.get());
  printf("%s", report.Summary().c_str());
  EXPECT_TRUE(report.failures.empty()) << report.failures.size() << " cases failed; they are listed above";
  EXPECT_GT(report.gpu_sections, 0u);
}

}  // namespace
}  // namespace tessera::test
