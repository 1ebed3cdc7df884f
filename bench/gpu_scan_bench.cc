// How fast the VM kernel scans: queries of the Star Schema Benchmark's shape over columns that lie on the GPU, beside
// the time that the memory alone would need. Data is made in memory: no files, no SQL.
//
//   gpu_scan_bench [millions of rows, 120] [times, 15]
//
// Prints one line a query: the kernel's median and least time, the wall time of the section, the bytes that must be
// read (staged columns whole, columns on demand by the 32-byte sectors that a live row touches), GB/s, the share of the
// measured bandwidth, and the floor. The exit status is 1 if a result differs from a plain loop's.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/kernels.h"
#include "vm/program.h"
#include "vm/vm.h"

namespace tessera {
namespace {

using vm::Opcode;
using vm::Operand;

constexpr uint32_t kTabletRows = 1 << 20;
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kSum = SqlType::Decimal(38, 0);

enum ColumnNumber { kDate, kDiscount, kQuantity, kPrice, kCity, kColumns };
constexpr int kWidths[kColumns] = {2, 1, 1, 4, 1};
constexpr uint32_t kDomains[kColumns] = {2406, 11, 50, 1 << 23, 250};  // codes; quantity is 1 + code

uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
uint32_t Code(int column, uint64_t row) {
  return static_cast<uint32_t>(Mix(row * kColumns + static_cast<uint64_t>(column)) >> 32) % kDomains[column];
}

class BenchTablet final : public Tablet {
 public:
  BenchTablet(uint64_t first, uint32_t rows) : rows_(rows) {
    for (int c = 0; c < kColumns; ++c) {
      const size_t width = static_cast<size_t>(kWidths[c]), bytes = (rows * width + 127) / 128 * 128;
      data_[c].reset(static_cast<uint8_t*>(std::aligned_alloc(128, bytes)));
      memset(data_[c].get(), 0, bytes);
      for (uint32_t i = 0; i < rows; ++i) {
        const uint32_t code = Code(c, first + i);
        memcpy(data_[c].get() + i * width, &code, width);
      }
      tessera::Chunk& k = chunks_[c];
      k.type = kInteger;
      k.encoding = Encoding::kFrame;
      k.width = static_cast<uint8_t>(width);
      k.rows = rows;
      k.base = k.min = c == kQuantity ? 1 : 0;
      k.max = k.min + kDomains[c] - 1;
      k.codes = data_[c].get();
      k.codes_bytes = k.encoded_bytes = bytes;
    }
  }
  uint32_t rows() const override { return rows_; }
  Result<const tessera::Chunk*> Chunk(int column) const override { return &chunks_[column]; }
  std::string path() const override { return "in memory"; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  uint32_t rows_;
  std::unique_ptr<uint8_t, Free> data_[kColumns];
  tessera::Chunk chunks_[kColumns];
};

/// A column that a query reads, and how many of its rows are live then.
struct Read {
  int column;
  double live;
};

struct Query {
  const char* name;
  vm::Program program;
  std::vector<Read> reads;
  std::map<std::vector<int64_t>, std::vector<int64_t>> want;  ///< keys -> values
};

/// One row into a query's answer.
using Fold =
    std::function<void(const uint32_t (&codes)[kColumns], std::map<std::vector<int64_t>, std::vector<int64_t>>*)>;

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

int Fail(const Status& status) {
  fprintf(stderr, "%s\n%s\n", status.message().c_str(), status.hint().c_str());
  return 2;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const uint64_t rows = static_cast<uint64_t>(argc > 1 ? std::atoll(argv[1]) : 120) * 1000000;
  const int times = argc > 2 ? std::atoi(argv[2]) : 15;
  if (GpuCount() == 0) {
    printf("no GPU on this machine\n");
    return 0;
  }
  auto opened = Gpu::Open(0, GpuOptions());
  if (!opened.ok()) return Fail(opened.status());
  Gpu& gpu = **opened;

  std::vector<Query> queries(6);
  std::vector<Fold> folds;
  {
    Query& q = queries[0];
    q.name = "q1.1: sum(price * discount), 3 ranges";
    Builder b;
    b.Range(kDate, 344, 687).Range(kDiscount, 1, 3).Range(kQuantity, 1, 24);
    b.Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack()).Op(Opcode::MulI, 0, Operand::Slot(kDiscount).Pack());
    b.Group({}).Aggregate(Opcode::SumI);
    q.program = b.Finish();
    q.reads = {{kDate, 1}, {kDiscount, 1}, {kQuantity, 1}, {kPrice, 344.0 / 2406 * 3 / 11 * 24 / 50}};
    folds.push_back([](const uint32_t(&c)[kColumns], auto* out) {
      if (c[kDate] < 344 || c[kDate] > 687 || c[kDiscount] < 1 || c[kDiscount] > 3 || c[kQuantity] + 1 > 24) return;
      auto& v = (*out)[{}];
      v.resize(1);
      v[0] += int64_t{c[kPrice]} * c[kDiscount];
    });
  }
  {
    Query& q = queries[1];
    q.name = "sum(price), no condition";
    Builder b;
    b.Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack()).Group({}).Aggregate(Opcode::SumI);
    q.program = b.Finish();
    q.reads = {{kPrice, 1}};
    folds.push_back([](const uint32_t(&c)[kColumns], auto* out) {
      auto& v = (*out)[{}];
      v.resize(1);
      v[0] += c[kPrice];
    });
  }
  {
    Query& q = queries[2];
    q.name = "group by discount (11): sum, count";
    Builder b;
    b.Group({kDiscount})
        .Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack())
        .Aggregate(Opcode::SumI)
        .Aggregate(Opcode::CountRows);
    q.program = b.Finish();
    q.reads = {{kDiscount, 1}, {kPrice, 1}};
    folds.push_back([](const uint32_t(&c)[kColumns], auto* out) {
      auto& v = (*out)[{c[kDiscount]}];
      v.resize(2);
      v[0] += c[kPrice];
      ++v[1];
    });
  }
  {
    Query& q = queries[3];
    q.name = "group by discount, city (2750): sum";
    Builder b;
    b.Group({kDiscount, kCity}).Op(Opcode::Load, 0, Operand::Slot(kPrice).Pack()).Aggregate(Opcode::SumI);
    q.program = b.Finish();
    q.reads = {{kDiscount, 1}, {kCity, 1}, {kPrice, 1}};
    folds.push_back([](const uint32_t(&c)[kColumns], auto* out) {
      auto& v = (*out)[{c[kDiscount], c[kCity]}];
      v.resize(1);
      v[0] += c[kPrice];
    });
  }
  {
    Query& q = queries[4];
    q.name = "group by city % 35 (hashed): sum";
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
    q.program = b.Finish();
    q.reads = {{kCity, 1}, {kPrice, 1}};
    folds.push_back([](const uint32_t(&c)[kColumns], auto* out) {
      auto& v = (*out)[{c[kCity] % 35}];
      v.resize(1);
      v[0] += c[kPrice];
    });
  }
  {
    Query& q = queries[5];
    q.name = "group by price (8.4 M): count";
    Builder b;
    b.Group({kPrice}).Aggregate(Opcode::CountRows);
    q.program = b.Finish();
    q.reads = {{kPrice, 1}};
  }
  folds.push_back(nullptr);

