// Transactions of several sessions on one database: each anomaly of the literature by its name, what is seen of a transaction
// that ends in the middle, and random histories of appends to lists, in which a cycle of dependencies would show what no
// order of the transactions explains (Adya; Kingsbury and Alvaro, Elle).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class Transactions : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "transactions-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    one_ = Open();
    two_ = Open();
    Run(one_, "CREATE TABLE t (k INTEGER, v INTEGER)");
    Run(one_, "INSERT INTO t VALUES (1, 10), (2, 20)");
  }
  void TearDown() override {
    one_.reset();
    two_.reset();
    fs::remove_all(folder_);
  }

  std::string directory() const { return folder_ + "/db"; }

  std::unique_ptr<Session> Open() const {
    SessionOptions options;
    options.directory = directory();
    options.device = DeviceChoice::kHost;
    options.threads = 1;
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(*session);
  }

  /// The answer, as comma separated values without a header; "ERROR: ..." if there is none.
  static std::string Run(const std::unique_ptr<Session>& session, const std::string& sql) {
    ResultTextOptions options;
    options.format = ResultFormat::kCsv;
    options.headers = false;
    return Answer(session.get(), sql, options);
  }
  /// What two_ answers to a statement that begins while one_ has the writer lock, and ends after the COMMIT of one_.
  std::string RunAfterCommit(const std::string& sql) {
    std::string answer;
    std::thread waits([&] { answer = Run(two_, sql); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
    waits.join();
    return answer;
  }
  static bool Failed(const std::string& answer) { return answer.starts_with("ERROR"); }

  size_t Tablets() const {
    return static_cast<size_t>(std::ranges::count_if(fs::directory_iterator(directory()), [](const auto& entry) {
      return entry.path().filename().string().starts_with("tablet-");
    }));
  }

  std::string folder_;
  std::unique_ptr<Session> one_, two_;
};

TEST_F(Transactions, DirtyWrite) {  // P0
  Run(one_, "BEGIN");
  Run(one_, "UPDATE t SET v = 11 WHERE k = 1");
  Run(two_, "SET lock_timeout = 50");
  Run(two_, "BEGIN");
  EXPECT_NE(Run(two_, "UPDATE t SET v = 12 WHERE k = 1").find("is being written by process"), std::string::npos);
  EXPECT_EQ(Run(two_, "COMMIT"), "ROLLBACK");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "11\n20\n");
}

TEST_F(Transactions, DirtyRead) {  // P1, G1a: of what is rolled back; G1b: of what is changed again
  Run(one_, "BEGIN");
  Run(one_, "UPDATE t SET v = 101 WHERE k = 1");
  EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "10\n");
  Run(one_, "UPDATE t SET v = 102 WHERE k = 1");
  EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "10\n");
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "10\n");
}

TEST_F(Transactions, FuzzyReadAndPhantom) {  // P2, P3
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT sum(v) FROM t"), "30\n");
  Run(two_, "UPDATE t SET v = 12 WHERE k = 1");
  Run(two_, "INSERT INTO t VALUES (3, 30)");
  Run(two_, "CREATE TABLE other (x INTEGER)");
  EXPECT_EQ(Run(one_, "SELECT sum(v), count(*) FROM t"), "30,2\n");
  EXPECT_TRUE(Failed(Run(one_, "SELECT * FROM other")));
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Run(one_, "SELECT sum(v), count(*) FROM t"), "62,3\n");
}

TEST_F(Transactions, LostUpdate) {  // P4
  for (const auto& session : {std::cref(one_), std::cref(two_)}) {
    Run(session, "BEGIN");
    EXPECT_EQ(Run(session, "SELECT v FROM t WHERE k = 1"), "10\n");
  }
  EXPECT_EQ(Run(one_, "UPDATE t SET v = 11 WHERE k = 1"), "UPDATE 1");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_NE(Run(two_, "UPDATE t SET v = 15 WHERE k = 1").find("could not serialize access"), std::string::npos);
  EXPECT_EQ(Run(two_, "COMMIT"), "ROLLBACK");
  EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "11\n");
}

