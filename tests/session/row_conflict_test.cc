// Transactions that change rows of one table at a time: those of different rows all commit, and keep each other's changes. What
// each sees and what is there in the end is compared with a model. With TESSERA_TEST_DEVICE=gpu the GPU reads the tables.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "session/session.h"
#include "tests/session/two_sessions.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using Rows = std::map<int, int>;  // by key: the value

bool OnGpu() { return getenv("TESSERA_TEST_DEVICE") != nullptr; }

bool IsConflict(const std::string& answer) { return answer.find("could not serialize access") != std::string::npos; }

class RowConflicts : public TwoSessions {
 protected:
  void SetUp() override {
    TwoSessions::SetUp();
    one_ = Open(directory());
    two_ = Open(fs::relative(directory()).string());  // (The same database by another name.)
  }

  static std::unique_ptr<Session> Open(const std::string& directory) {
    if (!OnGpu()) return TwoSessions::Open(directory);
    std::unique_ptr<Session> session = TwoSessions::Open(directory, DeviceChoice::kAuto);
    EXPECT_FALSE(Failed(Run(session, "SET gpu_min_rows = 1")));
    return session;
  }

  /// The table of (k, v) with these options and rows k = 1 .. `rows`, v = 10 * k.
  void Make(const std::string& options, int rows, const std::string& key = "") const {
    EXPECT_FALSE(Failed(Run(one_, "CREATE OR REPLACE TABLE t (k INTEGER " + key + ", v INTEGER, w TEXT)" + options)));
    EXPECT_FALSE(Failed(Run(
        one_, "INSERT INTO t SELECT range, range * 10, 'w' || range FROM range(1, " + std::to_string(rows + 1) + ")")));
  }
  void Begin() const {
    EXPECT_EQ(Run(one_, "BEGIN"), "BEGIN");
    EXPECT_FALSE(Failed(Run(one_, "SELECT count(*) FROM t")));
  }
};

TEST_F(RowConflicts, DifferentRowsBothCommit) {
  Make("", 2);
  Begin();
  EXPECT_EQ(Run(two_, "UPDATE t SET v = 11 WHERE k = 1"), "UPDATE 1");
  EXPECT_EQ(Run(one_, "UPDATE t SET v = 21 WHERE k = 2"), "UPDATE 1");
  EXPECT_EQ(Run(one_, "SELECT v FROM t ORDER BY k"), "10\n21\n");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "11\n20\n");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "11\n21\n");
}

TEST_F(RowConflicts, ASettingIsNoFirstStatement) {
  Make("", 2);
  EXPECT_EQ(Run(one_, "BEGIN"), "BEGIN");
  EXPECT_EQ(Run(one_, "SET lock_timeout = 1000"), "SET");
  EXPECT_EQ(Run(two_, "UPDATE t SET v = 11 WHERE k = 1"), "UPDATE 1");
  EXPECT_EQ(Run(one_, "UPDATE t SET v = v + 1 WHERE k = 1"), "UPDATE 1");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 1"), "12\n");
}

TEST_F(RowConflicts, TheSameRowConflicts) {
  for (const char* other : {"UPDATE t SET v = 0 WHERE k = 2", "UPDATE t SET k = 2, v = 0, w = '' WHERE k = 2",
                            "DELETE FROM t WHERE k = 2", "UPDATE t SET v = 0", "DELETE FROM t", "TRUNCATE t"}) {
    for (const char* sql : {"UPDATE t SET v = 1 WHERE k = 2", "DELETE FROM t WHERE k = 2", "DELETE FROM t",
                            "UPDATE t SET w = '' WHERE v > 0", "UPDATE t SET v = 1 WHERE k = 2 RETURNING v",
                            "MERGE INTO t USING (SELECT 2 AS x) s ON t.k = s.x WHEN MATCHED THEN UPDATE SET v = 1"}) {
      for (const int rows : {2, 40, 3000}) {
        Make("", rows);
        Begin();
        EXPECT_FALSE(Failed(Run(two_, other)));
        const std::string answer = Run(one_, sql);
        EXPECT_TRUE(IsConflict(answer)) << other << "; " << sql << ": " << answer;
        EXPECT_EQ(Run(one_, "COMMIT"), "ROLLBACK");
      }
    }
  }
}

