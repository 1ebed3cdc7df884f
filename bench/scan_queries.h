// Queries of the Star Schema Benchmark's shape, their data in memory and the answers of a plain loop: what
// gpu_scan_bench and gpu_opcode_bench run on the VM kernel.
//
// Start at: ScanQueries, ScanData, RunScan.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/kernels.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"
#include "vm/run/statistics.h"

namespace tessera::bench {

using vm::Opcode;
using vm::Operand;

inline const SqlType kInteger = SqlType::Of(TypeId::kInteger);
inline const SqlType kBigint = SqlType::Of(TypeId::kBigint);
inline const SqlType kSum = SqlType::Decimal(38, 0);

enum ColumnNumber { kDate, kDiscount, kQuantity, kPrice, kCity, kColumns };
inline constexpr int kWidths[kColumns] = {2, 1, 1, 4, 1};
/// Codes; quantity is 1 + code. The next one is NULL where there are NULLs.
inline constexpr uint32_t kDomains[kColumns] = {2406, 11, 50, 1 << 23, 250};
inline constexpr bool IsNull(int column, uint32_t code) { return code == kDomains[column]; }

/// Forms of the data: with NULLs, or with tablets of other sizes.
enum Form {
  kPlain,       ///< tablets of 2^20 rows
  kNullPrices,  ///< ... with a hundredth of the prices NULL
  kNulls,       ///< ... and of the discounts
  kSmall,       ///< tablets of 2^16 rows
  kPartial,     ///< tablets of 2^16 - 1 rows, so that the last tile of each is partial
  kForms
};
inline constexpr uint32_t kTabletRows[kForms] = {1 << 20, 1 << 20, 1 << 20, 1 << 16, (1 << 16) - 1};
inline constexpr bool HasNulls(Form form, int column) {
  return (form == kNulls && column == kDiscount) || ((form == kNulls || form == kNullPrices) && column == kPrice);
}

inline uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
inline uint32_t Code(Form form, int column, uint64_t row) {
  const uint64_t random = Mix(row * kColumns + static_cast<uint64_t>(column));
  if (HasNulls(form, column) && (random & 0xFFFF) < 0x10000 / 100) return kDomains[column];
  return static_cast<uint32_t>(random >> 32) % kDomains[column];
}

class ScanTablet final : public Tablet {
 public:
  ScanTablet(Form form, uint64_t first, uint32_t rows) : rows_(rows) {
    for (int c = 0; c < kColumns; ++c) {
      const size_t width = static_cast<size_t>(kWidths[c]), bytes = (rows * width + 127) / 128 * 128;
      data_[c].reset(static_cast<uint8_t*>(std::aligned_alloc(128, bytes)));
      memset(data_[c].get(), 0, bytes);
      tessera::Chunk& k = chunks_[c];
      for (uint32_t i = 0; i < rows; ++i) {
        const uint32_t code = Code(form, c, first + i);
        memcpy(data_[c].get() + i * width, &code, width);
        k.null_count += IsNull(c, code);
      }
      k.type = kInteger;
      k.encoding = Encoding::kFrame;
      k.width = static_cast<uint8_t>(width);
      k.rows = rows;
      k.base = k.min = c == kQuantity ? 1 : 0;
      k.max = k.min + kDomains[c] - 1;
      k.has_nulls = HasNulls(form, c);
      k.null_code = kDomains[c];
      k.codes = data_[c].get();
      k.codes_bytes = k.encoded_bytes = bytes;
    }
  }
  uint32_t rows() const override { return rows_; }
  Result<ChunkPointer> Chunk(int column) const override { return ChunkPointer(ChunkPointer(), &chunks_[column]); }
  std::string path() const override { return "in memory"; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  uint32_t rows_;
  std::unique_ptr<uint8_t, Free> data_[kColumns];
  tessera::Chunk chunks_[kColumns];
};

/// A column that a query reads, and how many rows are live when it does.
struct Read {
  int column;
  double live;
};

using Answer = std::map<std::vector<int64_t>, std::vector<int64_t>>;  ///< keys -> values
/// Adds one row to a query's answer.
using Fold = std::function<void(const uint32_t (&codes)[kColumns], Answer*)>;

struct ScanQuery {
  const char* name;
  Form form;
  vm::Program program;
  std::vector<Read> reads;
  Fold fold;    ///< empty: there are too many groups, only the number of rows is known
  Answer want;  ///< ScanData's
};

struct Builder {
  vm::Program program;
  vm::Section s;
  Builder() {
    program.tables.push_back({1, "lineorder"});
    s.source_kind = vm::Section::Source::kTable;
    s.sink = vm::Section::Sink::kGroups;
    for (int c = 0; c < kColumns; ++c) s.slots.push_back({c, kInteger, -1});
  }
  Builder& Op(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0) {
    s.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, 0});
    return *this;
  }
  Builder& Range(int slot, int64_t low, int64_t high) {
    vm::Predicate p;
    p.slot = slot;
    for (int64_t v : {low, high}) program.constants.push_back(Value::Int(kInteger, v));
    p.low = static_cast<int32_t>(program.constants.size()) - 2;
    p.high = p.low + 1;
    s.predicates.push_back(p);
    return Op(Opcode::Filter, static_cast<int>(s.predicates.size()) - 1);
  }
  Builder& Aggregate(Opcode op) {
    s.aggregates.push_back({op, op == Opcode::SumI ? kSum : kBigint});
    return Op(op, static_cast<int>(s.aggregates.size()) - 1);
  }
  Builder& Group(std::vector<int> slots) {
    s.keys = static_cast<int32_t>(slots.size());
    s.columns.assign(slots.size(), kInteger);
    if (slots.size() == 1) return Op(Opcode::Group, 0, Operand::Slot(slots[0]).Pack(), 1);
    for (int slot : slots) {
      Op(Opcode::Load, 0, Operand::Slot(slot).Pack()).Op(Opcode::Store, 0, static_cast<int32_t>(s.registers.size()));
      s.registers.push_back(kInteger);
    }
    return Op(Opcode::Group, 0, slots.empty() ? 0 : Operand::Register(0).Pack(), s.keys);
  }
  vm::Program Finish() {
    Op(Opcode::End);
    for (const vm::AggregateSpec& a : s.aggregates) s.columns.push_back(a.type);
    program.sections.push_back(s);
    return program;
  }
};

