// ALTER TABLE and TRUNCATE as other sessions see them, and what they keep of a table.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "session/session.h"
#include "tablet/database.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class AlterStatement : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string path = (parent / "alter-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    session_ = Open();
  }
  void TearDown() override {
    session_.reset();
    fs::remove_all(directory_);
  }

  std::unique_ptr<Session> Open() const {
    SessionOptions options;
    options.directory = directory_ + "/db";
    options.device = DeviceChoice::kHost;
    options.threads = 2;
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(*session);
  }

  /// What a statement prints, as CSV.
  static std::string Ask(Session* session, const std::string& sql) {
    ResultTextOptions options;
    options.format = ResultFormat::kCsv;
    return Answer(session, sql, options);
  }
  std::string Ask(const std::string& sql) const { return Ask(session_.get(), sql); }

  static std::shared_ptr<const TableInfo> Table(Session* session, const std::string& name) {
    const auto snapshot = session->Tables();
    EXPECT_TRUE(snapshot.ok());
    return (*snapshot)->Find(name);
  }
  std::shared_ptr<const TableInfo> Table(const std::string& name) const { return Table(session_.get(), name); }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_ + "/db")) {
      if (entry.path().filename().string().starts_with("tablet-") ||
          entry.path().filename().string().starts_with("writing-"))
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void MakeTable() const {
    EXPECT_EQ(Ask("CREATE TABLE t (k INTEGER, v INTEGER) WITH (tablet_rows = 4)"), "CREATE TABLE");
    EXPECT_EQ(Ask("INSERT INTO t SELECT i, i * 10 FROM generate_series(1, 10) AS i"), "INSERT 0 10");
  }

  std::string directory_;
  std::unique_ptr<Session> session_;
};

TEST_F(AlterStatement, TheCatalogAlone) {
  MakeTable();
  const auto before = Table("t");
  const auto files = Files();
  int64_t version = before->version;
  for (const char* sql :
       {"ALTER TABLE t ALTER k SET NOT NULL", "ALTER TABLE t ADD CHECK (k > 0)", "ALTER TABLE t ADD PRIMARY KEY (k)",
        "CREATE UNIQUE INDEX i ON t (v)", "ALTER TABLE t ALTER v SET DEFAULT 5", "ALTER TABLE t RENAME v TO w",
        "DROP INDEX i", "ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t RENAME TO u",
        "ALTER TABLE u RENAME TO t"}) {
    const std::string answer = Ask(sql);
    EXPECT_TRUE(answer == "ALTER TABLE" || answer == "CREATE INDEX" || answer == "DROP INDEX") << sql << answer;
    const auto renamed = Table("u");
    const auto after = renamed != nullptr ? renamed : Table("t");
    EXPECT_EQ(after->id, before->id) << sql;
    EXPECT_EQ(after->version, ++version) << sql << ": what others keep of the table must be made anew";
    EXPECT_EQ(after->tablets, before->tablets) << sql;
    EXPECT_EQ(after->statistics[1].max, 100) << sql;
  }
  EXPECT_EQ(Files(), files);
  // Another process reads what was written.
  EXPECT_EQ(Ask(Open().get(), "SELECT sum(w), count(*) FROM t"), "sum(w),count(*)\n550,10\n");
}

TEST_F(AlterStatement, NewRows) {
  MakeTable();
  const auto before = Table("t");
  const std::unique_ptr<Session> other = Open();
  const auto theirs = Table(other.get(), "t");
  EXPECT_EQ(Ask("ALTER TABLE t ALTER v TYPE BIGINT USING v + 1, ADD COLUMN n TEXT DEFAULT 'x'"), "ALTER TABLE");
  const auto after = Table("t");
  EXPECT_NE(after->id, before->id) << "what is kept of the old table must not be taken for the new one's";
  for (const auto& tablet : after->tablets) EXPECT_EQ(std::ranges::count(before->tablets, tablet), 0);
  EXPECT_EQ(after->statistics[1].min, 11);
  EXPECT_EQ(after->schema.tablet_rows, 4u);
  // A statement that began before reads the old rows to its end.
  for (const auto& tablet : theirs->tablets) EXPECT_TRUE(tablet->Chunk(1).ok());
  EXPECT_EQ(Ask(other.get(), "SELECT sum(v), max(n) FROM t"), "sum(v),max(n)\n560,x\n");
}

