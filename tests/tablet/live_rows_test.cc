// Deleted rows: their bytes, the column that readers filter by, and what a database keeps of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/packed_chunk.h"
#include "tablet/database.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {
namespace {

std::vector<uint64_t> Words(uint32_t rows, const std::vector<uint32_t>& deleted) {
  std::vector<uint64_t> words((uint64_t{rows} + 63) / 64);
  for (const uint32_t row : deleted) words[row / 64] |= uint64_t{1} << row % 64;
  return words;
}

TEST(LiveRows, AreTheSameAfterPacking) {
  for (const uint32_t rows : {2u, 63u, 64u, 65u, 2047u, 2048u, 2049u, 1u << 20}) {
    for (const std::vector<uint32_t>& deleted : {std::vector<uint32_t>{0}, {rows - 1}, {0, rows / 2, rows - 1}}) {
      if (deleted.size() >= rows) continue;
      const LiveRows live(rows, Words(rows, deleted));
      const auto same = LiveRows::Unpack(rows, live.packed());
      ASSERT_NE(same, nullptr) << rows;
      EXPECT_EQ(same->words(), live.words());
      EXPECT_EQ(same->checksum(), live.checksum());
      EXPECT_EQ(same->deleted(), deleted.size());
    }
  }
}

TEST(LiveRows, OtherBytesAreRefused) {
  const std::string packed = LiveRows(100, Words(100, {7, 99})).packed();
  EXPECT_EQ(LiveRows::Unpack(100, packed.substr(0, packed.size() - 1)), nullptr);
  EXPECT_EQ(LiveRows::Unpack(100, ""), nullptr);
  EXPECT_EQ(LiveRows::Unpack(99, packed), nullptr) << "a row beyond the end";
  EXPECT_EQ(LiveRows::Unpack(200, packed), nullptr) << "too few words";
  EXPECT_EQ(LiveRows::Unpack(100, LiveRows(100, Words(100, {})).packed()), nullptr) << "nothing is deleted";
  std::vector<uint32_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(LiveRows::Unpack(100, LiveRows(100, Words(100, all)).packed()), nullptr) << "all is deleted";
}

TEST(LiveRows, AreAColumn) {
  const LiveRows live(130, Words(130, {0, 64, 129}));
  const Chunk& chunk = live.chunk();
  EXPECT_EQ(chunk.rows, 130u);
  EXPECT_EQ(chunk.codes_bytes % 128, 0u);
  for (uint32_t row = 0; row < 130; ++row) EXPECT_EQ(DecodeValue(chunk, row).i64, live.IsLive(row) ? 1 : 0) << row;
  for (uint32_t at = 130; at < chunk.codes_bytes; ++at) EXPECT_EQ(chunk.codes[at], 0) << "padding";
  EXPECT_EQ(DecodeValue(LiveRows(130, Words(130, {})).chunk(), 5).i64, 1);
}

class DeletedRows : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "live-rows-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    Open();
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{"k", SqlType::Of(TypeId::kInteger), true}};
    schema.primary_key = {0};
    schema.tablet_rows = 10;
    ASSERT_TRUE(database_->CreateTable(schema, false).ok());
    ASSERT_TRUE(Insert(0, 25).ok());
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Open() {
    database_.reset();
    Result<std::unique_ptr<Database>> opened = Database::Open(directory_ + "/d", OpenMode::kReadWrite);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    database_ = std::move(*opened);
  }

  std::shared_ptr<const TableInfo> Table() { return (*database_->Read())->Find("t"); }

  static RowBatch Keys(int64_t first, int64_t end) {
    RowBatch batch;
    batch.columns.resize(1);
    batch.columns[0].type = SqlType::Of(TypeId::kInteger);
    for (int64_t k = first; k < end; ++k) batch.columns[0].fixed.push_back(k);
    batch.rows = batch.columns[0].fixed.size();
    return batch;
  }
  Status Insert(int64_t first, int64_t end) { return Change({}, first, end, nullptr); }

  /// Deletes the rows that have these numbers and adds the keys from `first` to `end`, in one commit.
  Status Change(const std::vector<int64_t>& rows, int64_t first, int64_t end, std::vector<bool>* fresh) {
    TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database_->Write("t"));
    if (!rows.empty()) TESSERA_TRY(writer->Delete(rows, fresh).status());
    if (first < end) TESSERA_TRY(writer->Append(Keys(first, end), 1));
    return writer->Commit();
  }

  /// The keys of the live rows, in the order of the table.
  static std::vector<int64_t> LiveKeys(const TableInfo& table) {
    std::vector<int64_t> keys;
    for (const auto& tablet : table.tablets) {
      const ChunkPointer chunk = *tablet->Chunk(0);
      for (uint32_t row = 0; row < chunk->rows; ++row) {
        if (tablet->live() == nullptr || tablet->live()->IsLive(row)) keys.push_back(DecodeValue(*chunk, row).i64);
      }
    }
    return keys;
  }
  static std::vector<int64_t> Range(int64_t first, int64_t end, const std::vector<int64_t>& without = {}) {
    std::vector<int64_t> out;
    for (int64_t k = first; k < end; ++k) {
      if (std::find(without.begin(), without.end(), k) == without.end()) out.push_back(k);
    }
    return out;
  }
  static int64_t Number(int64_t tablet, int64_t row) { return tablet << kRowNumberBits | row; }

  std::string directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(DeletedRows, AreKept) {
  const auto before = Table();
  std::vector<bool> fresh;
  ASSERT_TRUE(Change({Number(0, 3), Number(2, 4), Number(0, 3)}, 0, 0, &fresh).ok());
  EXPECT_EQ(fresh, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(Table()->rows, 23u);
  EXPECT_EQ(Table()->stored_rows, 25u);
  EXPECT_EQ(Table()->live_column, 1);
  EXPECT_EQ(LiveKeys(*Table()), Range(0, 25, {3, 24}));
  EXPECT_EQ(LiveKeys(*before), Range(0, 25)) << "an older snapshot";
  EXPECT_EQ(before->live_column, -1);
  EXPECT_EQ(before->tablets[1], Table()->tablets[1]->unmarked()) << "files stay open";
  Open();
  EXPECT_EQ(LiveKeys(*Table()), Range(0, 25, {3, 24}));
  ASSERT_TRUE(Change({Number(0, 3), Number(0, 4)}, 0, 0, &fresh).ok());
  EXPECT_EQ(fresh, (std::vector<bool>{false, true}));
  EXPECT_EQ(LiveKeys(*Table()), Range(0, 25, {3, 4, 24}));
}

TEST_F(DeletedRows, MayBeManyAtOnce) {
  TableSchema schema = Table()->schema;
  schema.tablet_rows = 100'000;
  ASSERT_TRUE(database_->ReplaceTable(schema).ok());
  ASSERT_TRUE(Insert(0, 400'000).ok());
  // Two of three rows of the first tablet and the third, some twice, in no order; none of the others.
  std::vector<int64_t> rows, kept = Range(0, 400'000);
  for (const int64_t tablet : {2, 0}) {
    for (int64_t row = 0; row < 100'000; ++row) {
      if (row % 3 != 0) rows.push_back(Number(tablet, 99'999 - row));
      if (row % 3 == 1) rows.push_back(Number(tablet, 99'999 - row));
    }
  }
  // (Enough for several threads to share them.)
  rows.insert(rows.end(), rows.begin(), rows.begin() + 100'000);
  ASSERT_GT(rows.size(), size_t{1} << 18);
  std::erase_if(kept, [](int64_t k) { return k / 100'000 % 2 == 0 && (99'999 - k % 100'000) % 3 != 0; });
  {
    const std::unique_ptr<TableWriter> writer = std::move(*database_->Write("t"));
    EXPECT_EQ(*writer->Delete(rows, nullptr), 2u * 66'666);
    EXPECT_EQ(*writer->Delete(rows, nullptr), 0u);
    ASSERT_TRUE(writer->Commit().ok());
  }
  EXPECT_EQ(LiveKeys(*Table()), kept);
  Open();
  EXPECT_EQ(LiveKeys(*Table()), kept);
  rows.push_back(Number(3, 100'000));
  EXPECT_EQ((*database_->Write("t"))->Delete(rows, nullptr).status().code(), ErrorCode::kInternal);
}

TEST_F(DeletedRows, MayBeNamedBySeveralThreads) {
  constexpr int kThreads = 4;
  {
    const std::unique_ptr<TableWriter> writer = std::move(*database_->Write("t"));
    EXPECT_EQ(*writer->Delete(std::vector<int64_t>{Number(0, 3)}, nullptr), 1u);
    // Each of them names all rows but the first and the last of a tablet, some twice, from another one on.
    std::atomic<uint64_t> fresh{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::vector<int64_t> rows;
        for (int i = 0; i < 60; ++i) {
          const int k = (i * 7 + thread * 11) % 25;
          if (k % 10 != 0 && k != 9 && k != 19 && k != 24) rows.push_back(Number(k / 10, k % 10));
        }
        for (size_t at = 0; at < rows.size(); at += 3)
          fresh += *writer->DeleteShare(std::span(rows).subspan(at, std::min<size_t>(3, rows.size() - at)));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fresh, 18u);  // of 19: one had been deleted
    ASSERT_TRUE(writer->Commit().ok());
  }
  const std::vector<int64_t> kept = {0, 9, 10, 19, 20, 24};
  EXPECT_EQ(LiveKeys(*Table()), kept);
  Open();
  EXPECT_EQ(LiveKeys(*Table()), kept);
  const auto refused = [&](int64_t number) {
    return (*database_->Write("t"))->DeleteShare(std::vector<int64_t>{Number(0, 0), number}).status().code() ==
           ErrorCode::kInternal;
  };
  EXPECT_TRUE(refused(Number(0, 10)));  // after the tablet's last row
  EXPECT_TRUE(refused(Number(3, 0)));   // a tablet that there is not
  EXPECT_TRUE(refused(-1));
}

TEST_F(DeletedRows, AreNamedByBits) {
  const auto bits = [](int64_t first, const std::vector<int64_t>& rows) {
    std::vector<uint64_t> words;
    for (const int64_t row : rows) {
      const auto bit = static_cast<size_t>(row - first);
      words.resize(std::max(words.size(), bit / 64 + 1));
      words[bit / 64] |= uint64_t{1} << bit % 64;
    }
    return words;
  };
  {
    const std::unique_ptr<TableWriter> writer = std::move(*database_->Write("t"));
    EXPECT_EQ(*writer->Delete(std::vector<int64_t>{Number(0, 3)}, nullptr), 1u);
    const std::vector<uint64_t> two_tablets = bits(Number(0, 0), {Number(0, 3), Number(0, 9), Number(1, 0)});
    EXPECT_EQ(*writer->DeleteMarked(Number(0, 0), two_tablets), 2u);
    EXPECT_EQ(*writer->DeleteMarked(Number(0, 0), two_tablets), 0u);
    EXPECT_EQ(*writer->DeleteMarked(Number(2, 0), bits(Number(2, 0), {Number(2, 4)})), 1u);
    ASSERT_TRUE(writer->Commit().ok());
  }
  std::vector<int64_t> kept = Range(0, 24);
  std::erase_if(kept, [](int64_t k) { return k == 3 || k == 9 || k == 10; });
  EXPECT_EQ(LiveKeys(*Table()), kept);
  Open();
  EXPECT_EQ(LiveKeys(*Table()), kept);
  const auto refused = [&](int64_t first, int64_t row) {
    return (*database_->Write("t"))->DeleteMarked(first, bits(first, {row})).status().code() == ErrorCode::kInternal;
  };
  EXPECT_TRUE(refused(Number(0, 0), Number(0, 10)));   // after the tablet's last row, in its last word
  EXPECT_TRUE(refused(Number(0, 0), Number(0, 100)));  // ... in another
  EXPECT_TRUE(refused(Number(3, 0), Number(3, 0)));    // a tablet that there is not
}

TEST_F(DeletedRows, LeaveTheirKeys) {
  ASSERT_TRUE(Change({Number(0, 3), Number(1, 0)}, 0, 0, nullptr).ok());
  EXPECT_EQ(Insert(4, 5).code(), ErrorCode::kConstraint);
  ASSERT_TRUE(Insert(3, 4).ok());
  ASSERT_TRUE(Insert(10, 11).ok());
  EXPECT_EQ(Insert(10, 11).code(), ErrorCode::kConstraint);
  EXPECT_EQ(Table()->rows, 25u);
  // A key moves in one commit.
  ASSERT_TRUE(Change({Number(0, 5)}, 5, 6, nullptr).ok());
  EXPECT_EQ(Change({Number(0, 5)}, 6, 7, nullptr).code(), ErrorCode::kConstraint);
  EXPECT_EQ(Table()->rows, 25u);
}

TEST_F(DeletedRows, GoWithTheirTablet) {
  std::vector<int64_t> second;
  for (int row = 0; row < 10; ++row) second.push_back(Number(1, row));
  ASSERT_TRUE(Change(second, 0, 0, nullptr).ok());
  EXPECT_EQ(Table()->tablets.size(), 2u);
  EXPECT_EQ(Table()->live_column, -1);
  // The last tablet is written anew without those of it that are deleted.
  ASSERT_TRUE(Change({Number(1, 0), Number(1, 1)}, 0, 0, nullptr).ok());
  EXPECT_EQ(Table()->live_column, 1);
  ASSERT_TRUE(Insert(30, 32).ok());
  EXPECT_EQ(Table()->live_column, -1);
  EXPECT_EQ(Table()->stored_rows, 15u);
  std::vector<int64_t> all;
  for (int64_t t = 0; t < 2; ++t) {
    for (int row = 0; row < (t == 0 ? 10 : 5); ++row) all.push_back(Number(t, row));
  }
  ASSERT_TRUE(Change(all, 0, 0, nullptr).ok());
  EXPECT_EQ(Table()->rows, 0u);
  EXPECT_TRUE(Table()->tablets.empty());
  Open();
  ASSERT_TRUE(Insert(1, 3).ok());
  EXPECT_EQ(LiveKeys(*Table()), Range(1, 3));
}

TEST_F(DeletedRows, AreThereWithoutACommit) {
  {
    Result<std::unique_ptr<TableWriter>> writer = database_->Write("t");
    std::vector<bool> fresh;
    ASSERT_TRUE((*writer)->Delete(std::vector<int64_t>{Number(0, 1)}, &fresh).ok());
    EXPECT_EQ((*writer)->Delete(std::vector<int64_t>{Number(2, 5)}, &fresh).status().code(), ErrorCode::kInternal);
    EXPECT_FALSE((*writer)->Commit().ok());
  }
  EXPECT_EQ(LiveKeys(*Table()), Range(0, 25));
}

TEST(LiveRows, AreABitOrAByteEach) {
  for (const uint32_t rows : {1u, 63u, 64u, 65u, 1000u, 4096u}) {
    std::vector<uint64_t> deleted((rows + 63) / 64);
    for (uint32_t row = 0; row < rows; row += 3) deleted[row / 64] |= uint64_t{1} << row % 64;
    const LiveRows live(rows, deleted);
    const Chunk& bytes = live.chunk();
    const Chunk& bits = live.packed_chunk();
    EXPECT_EQ(bits.max, rows == 1 ? 0 : 1);
    if (rows == 1) continue;
    const std::unique_ptr<const PackedReader> reader = OpenPackedCodes(bits, true);
    ASSERT_NE(reader, nullptr);
    EXPECT_TRUE(ArePlainBits(bits));
    std::vector<uint8_t> unpacked(rows);
    PackedTree tree;
    ASSERT_EQ(ParsePackedCodes(bits, &tree), nullptr);
    ASSERT_EQ(UnpackStream(bits.packed_codes, tree, 1, nullptr, unpacked.data()), nullptr);
    for (uint32_t row = 0; row < rows; ++row) {
      ASSERT_EQ(bytes.codes[row], row % 3 == 0 ? 0 : 1) << row;
      ASSERT_EQ(unpacked[row], bytes.codes[row]) << row;
    }
  }
}

TEST_F(DeletedRows, HaveNumbers) {
  ASSERT_TRUE(Change({Number(0, 9)}, 0, 0, nullptr).ok());
  const auto numbered = NumberRows(*Table());
  const int column = RowNumberColumn(*numbered);
  for (size_t t = 0; t < 3; ++t) {
    const ChunkPointer chunk = *numbered->tablets[t]->Chunk(column);
    for (uint32_t row = 0; row < chunk->rows; ++row)
      EXPECT_EQ(DecodeValue(*chunk, row).i64, Number(static_cast<int64_t>(t), row));
  }
  EXPECT_EQ(numbered->live_column, column - 1);
  EXPECT_FALSE(numbered->tablets[0]->live()->IsLive(9));
}

}  // namespace
}  // namespace tessera
