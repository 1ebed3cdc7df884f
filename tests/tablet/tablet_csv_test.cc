// COPY FROM and CsvWriter: the format, the errors, and that neither depends on threads or on where blocks end.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/csv/csv_file.h"
#include "tablet/csv/csv_header.h"
#include "tablet/csv/csv_load.h"
#include "tablet/csv/csv_writer.h"
#include "tablet/database.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/table_load.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const SqlType kInteger = SqlType::Of(TypeId::kInteger);

std::string Bracketed(const std::string& text) { return std::string("[").append(text).append("]"); }

class TabletCsv : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (fs::temp_directory_path() / "tablet-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    // Temporary: these many small loads need not wait for the disk.
    auto database = Database::Open("", OpenMode::kReadWrite);
    ASSERT_TRUE(database.ok()) << database.status().message();
    database_ = std::move(*database);
    CreateTable("t", {{"a", kInteger, false}, {"b", SqlType::Text(), false}});
    file_ = directory_ + "/f.csv";
  }
  void TearDown() override {
    database_.reset();
    fs::remove_all(directory_);
  }

  void CreateTable(const std::string& name, std::vector<ColumnSchema> columns, std::vector<int> key = {}) {
    TableSchema schema;
    schema.name = name;
    schema.columns = std::move(columns);
    schema.primary_key = std::move(key);
    const Status status = database_->CreateTable(schema, false);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void Write(const std::string& text) const {
    fs::remove(file_);  // ext4 waits for the disk when a truncated file is closed
    std::ofstream(file_, std::ios::binary) << text;
  }

  /// Every row of a table: fields in brackets, NULL as "null".
  std::vector<std::string> Rows(const std::string& name) { return Rows(**database_->Read(), name); }
  static std::vector<std::string> Rows(const Snapshot& snapshot, const std::string& name) {
    std::vector<std::string> rows;
    const auto table = snapshot.Find(name);
    for (const auto& tablet : table->tablets) {
      std::vector<Result<ChunkPointer>> chunks;  // held, so that each is unpacked once
      for (size_t c = 0; c < table->schema.columns.size(); ++c) {
        chunks.push_back(tablet->Chunk(static_cast<int>(c)));
        EXPECT_TRUE(chunks.back().ok());
      }
      for (uint32_t row = 0; row < tablet->rows(); ++row) {
        std::string line;
        for (const Result<ChunkPointer>& chunk : chunks) {
          const Value value = DecodeValue(**chunk, row);
          line += value.null ? "null" : Bracketed(ToText(value));
        }
        rows.push_back(line);
      }
    }
    return rows;
  }

  /// Copies `text` into an empty t and returns its rows, or one line "error: ...".
  std::vector<std::string> Copy(const std::string& text, CopyFromOptions options = {}, const std::string& table = "t") {
    Write(text);
    auto snapshot = database_->Read();
    const TableSchema schema = (*snapshot)->Find(table)->schema;
    snapshot->reset();
    EXPECT_TRUE(database_->DropTable(table, false).ok());
    TableSchema fresh = schema;
    fresh.tablet_rows = 0;
    EXPECT_TRUE(database_->CreateTable(fresh, false).ok());
    const Result<uint64_t> copied = database_->CopyFrom(table, file_, options);
    auto rows = Rows(table);
    if (!copied.ok()) {
      EXPECT_TRUE(rows.empty()) << "the table is as it was";
      code_ = copied.status().code();
      std::string message = copied.status().message();
      // The directory has another name in each run.
      for (size_t at; (at = message.find(directory_)) != std::string::npos;)
        message.replace(at, directory_.size() + 1, "");
      return {"error: " + message};
    }
    EXPECT_EQ(*copied, rows.size());
    return rows;
  }

  using Lines = std::vector<std::string>;

  /// Loads file_ in blocks of `block_bytes` into a table of a database of its own.
  struct BlockLoad {
    std::shared_ptr<DatabaseDirectory> directory;
    BlockLoad() {
      directory = DatabaseDirectory::Open("", OpenMode::kReadWrite).value();
      TableSchema schema;
      schema.name = "t";
      schema.columns = {{"a", kInteger, false}, {"b", SqlType::Text(), false}};
      const DatabaseDirectory::Write write = directory->BeginWrite().value();
      const int64_t next = write.contents.next_tablet_id;
      EXPECT_TRUE(directory->InsertTable(write, NewTable(write.contents, schema), nullptr, {}, next).ok());
    }
    Status Run(const std::string& file, const CopyFromOptions& options, size_t block_bytes) {
      TESSERA_ASSIGN(CsvFile csv, CsvFile::Open(file));
      TESSERA_ASSIGN(std::unique_ptr<TableLoad> load, TableLoad::Begin(directory, "t", nullptr));
      TESSERA_TRY(LoadCsv(std::move(csv), options, load.get(), block_bytes));
      return load->Commit();
    }
    std::vector<std::string> Rows() { return TabletCsv::Rows(*directory->Read().value(), "t"); }
  };

  std::string directory_, file_;
  std::unique_ptr<Database> database_;
  ErrorCode code_ = ErrorCode::kInternal;
};

