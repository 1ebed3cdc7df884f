// What scans ask the disk for before they read it: which parts of which files, how far ahead, and nothing of tablets that
// they skip. This file defines the calls of the C library anew that ask.
#include "vm/encode/read_ahead.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/status.h"
#include "compiler/compiler.h"
#include "kernels/kernels.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/database.h"
#include "tablet/files/tablet.h"
#include "tablet/load/table_writer.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/machine/entry_machine.h"
#include "vm/program/section_traits.h"
#include "vm/rows/string_pool.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace {

/// Bytes that were asked for, as [begin, end) without gaps in between.
std::map<uintptr_t, uintptr_t> asked;
uint64_t longest_request = 0;
std::mutex asked_mutex;
std::atomic<bool> in_memory{true};

void Note(uintptr_t begin, uintptr_t end) {
  std::lock_guard lock(asked_mutex);
  longest_request = std::max<uint64_t>(longest_request, end - begin);
  auto next = asked.lower_bound(begin);
  if (next != asked.begin() && std::prev(next)->second >= begin) --next;
  while (next != asked.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = asked.erase(next);
  }
  asked[begin] = end;
}

}  // namespace

extern "C" {
int madvise(void* at, size_t bytes, int advice) noexcept {
  if (advice == MADV_WILLNEED) Note(reinterpret_cast<uintptr_t>(at), reinterpret_cast<uintptr_t>(at) + bytes);
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}
int mincore(void*, size_t bytes, unsigned char* pages) noexcept {
  std::fill_n(pages, (bytes + 4095) / 4096, in_memory ? 1 : 0);
  return 0;
}
}

namespace tessera::test {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t kRows = 70000;  // of a tablet: its chunks are larger than a request
constexpr size_t kTablets = 12;

/// Whether some byte of [begin, end) was asked for, or all of them.
bool AskedForSome(const void* begin, uint64_t bytes) {
  std::lock_guard lock(asked_mutex);
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin);
  const auto next = asked.upper_bound(first + bytes - 1);
  return next != asked.begin() && std::prev(next)->second > first;
}
bool AskedForAll(const void* begin, uint64_t bytes) {
  std::lock_guard lock(asked_mutex);
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin);
  const auto next = asked.upper_bound(first);
  return next != asked.begin() && std::prev(next)->second >= first + bytes;
}
/// Bytes asked for since the last call, in how many stretches.
std::pair<uint64_t, size_t> TakeAsked() {
  std::lock_guard lock(asked_mutex);
  uint64_t bytes = 0;
  for (const auto& [begin, end] : asked) bytes += end - begin;
  const size_t stretches = asked.size();
  asked.clear();
  return {bytes, stretches};
}

