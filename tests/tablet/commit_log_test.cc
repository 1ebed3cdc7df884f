// The commit log: what it does not lose, what others see of it, and what is said of a damaged one.
#include "tablet/files/commit_log.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/database.h"
#include "tablet/load/table_writer.h"
#include "tests/tablet/sample_database.h"

namespace tessera {

namespace fs = std::filesystem;

/// How many of the next syncs of a commit log fail.
std::atomic<int> failing_syncs{0};

namespace {

constexpr uint64_t kPage = 4096;

class CommitLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string path = (parent / "commit-log-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
    directory_ = folder_ + "/d";
    log_ = directory_ + "/commit.log";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Database> Open(OpenMode mode = OpenMode::kReadWrite) const {
    Result<std::unique_ptr<Database>> database = Database::Open(directory_, mode);
    EXPECT_TRUE(database.ok()) << database.status().message();
    return database.ok() ? std::move(*database) : nullptr;
  }
  static Status CreateTable(Database* database, const std::string& name) {
    TableSchema schema;
    schema.name = name;
    schema.columns = {{"k", SqlType::Of(TypeId::kInteger), false}};
    return database->CreateTable(schema, false);
  }
  static Status Insert(Database* database, const std::string& table, int64_t first, size_t rows = 1) {
    TESSERA_ASSIGN(std::unique_ptr<TableWriter> writer, database->Write(table));
    RowBatch batch;
    batch.rows = rows;
    batch.columns.resize(1);
    batch.columns[0].type = SqlType::Of(TypeId::kInteger);
    for (size_t i = 0; i < rows; ++i) batch.columns[0].fixed.push_back(first + static_cast<int64_t>(i));
    TESSERA_TRY(writer->Append(batch, 1));
    return writer->Commit();
  }
  static Status AddSequence(Database* database) {
    return database->ChangeNames([](CatalogNames* names) {
      names->sequences.emplace_back().name = "s";
      return Status();
    });
  }
  static Status TakeValue(Database* database) {
    return database->ChangeNames([](CatalogNames* names) { return NextOf(&names->sequences[0]).status(); });
  }
  /// What the sequence has given last; 0: nothing yet.
  static int64_t ValueIn(Database* database) {
    const auto names = database->ReadNames();
    if (!names.ok() || names->sequences.size() != 1) return -1;
    return names->sequences[0].was_given ? names->sequences[0].value : 0;
  }
  /// -1: an error, which becomes `*message`.
  static int64_t Rows(Database* database, const std::string& table, std::string* message = nullptr) {
    const auto snapshot = database->Read();
    if (!snapshot.ok() && message != nullptr) *message = snapshot.status().message();
    if (!snapshot.ok()) return -1;
    const auto info = (*snapshot)->Find(table);
    return info == nullptr ? -1 : static_cast<int64_t>(info->rows);
  }
  int64_t RowsOf(OpenMode mode, std::string* message = nullptr) const {
    const auto database = Database::Open(directory_, mode);
    if (!database.ok() && message != nullptr) *message = database.status().message();
    return database.ok() ? Rows(database->get(), "t", message) : -1;
  }
  int64_t Catalog(const char* sql) const {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((directory_ + "/catalog.sqlite").c_str(), &db), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(db, sql, -1, &statement, nullptr);
    const int64_t value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
  }
  /// Table t with `rows` rows, all but the first in records of one page or two.
  void Fill(int rows) const {
    const auto database = Open();
    ASSERT_TRUE(CreateTable(database.get(), "t").ok());
    for (int i = 0; i < rows; ++i) ASSERT_TRUE(Insert(database.get(), "t", i).ok());
  }
  std::string TabletFile() const {
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename().string().starts_with("tablet-")) return entry.path().string();
    }
    return {};
  }

  std::string folder_, directory_, log_;
};

