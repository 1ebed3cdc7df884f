// Tablets as the runs of a column.
#include "tablet/files/run_tablet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tablet/chunk/chunk_decoder.h"
#include "tablet/files/unpacked_chunks.h"
#include "tests/data_gen/run_program.h"
#include "tests/tablet/stored_rows.h"

namespace tessera {
namespace {

constexpr uint32_t kTabletRows = 4096;
constexpr int kRuns = 0, kTexts = 1, kOther = 2, kConstant = 3, kColumns = 4;

/// Columns with runs of 1 to 7 rows, some of them NULL; of 40 rows; without runs; and of one value. Three tablets.
class RunTabletTest : public testing::Test {
 protected:
  RunTabletTest() {
    database_ = std::move(*Database::Open(folder_ / "db", OpenMode::kReadWrite));
    TableSchema schema;
    schema.name = "t";
    schema.tablet_rows = kTabletRows;
    schema.columns = {{"r", SqlType::Of(TypeId::kInteger)},
                      {"s", SqlType::Text()},
                      {"o", SqlType::Of(TypeId::kInteger)},
                      {"c", SqlType::Of(TypeId::kBigint)}};
    RowBatch batch = NoRows(schema);
    for (int run = 0, row = 0; row < static_cast<int>(3 * kTabletRows); ++run) {
      for (int i = 0; i <= run % 7 && row < static_cast<int>(3 * kTabletRows); ++i, ++row) {
        batch.columns[kRuns].Append(run % 11 == 0 ? Value::Null(schema.columns[kRuns].type)
                                                  : Value::Int(schema.columns[kRuns].type, run * 37 % 1000));
        batch.columns[kTexts].Append(Value::Text("text " + std::to_string(row / 40 % 60)));
        batch.columns[kOther].Append(Value::Int(schema.columns[kOther].type, row * 7919 % 10007));
        batch.columns[kConstant].Append(Value::Int(schema.columns[kConstant].type, -5));
        ++batch.rows;
      }
    }
    table_ = StoreRows(database_.get(), schema, CompressionGoal::kSpeed, batch);
  }

  const TemporaryDirectory folder_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<const TableInfo> table_;
};

TEST_F(RunTabletTest, HaveTheRowsOfTheirColumn) {
  for (const int column : {kRuns, kTexts, kOther, kConstant}) {
    SCOPED_TRACE(column);
    const auto runs = RunsOf(*table_, column, nullptr);
    ASSERT_TRUE(runs.ok()) << runs.status().message();
    EXPECT_EQ((*runs)->runs_of, column);
    ASSERT_EQ((*runs)->schema.columns.size(), size_t{kColumns} + 1);
    uint64_t all = 0;
    for (size_t t = 0; t < table_->tablets.size(); ++t) {
      const Tablet &stored = *table_->tablets[t], &tablet = *(*runs)->tablets[t];
      all += tablet.rows();
      EXPECT_EQ(&tablet.stored(), &stored);
      EXPECT_EQ(tablet.weight(), stored.weight());
      EXPECT_EQ(tablet.rows() < stored.rows(), column != kOther);
      const auto values = tablet.Chunk(column), counts = tablet.Chunk(kColumns), chunk = stored.Chunk(column);
      ASSERT_TRUE(values.ok() && counts.ok() && chunk.ok());
      ASSERT_EQ((*values)->rows, tablet.rows());
      ASSERT_EQ((*counts)->rows, tablet.rows());
      uint32_t row = 0, null_runs = 0;
      int64_t greatest = 0;
      for (uint32_t run = 0; run < tablet.rows(); ++run) {
        const int64_t count = DecodeValue(**counts, run).i64;
        greatest = std::max(greatest, count);
        null_runs += IsNullAt(**values, run) ? 1 : 0;
        for (int64_t i = 0; i < count; ++i, ++row) {
          ASSERT_LT(row, stored.rows());
          ASSERT_EQ(ToText(DecodeValue(**values, run)), ToText(DecodeValue(**chunk, row)));
        }
      }
      EXPECT_EQ(row, stored.rows());
      EXPECT_EQ((*values)->null_count, null_runs);
      EXPECT_EQ((*counts)->max, greatest);
    }
    EXPECT_EQ((*runs)->rows, all);
  }
}

TEST_F(RunTabletTest, AreUnpackedOnceAndKept) {
  const auto runs = RunsOf(*table_, kRuns, nullptr), again = RunsOf(*table_, kRuns, nullptr);
  EXPECT_EQ((*runs)->tablets[0], (*again)->tablets[0]);
  const Chunk* const first = (*runs)->tablets[0]->Chunk(kRuns)->get();
  EXPECT_EQ((*again)->tablets[0]->Chunk(kRuns)->get(), first);
  const CacheReport report = UnpackedReport();
  const auto of_table = [&](const CachedColumn& c) { return c.tablet == table_->tablets[0] && c.column == kRuns; };
  EXPECT_TRUE(std::any_of(report.columns.begin(), report.columns.end(), of_table));
  // The owner of a chunk keeps it.
  const auto texts = RunsOf(*table_, kTexts, nullptr);
  const ChunkPointer held = *(*texts)->tablets[0]->Chunk(kTexts);
  DropUnpacked();
  EXPECT_EQ(held->Entry(0), "text 0");
}

TEST_F(RunTabletTest, NumbersOfRunsOfOthersMustBeRight) {
  std::vector<int32_t> known;
  for (const auto& tablet : table_->tablets) known.push_back(static_cast<int32_t>((*tablet->Runs(kRuns, 0))->rows()));
  EXPECT_TRUE(RunsOf(*table_, kRuns, &known).ok());
  const auto refused = [&](int column, const std::vector<int32_t>& runs) {
    const auto result = RunsOf(*table_, column, &runs);
    return !result.ok() && result.status().code() == ErrorCode::kCorrupt;
  };
  EXPECT_TRUE(refused(-1, known));
  EXPECT_TRUE(refused(kColumns, known));
  EXPECT_TRUE(refused(kRuns, {known[0], known[1]}));
  for (const int32_t wrong : {0, -1, known[2] + 1, static_cast<int32_t>(kTabletRows) + 1})
    EXPECT_TRUE(refused(kRuns, {known[0], known[1], wrong}));
  // What was not looked at yet is found when it is read.
  const auto wrong = RunsOf(*table_, kTexts, &known);
  ASSERT_TRUE(wrong.ok());
  const auto chunk = (*wrong)->tablets[0]->Chunk(kTexts);
  ASSERT_FALSE(chunk.ok());
  EXPECT_EQ(chunk.status().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace tessera