TEST_F(RowConflicts, AnotherTableOfTheNameConflicts) {
  for (const char* other : {"VACUUM t", "ALTER TABLE t ADD COLUMN x INTEGER", "ALTER TABLE t ADD UNIQUE (k)",
                            "ALTER TABLE t ALTER v SET NOT NULL", "ALTER TABLE t ADD CHECK (v > 0)"}) {
    Make("", 40);
    Begin();
    Run(two_, "DELETE FROM t WHERE k = 1");
    EXPECT_FALSE(Failed(Run(two_, other))) << other;
    EXPECT_TRUE(IsConflict(Run(one_, "UPDATE t SET v = 1 WHERE k = 2"))) << other;
    Run(one_, "ROLLBACK");
  }
}

TEST_F(RowConflicts, Keys) {
  Make("", 5, "PRIMARY KEY");
  Begin();  // two insert one key
  EXPECT_EQ(Run(two_, "INSERT INTO t VALUES (6, 60, '')"), "INSERT 0 1");
  EXPECT_NE(Run(one_, "INSERT INTO t VALUES (6, 61, '')").find("duplicate key"), std::string::npos);
  Run(one_, "ROLLBACK");
  for (const char* action : {"NOTHING", "UPDATE SET v = 0"}) {
    Run(one_, "DELETE FROM t WHERE k = 6");
    Begin();  // ... that the other has not seen
    EXPECT_EQ(Run(two_, "INSERT INTO t VALUES (6, 60, '')"), "INSERT 0 1");
    EXPECT_TRUE(IsConflict(Run(one_, std::string("INSERT INTO t VALUES (6, 61, '') ON CONFLICT (k) DO ") + action)));
    Run(one_, "ROLLBACK");
  }
  Begin();  // the key is free again, but not for who still sees the row
  EXPECT_EQ(Run(two_, "DELETE FROM t WHERE k = 6"), "DELETE 1");
  EXPECT_TRUE(IsConflict(Run(one_, "INSERT INTO t VALUES (6, 61, '')")));
  Run(one_, "ROLLBACK");
  Begin();  // keys of different rows
  EXPECT_EQ(Run(two_, "UPDATE t SET k = 7 WHERE k = 1"), "UPDATE 1");
  EXPECT_EQ(Run(two_, "INSERT INTO t VALUES (8, 80, '') ON CONFLICT (k) DO NOTHING"), "INSERT 0 1");
  EXPECT_EQ(Run(one_, "UPDATE t SET k = 9 WHERE k = 2"), "UPDATE 1");
  EXPECT_EQ(Run(one_, "INSERT INTO t VALUES (3, 0, ''), (10, 0, '') ON CONFLICT (k) DO UPDATE SET v = 31"),
            "INSERT 0 2");
  EXPECT_EQ(Run(one_, "SELECT k, v FROM t ORDER BY k"), "1,10\n3,31\n4,40\n5,50\n9,20\n10,0\n");
  EXPECT_NE(Run(one_, "INSERT INTO t VALUES (8, 81, '')").find("duplicate key"), std::string::npos);
  EXPECT_EQ(Run(one_, "COMMIT"), "ROLLBACK");
  EXPECT_EQ(Run(one_, "SELECT k, v FROM t ORDER BY k"), "2,20\n3,30\n4,40\n5,50\n7,10\n8,80\n");
}