/// t: a is the number of the row, b and c are like random numbers.
class ReadAheadOfFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "read_ahead_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    Result<std::unique_ptr<Database>> made = Database::Open(directory_, OpenMode::kReadWrite);
    ASSERT_TRUE(made.ok()) << made.status().message();
    (*made)->SetCompression(CompressionGoal::kNone);
    const SqlType type = SqlType::Of(TypeId::kBigint);
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{"a", type, false}, {"b", type, false}, {"c", type, false}};
    schema.tablet_rows = kRows;
    ASSERT_TRUE((*made)->CreateTable(schema, false).ok());
    RowBatch batch;
    batch.rows = kRows * kTablets;
    batch.columns.resize(3);
    for (size_t c = 0; c < 3; ++c) {
      batch.columns[c].type = type;
      for (uint64_t i = 0; i < batch.rows; ++i)
        batch.columns[c].fixed.push_back(static_cast<int64_t>(c == 0 ? i : (i + c) * 0x9E3779B97F4A7C15u >> 2));
    }
    Result<std::unique_ptr<TableWriter>> writer = (*made)->Write("t");
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    ASSERT_TRUE((*writer)->Append(batch, 1).ok());
    ASSERT_TRUE((*writer)->Commit().ok());
    writer->reset();
    made->reset();
    Reopen();
  }
  void TearDown() override {
    snapshot_.reset();
    database_.reset();
    fs::remove_all(directory_);
    in_memory = true;
  }

  /// No file has been opened.
  void Reopen() {
    snapshot_.reset();
    database_.reset();
    Result<std::unique_ptr<Database>> opened = Database::Open(directory_, OpenMode::kReadOnly);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    database_ = std::move(*opened);
    Result<std::shared_ptr<const Snapshot>> snapshot = database_->Read();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
    snapshot_ = *snapshot;
    ASSERT_EQ(tablets().size(), kTablets);
    TakeAsked();
  }
  const std::vector<std::shared_ptr<const Tablet>>& tablets() const { return snapshot_->tables[0]->tablets; }

  /// The first value of a query.
  std::string Run(const std::string& sql, Gpu* gpu) {
    Result<Compiled> compiled = Compile(sql, *snapshot_, PlanOptions());
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    if (!compiled.ok()) return "";
    vm::Executor executor(2);
    vm::RunOptions options;
    options.gpu = gpu;
    options.gpu_required = gpu != nullptr;
    vm::RunStatistics statistics;
    std::string value;
    const auto consume = [&](RowBatch&& batch) {
      if (value.empty() && batch.rows > 0) AppendText(batch.columns[0], 0, &value);
      return Status::Ok();
    };
    const Status status = executor.Run(*compiled->program, *snapshot_, options, consume, &statistics);
    EXPECT_TRUE(status.ok()) << status.message();
    return value;
  }

  std::string directory_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<const Snapshot> snapshot_;
};

TEST_F(ReadAheadOfFiles, AsksForTheChunksOfTheColumns) {
  const Tablet& tablet = *tablets()[0];
  EXPECT_EQ(tablet.Expect({}, false), 0u);
  const auto [header, headers] = TakeAsked();
  EXPECT_EQ(headers, 1u);
  EXPECT_GT(header, 0u);
  EXPECT_LT(header, 4096u);

  EXPECT_GE(tablet.Expect({2}, false), uint64_t{kRows} * 8);
  const ChunkPointer a = *tablet.Describe(0), b = *tablet.Describe(1), c = *tablet.Describe(2);
  ASSERT_GE(c->encoded_bytes, uint64_t{kRows} * 8);
  EXPECT_TRUE(AskedForAll(c->codes, c->encoded_bytes));
  EXPECT_FALSE(AskedForSome(b->codes, b->encoded_bytes - 4096));  // the first page may have the end of another chunk
  EXPECT_LE(longest_request, uint64_t{128} << 10) << "Linux drops the rest of a longer request";
  const auto [bytes, stretches] = TakeAsked();
  EXPECT_EQ(stretches, 1u);
  EXPECT_LT(bytes, c->encoded_bytes + 4096);

  EXPECT_EQ(tablet.Expect({1, 0}, false), a->encoded_bytes + b->encoded_bytes);
  EXPECT_TRUE(AskedForAll(a->codes, a->encoded_bytes + b->encoded_bytes)) << "they are neighbours";
  EXPECT_EQ(TakeAsked().second, 1u);
}

TEST_F(ReadAheadOfFiles, AsksAgainOnlyForWhatIsNoLongerInMemory) {
  const Tablet& tablet = *tablets()[0];
  ASSERT_TRUE(tablet.Chunk(1).ok());
  const ChunkPointer b = *tablet.Chunk(1);
  EXPECT_TRUE(AskedForAll(b->codes, b->encoded_bytes)) << "it was not asked for before";
  TakeAsked();
  EXPECT_EQ(tablet.Expect({1}, false), b->encoded_bytes);
  EXPECT_EQ(tablet.Expect({1}, true), b->encoded_bytes);
  EXPECT_EQ(TakeAsked().first, 0u);
  in_memory = false;
  tablet.Expect({1}, false);
  EXPECT_EQ(TakeAsked().first, 0u);
  tablet.Expect({1}, true);
  EXPECT_TRUE(AskedForAll(b->codes, b->encoded_bytes));
}

