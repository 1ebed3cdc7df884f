// Which tablets are written anew beside a change, and what a table has then.
#include "tablet/load/compaction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/database.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {
namespace {

using Ranges = std::vector<TabletRange>;

TabletFill Full(uint32_t rows) { return {rows, rows, 0}; }
TabletFill Dead(uint32_t rows, uint32_t dead) { return {rows, rows - dead, dead}; }

Ranges Choose(const std::vector<TabletFill>& tablets, uint64_t rows_written = 1, bool merges = true) {
  return RangesToCompact(tablets, 1000, rows_written, merges);
}

TEST(RangesToCompact, ThoseWithAnEighthDeadEarlier) {
  EXPECT_EQ(Choose({Full(1000), Dead(1000, 124), Dead(1000, 125), Full(1000)}), (Ranges{{2, 3}}));
  EXPECT_EQ(Choose({{1000, 875, 0}, {1000, 100, 124}}), Ranges()) << "this change has deleted them";
  EXPECT_EQ(Choose({{1000, 0, 500}, Full(1000)}), Ranges()) << "it does not stay";
}

TEST(RangesToCompact, SmallOnesBesideEachOther) {
  EXPECT_EQ(Choose({Full(1000), Full(400), Full(400), Full(1000)}), (Ranges{{1, 3}}));
  EXPECT_EQ(Choose({Full(600), Full(600)}), Ranges()) << "there is no room in one";
  EXPECT_EQ(Choose({Full(500), Full(400)}), Ranges()) << "one has more than half of the rows";
  EXPECT_EQ(Choose({Full(800), Full(90), Full(11), Full(1)}), Ranges()) << "as INSERTs leave them";
  EXPECT_EQ(Choose({Full(300), Full(300), Full(300), Full(300)}), (Ranges{{0, 3}}));
  EXPECT_EQ(Choose({Full(300), {900, 0, 0}, Full(300), Full(500)}), (Ranges{{0, 3}})) << "one between them goes";
  EXPECT_EQ(Choose({Full(300), Full(300)}, 1, false), Ranges()) << "a table that is distributed";
  EXPECT_EQ(Choose({Dead(1000, 600), Dead(1000, 600), Full(1000)}), (Ranges{{0, 2}})) << "dead ones in one";
  EXPECT_EQ(Choose({{1000, 400, 0}, {1000, 400, 0}}), Ranges()) << "this change has deleted them";
}

TEST(RangesToCompact, NoMoreThanIsWritten) {
  const auto choose = [](const std::vector<TabletFill>& tablets, uint64_t rows) {
    return RangesToCompact(tablets, 100'000, rows, true);
  };
  EXPECT_EQ(choose({Dead(100'000, 20'000)}, 1), Ranges());
  EXPECT_EQ(choose({Dead(100'000, 20'000)}, 100'000), (Ranges{{0, 1}}));
  EXPECT_EQ(choose({Dead(100'000, 20'000), Dead(100'000, 30'000), Dead(100'000, 20'000)}, 100'000), (Ranges{{1, 2}}))
      << "the one with the most dead rows";
  EXPECT_EQ(choose({Full(40'000), Full(40'000)}, 1), Ranges());
  EXPECT_EQ(choose({Full(40'000), Full(40'000)}, 90'000), (Ranges{{0, 2}}));
  // What has been put off for long is done a tablet at a time.
  EXPECT_EQ(choose({Dead(100'000, 50'000), Dead(100'000, 60'000), Full(100'000)}, 1), (Ranges{{1, 2}}));
}

class Compaction : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory if possible: on a busy disk the many small commits would take most of the time.
    const std::filesystem::path shared = "/dev/shm";
    const auto parent = std::filesystem::exists(shared) ? shared : std::filesystem::temp_directory_path();
    std::string path = (parent / "compaction-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    database_ = Open(OpenMode::kReadWrite);
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{"k", SqlType::Of(TypeId::kInteger), false}, {"v", SqlType::Of(TypeId::kText), false}};
    schema.unique_keys = {{"t_k_key", {0}}};
    schema.tablet_rows = kTabletRows;
    ASSERT_TRUE(database_->CreateTable(schema, false).ok());
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(directory_);
  }

  static constexpr uint32_t kTabletRows = 64;

  std::unique_ptr<Database> Open(OpenMode mode) const {
    Result<std::unique_ptr<Database>> opened = Database::Open(directory_ + "/d", mode);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return std::move(*opened);
  }
  static std::shared_ptr<const TableInfo> Table(Database* database) { return (*database->Read())->Find("t"); }

  /// Deletes the rows at these places among the live ones, and adds keys, in one commit.
  Status Change(const std::vector<size_t>& places, int64_t first, int64_t end) {
    TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database_->Write("t"));
    const auto table = Table(database_.get());
    std::vector<int64_t> numbers;
    size_t place = 0;
    for (size_t t = 0; t < table->tablets.size(); ++t) {
      for (uint32_t row = 0; row < table->tablets[t]->rows(); ++row) {
        const LiveRows* const live = table->tablets[t]->live();
        if (live != nullptr && !live->IsLive(row)) continue;
        if (std::ranges::count(places, place++) > 0) numbers.push_back(static_cast<int64_t>(t) << kRowNumberBits | row);
      }
    }
    if (!numbers.empty()) TESSERA_TRY(writer->Delete(numbers, nullptr).status());
    RowBatch batch;
    batch.columns.resize(2);
    batch.columns[0].type = SqlType::Of(TypeId::kInteger);
    batch.columns[1].type = SqlType::Of(TypeId::kText);
    for (int64_t k = first; k < end; ++k) {
      batch.columns[0].Append(Value::Int(batch.columns[0].type, k));
      batch.columns[1].Append(k % 5 == 0 ? Value::Null(SqlType::Text()) : Value::Text("text " + std::to_string(k % 7)));
    }
    batch.rows = static_cast<size_t>(end - first);
    if (batch.rows > 0) TESSERA_TRY(writer->Append(batch, 1));
    return writer->Commit();
  }

  /// The keys of the live rows, in the order of the table; checks the other column and the counts.
  static std::vector<int64_t> Keys(const TableInfo& table) {
    std::vector<int64_t> keys;
    for (const auto& tablet : table.tablets) {
      const ChunkPointer chunk = *tablet->Chunk(0), texts = *tablet->Chunk(1);
      for (uint32_t row = 0; row < chunk->rows; ++row) {
        if (tablet->live() != nullptr && !tablet->live()->IsLive(row)) continue;
        const int64_t key = DecodeValue(*chunk, row).i64;
        keys.push_back(key);
        const Value text = DecodeValue(*texts, row);
        EXPECT_EQ(text.null ? "NULL" : text.text, key % 5 == 0 ? "NULL" : "text " + std::to_string(key % 7));
      }
    }
    EXPECT_EQ(table.rows, keys.size());
    return keys;
  }

  size_t Files() const {
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/d"))
      files += entry.path().filename().string().starts_with("tablet-") ? 1 : 0;
    return files;
  }

  std::string directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(Compaction, ManySmallChangesLeaveFewTablets) {
  std::vector<int64_t> keys;
  std::mt19937 random(49);
  int64_t next = 0;
  for (int step = 0; step < 1500; ++step) {
    std::vector<size_t> places;
    if (random() % 100 < 48 && !keys.empty()) places.push_back(random() % keys.size());
    // (Rows that come with others that go may stand before some that were there.)
    const int64_t end = next + (!places.empty() ? 0 : step % 100 == 0 ? 200 : 1);
    ASSERT_TRUE(Change(places, next, end).ok());
    for (const size_t place : places) keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(place));
    for (; next < end; ++next) keys.push_back(next);
    if (step % 50 != 0) continue;
    const auto table = Table(database_.get());
    ASSERT_EQ(Keys(*table), keys) << "the order of the rows is kept";
    EXPECT_LE(table->tablets.size(), 2 * keys.size() / kTabletRows + 6);
    EXPECT_LE(table->stored_rows, keys.size() + keys.size() / 4 + 2 * kTabletRows);
    EXPECT_LE(Files(), 2 * table->tablets.size() + 6);
    EXPECT_EQ(Change({}, keys.back(), keys.back() + 1).code(), ErrorCode::kConstraint) << "keys are checked";
  }
  database_.reset();
  database_ = Open(OpenMode::kReadWrite);
  EXPECT_EQ(Keys(*Table(database_.get())), keys);
}

TEST_F(Compaction, OnlyTheLastRowsOfManyTablets) {
  ASSERT_TRUE(Change({}, 0, 100 * kTabletRows).ok());
  std::vector<size_t> places;
  for (size_t row = 0; row < 100 * kTabletRows; ++row) {
    if (row % kTabletRows != 7) places.push_back(row);
  }
  ASSERT_TRUE(Change(places, 0, 0).ok());
  EXPECT_EQ(Table(database_.get())->tablets.size(), 100u) << "the next commit does it";
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Change({0}, 0, 0).ok());
  const auto table = Table(database_.get());
  EXPECT_LE(table->tablets.size(), 6u);
  std::vector<int64_t> keys;
  for (int64_t t = 20; t < 100; ++t) keys.push_back(t * kTabletRows + 7);
  EXPECT_EQ(Keys(*table), keys);
}

TEST_F(Compaction, StatisticsFollow) {
  ASSERT_TRUE(Change({}, 0, kTabletRows).ok());
  std::vector<size_t> places(40);
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  ASSERT_TRUE(Change(places, 0, 0).ok());
  ASSERT_TRUE(Change({0}, 0, 0).ok());
  const auto table = Table(database_.get());
  EXPECT_EQ(table->stored_rows, 23u) << "written anew, without the row that this commit deletes";
  EXPECT_EQ(table->live_column, -1);
  EXPECT_EQ(Keys(*table).size(), 23u);
  EXPECT_EQ(table->statistics[1].null_count, 4u) << "45, 50, 55, 60";
  uint64_t bytes = 0;
  for (const auto& tablet : table->tablets) bytes += (*tablet->Describe(1))->encoded_bytes;
  EXPECT_EQ(table->statistics[1].encoded_bytes, bytes);
}

TEST_F(Compaction, OlderSnapshotsKeepTheirFiles) {
  ASSERT_TRUE(Change({}, 0, 10 * kTabletRows).ok());
  auto other = Open(OpenMode::kReadOnly);
  const auto theirs = other->Read();
  const auto ours = database_->Read();
  std::vector<int64_t> keys(10 * kTabletRows);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  std::vector<size_t> places;
  for (size_t i = 0; i < keys.size(); i += 2) places.push_back(i);
  ASSERT_TRUE(Change(places, 0, 0).ok());
  const auto between = other->Read();
  ASSERT_TRUE(Change({}, 1'000'000, 1'000'001).ok());
  EXPECT_LT(Table(database_.get())->stored_rows, 450u);
  EXPECT_EQ(Keys(*(*theirs)->Find("t")), keys);
  EXPECT_EQ(Keys(*(*ours)->Find("t")), keys);
  std::erase_if(keys, [](int64_t k) { return k % 2 == 0; });
  EXPECT_EQ(Keys(*(*between)->Find("t")), keys);
  keys.push_back(1'000'000);
  EXPECT_EQ(Keys(*Table(other.get())), keys);
}

}  // namespace
}  // namespace tessera
