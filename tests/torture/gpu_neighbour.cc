// A GPU that others use, too: while two processes run queries on it, a third one takes and gives back its memory at
// random, up to nearly all of it. Both get the right rows, on the GPU where there is room and on the host otherwise.
//
// Needs a GPU: without one, or with the emulated one, whose memory is each process's own, there is nothing to try.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "kernels/kernels.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/torture/campaign.h"
#include "tests/vm/memory_tablet.h"
#include "vm/program/program.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace {

using namespace tessera;

constexpr int64_t kRows = 3 << 20;
constexpr int kRounds = 12;

const char* const kQueries[] = {
    "SELECT count(*), sum(c) FROM f WHERE b < 700",
    "SELECT a, count(*), sum(c) FROM f GROUP BY a ORDER BY a LIMIT 20",
    "SELECT c, sum(b) FROM f GROUP BY c ORDER BY c LIMIT 5",
    "SELECT count(*), sum(x.b) FROM f x JOIN f y ON x.c = y.c",
    "SELECT c, b FROM f ORDER BY b DESC, c LIMIT 10",
};

std::shared_ptr<const Snapshot> Tables() {
  std::vector<test::MemoryColumn> columns(3);
  for (size_t c = 0; c < columns.size(); ++c) {
    columns[c].name = std::string(1, static_cast<char>('a' + c));
    columns[c].values.type = SqlType::Of(TypeId::kBigint);
    columns[c].forms = {test::ChunkForm()};
    const int64_t modulo[] = {997, 1009, kRows};
    for (int64_t i = 0; i < kRows; ++i)
      columns[c].values.Append(Value::Int(columns[c].values.type, i * 7919 % modulo[c]));
  }
  return test::MakeSnapshot({*test::MakeMemoryTable(1, "f", columns, 1 << 18)});
}

struct Answer {
  Status status;
  std::vector<std::string> rows;
  bool on_gpu = false;
};

Answer Run(const vm::Program& program, const Snapshot& snapshot, Gpu* gpu) {
  Answer answer;
  vm::Executor executor(2);
  vm::RunOptions options;
  options.gpu = gpu;
  vm::RunStatistics statistics;
  const auto consume = [&](RowBatch&& batch) {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::string& line = answer.rows.emplace_back();
      for (const ColumnVector& column : batch.columns) {
        AppendText(column, r, &line);
        line += ' ';
      }
    }
    return Status::Ok();
  };
  answer.status = executor.Run(program, snapshot, options, consume, &statistics);
  for (const vm::SectionStatistics& s : statistics.sections) answer.on_gpu |= s.on_gpu;
  return answer;
}

/// What one process does. Exit status: 0, all rows were right.
int RunQueries(const char* who, uint64_t seed) {
  const std::shared_ptr<const Snapshot> snapshot = Tables();
  std::vector<vm::Program> programs;
  std::vector<Answer> right;
  for (const char* sql : kQueries) {
    Result<Compiled> compiled = Compile(sql, *snapshot, {});
    if (!compiled.ok()) return 1;
    programs.push_back(*compiled->program);
    right.push_back(Run(programs.back(), *snapshot, nullptr));
  }
  std::mt19937_64 random(seed);
  int runs = 0, on_gpu = 0;
  for (int round = 0; round < kRounds; ++round) {
    // Now and then it begins anew, with whatever is free then; with a budget that may be more than there is.
    Result<std::unique_ptr<Gpu>> gpu = Gpu::Open(0, {random() % 2 == 0 ? 0 : uint64_t{2} << 30});
    if (!gpu.ok()) {
      fmt::print("{}: {}\n", who, gpu.status().message());
      return 1;
    }
    for (int i = 0; i < 10; ++i) {
      const size_t q = random() % programs.size();
      const Answer answer = Run(programs[q], *snapshot, gpu->get());
      ++runs;
      on_gpu += answer.on_gpu;
      if (answer.status.ok() && answer.rows == right[q].rows) continue;
      fmt::print("{}: {}: {}\n", who, kQueries[q], answer.status.ok() ? "wrong rows" : answer.status.message());
      return 1;
    }
  }
  fmt::print("{}: {} of {} queries ran on the GPU\n", who, on_gpu, runs);
  return 0;
}

/// Takes memory of the device and gives it back, until it is killed.
[[noreturn]] void TakeAndGive(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<void*> taken;
  for (;;) {
    size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
    // Half of the time what is left is little or nothing.
    const size_t left = random() % 2 == 0 ? random() % (size_t{256} << 20) : random() % (total / 2);
    while (free > left) {
      void* memory = nullptr;
      const size_t bytes = std::min<size_t>(free - left, (size_t{64} << 20) + random() % (size_t{4} << 30));
      if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError();
        break;
      }
      taken.push_back(memory);
      free -= bytes;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
    std::shuffle(taken.begin(), taken.end(), random);
    for (size_t keep = random() % (taken.size() + 1); taken.size() > keep; taken.pop_back()) cudaFree(taken.back());
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
  }
}

/// Three processes; none has used CUDA before it is one of its own.
int RunNeighbours(uint64_t seed) {
  const auto start = [](auto work) {
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int status = work();
    std::fflush(nullptr);
    std::_Exit(status);
  };
  const pid_t taker = start([&]() -> int { TakeAndGive(seed); });
  const pid_t other = start([&] { return RunQueries("the second process", seed + 1); });
  const int mine = RunQueries("the first process", seed + 2);
  std::fflush(nullptr);
  int status = 0;
  waitpid(other, &status, 0);
  kill(taker, SIGKILL);
  waitpid(taker, nullptr, 0);
  if (WIFSIGNALED(status)) fmt::print("the second process ended by signal {}\n", WTERMSIG(status));
  return mine != 0 || status != 0;
}

}  // namespace

int main(int argc, char** argv) {
  Campaign campaign("gpu_neighbour", argc, argv);
  const ChildEnd there = RunInChild(60, [] {
    if (GpuCount() == 0) return 1;
    const Result<std::unique_ptr<Gpu>> gpu = Gpu::Open(0, {});
    return gpu.ok() && gpu.value()->info().name != "emulated GPU" ? 0 : 1;
  });
  if (there.status != 0) {
    fmt::print("no GPU\n1 passed, 0 failed\n");
    return 0;
  }
  while (campaign.Next()) {
    const uint64_t seed = campaign.random()();
    const ChildEnd end = RunInChild(300, [&] { return RunNeighbours(seed); });
    fmt::print("{}", end.output);
    if (end.status != 0) campaign.Break(end.Text());
  }
  return campaign.Finish();
}