TEST_F(TabletCsv, PlainRecords) {
  EXPECT_EQ(Copy("1,x\n2,y\n"), (Lines{"[1][x]", "[2][y]"}));
  EXPECT_EQ(Copy("1,x\n2,y"), (Lines{"[1][x]", "[2][y]"})) << "no line feed at the end";
  EXPECT_EQ(Copy("1,x\r\n2,y\r\n"), (Lines{"[1][x]", "[2][y]"}));
  EXPECT_EQ(Copy("1,x\r\n2,y\r"), (Lines{"[1][x]", "[2][y]"}));
  EXPECT_EQ(Copy(""), Lines{});
  EXPECT_EQ(Copy("\xEF\xBB\xBF"
                 "1,x\n"),
            Lines{"[1][x]"})
      << "a byte order mark";
  EXPECT_EQ(Copy(" 1 , x \n"), Lines{"[1][ x ]"}) << "blanks belong to text only";
  EXPECT_EQ(Copy("-7,\xC3\xA4\n"), Lines{"[-7][\xC3\xA4]"});
}

TEST_F(TabletCsv, Options) {
  CopyFromOptions options;
  options.format.header = true;
  EXPECT_EQ(Copy("first,second\n1,x\n", options), Lines{"[1][x]"});
  EXPECT_EQ(Copy("first,second\n", options), Lines{});
  EXPECT_EQ(Copy("first,second,third\n1,x\n", options), Lines{"[1][x]"}) << "the header is only skipped";
  options = {};
  options.format.delimiter = '|';
  EXPECT_EQ(Copy("1|x,y\n", options), Lines{"[1][x,y]"});
  options = {};
  options.format.null_string = "NULL";
  EXPECT_EQ(Copy("NULL,NULL\n2,\n3,\"NULL\"\n4,null\n", options),
            (Lines{"nullnull", "[2][]", "[3][NULL]", "[4][null]"}));
  options = {};
  options.columns = {1};
  EXPECT_EQ(Copy("x\ny\n", options), (Lines{"null[x]", "null[y]"}));
  options.columns = {1, 0};
  EXPECT_EQ(Copy("x,1\n", options), Lines{"[1][x]"});
  options = {};
  options.format.quote = '\'';
  options.format.escape = '\\';
  EXPECT_EQ(Copy("1,'it\\'s, a \\\\ and \\n'\n2,a\\b\n", options), (Lines{"[1][it's, a \\ and \\n]", "[2][a\\b]"}));
  for (const char delimiter : {'\n', '\r', '"'}) {
    options = {};
    options.format.delimiter = delimiter;
    EXPECT_EQ(Copy("1,x\n", options)[0].substr(0, 6), "error:");
  }
  options = {};
  options.columns = {0, 0};
  EXPECT_EQ(Copy("1,2\n", options), Lines{"error: column \"a\" is specified twice"});
  options.columns = {2};
  EXPECT_EQ(Copy("1\n", options)[0].substr(0, 6), "error:");
}

TEST_F(TabletCsv, NullsAndEmptyText) {
  EXPECT_EQ(Copy(",\n1,\"\"\n"), (Lines{"nullnull", "[1][]"}));
  CreateTable("one", {{"a", SqlType::Text(), false}});
  EXPECT_EQ(Copy("x\n\n\"\"\n", {}, "one"), (Lines{"[x]", "null", "[]"}));
}

TEST_F(TabletCsv, Quotes) {
  EXPECT_EQ(Copy("1,\"x,y\"\n"), Lines{"[1][x,y]"});
  EXPECT_EQ(Copy("1,\"say \"\"hi\"\"\"\n"), Lines{"[1][say \"hi\"]"});
  EXPECT_EQ(Copy("1,\"two\nlines\"\n2,\"and\r\nthree\n\n\"\n"), (Lines{"[1][two\nlines]", "[2][and\r\nthree\n\n]"}));
  EXPECT_EQ(Copy("\"1\",\"x\"\r\n\"2\",y"), (Lines{"[1][x]", "[2][y]"}));
  EXPECT_EQ(Copy("1,ab\"c,d\"ef\n"), Lines{"[1][abc,def]"}) << "as PostgreSQL reads it";
  EXPECT_EQ(Copy("1,\"\"\"\"\n"), Lines{"[1][\"]"});
}

TEST_F(TabletCsv, TrailingDelimiter) {
  CopyFromOptions options;
  options.format.delimiter = '|';
  EXPECT_EQ(Copy("1|x|\n2|y|\r\n3|z\n4||\n5|w|", options), (Lines{"[1][x]", "[2][y]", "[3][z]", "[4]null", "[5][w]"}));
  EXPECT_EQ(Copy("1|x||\n", options)[0].substr(0, 6), "error:");
  EXPECT_EQ(Copy("1|x| \n", options)[0].substr(0, 6), "error:");
  CreateTable("one", {{"a", kInteger, false}});
  EXPECT_EQ(Copy("5|\n", options, "one"), Lines{"[5]"});
}