/// A table of single rows of INSERTs and of UPDATEs is written anew again and again; of rows that another process has written
/// anew nothing is known.
TEST_F(RowConflicts, RowsThatOthersHaveWrittenAnew) {
  Make("", 30);
  for (int round = 0; round < 3; ++round) {
    Begin();
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(Run(two_, "UPDATE t SET v = v + 1 WHERE k = " + std::to_string(1 + i % 20)), "UPDATE 1");
      if (i % 5 == 0) {
        EXPECT_EQ(Run(two_, "INSERT INTO t VALUES (" + std::to_string(1000 + i + 100 * round) + ", 0, '')"),
                  "INSERT 0 1");
      }
    }
    EXPECT_EQ(Run(one_, "UPDATE t SET v = v + 1 WHERE k BETWEEN 21 AND 30"), "UPDATE 10");
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  }
  EXPECT_EQ(Run(one_, "SELECT min(v - 10 * k), max(v - 10 * k) FROM t WHERE k <= 20"), "15,15\n");
  EXPECT_EQ(Run(one_, "SELECT min(v - 10 * k), max(v - 10 * k) FROM t WHERE k BETWEEN 21 AND 30"), "3,3\n");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "90\n");

  Make("", 30);
  Begin();
  const pid_t child = fork();
  if (child == 0) {
    const std::unique_ptr<Session> session = Open(directory());
    _exit(Run(session, "INSERT INTO t SELECT range, 0, '' FROM range(100, 150)") == "INSERT 0 50" ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(IsConflict(Run(one_, "UPDATE t SET v = v + 1 WHERE k = 7")));
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Run(one_, "UPDATE t SET v = v + 1 WHERE k = 7"), "UPDATE 1");
}

/// Where every transaction comes after others' changes, small tablets are written together all the same.
TEST_F(RowConflicts, TabletsAreMerged) {
  const int turns = OnGpu() ? 75 : 300;
  Make("", 2000);
  for (int i = 0; i < turns; ++i) {
    Begin();
    EXPECT_EQ(Run(two_, "BEGIN"), "BEGIN");
    EXPECT_EQ(Run(two_, "SELECT count(*) FROM t"), "2000\n");
    EXPECT_EQ(Run(one_, "UPDATE t SET v = v + 1 WHERE k = " + std::to_string(1 + i)), "UPDATE 1");
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
    EXPECT_EQ(Run(two_, "UPDATE t SET v = v + 1 WHERE k = " + std::to_string(1001 + i)), "UPDATE 1");
    EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
  }
  EXPECT_EQ(Run(one_, "SELECT sum(v - 10 * k), count(*) FROM t"), std::to_string(2 * turns) + ",2000\n");
  one_.reset();
  two_.reset();
  two_ = Open(directory());  // (What others read is removed by later writers.)
  Run(two_, "CREATE TABLE other (x INTEGER)");
  const auto tablets = std::ranges::count_if(fs::directory_iterator(directory()), [](const auto& entry) {
    return entry.path().filename().string().starts_with("tablet-");
  });
  EXPECT_LT(tablets, 60);
}

/// Rows with even keys are one session's, those with odd ones the other's.
class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed) {}
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  /// A change of rows whose keys have this rest, which `rows` gets, too.
  std::string Change(int rest, Rows* rows) {
    const int by = 1 + Below(4), which = Below(by);
    const std::string where =
        " WHERE k % 2 = " + std::to_string(rest) + " AND k % " + std::to_string(by) + " = " + std::to_string(which);
    const auto is_meant = [&](int k) { return k % 2 == rest && k % by == which; };
    switch (Below(5)) {
      case 0:
        for (auto& [k, v] : *rows) v += is_meant(k) ? 1 : 0;
        return "UPDATE t SET v = v + 1" + where;
      case 1:
        for (auto& [k, v] : *rows) v = is_meant(k) ? k : v;
        return "UPDATE t SET v = k, w = 'x' || w" + where;
      case 2:
        std::erase_if(*rows, [&](const auto& row) { return is_meant(row.first) && row.first % 3 == 0; });
        return "DELETE FROM t" + where + " AND k % 3 = 0";
      case 3: {
        const int count = Below(3) == 0 ? 40 : 1;
        std::string values;
        for (int i = 0; i < count; ++i) {
          const int k = (next_ += 2) + rest;
          (*rows)[k] = -k;
          values += (i == 0 ? "(" : ", (") + std::to_string(k) + ", " + std::to_string(-k) + ", NULL)";
        }
        return "INSERT INTO t VALUES " + values;
      }
      default: {
        const int k = 2 * Below(30) + rest;
        if (rows->contains(k)) (*rows)[k] = 7;
        return "UPDATE t SET v = 7 WHERE k = " + std::to_string(k);
      }
    }
  }

 private:
  std::mt19937 random_;
  int next_ = 10000;
};