TEST_F(ReadAheadOfFiles, ErrorsAreLeftToWhoeverReads) {
  fs::remove(tablets()[1]->path());
  fs::resize_file(tablets()[2]->path(), 100);
  for (const size_t t : {1, 2}) {
    EXPECT_EQ(tablets()[t]->Expect({}, true), 0u);
    EXPECT_EQ(tablets()[t]->Expect({0, 1}, true), 0u);
    EXPECT_EQ(tablets()[t]->Chunk(0).status().code(), ErrorCode::kCorrupt);
  }
}

/// On the host and, if there is one, on a GPU.
TEST_F(ReadAheadOfFiles, ScansLeaveSkippedTabletsAlone) {
  std::vector<std::unique_ptr<Gpu>> devices(1);
  if (GpuCount() > 0) {
    Result<std::unique_ptr<Gpu>> gpu = Gpu::Open(0, GpuOptions());
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    devices.push_back(std::move(*gpu));
  }
  // Only tablets 2 to 4 have rows that pass, and b is not read.
  const std::string ranges[] = {
      fmt::format("a BETWEEN {} AND {}", 2 * kRows + 1, 5 * kRows - 1),
      fmt::format("a IN ({}, {}, {})", 2 * kRows, 3 * kRows + 5, 5 * kRows - 1),
      fmt::format("a > {} AND a < {} AND c <> 5", 2 * kRows, 5 * kRows),
  };
  for (const std::unique_ptr<Gpu>& gpu : devices) {
    for (const std::string& range : ranges) {
      SCOPED_TRACE(range + (gpu != nullptr ? " on the GPU" : ""));
      Reopen();
      const std::string count = Run("SELECT count(*), sum(c % 7) FROM t WHERE " + range, gpu.get());
      EXPECT_EQ(count, range.find("IN (") != std::string::npos ? "3" : std::to_string(3 * kRows - 1));
      for (size_t t = 0; t < kTablets; ++t) {
        const ChunkPointer a = *tablets()[t]->Describe(0), b = *tablets()[t]->Describe(1),
                           c = *tablets()[t]->Describe(2);
        const bool read = t >= 2 && t < 5;
        EXPECT_EQ(AskedForSome(a->codes + 4096, a->encoded_bytes - 8192), read) << t;
        EXPECT_FALSE(AskedForSome(b->codes + 4096, b->encoded_bytes - 8192)) << t;
        EXPECT_EQ(AskedForAll(c->codes, c->encoded_bytes), read) << t;
      }
    }
  }
}

/// Says what it is asked for.
class FakeTablet final : public Tablet {
 public:
  FakeTablet(size_t number, uint64_t bytes, std::vector<size_t>* asked, std::vector<size_t>* opened)
      : number_(number), bytes_(bytes), asked_(*asked), opened_(*opened) {
    chunk_.type = SqlType::Of(TypeId::kBigint);
    chunk_.rows = 1000;
    chunk_.base = chunk_.min = chunk_.max = static_cast<int128_t>(number);
  }
  uint32_t rows() const override { return chunk_.rows; }
  Result<ChunkPointer> Chunk(int) const override { return Unsupported("it is not read"); }
  Result<ChunkPointer> Describe(int) const override { return ChunkPointer(ChunkPointer(), &chunk_); }
  uint64_t Expect(const std::vector<int>& columns, bool) const override {
    (columns.empty() ? opened_ : asked_).push_back(number_);
    return columns.empty() ? 0 : bytes_;
  }
  std::string path() const override { return "fake"; }

 private:
  const size_t number_;
  const uint64_t bytes_;
  std::vector<size_t>&asked_, &opened_;
  tessera::Chunk chunk_;
};

