// Rows of a tablet as a tablet of their own.
#include "tablet/files/part_tablet.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tablet/chunk/chunk_decoder.h"
#include "tests/data_gen/run_program.h"
#include "tests/tablet/stored_rows.h"

namespace tessera {
namespace {

constexpr uint32_t kRows = 10'000;

/// Columns of all encodings, with and without NULLs: some only in the first half, and nothing else in one part.
class PartTabletTest : public testing::TestWithParam<CompressionGoal> {
 protected:
  PartTabletTest() {
    database_ = std::move(*Database::Open(folder_ / "db", OpenMode::kReadWrite));
    TableSchema schema;
    schema.name = "t";
    schema.tablet_rows = 1 << 14;
    schema.columns = {{"i", SqlType::Of(TypeId::kInteger)},
                      {"half", SqlType::Of(TypeId::kInteger)},
                      {"w", SqlType::Decimal(30, 2)},
                      {"x", SqlType::Of(TypeId::kDouble)},
                      {"c", SqlType::Of(TypeId::kBigint)},
                      {"n", SqlType::Of(TypeId::kBigint)},
                      {"dict", SqlType::Text()},
                      {"plain", SqlType::Text()},
                      {"runs", SqlType::Of(TypeId::kDate)}};
    RowBatch batch = NoRows(schema);
    for (uint32_t row = 0; row < kRows; ++row) {
      const int64_t k = row * 7919 % 1009;
      const Value values[] = {
          k % 10 == 3 ? Value::Null(schema.columns[0].type) : Value::Int(schema.columns[0].type, k),
          row / 2048 == 1 || (row < kRows / 2 && k % 3 == 0) ? Value::Null(schema.columns[1].type)
                                                             : Value::Int(schema.columns[1].type, k % 16),
          Value::Wide(schema.columns[2].type, int128_t{k} << 70),
          Value::Float(schema.columns[3].type, static_cast<double>(k) / 4),
          Value::Int(schema.columns[4].type, 5),
          Value::Null(schema.columns[5].type),
          k % 7 == 0 ? Value::Null(schema.columns[6].type) : Value::Text("text " + std::to_string(k % 50)),
          k % 9 == 0 ? Value::Null(schema.columns[7].type) : Value::Text("row " + std::to_string(row)),
          Value::Int(schema.columns[8].type, row / 50)};
      for (size_t c = 0; c < schema.columns.size(); ++c) batch.columns[c].Append(values[c]);
      ++batch.rows;
    }
    table_ = StoreRows(database_.get(), schema, GetParam(), batch);
  }

  const TemporaryDirectory folder_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<const TableInfo> table_;
};

void ExpectRowsOf(const Tablet& part, const Tablet& of, uint32_t first, int column) {
  const ChunkPointer chunk = *part.Chunk(column), whole = *of.Chunk(column);
  ASSERT_EQ(chunk->rows, part.rows());
  uint32_t nulls = 0;
  for (uint32_t row = 0; row < part.rows(); ++row) {
    const bool is_null = IsNullAt(*whole, first + row);
    nulls += is_null ? 1 : 0;
    ASSERT_EQ(IsNullAt(*chunk, row), is_null) << row;
    if (is_null) continue;
    ASSERT_EQ(ToText(DecodeValue(*chunk, row)), ToText(DecodeValue(*whole, first + row))) << row;
  }
  EXPECT_EQ(chunk->null_count, nulls);
  EXPECT_EQ(chunk->has_nulls, nulls > 0);
  EXPECT_LE(chunk->encoded_bytes, whole->encoded_bytes);
}

TEST_P(PartTabletTest, HasTheRowsOfItsTablet) {
  const Tablet& tablet = *table_->tablets[0];
  const auto columns = static_cast<int>(table_->schema.columns.size());
  for (const auto& [first, rows] : std::vector<std::pair<uint32_t, uint32_t>>{
           {0, kRows}, {0, 4096}, {2048, 2048}, {4096, kRows - 4096}, {8192, 1}, {6144, 3000}}) {
    const Tablet* const part = tablet.Part(first, rows);
    EXPECT_EQ(part->rows(), rows);
    EXPECT_EQ(&part->stored(), &tablet);
    EXPECT_EQ(part, tablet.Part(first, rows)) << "caches find it again";
    for (int c = 0; c < columns; ++c) {
      SCOPED_TRACE(table_->schema.columns[static_cast<size_t>(c)].name + " from " + std::to_string(first));
      ExpectRowsOf(*part, tablet, first, c);
    }
  }
}

TEST_P(PartTabletTest, HasTheRowsOfRuns) {
  constexpr int kRuns = 8;
  const std::shared_ptr<const Tablet> runs = *table_->tablets[0]->Runs(kRuns, 0);
  const auto columns = static_cast<int>(table_->schema.columns.size());
  for (const int column : {kRuns, columns}) {
    ExpectRowsOf(*runs->Part(128, 40), *runs, 128, column);
    ExpectRowsOf(*runs->Part(0, 128), *runs, 0, column);
  }
}

INSTANTIATE_TEST_SUITE_P(Goals, PartTabletTest,
                         testing::Values(CompressionGoal::kNone, CompressionGoal::kBalanced, CompressionGoal::kRatio));

}  // namespace
}  // namespace tessera
