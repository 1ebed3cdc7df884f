// Queries that need more memory than a GPU may take: group tables that go to the host when they are full, join tables
// that are joined partition by partition. Budgets are small here, so that little data is enough. Also queries whose
// join tables need more than the GPU's cache: their probes are sorted by the table's slots, here for small tables, too.
// Results must be the host's.
//
// Without a GPU every test is skipped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/status.h"
#include "compiler/compiler.h"
#include "kernels/kernels.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/database.h"
#include "tablet/load/table_writer.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/schemes/packed_stream.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/memory_tablet.h"
#include "vm/run/device.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace tessera::test {
namespace {

constexpr uint64_t kBudget = uint64_t{2} << 20;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7FB5D329728EA185u;
  x = (x ^ (x >> 27)) * 0x81DADEF4BC2DD44Du;
  return x ^ (x >> 33);
}
/// Keys that need 8 bytes and lie far apart.
int64_t Sparse(uint64_t i) { return static_cast<int64_t>(Mix(i + 1) >> 1); }

ColumnVector Integers(size_t rows, const std::function<int64_t(uint64_t)>& f, uint64_t null_every = 0) {
  ColumnVector c;
  c.type = SqlType::Of(TypeId::kBigint);
  for (size_t i = 0; i < rows; ++i) {
    const bool null = null_every > 0 && i % null_every == null_every - 1;
    c.Append(null ? Value::Null(c.type) : Value::Int(c.type, f(i)));
  }
  return c;
}
ColumnVector Names(size_t rows, uint64_t (*f)(uint64_t)) {
  ColumnVector c;
  c.type = SqlType::Of(TypeId::kText);
  for (size_t i = 0; i < rows; ++i) c.Append(Value::Text(fmt::format("name {}", f(i))));
  return c;
}

std::shared_ptr<const TableInfo> Table(int64_t id, const char* name,
                                       std::vector<std::pair<const char*, ColumnVector>> columns) {
  std::vector<MemoryColumn> all;
  for (auto& [column, values] : columns) {
    ChunkForm form;
    if (values.type.id == TypeId::kText) form = {Encoding::kDictionary, 2, {}, {}};
    all.push_back({column, std::move(values), {form}});
  }
  Result<std::shared_ptr<const TableInfo>> table = MakeMemoryTable(id, name, all, 1 << 14);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.status().message());
  return table.ok() ? *table : nullptr;
}

/// f: 200,000 rows, k a key of d (one in eight has none there, some are NULL), g one of 150,000. d: 60,000 rows, k
/// unique. e: 90,000 rows, each k two times and some of f's; n a second key. t: 50,000 rows with names, each twice.
std::shared_ptr<const Snapshot> Tables() {
  std::vector<std::pair<const char*, ColumnVector>> f, d, e, t;
  f.emplace_back("k", Integers(
                          200000, [](uint64_t i) { return Sparse(Mix(i) % 68571); }, 97));
  f.emplace_back("g", Integers(
                          200000, [](uint64_t i) { return static_cast<int64_t>(Mix(i * 3) % 150000) << 20; }, 1009));
  f.emplace_back("x", Integers(
                          200000, [](uint64_t i) { return static_cast<int64_t>(Mix(i * 7) % 2000) - 1000; }, 61));
  f.emplace_back("n", Integers(200000, [](uint64_t i) { return static_cast<int64_t>(i % 3); }));
  f.emplace_back("s", Names(200000, [](uint64_t i) { return Mix(i * 5) % 30000; }));
  d.emplace_back("k", Integers(60000, [](uint64_t i) { return Sparse(i); }));
  d.emplace_back("p", Integers(
                          60000, [](uint64_t i) { return static_cast<int64_t>(Mix(i * 11) >> 8); }, 13));
  d.emplace_back("q", Integers(60000, [](uint64_t i) { return Sparse((i * 7) % 70000); }));
  e.emplace_back("k", Integers(
                          90000, [](uint64_t i) { return Sparse(i / 2 + 20000); }, 101));
  e.emplace_back("y", Integers(90000, [](uint64_t i) { return static_cast<int64_t>(Mix(i * 13) % 2000) - 1000; }));
  e.emplace_back("n", Integers(90000, [](uint64_t i) { return static_cast<int64_t>(i % 3); }));
  t.emplace_back("s", Names(50000, [](uint64_t i) { return i / 2; }));
  t.emplace_back("v", Integers(50000, [](uint64_t i) { return Sparse(i); }));
  return MakeSnapshot({Table(1, "f", std::move(f)), Table(2, "d", std::move(d)), Table(3, "e", std::move(e)),
                       Table(4, "t", std::move(t))});
}

struct Answer {
  Status status;
  std::vector<std::string> rows;  ///< sorted
  uint64_t passes = 0, spills = 0, child_grids = 0;
  double kernel_milliseconds = 0;
  std::vector<vm::JoinedRows> joined;  ///< of the section that has most of them
  bool on_gpu = true;                  ///< all scans of stored tables
  std::string on_host;                 ///< sections that have read more than 1,000 rows there
  uint64_t in_place = 0;               ///< bytes that the GPU read where they were mapped
  bool by_place = false;               ///< some section's rows were sorted by a join table's slots
  bool grew = false;                   ///< there was no room for all rows of a join table at first
};

class GpuMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (GpuCount() == 0) GTEST_SKIP() << "no GPU on this machine (or built without CUDA)";
    snapshot_ = Tables();
  }

  Answer Run(const char* sql, Gpu* gpu, bool required = true, const std::atomic<bool>* cancel = nullptr) {
    Answer answer;
    PlanOptions plan;
    if (gpu != nullptr) plan.join = choice_;
    Result<Compiled> compiled = Compile(sql, *snapshot_, plan);
    answer.status = compiled.status();
    if (!compiled.ok()) return answer;
    vm::Executor executor(4);
    vm::RunOptions options;
    options.gpu = gpu;
    options.gpu_required = gpu != nullptr && required;
    options.cancel = cancel;
    options.profile = true;
    options.settings.join_partitioning = partitioning_;
    vm::RunStatistics statistics;
    const auto consume = [&](RowBatch&& batch) {
      for (size_t r = 0; r < batch.rows; ++r) {
        std::string line;
        for (const ColumnVector& c : batch.columns) {
          if (c.IsNull(r)) {
            line += "NULL";
          } else {
            AppendText(c, r, &line);
          }
          line += '|';
        }
        answer.rows.push_back(std::move(line));
      }
      return Status::Ok();
    };
    answer.status = executor.Run(*compiled->program, *snapshot_, options, consume, &statistics);
    std::sort(answer.rows.begin(), answer.rows.end());
    for (const vm::SectionStatistics& s : statistics.sections) {
      answer.passes = std::max(answer.passes, s.join_passes);
      answer.spills += s.group_spills;
      answer.in_place += s.bytes_in_place;
      answer.child_grids += s.child_grids;
      answer.kernel_milliseconds += s.kernel_milliseconds;
      if (s.joined.size() > answer.joined.size()) answer.joined = s.joined;
      answer.on_gpu &= s.on_gpu || s.tablets == 0;
      if (!s.on_gpu && s.rows_in > 1000)
        answer.on_host += compiled->program->sections[static_cast<size_t>(s.section)].label + "; ";
      answer.by_place |= s.device_plan.find("partitions by the slots of") != std::string::npos;
      answer.grew |= s.device_plan.find("room for rows grew") != std::string::npos;
    }
    return answer;
  }

  static std::unique_ptr<Gpu> Open(uint64_t budget) {
    GpuOptions options;
    options.memory_bytes = budget;
    return Open(options);
  }
  static std::unique_ptr<Gpu> Open(const GpuOptions& options) {
    auto gpu = Gpu::Open(0, options);
    EXPECT_TRUE(gpu.ok()) << (gpu.ok() ? "" : gpu.status().message());
    return gpu.ok() ? std::move(*gpu) : nullptr;
  }

  void Same(const char* sql, const Answer& answer) {
    const Answer host = Run(sql, nullptr);
    ASSERT_TRUE(host.status.ok()) << sql << "\n" << host.status.message();
    ASSERT_TRUE(answer.status.ok()) << sql << "\n" << answer.status.message();
    EXPECT_EQ(host.rows.size(), answer.rows.size()) << sql;
    size_t shown = 0;
    for (size_t i = 0; i < std::min(host.rows.size(), answer.rows.size()) && shown < 3; ++i) {
      if (host.rows[i] == answer.rows[i]) continue;
      ADD_FAILURE() << sql << "\nrow " << i << ": host " << host.rows[i] << " GPU " << answer.rows[i];
      ++shown;
    }
  }

  static constexpr uint32_t kTabletRows = 1 << 16;

  /// w, stored in files, of which snapshot_ is made: a below 2^40 in no order, b below 200, but 77 from row `same_from` on, c
  /// below 2^24 in no order or NULL.
  std::unique_ptr<Database> Stored(size_t n, CompressionGoal goal, uint64_t same_from = UINT64_MAX) {
    Result<std::unique_ptr<Database>> database = Database::Open("", OpenMode::kReadWrite);
    EXPECT_TRUE(database.ok()) << database.status().message();
    if (!database.ok()) return nullptr;
    (*database)->SetCompression(goal);
    RowBatch rows;
    rows.rows = n;
    rows.columns = {Integers(n, [](uint64_t i) { return static_cast<int64_t>(Mix(i + 1) >> 24); }),
                    Integers(n, [&](uint64_t i) { return i < same_from ? static_cast<int64_t>(Mix(i) % 200) : 77; }),
                    Integers(
                        n, [](uint64_t i) { return static_cast<int64_t>(Mix(i + 2) >> 40); }, 7)};
    const SqlType type = rows.columns[0].type;
    TableSchema schema{"w", {{"a", type}, {"b", type}, {"c", type}}, {}, kTabletRows};
    Result<std::unique_ptr<TableWriter>> writer = (*database)->WriteNew(schema, false);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    if (!writer.ok()) return nullptr;
    EXPECT_TRUE((*writer)->Append(rows, 1).ok());
    EXPECT_TRUE((*writer)->Commit().ok());
    snapshot_ = *(*database)->Read();
    return *std::move(database);
  }

  std::shared_ptr<const Snapshot> snapshot_;
  uint64_t in_place_ = 0;
  vm::JoinPartitioning partitioning_ = vm::JoinPartitioning::kAuto;
  JoinChoice choice_ = JoinChoice::kAuto;  ///< on the GPU; the host probes
};

/// 96 MB go past a budget of 80 in some launches, each more than one thread copies; now and then somebody cancels.
TEST_F(GpuMemory, ColumnsStream) {
  std::vector<std::pair<const char*, ColumnVector>> columns;
  columns.emplace_back("a", Integers(6000000, Sparse));
  columns.emplace_back("b", Integers(6000000, [](uint64_t i) { return Sparse(i * 3); }));
  snapshot_ = MakeSnapshot({Table(1, "w", std::move(columns))});
  const std::unique_ptr<Gpu> gpu = Open(uint64_t{80} << 20);
  const char* sql = "SELECT count(*), sum(a % 1000003), sum(b % 1000003), min(a), max(b) FROM w WHERE a <> b";
  int cancelled = 0;
  for (int i = 0; i < 12; ++i) {
    std::atomic<bool> cancel{false};
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * i));
      cancel = true;
    });
    const Answer answer = Run(sql, gpu.get(), true, &cancel);
    canceller.join();
    if (!answer.status.ok()) {
      ++cancelled;
      EXPECT_EQ(answer.status.code(), ErrorCode::kCancelled) << answer.status.message();
    }
    if (i % 4 == 3) Same(sql, Run(sql, gpu.get()));
  }
  EXPECT_GT(cancelled, 0);
  EXPECT_LE(gpu->memory().cached_bytes, gpu->memory().budget_bytes);
}

/// However columns come, with room for all of them and without.
TEST_F(GpuMemory, EveryTransfer) {
  std::vector<std::pair<const char*, ColumnVector>> columns;
  columns.emplace_back("a", Integers(300000, Sparse));
  columns.emplace_back("b", Integers(
                                300000, [](uint64_t i) { return static_cast<int64_t>(Mix(i) % 200); }, 7));
  snapshot_ = MakeSnapshot({Table(1, "w", std::move(columns))});
  const char* sql = "SELECT count(*), count(b), sum(a % 1000003), sum(b), min(a) FROM w WHERE a % 3 <> 1";
  for (const uint64_t budget : {kBudget, 16 * kBudget}) {
    const std::unique_ptr<Gpu> gpu = Open(budget);
    for (const Transfer transfer :
         {Transfer::kStream, Transfer::kSync, Transfer::kZeroCopy, Transfer::kPageable, Transfer::kStream}) {
      SCOPED_TRACE(static_cast<int>(transfer));
      ASSERT_TRUE(gpu->SetTransfer(transfer, kLeastTransferPiece).ok());
      EXPECT_TRUE(gpu->Cache().columns.empty()) << "a change forgets what was there";
      const CacheReport before = gpu->Cache();
      Same(sql, Run(sql, gpu.get()));
      const CacheReport cold = gpu->Cache();
      EXPECT_GT(cold.misses, before.misses);
      EXPECT_EQ(cold.hits, before.hits);
      EXPECT_GE(cold.bytes_in - before.bytes_in, 300000u * 8);
      Same(sql, Run(sql, gpu.get()));
      const CacheReport hot = gpu->Cache();
      EXPECT_LE(hot.bytes, hot.budget);
      uint64_t bytes = 0, hits = 0;
      for (const CachedColumn& column : hot.columns) {
        EXPECT_GE(column.column, 0);
        EXPECT_LE(column.column, 1);
        bytes += column.bytes;
        hits += column.hits;
      }
      EXPECT_EQ(bytes, hot.bytes);
      if (budget == kBudget) {
        EXPECT_GT(hot.evictions, before.evictions);
        EXPECT_GT(hot.bytes_in, cold.bytes_in);
      } else {
        EXPECT_EQ(hot.evictions, before.evictions);
        EXPECT_EQ(hot.misses, cold.misses);
        EXPECT_EQ(hot.bytes_in, cold.bytes_in);
        EXPECT_EQ(hot.hits - cold.hits, cold.misses - before.misses);
        EXPECT_EQ(hits, hot.hits - cold.hits);
      }
      ASSERT_TRUE(gpu->SetTransfer(transfer, kLeastTransferPiece).ok());
      EXPECT_EQ(gpu->Cache().bytes, hot.bytes) << "nothing changed";
    }
    ASSERT_TRUE(gpu->DropCache().ok());
    EXPECT_EQ(gpu->Cache().bytes, 0u);
  }
}