TEST_F(CommitLogTest, SmallChangesLeaveSqliteAlone) {
  const auto database = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok());
  EXPECT_EQ(Catalog("PRAGMA user_version"), 1);
  ASSERT_TRUE(Insert(database.get(), "t", 0).ok());
  EXPECT_EQ(Catalog("PRAGMA user_version"), 9);
  EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 1);
  ASSERT_TRUE(Insert(database.get(), "t", 1).ok());
  ASSERT_TRUE(Insert(database.get(), "t", 2, 3).ok());
  EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 1);
  EXPECT_EQ(Catalog("SELECT generation FROM log"), 1);
  EXPECT_EQ(Rows(database.get(), "t"), 5);
  EXPECT_EQ(RowsOf(OpenMode::kReadOnly), 5);
  // What is no small change takes them over, and the log is as empty.
  ASSERT_TRUE(CreateTable(database.get(), "u").ok());
  EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 5);
  EXPECT_EQ(Catalog("SELECT generation FROM log"), 2);
  ASSERT_TRUE(CreateTable(database.get(), "v").ok());
  EXPECT_EQ(Catalog("SELECT generation FROM log"), 3);
  ASSERT_TRUE(Insert(database.get(), "t", 5).ok());
  EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 5);
  EXPECT_EQ(RowsOf(OpenMode::kReadWrite), 6);
}

TEST_F(CommitLogTest, OthersSeeWhatIsCommitted) {
  const auto database = Open(), other = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok());
  const auto reader = Open(OpenMode::kReadOnly);
  int64_t rows = 0;
  for (int i = 0; i < 40; ++i) {
    Database* const writer = i % 5 == 4 ? other.get() : database.get();
    ASSERT_TRUE(Insert(writer, "t", i, 2).ok());
    rows += 2;
    if (i % 7 == 6) {
      ASSERT_TRUE(CreateTable(writer, "t" + std::to_string(i)).ok());
    }
    ASSERT_EQ(Rows(reader.get(), "t"), rows);
    if (i % 3 == 0) {
      ASSERT_EQ(Rows(database.get(), "t"), rows);
      ASSERT_EQ(Rows(other.get(), "t"), rows);
    }
  }
}

TEST_F(CommitLogTest, DeletedRowsAndTransactions) {
  const auto database = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok());
  ASSERT_TRUE(Insert(database.get(), "t", 0, 10).ok());
  for (const int64_t row : {3, 7}) {
    const auto writer = database->Write("t");
    ASSERT_TRUE(writer.ok());
    std::vector<bool> fresh;
    ASSERT_TRUE((*writer)->Delete(std::vector<int64_t>{row}, &fresh).ok());
    ASSERT_TRUE((*writer)->Commit().ok());
  }
  EXPECT_EQ(Catalog("SELECT count(*) FROM deleted_rows"), -1) << "it is not even made";
  EXPECT_EQ(RowsOf(OpenMode::kReadOnly), 8);
  // A transaction takes the log over as a part of itself.
  ASSERT_TRUE(database->BeginTransaction().ok());
  ASSERT_TRUE(Insert(database.get(), "t", 10).ok());
  EXPECT_EQ(Rows(database.get(), "t"), 9);
  EXPECT_EQ(RowsOf(OpenMode::kReadOnly), 8);
  database->RollBackTransaction();
  EXPECT_EQ(Rows(database.get(), "t"), 8);
  EXPECT_EQ(RowsOf(OpenMode::kReadOnly), 8);
  EXPECT_EQ(Catalog("SELECT generation FROM log"), 1);
  ASSERT_TRUE(Insert(database.get(), "t", 11).ok());
  ASSERT_TRUE(database->BeginTransaction().ok());
  ASSERT_TRUE(Insert(database.get(), "t", 12).ok());
  ASSERT_TRUE(CreateTable(database.get(), "u").ok());
  ASSERT_TRUE(database->PushMark().ok());
  ASSERT_TRUE(Insert(database.get(), "t", 13).ok());
  ASSERT_TRUE(database->ReturnToMark(1).ok());
  ASSERT_TRUE(database->CommitTransaction().ok());
  EXPECT_EQ(Catalog("SELECT generation FROM log"), 2);
  EXPECT_EQ(Rows(database.get(), "t"), 10);
  EXPECT_EQ(RowsOf(OpenMode::kReadWrite), 10);
}

