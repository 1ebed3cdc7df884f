// Encoding and decoding of chunks: every type, encoding, width and kind of NULLs at the sizes where tiles and words
// end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/chunk/distinct_count.h"
#include "tablet/chunk/packed_chunk.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/files/tablet_file.h"
#include "tablet/values/ordered_float.h"

namespace tessera {
namespace {

constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
constexpr size_t kSizes[] = {1, 2, 31, 32, 33, 2047, 2048, 2049, 65535, 65536, 65537};

ColumnVector MakeColumn(const SqlType& type, size_t rows, const std::function<Value(size_t)>& value) {
  ColumnVector column;
  column.type = type;
  for (size_t row = 0; row < rows; ++row) column.Append(value(row));
  return column;
}

/// Encodes in pieces of unequal size, as rows arrive; finishes the descriptor as the writer of a file does.
struct Encoded {
  EncodedChunk chunk;
  std::vector<uint8_t> file;
  Chunk view;

  Encoded(const SqlType& type, const ColumnVector& column) {
    std::vector<ColumnPiece> pieces;
    const size_t rows = column.size();
    for (size_t at = 0, step = 1; at < rows; at += step, step = step * 7 + 1) {
      pieces.push_back({&column, at, std::min(step, rows - at)});
    }
    chunk = EncodeChunk(type, pieces);
    std::vector<EncodedChunk> chunks{chunk};
    TabletIdentity identity;
    identity.rows = static_cast<uint32_t>(rows);
    file = BuildTabletHeader(&chunks, &identity);
    const uint64_t header_bytes = file.size();
    file.insert(file.end(), chunks[0].streams.begin(), chunks[0].streams.end());
    EXPECT_EQ(file.size(), identity.file_bytes);
    const ChunkDescriptor& d = chunks[0].descriptor;
    const char* reason = CheckDescriptor(d, type, kTabletVersion, identity.rows, header_bytes, file.size());
    EXPECT_EQ(reason, nullptr) << reason;
    view = ViewChunk(d, identity.rows, file.data());
    reason = CheckChecksum(d, file.data());
    EXPECT_EQ(reason, nullptr) << reason;
    reason = CheckContents(&view);
    EXPECT_EQ(reason, nullptr) << reason;
    // Alignment and padding: what bulk copies rely on.
    uint64_t end = header_bytes;
    for (const StreamExtent& stream : d.streams) {
      EXPECT_EQ(stream.offset, end);
      EXPECT_EQ(stream.offset % kStreamAlignment, 0u);
      end = stream.offset + AlignToStream(stream.bytes);
      for (uint64_t at = stream.offset + stream.bytes; at < end; ++at) EXPECT_EQ(file[at], 0) << "padding at " << at;
    }
    EXPECT_EQ(end, file.size());
    EXPECT_EQ(view.encoded_bytes, end - header_bytes);
    EXPECT_EQ(view.codes_bytes, AlignToStream(uint64_t{view.rows} * view.width));
    for (const CompressionGoal goal : {CompressionGoal::kSpeed, CompressionGoal::kBalanced, CompressionGoal::kRatio}) {
      ExpectUnpacksToTheSame(type, goal);
    }
  }

