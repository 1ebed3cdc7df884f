// Tablets whose columns are made when they are read: what is told before, what is made, and when it is made again.
#include "tablet/files/made_tablet.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera {
namespace {

/// Column 0: BIGINT, 10, 11 ..., NULL in every seventh row. Column 1: TEXT, by numbers of entries.
class CountingTablet final : public MadeTablet {
 public:
  explicit CountingTablet(uint32_t rows, ColumnBounds numbers = {})
      : MadeTablet("test", rows, {SqlType::Of(TypeId::kBigint), SqlType::Text()}, {numbers, ColumnBounds()}) {}

  mutable int made = 0;

 private:
  Result<MadeColumn> Values(int column) const override {
    ++made;
    MadeColumn out;
    out.values.type = type(column);
    if (column == 0) {
      for (uint32_t row = 0; row < rows(); ++row) {
        const SqlType bigint = SqlType::Of(TypeId::kBigint);
        out.values.Append(row % 7 == 3 ? Value::Null(bigint) : Value::Int(bigint, 10 + int64_t{row}));
      }
      return out;
    }
    // Two entries are the same, and no row has the last one.
    for (const char* const entry : {"pear", "apple", "pear", "fig", "unused"}) out.values.Append(Value::Text(entry));
    out.is_numbered = true;
    for (uint32_t row = 0; row < rows(); ++row) out.numbers.push_back(row % 5 == 4 ? kNullEntry : row % 5);
    return out;
  }
  Status OutOfBounds(int column) const override {
    return {ErrorCode::kCorrupt, "column " + std::to_string(column) + " lies"};
  }
};

TEST(MadeTablet, ColumnsAreMadeWhenTheyAreRead) {
  const auto tablet = std::make_shared<const CountingTablet>(100);
  const Result<ChunkPointer> told = tablet->Describe(0);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(tablet->made, 0);
  EXPECT_EQ((*told)->min, INT64_MIN);
  EXPECT_EQ((*told)->max, INT64_MAX);
  EXPECT_TRUE((*told)->has_nulls);
  const Result<ChunkPointer> chunk = tablet->Chunk(0);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ((*chunk)->min, 10);
  EXPECT_EQ((*chunk)->max, 109);
  EXPECT_EQ((*chunk)->null_count, 14u);
  EXPECT_EQ(DecodeValue(**chunk, 50).i64, 60);
  EXPECT_TRUE(DecodeValue(**chunk, 3).null);
  EXPECT_EQ(*tablet->Chunk(0), *chunk);
  EXPECT_EQ(tablet->made, 1);
}

TEST(MadeTablet, NumberedTextsAreADictionaryOfThoseThatRowsHave) {
  const auto tablet = std::make_shared<const CountingTablet>(1000);
  const Result<ChunkPointer> chunk = tablet->Chunk(1);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ((*chunk)->encoding, Encoding::kDictionary);
  ASSERT_EQ((*chunk)->entries, 3u);
  EXPECT_EQ((*chunk)->Entry(0), "apple");
  EXPECT_EQ((*chunk)->Entry(1), "fig");
  EXPECT_EQ((*chunk)->Entry(2), "pear");
  EXPECT_EQ((*chunk)->null_count, 200u);
  const std::vector<std::string> expected = {"pear", "apple", "pear", "fig"};
  for (uint32_t row = 0; row < 1000; ++row) {
    const Value value = DecodeValue(**chunk, row);
    EXPECT_EQ(value.null, row % 5 == 4);
    if (value.null) continue;
    EXPECT_EQ(value.text, expected[row % 5]);
  }
}

TEST(MadeTablet, NumberedTextsWithoutRowsOfAText) {
  ColumnVector entries;
  entries.type = SqlType::Text();
  const std::vector<uint32_t> nulls(5, kNullEntry), ones(5, 0);
  EXPECT_EQ(EncodeNumberedTexts(SqlType::Text(), entries, nulls).descriptor.null_count, 5u);
  entries.Append(Value::Text("one"));
  const EncodedChunk constant = EncodeNumberedTexts(SqlType::Text(), entries, ones);
  EXPECT_EQ(constant.descriptor.encoding, static_cast<uint8_t>(Encoding::kConstant));
  EXPECT_EQ(constant.descriptor.entries, 1u);
}

/// DATE: the number of the row and `first`, also as codes.
class CodedTablet final : public MadeTablet {
 public:
  CodedTablet(ColumnBounds dates, int64_t first)
      : MadeTablet("test", 1000, {SqlType::Of(TypeId::kDate)}, {dates}), first_(first) {}