/// What a run gave back is free to the columns of the next one: those that fit beside what it needs stay.
TEST_F(GpuMemory, ColumnsDisplaceWhatEarlierRunsGaveBack) {
  std::vector<std::pair<const char*, ColumnVector>> columns;
  columns.emplace_back("a", Integers(300000, Sparse));
  columns.emplace_back("b", Integers(300000, [](uint64_t i) { return static_cast<int64_t>(Mix(i) % 200); }));
  snapshot_ = MakeSnapshot({Table(1, "w", std::move(columns))});
  const char* groups = "SELECT count(*) FROM (SELECT a % 3000 AS k, count(*) FROM w GROUP BY k) g";
  const char* sums = "SELECT count(*), sum(b), min(a) FROM w WHERE a % 3 <> 1";
  const std::unique_ptr<Gpu> gpu =
      Open(4'900'000);  // the columns have 4.8 MB; a table of groups is larger than what is left
  for (int i = 0; i < 3; ++i) {
    Same(groups, Run(groups, gpu.get()));
    Same(sums, Run(sums, gpu.get()));
    const CacheReport before = gpu->Cache();
    EXPECT_EQ(before.bytes, 4'800'000u);
    Same(sums, Run(sums, gpu.get()));
    EXPECT_EQ(gpu->Cache().evictions, before.evictions);
    EXPECT_EQ(gpu->Cache().misses, before.misses);
  }
}