TEST_F(TabletCsv, Errors) {
  EXPECT_EQ(Copy("1,x\nabc,y\n"),
            Lines{"error: \"f.csv\", line 2, column \"a\": invalid input syntax for type integer: \"abc\""});
  EXPECT_EQ(code_, ErrorCode::kSql);
  EXPECT_EQ(Copy("1,x\n99999999999,y\n"),
            Lines{"error: \"f.csv\", line 2, column \"a\": value \"99999999999\" is out of range for type integer"});
  EXPECT_EQ(Copy("1,x\n2\n"),
            Lines{"error: \"f.csv\", line 2, column \"b\": missing field, the record has 1 of 2: \"2\""});
  EXPECT_EQ(Copy("1,x\n\n2,y\n"),
            Lines{"error: \"f.csv\", line 2, column \"b\": missing field, the record has 1 of 2: \"\""});
  EXPECT_EQ(Copy("1,x\n2,y,z\n"),
            Lines{"error: \"f.csv\", line 2, column \"b\": extra field after the last column, the "
                  "record has 3 instead of 2: \"2,y,z\""});
  EXPECT_EQ(Copy("1,\"a\nb\nc\"\nq,x\n"),
            Lines{"error: \"f.csv\", line 4, column \"a\": invalid input syntax for type integer: \"q\""})
      << "physical lines";
  EXPECT_EQ(Copy("1,x\n2,\"y\n3,z\n")[0].substr(0, 68),
            "error: \"f.csv\", line 2, column \"b\": unterminated quoted field: \"2,\"y");
  EXPECT_EQ(Copy("1,x\n2,\"y"), Lines{"error: \"f.csv\", line 2, column \"b\": unterminated quoted field: \"2,\"y\""});
  EXPECT_EQ(Copy("1,x\n2,\xFFy\n"), Lines{"error: \"f.csv\", line 2, column \"b\": invalid UTF-8: \"\\xffy\""});
  EXPECT_EQ(Copy(std::string("1,x\n2,y\0z\n", 10)),
            Lines{"error: \"f.csv\", line 2, column \"b\": text holds a NUL byte: \"y\\x00z\""});
  EXPECT_EQ(Copy("1,x\n2,y\nbad," + std::string(200, 'w') + "\n"),
            Lines{"error: \"f.csv\", line 3, column \"a\": invalid input syntax for type integer: \"bad\""});
  EXPECT_EQ(Copy("1,x\n" + std::string(200, '7') + ",y\n"),
            Lines{"error: \"f.csv\", line 2, column \"a\": value \"" + std::string(60, '7') +
                  "...\" is out of range for type integer"});
  // Of several errors the first line's, and in a line the first column's.
  CreateTable("two", {{"a", kInteger, false}, {"b", kInteger, false}});
  EXPECT_EQ(Copy("1,1\n1,x\ny,1\n", {}, "two"),
            Lines{"error: \"f.csv\", line 2, column \"b\": invalid input syntax for type integer: \"x\""});
  EXPECT_EQ(Copy("1,1\nz,x\ny,1,2\n", {}, "two"),
            Lines{"error: \"f.csv\", line 2, column \"a\": invalid input syntax for type integer: \"z\""});
  EXPECT_EQ(Copy("1,1\nz\nx,1\n", {}, "two")[0].substr(0, 36), "error: \"f.csv\", line 2, column \"b\": ");
  CreateTable("strict", {{"a", kInteger, true}, {"b", SqlType::Text(3), false}});
  EXPECT_EQ(Copy("1,abc\n,x\n", {}, "strict"),
            Lines{"error: \"f.csv\", line 2, column \"a\": null value in column \"a\" of "
                  "table \"strict\" violates not-null constraint"});
  EXPECT_EQ(code_, ErrorCode::kConstraint);
  EXPECT_EQ(Copy("1,\xC3\xA4\xC3\xB6\xC3\xBC\n2,abcd\n", {}, "strict"),
            Lines{"error: \"f.csv\", line 2, column \"b\": value too long for type VARCHAR(3): \"abcd\""});
  CopyFromOptions options;
  options.columns = {1};
  EXPECT_EQ(Copy("x\n", options, "strict"),
            Lines{"error: \"f.csv\", line 1, column \"a\": null value in column \"a\" of "
                  "table \"strict\" violates not-null constraint"});
  CreateTable("keyed", {{"a", kInteger, false}, {"b", SqlType::Text(), false}}, {0});
  EXPECT_EQ(Copy("1,x\n2,y\n1,z\n", {}, "keyed"),
            Lines{"error: duplicate key value violates primary key of \"keyed\": (a)=(1)"});
}

TEST_F(TabletCsv, FilesThatCannotBeRead) {
  auto message = [&](const std::string& path) {
    const auto copied = database_->CopyFrom("t", path, {});
    EXPECT_FALSE(copied.ok());
    EXPECT_EQ(copied.status().code(), ErrorCode::kIo);
    return copied.status().message();
  };
  EXPECT_EQ(message(directory_ + "/none.csv"),
            "cannot open \"" + directory_ + "/none.csv\": No such file or directory");
  EXPECT_EQ(message(directory_), "cannot read \"" + directory_ + "\": Is a directory");
  Write("1,x\n");
  EXPECT_EQ(database_->CopyFrom("none", file_, {}).status().message(), "table \"none\" does not exist");
}

