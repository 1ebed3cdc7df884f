// The n-th call of CUDA's runtime fails, once or for ever after, while queries run on a GPU (or on the emulated one): a
// message or right rows, no object of CUDA's left over, and the next query right.
//
// The linker gives calls of a function cudaF to __wrap_cudaF, which is here, and that calls the real one (__real_cudaF):
// the Makefile says so for this program. So the code under test is as it always is.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "kernels/kernels.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/torture/campaign.h"
#include "tests/vm/memory_tablet.h"
#include "vm/program/program.h"
#include "vm/run/device.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace {

using namespace tessera;

// ---- Calls that fail --------------------------------------------------------------------------------------------------

enum class Failure {
  kOnce,      ///< the n-th call
  kNoMemory,  ///< from the n-th call on there is no memory on the device
  kSticky,    ///< all calls from the n-th on, as after an access to a wrong address
};
constexpr const char* kFailureNames[] = {"once", "no memory from", "all from"};

std::atomic<bool> armed{false};
std::atomic<Failure> failure{Failure::kOnce};
std::atomic<uint64_t> calls{0}, failing{0};
std::atomic<int64_t> objects{0};  ///< streams, events, pools and pieces of memory that were made and are not gone
thread_local cudaError_t last = cudaSuccess;
std::atomic<bool> launches_fail{true};  ///< not under dp: the emulated device asks for the last error as the host does

enum class Role { kOther, kAllocates, kMakes, kFrees };

/// The error that this call shall return, or success.
cudaError_t Failing(Role role) {
  if (!armed) return cudaSuccess;
  const uint64_t n = ++calls;
  const bool fails = failure == Failure::kOnce       ? n == failing
                     : failure == Failure::kNoMemory ? n >= failing && role == Role::kAllocates
                                                     : n >= failing;
  if (!fails) return cudaSuccess;
  if (failure == Failure::kSticky) return last = cudaErrorIllegalAddress;
  return last = role == Role::kAllocates ? cudaErrorMemoryAllocation : cudaErrorUnknown;
}

template <class F>
cudaError_t Call(Role role, F real) {
  const cudaError_t error = Failing(role);
  if (error != cudaSuccess && role != Role::kFrees) return error;
  const cudaError_t done = real();
  if (done == cudaSuccess && (role == Role::kAllocates || role == Role::kMakes)) ++objects;
  if (done == cudaSuccess && role == Role::kFrees) --objects;
  return error != cudaSuccess ? error : done;
}

#define WRAPPED(Role_, Name, Parameters, Arguments)                    \
  extern "C" cudaError_t __real_##Name Parameters;                     \
  extern "C" cudaError_t __wrap_##Name Parameters;                     \
  extern "C" cudaError_t __wrap_##Name Parameters {                    \
    return Call(Role::Role_, [&] { return __real_##Name Arguments; }); \
  }

}  // namespace