/// Whether that comes true soon.
template <class F>
bool Becomes(F f) {
  for (int i = 0; i < 3000 && !f(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return f();
}

/// This many bytes are pinned, and soon no more.
bool ArePinned(const Gpu& gpu, uint64_t bytes) {
  uint64_t pinned = 0;
  int same = 0;
  return Becomes([&] {
    same = gpu.Cache().pinned == pinned ? same + 1 : 0;
    pinned = gpu.Cache().pinned;
    return pinned >= bytes && same >= 30;
  });
}

/// What comes again is pinned where its file is mapped. Then it is copied from there, and what is read of few rows stays there.
TEST_F(GpuMemory, FilesArePinned) {
  constexpr size_t kRows = 300000;
  for (const CompressionGoal goal : {CompressionGoal::kNone, CompressionGoal::kRatio}) {
    SCOPED_TRACE(static_cast<int>(goal));
    std::unique_ptr<Database> database = Stored(kRows, goal);
    ASSERT_NE(database, nullptr);
    const std::unique_ptr<Gpu> gpu = Open(kBudget);
    const char* const all = "SELECT count(*), sum(a % 1000003), sum(b) FROM w";
    const char* const few = "SELECT count(*), sum(a % 1000003) FROM w WHERE b = 77";
    const auto run = [&](const char* sql) {
      const uint64_t before = gpu->Cache().bytes_in;
      const Answer answer = Run(sql, gpu.get());
      Same(sql, answer);
      return std::pair(gpu->Cache().bytes_in - before, answer.in_place);
    };
    const uint64_t bytes = kRows * (goal == CompressionGoal::kNone ? 8 : 5);  // of a
    EXPECT_GE(run(all).first, bytes);
    EXPECT_EQ(gpu->Cache().pinned, 0u) << "once may be enough";
    run(all);
    ASSERT_TRUE(Becomes([&] { return gpu->Cache().pinned >= bytes; }));
    for (int i = 0; i < 3; ++i) {
      EXPECT_GT(run(all).first, kRows * 4);
      const auto [copied, in_place] = run(few);
      if (goal == CompressionGoal::kNone) {
        EXPECT_LT(copied, kRows * 2);
        EXPECT_GE(in_place, kRows * 2);  // (some is still on the device)
      } else {                           // a stream of bits is not read here and there
        EXPECT_EQ(in_place, 0u);
      }
    }
    // Of a column that is pinned the next one's first page may be, too.
    for (const Transfer transfer : {Transfer::kPageable, Transfer::kSync, Transfer::kZeroCopy}) {
      ASSERT_TRUE(gpu->SetTransfer(transfer, 0).ok());
      run("SELECT count(*), sum(a % 1000003) FROM w WHERE b < 100");
    }
    snapshot_ = nullptr;
    database.reset();
    EXPECT_TRUE(Becomes([&] { return gpu->Cache().pinned == 0; }));
  }
}

/// What would stay on the GPU is read where it is mapped once, and copied the second time.
TEST_F(GpuMemory, FewRowsOfWhatFits) {
  constexpr size_t kRows = 300000;
  std::unique_ptr<Database> database = Stored(kRows, CompressionGoal::kNone);
  ASSERT_NE(database, nullptr);
  const std::unique_ptr<Gpu> gpu = Open(uint64_t{1} << 30);
  const auto forget = [&] {
    ASSERT_TRUE(gpu->SetTransfer(Transfer::kSync, 0).ok());
    ASSERT_TRUE(gpu->SetTransfer(Transfer::kStream, 0).ok());
  };
  const char* const all = "SELECT count(*), sum(a % 1000003), sum(b) FROM w";
  Run(all, gpu.get());
  EXPECT_EQ(gpu->Cache().pinned, 0u);
  forget();
  Run(all, gpu.get());
  ASSERT_TRUE(ArePinned(*gpu, kRows * 8));
  for (int round = 0; round < 2; ++round) {
    forget();
    for (int time = 0; time < 3; ++time) {
      const char* const few = "SELECT count(*), sum(a % 1000003) FROM w WHERE b = 77";
      const uint64_t before = gpu->Cache().bytes_in;
      const Answer answer = Run(few, gpu.get());
      Same(few, answer);
      EXPECT_EQ(answer.in_place > 0, time == 0);
      EXPECT_EQ(gpu->Cache().bytes_in - before > kRows * 4, time == 1);
    }
  }
  snapshot_ = nullptr;
  database.reset();
}

/// So are codes that are packed in bits, by rows that wait in queues. If a launch turns out to have none, they are unpacked.
TEST_F(GpuMemory, BitsInPlace) {
  constexpr size_t kRows = 300000;
  for (const bool queued : {true, false}) {
    SCOPED_TRACE(queued);
    std::unique_ptr<Database> database = Stored(kRows, CompressionGoal::kRatio, queued ? UINT64_MAX : kTabletRows);
    ASSERT_NE(database, nullptr);
    const std::unique_ptr<Gpu> gpu = Open(uint64_t{1} << 30);
    const auto run = [&](const char* sql) {
      // (What was there is forgotten, and what was to be pinned.)
      ASSERT_TRUE(gpu->SetTransfer(Transfer::kSync, 0).ok());
      ASSERT_TRUE(gpu->SetTransfer(Transfer::kStream, 0).ok());
      const Answer answer = Run(sql, gpu.get());
      Same(sql, answer);
      in_place_ = answer.in_place;
    };
    const char* const few = "SELECT count(*), sum(c), sum(c * 3), count(c) FROM w WHERE b = 77";
    for (int i = 0; i < 2; ++i) {
      run("SELECT count(*), sum(c), sum(b) FROM w");
      EXPECT_EQ(in_place_, 0u);
    }
    ASSERT_TRUE(ArePinned(*gpu, kRows * 3));
    run(few);
    if (queued) {
      EXPECT_GE(in_place_, kRows * 3);
    } else {
      EXPECT_EQ(in_place_, 0u);
    }
    run("SELECT count(*), sum(b) FROM w WHERE b = 77 AND c < 5000");  // tested, not only read
    EXPECT_LT(in_place_, kRows * 3);
    run("SELECT count(*), sum(CASE WHEN c < 1000 THEN a + c END), sum(c) FROM w WHERE b = 77 AND a % 3 = 1");
    snapshot_ = nullptr;
    database.reset();
  }
}

thread_local int64_t until_refused = 0;  // allocations; of this thread alone, for the emulated GPU has threads, too

/// Each allocation of the thread that runs the query fails once, while columns of files are copied and pinned: an error, and right rows the next time.
TEST_F(GpuMemory, AllocationsFail) {
  if (!MemoryIsCounted()) GTEST_SKIP() << "a sanitizer allocates";
  constexpr int64_t kStep = 1;
  std::unique_ptr<Database> database = Stored(100000, CompressionGoal::kNone);
  ASSERT_NE(database, nullptr);
  const char* const sql = "SELECT count(*), sum(a % 1000003), sum(b) FROM w";
  const Answer right = Run(sql, nullptr);
  std::unique_ptr<Gpu> gpu = Open(uint64_t{1} << 20);
  int refused = 0;
  for (int64_t n = 1; n < 5000; n += kStep) {
    SCOPED_TRACE(n);
    // Everything comes for the first time, for the second one, and from pinned pages.
    if (n % 5 == 0) gpu = Open(uint64_t{1} << 20);
    until_refused = n;
    SetAllocationFault([] { return --until_refused == 0; });
    const Status status = Caught([&]() -> Status {
      const Answer answer = Run(sql, gpu.get());
      if (answer.status.ok()) {
        EXPECT_EQ(answer.rows, right.rows);
      }
      return answer.status;
    });
    SetAllocationFault(nullptr);
    refused += !status.ok();
    const Answer next = Run(sql, gpu.get());
    ASSERT_TRUE(next.status.ok()) << next.status.message();
    ASSERT_EQ(next.rows, right.rows);
    if (until_refused > 0) break;
  }
  EXPECT_GT(refused, 20);
}

/// (MeasureTransfer fails if a kernel reads other bytes than were there.)
TEST_F(GpuMemory, TransfersAreMeasured) {
  const std::unique_ptr<Gpu> gpu = Open(0);
  for (const Transfer transfer : {Transfer::kStream, Transfer::kSync, Transfer::kZeroCopy, Transfer::kPageable}) {
    for (const bool scanned : {false, true}) {
      const Result<double> rate = gpu->MeasureTransfer({transfer, 64 << 10, 200000, scanned});
      ASSERT_TRUE(rate.ok()) << rate.status().message();
      EXPECT_GT(*rate, 0);
    }
  }
}

/// A tree, and what it packs well: `repeat` times each, below `below`.
struct UnpackCase {
  SchemeTree tree;
  uint64_t repeat, below;
  bool rises = false;
};

std::vector<UnpackCase> UnpackCases(int width) {
  const SchemeTree ns = SchemeTree::Leaf(Scheme::kNs), nsv = SchemeTree::Leaf(Scheme::kNsv);
  const SchemeTree based{Scheme::kFor, 0, {ns}};
  const uint64_t all = width == 8 ? uint64_t{1} << 40 : (uint64_t{1} << (8 * width - 1));
  std::vector<UnpackCase> cases = {
      {ns, 1, all},
      {ns, 1, 1},
      {based, 1, std::min<uint64_t>(all, 10000)},
      {nsv, 1, std::min(all, uint64_t{1} << 31)},
      {{Scheme::kFor, 0, {nsv}}, 1, std::min(all, uint64_t{1} << 31)},
      {{Scheme::kDelta, 0, {ns}}, 1, all, true},
      {{Scheme::kDelta, 0, {based}}, 1, all, true},
      {{Scheme::kDelta, 0, {nsv}}, 3, std::min(all, uint64_t{1} << 24), true},
      {{Scheme::kDelta, 0, {{Scheme::kRle, 0, {ns, ns}}}}, 2, all, true},
      {{Scheme::kDict, 0, {ns, ns}}, 1, 100},
      {{Scheme::kDict, 0, {based, ns}}, 7, 100},
      {{Scheme::kDict, 0, {nsv, {Scheme::kRle, 0, {ns, ns}}}}, 40, 100},
      {{Scheme::kDict, 0, {{Scheme::kDelta, 0, {ns}}, ns}}, 1, std::min<uint64_t>(all, 6000)},
      {{Scheme::kBitmap, 0, {based}}, 2, 30},
      {{Scheme::kSep, 10, {ns, ns}}, 1, all},
      {{Scheme::kSep, 10, {{Scheme::kRle, 0, {ns, ns}}, based}}, 30, 100},
      {{Scheme::kSep, 10, {ns, {Scheme::kDelta, 0, {ns}}}}, 1, all},
  };
  for (const uint64_t repeat : {1, 3, 700}) {
    cases.push_back({{Scheme::kRle, 0, {ns, ns}}, repeat, all});
    cases.push_back({{Scheme::kRle, 0, {{Scheme::kDelta, 0, {ns}}, based}}, repeat, all, true});
    cases.push_back({{Scheme::kFor, 0, {{Scheme::kRle, 0, {based, nsv}}}}, repeat, all});
  }
  return cases;
}

/// `rows` values for a case; those of a run differ from the next ones.
std::vector<uint64_t> ValuesFor(const UnpackCase& c, size_t rows) {
  std::vector<uint64_t> values(rows);
  uint64_t seed = rows, value = 0, left = 0;
  for (uint64_t& v : values) {
    if (left == 0) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      // Lengths differ by up to a half: some runs end at the boundaries of blocks, some do not.
      left = c.repeat + (c.repeat > 1 ? (seed >> 33) % (c.repeat / 2 + 1) : 0);
      const uint64_t steps = rows / c.repeat + 1;
      value = c.rises ? std::min(value + (seed >> 20) % (2 * c.below / steps + 2), c.below) : (seed >> 20) % c.below;
    }
    --left;
    v = value;
  }
  return values;
}

/// What is measured unpacks to the values that were packed, by each scheme, in each width, with its children as bits and
/// not, in few values and in more than a block of each step makes.
TEST_F(GpuMemory, UnpackingIsMeasured) {
  const std::unique_ptr<Gpu> gpu = Open(0);
  for (const int width : {1, 2, 4, 8}) {
    int number = 0;
    for (const UnpackCase& c : UnpackCases(width)) {
      for (const size_t rows : {5, 33003 / width}) {
        SCOPED_TRACE(std::to_string(width) + " bytes, case " + std::to_string(number) + ", " + std::to_string(rows));
        const std::vector<uint64_t> values = ValuesFor(c, rows);
        const std::optional<std::vector<uint8_t>> packed = PackIntegers(values, c.tree, nullptr);
        ASSERT_TRUE(packed.has_value());
        Chunk chunk;
        chunk.type = SqlType::Of(TypeId::kBigint);
        chunk.width = width;
        chunk.rows = static_cast<uint32_t>(rows);
        chunk.codes_bytes = (rows * static_cast<size_t>(width) + 127) / 128 * 128;
        chunk.packed_codes = packed->data();
        chunk.packed_bytes = packed->size();
        std::vector<uint8_t> codes;
        const uint64_t three_chunks = 3 * (chunk.packed_bytes + chunk.codes_bytes + 2 * 256);
        const Result<double> milliseconds = gpu->MeasureUnpack(chunk, three_chunks, &codes);
        ASSERT_TRUE(milliseconds.ok()) << milliseconds.status().message();
        EXPECT_GT(*milliseconds, 0);
        ASSERT_EQ(codes.size(), rows * static_cast<size_t>(width));
        for (size_t i = 0; i < rows; ++i) {
          uint64_t code = 0;
          memcpy(&code, codes.data() + static_cast<size_t>(width) * i, static_cast<size_t>(width));
          ASSERT_EQ(code, values[i]) << i;
        }
      }
      ++number;
    }
  }
}

/// Rows in order, their windows, and arms one after the other: with room on the device, with room for some of it, and
/// without.
TEST_F(GpuMemory, WindowsAndSetOperations) {
  for (const uint64_t budget : {kBudget, 16 * kBudget, 64 * kBudget}) {
    const std::unique_ptr<Gpu> gpu = Open(budget);
    for (const char* sql : {
             "SELECT sum(r), sum(s), max(l) FROM (SELECT row_number() OVER w AS r, sum(x) OVER (w ROWS 20 PRECEDING) "
             "AS s, "
             "lag(g) OVER w AS l FROM f WINDOW w AS (PARTITION BY k ORDER BY g, x, n)) z",
             "SELECT n, sum(d), max(m) FROM (SELECT n, dense_rank() OVER (PARTITION BY n ORDER BY x) AS d, "
             "min(x) OVER (PARTITION BY n ORDER BY g, x ROWS BETWEEN 5 PRECEDING AND 9 FOLLOWING) AS m FROM f) z GROUP "
             "BY "
             "n",
             "SELECT count(*), sum(g % 1000003) FROM (SELECT g, n FROM f UNION SELECT k, n FROM e) z",
             "SELECT count(*), sum(k % 1000003) FROM (SELECT k FROM f INTERSECT SELECT k FROM e) z",
             "SELECT count(*), count(s) FROM (SELECT s, n FROM f WHERE x > 0 EXCEPT SELECT s, 1 FROM t) z",
             "SELECT count(*), sum(x) FROM (SELECT x FROM f UNION ALL SELECT y FROM e WHERE y < -2000 UNION ALL SELECT "
             "y FROM e) z",
         }) {
      const Answer answer = Run(sql, gpu.get());
      Same(sql, answer);
      EXPECT_TRUE(answer.on_gpu) << sql;
    }
  }
}

/// The one row of all rows is put after those that are on the device, so that these need not come to the host.
TEST_F(GpuMemory, FewRowsAreAppendedWhereManyAre) {
  const std::unique_ptr<Gpu> gpu = Open(64 * kBudget);
  const char* const sql =
      "SELECT sum(r), max(r), count(*) FROM (SELECT rank() OVER (PARTITION BY n ORDER BY c) AS r FROM (SELECT g, n, "
      "count(*) AS c FROM f GROUP BY ROLLUP (g, n)) y) z";
  const Answer answer = Run(sql, gpu.get());
  Same(sql, answer);
  EXPECT_EQ(answer.on_host, "");
}

TEST_F(GpuMemory, GroupTablesGoToTheHost) {
  const std::unique_ptr<Gpu> gpu = Open(kBudget);
  for (const char* sql : {
           "SELECT g, count(*), count(x), sum(x), min(x), max(x) FROM f GROUP BY g",
           "SELECT g, n, sum(CAST(x AS DECIMAL(38, 2)) * 3), max(CAST(x AS DECIMAL(38, 2))) FROM f GROUP BY g, n",
           "SELECT g, min(CAST(x AS DOUBLE PRECISION) / 7), max(x / 7.0) FROM f WHERE n < 2 GROUP BY g",
           "SELECT count(*), sum(z.c) FROM (SELECT g, k, count(*) AS c FROM f GROUP BY g, k) z",
           "SELECT k, g FROM f GROUP BY k, g",
       }) {
    const Answer answer = Run(sql, gpu.get());
    Same(sql, answer);
    EXPECT_GT(answer.spills, 0u) << sql;
    EXPECT_TRUE(answer.on_gpu) << sql;
  }
}

TEST_F(GpuMemory, JoinTablesInParts) {
  const std::unique_ptr<Gpu> gpu = Open(kBudget);
  for (const char* sql : {
           "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k",
           "SELECT count(*), sum(f.x * e.y) FROM f JOIN e ON f.k = e.k",
           "SELECT count(*), sum(f.x * e.y) FROM f JOIN e ON f.k = e.k AND f.n = e.n",
           "SELECT count(*), sum(f.x * e.y) FROM f JOIN e ON f.k + 1 = e.k + 1",
           "SELECT count(*), sum(f.x), sum(t.v % 1000) FROM f JOIN t ON f.s = t.s",
           "SELECT f.x, d.p FROM f JOIN d ON f.k = d.k WHERE f.x < -900",
           // Rows without a match stay.
           "SELECT count(*), count(d.p), count(d.k), sum(f.x) FROM f LEFT JOIN d ON f.k = d.k",
           "SELECT count(*), count(e.k), sum(f.x), sum(e.y) FROM f LEFT JOIN e ON f.k = e.k AND e.y < f.x",
           "SELECT count(*), count(e.k), sum(f.x), sum(e.y) FROM f LEFT JOIN e ON f.k = e.k AND f.n = e.n",
           "SELECT count(*), count(t.v), sum(f.x) FROM f LEFT JOIN t ON f.s = t.s",
           "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f FULL JOIN d ON f.k = d.k",
           "SELECT count(*), sum(x) FROM f WHERE EXISTS (SELECT 1 FROM e WHERE e.k = f.k AND e.y < f.x)",
           "SELECT count(*), sum(x) FROM f WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.k = f.k)",
           "SELECT count(*), sum(x) FROM f WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.k = f.k AND e.y < f.x)",
           "SELECT count(*), sum(x) FROM f WHERE x < -500 OR k IN (SELECT k FROM d WHERE p > 1000)",
           // Parts of two tables at a time; one that is made from groups; one over another.
           "SELECT count(*), sum(d.p % 1000), sum(e.y) FROM f JOIN d ON f.k = d.k JOIN e ON f.k = e.k",
           "SELECT count(*), sum(d.p % 1000), sum(e.y) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN e ON f.k = e.k",
           "SELECT count(*), sum(z.c * f.x) FROM f JOIN (SELECT k, count(*) AS c FROM e GROUP BY k) z ON f.k = z.k",
           "SELECT count(*), sum(f.x), sum(e.y) FROM f JOIN d ON f.k = d.k JOIN e ON d.q = e.k",
       }) {
    const Answer answer = Run(sql, gpu.get());
    Same(sql, answer);
    EXPECT_GT(answer.passes, 1u) << sql;
    EXPECT_TRUE(answer.on_gpu) << sql;
  }
}

/// Room is taken for all rows of tables that would not be waited for if they were smaller, and for all matches of rows:
/// most of it is filled, half, few and none.
TEST_F(GpuMemory, RoomForRowsThatMayNotCome) {
  for (const uint64_t budget : {kBudget, 8 * kBudget, 64 * kBudget}) {
    GpuOptions options;
    options.memory_bytes = budget;
    options.deferred_build_rows = 1000;
    options.first_build_rows = 1000;
    options.given_back_bytes = 1000;
    const std::unique_ptr<Gpu> gpu = Open(options);
    for (const char* sql : {
             "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k",
             "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k WHERE d.p % 2 = 1",
             "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k WHERE d.p % 1000 = 7",
             "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k WHERE d.p % 2 = 5",
             "SELECT count(*), count(e.k), sum(f.x), sum(e.y) FROM f LEFT JOIN e ON f.k = e.k AND e.y > 900",
             "SELECT count(*), sum(f.x), sum(d.p::decimal(30, 0)) FROM f JOIN (SELECT k, p::decimal(30, 0) AS p FROM d "
             "WHERE p % 10 = 3) d ON f.k = d.k",
             "SELECT count(*), sum(f.x), sum(t.v % 1000), count(t.s) FROM f JOIN t ON f.s = t.s WHERE t.v % 9 = 2",
             "SELECT count(*), sum(x) FROM f WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.k = f.k AND e.y < f.x - 1500)",
             "SELECT count(*), sum(d.p % 1000), sum(e.y) FROM f JOIN d ON f.k = d.k JOIN e ON f.k = e.k WHERE e.y > "
             "900 "
             "AND d.p % 50 = 1",
             "SELECT count(*), sum(f.x), sum(e.y) FROM f JOIN d ON f.k = d.k JOIN e ON d.q = e.k WHERE e.y > 950",
         }) {
      SCOPED_TRACE(budget);
      const Answer answer = Run(sql, gpu.get());
      Same(sql, answer);
      EXPECT_FALSE(answer.grew && budget == 64 * kBudget) << sql;
    }
  }
}

/// Tables that can't be parted, with one budget after the other: there is room for all, for the columns but not for the table
/// beside them, for its rows but not to put them in order, and for less.
TEST_F(GpuMemory, TablesThatDoNotFitAtAll) {
  const char* const sql =
      "SELECT count(*), sum(z.q % 1000) FROM (SELECT x FROM f WHERE x < -998) f JOIN d z ON f.x > z.p % 3000";
  const Answer right = Run(sql, nullptr);
  int refused = 0, ran = 0;
  for (uint64_t budget = 200'000; budget < 12'000'000; budget += budget / 8) {
    SCOPED_TRACE(budget);
    const std::unique_ptr<Gpu> gpu = Open(budget);
    const Answer answer = Run(sql, gpu.get());
    if (answer.status.ok()) {
      EXPECT_EQ(answer.rows, right.rows);
      ++ran;
    } else {
      EXPECT_EQ(answer.status.code(), ErrorCode::kResource) << answer.status.message();
      ++refused;
    }
  }
  EXPECT_GT(refused, 3);
  EXPECT_GT(ran, 3);
}

TEST_F(GpuMemory, PartsAndGroupsTogether) {
  const std::unique_ptr<Gpu> gpu = Open(kBudget);
  for (const char* sql : {
           "SELECT f.g, count(*), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k GROUP BY f.g",
           "SELECT f.g, e.y, count(*) FROM f JOIN e ON f.k = e.k GROUP BY f.g, e.y",
           "SELECT f.g, count(*), count(e.k) FROM f LEFT JOIN e ON f.k = e.k GROUP BY f.g",
       }) {
    const Answer answer = Run(sql, gpu.get());
    Same(sql, answer);
    EXPECT_GT(answer.passes, 1u) << sql;
    EXPECT_GT(answer.spills, 0u) << sql;
  }
}

/// Each launch is a span of the statement, on the device's clock.
TEST_F(GpuMemory, KernelsAreOnTheTimeline) {
  const std::unique_ptr<Gpu> gpu = Open(uint64_t{64} << 20);
  for (const char* sql : {"SELECT count(*), sum(f.x) FROM f JOIN d ON f.k = d.k WHERE f.x > 0",
                          "SELECT f.x FROM f JOIN d ON f.k = d.k WHERE f.x > 0 ORDER BY f.x, f.k LIMIT 10"}) {
    PhaseClock clock(Phase::kExecute);
    clock.KeepSpans();
    const int64_t start = PhaseClock::Nanoseconds(Clock::now());
    const Answer answer = Run(sql, gpu.get());
    ASSERT_TRUE(answer.status.ok()) << answer.status.message();
    const Account all = clock.All();
    const int64_t end = PhaseClock::Nanoseconds(Clock::now());
    EXPECT_GT(all.Milliseconds(Phase::kKernel), 0);
    // The clocks are set on a machine that has other things to do, too.
    constexpr int64_t kSlack = 100'000'000;
    double milliseconds = 0;
    int64_t last = start - kSlack;
    for (const PhaseSpan& span : clock.spans()) {
      if (span.track == 0) continue;
      EXPECT_EQ(span.phase, Phase::kKernel);
      EXPECT_GE(span.section, 0);
      EXPECT_GE(span.begin, last) << "launches of one stream overlap";
      last = span.end - 1000;
      EXPECT_LT(span.end, end + kSlack);
      milliseconds += static_cast<double>(span.end - span.begin) * 1e-6;
    }
    EXPECT_GT(milliseconds, 0);
    EXPECT_NEAR(milliseconds, answer.kernel_milliseconds, 1e-3 + 1e-3 * milliseconds);
  }
}

/// EXPLAIN ANALYZE counts rows after joins, whatever their order, in one pass and in many.
TEST_F(GpuMemory, JoinsAreMeasured) {
  const std::unique_ptr<Gpu> small = Open(kBudget), large = Open(uint64_t{64} << 20);
  for (const char* sql : {
           "SELECT count(*), sum(f.x) FROM f JOIN d ON f.k = d.k WHERE f.x > 0",
           "SELECT count(*), sum(f.x * e.y) FROM f JOIN e ON f.k = e.k AND f.x > e.y",
           "SELECT count(*), sum(d.p % 1000), sum(e.y) FROM f JOIN d ON f.k = d.k JOIN e ON f.k = e.k",
           "SELECT count(*), sum(f.x), sum(e.y) FROM f JOIN d ON f.k = d.k JOIN e ON d.q = e.k",
       }) {
    const Answer host = Run(sql, nullptr);
    ASSERT_FALSE(host.joined.empty()) << sql;
    for (Gpu* gpu : {small.get(), large.get()}) {
      const Answer answer = Run(sql, gpu);
      Same(sql, answer);
      ASSERT_EQ(answer.joined.size(), host.joined.size()) << sql;
      EXPECT_EQ(answer.joined.back().rows, host.joined.back().rows) << sql;
      double milliseconds = 0;
      for (const vm::JoinedRows& j : answer.joined) milliseconds += j.milliseconds;
      EXPECT_GT(milliseconds, 0) << sql;
    }
  }
}

/// `rows` rows of all types that can be moved, in tablets that store them in other ways each: small keys and large
/// ones, NULL in all its forms, tablets of one value and of NULLs.
std::shared_ptr<const TableInfo> ManyForms(size_t rows) {
  constexpr uint32_t kTabletRows = 3000;
  const auto column = [&](const char* name, TypeId type, auto f, std::vector<ChunkForm> forms) {
    ColumnVector c;
    c.type = SqlType::Of(type);
    for (size_t i = 0; i < rows; ++i) {
      const uint64_t tablet = i / kTabletRows;
      if (tablet % 5 == 4 || (tablet % 5 != 3 && Mix(i + 5 * rows) % 19 == 0)) {
        c.Append(Value::Null(c.type));
      } else {
        c.Append(f(c.type, tablet % 5 == 3 ? 3 : i));
      }
    }
    return MemoryColumn{name, std::move(c), std::move(forms)};
  };
  ChunkForm constant, last, gap;
  constant.encoding = Encoding::kConstant;
  last.null_code = ChunkForm::NullCode::kLast;
  gap.null_code = ChunkForm::NullCode::kGap;
  const auto frame = [](ChunkForm form, int width) {
    form.width = width;
    return form;
  };
  const ChunkForm next;
  const auto integer = [](uint64_t below, int64_t step, int64_t first) {
    return [=](SqlType type, uint64_t i) {
      return Value::Int(type, static_cast<int64_t>(Mix(i * 7 + below) % below) * step + first);
    };
  };
  const std::vector<ChunkForm> wide = {next, last, gap, constant, constant};
  std::vector<MemoryColumn> columns;
  columns.push_back(column("k", TypeId::kInteger, integer(150, 1, -20),
                           {frame(next, 1), frame(last, 2), frame(gap, 4), constant, constant}));
  columns.push_back(column("far", TypeId::kInteger, integer(150, 14000000, -1000000000),
                           {frame(last, 4), frame(gap, 8), frame(next, 8), constant, constant}));
  columns.push_back(column("big", TypeId::kBigint, integer(150, int64_t{1} << 55, -(int64_t{1} << 61)), wide));
  columns.push_back(column("b", TypeId::kBoolean, integer(2, 1, 0),
                           {frame(next, 1), frame(last, 1), frame(gap, 8), constant, constant}));
  columns.push_back(column("day", TypeId::kDate, integer(9000, 1, 8000),
                           {frame(next, 2), frame(last, 4), frame(gap, 2), constant, constant}));
  columns.push_back(column(
      "d", TypeId::kDouble,
      [](SqlType type, uint64_t i) {
        return Value::Float(type, i % 11 == 0 ? -0.0 : static_cast<double>(Mix(i) % 4096) / 8 - 100);
      },
      wide));
  columns.push_back(column(
      "r", TypeId::kReal,
      [](SqlType type, uint64_t i) { return Value::Float(type, static_cast<double>(Mix(i * 3) % 512) / 4 - 50); },
      {frame(next, 4), frame(last, 4), frame(gap, 8), constant, constant}));
  Result<std::shared_ptr<const TableInfo>> table = MakeMemoryTable(10, "h", columns, kTabletRows);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.status().message());
  return table.ok() ? *table : nullptr;
}
/// Some of the keys of ManyForms, each as often as its number modulo three.
std::shared_ptr<const TableInfo> KeysOfManyForms() {
  ColumnVector k, far, big, n, v;
  k.type = far.type = n.type = SqlType::Of(TypeId::kInteger);
  big.type = v.type = SqlType::Of(TypeId::kBigint);
  for (int64_t i = 0; i < 150; ++i) {
    for (int64_t j = 0; j < i % 3; ++j) {
      k.Append(Value::Int(k.type, i - 20));
      far.Append(Value::Int(far.type, i * 14000000 - 1000000000));
      big.Append(Value::Int(big.type, i * (int64_t{1} << 55) - (int64_t{1} << 61)));
      n.Append(Value::Int(n.type, j));
      v.Append(i % 7 == 0 ? Value::Null(v.type) : Value::Int(v.type, Sparse(static_cast<uint64_t>(i)) >> 8));
    }
  }
  return Table(11, "c", {{"k", k}, {"far", far}, {"big", big}, {"n", n}, {"v", v}});
}