TEST_F(Transactions, ReadSkew) {  // A5A
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 1"), "10\n");
  Run(two_, "BEGIN");
  Run(two_, "UPDATE t SET v = 12 WHERE k = 1");
  Run(two_, "UPDATE t SET v = 18 WHERE k = 2");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 2"), "20\n");
  EXPECT_TRUE(Failed(Run(one_, "DELETE FROM t WHERE v = 20")));
  Run(one_, "ROLLBACK");
}

TEST_F(Transactions, WriteSkew) {  // A5B: two that read both rows, each of which changes another one
  for (const auto& session : {std::cref(one_), std::cref(two_)}) {
    Run(session, "BEGIN");
    EXPECT_EQ(Run(session, "SELECT sum(v) FROM t"), "30\n");
  }
  EXPECT_EQ(Run(one_, "UPDATE t SET v = v - 25 WHERE k = 1"), "UPDATE 1");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_TRUE(Failed(Run(two_, "UPDATE t SET v = v - 25 WHERE k = 2")));
  Run(two_, "ROLLBACK");
  EXPECT_EQ(Run(two_, "SELECT sum(v) FROM t"), "5\n");
}

TEST_F(Transactions, AbortedRead) {  // G1a: what was read was rolled back
  Run(one_, "BEGIN");
  Run(one_, "UPDATE t SET v = 101 WHERE k = 1");
  Run(two_, "BEGIN");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "10\n20\n");
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "10\n20\n");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
}

TEST_F(Transactions, IntermediateRead) {  // G1b: what was read was not the last that was written
  Run(one_, "BEGIN");
  Run(one_, "UPDATE t SET v = 101 WHERE k = 1");
  Run(two_, "BEGIN");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "10\n20\n");
  Run(one_, "UPDATE t SET v = 11 WHERE k = 1");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "10\n20\n");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "11\n20\n");
}

TEST_F(Transactions, CircularInformationFlow) {  // G1c: each has read what the other writes
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "UPDATE t SET v = 11 WHERE k = 1"), "UPDATE 1");
  Run(two_, "BEGIN");
  EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "10\n");
  EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 2"), "20\n");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_TRUE(Failed(Run(two_, "UPDATE t SET v = 22 WHERE k = 2")));
  EXPECT_EQ(Run(two_, "COMMIT"), "ROLLBACK");
}

TEST_F(Transactions, ObservedTransactionVanishes) {  // OTV: of a transaction that was seen, a part is gone later
  Run(one_, "BEGIN");
  Run(one_, "UPDATE t SET v = 11 WHERE k = 1");
  Run(one_, "UPDATE t SET v = 19 WHERE k = 2");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  Run(two_, "BEGIN");
  EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "11\n");
  Run(one_, "UPDATE t SET v = 12 WHERE k = 1");
  Run(one_, "UPDATE t SET v = 18 WHERE k = 2");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "11\n19\n");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
}

/// P2, P3, P4, A5A, A5B under each level: all of them give the strictest.
TEST_F(Transactions, EveryLevelIsSerialisable) {
  for (const char* level : {"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    const auto begin = [&](const std::unique_ptr<Session>& session) {
      EXPECT_EQ(Run(session, std::string("BEGIN ISOLATION LEVEL ") + level), "BEGIN") << level;
    };
    Run(one_, "DELETE FROM t");
    Run(one_, "INSERT INTO t VALUES (1, 10), (2, 20)");
    begin(one_);  // non-repeatable read and phantom
    EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE v > 5 ORDER BY k"), "10\n20\n") << level;
    Run(two_, "UPDATE t SET v = 12 WHERE k = 1");
    Run(two_, "INSERT INTO t VALUES (3, 30)");
    Run(two_, "DELETE FROM t WHERE k = 2");
    EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE v > 5 ORDER BY k"), "10\n20\n") << level;
    Run(one_, "ROLLBACK");
    begin(one_);  // lost update
    begin(two_);
    EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 1"), "12\n") << level;
    EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "12\n") << level;
    EXPECT_EQ(Run(one_, "UPDATE t SET v = 13 WHERE k = 1"), "UPDATE 1") << level;
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT") << level;
    EXPECT_TRUE(Failed(Run(two_, "UPDATE t SET v = 14 WHERE k = 1"))) << level;
    EXPECT_EQ(Run(two_, "COMMIT"), "ROLLBACK") << level;
    begin(one_);  // write skew over a predicate: each counts no rows, and adds one
    begin(two_);
    EXPECT_EQ(Run(one_, "SELECT count(*) FROM t WHERE v > 100"), "0\n") << level;
    EXPECT_EQ(Run(two_, "SELECT count(*) FROM t WHERE v > 100"), "0\n") << level;
    EXPECT_EQ(Run(one_, "INSERT INTO t VALUES (4, 101)"), "INSERT 0 1") << level;
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT") << level;
    EXPECT_TRUE(Failed(Run(two_, "INSERT INTO t VALUES (5, 102)"))) << level;
    EXPECT_EQ(Run(two_, "COMMIT"), "ROLLBACK") << level;
  }
}