WRAPPED(kAllocates, cudaMalloc, (void** p, size_t n), (p, n))
WRAPPED(kFrees, cudaFree, (void* p), (p))
WRAPPED(kAllocates, cudaHostAlloc, (void** p, size_t n, unsigned f), (p, n, f))
WRAPPED(kFrees, cudaFreeHost, (void* p), (p))
WRAPPED(kMakes, cudaHostRegister, (void* p, size_t n, unsigned f), (p, n, f))
WRAPPED(kFrees, cudaHostUnregister, (void* p), (p))
WRAPPED(kOther, cudaDeviceGetAttribute, (int* v, cudaDeviceAttr a, int device), (v, a, device))
WRAPPED(kAllocates, cudaMallocFromPoolAsync, (void** p, size_t n, cudaMemPool_t pool, cudaStream_t s), (p, n, pool, s))
WRAPPED(kFrees, cudaFreeAsync, (void* p, cudaStream_t s), (p, s))
WRAPPED(kMakes, cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps* props), (pool, props))
WRAPPED(kFrees, cudaMemPoolDestroy, (cudaMemPool_t pool), (pool))
WRAPPED(kOther, cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr a, void* v), (pool, a, v))
WRAPPED(kOther, cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t n), (pool, n))
WRAPPED(kMakes, cudaStreamCreateWithFlags, (cudaStream_t * s, unsigned f), (s, f))
WRAPPED(kFrees, cudaStreamDestroy, (cudaStream_t s), (s))
WRAPPED(kOther, cudaStreamQuery, (cudaStream_t s), (s))
WRAPPED(kOther, cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned f), (s, e, f))
WRAPPED(kMakes, cudaEventCreate, (cudaEvent_t * e), (e))
WRAPPED(kMakes, cudaEventCreateWithFlags, (cudaEvent_t * e, unsigned f), (e, f))
WRAPPED(kFrees, cudaEventDestroy, (cudaEvent_t e), (e))
WRAPPED(kOther, cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (e, s))
WRAPPED(kOther, cudaEventElapsedTime, (float* ms, cudaEvent_t a, cudaEvent_t b), (ms, a, b))
WRAPPED(kOther, cudaMemcpyAsync, (void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t s),
        (to, from, n, kind, s))
WRAPPED(kOther, cudaMemcpyBatchAsync,
        (void* const* to, const void* const* from, const size_t* bytes, size_t n, cudaMemcpyAttributes* a, size_t* i,
         size_t count, cudaStream_t s),
        (to, from, bytes, n, a, i, count, s))
WRAPPED(kOther, cudaMemsetAsync, (void* to, int value, size_t n, cudaStream_t s), (to, value, n, s))
WRAPPED(kOther, cudaMemGetInfo, (size_t * free, size_t* total), (free, total))
WRAPPED(kOther, cudaSetDevice, (int device), (device))
WRAPPED(kOther, cudaGetDevice, (int* device), (device))
WRAPPED(kOther, cudaGetDeviceCount, (int* count), (count))
WRAPPED(kOther, cudaFuncSetAttribute, (const void* f, cudaFuncAttribute a, int v), (f, a, v))
WRAPPED(kOther, cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, const void* f, int threads, size_t shared),
        (blocks, f, threads, shared))
WRAPPED(kOther, cudaLaunchKernel,
        (const void* f, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t s),
        (f, grid, block, arguments, shared, s))

// What has failed in between shows when one waits; the waiting itself is done.
#define WAITS(Name, Parameters, Arguments)            \
  extern "C" cudaError_t __real_##Name Parameters;    \
  extern "C" cudaError_t __wrap_##Name Parameters;    \
  extern "C" cudaError_t __wrap_##Name Parameters {   \
    const cudaError_t done = __real_##Name Arguments; \
    const cudaError_t error = Failing(Role::kOther);  \
    return error != cudaSuccess ? error : done;       \
  }
WAITS(cudaStreamSynchronize, (cudaStream_t s), (s))
WAITS(cudaEventSynchronize, (cudaEvent_t e), (e))

// A launch with <<<>>> tells its failure here only.
extern "C" cudaError_t __real_cudaGetLastError();
extern "C" cudaError_t __wrap_cudaGetLastError();
extern "C" cudaError_t __wrap_cudaGetLastError() {
  if (last == cudaSuccess && launches_fail) (void)Failing(Role::kOther);
  const cudaError_t error = std::exchange(last, cudaSuccess), real = __real_cudaGetLastError();
  return error != cudaSuccess ? error : real;
}