TEST_F(GpuMemory, ProbesInTheOrderOfPlaces) {
  const std::unique_ptr<Gpu> gpu = Open(uint64_t{64} << 20);
  partitioning_ = vm::JoinPartitioning::kOn;
  for (const size_t rows : {1, 3, 4, 2047, 2048, 2049, 8191, 8192, 8193, 40000}) {
    snapshot_ = MakeSnapshot({ManyForms(rows), KeysOfManyForms()});
    for (const char* sql : {
             "SELECT count(*), sum(h.k), sum(c.v % 1000) FROM h JOIN c ON h.k = c.k",
             "SELECT count(*), sum(h.k), sum(c.n) FROM h JOIN c ON h.far = c.far AND c.n = 0",
             "SELECT count(*), sum(h.k), sum(c.n) FROM h JOIN c ON h.big = c.big",
             "SELECT count(*), sum(h.k), sum(c.v % 1000) FROM h JOIN c ON h.k = c.k AND h.far = c.far",
             "SELECT count(*), sum(h.k), count(c.n) FROM h LEFT JOIN c ON h.far = c.far AND h.k = c.k AND c.n < h.k",
             "SELECT count(*), count(h.b), min(h.day), max(h.day), sum(h.d), sum(h.r), min(h.big) FROM h JOIN c ON h.k "
             "= c.k",
             "SELECT count(*), sum(h.k) FROM h JOIN c ON h.k = c.k WHERE h.b AND h.day > DATE '1995-01-01' AND h.d <> "
             "7",
             "SELECT count(*), sum(h.k) FROM h JOIN c ON h.far = c.far WHERE h.day IS NULL OR h.k IN (1, 3, 77)",
             "SELECT count(*), sum(h.k), count(c.k), sum(c.v % 1000) FROM h LEFT JOIN c ON h.k = c.k",
             "SELECT h.b, count(*), sum(c.v % 1000) FROM h JOIN c ON h.far = c.far GROUP BY h.b",
             "SELECT h.k, h.day, c.v FROM h JOIN c ON h.big = c.big WHERE h.r < -40",
             "SELECT count(*), sum(h.k) FROM h WHERE EXISTS (SELECT 1 FROM c WHERE c.k = h.k)",
             "SELECT count(*), sum(h.k) FROM h WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.big = h.big AND c.n = 1)",
             "SELECT count(*), sum(h.k) FROM h WHERE h.b OR h.far IN (SELECT far FROM c)",
         }) {
      SCOPED_TRACE(rows);
      const Answer answer = Run(sql, gpu.get());
      Same(sql, answer);
      EXPECT_TRUE(answer.by_place || rows < 10) << sql;  // (so few may all be left out by a condition)
      EXPECT_TRUE(answer.on_gpu) << sql;
    }
  }
  // A list that is tested row by row in some tablets, where the column is not on the device.
  const char* list = "SELECT count(*) FROM h JOIN c ON h.far = c.far WHERE h.k IN (1, 3, 77) OR h.b";
  Same(list, Run(list, gpu.get()));
  // All rows in one part; text of dictionaries that tablets share and do not; what cannot be moved.
  snapshot_ = Tables();
  for (const char* sql : {
           "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k",
           "SELECT count(*), sum(f.x), sum(e.y) FROM f LEFT JOIN e ON f.k = e.k AND e.y < f.x",
           "SELECT f.n, count(*), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k GROUP BY f.n",
           "SELECT count(*), sum(d.v % 1000) FROM f JOIN (SELECT n, sum(y) AS v FROM e GROUP BY n) d ON f.n = d.n",
       }) {
    const Answer answer = Run(sql, gpu.get());
    Same(sql, answer);
    EXPECT_TRUE(answer.by_place) << sql;
  }
  const char* text =
      "SELECT f.s, count(*), sum(d.p % 1000) FROM f LEFT JOIN d ON f.k = d.k WHERE f.x < -990 GROUP BY f.s";
  Answer answer = Run(text, gpu.get());
  Same(text, answer);
  EXPECT_FALSE(answer.by_place);
  // Small tables stay in the cache.
  partitioning_ = vm::JoinPartitioning::kAuto;
  answer = Run("SELECT count(*), sum(f.x) FROM f JOIN d ON f.k = d.k", gpu.get());
  EXPECT_FALSE(answer.by_place);
}