  mutable int made = 0;

 private:
  Result<MadeColumn> Values(int column) const override {
    ++made;
    MadeColumn out;
    out.values.type = type(column);
    for (uint32_t row = 0; row < rows(); ++row) out.values.fixed.push_back(first_ + row);
    return out;
  }
  Result<bool> Codes(int column, int width, uint8_t* to) const override {
    EXPECT_EQ(width, 2);
    for (uint32_t row = 0; row < rows(); ++row) {
      const auto code = static_cast<uint64_t>(first_ + row - static_cast<int64_t>(bounds(column).min));
      if (code > static_cast<uint64_t>(bounds(column).max - bounds(column).min)) return false;
      const auto narrow = static_cast<uint16_t>(code);
      memcpy(to + size_t{2} * row, &narrow, sizeof narrow);
    }
    return true;
  }
  Status OutOfBounds(int) const override { return {ErrorCode::kCorrupt, "lies"}; }

  const int64_t first_;
};

TEST(MadeTablet, CodesWhereTheBoundsAreKnown) {
  const auto tablet = std::make_shared<const CodedTablet>(ColumnBounds{true, -500, 2000, 0, 0}, -500);
  const Result<ChunkPointer> chunk = tablet->Chunk(0);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(tablet->made, 0);
  EXPECT_EQ(DecodeValue(**chunk, 0).i64, -500);
  EXPECT_EQ(DecodeValue(**chunk, 999).i64, 499);
  EXPECT_EQ(CheckCodes(**chunk), nullptr);
  EXPECT_EQ((*chunk)->codes_bytes % kStreamAlignment, 0u);
  // Where there may be NULLs, or the bounds are wrong, the values are asked for.
  const auto unknown = std::make_shared<const CodedTablet>(ColumnBounds{true, -500, 2000, -1, 0}, -500);
  EXPECT_TRUE(unknown->Chunk(0).ok());
  EXPECT_EQ(unknown->made, 1);
  const auto wrong = std::make_shared<const CodedTablet>(ColumnBounds{true, 0, 2000, 0, 0}, -500);
  EXPECT_EQ(wrong->Chunk(0).status().message(), "lies");
}

TEST(MadeTablet, WhatIsDroppedIsMadeAgain) {
  const auto tablet = std::make_shared<const CountingTablet>(100);
  Result<ChunkPointer> chunk = tablet->Chunk(0);
  ASSERT_TRUE(chunk.ok());
  DropUnpacked();
  EXPECT_EQ(*tablet->Chunk(0), *chunk) << "it is held";
  EXPECT_EQ(tablet->made, 1);
  chunk = Status(ErrorCode::kInternal, "none");
  DropUnpacked();
  EXPECT_TRUE(tablet->Chunk(0).ok());
  EXPECT_EQ(tablet->made, 2);
}

TEST(MadeTablet, ValuesMustLieInTheBounds) {
  const auto message = [](ColumnBounds bounds) {
    const auto tablet = std::make_shared<const CountingTablet>(100, bounds);
    const Result<ChunkPointer> chunk = tablet->Chunk(0);
    return chunk.ok() ? "" : chunk.status().message();
  };
  EXPECT_EQ(message({true, 10, 109, 14, 0}), "");
  EXPECT_EQ(message({true, 0, 1000, -1, 0}), "");
  EXPECT_EQ(message({true, 11, 109, 14, 0}), "column 0 lies");
  EXPECT_EQ(message({true, 10, 108, -1, 0}), "column 0 lies");
  EXPECT_EQ(message({true, 10, 109, 13, 0}), "column 0 lies");
  EXPECT_EQ(message({false, 0, 0, 15, 0}), "column 0 lies");
  // Of NULLs alone nothing else is told.
  EXPECT_EQ((*CountingTablet(7, {false, 0, 0, 7, 0}).Describe(0))->min, 0);
  EXPECT_EQ((*CountingTablet(7, {false, 0, 0, 7, 0}).Describe(0))->max, -1);
  // One row of which nothing is known may be a value.
  EXPECT_EQ((*CountingTablet(1).Describe(0))->null_count, 0u);
}

}  // namespace
}  // namespace tessera
