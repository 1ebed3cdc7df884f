// What it costs to add opcodes: queries of gpu_scan_bench run alternately on the VM kernel as it is and on one with 20
// more cases in its switch, which no program uses.
//
//   gpu_opcode_bench [millions of rows, 120] [times, 15]
//
// Prints registers and bytes of stack and spills of the lean and the full kernel, then one line a query: the medians of
// both kernel times and their difference. The exit status is 1 if a result is wrong or a kernel has a stack frame or
// spills.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/opcode_kernels.h"
#include "bench/scan_queries.h"

namespace tessera::bench {
namespace {

int Fail(const Status& status) {
  fprintf(stderr, "%s\n%s\n", status.message().c_str(), status.hint().c_str());
  return 2;
}

int Main(uint64_t rows, int times) {
  if (GpuCount() == 0) {
    printf("no GPU on this machine\n");
    return 0;
  }
  auto opened = Gpu::Open(0, GpuOptions());
  if (!opened.ok()) return Fail(opened.status());
  bool all_right = true;
  printf("%s, %.0f M rows\n%-38s %9s %14s\n", (*opened)->info().name.c_str(), static_cast<double>(rows) / 1e6, "kernel",
         "registers", "stack + spills");
  for (bool full : {false, true}) {
    for (bool more : {false, true}) {
      auto size = SizeOfKernel(full, more);
      if (!size.ok()) return Fail(size.status());
      printf("%-4s%-34s %9d %14zu\n", full ? "full" : "lean", more ? ", 20 more opcodes" : "", size->registers,
             size->local_bytes);
      all_right &= size->local_bytes == 0;
    }
  }
  std::vector<ScanQuery> queries = ScanQueries();
  std::erase_if(queries, [](const ScanQuery& q) { return q.form != kPlain; });
  const ScanData data(rows, &queries);
  printf("\n%-38s %9s %9s %7s  %s\n", "query", "ms", "more, ms", "slower", "result");
  for (const ScanQuery& q : queries) {
    if (Status s = VerifyScan(q); !s.ok()) return Fail(s);
    std::vector<double> kernel[2];
    bool right = true;
    for (int i = 0; i < times + 2; ++i) {
      for (bool more : {false, true}) {
        if (Status s = UseMoreOpcodes(more); !s.ok()) return Fail(s);
        auto time = RunScan(opened->get(), q, data);
        if (!time.ok()) return Fail(time.status());
        right &= time->right;
        if (i >= 2) kernel[more].push_back(time->kernel);  // the first two copy columns and grow buffers
      }
    }
    const double as_is = Median(kernel[0]), with_more = Median(kernel[1]);
    printf("%-38s %9.3f %9.3f %6.1f%%  %s\n", q.name, as_is, with_more, (with_more / as_is - 1) * 100,
           right ? "right" : "WRONG");
    all_right &= right;
  }
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return tessera::bench::Main(static_cast<uint64_t>(argc > 1 ? std::atoll(argv[1]) : 120) * 1000000,
                              argc > 2 ? std::atoi(argv[2]) : 15);
}