/// A column that comes or goes writes no file; what is kept of the other columns is kept by their files.
TEST_F(AlterStatement, ColumnsComeAndGoInTheCatalogAlone) {
  MakeTable();
  const auto before = Table("t");
  const auto files = Files();
  const std::unique_ptr<Session> other = Open();
  const auto theirs = Table(other.get(), "t");
  EXPECT_EQ(Ask("ALTER TABLE t ADD COLUMN n TEXT DEFAULT 'x', ADD COLUMN m INTEGER"), "ALTER TABLE");
  EXPECT_EQ(Ask("ALTER TABLE t DROP COLUMN k"), "ALTER TABLE");
  EXPECT_EQ(Files(), files);
  const auto after = Table("t");
  EXPECT_EQ(after->id, before->id);
  EXPECT_GT(after->version, before->version);
  ASSERT_EQ(after->tablets.size(), before->tablets.size());
  for (size_t t = 0; t < after->tablets.size(); ++t) {
    EXPECT_EQ(after->tablets[t]->SourceOf(0).tablet, before->tablets[t]);
    EXPECT_EQ(after->tablets[t]->SourceOf(0).column, 1);
    EXPECT_EQ(after->tablets[t]->SourceOf(1).tablet, nullptr) << "a constant has no file";
  }
  EXPECT_EQ(after->statistics[0].max, 100);
  EXPECT_EQ(after->statistics[1].distinct, 1u);
  EXPECT_EQ(after->statistics[2].null_count, 10u);
  for (const auto& tablet : theirs->tablets) EXPECT_TRUE(tablet->Chunk(0).ok()) << "a reader has the column yet";
  EXPECT_EQ(Ask(other.get(), "SELECT sum(v), max(n), count(m) FROM t"), "sum(v),max(n),count(m)\n550,x,0\n");
  // UPDATE writes one file for all tablets, which takes the place of the one before.
  EXPECT_EQ(Ask("UPDATE t SET m = v"), "UPDATE 10");
  EXPECT_EQ(Files().size(), files.size() + 1);
  EXPECT_EQ(Table("t")->tablets[0]->SourceOf(0).tablet, before->tablets[0]);
  EXPECT_EQ(Ask("UPDATE t SET m = m + 1 WHERE v > 20"), "UPDATE 8");
  EXPECT_EQ(Ask(Open().get(), "SELECT sum(v), max(n), sum(m) FROM t"), "sum(v),max(n),sum(m)\n550,x,558\n");
  EXPECT_EQ(Ask("VACUUM t"), "VACUUM");
  EXPECT_EQ(Ask("SELECT sum(v), max(n), sum(m) FROM t"), "sum(v),max(n),sum(m)\n550,x,558\n");
}

TEST_F(AlterStatement, AnErrorChangesNothing) {
  MakeTable();
  const auto before = Table("t");
  const auto files = Files();
  for (const char* sql :
       {"ALTER TABLE t ADD COLUMN n INTEGER, ADD CHECK (k < 10)", "ALTER TABLE t ALTER v TYPE SMALLINT USING v * 1000",
        "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 1, ADD UNIQUE (n)", "ALTER TABLE t ADD CHECK (v < 100)",
        "ALTER TABLE t RENAME k TO v", "ALTER TABLE t DROP k, DROP v", "TRUNCATE t, u"}) {
    EXPECT_TRUE(Ask(sql).starts_with("ERROR")) << sql;
    EXPECT_EQ(Files(), files) << sql;
    EXPECT_EQ(Table("t")->version, before->version) << sql;
  }
  {
    const auto alteration = session_->database().Alter("t");
    ASSERT_TRUE(alteration.ok());
    const auto writer = (*alteration)->Rewrite(before->schema);
    ASSERT_TRUE(writer.ok());
    RowBatch batch;
    batch.rows = 1;
    for (int c = 0; c < 2; ++c) {
      batch.columns.emplace_back().type = SqlType::Of(TypeId::kInteger);
      batch.columns.back().fixed.push_back(7);
    }
    for (int i = 0; i < 9; ++i) ASSERT_TRUE((*writer)->Append(batch, 1).ok());
  }
  EXPECT_EQ(Ask("SELECT count(*), sum(v) FROM t"), "count(*),sum(v)\n10,550\n");
  EXPECT_EQ(Table("t")->id, before->id);
  EXPECT_EQ(Files(), files);
}

