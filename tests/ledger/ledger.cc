// The program `ledger`: does what tests/ledger/ledger.py counts.
//
//   ledger compiler               prints what compiled it
//   ledger instructions SOURCES   under callgrind, with --dump-before=LedgerMark: each piece of work lies between two
//                                 marks, and how often it is done and its name go to standard output
//   ledger allocations SOURCES    prints "name number": calls of operator new
//
// Each piece of work has been done before it is counted, so that what only the first one does is left out.

#include <atomic>
#include <cstdio>
#include <functional>

#include "base/memory_budget.h"
#include "compiler/compiler.h"
#include "tests/ledger/measured_queries.h"

/// A new sum begins. Callgrind knows it by its name.
extern "C" [[gnu::noinline]] void LedgerMark();
extern "C" void LedgerMark() { asm volatile(""); }

namespace tessera {
namespace {

constexpr int kWarmUps = 3, kRepetitions = 8;

/// Hash tables of pointers take a percent more or less with each place of the heap: the mean of several.
void CountInstructions(const std::string& name, const std::function<void()>& work) {
  for (int i = 0; i < kWarmUps; ++i) work();
  fmt::print("{} {}\n", kRepetitions, name);
  std::vector<std::unique_ptr<char[]>> moves;
  LedgerMark();
  for (int i = 0; i < kRepetitions; ++i) {
    moves.push_back(std::make_unique_for_overwrite<char[]>(static_cast<size_t>(1000 + 1040 * i)));
    work();
  }
  LedgerMark();
}

void Instructions(const std::string& sources) {
  for (const MeasuredBenchmark& benchmark : kMeasured) {
    MeasuredSession measured(benchmark.name, DeviceChoice::kHost);
    const std::shared_ptr<const Snapshot> tables = measured.Tables();
    for (const std::string query : benchmark.queries) {
      const std::string sql = QueryText(sources, benchmark.name, query);
      CountInstructions(fmt::format("compile {} {}", benchmark.name, query), [&] {
        const Result<Compiled> compiled = Compile(sql, *tables);
        if (!compiled.ok()) Stop(compiled.status().message());
      });
      if (query == "q1.1" || query == "q3.1")
        CountInstructions(fmt::format("run {} {}", benchmark.name, query), [&] { measured.Run(sql); });
    }
    CountInstructions(fmt::format("open {}", benchmark.name), [&] {
      MeasuredSession opened(benchmark.name, DeviceChoice::kHost);
      (void)opened.Tables();
    });
  }
  MeasuredSession measured("ssb", DeviceChoice::kHost);
  const std::string again = QueryText(sources, "ssb", "q1.1");
  CountInstructions("run ssb q1.1 from the program cache", [&] { measured.Execute(again); });
  CountInstructions("run SELECT_1", [&] { measured.Run("SELECT 1"); });
}

std::atomic<uint64_t> allocations{0};
bool CountAllocation() {
  ++allocations;
  return false;
}

void Allocations(const std::string& sources) {
  for (const MeasuredBenchmark& benchmark : kMeasured) {
    MeasuredSession measured(benchmark.name, DeviceChoice::kHost);
    for (const std::string query : benchmark.queries) {
      const std::string sql = QueryText(sources, benchmark.name, query);
      for (int i = 0; i < kWarmUps; ++i) measured.Run(sql);
      SetAllocationFault(&CountAllocation);
      allocations = 0;
      measured.Run(sql);
      SetAllocationFault(nullptr);
      fmt::print("{} {} {}\n", benchmark.name, query, allocations.load());
    }
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "compiler" && argc == 2) {
#ifdef __clang__
    fmt::print("clang {}.{}", __clang_major__, __clang_minor__);
#else
    fmt::print("g++ {}.{}", __GNUC__, __GNUC_MINOR__);
#endif
    fmt::print("{}\n", tessera::MemoryIsCounted() ? "" : " with a sanitizer");
  } else if (what == "instructions" && argc == 3) {
    tessera::Instructions(argv[2]);
  } else if (what == "allocations" && argc == 3) {
    tessera::Allocations(argv[2]);
  } else {
    fmt::print(stderr, "usage: ledger compiler | instructions SOURCES | allocations SOURCES\n");
    return 2;
  }
  return 0;
}
