// How fast the VM kernel probes a join table: the sum of the payload, or the count, of a foreign-key join whose columns
// are on the GPU. Data is made in memory: no files, no SQL.
//
//   gpu_join_bench [--host | --unordered | --ordered]
//                  [millions of build rows, 16] [millions of probe rows, 256] [times, 7]
//
// The dimension has unique keys of 4 bytes in random order and a payload of 24 bits in 4 bytes; each row of the fact
// table has the key of a random row of it. Keys are dense, 0 .. rows - 1, or sparse, spread over 0 .. 2^31 - 1. With
// dense keys the device uses a directly addressed table with slots of 4 bytes (64 MB by default), with sparse keys open
// addressing, and without payload a bitmap if that is small enough (kernels/join/table_layout.cc). If half of the
// probes match, a condition on the dimension keeps every other key, and the program first tests the range of the keys,
// as compiled programs do.
//
// Prints one line a query: rows of the join table; median and least time of the kernel that probes; median wall time of
// the build, up to the answer to a probe of one row; probes a second by the least time. The exit status is 1 if a
// result differs from a plain loop's.
//
// --ordered and --unordered: the device sorts the probes of all queries by the table's slots, or of none. By default it
// sorts those that it expects to become faster.
//
// --host runs the same programs on the host, by default with 1 and 8 million rows, and prints wall times instead of the
// kernel's. That is done on small tables, too, where there is no GPU.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
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
#include "vm/run/device.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace tessera {
namespace {

using vm::Opcode;
using vm::Operand;

constexpr uint32_t kTabletRows = 1 << 20;
constexpr int kSparseBits = 31;
constexpr uint32_t kPayloads = 1 << 24;
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kSum = SqlType::Decimal(38, 0);

enum TableNumber { kDimension, kFact };
/// The keys are the first two columns of both tables.
enum ColumnNumber { kDense, kSparse, kPayload, kOdd };

uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// A permutation of the numbers of `bits` bits. Not a multiplication alone: the device's hash is one, and would undo
/// it.
uint64_t Permute(uint64_t x, int bits) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  const int half = (bits + 1) / 2;
  x ^= x >> half;
  x = x * 0x9E3779B97F4A7C15u & mask;
  x ^= x >> half;
  x = x * 0xD6E8FEB86659FD93u & mask;
  return x ^ x >> half;
}

/// Dense key of a row of the dimension: a permutation of 0 .. rows - 1.
uint32_t DenseKey(uint64_t row, uint64_t rows) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(rows - 1)));
  do row = Permute(row, bits);
  while (row >= rows);
  return static_cast<uint32_t>(row);
}
/// Dense key in a row of the fact table.
uint32_t DimensionKey(uint64_t row, uint64_t dimension_rows) {
  return static_cast<uint32_t>((Mix(row) >> 32) * dimension_rows >> 32);
}
uint32_t SparseKey(uint32_t dense) { return static_cast<uint32_t>(Permute(dense, kSparseBits)); }
uint32_t PayloadOf(uint32_t dense) { return static_cast<uint32_t>(Mix(~uint64_t{dense})) % kPayloads; }

/// A column of integers from 0 on.
struct ColumnForm {
  uint8_t width;
  uint32_t max;
};

class BenchTablet final : public Tablet {
 public:
  BenchTablet(const std::vector<ColumnForm>& forms, uint32_t rows) : rows_(rows) {
    for (const ColumnForm& form : forms) {
      const size_t bytes = (size_t{rows} * form.width + 127) / 128 * 128;
      data_.emplace_back(static_cast<uint8_t*>(std::aligned_alloc(128, bytes)));
      memset(data_.back().get(), 0, bytes);
      tessera::Chunk& k = chunks_.emplace_back();
      k.type = kInteger;
      k.encoding = Encoding::kFrame;
      k.width = form.width;
      k.rows = rows;
      k.base = k.min = 0;
      k.max = form.max;
      k.codes = data_.back().get();
      k.codes_bytes = k.encoded_bytes = bytes;
    }
  }
  void Set(int column, uint32_t row, uint32_t value) {
    const size_t c = static_cast<size_t>(column), width = chunks_[c].width;
    memcpy(data_[c].get() + row * width, &value, width);
  }
  uint32_t rows() const override { return rows_; }
  Result<ChunkPointer> Chunk(int column) const override {
    return ChunkPointer(ChunkPointer(), &chunks_[static_cast<size_t>(column)]);
  }
  std::string path() const override { return "in memory"; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  uint32_t rows_;
  std::vector<std::unique_ptr<uint8_t, Free>> data_;
  std::vector<tessera::Chunk> chunks_;
};

/// A table whose tablets are filled on all cores: fill(tablet, row in the tablet, row, thread).
template <class F>
std::shared_ptr<TableInfo> MakeTable(TableNumber number, const char* name, const std::vector<ColumnForm>& forms,
                                     uint64_t rows, unsigned cores, F fill) {
  auto table = std::make_shared<TableInfo>();
  table->id = number + 1;
  table->schema.name = name;
  table->rows = rows;
  table->tablets.resize((rows + kTabletRows - 1) / kTabletRows);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < cores; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = next++; i < table->tablets.size(); i = next++) {
        const uint64_t first = i * kTabletRows;
        const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(kTabletRows, rows - first));
        auto tablet = std::make_shared<BenchTablet>(forms, n);
        for (uint32_t r = 0; r < n; ++r) fill(tablet.get(), r, first + r, t);
        table->tablets[i] = std::move(tablet);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return table;
}