std::string Listed(const Rows& rows) {
  std::string text;
  for (const auto& [k, v] : rows) text += std::to_string(k) + "," + std::to_string(v) + "\n";
  return text;
}

/// What is answered from statistics, too.
std::string Counted(const Rows& rows) {
  if (rows.empty()) return "0,,,,0\n";
  int sum = 0, nulls = 0, least = INT32_MAX;
  for (const auto& [k, v] : rows) {
    sum += v;
    nulls += k >= 10000 ? 1 : 0;
    least = std::min(least, v);
  }
  return std::to_string(rows.size()) + "," + std::to_string(least) + "," + std::to_string(rows.rbegin()->first) + "," +
         std::to_string(sum) + "," + std::to_string(static_cast<int>(rows.size()) - nulls) + "\n";
}

class AsModelled : public RowConflicts {
 protected:
  void Compare(const std::unique_ptr<Session>& session, const Rows& rows) const {
    EXPECT_EQ(Run(session, "SELECT k, v FROM t ORDER BY k"), Listed(rows));
    EXPECT_EQ(Run(session, "SELECT count(*), min(v), max(k), sum(v), count(w) FROM t"), Counted(rows));
  }
  static Rows Both(const Rows& even, const Rows& odd) {
    Rows rows;
    for (const auto& [k, v] : even) rows.emplace(k, v);
    for (const auto& [k, v] : odd) rows.emplace(k, v);
    return rows;
  }
};

TEST_F(AsModelled, RandomChangesOfDifferentRows) {
  for (uint32_t seed = 0; seed < (OnGpu() ? 15 : 60); ++seed) {
    SCOPED_TRACE(seed);
    Model model(seed);
    const int size = 1 + model.Below(model.Below(3) == 0 ? 3000 : 60), tablet_rows = model.Below(8);
    Make(tablet_rows == 0 || size > 60 ? "" : " WITH (tablet_rows = " + std::to_string(tablet_rows) + ")", size,
         model.Below(2) == 0 ? "PRIMARY KEY" : "");
    Rows even, odd;
    for (int k = 1; k <= size; ++k) (k % 2 == 0 ? even : odd)[k] = 10 * k;
    for (int round = 0; round < 3; ++round) {
      Begin();
      const Rows seen = even;
      for (int i = model.Below(6); i >= 0; --i) {
        const std::string sql = model.Change(0, &even);
        EXPECT_FALSE(Failed(Run(two_, sql))) << sql;
      }
      const Rows before = odd;
      Rows mark;
      bool has_mark = false;
      for (int i = model.Below(5); i >= 0 && !HasFailure(); --i) {
        if (model.Below(4) == 0) {
          if (has_mark) odd = mark;
          EXPECT_FALSE(Failed(Run(one_, has_mark ? "ROLLBACK TO s" : "SAVEPOINT s")));
          mark = odd;
          has_mark = true;
        }
        const std::string sql = model.Change(1, &odd);
        const std::string answer = Run(one_, sql);
        EXPECT_FALSE(Failed(answer)) << sql << ": " << answer;
        Compare(one_, Both(seen, odd));
        Compare(two_, Both(even, before));
      }
      if (model.Below(5) == 0) {
        EXPECT_EQ(Run(one_, "ROLLBACK"), "ROLLBACK");
        odd = before;
      } else {
        EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
      }
      Compare(one_, Both(even, odd));
      Compare(two_, Both(even, odd));
      Compare(Open(directory()), Both(even, odd));
      if (HasFailure()) return;
    }
    EXPECT_FALSE(Failed(Run(one_, "PRAGMA integrity_check")));
  }
}

}  // namespace
}  // namespace tessera