inline std::vector<ScanQuery> ScanQueries() {
  std::vector<ScanQuery> queries;
  for (auto [form, name] : {std::pair{kPlain, "q1.1: sum(price * discount), 3 ranges"},
                            {kNullPrices, "... 1 % of the prices NULL"},
                            {kNulls, "... and of the discounts"},
                            {kSmall, "... tablets of 65,536 rows"},
                            {kPartial, "... tablets of 65,535 rows"}}) {
    Builder b;
    b.Range(kDate, 344, 687).Range(kDiscount, 1, 3).Range(kQuantity, 1, 24);
    b.Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack()).Op(Opcode::MulI, 0, Operand::Slot(kDiscount).Pack());
    b.Group({}).Aggregate(Opcode::SumI);
    queries.push_back({name,
                       form,
                       b.Finish(),
                       {{kDate, 1}, {kDiscount, 1}, {kQuantity, 1}, {kPrice, 344.0 / 2406 * 3 / 11 * 24 / 50}},
                       [](const uint32_t(&c)[kColumns], Answer* out) {
                         if (c[kDate] < 344 || c[kDate] > 687 || c[kDiscount] < 1 || c[kDiscount] > 3) return;
                         if (c[kQuantity] + 1 > 24 || IsNull(kPrice, c[kPrice])) return;
                         auto& v = (*out)[{}];
                         v.resize(1);
                         v[0] += int64_t{c[kPrice]} * c[kDiscount];
                       },
                       {}});
  }
  {
    Builder b;
    b.Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack()).Group({}).Aggregate(Opcode::SumI);
    queries.push_back({"sum(price), no condition",
                       kPlain,
                       b.Finish(),
                       {{kPrice, 1}},
                       [](const uint32_t(&c)[kColumns], Answer* out) {
                         auto& v = (*out)[{}];
                         v.resize(1);
                         v[0] += c[kPrice];
                       },
                       {}});
  }
  {
    Builder b;
    b.Group({kDiscount}).Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack());
    b.Aggregate(Opcode::SumI).Aggregate(Opcode::CountRows);
    queries.push_back({"group by discount (11): sum, count",
                       kPlain,
                       b.Finish(),
                       {{kDiscount, 1}, {kPrice, 1}},
                       [](const uint32_t(&c)[kColumns], Answer* out) {
                         auto& v = (*out)[{c[kDiscount]}];
                         v.resize(2);
                         v[0] += c[kPrice];
                         ++v[1];
                       },
                       {}});
  }
  {
    Builder b;
    b.Group({kDiscount, kCity}).Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack()).Aggregate(Opcode::SumI);
    queries.push_back({"group by discount, city (2750): sum",
                       kPlain,
                       b.Finish(),
                       {{kDiscount, 1}, {kCity, 1}, {kPrice, 1}},
                       [](const uint32_t(&c)[kColumns], Answer* out) {
                         auto& v = (*out)[{c[kDiscount], c[kCity]}];
                         v.resize(1);
                         v[0] += c[kPrice];
                       },
                       {}});
  }
  {
    Builder b;
    b.program.constants.push_back(Value::Int(kInteger, 35));
    b.s.registers.push_back(kInteger);
    b.s.keys = 1;
    b.s.columns = {kInteger};
    b.Op(Opcode::Load, 0, Operand::Slot(kCity).Pack())
        .Op(Opcode::ModI, 0, Operand::Constant(0).Pack())
        .Op(Opcode::Store, 0, 0);
    b.Op(Opcode::Group, 0, Operand::Register(0).Pack(), 1)
        .Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack())
        .Aggregate(Opcode::SumI);
    queries.push_back({"group by city % 35 (hashed): sum",
                       kPlain,
                       b.Finish(),
                       {{kCity, 1}, {kPrice, 1}},
                       [](const uint32_t(&c)[kColumns], Answer* out) {
                         auto& v = (*out)[{c[kCity] % 35}];
                         v.resize(1);
                         v[0] += c[kPrice];
                       },
                       {}});
  }
  {
    Builder b;
    b.Group({kPrice}).Aggregate(Opcode::CountRows);
    queries.push_back({"group by price (8.4 M): count", kPlain, b.Finish(), {{kPrice, 1}}, {}, {}});
  }
  return queries;
}