 private:
  /// A packed chunk unpacks to the very bytes.
  void ExpectUnpacksToTheSame(const SqlType& type, CompressionGoal goal) const {
    std::vector<EncodedChunk> chunks{chunk};
    PackChunk(goal, &chunks[0]);
    if (chunks[0].descriptor.packed == 0) return;
    SCOPED_TRACE("goal " + std::to_string(static_cast<int>(goal)));
    EXPECT_LT(chunks[0].descriptor.bytes, chunk.descriptor.bytes);
    TabletIdentity identity;
    identity.rows = view.rows;
    std::vector<uint8_t> packed_file = BuildTabletHeader(&chunks, &identity);
    const uint64_t header_bytes = packed_file.size();
    packed_file.insert(packed_file.end(), chunks[0].streams.begin(), chunks[0].streams.end());
    const ChunkDescriptor& d = chunks[0].descriptor;
    EXPECT_NE(CheckDescriptor(d, type, kTabletVersion, view.rows, header_bytes, packed_file.size()), nullptr)
        << "an old program must refuse it";
    const char* reason = CheckDescriptor(d, type, kPackedTabletVersion, view.rows, header_bytes, packed_file.size());
    ASSERT_EQ(reason, nullptr) << reason;
    Chunk unpacked = ViewChunk(d, view.rows, packed_file.data());
    ASSERT_EQ(CheckChecksum(d, packed_file.data()), nullptr);
    std::vector<uint8_t> room(UnpackedRoom(d, view.rows, true));
    reason = UnpackChunk(d, packed_file.data(), true, room.data(), &unpacked);
    ASSERT_EQ(reason, nullptr) << reason;
    reason = CheckContents(&unpacked);
    ASSERT_EQ(reason, nullptr) << reason;
    EXPECT_NE(DescribeChunk(d, view.rows, packed_file.data()), "");
    const auto same = [](const void* a, const void* b, uint64_t bytes) {
      return (a == nullptr) == (b == nullptr) && (bytes == 0 || a == nullptr || memcmp(a, b, bytes) == 0);
    };
    EXPECT_TRUE(same(view.codes, unpacked.codes, view.codes_bytes));
    EXPECT_TRUE(same(view.entry_offsets, unpacked.entry_offsets, (uint64_t{view.entries} + 1) * sizeof(uint64_t)));
    EXPECT_EQ(view.text_bytes, unpacked.text_bytes);
    EXPECT_TRUE(same(view.entry_bytes, unpacked.entry_bytes, view.text_bytes));
    EXPECT_TRUE(same(view.null_bytes, unpacked.null_bytes, view.rows));
    EXPECT_EQ(view.longest_entry, unpacked.longest_entry);
  }
};

void ExpectSame(const ColumnVector& expected, const ColumnVector& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t row = 0; row < expected.size(); ++row) {
    ASSERT_EQ(expected.IsNull(row), actual.IsNull(row)) << "row " << row;
    if (expected.IsNull(row)) continue;
    switch (expected.type.storage()) {
      case StorageClass::kText:
        ASSERT_EQ(expected.Text(row), actual.Text(row)) << "row " << row;
        break;
      case StorageClass::kWide:
        ASSERT_TRUE(expected.wide[row] == actual.wide[row]) << "row " << row;
        break;
      case StorageClass::kFloat:
        // Bit for bit, except NaN: there is only one NaN.
        if (std::isnan(expected.Float(row))) {
          ASSERT_TRUE(std::isnan(actual.Float(row))) << "row " << row;
        } else {
          ASSERT_EQ(expected.fixed[row], actual.fixed[row]) << "row " << row;
        }
        break;
      case StorageClass::kInt:
        ASSERT_EQ(expected.fixed[row], actual.fixed[row]) << "row " << row;
        break;
    }
  }
}

/// Round trip, and what every chunk promises about NULLs, min and max.
Encoded CheckRoundTrip(const SqlType& type, const ColumnVector& column) {
  Encoded encoded(type, column);
  const Chunk& chunk = encoded.view;
  ColumnVector decoded;
  decoded.type = type;
  // In two parts: a decoder must not start at 0 only.
  const uint32_t half = chunk.rows / 2;
  DecodeChunk(chunk, 0, half, &decoded);
  DecodeChunk(chunk, half, chunk.rows - half, &decoded);
  ExpectSame(column, decoded);
  uint32_t nulls = 0;
  for (size_t row = 0; row < column.size(); ++row) nulls += column.IsNull(row);
  EXPECT_EQ(chunk.null_count, nulls);
  EXPECT_EQ(chunk.has_nulls, nulls > 0);
  EXPECT_EQ(chunk.min > chunk.max, nulls == chunk.rows);
  for (const uint32_t row : {uint32_t{0}, chunk.rows / 3, chunk.rows - 1}) {
    const Value value = DecodeValue(chunk, row);
    EXPECT_EQ(value.null, column.IsNull(row));
    EXPECT_EQ(value.type, type);
    std::string text;
    AppendText(column, row, &text);
    EXPECT_EQ(ToText(value), text);
  }
  if (type.storage() == StorageClass::kInt && nulls < chunk.rows) {
    int64_t least = kMax64, greatest = kMin64;
    for (size_t row = 0; row < column.size(); ++row) {
      if (column.IsNull(row)) continue;
      least = std::min(least, column.fixed[row]);
      greatest = std::max(greatest, column.fixed[row]);
    }
    EXPECT_EQ(static_cast<int64_t>(chunk.min), least);
    EXPECT_EQ(static_cast<int64_t>(chunk.max), greatest);
  }
  return encoded;
}

/// Which rows are NULL.
const std::vector<std::pair<std::string, std::function<bool(size_t, size_t)>>>& NullPatterns() {
  static const std::vector<std::pair<std::string, std::function<bool(size_t, size_t)>>> patterns = {
      {"none", [](size_t, size_t) { return false; }},
      {"first", [](size_t row, size_t) { return row == 0; }},
      {"last", [](size_t row, size_t rows) { return row + 1 == rows; }},
      {"third", [](size_t row, size_t) { return row % 3 == 1; }},
      {"all", [](size_t, size_t) { return true; }},
  };
  return patterns;
}

/// All sizes and NULL patterns of a column whose value in a row is `value(row)`.
void CheckAll(const SqlType& type, const std::function<Value(size_t)>& value) {
  for (size_t rows : kSizes) {
    for (const auto& [name, is_null] : NullPatterns()) {
      SCOPED_TRACE(type.ToString() + ", " + std::to_string(rows) + " rows, NULLs " + name);
      const ColumnVector column =
          MakeColumn(type, rows, [&](size_t row) { return is_null(row, rows) ? Value::Null(type) : value(row); });
      CheckRoundTrip(type, column);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

uint64_t Mix(uint64_t row) {
  uint64_t x = row * 0x9E3779B97F4A7C15u + 12345;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

TEST(TabletChunk, Integers) {
  CheckAll(SqlType::Of(TypeId::kBoolean),
           [](size_t row) { return Value::Int(SqlType::Of(TypeId::kBoolean), row % 3 == 0); });
  for (const TypeId id : {TypeId::kSmallint, TypeId::kInteger, TypeId::kBigint, TypeId::kDate, TypeId::kTimestamp}) {
    const SqlType type = SqlType::Of(id);
    CheckAll(type, [&](size_t) { return Value::Int(type, -7); });
    CheckAll(type, [&](size_t row) { return Value::Int(type, static_cast<int64_t>(Mix(row) % 200) - 100); });
    CheckAll(type, [&](size_t row) { return Value::Int(type, static_cast<int16_t>(Mix(row))); });
    if (id == TypeId::kSmallint) continue;
    CheckAll(type, [&](size_t row) { return Value::Int(type, static_cast<int32_t>(Mix(row))); });
    if (id == TypeId::kInteger) continue;
    CheckAll(type, [&](size_t row) { return Value::Int(type, static_cast<int64_t>(Mix(row))); });
  }
  const SqlType decimal = SqlType::Decimal(18, 4);
  CheckAll(decimal, [&](size_t row) { return Value::Int(decimal, static_cast<int64_t>(Mix(row) % 1000000)); });
}

TEST(TabletChunk, WidthIsTheLeastThatHoldsValuesAndNull) {
  struct Case {
    uint64_t span;
    bool nulls;
    int width;
    uint64_t null_code;
  };
  const SqlType type = SqlType::Of(TypeId::kBigint);
  for (const Case& c : std::vector<Case>{{254, true, 1, 255},
                                         {255, false, 1, 0},
                                         {255, true, 2, 256},
                                         {65534, true, 2, 65535},
                                         {65535, false, 2, 0},
                                         {65535, true, 4, 65536},
                                         {0xFFFFFFFE, true, 4, 0xFFFFFFFF},
                                         {0xFFFFFFFF, false, 4, 0},
                                         {0xFFFFFFFF, true, 8, 0x100000000},
                                         {UINT64_MAX - 1, true, 8, UINT64_MAX}}) {
    SCOPED_TRACE(std::to_string(c.span) + (c.nulls ? " with NULLs" : ""));
    const int64_t least = c.span > 0x200000000 ? kMin64 : -1000;
    const ColumnVector column = MakeColumn(type, 100, [&](size_t row) {
      if (c.nulls && row % 10 == 5) return Value::Null(type);
      const int64_t greatest = static_cast<int64_t>(static_cast<uint64_t>(least) + c.span);
      return Value::Int(type, row % 2 == 0 ? least : greatest);
    });
    const Encoded encoded = CheckRoundTrip(type, column);
    EXPECT_EQ(encoded.view.width, c.width);
    EXPECT_EQ(encoded.view.has_nulls, c.nulls);
    EXPECT_EQ(encoded.view.null_code, c.null_code);
    EXPECT_EQ(encoded.view.encoding, Encoding::kFrame);
  }
}

TEST(TabletChunk, StreamsArePackedWhereThatPays) {
  const SqlType type = SqlType::Of(TypeId::kInteger), text = SqlType::Text();
  const auto packed = [](const SqlType& of, const ColumnVector& column, CompressionGoal goal) {
    EncodedChunk chunk = Encoded(of, column).chunk;
    PackChunk(goal, &chunk);
    return chunk.descriptor.packed;
  };
  const ColumnVector hundreds =
      MakeColumn(type, 50'000, [&](size_t row) { return Value::Int(type, static_cast<int64_t>(Mix(row) % 200)); });
  EXPECT_EQ(packed(type, hundreds, CompressionGoal::kBalanced), 0) << "8 of 8 bits";
  const ColumnVector runs =
      MakeColumn(type, 50'000, [&](size_t row) { return Value::Int(type, static_cast<int64_t>(row / 50)); });
  EXPECT_EQ(packed(type, runs, CompressionGoal::kNone), 0);
  EXPECT_EQ(packed(type, runs, CompressionGoal::kBalanced), 1 << kCodes);
  const ColumnVector sentences = MakeColumn(
      text, 50'000, [&](size_t row) { return Value::Text("the text of row number " + std::to_string(row)); });
  EXPECT_EQ(packed(text, sentences, CompressionGoal::kSpeed), 1 << kEntryOffsets);
  EXPECT_EQ(packed(text, sentences, CompressionGoal::kRatio), 1 << kEntryOffsets | 1 << kEntryBytes);
}

TEST(TabletChunk, FullRangeOfBigintWithNulls) {
  const SqlType type = SqlType::Of(TypeId::kBigint);
  // All 2^64 codes are within the range, so the NULL code is one that no row has; the smallest candidates are taken.
  const ColumnVector column = MakeColumn(type, 5000, [&](size_t row) {
    if (row % 7 == 3) return Value::Null(type);
    if (row == 0) return Value::Int(type, kMax64);
    return Value::Int(type, static_cast<int64_t>(static_cast<uint64_t>(kMin64) + row - 1));
  });
  const Encoded encoded = CheckRoundTrip(type, column);
  EXPECT_EQ(encoded.view.width, 8);
  std::set<uint64_t> used;
  for (uint32_t row = 0; row < encoded.view.rows; ++row) {
    if (!column.IsNull(row)) used.insert(static_cast<uint64_t>(column.fixed[row]) - static_cast<uint64_t>(kMin64));
  }
  EXPECT_FALSE(used.contains(encoded.view.null_code));
}

TEST(TabletChunk, Constants) {
  for (const SqlType& type : {SqlType::Of(TypeId::kInteger), SqlType::Of(TypeId::kDouble), SqlType::Of(TypeId::kReal),
                              SqlType::Decimal(30, 2), SqlType::Text()}) {
    const Value value = ParseValue("12.00", type.id == TypeId::kInteger ? SqlType::Of(TypeId::kDouble) : type).value();
    Value stored = value;
    stored.type = type;
    stored.i64 = 12;
    const Encoded constant = CheckRoundTrip(type, MakeColumn(type, 3000, [&](size_t) { return stored; }));
    EXPECT_EQ(constant.view.encoding, Encoding::kConstant);
    EXPECT_EQ(constant.view.width, 0);
    EXPECT_EQ(constant.view.codes, nullptr);
    EXPECT_EQ(constant.view.has_nulls, false);
    if (type.storage() == StorageClass::kText) {
      EXPECT_EQ(constant.view.entries, 1u);
    } else {
      EXPECT_EQ(constant.view.encoded_bytes, 0u);
      EXPECT_TRUE(constant.view.base == constant.view.min && constant.view.base == constant.view.max);
    }
    const Encoded nulls = CheckRoundTrip(type, MakeColumn(type, 3000, [&](size_t) { return Value::Null(type); }));
    EXPECT_EQ(nulls.view.encoding, Encoding::kConstant);
    EXPECT_TRUE(nulls.view.has_nulls);
    EXPECT_EQ(nulls.view.null_count, 3000u);
    EXPECT_EQ(nulls.view.entries, 0u);
    // One value and NULLs need codes.
    const Encoded both =
        CheckRoundTrip(type, MakeColumn(type, 3000, [&](size_t row) { return row == 9 ? Value::Null(type) : stored; }));
    EXPECT_EQ(both.view.encoding, type.storage() == StorageClass::kText ? Encoding::kDictionary : Encoding::kFrame);
    EXPECT_EQ(both.view.width, 1);
  }
}

TEST(TabletChunk, Floats) {
  for (const TypeId id : {TypeId::kReal, TypeId::kDouble}) {
    const SqlType type = SqlType::Of(id);
    auto single = [&](double v) { return id == TypeId::kReal ? static_cast<double>(static_cast<float>(v)) : v; };
    CheckAll(type, [&](size_t row) { return Value::Float(type, single(static_cast<double>(row) / 3 - 1000)); });
    const double special[] = {0.0,
                              -0.0,
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN(),
                              -std::numeric_limits<double>::quiet_NaN(),
                              single(std::numeric_limits<float>::denorm_min()),
                              single(std::numeric_limits<float>::max()),
                              -1.5};
    CheckAll(type, [&](size_t row) { return Value::Float(type, special[Mix(row) % std::size(special)]); });
    const Encoded zeros = CheckRoundTrip(
        type, MakeColumn(type, 64, [&](size_t row) { return Value::Float(type, row % 2 == 0 ? 0.0 : -0.0); }));
    EXPECT_EQ(zeros.view.width, 1) << "the two zeros are neighbours in the ordered form";
    EXPECT_EQ(zeros.chunk.distinct.Estimate(), 1u) << "but equal";
    const uint64_t zero = id == TypeId::kReal ? OrderedFloat32(0.0f) : OrderedFloat(0.0);
    EXPECT_TRUE(zeros.view.max == static_cast<int128_t>(zero));
    EXPECT_TRUE(zeros.view.base == static_cast<int128_t>(zero) - 1);
    const Encoded all =
        CheckRoundTrip(type, MakeColumn(type, 64, [&](size_t row) {
                         return row == 5 ? Value::Null(type) : Value::Float(type, special[row % std::size(special)]);
                       }));
    EXPECT_EQ(all.view.width, id == TypeId::kReal ? 4 : 8);
    EXPECT_TRUE(all.view.max == static_cast<int128_t>(id == TypeId::kReal ? uint64_t{kOrderedNaN32} : kOrderedNaN));
  }
}

TEST(TabletChunk, WideDecimals) {
  const SqlType type = SqlType::Decimal(38, 3);
  const int128_t large = PowerOf10(38) - 1;
  CheckAll(type, [&](size_t row) { return Value::Wide(type, large - static_cast<int64_t>(Mix(row) % 50)); });
  CheckAll(type, [&](size_t row) { return Value::Wide(type, -large + static_cast<int64_t>(Mix(row) % 40000)); });
  CheckAll(type, [&](size_t row) { return Value::Wide(type, static_cast<int64_t>(Mix(row) >> 33)); });
  CheckAll(type, [&](size_t row) { return Value::Wide(type, -static_cast<int128_t>(Mix(row) >> 2) + large / 2); });
  CheckAll(type, [&](size_t row) {
    return Value::Wide(type, row % 3 == 0 ? large : row % 3 == 1 ? -large : Make128(1, static_cast<int64_t>(row)));
  });
  const Encoded narrow = CheckRoundTrip(
      type, MakeColumn(type, 1000, [&](size_t row) { return Value::Wide(type, large - static_cast<int64_t>(row)); }));
  EXPECT_EQ(narrow.view.width, 2);
  EXPECT_TRUE(narrow.view.base == large - 999);
  const Encoded wide =
      CheckRoundTrip(type, MakeColumn(type, 1000, [&](size_t row) {
                       return row == 1 ? Value::Null(type) : Value::Wide(type, row % 2 == 0 ? large : -large);
                     }));
  EXPECT_EQ(wide.view.width, 16);
  EXPECT_TRUE(wide.view.base == 0);
  EXPECT_TRUE(wide.view.null_code_wide == large + 1);
  // A span of exactly 2^64 - 1 leaves no 64-bit code for NULL.
  for (const bool nulls : {false, true}) {
    const Encoded edge =
        CheckRoundTrip(type, MakeColumn(type, 1000, [&](size_t row) {
                         if (nulls && row == 1) return Value::Null(type);
                         return Value::Wide(type, row % 2 == 0 ? large : large - static_cast<int128_t>(UINT64_MAX));
                       }));
    EXPECT_EQ(edge.view.width, nulls ? 16 : 8);
  }
}

TEST(TabletChunk, AllBitsOfUuids) {
  const SqlType type = SqlType::Of(TypeId::kUuid);
  CheckAll(type, [&](size_t row) {
    return Value::Wide(type, Make128(static_cast<int64_t>(Mix(row)), static_cast<int64_t>(Mix(row + 1))));
  });
  // The greatest value leaves no number after it for NULL, and of those before it some are taken.
  CheckAll(type, [&](size_t row) { return Value::Wide(type, row % 5 == 0 ? kInt128Min : kInt128Max - row % 3); });
  CheckAll(type, [&](size_t row) {
    return Value::Wide(type, row == 0 ? kInt128Min : kInt128Max - static_cast<int64_t>(row));
  });
}

TEST(TabletChunk, Text) {
  const SqlType type = SqlType::Text();
  auto numbered = [&](uint64_t n) { return Value::Text(std::string(n % 9, 'x') + std::to_string(n)); };
  CheckAll(type, [&](size_t row) { return numbered(Mix(row) % 5); });
  CheckAll(type, [&](size_t row) { return numbered(Mix(row) % 300); });
  CheckAll(type, [&](size_t row) { return numbered(Mix(row) % 20000); });
  CheckAll(type, [&](size_t row) { return numbered(Mix(row)); });
  CheckAll(type, [&](size_t row) { return Value::Text(row % 2 == 0 ? "" : "\xC3\xA4"); });
  const SqlType varchar = SqlType::Text(30);
  CheckAll(varchar, [&](size_t row) { return numbered(Mix(row) % 300); });
}

TEST(TabletChunk, DictionaryIsSortedByBytesAndChosenForRepeats) {
  const SqlType type = SqlType::Text();
  auto encode = [&](size_t rows, size_t distinct, bool nulls) {
    return CheckRoundTrip(type, MakeColumn(type, rows, [&](size_t row) {
                            return nulls && row % 100 == 99 ? Value::Null(type)
                                                            : Value::Text(std::to_string(Mix(row % distinct)));
                          }));
  };
  struct Case {
    size_t rows, distinct;
    bool nulls;
    Encoding encoding;
    int width;
  };
  for (const Case& c : std::vector<Case>{{256, 256, false, Encoding::kDictionary, 1},
                                         {257, 257, false, Encoding::kPlain, 0},
                                         {400, 255, true, Encoding::kDictionary, 1},
                                         {5120, 256, true, Encoding::kDictionary, 2},
                                         {2000, 1000, false, Encoding::kDictionary, 2},
                                         {2000, 1001, false, Encoding::kPlain, 0},
                                         {200000, 65536, false, Encoding::kDictionary, 2},
                                         {200000, 65537, false, Encoding::kDictionary, 4},
                                         {200000, 150000, true, Encoding::kPlain, 0}}) {
    SCOPED_TRACE(std::to_string(c.rows) + " rows, " + std::to_string(c.distinct) + " distinct");
    const Encoded encoded = encode(c.rows, c.distinct, c.nulls);
    const Chunk& chunk = encoded.view;
    EXPECT_EQ(chunk.encoding, c.encoding);
    EXPECT_EQ(chunk.width, c.width);
    if (chunk.encoding == Encoding::kDictionary) {
      for (uint32_t e = 1; e < chunk.entries; ++e) ASSERT_LT(chunk.Entry(e - 1), chunk.Entry(e));
      EXPECT_TRUE(chunk.min == 0 && chunk.max == static_cast<int128_t>(chunk.entries) - 1);
      EXPECT_EQ(chunk.null_code, c.nulls ? chunk.entries : 0);
    } else {
      EXPECT_EQ(chunk.entries, chunk.rows);
      EXPECT_EQ(chunk.null_bytes != nullptr, c.nulls);
    }
  }
  // Bytes above 127 sort after ASCII: unsigned, as memcmp() compares.
  const Encoded bytes = CheckRoundTrip(
      type, MakeColumn(type, 4, [&](size_t row) { return Value::Text(row % 2 == 0 ? "\xC3\xA4" : "z"); }));
  EXPECT_EQ(bytes.view.Entry(0), "z");
}

TEST(TabletChunk, DistinctCounts) {
  const SqlType type = SqlType::Of(TypeId::kBigint);
  for (const uint64_t distinct : {1u, 2u, 100u, 1000u, 1024u, 1025u, 5000u, 20000u, 65000u}) {
    for (const uint64_t spread : {uint64_t{1}, uint64_t{1} << 40}) {
      const Encoded encoded(type, MakeColumn(type, 65536, [&](size_t row) {
                              return Value::Int(type, static_cast<int64_t>(row % distinct * spread));
                            }));
      const double estimate = static_cast<double>(encoded.chunk.distinct.Estimate());
      const double n = static_cast<double>(distinct);
      if (distinct <= 1024) {
        EXPECT_EQ(estimate, n) << "exact";
      } else {
        EXPECT_NEAR(estimate, n, 0.07 * n);
      }
    }
  }
}

TEST(TabletChunk, DistinctCountsMergeAndSerialise) {
  std::mt19937_64 random(1);
  for (const uint64_t n : {10u, 600u, 1024u, 3000u, 100000u}) {
    DistinctCount all, first, second;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t hash = i == 0 ? 0 : random();
      all.Add(hash);
      // The halves overlap by a third.
      if (i < 2 * n / 3) first.Add(hash);
      if (i >= n / 3) second.Add(hash);
    }
    DistinctCount copy;
    ASSERT_TRUE(copy.Deserialize(second.Serialize()));
    EXPECT_EQ(copy.Estimate(), second.Estimate());
    first.Merge(copy);
    EXPECT_EQ(first.Estimate(), all.Estimate());
    EXPECT_NEAR(static_cast<double>(first.Estimate()), static_cast<double>(n),
                n <= 1024 ? 0 : 0.07 * static_cast<double>(n));
    std::string bytes = all.Serialize();
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    EXPECT_FALSE(copy.Deserialize(bytes));
    EXPECT_FALSE(copy.Deserialize(bytes.substr(0, 5)));
    EXPECT_FALSE(copy.Deserialize(""));
  }
}

TEST(TabletChunk, DescriptorsThatCannotBeRightAreRefused) {
  const SqlType type = SqlType::Text();
  const Encoded encoded(type, MakeColumn(type, 1000, [&](size_t row) {
                          return row % 50 == 0 ? Value::Null(type) : Value::Text(std::to_string(row % 77));
                        }));
  ChunkDescriptor good;
  memcpy(&good, encoded.file.data() + sizeof(TabletHeader), sizeof good);
  const uint64_t start = good.streams[0].offset;
  ASSERT_EQ(CheckDescriptor(good, type, kTabletVersion, 1000, start, encoded.file.size()), nullptr);
  const std::vector<std::function<void(ChunkDescriptor*)>> damages = {
      [](auto* d) { d->type = 3; },
      [](auto* d) { d->length = 5; },
      [](auto* d) { d->encoding = 4; },
      [](auto* d) { d->encoding = static_cast<uint8_t>(Encoding::kFrame); },
      [](auto* d) { d->encoding = static_cast<uint8_t>(Encoding::kPlain); },
      [](auto* d) { d->encoding = static_cast<uint8_t>(Encoding::kConstant); },
      [](auto* d) { d->width = 3; },
      [](auto* d) { d->width = 2; },
      [](auto* d) { d->entries = 1001; },
      [](auto* d) { d->entries = 0xFFFFFFFF; },
      [](auto* d) { d->null_code = 76; },
      [](auto* d) { d->null_count = 0; },
      [](auto* d) { d->has_nulls = 2; },
      [](auto* d) { d->streams[kCodes].offset += 128; },
      [](auto* d) { d->streams[kCodes].offset = UINT64_MAX - 127; },
      [](auto* d) { d->streams[kEntryBytes].bytes = UINT64_MAX; },
      [](auto* d) { d->streams[kEntryBytes].bytes = uint64_t{1} << 40; },
      [](auto* d) { d->bytes -= 128; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    ChunkDescriptor bad = good;
    damages[i](&bad);
    EXPECT_NE(CheckDescriptor(bad, type, kTabletVersion, 1000, start, encoded.file.size()), nullptr) << "damage " << i;
  }
  // Streams with a right checksum but wrong contents: a code beyond the dictionary, offsets out of order.
  std::vector<uint8_t> file = encoded.file;
  file[good.streams[kCodes].offset + 3] = 200;
  Chunk view = ViewChunk(good, 1000, file.data());
  EXPECT_NE(CheckChecksum(good, file.data()), nullptr);
  EXPECT_NE(CheckContents(&view), nullptr);
  // A packed stream has bytes: one without would not be read, and later be unpacked.
  ChunkDescriptor packed = good;
  packed.packed = 1u << kCodes;
  packed.streams[kCodes].bytes = packed.bytes = 0;
  for (int s = kCodes + 1; s < kStreams; ++s) packed.streams[s].offset = start;
  EXPECT_STREQ(CheckDescriptor(packed, type, kPackedTabletVersion, 1000, start, encoded.file.size()),
               "a packed stream without bytes");
}

}  // namespace
}  // namespace tessera
