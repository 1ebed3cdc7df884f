// Several processes and threads on one database: locks, snapshots, and writers that are killed. Run it under
// ThreadSanitizer too.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/database.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

const SqlType kInteger = SqlType::Of(TypeId::kInteger);

TableSchema NumbersSchema(const std::string& name, uint32_t tablet_rows) {
  TableSchema schema;
  schema.name = name;
  schema.columns = {{"k", kInteger, false}, {"v", SqlType::Text(), false}};
  schema.tablet_rows = tablet_rows;
  return schema;
}

RowBatch Numbers(int64_t first, size_t rows) {
  RowBatch batch;
  batch.rows = rows;
  batch.columns.resize(2);
  batch.columns[0].type = kInteger;
  batch.columns[1].type = SqlType::Text();
  for (size_t i = 0; i < rows; ++i) {
    batch.columns[0].fixed.push_back(first + static_cast<int64_t>(i));
    batch.columns[1].Append(Value::Text(std::to_string((first + static_cast<int64_t>(i)) % 100)));
  }
  return batch;
}

Status Insert(Database* database, const std::string& table, const RowBatch& batch) {
  TESSERA_ASSIGN(std::unique_ptr<TableWriter> writer, database->Write(table));
  TESSERA_TRY(writer->Append(batch, 1));
  return writer->Commit();
}

/// True if the rows of `table` are 0 .. rows - 1 with their texts.
bool HoldsNumbers(const TableInfo& table) {
  int64_t expected = 0;
  for (const auto& tablet : table.tablets) {
    const auto k = tablet->Chunk(0), v = tablet->Chunk(1);
    if (!k.ok() || !v.ok()) {
      ADD_FAILURE() << (k.ok() ? v : k).status().message();
      return false;
    }
    ColumnVector keys, texts;
    keys.type = kInteger;
    texts.type = SqlType::Text();
    DecodeChunk(**k, 0, (*k)->rows, &keys);
    DecodeChunk(**v, 0, (*v)->rows, &texts);
    for (size_t row = 0; row < keys.size(); ++row, ++expected) {
      if (keys.fixed[row] != expected || texts.Text(row) != std::to_string(expected % 100)) return false;
    }
  }
  return static_cast<uint64_t>(expected) == table.rows;
}

class TabletConcurrency : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (fs::temp_directory_path() / "tablet-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    database_ = directory_ + "/d";
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::unique_ptr<Database> Open(OpenMode mode = OpenMode::kReadWrite) const {
    auto database = Database::Open(database_, mode);
    EXPECT_TRUE(database.ok()) << database.status().message();
    return database.ok() ? std::move(*database) : nullptr;
  }

  size_t TabletFiles() const {
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(database_)) {
      files += entry.path().filename().string().rfind("tablet-", 0) == 0;
    }
    return files;
  }

  /// Runs `body` in a child that ends with its result as status.
  template <class Body>
  static pid_t Fork(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    return child;
  }
  static int Wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string directory_, database_;
};

TEST_F(TabletConcurrency, ASecondWriterWaitsAndThenNamesTheFirst) {
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = Fork([&] {
    auto database = Open();
    if (!database->CreateTable(NumbersSchema("t", 100), false).ok()) return 1;
    auto writer = database->Write("t");
    char c = 'r';
    if (!writer.ok() || write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 1) return 2;
    if (!(*writer)->Append(Numbers(0, 250), 1).ok() || !(*writer)->Commit().ok()) return 3;
    return 0;
  });
  char c;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  {
    auto database = Open();
    database->SetLockTimeout(50);
    const auto start = std::chrono::steady_clock::now();
    const auto writer = database->Write("t");
    ASSERT_FALSE(writer.ok());
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(50));
    EXPECT_EQ(writer.status().code(), ErrorCode::kBusy);
    EXPECT_EQ(writer.status().message(),
              "database \"" + database_ + "\" is being written by process " + std::to_string(child));
    EXPECT_EQ(database->DropTable("t", false).code(), ErrorCode::kBusy);
    EXPECT_EQ((*database->Read())->Find("t")->rows, 0u) << "readers do not wait";
    // Given time it gets its turn.
    database->SetLockTimeout(20000);
    ASSERT_EQ(write(go[1], "g", 1), 1);
    const Status status = Insert(database.get(), "t", Numbers(250, 100));
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(HoldsNumbers(*(*database->Read())->Find("t")));
  }
  EXPECT_EQ(Wait(child), 0);
  for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
}