namespace {

// ---- Queries ----------------------------------------------------------------------------------------------------------

struct Case {
  const char* sql;
  JoinChoice strategy = JoinChoice::kAuto;
  uint64_t memory = uint64_t{256} << 20;
  vm::JoinPartitioning partitioning = vm::JoinPartitioning::kAuto;
  Transfer transfer = Transfer::kStream;
};

const Case kCases[] = {
    {"SELECT count(*), sum(c), count(s) FROM f WHERE b < 7"},
    {"SELECT a, c FROM f WHERE b = 3"},
    {"SELECT a, b, s FROM f ORDER BY s, c DESC"},
    {"SELECT b, s, sum(c), count(*) FROM f GROUP BY b, s"},
    {"SELECT c, sum(a) FROM f GROUP BY c", JoinChoice::kAuto, uint64_t{4} << 20},
    {"SELECT d.b, sum(f.c), count(*) FROM f JOIN d ON f.a = d.a GROUP BY d.b"},
    {"SELECT f.c, d.b FROM f LEFT JOIN d ON f.a = d.a WHERE f.c < 500", JoinChoice::kHash},
    {"SELECT count(*), sum(f.c) FROM f JOIN d ON f.a = d.a", JoinChoice::kHash, uint64_t{256} << 20,
     vm::JoinPartitioning::kOn},
    {"SELECT count(*), sum(x.c) FROM f x JOIN f y ON x.c = y.c", JoinChoice::kHash, uint64_t{2} << 20},
    {"SELECT count(*), sum(d.a * e.b) FROM d, e WHERE d.a < e.a", JoinChoice::kGrid},
    {"SELECT count(*) FROM d, e WHERE d.a < e.b", JoinChoice::kDp},
    {"SELECT count(*), sum(c) FROM f WHERE b < 9", JoinChoice::kAuto, uint64_t{256} << 10, vm::JoinPartitioning::kAuto,
     Transfer::kZeroCopy},
    {"SELECT count(*), min(c) FROM f WHERE b < 9", JoinChoice::kAuto, uint64_t{256} << 10, vm::JoinPartitioning::kAuto,
     Transfer::kSync},
    {"SELECT count(*), max(c) FROM f WHERE b < 9", JoinChoice::kAuto, uint64_t{256} << 10, vm::JoinPartitioning::kAuto,
     Transfer::kPageable},
};

std::shared_ptr<const Snapshot> Tables() {
  const auto table = [](int64_t id, const char* name, int64_t rows) {
    std::vector<test::MemoryColumn> columns(name[0] == 'f' ? 4 : 2);
    for (size_t c = 0; c < columns.size(); ++c) {
      test::MemoryColumn& column = columns[c];
      column.name = c == 3 ? "s" : std::string(1, static_cast<char>('a' + c));
      column.values.type = c == 3 ? SqlType::Text() : SqlType::Of(TypeId::kBigint);
      column.forms = {c == 3 ? test::ChunkForm{Encoding::kDictionary, 2, {}, {}} : test::ChunkForm()};
      for (int64_t i = 0; i < rows; ++i) {
        if (c == 3) {
          column.values.Append(Value::Text(fmt::format("text {}", i % 37)));
        } else if (c == 0 && i % 11 == 10) {
          column.values.Append(Value::Null(column.values.type));
        } else {
          column.values.Append(Value::Int(column.values.type, c == 0 ? i * 7 % 131 : c == 1 ? i % 29 : i));
        }
      }
    }
    return *test::MakeMemoryTable(id, name, columns, 4000);
  };
  return test::MakeSnapshot({table(1, "d", 100), table(2, "e", 60), table(3, "f", 20000)});
}

struct Answer {
  Status status;
  std::vector<std::string> rows;  ///< sorted
};

Answer Run(const Case& c, const vm::Program& program, const Snapshot& snapshot, Gpu* gpu, bool required) {
  Answer answer;
  vm::Executor executor(2);
  vm::RunOptions options;
  options.gpu = gpu;
  options.gpu_required = required;
  options.settings.join_partitioning = c.partitioning;
  vm::RunStatistics statistics;
  const auto consume = [&](RowBatch&& batch) {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::string line;
      for (const ColumnVector& column : batch.columns) {
        if (column.IsNull(r)) line += "NULL";
        AppendText(column, r, &line);
        line += ' ';
      }
      answer.rows.push_back(std::move(line));
    }
    return Status::Ok();
  };
  answer.status = executor.Run(program, snapshot, options, consume, &statistics);
  std::sort(answer.rows.begin(), answer.rows.end());
  return answer;
}

