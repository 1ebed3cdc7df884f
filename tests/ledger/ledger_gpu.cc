// The program `ledger_gpu`: how often the queries of the ledger call CUDA, for tests/ledger/ledger.py. It prints
// "name calls synchronisations launches" of a query that has run before, the last two among the calls; nothing if there is
// no GPU.
//
//   ledger_gpu SOURCES
//
// The linker gives calls of a function F to __wrap_F, which is here and goes on to the real one (__real_F): the Makefile
// says so for this program, and ledger.py looks that no call of kernels/ is missing here.

#include <array>
#include <cstdint>

#include "kernels/kernels.h"
#include "tests/ledger/measured_queries.h"

extern "C" {
uint64_t ledger_calls = 0, ledger_synchronisations = 0, ledger_launches = 0;
}

// Adds one to a sum and jumps, so it need not know the parameters. Weak, because there is one way of launching with CUDA
// and another with the emulator.
#define COUNTED(Sum, Name)                                                                 \
  asm(".pushsection .text\n.globl __wrap_" #Name "\n.weak __real_" #Name "\n__wrap_" #Name \
      ":\n"                                                                                \
      "  lock incq ledger_" #Sum "(%rip)\n  jmp __real_" #Name "\n.popsection")

// Not cudaStreamQuery, cudaGetLastError and the names of errors: how often one asks depends on time.
COUNTED(calls, cudaDeviceGetAttribute);
COUNTED(calls, cudaEventCreate);
COUNTED(calls, cudaEventCreateWithFlags);
COUNTED(calls, cudaEventDestroy);
COUNTED(calls, cudaEventElapsedTime);
COUNTED(calls, cudaEventRecord);
COUNTED(calls, cudaFree);
COUNTED(calls, cudaFreeAsync);
COUNTED(calls, cudaFreeHost);
COUNTED(calls, cudaFuncSetAttribute);
COUNTED(calls, cudaGetDevice);
COUNTED(calls, cudaGetDeviceCount);
COUNTED(calls, cudaGetDeviceProperties);
COUNTED(calls, cudaHostAlloc);
COUNTED(calls, cudaHostRegister);
COUNTED(calls, cudaHostUnregister);
COUNTED(calls, cudaMalloc);
COUNTED(calls, cudaMallocFromPoolAsync);
COUNTED(calls, cudaMemGetInfo);
COUNTED(calls, cudaMemPoolCreate);
COUNTED(calls, cudaMemPoolDestroy);
COUNTED(calls, cudaMemPoolSetAttribute);
COUNTED(calls, cudaMemPoolTrimTo);
COUNTED(calls, cudaMemcpyAsync);
COUNTED(calls, cudaMemcpyBatchAsync);
COUNTED(calls, cudaMemsetAsync);
COUNTED(calls, cudaOccupancyMaxActiveBlocksPerMultiprocessor);
COUNTED(calls, cudaSetDevice);
COUNTED(calls, cudaStreamCreateWithFlags);
COUNTED(calls, cudaStreamDestroy);
COUNTED(calls, cudaStreamWaitEvent);
COUNTED(synchronisations, cudaEventSynchronize);
COUNTED(synchronisations, cudaStreamSynchronize);
COUNTED(launches, cudaLaunchKernel);
// <<<>>>: nvcc's and the emulator's.
COUNTED(launches, __cudaLaunchKernel);
COUNTED(launches, _ZN13cuda_emulator10LaunchGridERKNS_13ConfigurationESt8functionIFvvEE);

namespace tessera {
namespace {

constexpr int kWarmUps = 3;

/// Calls, synchronisations and launches of all threads, while none of them works.
std::array<uint64_t, 3> Sums() {
  const auto read = [](const uint64_t& sum) { return __atomic_load_n(&sum, __ATOMIC_SEQ_CST); };
  const uint64_t waits = read(ledger_synchronisations), launches = read(ledger_launches);
  return {read(ledger_calls) + waits + launches, waits, launches};
}

void CountCalls(const std::string& sources) {
  for (const MeasuredBenchmark& benchmark : kMeasured) {
    MeasuredSession measured(benchmark.name, DeviceChoice::kAuto);
    measured.Run("SET gpu_min_rows = 1000");  // the tables are small
    for (const std::string query : benchmark.queries) {
      const std::string sql = QueryText(sources, benchmark.name, query);
      for (int i = 0; i < kWarmUps; ++i) measured.Run(sql);
      const std::array<uint64_t, 3> before = Sums();
      measured.Run(sql);
      const std::array<uint64_t, 3> after = Sums();
      fmt::print("{} {} {} {} {}\n", benchmark.name, query, after[0] - before[0], after[1] - before[1],
                 after[2] - before[2]);
    }
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: ledger_gpu SOURCES\n");
    return 2;
  }
  if (tessera::GpuCount() > 0) tessera::CountCalls(argv[1]);
  return 0;
}
