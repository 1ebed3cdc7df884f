// Database directories as a stranger might have made them: catalogs whose checksums are right and whose values are not,
// and other things in place of files. Each is an error, at once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/database.h"
#include "tablet/files/tablet.h"
#include "tablet/files/tablet_file.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/tablet/sample_database.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class TabletHostile : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string path = (parent / "tablet-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    database_ = directory_ + "/d";
    catalog_ = database_ + "/catalog.sqlite";
    const Status filled = FillSampleDatabase(database_, 1);
    ASSERT_TRUE(filled.ok()) << filled.message();
    alarm(60);  // what hangs ends here
  }
  void TearDown() override {
    alarm(0);
    fs::remove_all(directory_);
  }

  void Change(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(catalog_.c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << sql << ": " << message;
    CorrectChecksums(db);
    sqlite3_close(db);
  }

  /// Reads everything, then adds a row to "small".
  Status Use() {
    TESSERA_ASSIGN(const std::unique_ptr<Database> database, Database::Open(database_, OpenMode::kReadWrite));
    TESSERA_ASSIGN(const std::string contents, ContentsOf(database.get()));
    TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write("small"));
    RowBatch batch;
    batch.rows = 1;
    batch.columns.resize(1);
    batch.columns[0].type = SqlType::Of(TypeId::kInteger);
    batch.columns[0].fixed = {100};
    TESSERA_TRY(writer->Append(batch, 1));
    return writer->Commit();
  }

  std::string directory_, database_, catalog_;
};