TEST_F(CommitLogTest, TransactionsOfRowsAreRecords) {
  const auto database = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok() && CreateTable(database.get(), "u").ok());
  const auto reader = Open(OpenMode::kReadOnly);
  // The first one makes the log.
  ASSERT_TRUE(database->BeginTransaction().ok());
  ASSERT_TRUE(Insert(database.get(), "t", 0).ok());
  ASSERT_TRUE(database->CommitTransaction().ok());
  EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 1);
  EXPECT_EQ(Catalog("PRAGMA user_version"), 9);
  ASSERT_TRUE(database->BeginTransaction().ok());
  ASSERT_TRUE(Insert(database.get(), "t", 1).ok());
  ASSERT_TRUE(database->PushMark().ok());
  ASSERT_TRUE(Insert(database.get(), "t", 2, 5).ok());
  EXPECT_EQ(Rows(database.get(), "t"), 7);
  ASSERT_TRUE(database->ReturnToMark(1).ok());
  EXPECT_EQ(Rows(database.get(), "t"), 2);
  ASSERT_TRUE(Insert(database.get(), "t", 3, 2).ok());
  EXPECT_EQ(Rows(reader.get(), "t"), 1);
  ASSERT_TRUE(database->CommitTransaction().ok());
  EXPECT_EQ(Rows(reader.get(), "t"), 4);
  EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 1);
  EXPECT_EQ(Catalog("PRAGMA user_version"), 9);
  // Two tables: programs that know records of one alone refuse the catalog from then on.
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(database->BeginTransaction().ok());
    ASSERT_TRUE(Insert(database.get(), "t", 10 + turn).ok() && Insert(database.get(), "u", 10 + turn).ok());
    EXPECT_EQ(Rows(reader.get(), "u"), turn);
    ASSERT_TRUE(database->CommitTransaction().ok());
    EXPECT_EQ(Rows(reader.get(), "t"), 5 + turn);
    EXPECT_EQ(Rows(reader.get(), "u"), 1 + turn);
    EXPECT_EQ(Catalog("PRAGMA user_version"), 11);
    EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 6);
    EXPECT_EQ(Catalog("SELECT generation FROM log"), 2);
  }
  ASSERT_TRUE(CreateTable(database.get(), "v").ok());
  EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), 10);
  const auto again = ContentsOf(directory_, OpenMode::kReadWrite), now = ContentsOf(database.get());
  ASSERT_TRUE(again.ok() && now.ok());
  EXPECT_EQ(*again, *now);
}

TEST_F(CommitLogTest, AHeldTransactionBecomesOneOfSqlite) {
  const auto database = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok() && AddSequence(database.get()).ok());
  ASSERT_TRUE(Insert(database.get(), "t", 0).ok() && Insert(database.get(), "t", 1).ok());
  for (const size_t mark : {0, 1, 2}) {
    const int64_t rows = Rows(database.get(), "t"), value = ValueIn(database.get());
    ASSERT_TRUE(database->BeginTransaction().ok());
    ASSERT_TRUE(Insert(database.get(), "t", 2).ok() && TakeValue(database.get()).ok());
    ASSERT_TRUE(database->PushMark().ok());
    ASSERT_TRUE(Insert(database.get(), "t", 3, 2).ok() && TakeValue(database.get()).ok());
    ASSERT_TRUE(database->PushMark().ok());
    ASSERT_TRUE(Insert(database.get(), "t", 5, 4).ok() && TakeValue(database.get()).ok());
    ASSERT_TRUE(CreateTable(database.get(), "u").ok());
    EXPECT_EQ(Rows(database.get(), "t"), rows + 7);
    if (mark > 0) {
      ASSERT_TRUE(database->ReturnToMark(mark).ok());
    }
    const int64_t kept = rows + (mark == 0 ? 7 : mark == 1 ? 1 : 3);
    const int64_t given = value + (mark == 0 ? 3 : static_cast<int64_t>(mark));
    EXPECT_EQ(Rows(database.get(), "t"), kept);
    EXPECT_EQ(ValueIn(database.get()), given);
    EXPECT_EQ(Rows(database.get(), "u"), mark == 0 ? 0 : -1);
    if (mark == 0) {
      ASSERT_TRUE(database->DropTable("u", false).ok());
    }
    ASSERT_TRUE(database->CommitTransaction().ok());
    EXPECT_EQ(Catalog("SELECT sum(rows) FROM tablets"), kept);
    EXPECT_EQ(Catalog("SELECT value FROM sequences"), given);
    EXPECT_EQ(RowsOf(OpenMode::kReadOnly), kept);
  }
}