/// Some of the calls of one case fail, one after the other. Exit status: 1 if something broke.
int Trials(const Case& c, Failure how, bool required, uint64_t seed) {
  const std::shared_ptr<const Snapshot> snapshot = Tables();
  Result<Compiled> compiled = Compile(c.sql, *snapshot, {c.strategy, true});
  Result<Compiled> on_host = Compile(c.sql, *snapshot, {});
  if (!compiled.ok() || !on_host.ok()) {
    fmt::print("{}: {}\n", c.sql, (compiled.ok() ? on_host : compiled).status().message());
    return 1;
  }
  const vm::Program& program = *compiled->program;
  const Answer right = Run(c, *on_host->program, *snapshot, nullptr, false);
  launches_fail = c.strategy != JoinChoice::kDp;
  std::mt19937_64 random(seed);
  uint64_t all = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const int64_t objects_before = objects;
    failure = how;
    failing = trial == 0 ? UINT64_MAX : 1 + random() % all;
    const auto broke = [&](const std::string& what) {
      fmt::print("{} (memory {}, {} call {} of {}, gpu {}): {}\n", c.sql, c.memory,
                 kFailureNames[static_cast<int>(how)], failing.load(), all, required ? "required" : "auto", what);
      return 1;
    };
    calls = 0;
    armed = true;
    {
      Result<std::unique_ptr<Gpu>> gpu = Gpu::Open(0, {c.memory});
      Answer first;
      if (gpu.ok()) {
        first.status = (*gpu)->SetTransfer(c.transfer, kLeastTransferPiece);
        if (first.status.ok()) first = Run(c, program, *snapshot, gpu->get(), required);
      } else {
        first.status = gpu.status();
      }
      armed = false;
      last = cudaSuccess;
      if (trial == 0) all = calls;
      if (first.status.ok() && first.rows != right.rows) return broke("wrong rows without an error");
      if (!first.status.ok() && first.status.message().empty()) return broke("an error without a message");
      if (how == Failure::kSticky && !first.status.ok() && first.status.code() == ErrorCode::kDevice &&
          first.status.hint().empty())
        return broke("the message does not say that the GPU is lost: " + first.status.message());
      if (!first.status.ok() && trial == 0) return broke("fails by itself: " + first.status.message());
      if (!first.status.ok() && how == Failure::kNoMemory && !required && gpu.ok() && c.strategy != JoinChoice::kDp)
        return broke("the host did not take over: " + first.status.message());
      if (gpu.ok() && how != Failure::kSticky) {
        const Answer next = Run(c, program, *snapshot, gpu->get(), true);
        if (!next.status.ok()) return broke("the next query fails: " + next.status.message());
        if (next.rows != right.rows) return broke("the next query has wrong rows");
      }
    }
    if (objects != objects_before) return broke(fmt::format("{} objects of CUDA's are left", objects - objects_before));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Campaign campaign("cuda_calls", argc, argv);
  if (RunInChild(60, [] { return GpuCount() > 0 ? 0 : 1; }).status != 0) {
    fmt::print("no GPU\n1 passed, 0 failed\n");
    return 0;
  }
  while (campaign.Next()) {
    const Case& c = kCases[campaign.trial() % std::size(kCases)];
    const auto how = static_cast<Failure>(campaign.Random(3));
    const bool required = campaign.Random(2) == 0;
    const uint64_t seed = campaign.random()();
    // (What is not waited for comes too late then; on the emulated GPU.)
    const bool slow_copies = campaign.Random(2) == 0;
    const ChildEnd end = RunInChild(120, [&] {
      if (slow_copies) setenv("CUDA_EMULATOR_COPY_MICROSECONDS", "3000", 1);
      return Trials(c, how, required, seed);
    });
    if (end.status != 0)
      campaign.Break(fmt::format("{} ({}): {}", c.sql, kFailureNames[static_cast<int>(how)], end.Text()));
  }
  return campaign.Finish();
}