/// Units of a nested-loop join whose lists do not fit at once: the grids of 14 buckets come in generations, of 6 or 5
/// here. Rows fill their room in the middle of them.
TEST_F(GpuMemory, GenerationsOfChildGrids) {
  choice_ = JoinChoice::kDp;
  for (const char* sql : {
           "SELECT count(*), sum(f.x), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k",
           "SELECT f.x, d.p FROM f JOIN d ON f.k = d.k AND f.x <> d.p",
           "SELECT f.n, count(*), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k GROUP BY f.n",
       }) {
    const Answer answer = Run(sql, Open(uint64_t{16} << 20).get());
    Same(sql, answer);
    EXPECT_EQ(answer.child_grids, 14u) << sql;
  }
}

/// What fits is not cut, and LIMIT ends the passes.
TEST_F(GpuMemory, OnlyWhatIsTooLarge) {
  const char* join = "SELECT f.g, count(*), sum(d.p % 1000) FROM f JOIN d ON f.k = d.k GROUP BY f.g";
  const Answer all = Run(join, Open(uint64_t{512} << 20).get());
  Same(join, all);
  EXPECT_EQ(all.passes, 0u);
  EXPECT_EQ(all.spills, 0u);
  const Answer some = Run("SELECT f.x FROM f JOIN d ON f.k = d.k LIMIT 7", Open(kBudget).get());
  EXPECT_TRUE(some.status.ok());
  EXPECT_EQ(some.rows.size(), 7u);
}

