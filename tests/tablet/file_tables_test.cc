// Files as tables: what is guessed of them, what is read, when they are read again, and 300 damaged ones.
#include "tablet/file_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tablet/csv/csv_sniffer.h"
#include "tablet/csv/value_kinds.h"

namespace tessera {
namespace {

class FileTablesTest : public testing::Test {
 protected:
  FileTablesTest() {
    char name[] = "/tmp/tessera_files_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/f.csv";
  }
  ~FileTablesTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  /// As if it had been written long ago: a young file is read again each time.
  void Age() const {
    std::filesystem::last_write_time(path_,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(1 + age_++));
  }
  FileSpec Spec() const {
    FileSpec spec;
    spec.patterns = {path_};
    return spec;
  }
  /// "a BIGINT, b TEXT", or the error.
  std::string Sniff(const std::string& text, const FileSpec& spec = {}) const {
    Write(text);
    const Result<SniffedCsv> sniffed = SniffCsv(path_, "f.csv", spec);
    if (!sniffed.ok()) return "error: " + sniffed.status().message();
    std::string out;
    for (const ColumnSchema& c : sniffed->schema.columns)
      out += (out.empty() ? "" : ", ") + c.name + " " + c.type.ToString();
    return out;
  }
  /// Rows of the table after all columns were read, or the error.
  std::string Load(const FileSpec& spec) {
    tables_.BeginStatement();
    const Result<std::shared_ptr<const TableInfo>> found = tables_.Find(spec);
    if (!found.ok()) return "error: " + found.status().message();
    CopyFromOptions options;
    options.threads = 2;
    const Result<bool> read =
        tables_.Load((*found)->id, std::vector<bool>((*found)->schema.columns.size(), true), options);
    if (!read.ok()) return "error: " + read.status().message();
    was_read_ = *read;
    return std::to_string(tables_.used()[0]->rows);
  }