/// Answers of a plain loop: [0] over all rows of the fact table, [1] over those with an odd dense key.
struct Answers {
  int64_t sum[2] = {0, 0}, count[2] = {0, 0};
};

struct Query {
  std::string name;
  bool sparse, payload, half;
};

vm::Instruction Do(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0) {
  return {op, static_cast<uint16_t>(p1), p2, p3, 0};
}

/// Section 0 builds the join table, 1 probes it; 2 makes a row of the result.
vm::Program MakeProgram(const Query& q) {
  vm::Program program;
  program.tables = {{kDimension + 1, "dimension"}, {kFact + 1, "fact"}};
  program.joins = {{true, 0}};
  program.columns = {{q.payload ? "sum" : "count", kBigint}};
  const int key = q.sparse ? kSparse : kDense;

  vm::Section build;
  build.source_kind = vm::Section::Source::kTable;
  build.source = kDimension;
  build.sink = vm::Section::Sink::kJoin;
  build.join = 0;
  build.label = "build";
  build.keys = 1;
  if (q.half) {
    program.constants.push_back(Value::Int(kInteger, 1));
    vm::Predicate odd;
    odd.slot = static_cast<int32_t>(build.slots.size());
    odd.low = odd.high = 0;
    build.predicates.push_back(odd);
    build.slots.push_back({kOdd, kInteger, -1});
    build.code.push_back(Do(Opcode::Filter, 0));
  }
  auto emit = [&](int column) {
    build.code.push_back(Do(Opcode::Load, 0, Operand::Slot(static_cast<int>(build.slots.size())).Pack()));
    build.code.push_back(Do(Opcode::Store, 0, static_cast<int32_t>(build.registers.size())));
    build.slots.push_back({column, kInteger, -1});
    build.registers.push_back(kInteger);
    build.columns.push_back(kInteger);
  };
  emit(key);
  if (q.payload) emit(kPayload);
  build.code.push_back(Do(Opcode::Build));
  build.code.push_back(Do(Opcode::End));

  vm::Section probe;
  probe.source_kind = vm::Section::Source::kTable;
  probe.source = kFact;
  probe.sink = vm::Section::Sink::kGroups;
  probe.label = "probe";
  probe.slots = {{key, kInteger, -1}};
  if (q.half) {
    vm::Predicate range;
    range.kind = vm::Predicate::Kind::kKeyRange;
    range.slot = 0;
    range.join = 0;
    probe.predicates = {range};
    probe.code = {Do(Opcode::Filter, 0), Do(Opcode::SkipIfNone)};
  }
  probe.code.push_back(Do(Opcode::Probe, 0, Operand::Slot(0).Pack(), 1));
  probe.code.push_back(Do(Opcode::SkipIfNone));
  probe.code.push_back(Do(Opcode::Group));
  if (q.payload) probe.code.push_back(Do(Opcode::Load, 0, Operand::Payload(0, 0).Pack()));
  probe.aggregates = {q.payload ? vm::AggregateSpec{Opcode::SumI, kSum}
                                : vm::AggregateSpec{Opcode::CountRows, kBigint}};
  probe.columns = {probe.aggregates[0].type};
  probe.code.push_back(Do(probe.aggregates[0].op, 0));
  probe.code.push_back(Do(Opcode::End));
  for (vm::Instruction& in : probe.code) {
    if (in.op == Opcode::SkipIfNone) in.p2 = static_cast<int32_t>(probe.code.size()) - 1;
  }

  vm::Section last;
  last.source_kind = vm::Section::Source::kSection;
  last.source = 1;
  last.label = "result";
  last.slots = {{0, probe.columns[0], -1}};
  last.registers = last.columns = {kBigint};
  if (q.payload) {
    last.code = {Do(Opcode::LoadW, 0, Operand::Slot(0).Pack()), Do(Opcode::WToI)};
  } else {
    last.code = {Do(Opcode::Load, 0, Operand::Slot(0).Pack())};
  }
  last.code.push_back(Do(Opcode::Store, 0, 0));
  last.code.push_back(Do(Opcode::Emit));
  last.code.push_back(Do(Opcode::End));
  program.sections = {build, probe, last};
  return program;
}