TEST_F(TabletHostile, NoCatalogValueIsBelieved) {
  const std::string kConstraints =
      "CREATE TABLE constraints (table_id INTEGER NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT "
      "NOT "
      "NULL, value TEXT NOT NULL); INSERT INTO constraints VALUES ";
  // (As the program writes them, or the tables themselves would be refused.)
  const std::string kViews =
      "CREATE TABLE views (\n  name   TEXT PRIMARY KEY,\n  query  TEXT NOT NULL\n); CREATE TABLE view_columns (\n"
      "  view      TEXT NOT NULL REFERENCES views (name),\n  position  INTEGER NOT NULL,\n  name      TEXT NOT NULL,\n"
      "  output    TEXT NOT NULL,\n  type      TEXT NOT NULL,\n  PRIMARY KEY (view, position)\n); ";
  const std::string good = ReadWholeFile(catalog_);
  Change("SELECT 1");
  const Result<std::string> same = ContentsOf(database_, OpenMode::kReadOnly);
  ASSERT_TRUE(same.ok()) << same.status().message();
  for (const std::string& sql : std::vector<std::string>{
           "UPDATE columns SET precision = 39 WHERE name = 'wide'",
           "UPDATE columns SET precision = 255 WHERE name = 'wide'",
           "UPDATE columns SET precision = 38 + 256 WHERE name = 'wide'",
           "UPDATE columns SET precision = 0 WHERE name = 'wide'",
           "UPDATE columns SET scale = 39 WHERE name = 'wide'",
           "UPDATE columns SET precision = 10, scale = 11 WHERE name = 'wide'",
           "UPDATE columns SET precision = 5 WHERE name = 'wide'",
           "UPDATE columns SET precision = 5 WHERE name = 'frame'",
           "UPDATE columns SET length = -1 WHERE name = 'plain'",
           "UPDATE columns SET length = 20 + 4294967296 WHERE name = 'plain'",
           "UPDATE columns SET length = 7 WHERE name = 'frame'",
           "UPDATE columns SET type = 0 WHERE name = 'frame'",
           "UPDATE columns SET type = 11 WHERE name = 'frame'",
           "UPDATE columns SET type = 3 + 256 WHERE name = 'frame'",
           "UPDATE columns SET type = 1, min = 0, max = 1 WHERE name = 'frame'",
           "UPDATE columns SET type = 'INTEGER' WHERE name = 'frame'",
           "UPDATE columns SET not_null = 2 WHERE name = 'frame'",
           "UPDATE columns SET not_null = 0 WHERE name = 'k'",
           "UPDATE columns SET not_null = 1 WHERE name = 'frame'",
           "UPDATE columns SET key_position = 1 WHERE name = 'k'",
           "UPDATE columns SET key_position = -1 WHERE name = 'k'",
           "UPDATE columns SET key_position = 0, not_null = 1, null_count = 0",
           "UPDATE columns SET position = position + 100",
           "UPDATE columns SET position = 1099511627776 WHERE name = 'real'",
           "UPDATE columns SET name = 'frame' WHERE name = 'real'",
           "UPDATE columns SET name = '' WHERE name = 'real'",
           "UPDATE columns SET name = x'FF' WHERE name = 'real'",
           "UPDATE columns SET name = CAST(x'FF' AS TEXT) WHERE name = 'real'",
           "UPDATE columns SET name = CAST(x'610062' AS TEXT) WHERE name = 'real'",
           "UPDATE columns SET min = NULL WHERE name = 'frame'",
           "UPDATE columns SET min = 2000 WHERE name = 'frame'",
           "UPDATE columns SET max = 3000000000 WHERE name = 'frame'",
           "UPDATE columns SET min = 'x' WHERE name = 'frame'",
           "UPDATE columns SET min = 0, max = 1 WHERE name = 'plain'",
           "UPDATE columns SET null_count = -1 WHERE name = 'frame'",
           "UPDATE columns SET null_count = 1001 WHERE name = 'frame'",
           "UPDATE columns SET distinct_count = 1001 WHERE name = 'frame'",
           "UPDATE columns SET distinct_count = 9223372036854775807 WHERE name = 'frame'",
           "UPDATE columns SET encoded_bytes = -1 WHERE name = 'frame'",
           "DELETE FROM columns WHERE table_id = 2",
           "DELETE FROM columns WHERE name = 'real'",
           "DELETE FROM tables WHERE id = 2",
           "UPDATE columns SET table_id = 3 WHERE table_id = 2",
           "UPDATE tables SET version = 9223372036854775807",
           "UPDATE tables SET version = 0",
           "UPDATE tables SET version = 1.5",
           "UPDATE tables SET id = 9223372036854775807 WHERE id = 2",
           "UPDATE tables SET id = -2 WHERE id = 2",
           "UPDATE tables SET name = '' WHERE id = 2",
           "UPDATE tables SET name = CAST(x'C0AF' AS TEXT) WHERE id = 2",
           "UPDATE tables SET name = CAST(x'7300' AS TEXT) WHERE id = 2",
           "UPDATE tables SET name = x'73' WHERE id = 2",
           "UPDATE tables SET tablet_rows = 4294967295",
           "UPDATE tables SET tablet_rows = 1048577",
           "UPDATE tables SET tablet_rows = -1",
           "UPDATE tables SET tablet_rows = 0",
           "UPDATE tables SET tablet_rows = 399 WHERE id = 1",
           "UPDATE tables SET declared_tablet_rows = 1048577",
           "UPDATE tables SET declared_tablet_rows = 400 + 4294967296 WHERE id = 1",
           "UPDATE tablets SET rows = 4294967295",
           "UPDATE tablets SET rows = 0 WHERE id = 4",
           "UPDATE tablets SET rows = -1 WHERE id = 4",
           "UPDATE tablets SET rows = 5 + 4294967296 WHERE id = 4",
           "UPDATE tablets SET rows = 399 WHERE id = 1",
           "UPDATE tables SET tablet_rows = 4294967295; WITH RECURSIVE n(i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM n "
           "WHERE "
           "i < 1000) INSERT INTO tablets SELECT i, 1, i, 4294967295, 4096, 0 FROM n; UPDATE database SET "
           "next_tablet_id = "
           "2000",
           "UPDATE tablets SET file_bytes = -1 WHERE id = 4",
           "UPDATE tablets SET file_bytes = 9223372036854775807 WHERE id = 4",
           "UPDATE tablets SET file_bytes = 0 WHERE id = 4",
           "UPDATE tablets SET position = 7 WHERE id = 4",
           "UPDATE tablets SET id = 5 WHERE id = 4",
           "UPDATE tablets SET id = 9223372036854775807 WHERE id = 4",
           "UPDATE tablets SET id = -4 WHERE id = 4",
           kConstraints + "(2, 0, 'buckets', '', '0')",
           kConstraints + "(2, 0, 'distribute', '', '0')",
           kConstraints + "(2, 0, 'distribute', '', '1'), (2, 1, 'buckets', '', '0')",
           kConstraints + "(2, 0, 'distribute', '', '0'), (2, 1, 'buckets', '', 'p')",
           kConstraints + "(2, 0, 'distribute', '', '0'), (2, 1, 'buckets', '', '00')",
           kViews + "INSERT INTO views VALUES ('v', 'SELECT 1')",
           kViews + "INSERT INTO views VALUES ('v', ''); INSERT INTO view_columns VALUES ('v', 0, 'a', 'a', 'TEXT')",
           kViews +
               "INSERT INTO views VALUES ('', 'SELECT'); INSERT INTO view_columns VALUES ('', 0, 'a', 'a', 'TEXT')",
           kViews + "INSERT INTO views VALUES (NULL, 'SELECT 1')",
           kViews + "INSERT INTO views VALUES (x'76', 'SELECT 1')",
           kViews + "INSERT INTO views VALUES ('v', x'53')",
           kViews +
               "INSERT INTO views VALUES ('v', CAST(x'53FF' AS TEXT)); INSERT INTO view_columns VALUES ('v', 0, 'a', "
               "'a', 'TEXT')",
           kViews + "INSERT INTO view_columns VALUES ('v', 0, 'a', 'a', 'TEXT')",
           kViews +
               "INSERT INTO views VALUES ('v', 'SELECT 1'); INSERT INTO view_columns VALUES ('v', 1, 'a', 'a', 'TEXT')",
           kViews +
               "INSERT INTO views VALUES ('v', 'SELECT 1'); INSERT INTO view_columns VALUES ('v', 0, '', 'a', 'TEXT')",
           kViews + "INSERT INTO views VALUES ('v', 'SELECT 1'); INSERT INTO view_columns VALUES ('v', 0, 'a', 'a', "
                    "'TEXT'), "
                    "('v', 1, 'a', 'a', 'TEXT')",
           "UPDATE database SET next_table_id = 9223372036854775807",
           "UPDATE database SET next_tablet_id = 9223372036854775807",
           "UPDATE database SET next_tablet_id = 4",
           "UPDATE database SET next_table_id = 2",
           "UPDATE database SET next_table_id = 0",
           "UPDATE database SET next_table_id = 'three'",
           "UPDATE database SET id = '0123456789abcdef'",
           "UPDATE database SET id = x'00'",
           "DELETE FROM database",
           "CREATE TABLE more (a)",
           "CREATE INDEX more ON tables (name)",
           "CREATE TRIGGER more AFTER INSERT ON tables BEGIN DELETE FROM tablets; END",
           "CREATE VIEW more AS SELECT * FROM tables",
           "DROP TABLE tablets; CREATE VIEW tablets AS SELECT 1 AS id, 1 AS table_id, 0 AS position, 1 AS rows, 1 AS "
           "file_bytes, 1 AS header_checksum",
       }) {
    WriteNewFile(catalog_, good);
    Change(sql);
    if (HasFatalFailure()) return;
    const Status used = Use();
    EXPECT_FALSE(used.ok()) << sql;
    if (used.ok()) continue;
    EXPECT_EQ(used.code(), ErrorCode::kCorrupt) << sql << ": " << used.message();
    EXPECT_EQ(used.message().find("checksum of"), std::string::npos) << sql << ": " << used.message();
    EXPECT_EQ(used.message().find("wrong checksum"), std::string::npos) << sql << ": " << used.message();
  }
}

