// How fast the VM kernel scans: queries of the Star Schema Benchmark's shape over columns that are on the GPU, compared
// with the time that reading the memory alone would take. Data is made in memory: no files, no SQL.
//
//   gpu_scan_bench [millions of rows, 120] [times, 15]
//
// Prints one line a query: the kernel's median and least time, the wall time of the section, the bytes that must be
// read (staged columns whole, columns on demand by the 32-byte sectors that a live row touches), GB/s, in per cent of
// the measured bandwidth, too, and the floor. q1.1 also runs over four other forms of its data: these lines say what
// NULLs and partial tiles cost, in per cent of the median over plain data. The exit status is 1 if a result differs
// from a plain loop's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

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
  Gpu& gpu = **opened;
  std::vector<ScanQuery> queries = ScanQueries();
  const ScanData data(rows, &queries);

  auto bandwidth = gpu.MeasureBandwidth();
  if (!bandwidth.ok()) return Fail(bandwidth.status());
  printf("%s, %.0f M rows, %zu tablets; a copy on the device moves %.0f GB/s\n", gpu.info().name.c_str(),
         static_cast<double>(rows) / 1e6, data.Table(kPlain).tablets.size(), *bandwidth / 1e9);
  printf("%-38s %9s %9s %9s %8s %7s %5s %9s %7s  %s\n", "query", "median ms", "least ms", "wall ms", "MB", "GB/s", "%",
         "floor ms", "more", "result");
  bool all_right = true;
  double plain = 0;
  for (const ScanQuery& q : queries) {
    if (Status s = VerifyScan(q); !s.ok()) return Fail(s);
    std::vector<double> kernel, wall;
    bool right = true;
    for (int i = 0; i < times + 2; ++i) {
      auto time = RunScan(&gpu, q, data);
      if (!time.ok()) return Fail(time.status());
      right &= time->right;
      if (i < 2) continue;  // the first two copy columns and grow buffers
      kernel.push_back(time->kernel);
      wall.push_back(time->wall);
    }
    double bytes = 0;
    for (const Read& r : q.reads) {
      const int width = kWidths[r.column];
      bytes += static_cast<double>(rows) * width * (1 - std::pow(1 - r.live, 32.0 / width));
    }
    const double median = Median(kernel);
    if (&q == &queries[0]) plain = median;
    char more[16] = "";
    if (q.form != kPlain) snprintf(more, sizeof more, "%.1f%%", (median / plain - 1) * 100);
    printf("%-38s %9.3f %9.3f %9.3f %8.0f %7.0f %5.1f %9.3f %7s  %s\n", q.name, median,
           *std::min_element(kernel.begin(), kernel.end()), Median(wall), bytes / 1e6, bytes / median / 1e6,
           bytes / median / 1e6 / (*bandwidth / 1e9) * 100, bytes / *bandwidth * 1e3, more, right ? "right" : "WRONG");
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