struct Measured {
  double probe = 0, build = 0;  ///< milliseconds
  uint64_t table_rows = 0;
  int64_t answer = 0;  ///< 0 for NULL, the sum of nothing
};

/// `one_row`: a fact table of one row. The device still fills the join table when BuildJoins returns; a probe of one
/// row waits for it.
Result<Measured> RunOnGpu(Gpu* gpu, const vm::Program& program, const TableInfo& dimension, const TableInfo& fact,
                          const TableInfo& one_row, vm::JoinPartitioning partitioning) {
  Measured out;
  vm::StringPool strings;
  vm::SectionStatistics built, first, probed;
  const vm::ProgramTraits traits = vm::TraitsOf(program);
  const std::unique_ptr<vm::DeviceRun> run = gpu->Begin();
  const auto start = Clock::now();
  vm::SectionContext build{&program, &traits, 0, &dimension, &strings, nullptr, &built, nullptr};
  build.settings.join_partitioning = partitioning;
  TESSERA_TRY(run->BuildJoins({build}, Status::Ok()));
  TESSERA_TRY(run->RunSection({&program, &traits, 1, &one_row, &strings, nullptr, &first, nullptr}).status());
  out.build = MillisecondsSince(start);
  vm::SectionContext probe{&program, &traits, 1, &fact, &strings, nullptr, &probed, nullptr};
  probe.settings.join_partitioning = partitioning;
  TESSERA_ASSIGN(const vm::RowSet rows, run->RunSection(probe));
  out.probe = probed.kernel_milliseconds;
  out.table_rows = built.rows_out;
  const vm::RowColumn& c = rows.columns[0];
  const bool narrow = c.high.empty() || c.high[0] == 0;
  out.answer = !c.null.empty() && c.null[0] != 0 ? 0 : narrow ? c.low[0] : -1;
  return out;
}

Result<Measured> RunOnHost(vm::Executor* executor, const vm::Program& program, const Snapshot& snapshot) {
  Measured out;
  vm::RunStatistics statistics;
  TESSERA_TRY(executor->Run(
      program, snapshot, {},
      [&](RowBatch&& batch) {
        if (batch.rows > 0) out.answer = batch.columns[0].IsNull(0) ? 0 : batch.columns[0].fixed[0];
        return Status::Ok();
      },
      &statistics));
  for (const vm::SectionStatistics& s : statistics.sections) {
    if (s.section == 0) out.build = s.milliseconds;
    if (s.section == 0) out.table_rows = s.rows_out;
    if (s.section == 1) out.probe = s.milliseconds;
  }
  return out;
}