TEST_F(Transactions, ADeleteThatFoundNothingConflictsWithTheInsert) {
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t WHERE k = 7"), "0\n");
  Run(two_, "INSERT INTO t VALUES (7, 70)");
  EXPECT_NE(Run(one_, "DELETE FROM t WHERE k = 7").find("could not serialize access"), std::string::npos);
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Run(one_, "DELETE FROM t WHERE k = 7"), "DELETE 1");
}

TEST_F(Transactions, AReferencedRowDoesNotGoBetweenCheckAndCommit) {
  Run(one_, "CREATE TABLE p (id INTEGER PRIMARY KEY)");
  Run(one_, "CREATE TABLE c (p_id INTEGER REFERENCES p)");
  Run(one_, "INSERT INTO p VALUES (1)");
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "INSERT INTO c VALUES (1)"), "INSERT 0 1");
  Run(two_, "SET lock_timeout = 50");
  EXPECT_NE(Run(two_, "DELETE FROM p").find("is being written by process"), std::string::npos);
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_NE(Run(two_, "DELETE FROM p").find("violates foreign key"), std::string::npos);
  Run(two_, "BEGIN");
  Run(two_, "DELETE FROM c");
  EXPECT_EQ(Run(two_, "DELETE FROM p"), "DELETE 1");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
  EXPECT_NE(Run(one_, "INSERT INTO c VALUES (1)").find("is not present in table"), std::string::npos);
}

TEST_F(Transactions, AnIdleOneIsRolledBack) {
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(400)); };
  Run(one_, "SET idle_in_transaction_session_timeout = 100");
  Run(one_, "CREATE TEMP VIEW w AS SELECT 1 AS x");
  Run(one_, "BEGIN");
  Run(one_, "DELETE FROM t");
  Run(one_, "DROP VIEW w");
  wait();
  EXPECT_EQ(Run(two_, "INSERT INTO t VALUES (3, 30)"), "INSERT 0 1");  // the lock is free
  EXPECT_NE(Run(one_, "SELECT count(*) FROM t").find("it was idle for longer than"), std::string::npos);
  EXPECT_NE(Run(one_, "SELECT count(*) FROM t").find("current transaction is aborted"), std::string::npos);
  EXPECT_EQ(Run(one_, "COMMIT"), "ROLLBACK");
  EXPECT_EQ(Run(one_, "SELECT count(*), (SELECT x FROM w) FROM t"), "3,1\n");
  // COMMIT says so, too, and is the end of it.
  Run(one_, "BEGIN");
  Run(one_, "DELETE FROM t");
  wait();
  EXPECT_NE(Run(one_, "COMMIT").find("it was idle for longer than"), std::string::npos);
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "3\n");
  // One that has only read; and ROLLBACK, which does what is wanted.
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "3\n");
  wait();
  EXPECT_EQ(Run(one_, "ROLLBACK"), "ROLLBACK");
  // One that is not idle for so long is not.
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "DELETE FROM t WHERE k = 3"), "DELETE 1");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  wait();
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "2\n");
  Run(one_, "BEGIN");
  wait();
  one_.reset();  // a session ends in the middle
  EXPECT_EQ(Run(two_, "SELECT count(*) FROM t"), "2\n");
}

TEST_F(Transactions, OneKeyTwice) {
  Run(one_, "CREATE TABLE u (k INTEGER PRIMARY KEY)");
  Run(one_, "BEGIN");
  Run(one_, "INSERT INTO u VALUES (1)");
  Run(two_, "BEGIN");
  Run(two_, "SET lock_timeout = 50");
  EXPECT_TRUE(Failed(Run(two_, "INSERT INTO u VALUES (1)")));
  Run(two_, "ROLLBACK");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_NE(Run(two_, "INSERT INTO u VALUES (1)").find("duplicate key"), std::string::npos);
}