TEST_F(TabletHostile, WhatIsNotAFileIsAnErrorAtOnce) {
  const std::string kept = directory_ + "/kept";
  fs::copy(database_, kept, fs::copy_options::recursive);
  for (const std::string& name :
       std::vector<std::string>{"catalog.sqlite", "catalog.sqlite-journal", "catalog.sqlite-wal", "writer.lock",
                                "readers.lock", TabletFileName(4)}) {
    const std::string path = database_ + "/" + name;
    for (const char* const what : {"FIFO", "directory", "loop", "device", "dangling link", "link"}) {
      fs::remove_all(database_);
      fs::copy(kept, database_, fs::copy_options::recursive);
      fs::remove(path);
      const std::string kind = what;
      if (kind == "FIFO") {
        ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
      }
      if (kind == "directory") fs::create_directory(path);
      if (kind == "loop") fs::create_symlink(path, path);
      if (kind == "device") fs::create_symlink("/dev/zero", path);
      if (kind == "dangling link") fs::create_symlink(directory_ + "/elsewhere", path);
      if (kind == "link") {
        WriteNewFile(kept + "/catalog.sqlite-journal", "");
        WriteNewFile(kept + "/catalog.sqlite-wal", "");
        fs::create_symlink(kept + "/" + name, path);
      }
      const Status used = Use();
      fs::remove(kept + "/catalog.sqlite-journal");
      fs::remove(kept + "/catalog.sqlite-wal");
      ASSERT_FALSE(used.ok()) << name << ": " << what;
      EXPECT_EQ(used.code(), ErrorCode::kCorrupt) << name << ": " << what << ": " << used.message();
      EXPECT_NE(used.message().find(name), std::string::npos) << what << ": " << used.message();
      EXPECT_FALSE(fs::exists(directory_ + "/elsewhere")) << name;
    }
  }
}