/// States of several words do not keep groups on the host: rows add to their windows without a lock.
TEST_F(GpuMemory, GroupsWithStatesOfSeveralWordsAreTheDevices) {
  const std::unique_ptr<Gpu> gpu = Open(kBudget);
  for (const char* sql : {"SELECT k % 7, var_pop(x) FROM f GROUP BY k % 7",
                          "SELECT k % 7, sum(x::DOUBLE PRECISION) FROM f GROUP BY k % 7",
                          "SELECT k % 7, avg(x) FROM f GROUP BY k % 7", "SELECT var_pop(x) FROM f"}) {
    const Answer answer = Run(sql, gpu.get(), false);
    EXPECT_TRUE(answer.status.ok()) << sql << "\n" << answer.status.message();
    EXPECT_TRUE(answer.on_gpu) << sql;
  }
}

/// Rows without a match must stay and the key is not the source's own: an error that says so, or the host.
TEST_F(GpuMemory, WhatCannotBeJoinedInParts) {
  const std::unique_ptr<Gpu> gpu = Open(kBudget);
  const char* sql = "SELECT count(*), sum(f.x), sum(e.y) FROM f JOIN d ON f.k = d.k LEFT JOIN e ON d.q = e.k";
  const Answer answer = Run(sql, gpu.get());
  EXPECT_EQ(answer.status.code(), ErrorCode::kResource);
  EXPECT_NE(answer.status.message().find("cannot be joined in parts"), std::string::npos) << answer.status.message();
  const Answer other = Run(sql, gpu.get(), false);
  Same(sql, other);
  EXPECT_FALSE(other.on_gpu);
}

/// The host does not read what is copied from pinned pages, and notices all the same that a file has become shorter. (The last
/// test: from then on nothing is copied from pinned pages in this process.)
TEST_F(GpuMemory, FilesAreCutWhilePinned) {
  std::unique_ptr<Database> database = Stored(300000, CompressionGoal::kNone);
  ASSERT_NE(database, nullptr);
  const std::unique_ptr<Gpu> gpu = Open(kBudget);
  const char* const sql = "SELECT count(*), sum(a % 1000003), sum(b) FROM w";
  for (int i = 0; i < 2; ++i) Same(sql, Run(sql, gpu.get()));
  ASSERT_TRUE(Becomes([&] { return gpu->Cache().pinned >= 300000 * 8; }));
  Same(sql, Run(sql, gpu.get()));
  int cut = 0;
  for (const auto& file : std::filesystem::directory_iterator(database->directory())) {
    if (!file.path().filename().string().starts_with("tablet-")) continue;
    std::filesystem::resize_file(file.path(), file.file_size() / 2);
    ++cut;
  }
  EXPECT_GT(cut, 1);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Run(sql, gpu.get()).status.code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace tessera::test