TEST_F(TabletConcurrency, TwoObjectsOfOneProcessExcludeOneAnother) {
  auto first = Open();
  auto second = Open();
  ASSERT_TRUE(first->CreateTable(NumbersSchema("t", 100), false).ok());
  auto writer = first->Write("t");
  ASSERT_TRUE(writer.ok());
  for (Database* other : {first.get(), second.get()}) {
    other->SetLockTimeout(20);
    EXPECT_EQ(other->CreateTable(NumbersSchema("u", 100), false).message(),
              "database \"" + database_ + "\" is being written by process " + std::to_string(getpid()));
  }
  ASSERT_TRUE((*writer)->Append(Numbers(0, 150), 1).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_TRUE(second->CreateTable(NumbersSchema("u", 100), false).ok());
  EXPECT_EQ((*second->Read())->Find("t")->rows, 150u);
}

TEST_F(TabletConcurrency, AReaderOfAnotherProcessKeepsDroppedFiles) {
  {
    auto database = Open();
    ASSERT_TRUE(database->CreateTable(NumbersSchema("t", 100), false).ok());
    ASSERT_TRUE(database->CreateTable(NumbersSchema("u", 100), false).ok());
    ASSERT_TRUE(Insert(database.get(), "t", Numbers(0, 1000)).ok());
  }
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = Fork([&] {
    auto database = Open(OpenMode::kReadOnly);
    auto snapshot = database->Read();
    char c = 'r';
    if (!snapshot.ok() || write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 1) return 1;
    // Only now are the files opened.
    return HoldsNumbers(*(*snapshot)->Find("t")) ? 0 : 2;
  });
  char c;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  auto database = Open();
  ASSERT_TRUE(Insert(database.get(), "t", Numbers(1000, 50)).ok());
  ASSERT_TRUE(database->DropTable("t", false).ok());
  EXPECT_EQ(TabletFiles(), 11u);
  ASSERT_EQ(write(go[1], "g", 1), 1);
  EXPECT_EQ(Wait(child), 0);
  ASSERT_TRUE(database->DropTable("u", false).ok());
  EXPECT_EQ(TabletFiles(), 0u);
  for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
}

TEST_F(TabletConcurrency, AKilledLoadLeavesTheOldOrTheNewTable) {
  constexpr size_t kRows = 3000;
  const std::string csv = directory_ + "/rows.csv";
  {
    auto database = Open();
    ASSERT_TRUE(database->CreateTable(NumbersSchema("t", 512), false).ok());
  }
  std::mt19937 random(99);
  uint64_t rows = 0;
  int killed = 0;
  const auto end = std::chrono::steady_clock::now() + milliseconds(4000);
  for (int round = 0; round < 100 && std::chrono::steady_clock::now() < end; ++round) {
    int commits[2];
    ASSERT_EQ(pipe(commits), 0);
    const pid_t child = Fork([&] {
      close(commits[0]);
      auto database = Open();
      uint64_t next = rows;
      for (;;) {
        // Half of the loads come from files, on two threads.
        if (next / kRows % 2 == 0) {
          std::string text;
          for (size_t i = 0; i < kRows; ++i) {
            text += std::to_string(next + i) + "," + std::to_string((next + i) % 100) + "\n";
          }
          std::ofstream(csv) << text;
          CopyFromOptions options;
          options.threads = 2;
          if (!database->CopyFrom("t", csv, options).ok()) return 1;
        } else if (!Insert(database.get(), "t", Numbers(static_cast<int64_t>(next), kRows)).ok()) {
          return 2;
        }
        next += kRows;
        if (write(commits[1], "c", 1) != 1) return 3;
      }
    });
    close(commits[1]);
    // From before the child opens the database to after some commits.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    const int status = Wait(child);
    ASSERT_EQ(status, 128 + SIGKILL);
    ++killed;
    uint64_t told = 0;
    for (char c; read(commits[0], &c, 1) == 1;) ++told;
    close(commits[0]);

    auto database = Open();
    const auto snapshot = database->Read();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
    const auto table = (*snapshot)->Find("t");
    const uint64_t loads = (table->rows - rows) / kRows;
    ASSERT_EQ(table->rows, rows + loads * kRows);
    ASSERT_TRUE(loads == told || loads == told + 1) << loads << " loads, " << told << " were told of";
    ASSERT_TRUE(HoldsNumbers(*table));
    rows = table->rows;
  }
  EXPECT_GT(killed, 10);
  {
    auto database = Open();
    ASSERT_TRUE(database->CreateTable(NumbersSchema("u", 1), true).ok());
  }
  auto database = Open(OpenMode::kReadOnly);
  const auto table = (*database->Read())->Find("t");
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(database_)) {
    const std::string name = entry.path().filename().string();
    if (name == "catalog.sqlite-journal") {
      // It stays, and says that no transaction is under way.
      std::string header(28, 1);
      std::ifstream(entry.path()).read(header.data(), static_cast<std::streamsize>(header.size()));
      EXPECT_EQ(header, std::string(28, '\0'));
      continue;
    }
    ++files;
    EXPECT_TRUE(name == "catalog.sqlite" || name == "writer.lock" || name == "readers.lock" ||
                name.rfind("tablet-", 0) == 0)
        << name;
  }
  EXPECT_EQ(files, 3 + table->tablets.size()) << "no leftovers after the next writer";
}