TEST_F(TabletCsv, LinesThatEndInCarriageReturns) {
  CopyFromOptions header;
  header.format.header = true;
  EXPECT_EQ(Copy("1,x\r2,y\r"), (Lines{"[1][x]", "[2][y]"}));
  EXPECT_EQ(Copy("1,x\r2,y"), (Lines{"[1][x]", "[2][y]"}));
  EXPECT_EQ(Copy("a,b\r1,x\r2,y\r", header), (Lines{"[1][x]", "[2][y]"}));
  EXPECT_EQ(Copy("a,b\r", header), Lines{});
  EXPECT_EQ(Copy("\xEF\xBB\xBF"
                 "1,x\r2,\r"),
            (Lines{"[1][x]", "[2]null"}));
  EXPECT_EQ(Copy("1,\"two\nlines\"\r2,\"and\rthree\r\n\"\r"), (Lines{"[1][two\nlines]", "[2][and\rthree\r\n]"}));
  EXPECT_EQ(Copy("1,x\rabc,y\r"),
            Lines{"error: \"f.csv\", line 2, column \"a\": invalid input syntax for type integer: \"abc\""});
  EXPECT_EQ(Copy("1,x\r\r2,y\r"),
            Lines{"error: \"f.csv\", line 2, column \"b\": missing field, the record has 1 of 2: \"\""});
  EXPECT_EQ(Copy("1,\"x\r2,y"),
            Lines{"error: \"f.csv\", line 1, column \"b\": unterminated quoted field: \"1,\"x\\x0d2,y\""});
  CopyFromOptions options;
  options.format.quote = '\'';
  options.format.escape = '\\';
  EXPECT_EQ(Copy("1,'it\\'s\r'\r2,a\\b\r", options), (Lines{"[1][it's\r]", "[2][a\\b]"}));
}

TEST_F(TabletCsv, CarriageReturnsAcrossBlocks) {
  // Longer than what is looked through for a line feed; all three line ends after that.
  std::string text;
  Lines rows;
  for (int i = 0; i < 70000; ++i) {
    const std::string number = std::to_string(i);
    const char* const end = i < 65000 ? "\r" : i % 3 == 0 ? "\r\n" : i % 3 == 1 ? "\n" : "\r";
    text += number + ",\"a\rb\r\n\"\"c\"" + end;
    rows.push_back("[" + number + "][a\rb\r\n\"c]");
  }
  Write(text);
  for (const size_t block_bytes : {size_t{1}, size_t{7}, size_t{1000}, size_t{65537}, kCsvBlockBytes}) {
    CopyFromOptions options;
    options.threads = 2;
    BlockLoad load;
    const Status status = load.Run(file_, options, block_bytes);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(load.Rows(), rows) << block_bytes;
  }
}

TEST_F(TabletCsv, FilesThatAreNotText) {
  using std::string_literals::operator""s;
  const std::pair<std::string, std::string> files[] = {
      {"\xfd\x37zXZ\0\0\4"s, "an xz file"},
      {"PK\3\4\x14\0"s, "a zip archive"},
      {"BZh91AY&SY\1\2"s, "a bzip2 file"},
      {"\4\x22\x4d\x18\x64"s, "an lz4 file"},
      {"ARROW1\0\0"s, "an Arrow file"},
      {"ORC\x08\x03"s, "an ORC file"},
      {"SQLite format 3\0"s, "a SQLite database"},
      {"PAR1\x15\4\x15"s, "a Parquet file"},
      {"\xff\xfe"s + "1\0,\0x\0\n\0"s, "UTF-16 text"},
      {"\xfe\xff"s + "\0001\0,\0x\0\n"s, "UTF-16 text"},
  };
  CopyFromOptions header;
  header.format.header = true;  // skips all of a file without line feeds
  for (const auto& [text, what] : files) {
    for (const CopyFromOptions& options : {CopyFromOptions(), header}) {
      EXPECT_EQ(Copy(text, options), Lines{"error: \"f.csv\" is " + what + ", not CSV"});
      EXPECT_EQ(code_, ErrorCode::kUnsupported);
    }
  }
  const Status status = database_->CopyFrom("t", file_, {}).status();
  // What could be unpacked, but is cut off.
  for (const auto& [text, what] :
       {std::pair{"\x1f\x8b\x08\0\0\0\0\0\0\3"s, "gzip"}, {"\x28\xb5\x2f\xfd\x04\x00"s, "zstd"}}) {
    EXPECT_EQ(Copy(text, header),
              Lines{std::string("error: \"f.csv\" is damaged: the ") + what + " file ends too early"});
    EXPECT_EQ(code_, ErrorCode::kIo);
  }
  EXPECT_EQ(
      status.hint(),
      "COPY reads text in UTF-8. Convert it on the way: iconv -f UTF-16 -t UTF-8 FILE | tessera DATABASE -c \"COPY "
      "... FROM STDIN ...\"");
  CreateTable("words", {{"a", SqlType::Text(), false}, {"b", kInteger, false}});
  EXPECT_EQ(Copy("PAR1,1\nPK,2\n", {}, "words"), (Lines{"[PAR1][1]", "[PK][2]"})) << "text";
}