TEST_F(Transactions, AFirstStatementThatWritesWaitsAndSeesTheNewest) {
  Run(one_, "BEGIN IMMEDIATE");
  Run(one_, "UPDATE t SET v = 11 WHERE k = 1");
  Run(two_, "BEGIN");
  EXPECT_EQ(RunAfterCommit("UPDATE t SET v = v + 1 WHERE k = 1"), "UPDATE 1");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 1"), "12\n");
}

TEST_F(Transactions, WhereTheLockIsNotHadNothingBegins) {
  Run(one_, "BEGIN IMMEDIATE");
  Run(two_, "SET lock_timeout = 50");
  EXPECT_TRUE(Failed(Run(two_, "BEGIN IMMEDIATE")));
  EXPECT_EQ(Run(two_, "SELECT count(*) FROM t"), "2\n");
  EXPECT_TRUE(Failed(Run(two_, "SAVEPOINT s")));  // outside of a transaction
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Run(two_, "BEGIN IMMEDIATE"), "BEGIN");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
}

TEST_F(Transactions, AnInsertOfAQueryThatWaitsReadsTheNewest) {
  Run(one_, "CREATE TABLE copies (k INTEGER, v INTEGER)");
  Run(one_, "BEGIN IMMEDIATE");
  Run(one_, "DELETE FROM t WHERE k = 1");
  Run(one_, "UPDATE t SET v = 21 WHERE k = 2");
  EXPECT_EQ(RunAfterCommit("INSERT INTO copies SELECT k, v FROM t WHERE k <= 2 RETURNING k, v"), "2,21\nINSERT 0 1");
  EXPECT_EQ(Run(one_, "SELECT k, v FROM copies"), "2,21\n");
}

TEST_F(Transactions, TheEndOfASessionRollsBack) {
  Run(one_, "BEGIN");
  Run(one_, "INSERT INTO t SELECT k, v FROM t");
  Run(one_, "DROP TABLE t");
  one_.reset();
  EXPECT_EQ(Run(two_, "SELECT count(*) FROM t"), "2\n");
  EXPECT_EQ(Run(two_, "INSERT INTO t VALUES (3, 30)"), "INSERT 0 1");  // the lock is free
}

TEST_F(Transactions, FilesOfWhatIsRolledBackGo) {
  const size_t before = Tablets();
  Run(one_, "BEGIN");
  for (int i = 0; i < 20; ++i) {
    Run(one_, "INSERT INTO t SELECT 3, count(*) FROM t");
    Run(one_, "UPDATE t SET v = v + 1");
  }
  EXPECT_LE(Tablets(), before + 4);  // what it has made and does not need any more goes before its end
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Tablets(), before);
  EXPECT_EQ(Run(two_, "SELECT sum(v), count(*) FROM t"), "30,2\n");
  // What comes next is not taken for what was rolled back.
  EXPECT_EQ(Run(one_, "INSERT INTO t VALUES (9, 9)"), "INSERT 0 1");
  EXPECT_EQ(Run(one_, "SELECT sum(v), count(*) FROM t"), "39,3\n");
  EXPECT_EQ(Run(two_, "SELECT sum(v), count(*) FROM t"), "39,3\n");
}

TEST_F(Transactions, AnOpenSnapshotKeepsItsFiles) {
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT 1"), "1\n");  // it has a snapshot, but has opened no file
  Run(two_, "DROP TABLE t");
  Run(two_, "CREATE TABLE t (k INTEGER, v INTEGER)");
  EXPECT_EQ(Run(one_, "SELECT sum(v), count(*) FROM t"), "30,2\n");
  Run(one_, "COMMIT");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "0\n");
}