TEST_F(CommitLogTest, ValuesOfSequencesAreInRecords) {
  const auto database = Open(), other = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok() && AddSequence(database.get()).ok());
  const auto reader = Open(OpenMode::kReadOnly);
  EXPECT_EQ(Catalog("PRAGMA user_version"), 10);
  ASSERT_TRUE(TakeValue(database.get()).ok());
  EXPECT_EQ(Catalog("PRAGMA user_version"), 11);
  EXPECT_EQ(Catalog("SELECT value * 10 + was_given FROM sequences"), 11);
  for (int64_t value = 2; value < 12; ++value) {
    Database* const writer = value % 3 == 0 ? other.get() : database.get();
    const bool together = value % 2 == 0;
    if (together) {
      ASSERT_TRUE(writer->BeginTransaction().ok() && Insert(writer, "t", value).ok());
    }
    ASSERT_TRUE(TakeValue(writer).ok());
    EXPECT_EQ(ValueIn(reader.get()), together ? value - 1 : value);
    if (together) {
      ASSERT_TRUE(writer->CommitTransaction().ok());
    }
    EXPECT_EQ(ValueIn(reader.get()), value);
    EXPECT_EQ(Rows(reader.get(), "t"), value / 2);
  }
  EXPECT_EQ(Catalog("SELECT value FROM sequences"), 1);
  EXPECT_EQ(Catalog("SELECT generation FROM log"), 1);
  EXPECT_EQ(ValueIn(Open(OpenMode::kReadOnly).get()), 11);
  // What is rolled back is not given.
  ASSERT_TRUE(database->BeginTransaction().ok() && TakeValue(database.get()).ok());
  database->RollBackTransaction();
  EXPECT_EQ(ValueIn(database.get()), 11);
  // Taken over, with rows and by a change of sequences alone.
  ASSERT_TRUE(CreateTable(other.get(), "u").ok());
  EXPECT_EQ(Catalog("SELECT value FROM sequences"), 11);
  ASSERT_TRUE(TakeValue(other.get()).ok());
  ASSERT_TRUE(database
                  ->ChangeNames([](CatalogNames* names) {
                    names->schemas.emplace_back("a");
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(Catalog("SELECT value FROM sequences"), 12);
  EXPECT_EQ(ValueIn(reader.get()), 12);
  EXPECT_EQ(ValueIn(Open().get()), 12);
}

TEST_F(CommitLogTest, ATornRecordOfSeveralIsNone) {
  {
    const auto database = Open();
    ASSERT_TRUE(CreateTable(database.get(), "t").ok() && CreateTable(database.get(), "u").ok());
    ASSERT_TRUE(AddSequence(database.get()).ok() && TakeValue(database.get()).ok());
    ASSERT_TRUE(Insert(database.get(), "t", 0).ok());
    ASSERT_TRUE(database->BeginTransaction().ok() && TakeValue(database.get()).ok());
    ASSERT_TRUE(Insert(database.get(), "t", 1).ok() && Insert(database.get(), "u", 1).ok());
    ASSERT_TRUE(database->CommitTransaction().ok());
    EXPECT_EQ(Catalog("SELECT count(*) FROM tablets"), 0) << "all is in the log";
  }
  const std::string good = ReadWholeFile(log_);
  const size_t end = good.find_last_not_of('\0') + 1;
  int torn = 0;
  for (size_t at = 2 * kPage; at < end; at += at % kPage < 256 ? 7 : 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WriteNewFile(log_, bad);
    const auto database = Open();
    const bool whole = Rows(database.get(), "t") == 2;
    torn += whole ? 0 : 1;
    EXPECT_EQ(Rows(database.get(), "t"), whole ? 2 : 1) << at;
    EXPECT_EQ(Rows(database.get(), "u"), whole ? 1 : 0) << at;
    EXPECT_EQ(ValueIn(database.get()), whole ? 2 : 1) << at;
  }
  EXPECT_GT(torn, 20);
}

TEST_F(CommitLogTest, AFullLogIsTakenOver) {
  const auto database = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok());
  int64_t rows = 0;
  for (int i = 0; i < 700; ++i, rows += 2) ASSERT_TRUE(Insert(database.get(), "t", rows, 2).ok());
  EXPECT_GT(Catalog("SELECT generation FROM log"), 1);
  EXPECT_LE(fs::file_size(log_), CommitLog::kGreatestBytes);
  EXPECT_EQ(RowsOf(OpenMode::kReadOnly), rows);
  const auto again = ContentsOf(directory_, OpenMode::kReadWrite);
  const auto now = ContentsOf(database.get());
  ASSERT_TRUE(again.ok() && now.ok());
  EXPECT_EQ(*again, *now);
}

TEST_F(CommitLogTest, FilesThatAMachineHasLostComeBack) {
  Fill(5);
  const auto before = ContentsOf(directory_, OpenMode::kReadOnly);
  ASSERT_TRUE(before.ok());
  const std::string file = TabletFile(), bytes = ReadWholeFile(file);
  for (int damage = 0; damage < 4; ++damage) {
    if (damage == 0) fs::remove(file);
    if (damage == 1) WriteNewFile(file, "");
    if (damage == 2) WriteNewFile(file, bytes.substr(0, bytes.size() / 2));
    if (damage == 3) WriteNewFile(file, std::string(bytes.size(), '\0'));
    std::string message;
    EXPECT_EQ(RowsOf(OpenMode::kReadOnly, &message), -1);
    EXPECT_EQ(message, "database \"" + directory_ + "\" was left by a machine that lost power");
    if (damage == 3) {  // a writer that has not looked
      const auto database = Open();
      ASSERT_TRUE(CreateTable(database.get(), "u").ok());
    }
    const auto after = ContentsOf(directory_, OpenMode::kReadWrite);
    ASSERT_TRUE(after.ok()) << after.status().message();
    EXPECT_TRUE(after->starts_with(*before));
    EXPECT_EQ(ReadWholeFile(file), bytes);
    EXPECT_EQ(RowsOf(OpenMode::kReadOnly), 5);
  }
}

TEST_F(CommitLogTest, ADamagedLogIsAMessageOrEndsEarlier) {
  constexpr int kRows = 6;
  Fill(kRows);
  const std::string good = ReadWholeFile(log_);
  const size_t end = good.find_last_not_of('\0') + 1;
  ASSERT_GT(end, (kRows - 1) * kPage);
  int messages = 0, shorter = 0;
  for (size_t at = 0; at < end; at += at % kPage < 64 ? 5 : 97) {
    std::string bad = good.substr(0, 1 << 20);
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WriteNewFile(log_, bad);
    std::string message;
    int64_t rows = RowsOf(OpenMode::kReadOnly, &message);
    // (The tablet's file of the record before the last is gone: it comes back from that one's bytes.)
    if (message.ends_with(" lost power")) rows = RowsOf(OpenMode::kReadWrite, &message);
    messages += rows < 0 ? 1 : 0;
    shorter += rows >= 0 && rows < kRows ? 1 : 0;
    EXPECT_TRUE(rows >= 0 || message.find(" is corrupt: ") != std::string::npos) << message;
    ASSERT_LE(rows, kRows);
    // Only the last record could have been under way.
    ASSERT_TRUE(rows < 0 || rows >= kRows - 1) << "byte " << at;
  }
  EXPECT_GT(messages, 0);
  EXPECT_GT(shorter, 0);
  for (const size_t size : {size_t{0}, size_t{30}, kPage, 2 * kPage + 100, end - 1, end}) {
    WriteNewFile(log_, good.substr(0, size));
    std::string message;
    const int64_t rows = RowsOf(OpenMode::kReadOnly, &message);
    EXPECT_EQ(rows, -1) << size;
    EXPECT_TRUE(message.find(" is corrupt: it ") != std::string::npos) << message;
  }
  WriteNewFile(log_, good);
  EXPECT_EQ(RowsOf(OpenMode::kReadWrite), kRows);
}

TEST_F(CommitLogTest, TheLogBelongsToItsDatabase) {
  Fill(3);
  const std::string good = ReadWholeFile(log_), mine = directory_;
  directory_ = folder_ + "/other";
  Fill(3);
  WriteNewFile(directory_ + "/commit.log", good);
  std::string message;
  EXPECT_EQ(RowsOf(OpenMode::kReadWrite, &message), -1);
  EXPECT_EQ(message, "commit log \"" + directory_ + "/commit.log\" is corrupt: it is another database's");
  directory_ = mine;
  fs::remove(log_);
  EXPECT_EQ(RowsOf(OpenMode::kReadOnly, &message), -1);
  EXPECT_EQ(message, "database \"" + directory_ + "\" has lost its commit log \"" + log_ + "\"");
  fs::create_directory(log_);
  EXPECT_EQ(RowsOf(OpenMode::kReadOnly, &message), -1);
  EXPECT_EQ(message, "\"" + log_ + "\" is not a file");
}

TEST_F(CommitLogTest, AFailedSyncEndsATransaction) {
  const auto database = Open();
  ASSERT_TRUE(CreateTable(database.get(), "t").ok() && AddSequence(database.get()).ok());
  const auto reader = Open(OpenMode::kReadOnly);
  ASSERT_TRUE(TakeValue(database.get()).ok());
  ASSERT_TRUE(database->BeginTransaction().ok());
  ASSERT_TRUE(Insert(database.get(), "t", 0).ok() && TakeValue(database.get()).ok());
  failing_syncs = 1;
  const Status failed = database->CommitTransaction();
  failing_syncs = 0;
  EXPECT_EQ(failed.message(), "cannot sync \"" + log_ + "\": Input/output error");
  EXPECT_FALSE(database->InTransaction());
  for (Database* const of : {database.get(), reader.get()}) {
    EXPECT_EQ(Rows(of, "t"), 0);
    EXPECT_EQ(ValueIn(of), 1);
  }
  ASSERT_TRUE(Insert(database.get(), "t", 1).ok() && TakeValue(database.get()).ok());
  EXPECT_EQ(Rows(reader.get(), "t"), 1);
  EXPECT_EQ(ValueIn(reader.get()), 2);
}

TEST_F(CommitLogTest, AFailedSyncIsNoCommit) {
  Fill(2);
  const auto database = Open(), reader = Open(OpenMode::kReadOnly);
  ASSERT_TRUE(Insert(database.get(), "t", 2).ok());
  for (const int failures : {1, 2}) {
    failing_syncs = failures;
    const Status failed = Insert(database.get(), "t", 3);
    failing_syncs = 0;
    EXPECT_EQ(failed.message(), "cannot sync \"" + log_ + "\": Input/output error");
    EXPECT_EQ(failed.hint().starts_with("The change may have been made or not"), failures == 2);
    EXPECT_EQ(Rows(database.get(), "t"), failures + 2);
    EXPECT_EQ(Rows(reader.get(), "t"), failures + 2);
    EXPECT_EQ(RowsOf(OpenMode::kReadWrite), failures + 2);
    // The log of that generation is not used any more.
    const int64_t generation = Catalog("SELECT generation FROM log");
    ASSERT_TRUE(Insert(database.get(), "t", 4).ok());
    EXPECT_EQ(Catalog("SELECT generation FROM log"), generation + 1);
    EXPECT_EQ(Rows(reader.get(), "t"), failures + 3);
  }
}

}  // namespace
}  // namespace tessera

// (In place of the C library's.)
extern "C" int fdatasync(int fd) {
  if (tessera::failing_syncs > 0 &&
      tessera::fs::read_symlink("/proc/self/fd/" + std::to_string(fd)).string().ends_with("/commit.log")) {
    --tessera::failing_syncs;
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