  std::string folder_, path_;
  FileTables tables_;
  bool was_read_ = false;
  mutable int age_ = 0;
};

TEST_F(FileTablesTest, TypesOfValues) {
  const auto type = [](const std::vector<std::string>& values) {
    ValueKinds kinds = kAllKinds;
    for (const std::string& v : values) kinds &= KindsOf(v, '.', 0);
    return TypeOfKinds(kinds).ToString();
  };
  EXPECT_EQ(type({"1", "-2", "+3", "9223372036854775807"}), "BIGINT");
  EXPECT_EQ(type({"1", "9223372036854775808"}), "DECIMAL(38,0)");
  EXPECT_EQ(type({"1", "9223372036854775808", "0.5"}), "DOUBLE PRECISION");
  EXPECT_EQ(type({"1", "2.5", "1e10", ".5", "5."}), "DOUBLE PRECISION");
  EXPECT_EQ(type({"nan"}), "TEXT");
  EXPECT_EQ(type({"true", "False", "t"}), "BOOLEAN");
  EXPECT_EQ(type({"true", "1"}), "TEXT");
  EXPECT_EQ(type({"2024-02-29"}), "DATE");
  EXPECT_EQ(type({"2023-02-29"}), "TEXT");
  EXPECT_EQ(type({"2024-02-29", "2024-02-29 10:00:00"}), "TIMESTAMP");
  EXPECT_EQ(type({"2024-02-29T10:00:00.25"}), "TIMESTAMP");
  EXPECT_EQ(type({"2024-02-29 10:00:00+01", "2024-02-29"}), "TIMESTAMP WITH TIME ZONE");
  EXPECT_EQ(type({"10:00", "9:59:59"}), "TIME");
  EXPECT_EQ(type({"10:00", "2024-02-29"}), "TEXT");
  EXPECT_EQ(type({"20240229"}), "BIGINT");
  EXPECT_EQ(type({}), "TEXT");
  EXPECT_EQ(type({""}), "TEXT");
}

TEST_F(FileTablesTest, WhatIsGuessed) {
  EXPECT_EQ(Sniff("a,b\n1,x\n"), "a BIGINT, b TEXT");
  EXPECT_EQ(Sniff("1,x\n2,y\n"), "column0 BIGINT, column1 TEXT");
  EXPECT_EQ(Sniff("a,b\nx,y\n"), "a TEXT, b TEXT");
  EXPECT_EQ(Sniff("1;2\n3;4"), "column0 BIGINT, column1 BIGINT");
  EXPECT_EQ(Sniff("a b c\n"), "a b c TEXT");
  EXPECT_EQ(Sniff("a;b\n1,5;2\n2,5;3\n"), "a TEXT, b BIGINT");
  EXPECT_EQ(Sniff("k|v|\n1|2|\n3|4|\n"), "k BIGINT, v BIGINT") << "as dbgen ends lines";
  EXPECT_EQ(Sniff("size,n\n5\" pipe,1\n6\" pipe,2\n"), "size TEXT, n BIGINT") << "no quotes";
  EXPECT_EQ(Sniff("\xEF\xBB\xBFid\n1\n"), "id BIGINT");
  EXPECT_EQ(Sniff(""), "column0 TEXT");
  EXPECT_EQ(Sniff("\n\n\n"), "column0 TEXT");
  EXPECT_EQ(Sniff("PK\x03\x04zip"), "error: \"f.csv\" is a zip archive, not CSV");
  FileSpec typed;
  typed.types = {{"", SqlType::Of(TypeId::kBigint)}, {"", SqlType::Of(TypeId::kBigint)}};
  EXPECT_EQ(Sniff("id,v\n1,2\nx,3\n4,5,6\n7\n8,9\n", typed), "id BIGINT, v BIGINT") << "it is told to have columns";
  FileSpec spec;
  spec.sampled_rows = 1;
  EXPECT_EQ(Sniff("a\n1\nx\n", spec), "a BIGINT");
  spec.sampled_rows = -1;
  EXPECT_EQ(Sniff("a\n1\nx\n", spec), "a TEXT");
}

TEST_F(FileTablesTest, AFileIsReadAgainWhenItIsAnother) {
  Write("a\n1\n2\n");
  Age();
  EXPECT_EQ(Load(Spec()), "2");
  EXPECT_TRUE(was_read_);
  EXPECT_EQ(Load(Spec()), "2");
  EXPECT_FALSE(was_read_);
  Write("a\n1\n2\n3\n");
  EXPECT_EQ(Load(Spec()), "3") << "another size";
  Age();
  EXPECT_EQ(Load(Spec()), "3");
  EXPECT_TRUE(was_read_) << "another time";
  Write("a\n4\n5\n6\n");
  EXPECT_EQ(Load(Spec()), "3");
  EXPECT_TRUE(was_read_) << "it had been written shortly before";
}

TEST_F(FileTablesTest, AFileThatChangesMeanwhileIsAnError) {
  Write("a\n1\n2\n");
  tables_.BeginStatement();
  const Result<std::shared_ptr<const TableInfo>> found = tables_.Find(Spec());
  ASSERT_TRUE(found.ok());
  Write("a\n1\n2\n3\n");
  const Result<bool> read = tables_.Load((*found)->id, {true}, {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().message(), "\"" + path_ + "\" has changed while it was read");
}

TEST_F(FileTablesTest, OnlyColumnsThatAreReadAreParsed) {
  Write("a,b\n1,x\n2,3\n");
  FileSpec spec = Spec();
  spec.types = {{"b", SqlType::Of(TypeId::kBigint)}};
  tables_.BeginStatement();
  const Result<std::shared_ptr<const TableInfo>> found = tables_.Find(spec);
  ASSERT_TRUE(found.ok());
  const Result<bool> read = tables_.Load((*found)->id, {true, false}, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(tables_.used()[0]->rows, 2u);
  const Result<bool> all = tables_.Load(tables_.used()[0]->id, {false, true}, {});
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.status().message(),
            "\"" + path_ + "\", line 2, column \"b\": invalid input syntax for type bigint: \"x\"");
}

/// Rows or an error, for whatever is in a file.
TEST_F(FileTablesTest, DamagedFiles) {
  std::mt19937_64 random(7);
  std::string text = "id,name,price,day,at,note\n";
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(i) + ",\"name, " + std::to_string(i) + "\"," + std::to_string(i) + ".25,2024-01-" +
            std::to_string(10 + i % 20) + ",2024-01-01 10:00:" + std::to_string(10 + i % 50) + ",größe\n";
  }
  uLongf packed_bytes = compressBound(static_cast<uLong>(text.size())) + 64;
  std::string packed(packed_bytes, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string wide = "\xff\xfe";
  for (const char c : text) wide += {c, '\0'};

  const std::string* const originals[] = {&text, &packed, &wide};
  int rows = 0, errors = 0;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = *originals[i % 3];
    const auto place = [&] { return static_cast<size_t>(random() % damaged.size()); };
    switch (i / 3 % 6) {
      case 0:
        damaged.resize(place());
        break;
      case 1:
        for (int n = 0; n < 1 + i % 20; ++n) damaged[place()] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        damaged[place()] = '\0';
        break;
      case 3:
        damaged.insert(place(), "\"");
        break;
      case 4:
        damaged.insert(0, i % 2 == 0 ? "\xff\xfe" : "\xEF\xBB\xBF");
        break;
      default:
        damaged.insert(place(), std::string(1 + random() % 100000, "\n,\"\\\xff"[random() % 5]));
    }
    Write(damaged);
    FileSpec spec = Spec();
    spec.ignore_errors = i % 7 == 0;
    const std::string result = Load(spec);
    ++(result.starts_with("error: ") ? errors : rows);
  }
  EXPECT_GT(rows, 20);
  EXPECT_GT(errors, 20);
  for (const bool quoted : {false, true}) {
    Write("a,b\n1,2\n" + std::string(quoted ? "\"" : "") + std::string(size_t{100} << 20, 'x'));
    EXPECT_TRUE(Load(Spec()).starts_with("error: ")) << quoted;
  }
}

}  // namespace
}  // namespace tessera