TEST_F(Transactions, AnswersKeptFromBeforeAreNotUsed) {  // least and greatest values, counts, numbers of rows
  EXPECT_EQ(Run(one_, "SELECT min(v), max(v), count(*) FROM t"), "10,20,2\n");
  Run(one_, "BEGIN");
  Run(one_, "UPDATE t SET v = v * 10");
  EXPECT_EQ(Run(one_, "SELECT min(v), max(v), count(*) FROM t"), "100,200,2\n");
  EXPECT_EQ(Run(two_, "SELECT min(v), max(v), count(*) FROM t"), "10,20,2\n");
  Run(one_, "SAVEPOINT s");
  Run(one_, "DELETE FROM t WHERE k = 2");
  EXPECT_EQ(Run(one_, "SELECT min(v), max(v), count(*) FROM t"), "100,100,1\n");
  Run(one_, "ROLLBACK TO s");
  EXPECT_EQ(Run(one_, "SELECT min(v), max(v), count(*) FROM t"), "100,200,2\n");
  Run(one_, "INSERT INTO t VALUES (3, 5000)");
  EXPECT_EQ(Run(one_, "SELECT min(v), max(v), count(*) FROM t"), "100,5000,3\n");
  Run(one_, "ROLLBACK");
  EXPECT_EQ(Run(one_, "SELECT min(v), max(v), count(*) FROM t"), "10,20,2\n");
}

/// A child commits pairs of rows in transactions and says so; it is killed at some moment.
TEST_F(Transactions, KilledAtAnyMoment) {
  std::mt19937 random(7);
  int64_t acknowledged = 0;
  one_.reset();
  two_.reset();
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const std::unique_ptr<Session> session = Open();
      for (int64_t pair = acknowledged + 1;; ++pair) {
        const std::string value = std::to_string(pair);
        Run(session, "BEGIN");
        Run(session, "INSERT INTO t VALUES (100, " + value + ")");
        Run(session, "UPDATE t SET v = v + 1 WHERE k = 1");
        Run(session, "INSERT INTO t VALUES (100, -" + value + ")");
        if (Failed(Run(session, "COMMIT"))) _exit(1);
        if (write(ends[1], &pair, sizeof pair) != sizeof pair) _exit(1);
      }
    }
    close(ends[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 120));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    int64_t last = 0;
    while (read(ends[0], &last, sizeof last) == sizeof last) acknowledged = last;
    close(ends[0]);
    const std::unique_ptr<Session> session = Open();
    // Whole pairs, and as many changes of the first row; at most one that was not acknowledged.
    EXPECT_EQ(Run(session, "SELECT coalesce(sum(v), 0) FROM t WHERE k = 100"), "0\n");
    const int64_t pairs = std::stoll(Run(session, "SELECT count(*) / 2 FROM t WHERE k = 100"));
    EXPECT_EQ(Run(session, "SELECT v FROM t WHERE k = 1"), std::to_string(10 + pairs) + "\n");
    EXPECT_GE(pairs, acknowledged);
    EXPECT_LE(pairs, acknowledged + 1);
    acknowledged = pairs;
  }
  EXPECT_GT(acknowledged, 0);
}

/// What a transaction of a history did with lists: what it read, and what it appended.
struct Appends {
  std::map<int, std::vector<int>> read;  ///< by list; before its own appends
  std::map<int, std::vector<int>> appended;
};

/// Edges of the transactions that must come after each other, whatever the order of all: of who has read or appended after
/// whom. Where all lists are read at the end, the order of their elements is known.
std::vector<std::set<size_t>> Dependencies(const std::vector<Appends>& history,
                                           const std::map<int, std::vector<int>>& lists) {
  std::map<int, size_t> writer;
  for (size_t t = 0; t < history.size(); ++t) {
    for (const auto& [list, elements] : history[t].appended) {
      for (const int element : elements) writer[element] = t;
    }
  }
  std::vector<std::set<size_t>> after(history.size());
  const auto add = [&](size_t from, size_t to) {
    if (from != to) after[from].insert(to);
  };
  for (const auto& [list, elements] : lists) {
    for (size_t i = 1; i < elements.size(); ++i) add(writer.at(elements[i - 1]), writer.at(elements[i]));
  }
  for (size_t t = 0; t < history.size(); ++t) {
    for (const auto& [list, seen] : history[t].read) {
      const std::vector<int>& all = lists.at(list);
      EXPECT_TRUE(seen.size() <= all.size() && std::equal(seen.begin(), seen.end(), all.begin()))
          << "transaction " << t << " has read what is no beginning of list " << list;
      if (!seen.empty()) add(writer.at(seen.back()), t);
      if (seen.size() < all.size()) add(t, writer.at(all[seen.size()]));
    }
  }
  return after;
}