/// The tables of the forms that queries ask for, one after the other in memory, and the queries' answers; on all cores.
class ScanData {
 public:
  ScanData(uint64_t rows, std::vector<ScanQuery>* queries) {
    for (int form = 0; form < kForms; ++form) {
      std::vector<ScanQuery*> asked;
      for (ScanQuery& q : *queries) {
        if (q.form == form) asked.push_back(&q);
      }
      if (!asked.empty()) Make(static_cast<Form>(form), rows, asked);
    }
  }
  const TableInfo& Table(Form form) const { return tables_[form]; }

 private:
  void Make(Form form, uint64_t rows, const std::vector<ScanQuery*>& queries) {
    TableInfo& table = tables_[form];
    const uint32_t tablet_rows = kTabletRows[form];
    table.id = form + 1;
    table.rows = rows;
    table.tablets.resize((rows + tablet_rows - 1) / tablet_rows);
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    std::vector<std::vector<Answer>> answers(std::max(1u, std::thread::hardware_concurrency()));
    for (std::vector<Answer>& mine : answers) {
      mine.resize(queries.size());
      threads.emplace_back([&] {
        for (size_t i = next++; i < table.tablets.size(); i = next++) {
          const uint64_t first = i * tablet_rows;
          const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(tablet_rows, rows - first));
          table.tablets[i] = std::make_shared<ScanTablet>(form, first, n);
          for (uint32_t r = 0; r < n; ++r) {
            uint32_t codes[kColumns];
            for (int c = 0; c < kColumns; ++c) codes[c] = Code(form, c, first + r);
            for (size_t q = 0; q < queries.size(); ++q) {
              if (queries[q]->fold) queries[q]->fold(codes, &mine[q]);
            }
          }
        }
      });
    }
    for (std::thread& t : threads) t.join();
    for (size_t q = 0; q < queries.size(); ++q) {
      for (std::vector<Answer>& mine : answers) {
        for (auto& [key, values] : mine[q]) {
          auto& v = queries[q]->want[key];
          v.resize(values.size());
          for (size_t i = 0; i < values.size(); ++i) v[i] += values[i];
        }
      }
    }
  }

  TableInfo tables_[kForms];
};

struct ScanTime {
  double kernel, wall;  ///< milliseconds
  bool right;
};

inline bool IsRight(const ScanQuery& q, const vm::RowSet& result, uint64_t rows) {
  if (q.want.empty()) {
    uint64_t sum = 0;
    for (int64_t v : result.columns.back().low) sum += static_cast<uint64_t>(v);
    return sum == rows;
  }
  if (result.rows != q.want.size()) return false;
  const size_t keys = static_cast<size_t>(q.program.sections[0].keys);
  for (size_t r = 0; r < result.rows; ++r) {
    std::vector<int64_t> key, values;
    for (size_t c = 0; c < result.columns.size(); ++c) (c < keys ? key : values).push_back(result.columns[c].low[r]);
    auto found = q.want.find(key);
    if (found == q.want.end() || found->second != values) return false;
  }
  return true;
}

inline Result<ScanTime> RunScan(Gpu* gpu, const ScanQuery& q, const ScanData& data) {
  vm::StringPool strings;
  vm::SectionStatistics statistics;
  const TableInfo& table = data.Table(q.form);
  const vm::ProgramTraits traits = vm::TraitsOf(q.program);
  const auto start = Clock::now();
  TESSERA_ASSIGN(const vm::RowSet result,
                 gpu->Begin()->RunSection({&q.program, &traits, 0, &table, &strings, nullptr, &statistics, nullptr}));
  const double wall = MillisecondsSince(start);
  return ScanTime{statistics.kernel_milliseconds, wall, IsRight(q, result, table.rows)};
}

/// Verify demands that the last section makes rows, so these programs end with a section that reads none of theirs.
inline Status VerifyScan(const ScanQuery& q) {
  vm::Program p = q.program;
  vm::Section last;
  last.source_kind = vm::Section::Source::kOneRow;
  last.code = {{Opcode::Emit, 0, 0, 0, 0}, {Opcode::End, 0, 0, 0, 0}};
  p.sections.push_back(last);
  return vm::Verify(p);
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace tessera::bench