  // Data, and the answers of a plain loop, on all cores.
  TableInfo table;
  table.id = 1;
  table.rows = rows;
  table.tablets.resize((rows + kTabletRows - 1) / kTabletRows);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::vector<std::map<std::vector<int64_t>, std::vector<int64_t>>>> answers(cores);
  for (unsigned t = 0; t < cores; ++t) {
    answers[t].resize(queries.size());
    threads.emplace_back([&, t] {
      for (size_t i = next++; i < table.tablets.size(); i = next++) {
        const uint64_t first = i * kTabletRows;
        const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(kTabletRows, rows - first));
        table.tablets[i] = std::make_shared<BenchTablet>(first, n);
        for (uint32_t r = 0; r < n; ++r) {
          uint32_t codes[kColumns];
          for (int c = 0; c < kColumns; ++c) codes[c] = Code(c, first + r);
          for (size_t q = 0; q < queries.size(); ++q) {
            if (folds[q]) folds[q](codes, &answers[t][q]);
          }
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (size_t q = 0; q < queries.size(); ++q) {
    for (auto& a : answers) {
      for (auto& [key, values] : a[q]) {
        auto& v = queries[q].want[key];
        v.resize(values.size());
        for (size_t i = 0; i < values.size(); ++i) v[i] += values[i];
      }
    }
  }

  auto bandwidth = gpu.MeasureBandwidth();
  if (!bandwidth.ok()) return Fail(bandwidth.status());
  printf("%s, %.0f M rows, %zu tablets; a copy on the device moves %.0f GB/s\n", gpu.info().name.c_str(),
         static_cast<double>(rows) / 1e6, table.tablets.size(), *bandwidth / 1e9);
  printf("%-38s %9s %9s %9s %8s %7s %5s %9s  %s\n", "query", "median ms", "least ms", "wall ms", "MB", "GB/s", "%",
         "floor ms", "result");
  bool all_right = true;
  for (const Query& q : queries) {
    if (Status s = vm::Verify([&] {  // Verify wants rows to come out of the last section
          vm::Program p = q.program;
          vm::Section last;
          last.source_kind = vm::Section::Source::kOneRow;
          last.code = {{Opcode::Emit, 0, 0, 0, 0}, {Opcode::End, 0, 0, 0, 0}};
          p.sections.push_back(last);
          return p;
        }());
        !s.ok()) {
      return Fail(s);
    }
    std::vector<double> kernel, wall;
    bool right = true;
    for (int i = 0; i < times + 2; ++i) {
      vm::StringPool strings;
      vm::SectionStatistics statistics;
      vm::SectionContext context{&q.program, 0, &table, &strings, nullptr, &statistics};
      const auto start = std::chrono::steady_clock::now();
      auto result = gpu.Begin()->RunSection(context);
      const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      if (!result.ok()) return Fail(result.status());
      if (i == 0 && !q.want.empty()) {
        right = result->rows == q.want.size();
        const size_t keys = static_cast<size_t>(q.program.sections[0].keys);
        for (size_t r = 0; right && r < result->rows; ++r) {
          std::vector<int64_t> key, values;
          for (size_t c = 0; c < result->columns.size(); ++c)
            (c < keys ? key : values).push_back(result->columns[c].low[r]);
          auto found = q.want.find(key);
          right = found != q.want.end() && found->second == values;
        }
      } else if (i == 0) {
        uint64_t sum = 0;
        for (int64_t v : result->columns.back().low) sum += static_cast<uint64_t>(v);
        right = sum == rows;
      }
      if (i < 2) continue;  // copying columns, growing buffers
      kernel.push_back(statistics.kernel_milliseconds);
      wall.push_back(ms);
    }
    std::sort(kernel.begin(), kernel.end());
    std::sort(wall.begin(), wall.end());
    double bytes = 0;
    for (const Read& r : q.reads) {
      const int width = kWidths[r.column];
      bytes += static_cast<double>(rows) * width * (1 - std::pow(1 - r.live, 32.0 / width));
    }
    const double median = kernel[kernel.size() / 2];
    printf("%-38s %9.3f %9.3f %9.3f %8.0f %7.0f %5.1f %9.3f  %s\n", q.name, median, kernel[0], wall[wall.size() / 2],
           bytes / 1e6, bytes / median / 1e6, bytes / median / 1e6 / (*bandwidth / 1e9) * 100, bytes / *bandwidth * 1e3,
           right ? "right" : "WRONG");
    all_right &= right;
  }
  return all_right ? 0 : 1;
}