int Fail(const Status& status) {
  fprintf(stderr, "%s\n%s\n", status.message().c_str(), status.hint().c_str());
  return 2;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<const char*> arguments(argv + 1, argv + argc);
  const auto given = [&](const char* name) {
    return std::erase_if(arguments, [&](const char* a) { return strcmp(a, name) == 0; }) > 0;
  };
  bool host = given("--host");
  vm::JoinPartitioning partitioning = vm::JoinPartitioning::kAuto;
  if (given("--ordered")) partitioning = vm::JoinPartitioning::kOn;
  if (given("--unordered")) partitioning = vm::JoinPartitioning::kOff;
  auto argument = [&](size_t i, double otherwise) {
    return i < arguments.size() ? std::atof(arguments[i]) : otherwise;
  };
  double build_millions = argument(0, host ? 1 : 16), probe_millions = argument(1, host ? 8 : 256);
  const int times = static_cast<int>(argument(2, 7));
  if (!(build_millions >= 1e-6 && build_millions <= 1000 && probe_millions >= 1e-6 && probe_millions <= 1e5 &&
        times >= 1)) {
    fprintf(stderr,
            "usage: gpu_join_bench [--host | --unordered | --ordered] [millions of build rows, 16] [millions of probe "
            "rows, 256] "
            "[times, 7]\n");
    return 2;
  }
  if (!host && GpuCount() == 0) {
    printf("no GPU on this machine: small tables on the host\n");
    host = true;
    build_millions = std::min(build_millions, 1.0);
    probe_millions = std::min(probe_millions, 8.0);
  }
  const uint64_t build_rows = static_cast<uint64_t>(std::llround(build_millions * 1e6));
  const uint64_t probe_rows = static_cast<uint64_t>(std::llround(probe_millions * 1e6));
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::unique_ptr<Gpu> gpu;
  if (!host) {
    auto opened = Gpu::Open(0, GpuOptions());
    if (!opened.ok()) return Fail(opened.status());
    gpu = std::move(*opened);
  }
  vm::Executor executor(static_cast<int>(cores));

  // Data, and the answers of a plain loop, on all cores.
  const ColumnForm dense{4, static_cast<uint32_t>(build_rows - 1)}, sparse{4, (1u << kSparseBits) - 1};
  const std::shared_ptr<TableInfo> dimension =
      MakeTable(kDimension, "dimension", {dense, sparse, {4, kPayloads - 1}, {1, 1}}, build_rows, cores,
                [&](BenchTablet* tablet, uint32_t at, uint64_t row, unsigned) {
                  const uint32_t key = DenseKey(row, build_rows);
                  tablet->Set(kDense, at, key);
                  tablet->Set(kSparse, at, SparseKey(key));
                  tablet->Set(kPayload, at, PayloadOf(key));
                  tablet->Set(kOdd, at, key & 1);
                });
  struct alignas(128) ThreadAnswers : Answers {};
  std::vector<ThreadAnswers> answers(cores);
  auto fill_fact = [&](BenchTablet* tablet, uint32_t at, uint64_t row, unsigned thread) {
    const uint32_t key = DimensionKey(row, build_rows);
    tablet->Set(kDense, at, key);
    tablet->Set(kSparse, at, SparseKey(key));
    for (uint32_t half = 0; half <= (key & 1); ++half) {
      answers[thread].sum[half] += PayloadOf(key);
      ++answers[thread].count[half];
    }
  };
  const std::shared_ptr<TableInfo> one_row = MakeTable(kFact, "fact", {dense, sparse}, 1, 1, fill_fact);
  answers.assign(cores, {});
  const std::shared_ptr<TableInfo> fact = MakeTable(kFact, "fact", {dense, sparse}, probe_rows, cores, fill_fact);
  Answers want;
  for (const ThreadAnswers& a : answers) {
    for (int half = 0; half < 2; ++half) {
      want.sum[half] += a.sum[half];
      want.count[half] += a.count[half];
    }
  }
  Snapshot snapshot;
  snapshot.tables = {dimension, fact};

  std::vector<Query> queries;
  for (bool payload : {true, false}) {
    for (bool half : {false, true}) {
      for (bool is_sparse : {false, true}) {
        queries.push_back({std::string(payload ? "sum(payload)" : "count(*)") + ", " +
                               (is_sparse ? "sparse" : "dense") + " keys, " + (half ? "half" : "all") + " match",
                           is_sparse, payload, half});
      }
    }
  }

  printf("%s, %g M rows build, %g M rows probe", host ? "host" : gpu->info().name.c_str(),
         static_cast<double>(build_rows) / 1e6, static_cast<double>(probe_rows) / 1e6);
  if (!host) {
    auto bandwidth = gpu->MeasureBandwidth();
    if (!bandwidth.ok()) return Fail(bandwidth.status());
    printf("; a copy on the device moves %.0f GB/s, which is %.3f ms for the keys of the probes", *bandwidth / 1e9,
           static_cast<double>(probe_rows) * 4 / *bandwidth * 1e3);
  }
  printf("\n%-38s %8s %9s %9s %9s %9s  %s\n", "query", "table M", "median ms", "least ms", "build ms", "G probe/s",
         "result");
  bool all_right = true;
  for (const Query& q : queries) {
    const vm::Program program = MakeProgram(q);
    if (Status s = vm::Verify(program); !s.ok()) return Fail(s);
    const int64_t expected = (q.payload ? want.sum : want.count)[q.half ? 1 : 0];
    std::vector<double> probe, build;
    uint64_t table_rows = 0;
    bool right = true;
    for (int i = 0; i < times + 2; ++i) {
      auto measured = host ? RunOnHost(&executor, program, snapshot)
                           : RunOnGpu(gpu.get(), program, *dimension, *fact, *one_row, partitioning);
      if (!measured.ok()) return Fail(measured.status());
      right &= measured->answer == expected;
      table_rows = measured->table_rows;
      if (i < 2) continue;  // the first two copy columns and grow buffers
      probe.push_back(measured->probe);
      build.push_back(measured->build);
    }
    std::sort(probe.begin(), probe.end());
    std::sort(build.begin(), build.end());
    printf("%-38s %8.2f %9.3f %9.3f %9.3f %9.2f  %s\n", q.name.c_str(), static_cast<double>(table_rows) / 1e6,
           probe[probe.size() / 2], probe[0], build[build.size() / 2], static_cast<double>(probe_rows) / probe[0] / 1e6,
           right ? "right" : "WRONG");
    all_right &= right;
  }
  return all_right ? 0 : 1;
}