TEST_F(TabletHostile, ATabletThatIsCutWhileItIsMappedIsAnError) {
  const std::string path = database_ + "/" + TabletFileName(1), good = ReadWholeFile(path);
  const std::vector<SqlType> types = SampleTypes();
  size_t cuts = 0;
  for (size_t size = 0; size < good.size(); size += 1111, ++cuts) {
    WriteNewFile(path, good);
    const auto database = Database::Open(database_, OpenMode::kReadOnly);
    ASSERT_TRUE(database.ok());
    const auto snapshot = (*database)->Read();
    ASSERT_TRUE(snapshot.ok());
    const Tablet& tablet = *(*snapshot)->Find("t")->tablets[0];
    std::vector<ChunkPointer> chunks;
    for (size_t c = 0; c < types.size(); ++c) {
      const auto chunk = tablet.Chunk(static_cast<int>(c));
      ASSERT_TRUE(chunk.ok()) << chunk.status().message();
      chunks.push_back(*chunk);
    }
    ASSERT_TRUE(tablet.Intact().ok());
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(size)), 0);
    // Whatever it reads, it lives; once a whole page is gone, the tablet says so.
    for (size_t c = 0; c < types.size(); ++c) {
      ColumnVector values;
      values.type = types[c];
      DecodeChunk(*chunks[c], 0, chunks[c]->rows, &values);
      EXPECT_EQ(values.size(), 400u);
    }
    if ((size + 4095) / 4096 < (good.size() + 4095) / 4096) {
      const Status intact = tablet.Intact();
      ASSERT_FALSE(intact.ok()) << size;
      EXPECT_EQ(intact.code(), ErrorCode::kCorrupt);
      EXPECT_NE(intact.message().find(path), std::string::npos) << intact.message();
      EXPECT_FALSE(tablet.Chunk(0).ok());
    }
  }
  EXPECT_GT(cuts, 10u);
}

TEST_F(TabletHostile, ASigbusOfOthersStillEndsTheProcess) {
  ASSERT_TRUE(ContentsOf(database_, OpenMode::kReadOnly).ok());
  const std::string path = directory_ + "/other";
  WriteNewFile(path, "other");
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  volatile char* const bytes = static_cast<char*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
  ASSERT_EQ(ftruncate(fd, 0), 0);
  // By the signal, or by a sanitizer that takes it for its own.
  EXPECT_DEATH(
      {
        ContentsOf(database_, OpenMode::kReadOnly).ok();
        _exit(bytes[0]);
      },
      "");
  close(fd);
}

TEST_F(TabletHostile, AJournalRemovesNoFilesElsewhere) {
  const std::string precious = directory_ + "/precious";
  WriteNewFile(precious, "precious");
  // A journal with one page, and the name of another journal at its end, as SQLite writes it for several databases.
  auto number = [](uint32_t v) {
    return std::string{static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
                       static_cast<char>(v)};
  };
  const std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", catalog = ReadWholeFile(catalog_);
  std::string journal =
      magic + number(0) + number(0) + number(static_cast<uint32_t>(catalog.size() / 4096)) + number(512) + number(4096);
  journal.resize(512, 0);
  uint32_t sum = 0;
  for (char c : precious) sum += static_cast<uint32_t>(static_cast<signed char>(c));
  journal +=
      number(4096 * 1024 * 256) + precious + number(static_cast<uint32_t>(precious.size())) + number(sum) + magic;
  WriteNewFile(catalog_ + "-journal", journal);
  for (const OpenMode mode : {OpenMode::kReadOnly, OpenMode::kReadWrite}) {
    const auto opened = Database::Open(database_, mode);
    EXPECT_FALSE(opened.ok());
    if (!opened.ok()) {
      EXPECT_EQ(opened.status().code(), ErrorCode::kCorrupt) << opened.status().message();
    }
  }
  EXPECT_EQ(ReadWholeFile(precious), "precious");
}

TEST_F(TabletHostile, NothingIsWrittenThroughALink) {
  const std::string precious = directory_ + "/precious";
  WriteNewFile(precious, "precious");
  // The next tablet's temporary name. A reader keeps the files, so that the writer does not sweep it away.
  const auto reader = Database::Open(database_, OpenMode::kReadOnly);
  ASSERT_TRUE(reader.ok());
  const auto snapshot = (*reader)->Read();
  ASSERT_TRUE(snapshot.ok());
  fs::create_symlink(precious, database_ + "/writing-5");
  const Status used = Use();
  EXPECT_TRUE(used.ok()) << used.message();
  fs::remove(database_ + "/writer.lock");
  fs::create_symlink(precious, database_ + "/writer.lock");
  EXPECT_FALSE(Use().ok());
  EXPECT_EQ(ReadWholeFile(precious), "precious");
}

}  // namespace
}  // namespace tessera