TEST_F(TabletCsv, AllTypes) {
  CreateTable("all", {{"b", SqlType::Of(TypeId::kBoolean), false},
                      {"s", SqlType::Of(TypeId::kSmallint), false},
                      {"l", SqlType::Of(TypeId::kBigint), false},
                      {"r", SqlType::Of(TypeId::kReal), false},
                      {"d", SqlType::Of(TypeId::kDouble), false},
                      {"m", SqlType::Decimal(9, 2), false},
                      {"w", SqlType::Decimal(25, 2), false},
                      {"y", SqlType::Of(TypeId::kDate), false},
                      {"z", SqlType::Of(TypeId::kTimestamp), false}});
  EXPECT_EQ(
      Copy("t,-3,9223372036854775807,0.1,1e300,1.005,-12345678901234567890.5,1998-12-01,1998-12-01T10:00\n"
           ",,,,,,,,\n"
           " f , 3 , 4 , 5 , 6 , 7 , 8 , 2000-01-01 , 2000-01-01 \n",
           {}, "all"),
      (Lines{"[true][-3][9223372036854775807][0.1][1e+300][1.01][-12345678901234567890.50][1998-12-01][1998-12-01 "
             "10:00:00]",
             "nullnullnullnullnullnullnullnullnull",
             "[false][3][4][5][6][7.00][8.00][2000-01-01][2000-01-01 00:00:00]"}));
}

/// Random CSV with quotes, line feeds in quotes and NULLs, and the rows that it means.
std::pair<std::string, std::vector<std::string>> RandomCsv(uint64_t seed, int records) {
  std::mt19937_64 random(seed);
  std::string text;
  std::vector<std::string> rows;
  for (int i = 0; i < records; ++i) {
    text += std::to_string(i) + ",";
    std::string value;
    switch (random() % 5) {
      case 0:
        text += "\n";
        rows.push_back(Bracketed(std::to_string(i)).append("null"));
        continue;
      case 1:
        value = std::string(random() % 30, 'p');
        text += value.empty() ? "\"\"" : value;
        break;
      default: {
        text += '"';
        for (uint64_t k = random() % 40; k > 0; --k) {
          const char c = "ab,\n\r\"|x \t"[random() % 10];
          value += c;
          text += c;
          if (c == '"') text += c;
        }
        text += '"';
        break;
      }
    }
    text += random() % 2 == 0 ? "\n" : "\r\n";
    rows.push_back(Bracketed(std::to_string(i)) + Bracketed(value));
  }
  return {text, rows};
}

/// Where other lines end in line feeds, a bare carriage return outside quotes is refused with its line: whether it ends
/// a line or belongs to its field cannot be known.
TEST_F(TabletCsv, CarriageReturnsAmongLineFeeds) {
  const auto refused = [](int line, const char* column, const std::string& field) {
    return Lines{"error: \"f.csv\", line " + std::to_string(line) + ", column \"" + column +
                 "\": carriage return outside quotes that is no line end, because other lines end in a line feed: \"" +
                 field + "\""};
  };
  EXPECT_EQ(Copy("1,x\ry\n2,z\r\n"), refused(1, "b", "x\\x0dy"));
  EXPECT_EQ(Copy("1,x\n2,y\r3,z\n"), refused(2, "b", "y\\x0d3"));
  EXPECT_EQ(Copy("1,x\n\r2,y\n"), refused(2, "a", "\\x0d2"));
  EXPECT_EQ(Copy("1,x\n2,y\r\r\n"), refused(2, "b", "y\\x0d\\x0d"));
  EXPECT_EQ(Copy("1,\"x\ny\"\r2,z\n"), refused(1, "b", "\"x\\x0ay\"\\x0d2"));
  EXPECT_EQ(Copy("1,\"x\r\"\r\n2,y\n"), (Lines{"[1][x\r]", "[2][y]"}));
  CopyFromOptions escape;
  escape.format.escape = '\\';
  EXPECT_EQ(Copy("1,x\n2,\"y\\\"\r\"\r3,z\n", escape), refused(2, "b", "\"y\\\"\\x0d\"\\x0d3"));
  EXPECT_EQ(Copy("1,\"x\r\"\r\n2,y\n", escape), (Lines{"[1][x\r]", "[2][y]"}));
  CopyFromOptions header;
  header.format.header = true;
  EXPECT_EQ(Copy("a,b\r1,x\n2,y\n", header), refused(1, "b", "b\\x0d1"));
  // At every place of the 64 bytes that are looked at together.
  for (size_t at = 60; at < 200; ++at) {
    const std::string line = "1," + std::string(at, 'x');
    EXPECT_EQ(Copy(line + "\r\n" + line + "\n").size(), 2u) << at;
    EXPECT_EQ(Copy(line + "\r" + line + "\n").size(), 1u) << at;
    EXPECT_NE(Copy(line + "\r" + line + "\n")[0].find("error: "), std::string::npos) << at;
  }
}

