// Places of records in CSV files, found by counts of stretches, against a walk over all bytes.
#include "tablet/csv/csv_shares.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tablet/csv/csv_parser.h"

namespace tessera {
namespace {

class CsvSharesTest : public testing::Test {
 protected:
  CsvSharesTest() : path_(testing::TempDir() + "csv_shares." + std::to_string(getpid())) {}
  ~CsvSharesTest() override { unlink(path_.c_str()); }

  CsvFile File(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return CsvFile::Open(path_).value();
  }

  /// Where each record of the text begins, and the end of the text.
  static std::vector<CsvPlace> Walk(const std::string& text, char quote) {
    std::vector<CsvPlace> places(1);
    CsvPlace at;
    bool inside = false;
    for (const char c : text) {
      ++at.offset;
      if (c == '\n') ++at.lines;
      if (c == quote) inside = !inside;
      if (c == '\n' && !inside) places.push_back(at);
    }
    if (places.back().offset != text.size()) places.push_back(at);
    return places;
  }

  void Compare(const std::string& text, char quote, uint64_t least_stretch) {
    const CsvFile file = File(text);
    CsvShares shares(text.size(), quote, least_stretch);
    // As several processes count.
    std::vector<CsvCount> all;
    const size_t n = shares.stretches();
    for (const auto& [begin, end] : {std::pair(size_t{0}, n / 3), {n / 3, n / 2}, {n / 2, n}}) {
      const std::vector<CsvCount> counts = shares.Count(file, begin, end, nullptr).value();
      all.insert(all.end(), counts.begin(), counts.end());
    }
    ASSERT_TRUE(shares.SetCounts(file, all).ok());
    const std::vector<CsvPlace> places = Walk(text, quote);
    ASSERT_EQ(shares.records(), places.size() - 1) << text.substr(0, 200);
    const size_t step = std::max<size_t>(1, places.size() / 500);
    for (size_t record = 0; record < places.size(); record += record + step < places.size() ? step : 1) {
      const CsvPlace found = shares.Find(file, record).value();
      ASSERT_EQ(found.offset, places[record].offset) << "record " << record;
      ASSERT_EQ(found.lines, places[record].lines) << "record " << record;
    }
  }

  std::string path_;
};

std::string RandomText(std::mt19937* random, size_t bytes, int quotes) {
  static const std::string kBytes = "ab,\n\n\r";
  std::string text;
  while (text.size() < bytes) {
    const unsigned choice = (*random)() % 100;
    text += choice < static_cast<unsigned>(quotes) ? '"' : kBytes[(*random)() % kBytes.size()];
  }
  return text;
}

TEST_F(CsvSharesTest, RecordsAreFoundWhereAWalkFindsThem) {
  std::mt19937 random(7);
  for (const size_t bytes : {1, 63, 64, 65, 127, 128, 129, 1000, 4097}) {
    for (const int quotes : {0, 1, 20}) {
      for (const uint64_t stretch : {1, 7, 64, 100, 5000}) Compare(RandomText(&random, bytes, quotes), '"', stretch);
    }
  }
}

TEST_F(CsvSharesTest, StretchesOfSeveralPieces) {
  std::mt19937 random(8);
  for (const int quotes : {0, 3}) Compare(RandomText(&random, size_t{5} << 20, quotes), '"', uint64_t{3} << 20);
}

TEST_F(CsvSharesTest, EdgesOfText) {
  for (const char* text : {"\n", "a", "a\n", "a\nb", "\"", "\"\n", "a\n\"b\nc", "\"a\n\"\n", "\"\"\"\n\"\"\n\"\n"}) {
    for (const uint64_t stretch : {1, 2, 3, 100}) Compare(text, '"', stretch);
  }
  Compare("'a\n'\n\"\n", '\'', 2);
}

TEST_F(CsvSharesTest, SharesTogetherAreTheFile) {
  std::string text =
      "\xEF\xBB\xBF"
      "a,b\n";
  for (int i = 0; i < 1000; ++i) {
    text += std::to_string(i) + (i % 3 == 0 ? ",\"two\nlines \"\"" + std::to_string(i) + "\"\n" : ",x\r\n");
  }
  text += "1000,last";
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{"a", SqlType::Of(TypeId::kInteger), false}, {"b", SqlType::Text(), false}};
  CopyFromOptions options;
  options.format.header = true;
  const CsvParser parser = CsvParser::Create(schema, options).value();
  const auto read = [&](CsvFile csv, uint64_t* lines) {
    csv.Configure(options, 100);
    std::string out;
    for (CsvBlock block;;) {
      EXPECT_TRUE(csv.Read(&block).ok());
      if (block.size == 0) return out;
      const FileRows parsed = parser.Parse(block);
      EXPECT_FALSE(parsed.error) << parsed.error->message;
      *lines += parsed.lines;
      for (size_t row = 0; row < parsed.batch.rows; ++row) {
        for (const ColumnVector& column : parsed.batch.columns) AppendText(column, row, &out);
        out += ';';
      }
    }
  };
  uint64_t all_lines = 0;
  const std::string whole = read(File(text), &all_lines);
  EXPECT_EQ(all_lines, 1 + 1000 + 334 + 1);
  for (const uint64_t n : {1, 2, 3, 7, 100}) {
    const CsvFile file = File(text);
    EXPECT_TRUE(CanBeShared(file, options.format).value());
    CsvShares shares(text.size(), '"', 50);
    ASSERT_TRUE(shares.SetCounts(file, shares.Count(file, 0, shares.stretches(), nullptr).value()).ok());
    ASSERT_EQ(shares.records(), 1002u);
    std::string together;
    uint64_t lines = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const CsvPlace begin = shares.Find(file, shares.records() * i / n).value();
      const CsvPlace end = shares.Find(file, shares.records() * (i + 1) / n).value();
      EXPECT_EQ(begin.lines, lines);
      CsvFile share = File(text);
      ASSERT_TRUE(share.Limit(begin.offset, end.offset, begin.lines + 1).ok());
      EXPECT_EQ(share.first_line(), lines + 1);
      together += read(std::move(share), &lines);
    }
    EXPECT_EQ(together, whole) << n << " shares";
  }
}

TEST_F(CsvSharesTest, WhatCannotBeShared) {
  CopyFromOptions options;
  EXPECT_FALSE(CanBeShared(File(""), options.format).value());
  EXPECT_FALSE(CanBeShared(File("1,2\r3,4\r"), options.format).value()) << "lines that end in carriage returns";
  EXPECT_FALSE(CanBeShared(File("\x1f\x8b\x08\n\n\n"), options.format).value()) << "compressed";
  options.format.escape = '\\';
  EXPECT_FALSE(CanBeShared(File("1,2\n"), options.format).value());
}

TEST_F(CsvSharesTest, AFileThatBecameShorterIsAnError) {
  const CsvFile file = File("1\n2\n3\n");
  CsvShares shares(6, '"', 2);
  ASSERT_TRUE(shares.SetCounts(file, shares.Count(file, 0, shares.stretches(), nullptr).value()).ok());
  ASSERT_EQ(truncate(path_.c_str(), 1), 0);
  EXPECT_FALSE(shares.Find(file, 2).ok());
  EXPECT_FALSE(shares.Count(file, 0, 3, nullptr).ok());
}

}  // namespace
}  // namespace tessera