/// Whether the edges have a cycle.
bool HasCycle(const std::vector<std::set<size_t>>& after) {
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(after.size(), Mark::kNew);
  std::function<bool(size_t)> visit = [&](size_t node) {
    marks[node] = Mark::kOpen;
    for (const size_t to : after[node]) {
      if (marks[to] == Mark::kOpen || (marks[to] == Mark::kNew && visit(to))) return true;
    }
    marks[node] = Mark::kDone;
    return false;
  };
  for (size_t node = 0; node < after.size(); ++node) {
    if (marks[node] == Mark::kNew && visit(node)) return true;
  }
  return false;
}

TEST(ListAppend, TheCheckerFindsCycles) {
  // Each of two has read the list before the other's append: a write skew.
  std::vector<Appends> history(2);
  history[0] = {{{1, {}}}, {{2, {20}}}};
  history[1] = {{{2, {}}}, {{1, {10}}}};
  EXPECT_TRUE(HasCycle(Dependencies(history, {{1, {10}}, {2, {20}}})));
  history[1].read = {{2, {20}}};
  EXPECT_FALSE(HasCycle(Dependencies(history, {{1, {10}}, {2, {20}}})));
}

TEST_F(Transactions, HistoriesOfAppendsHaveAnOrder) {
  constexpr int kLists = 4, kThreads = 4, kTransactions = 25;
  // Elements are in the order of `at`, which each appender takes from what it has read.
  Run(one_, "CREATE TABLE lists (list INTEGER, at INTEGER, element INTEGER)");
  const auto elements = [](const std::string& answer) {
    std::vector<int> out;
    for (size_t at = 0; at < answer.size(); at = answer.find('\n', at) + 1) out.push_back(std::stoi(answer.substr(at)));
    return out;
  };
  std::vector<std::vector<Appends>> histories(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const std::unique_ptr<Session> session = Open();
      std::mt19937 random(static_cast<uint32_t>(thread));
      int next = 1000 * (thread + 1);
      for (int i = 0; i < kTransactions; ++i) {
        Appends did;
        bool ok = !Failed(Run(session, "BEGIN"));
        for (int step = 0; ok && step < 3; ++step) {
          const int list = static_cast<int>(random() % kLists);
          const std::string where = " FROM lists WHERE list = " + std::to_string(list);
          if (random() % 2 == 0) {
            const std::string answer = Run(session, "SELECT element" + where + " ORDER BY at");
            ok = !Failed(answer);
            if (!ok) break;
            std::vector<int> seen = elements(answer);
            const std::vector<int>& own = did.appended[list];
            ok = seen.size() >= own.size();
            EXPECT_TRUE(ok && std::equal(own.begin(), own.end(), seen.end() - static_cast<ptrdiff_t>(own.size())));
            if (!ok) break;
            seen.resize(seen.size() - own.size());
            const auto [known, is_first] = did.read.emplace(list, seen);
            EXPECT_EQ(known->second, seen) << "a second read differs from the first";
          } else {
            const int element = next++;
            ok = !Failed(Run(session, "INSERT INTO lists SELECT " + std::to_string(list) + ", count(*), " +
                                          std::to_string(element) + where));
            did.appended[list].push_back(element);
          }
        }
        const std::string end = Run(session, random() % 8 == 0 ? "ROLLBACK" : "COMMIT");
        if (end == "COMMIT") histories[static_cast<size_t>(thread)].push_back(std::move(did));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Appends> history;
  for (auto& part : histories) std::ranges::move(part, std::back_inserter(history));
  std::map<int, std::vector<int>> lists;
  size_t stored = 0, appended = 0;
  for (int list = 0; list < kLists; ++list) {
    lists[list] =
        elements(Run(one_, "SELECT element FROM lists WHERE list = " + std::to_string(list) + " ORDER BY at"));
    stored += lists[list].size();
  }
  for (const Appends& t : history) {
    for (const auto& [list, added] : t.appended) appended += added.size();
  }
  EXPECT_EQ(stored, appended);
  EXPECT_GT(history.size(), size_t{kThreads});
  EXPECT_FALSE(HasCycle(Dependencies(history, lists)));
}

}  // namespace
}  // namespace tessera
