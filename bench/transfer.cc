// The program `transfer_bench`: how fast memory of the host comes to the GPU, in pieces of several sizes and in each way of
// SET transfer; after Figure 8 of NEC's paper on streaming columns. bench/stream.py runs it; without SQL, tablets or a cache.
//
//   transfer_bench [--bytes N] [--pieces "65536 4194304"]
//
// Prints a line of CSV for each way and size: what moves, bytes of a piece, GB/s. Ways: transfer (pieces one after the
// other, nothing else), sync_total (a kernel reads each piece when it is there, and the next one comes after that),
// stream_total (a kernel reads each piece while the next one comes), pageable_total (from memory that is not pinned),
// zerocopy_total (kernels read the host's memory). At the end "device": a copy on the device, bytes read and written.

#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace tessera::bench {
namespace {

int Fail(const Status& status) {
  fprintf(stderr, "ERROR: %s\n%s\n", status.message().c_str(), status.hint().c_str());
  return 1;
}

int Main(int argc, char** argv) {
  const option options[] = {{"bytes", required_argument, nullptr, 'b'},
                            {"pieces", required_argument, nullptr, 'p'},
                            {nullptr, 0, nullptr, 0}};
  uint64_t bytes = 400'000'000;
  std::string pieces = "65536 262144 1048576 4194304 16777216 67108864";
  for (int o; (o = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (o == '?') return 2;
    if (o == 'b') bytes = strtoull(optarg, nullptr, 10);
    if (o == 'p') pieces = optarg;
  }
  auto opened = Gpu::Open(0, GpuOptions());
  if (!opened.ok()) return Fail(opened.status());
  Gpu& gpu = **opened;
  struct Way {
    const char* name;
    Transfer transfer;
    bool scanned;
  };
  static constexpr Way kWays[] = {{"transfer", Transfer::kStream, false},
                                  {"sync_total", Transfer::kSync, true},
                                  {"stream_total", Transfer::kStream, true},
                                  {"pageable_total", Transfer::kPageable, true},
                                  {"zerocopy_total", Transfer::kZeroCopy, true}};
  printf("way,piece,gb_per_s\n");
  std::istringstream list(pieces);
  for (uint64_t piece; list >> piece;) {
    for (const Way& way : kWays) {
      auto rate = gpu.MeasureTransfer({way.transfer, piece, bytes, way.scanned});
      if (!rate.ok()) return Fail(rate.status());
      printf("%s,%lu,%.3f\n", way.name, piece, *rate / 1e9);
    }
  }
  auto device = gpu.MeasureBandwidth();
  if (!device.ok()) return Fail(device.status());
  printf("device,0,%.3f\n", *device / 1e9);
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return tessera::bench::Main(argc, argv);
}