TEST_F(AlterStatement, Truncate) {
  MakeTable();
  EXPECT_EQ(Ask("CREATE TABLE u AS SELECT * FROM t"), "SELECT 10");
  const auto before = Table("t");
  const std::unique_ptr<Session> other = Open();
  const auto theirs = Table(other.get(), "t");
  EXPECT_EQ(Ask("TRUNCATE t, u"), "TRUNCATE TABLE");
  const auto after = Table("t");
  EXPECT_EQ(after->id, before->id);
  EXPECT_GT(after->version, before->version);
  EXPECT_EQ(after->rows, 0u);
  EXPECT_TRUE(after->tablets.empty());
  EXPECT_FALSE(after->statistics[0].has_range);
  EXPECT_EQ(after->statistics[0].distinct, 0u);
  for (const auto& tablet : theirs->tablets) EXPECT_TRUE(tablet->Chunk(1).ok()) << "a reader has the file yet";
  EXPECT_EQ(Ask(Open().get(), "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM u) AS n"), "n\n0\n");
}

TEST_F(AlterStatement, WaitsForAWriterAndSeesItsRows) {
  MakeTable();
  const std::unique_ptr<Session> other = Open();
  const auto behind_a_writer = [&](const std::string& load, const std::string& sql) {
    const auto lock = session_->database().Write("t");
    EXPECT_TRUE(lock.ok());
    std::string answer;
    std::thread thread([&] { answer = Ask(other.get(), sql); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    RowBatch batch;
    batch.rows = 1;
    for (const char* value : {load.c_str(), "0"}) {
      batch.columns.emplace_back().type = SqlType::Of(TypeId::kInteger);
      batch.columns.back().fixed.push_back(std::stoi(value));
    }
    EXPECT_TRUE((*lock)->Append(batch, 1).ok());
    EXPECT_TRUE((*lock)->Commit().ok());
    thread.join();
    return answer;
  };
  EXPECT_NE(behind_a_writer("200", "ALTER TABLE t ADD CHECK (k < 100)")
                .find("violates check constraint \"t_k_check\", row 11 of table \"t\""),
            std::string::npos);
  EXPECT_NE(behind_a_writer("1", "ALTER TABLE t ADD PRIMARY KEY (k)").find("(k)=(1)"), std::string::npos);
  EXPECT_EQ(behind_a_writer("300", "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 2"), "ALTER TABLE");
  EXPECT_EQ(Ask("SELECT count(*), sum(n), max(k) FROM t"), "count(*),sum(n),max(k)\n13,26,300\n");
}

/// Rows that were made for the old table would break its new rules.
TEST_F(AlterStatement, WhatWaitsForItIsNoMoreWhatWasCompiled) {
  MakeTable();
  const std::string file = directory_ + "/rows.csv";
  ASSERT_TRUE(std::ofstream(file) << "500,1\n");
  const std::unique_ptr<Session> other = Open();
  int number = 0;
  for (const std::string& sql : {std::string("INSERT INTO t VALUES (500, 1)"), "COPY t FROM '" + file + "'"}) {
    std::string answer;
    {
      auto alteration = session_->database().Alter("t");
      ASSERT_TRUE(alteration.ok());
      TableSchema schema = Table("t")->schema;
      schema.checks.push_back({"small" + std::to_string(++number), "k < 100"});
      std::thread thread([&] { answer = Ask(other.get(), sql); });
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_TRUE((*alteration)->Commit(schema, nullptr).ok());
      (*alteration).reset();  // and the lock with it
      thread.join();
    }
    EXPECT_NE(answer.find("table \"t\" was changed by another process"), std::string::npos) << answer;
    EXPECT_NE(Ask(other.get(), sql).find("violates check constraint"), std::string::npos);
    EXPECT_EQ(Ask("SELECT count(*) FROM t"), "count(*)\n10\n");
  }
}

/// The size that was chosen for a few rows must not decide how a billion that follow are stored.
TEST_F(AlterStatement, TabletRowsAreDeclaredOrChosenAnew) {
  EXPECT_EQ(Ask("CREATE TABLE t (k INTEGER, v INTEGER)"), "CREATE TABLE");
  EXPECT_EQ(Ask("INSERT INTO t VALUES (1, 2)"), "INSERT 0 1");
  EXPECT_EQ(Table("t")->schema.tablet_rows, 1u << 16);
  for (const char* sql : {"ALTER TABLE t ADD COLUMN n INTEGER", "ALTER TABLE t RENAME n TO m", "VACUUM t"}) {
    const std::string answer = Ask(sql);
    EXPECT_TRUE(answer == "ALTER TABLE" || answer == "VACUUM") << answer;
    EXPECT_EQ(Ask("TRUNCATE t"), "TRUNCATE TABLE");
    EXPECT_EQ(Table("t")->schema.tablet_rows, 0u) << sql;
    EXPECT_EQ(Ask("INSERT INTO t (k) VALUES (1)"), "INSERT 0 1");
  }
}

}  // namespace
}  // namespace tessera