TEST_F(TabletCsv, ByteOrderMarkInAField) {
  const std::string mark = "\xEF\xBB\xBF";
  CreateTable("marked", {{"a", SqlType::Text(), false}});
  for (const bool header : {false, true}) {
    CopyFormat to;
    to.header = header;
    RowBatch batch;
    batch.rows = 2;
    batch.columns.resize(1);
    batch.columns[0].type = SqlType::Text();
    batch.columns[0].bytes = mark + "x" + mark;
    batch.columns[0].offsets = {0, 4, 7};
    auto writer = CsvWriter::Create(file_, to, {mark + "name"});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(batch).ok());
    ASSERT_TRUE((*writer)->Close().ok());
    CopyFromOptions from;
    from.format.header = header;
    ASSERT_TRUE(database_->CopyFrom("marked", file_, from).ok());
  }
  EXPECT_EQ(Rows("marked"), (Lines{Bracketed(mark + "x"), Bracketed(mark), Bracketed(mark + "x"), Bracketed(mark)}));
}

TEST_F(TabletCsv, TextsThatBeginLikeOtherFiles) {
  CreateTable("odd", {{"a", SqlType::Text(), false}});
  for (const std::string& text : {std::string("PK\x03\x04"), std::string("PAR1\x01"), std::string("a\x01")}) {
    RowBatch batch;
    batch.rows = 1;
    batch.columns.resize(1);
    batch.columns[0].type = SqlType::Text();
    batch.columns[0].bytes = text;
    batch.columns[0].offsets = {0, text.size()};
    auto writer = CsvWriter::Create(file_, {}, {"a"});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(batch).ok() && (*writer)->Close().ok());
    const Result<uint64_t> copied = database_->CopyFrom("odd", file_, {});
    EXPECT_TRUE(copied.ok()) << copied.status().message();
    EXPECT_EQ(Rows("odd").back(), Bracketed(text));
  }
}

TEST_F(TabletCsv, BlocksMayEndAnywhere) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto [text, rows] = RandomCsv(seed, 200);
    Write(text);
    CopyFromOptions options;
    options.threads = 1 + static_cast<int>(seed % 4);
    const size_t block_bytes = 1 + seed * seed % 701;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", blocks of " + std::to_string(block_bytes));
    BlockLoad load;
    Status status = load.Run(file_, options, block_bytes);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(load.Rows(), rows);
    // One bad record: its line, whatever the blocks and threads.
    std::mt19937_64 random(seed);
    const size_t bad = random() % 200, worse = random() % 200;
    size_t at = 0, line = 1, record = 0, bad_line = 0;
    std::string broken;
    for (bool quoted = false; at < text.size(); ++at) {
      if (record == bad && bad_line == 0) bad_line = line;
      if ((record == bad || record == worse) && (at == 0 || (text[at - 1] == '\n' && !quoted))) broken += 'x';
      broken += text[at];
      if (text[at] == '"') quoted = !quoted;
      if (text[at] == '\n') {
        ++line;
        record += !quoted;
      }
    }
    if (worse < bad) continue;
    Write(broken);
    status = load.Run(file_, options, block_bytes);
    EXPECT_EQ(status.ok() ? "" : status.message(), "\"" + file_ + "\", line " + std::to_string(bad_line) +
                                                       ", column \"a\": invalid input syntax for type integer: \"x" +
                                                       std::to_string(bad) + "\"");
  }
}

TEST_F(TabletCsv, EscapeOtherThanQuoteAcrossBlocks) {
  std::string text;
  std::vector<std::string> rows;
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(i) + ",\"" + std::string(static_cast<size_t>(i % 7), 'y') + "\\\"\\\\\n,\\\\\"\n";
    rows.push_back(Bracketed(std::to_string(i)) +
                   Bracketed(std::string(static_cast<size_t>(i % 7), 'y').append("\"\\\n,\\")));
  }
  Write(text);
  for (size_t block_bytes = 1; block_bytes < 60; ++block_bytes) {
    CopyFromOptions options;
    options.format.escape = '\\';
    options.threads = 2;
    BlockLoad load;
    const Status status = load.Run(file_, options, block_bytes);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(load.Rows(), rows) << block_bytes;
  }
}

TEST_F(TabletCsv, LargeFileOnSeveralThreads) {
  std::string text;
  constexpr int kRows = 400000;
  for (int i = 0; i < kRows; ++i) text += std::to_string(i) + ",name " + std::to_string(i % 1000) + "\n";
  Write(text);
  CopyFromOptions options;
  options.threads = 4;
  std::atomic<uint64_t> last{0};
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_LE(done, all);
    last = done;
  };
  const auto copied = database_->CopyFrom("t", file_, options);
  ASSERT_TRUE(copied.ok()) << copied.status().message();
  EXPECT_EQ(*copied, static_cast<uint64_t>(kRows));
  EXPECT_EQ(last.load(), text.size());
  auto snapshot = database_->Read();
  const auto table = (*snapshot)->Find("t");
  ASSERT_EQ(table->tablets.size(), 7u);
  int64_t expected = 0;
  for (const auto& tablet : table->tablets) {
    ColumnVector a, b;
    a.type = kInteger;
    b.type = SqlType::Text();
    DecodeChunk(**tablet->Chunk(0), 0, tablet->rows(), &a);
    DecodeChunk(**tablet->Chunk(1), 0, tablet->rows(), &b);
    for (size_t row = 0; row < a.size(); ++row, ++expected) {
      ASSERT_EQ(a.fixed[row], expected);
      ASSERT_EQ(b.Text(row), "name " + std::to_string(expected % 1000));
    }
  }
  EXPECT_EQ(expected, kRows);
  EXPECT_EQ(table->statistics[1].distinct, 1000u);
}