/// An order, what was asked for, and where the reader is.
struct Walk {
  Walk(size_t tablets, uint64_t bytes, const char* sql = "SELECT sum(a) FROM t") {
    auto table = std::make_shared<TableInfo>();
    table->id = 1;
    table->schema.name = "t";
    table->schema.columns = {{"a", SqlType::Of(TypeId::kBigint), false}};
    table->rows = 1000 * tablets;
    table->statistics.resize(1);
    for (size_t i = 0; i < tablets; ++i)
      table->tablets.push_back(std::make_shared<const FakeTablet>(i, bytes, &asked_tablets, &opened));
    info = table;
    Snapshot snapshot;
    snapshot.tables.push_back(info);
    compiled = std::move(*Compile(sql, snapshot, PlanOptions()));
    encoder = std::make_unique<vm::SectionEncoder>(*compiled.program, 0,
                                                   vm::TraitsOf(*compiled.program, compiled.program->sections[0]),
                                                   &strings, &vm::MakeEntryMachine, ranges);
  }
  vm::ReadAhead Read(std::vector<size_t> order) { return {encoder.get(), info.get(), std::move(order), true}; }

  std::vector<size_t> asked_tablets, opened;
  std::shared_ptr<const TableInfo> info;
  Compiled compiled;
  vm::StringPool strings;
  std::vector<vm::KeyRange> ranges;
  std::unique_ptr<vm::SectionEncoder> encoder;
};

std::vector<size_t> UpTo(size_t n) {
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  return order;
}

TEST(ReadAhead, KeepsItsDistance) {
  constexpr uint64_t kBytes = uint64_t{1} << 20;
  Walk walk(200, kBytes);
  vm::ReadAhead ahead = walk.Read(UpTo(200));
  for (size_t t = 0; t < 200; ++t) {
    ahead.Begin(t);
    const uint64_t distance = std::clamp<uint64_t>(t, 8, 64);
    EXPECT_EQ(walk.asked_tablets.size(), std::min<size_t>(200, t + distance)) << t;
  }
  EXPECT_EQ(walk.asked_tablets, UpTo(200)) << "each once, in order";
  EXPECT_EQ(walk.opened, UpTo(200));
}

TEST(ReadAhead, AsksForTheNextTabletHoweverLarge) {
  Walk walk(4, uint64_t{1} << 30);
  vm::ReadAhead ahead = walk.Read({3, 1, 0});
  ahead.Begin(3);
  EXPECT_EQ(walk.asked_tablets, (std::vector<size_t>{3, 1}));
  ahead.Begin(1);
  EXPECT_EQ(walk.asked_tablets, (std::vector<size_t>{3, 1, 0}));
}

TEST(ReadAhead, DoesNotAskForWhatHasBegun) {
  Walk walk(100, uint64_t{8} << 20);
  vm::ReadAhead ahead = walk.Read(UpTo(100));
  ahead.Begin(50);
  EXPECT_EQ(walk.asked_tablets.front(), 50u);
  const size_t before = walk.asked_tablets.size();
  ahead.Begin(20);
  EXPECT_EQ(walk.asked_tablets.size(), before);
}

TEST(ReadAhead, LooksBeyondSkippedTabletsButNotWithoutEnd) {
  Walk walk(500, 1000, "SELECT sum(a) FROM t WHERE a IN (3, 70, 400)");
  vm::ReadAhead ahead = walk.Read(UpTo(500));
  ahead.Begin(0);
  EXPECT_EQ(walk.asked_tablets, (std::vector<size_t>{3}));
  EXPECT_LE(walk.opened.size(), vm::ReadAhead::kMostTablets + vm::ReadAhead::kHeaders + 1);
  ahead.Begin(10);
  EXPECT_EQ(walk.asked_tablets, (std::vector<size_t>{3, 70}));
}

}  // namespace
}  // namespace tessera::test