TEST_F(TabletConcurrency, ManyProcessesWriteAndRead) {
  {
    auto database = Open();
    ASSERT_TRUE(database->CreateTable(NumbersSchema("t", 64), false).ok());
  }
  std::vector<pid_t> children;
  for (int writer = 0; writer < 2; ++writer) {
    children.push_back(Fork([&] {
      auto database = Open();
      database->SetLockTimeout(60000);
      for (int i = 0; i < 8; ++i) {
        // The one that has the lock goes on where the table ends.
        auto load = database->Write("t");
        if (!load.ok()) return 1;
        const int64_t next = static_cast<int64_t>((*database->Read())->Find("t")->rows);
        if (!(*load)->Append(Numbers(next, 50), 1).ok() || !(*load)->Commit().ok()) return 2;
      }
      return 0;
    }));
  }
  for (int reader = 0; reader < 2; ++reader) {
    children.push_back(Fork([&] {
      auto database = Open(OpenMode::kReadOnly);
      for (uint64_t rows = 0; rows < 800;) {
        const auto snapshot = database->Read();
        if (!snapshot.ok()) return 1;
        const auto table = (*snapshot)->Find("t");
        if (table->rows < rows || table->rows % 50 != 0 || !HoldsNumbers(*table)) return 2;
        rows = table->rows;
      }
      return 0;
    }));
  }
  for (pid_t child : children) EXPECT_EQ(Wait(child), 0);
}

TEST_F(TabletConcurrency, ManyProcessesCreateOneDatabase) {
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(Fork([&] {
      auto database = Database::Open(database_, OpenMode::kReadWrite);
      if (!database.ok()) return 1;
      return (*database)->CreateTable(NumbersSchema("t", 64), true).ok() ? 0 : 2;
    }));
  }
  for (pid_t child : children) EXPECT_EQ(Wait(child), 0);
  EXPECT_EQ((*Open()->Read())->tables.size(), 1u);
}

// Threads from here on: after these tests a fork would be unsafe.

TEST_F(TabletConcurrency, ThreadsShareTablets) {
  auto database = Open();
  ASSERT_TRUE(database->CreateTable(NumbersSchema("t", 1000), false).ok());
  ASSERT_TRUE(Insert(database.get(), "t", Numbers(0, 20000)).ok());
  const auto snapshot = *database->Read();
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { bad += !HoldsNumbers(*snapshot->Find("t")); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad.load(), 0);
  // One object for all who ask.
  EXPECT_EQ(*snapshot->Find("t")->tablets[3]->Chunk(1), *snapshot->Find("t")->tablets[3]->Chunk(1));
}

TEST_F(TabletConcurrency, ThreadsReadWhileOneWrites) {
  auto database = Open();
  ASSERT_TRUE(database->CreateTable(NumbersSchema("t", 300), false).ok());
  std::atomic<bool> done{false};
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      uint64_t rows = 0;
      while (!done) {
        const auto snapshot = database->Read();
        if (!snapshot.ok()) {
          ++bad;
          return;
        }
        const auto table = (*snapshot)->Find("t");
        if (table->rows < rows || !HoldsNumbers(*table)) ++bad;
        rows = table->rows;
      }
    });
  }
  for (int i = 0; i < 15; ++i) {
    const Status status = Insert(database.get(), "t", Numbers(i * 1000, 1000));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad.load(), 0);
  EXPECT_EQ((*database->Read())->Find("t")->rows, 15000u);
}

TEST_F(TabletConcurrency, OneLoadOnManyThreads) {
  auto database = Open();
  ASSERT_TRUE(database->CreateTable(NumbersSchema("t", 500), false).ok());
  std::string text;
  for (int i = 0; i < 60000; ++i) text += std::to_string(i) + "," + std::to_string(i % 100) + "\n";
  const std::string csv = directory_ + "/rows.csv";
  std::ofstream(csv) << text;
  CopyFromOptions options;
  options.threads = 6;
  const auto copied = database->CopyFrom("t", csv, options);
  ASSERT_TRUE(copied.ok()) << copied.status().message();
  // And one whose rows come from a statement.
  auto writer = database->Write("t");
  ASSERT_TRUE(writer.ok());
  for (int i = 60; i < 120; ++i) ASSERT_TRUE((*writer)->Append(Numbers(i * 1000, 1000), 1).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_TRUE(HoldsNumbers(*(*database->Read())->Find("t")));
  EXPECT_EQ((*database->Read())->Find("t")->rows, 120000u);
}

// SQLite waits as long as was set, and not longer than its statement.
TEST_F(TabletConcurrency, LockedCatalog) {
  auto database = Open();
  ASSERT_TRUE(database->CreateTable(NumbersSchema("t", 100), false).ok());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((database_ + "/catalog.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  database->SetLockTimeout(50);
  auto start = std::chrono::steady_clock::now();
  const Status refused = database->Write("t").status();
  EXPECT_EQ(refused.message(), "database \"" + database_ + "\" is locked by another process");
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(50));
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(4000));
  database->SetLockTimeout(60000);
  start = std::chrono::steady_clock::now();
  std::atomic<bool> cancel{false};
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    cancel = true;
  });
  {
    const InterruptScope scope(&cancel);
    EXPECT_EQ(database->Write("t").status().code(), ErrorCode::kCancelled);
  }
  canceller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(4000));
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_TRUE(Insert(database.get(), "t", Numbers(0, 100)).ok());
}

}  // namespace
}  // namespace tessera