TEST_F(TabletCsv, Cancel) {
  std::string text;
  for (int i = 0; i < 3000000; ++i) text += std::to_string(i) + ",some text that takes a while\n";
  Write(text);
  for (const int wait_ms : {0, 5, 30}) {
    std::atomic<bool> cancel{false};
    CopyFromOptions options;
    options.threads = 2;
    options.cancel = &cancel;
    std::chrono::steady_clock::time_point asked;
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      asked = std::chrono::steady_clock::now();
      cancel = true;
    });
    const auto copied = database_->CopyFrom("t", file_, options);
    const auto ended = std::chrono::steady_clock::now();
    stopper.join();
    ASSERT_FALSE(copied.ok());
    EXPECT_EQ(copied.status().code(), ErrorCode::kCancelled);
    // 100 ms is the promise; a loaded machine under a sanitizer gets more.
    EXPECT_LT(ended - asked, std::chrono::milliseconds(1000));
  }
  EXPECT_TRUE(Rows("t").empty());
}

TEST_F(TabletCsv, APipeIsReadToo) {
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream out(pipe);
    for (int i = 0; i < 100000; ++i) out << i << ",x\n";
  });
  const auto copied = database_->CopyFrom("t", pipe, {});
  writer.join();
  ASSERT_TRUE(copied.ok()) << copied.status().message();
  EXPECT_EQ(*copied, 100000u);
}

TEST_F(TabletCsv, EmptyLinesBehindTheLastRecord) {
  for (const std::string end : {"\n", "\n\n", "\r\n\r\n", "\n\r\n\n\n"}) {
    EXPECT_EQ(Copy("1,x\n2,y\n" + end), (Lines{"[1][x]", "[2][y]"}));
    EXPECT_EQ(Copy("1,x\r\n2,y\r\n" + end), (Lines{"[1][x]", "[2][y]"}));
    EXPECT_EQ(Copy(end), Lines{});
  }
  EXPECT_EQ(Copy("1,x\n\n2,y\n"),
            Lines{"error: \"f.csv\", line 2, column \"b\": missing field, the record has 1 of 2: \"\""});
  EXPECT_EQ(Copy("1,x\n2,\"y\n\n"),
            Lines{"error: \"f.csv\", line 2, column \"b\": unterminated quoted field: \"2,\"y\\x0a\\x0a\""});
  EXPECT_EQ(Copy("1,\"x\n\n\"\n\n"), Lines{"[1][x\n\n]"}) << "those in quotes stay";
  // Lines that end in carriage returns.
  EXPECT_EQ(Copy("1,x\r2,y\r\r\r"), (Lines{"[1][x]", "[2][y]"}));
  CreateTable("one", {{"a", SqlType::Text(), false}});
  EXPECT_EQ(Copy("x\n\n\n", {}, "one"), (Lines{"[x]", "null", "null"})) << "rows";
  // Wherever a block ends.
  for (size_t block = 1; block < 40; ++block) {
    for (const bool more : {false, true}) {
      Write("1,x\n2,y\n\n\n\r\n\n\n" + std::string(more ? "3,z\n\n" : ""));
      BlockLoad load;
      const Status status = load.Run(file_, {}, block);
      EXPECT_EQ(status.ok(), !more);
      if (more) {
        EXPECT_NE(status.message().find("line 3, column \"b\": missing field"), std::string::npos) << status.message();
      } else {
        EXPECT_EQ(load.Rows(), (Lines{"[1][x]", "[2][y]"})) << block;
      }
    }
  }
}

TEST_F(TabletCsv, BytesWithoutEmptyLinesAtTheEnd) {
  const auto bytes = [&](const std::string& text) {
    Write(text);
    return CsvFile::Open(file_).value().BytesWithoutBlankEnd().value();
  };
  EXPECT_EQ(bytes(""), 0u);
  EXPECT_EQ(bytes("\n\n"), 0u);
  EXPECT_EQ(bytes("a"), 1u);
  EXPECT_EQ(bytes("a\n"), 2u);
  EXPECT_EQ(bytes("a\n\n\n"), 2u);
  EXPECT_EQ(bytes("a\r\n\n"), 3u);
  EXPECT_EQ(bytes("a\r\r\n"), 4u) << "an error of the load";
  for (const size_t lines : {62, 63, 64, 65, 1000, 1024, 5000})
    EXPECT_EQ(bytes("1,x\n" + std::string(lines, '\n')), 4u) << lines;
  EXPECT_EQ(bytes(std::string(5000, '\n')), 0u);
}

TEST_F(TabletCsv, HeadersAreFollowed) {
  TableSchema schema;
  schema.columns = {{"a", kInteger, false}, {"b", SqlType::Text(), false}, {"B", kInteger, false}};
  std::string warning;
  const auto columns = [&](const std::string& text, bool match = false, std::vector<int> given = {}) {
    Write(text);
    CopyFromOptions options;
    options.format.header = true;
    options.columns = std::move(given);
    warning.clear();
    const Status status = FollowHeader(file_, schema, match, &options, &warning);
    if (!status.ok()) warning = status.message();
    return options.columns;
  };
  using Columns = std::vector<int>;
  EXPECT_EQ(columns("a,b,B\n"), Columns{}) << "as they are";
  EXPECT_EQ(columns("B,A,b"), (Columns{2, 0, 1}));
  EXPECT_EQ(columns("\"b\", A ,\"B\"\r\n1,2,3\r\n"), (Columns{1, 0, 2}));
  EXPECT_EQ(columns("b,a\n", false, {0, 1}), (Columns{1, 0}));
  EXPECT_EQ(columns("a|\"b\n\"\n"), Columns{});
  EXPECT_NE(warning, "");
  EXPECT_EQ(columns(""), Columns{});
  EXPECT_EQ(warning, "");
  EXPECT_EQ(columns("a,a,b\n"), Columns{}) << "a name that stands twice is none";
  EXPECT_NE(warning, "");
  EXPECT_EQ(columns("a,b,B,\n"), Columns{});
  EXPECT_EQ(warning, "") << "lines end with a delimiter";
  (void)columns("a,B,b\n", true);
  EXPECT_NE(warning.find("line 1: column name mismatch in header line field 2: got \"B\", expected \"b\""),
            std::string::npos)
      << warning;
}

TEST_F(TabletCsv, WriterRoundTrip) {
  CreateTable("u", {{"a", kInteger, false}, {"b", SqlType::Text(), false}});
  const auto [text, rows] = RandomCsv(7, 500);
  ASSERT_EQ(Copy(text), rows);
  for (const CopyFormat& to : std::vector<CopyFormat>{{},
                                                      {'|', true, "", '"', '"'},
                                                      {',', false, "NULL", '"', '"'},
                                                      {';', true, "x", '\'', '\\'},
                                                      {'1', false, "", '"', '"'}}) {
    const std::string out = directory_ + "/out.csv";
    {
      auto writer = CsvWriter::Create(out, to, {"a", "the \"b\""});
      ASSERT_TRUE(writer.ok());
      auto snapshot = database_->Read();
      for (const auto& tablet : (*snapshot)->Find("t")->tablets) {
        RowBatch batch;
        batch.rows = tablet->rows();
        batch.columns.resize(2);
        for (int c = 0; c < 2; ++c) {
          batch.columns[static_cast<size_t>(c)].type =
              (*snapshot)->Find("t")->schema.columns[static_cast<size_t>(c)].type;
          DecodeChunk(**tablet->Chunk(c), 0, tablet->rows(), &batch.columns[static_cast<size_t>(c)]);
        }
        ASSERT_TRUE((*writer)->Append(batch).ok());
      }
      ASSERT_TRUE((*writer)->Close().ok());
    }
    CopyFromOptions from;
    from.format = to;
    ASSERT_TRUE(database_->DropTable("u", false).ok());
    CreateTable("u", {{"a", kInteger, false}, {"b", SqlType::Text(), false}});
    const auto copied = database_->CopyFrom("u", out, from);
    ASSERT_TRUE(copied.ok()) << copied.status().message();
    EXPECT_EQ(Rows("u"), rows);
    fs::remove(out);
  }
}

TEST_F(TabletCsv, WriterLeavesTheOldFileUntilClose) {
  const std::string out = directory_ + "/out.csv";
  std::ofstream(out) << "old";
  const size_t before =
      static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  RowBatch batch;
  batch.rows = 1;
  batch.columns.resize(2);
  batch.columns[0].type = kInteger;
  batch.columns[0].Append(Value::Int(kInteger, 1));
  batch.columns[1].type = SqlType::Text();
  batch.columns[1].Append(Value::Text("x,\"y\""));
  {
    auto writer = CsvWriter::Create(out, {}, {});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(batch).ok());
  }
  auto contents = [&] {
    std::ifstream in(out);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(contents(), "old");
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator())), before);
  auto writer = CsvWriter::Create(out, {}, {});
  ASSERT_TRUE((*writer)->Append(batch).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_EQ(contents(), "1,\"x,\"\"y\"\"\"\n");
  EXPECT_FALSE(CsvWriter::Create(directory_, {}, {}).ok());
  EXPECT_FALSE(CsvWriter::Create(directory_ + "/none/out.csv", {}, {}).ok());
  auto null = CsvWriter::Create("/dev/null", {}, {});
  ASSERT_TRUE(null.ok());
  EXPECT_TRUE((*null)->Append(batch).ok() && (*null)->Close().ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace tessera
