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
#include "tests/session/two_sessions.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class Transactions : public TwoSessions {
 protected:
  void SetUp() override {
    TwoSessions::SetUp();
    Run(one_, "CREATE TABLE t (k INTEGER, v INTEGER)");
    Run(one_, "INSERT INTO t VALUES (1, 10), (2, 20)");
  }
  std::unique_ptr<Session> Open() const { return TwoSessions::Open(directory()); }

  /// What two_ answers to a statement that begins while one_ has the writer lock, and ends after the COMMIT of one_.
  std::string RunAfterCommit(const std::string& sql) {
    std::string answer;
    std::thread waits([&] { answer = Run(two_, sql); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
    waits.join();
    return answer;
  }

  size_t Tablets() const {
    return static_cast<size_t>(std::ranges::count_if(fs::directory_iterator(directory()), [](const auto& entry) {
      return entry.path().filename().string().starts_with("tablet-");
    }));
  }
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

TEST_F(Transactions, LostUpdate) {  // P4, at the default level and under SERIALIZABLE
  for (const std::string begin : {"BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE"}) {
    SCOPED_TRACE(begin);
    Run(one_, "UPDATE t SET v = 10 WHERE k = 1");
    for (const auto& session : {std::cref(one_), std::cref(two_)}) {
      Run(session, begin);
      EXPECT_EQ(Run(session, "SELECT v FROM t WHERE k = 1"), "10\n");
    }
    EXPECT_EQ(Run(one_, "UPDATE t SET v = 11 WHERE k = 1"), "UPDATE 1");
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
    EXPECT_NE(Run(two_, "UPDATE t SET v = 15 WHERE k = 1").find("could not serialize access"), std::string::npos);
    EXPECT_EQ(Run(two_, "COMMIT"), "ROLLBACK");
    EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "11\n");
  }
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

/// Two that read both rows, each of which changes another one: snapshot isolation lets them, as the rows are not the same.
TEST_F(Transactions, WriteSkew) {  // A5B
  for (const std::string level : {"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    SCOPED_TRACE(level);
    Run(one_, "UPDATE t SET v = k * 10");
    for (const auto& session : {std::cref(one_), std::cref(two_)}) {
      Run(session, "BEGIN ISOLATION LEVEL " + level);
      EXPECT_EQ(Run(session, "SELECT sum(v) FROM t"), "30\n");
    }
    EXPECT_EQ(Run(one_, "UPDATE t SET v = v - 25 WHERE k = 1"), "UPDATE 1");
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
    const bool refused = level == "SERIALIZABLE";
    EXPECT_EQ(Failed(Run(two_, "UPDATE t SET v = v - 25 WHERE k = 2")), refused);
    if (!refused) {
      EXPECT_EQ(Run(two_, "SELECT sum(v) FROM t"), "5\n");
    }
    EXPECT_EQ(Run(two_, "COMMIT"), refused ? "ROLLBACK" : "COMMIT");
    EXPECT_EQ(Run(two_, "SELECT sum(v) FROM t"), refused ? "5\n" : "-20\n");
  }
}

/// The same over two tables, of which each changes the one that the other has read alone.
TEST_F(Transactions, WriteSkewOfTwoTables) {  // A5B
  for (const char* level : {"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    Run(one_, "CREATE OR REPLACE TABLE u (v INTEGER)");
    Run(one_, "INSERT INTO u VALUES (20)");
    Run(one_, "UPDATE t SET v = 10");
    for (const auto& session : {std::cref(one_), std::cref(two_)}) {
      Run(session, std::string("BEGIN ISOLATION LEVEL ") + level);
      EXPECT_EQ(Run(session, "SELECT t.v + u.v FROM t, u WHERE k = 1"), "30\n") << level;
    }
    EXPECT_EQ(Run(one_, "UPDATE t SET v = v - 25 WHERE k = 1"), "UPDATE 1") << level;
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT") << level;
    const bool refused = level == std::string("SERIALIZABLE");
    const std::string answer = Run(two_, "UPDATE u SET v = v - 25");
    EXPECT_EQ(answer.substr(0, 8), refused ? "ERROR:  " : "UPDATE 1") << level << ": " << answer;
    // It goes on to see what it has seen.
    if (!refused) {
      EXPECT_EQ(Run(two_, "SELECT t.v, u.v FROM t, u WHERE k = 1"), "10,-5\n") << level;
    }
    EXPECT_EQ(Run(two_, "COMMIT"), refused ? "ROLLBACK" : "COMMIT") << level;
    EXPECT_EQ(Run(two_, "SELECT t.v, u.v FROM t, u WHERE k = 1"), refused ? "-15,20\n" : "-15,-5\n") << level;
  }
}

TEST_F(Transactions, ReadSkewOfTwoTables) {  // A5A: the second read comes after a change of its own
  Run(one_, "CREATE TABLE u (v INTEGER)");
  Run(one_, "CREATE TABLE log (v INTEGER)");
  Run(one_, "INSERT INTO u VALUES (20)");
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 1"), "10\n");
  Run(two_, "BEGIN");
  Run(two_, "UPDATE t SET v = 12 WHERE k = 1");
  Run(two_, "UPDATE u SET v = 18");
  Run(two_, "INSERT INTO u VALUES (1)");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(one_, "INSERT INTO log SELECT t.v + u.v FROM t, u"), "INSERT 0 2");
  Run(one_, "SAVEPOINT s");
  EXPECT_EQ(Run(one_, "SELECT v FROM u"), "20\n");
  EXPECT_EQ(Run(one_, "SELECT v FROM log ORDER BY v"), "30\n40\n");
  // Rows that others have changed it does not change, nor tables of which it does not see the newest rows.
  for (const char* sql :
       {"DELETE FROM u", "UPDATE t SET v = 0", "TRUNCATE u", "DROP TABLE u", "ALTER TABLE t ADD COLUMN w INTEGER",
        "CREATE TABLE w AS SELECT * FROM u",
        "MERGE INTO u USING log ON u.v < log.v WHEN MATCHED AND u.v = 20 AND log.v = 30 THEN DELETE"}) {
    EXPECT_NE(Run(one_, sql).find("could not serialize access: another session has changed"), std::string::npos) << sql;
    EXPECT_EQ(Run(one_, "ROLLBACK TO s"), "ROLLBACK");
  }
  EXPECT_EQ(Run(one_, "CREATE TEMP TABLE w AS SELECT sum(v) AS v FROM u"), "SELECT 1");
  EXPECT_EQ(Run(one_, "DELETE FROM log USING w WHERE log.v = w.v + 10"), "DELETE 1");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(one_, "SELECT v FROM log"), "40\n");
  EXPECT_EQ(Run(one_, "SELECT v FROM u ORDER BY v"), "1\n18\n");
}

/// Files of what a transaction still sees stay, though the newest state has them no more.
TEST_F(Transactions, OlderRowsKeepTheirFiles) {
  Run(one_, "CREATE TABLE u (v INTEGER)");
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM u"), "0\n");  // (t has not been opened yet)
  Run(two_, "UPDATE t SET v = v + 1, k = k + 1");
  Run(two_, "VACUUM t");
  Run(two_, "DELETE FROM t");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(one_, "INSERT INTO u SELECT sum(v) FROM t"), "INSERT 0 1");
  EXPECT_EQ(Run(one_, "SELECT v FROM u"), "30\n30\n30\n");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "0\n");
}

TEST_F(Transactions, KeysJoinTheTablesOfAConflict) {
  Run(one_, "CREATE TABLE p (id INTEGER PRIMARY KEY)");
  Run(one_, "CREATE TABLE c (p_id INTEGER REFERENCES p ON DELETE CASCADE)");
  Run(one_, "CREATE TABLE later (p_id INTEGER)");
  Run(one_, "INSERT INTO p VALUES (1), (2)");
  const auto begin = [&] {
    Run(one_, "BEGIN");
    EXPECT_FALSE(Failed(Run(one_, "SELECT count(*) FROM p, c, later")));
  };
  begin();  // its row would refer to none
  EXPECT_EQ(Run(two_, "DELETE FROM p WHERE id = 1"), "DELETE 1");
  EXPECT_NE(Run(one_, "INSERT INTO c VALUES (1)").find("has changed table \"p\""), std::string::npos);
  Run(one_, "ROLLBACK");
  begin();  // a row would refer to none, which it does not see
  EXPECT_EQ(Run(two_, "INSERT INTO c VALUES (2)"), "INSERT 0 1");
  EXPECT_NE(Run(one_, "DELETE FROM p WHERE id = 2").find("has changed table \"c\""), std::string::npos);
  Run(one_, "ROLLBACK");
  begin();  // neither does it see the key
  Run(two_, "INSERT INTO later VALUES (2)");
  Run(two_, "ALTER TABLE later ADD FOREIGN KEY (p_id) REFERENCES p");
  EXPECT_TRUE(Failed(Run(one_, "DELETE FROM p WHERE id = 2")));
  Run(one_, "ROLLBACK");
  begin();
  EXPECT_EQ(Run(two_, "UPDATE t SET v = 0"), "UPDATE 2");
  Run(two_, "INSERT INTO t VALUES (3, 30)");
  EXPECT_EQ(Run(one_, "INSERT INTO c VALUES (2)"), "INSERT 0 1");
  EXPECT_NE(Run(one_, "INSERT INTO c VALUES (1)").find("is not present in table"), std::string::npos);
  Run(one_, "ROLLBACK");
}

TEST_F(Transactions, NamesThatChangeAreConflicts) {
  Run(one_, "CREATE TABLE u (v INTEGER)");
  for (const char* sql : {"CREATE TABLE w (v INTEGER)", "DROP TABLE w", "CREATE VIEW w AS SELECT 1 AS v",
                          "CREATE MACRO m(x) AS x", "ALTER TABLE u RENAME TO w2", "ALTER TABLE w2 RENAME TO u"}) {
    Run(one_, "BEGIN");
    EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "2\n") << sql;
    EXPECT_FALSE(Failed(Run(two_, sql))) << sql;
    EXPECT_NE(Run(one_, "INSERT INTO t VALUES (3, 30)").find("another session has changed the database"),
              std::string::npos)
        << sql;
    Run(one_, "ROLLBACK");
  }
  // Values of sequences are taken at the newest state.
  Run(one_, "CREATE SEQUENCE ids");
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM u"), "0\n");
  EXPECT_EQ(Run(two_, "SELECT nextval('ids')"), "1\n");
  EXPECT_EQ(Run(two_, "INSERT INTO u VALUES (1)"), "INSERT 0 1");
  EXPECT_EQ(Run(one_, "SELECT nextval('ids'), count(*) FROM u"), "2,0\n");
  EXPECT_EQ(Run(one_, "INSERT INTO t VALUES (nextval('ids'), 0)"), "INSERT 0 1");
  EXPECT_EQ(Run(one_, "DELETE FROM u"), "DELETE 0");
  EXPECT_EQ(Run(one_, "INSERT INTO u VALUES (nextval('ids'))"), "INSERT 0 1");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(one_, "SELECT v FROM u ORDER BY v"), "1\n4\n");
}

TEST_F(Transactions, LevelsAreSetAndShown) {
  const auto level = [&] { return Run(one_, "SHOW transaction_isolation"); };
  EXPECT_EQ(level(), "read committed\n");
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), "SET");
  EXPECT_EQ(level(), "serializable\n");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "2\n");
  EXPECT_EQ(Run(one_, "COMMIT AND CHAIN"), "COMMIT");
  EXPECT_EQ(level(), "serializable\n");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "2\n");
  EXPECT_NE(Run(one_, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").find("must be called before any query"),
            std::string::npos);
  Run(one_, "ROLLBACK");
  EXPECT_EQ(level(), "read committed\n");
  EXPECT_EQ(Run(one_, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"), "SET");
  EXPECT_EQ(level(), "repeatable read\n");
  EXPECT_EQ(Run(one_, "SET default_transaction_isolation = 'serializable'"), "SET");
  EXPECT_EQ(level(), "serializable\n");
  Run(one_, "CREATE TABLE u (v INTEGER)");
  Run(one_, "BEGIN");  // the level that holds, not only that is shown
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "2\n");
  Run(two_, "UPDATE t SET v = 0");
  EXPECT_TRUE(Failed(Run(one_, "INSERT INTO u VALUES (1)")));
  Run(one_, "ROLLBACK");
  Run(one_, "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED");
  EXPECT_EQ(level(), "read committed\n");
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM t"), "2\n");
  Run(two_, "UPDATE t SET v = 1");
  EXPECT_EQ(Run(one_, "INSERT INTO u VALUES (1)"), "INSERT 0 1");
  Run(one_, "ROLLBACK");
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

TEST_F(Transactions, CircularInformationFlow) {  // G1c: neither has read what the other writes
  Run(one_, "BEGIN");
  EXPECT_EQ(Run(one_, "UPDATE t SET v = 11 WHERE k = 1"), "UPDATE 1");
  Run(two_, "BEGIN");
  EXPECT_EQ(Run(two_, "SELECT v FROM t WHERE k = 1"), "10\n");
  EXPECT_EQ(Run(one_, "SELECT v FROM t WHERE k = 2"), "20\n");
  EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(two_, "UPDATE t SET v = 22 WHERE k = 2"), "UPDATE 1");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "10\n22\n");
  EXPECT_EQ(Run(two_, "COMMIT"), "COMMIT");
  EXPECT_EQ(Run(two_, "SELECT v FROM t ORDER BY k"), "11\n22\n");
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

/// P2, P3, P4 within one table: no level lets them. A write skew over a predicate all but SERIALIZABLE do.
TEST_F(Transactions, WithinATable) {
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
    const bool refused = level == std::string("SERIALIZABLE");
    EXPECT_EQ(Failed(Run(two_, "INSERT INTO t VALUES (5, 102)")), refused) << level;
    EXPECT_EQ(Run(two_, "COMMIT"), refused ? "ROLLBACK" : "COMMIT") << level;
    EXPECT_EQ(Run(two_, "SELECT count(*) FROM t WHERE v > 100"), refused ? "1\n" : "2\n") << level;
  }
}

TEST_F(Transactions, ADeleteThatFoundNothingConflictsWithTheInsertUnderSerializable) {
  for (const std::string level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    Run(one_, "BEGIN ISOLATION LEVEL " + level);
    EXPECT_EQ(Run(one_, "SELECT count(*) FROM t WHERE k = 7"), "0\n");
    Run(two_, "INSERT INTO t VALUES (7, 70)");
    const std::string answer = Run(one_, "DELETE FROM t WHERE k = 7");
    if (level == "SERIALIZABLE") {
      EXPECT_NE(answer.find("could not serialize access"), std::string::npos) << answer;
    } else {
      EXPECT_EQ(answer, "DELETE 0");
    }
    Run(one_, "ROLLBACK");
    EXPECT_EQ(Run(one_, "DELETE FROM t WHERE k = 7"), "DELETE 1");
  }
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

using Edges = std::vector<std::set<size_t>>;

/// The transactions that must come after each one, whatever the order of all: of who has read or appended after whom. Where all
/// lists are read at the end, the order of their elements is known.
struct Dependencies {
  Edges on;    ///< they have read or followed what it appended
  Edges anti;  ///< they have appended what it has not seen yet

  Dependencies(const std::vector<Appends>& history, const std::map<int, std::vector<int>>& lists)
      : on(history.size()), anti(history.size()) {
    std::map<int, size_t> writer;
    for (size_t t = 0; t < history.size(); ++t) {
      for (const auto& [list, elements] : history[t].appended) {
        for (const int element : elements) writer[element] = t;
      }
    }
    const auto add = [](Edges* edges, size_t from, size_t to) {
      if (from != to) (*edges)[from].insert(to);
    };
    for (const auto& [list, elements] : lists) {
      for (size_t i = 1; i < elements.size(); ++i) add(&on, writer.at(elements[i - 1]), writer.at(elements[i]));
    }
    for (size_t t = 0; t < history.size(); ++t) {
      for (const auto& [list, seen] : history[t].read) {
        const std::vector<int>& all = lists.at(list);
        EXPECT_TRUE(seen.size() <= all.size() && std::equal(seen.begin(), seen.end(), all.begin()))
            << "transaction " << t << " has read what is no beginning of list " << list;
        if (!seen.empty()) add(&on, writer.at(seen.back()), t);
        if (seen.size() < all.size()) add(&anti, t, writer.at(all[seen.size()]));
      }
    }
  }

  /// A cycle in it: the history is not serialisable.
  Edges All() const {
    Edges all = on;
    for (size_t t = 0; t < all.size(); ++t) all[t].insert(anti[t].begin(), anti[t].end());
    return all;
  }
  /// A cycle in it: the history is not one of snapshots (Cerone and Gotsman, Analysing Snapshot Isolation, theorem 9). These are
  /// cycles without two edges of `anti` one after the other.
  Edges OfSnapshots() const {
    Edges all = on;
    for (size_t t = 0; t < all.size(); ++t) {
      for (const size_t next : on[t]) all[t].insert(anti[next].begin(), anti[next].end());
    }
    return all;
  }
};

/// Whether the edges have a cycle, also from a node to itself.
bool HasCycle(const Edges& after) {
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
  // Each of two has read the list before the other's append: a write skew, which snapshots have.
  std::vector<Appends> history(2);
  history[0] = {{{1, {}}}, {{2, {20}}}};
  history[1] = {{{2, {}}}, {{1, {10}}}};
  const std::map<int, std::vector<int>> lists = {{1, {10}}, {2, {20}}};
  EXPECT_TRUE(HasCycle(Dependencies(history, lists).All()));
  EXPECT_FALSE(HasCycle(Dependencies(history, lists).OfSnapshots()));
  history[1].read = {{2, {20}}};
  EXPECT_FALSE(HasCycle(Dependencies(history, lists).All()));
  // A read skew, and a lost update: the second has not seen all that was there when it read or appended.
  history[0] = {{}, {{1, {10}}, {2, {20}}}};
  history[1] = {{{1, {}}, {2, {20}}}, {}};
  EXPECT_TRUE(HasCycle(Dependencies(history, lists).OfSnapshots()));
  history[0] = {{{1, {}}}, {{1, {10}}}};
  history[1] = {{{1, {}}}, {{1, {11}}}};
  EXPECT_TRUE(HasCycle(Dependencies(history, {{1, {10, 11}}}).OfSnapshots()));
}

/// Random appends to lists by several sessions at a time.
class AppendHistories : public Transactions {
 protected:
  static constexpr int kLists = 4, kThreads = 4, kTransactions = 25;

  std::string Table(int list) const { return table_each_ ? "list" + std::to_string(list) : "lists"; }
  static std::string Where(int list) { return " WHERE list = " + std::to_string(list); }
  static std::vector<int> Elements(const std::string& answer) {
    std::vector<int> out;
    for (size_t at = 0; answer.find(';', at) != std::string::npos; at = answer.find(';', at) + 1)
      out.push_back(std::stoi(answer.substr(at)));
    return out;
  }

  /// A read of a list: false, the transaction has failed.
  bool Read(const std::unique_ptr<Session>& session, int list, Appends* did) const {
    const std::string answer = Run(session, "SELECT elements FROM " + Table(list) + Where(list));
    if (Failed(answer)) return false;
    std::vector<int> seen = Elements(answer);
    const std::vector<int>& own = did->appended[list];
    const bool ok = seen.size() >= own.size() &&
                    std::equal(own.begin(), own.end(), seen.end() - static_cast<ptrdiff_t>(own.size()));
    EXPECT_TRUE(ok) << "what it has appended is not at the end";
    if (!ok) return false;
    seen.resize(seen.size() - own.size());
    const auto [known, is_first] = did->read.emplace(list, seen);
    EXPECT_EQ(known->second, seen) << "a second read differs from the first";
    return true;
  }
  bool Append(const std::unique_ptr<Session>& session, int list, int element, Appends* did) const {
    did->appended[list].push_back(element);
    return !Failed(Run(session, "UPDATE " + Table(list) + " SET elements = elements || '" + std::to_string(element) +
                                    ";'" + Where(list)));
  }

  std::vector<Appends> RunThread(int thread, const std::string& begin) const {
    const std::unique_ptr<Session> session = Open();
    std::vector<Appends> history;
    std::mt19937 random(static_cast<uint32_t>(thread));
    int next = 1000 * (thread + 1);
    for (int i = 0; i < kTransactions; ++i) {
      Appends did;
      bool ok = !Failed(Run(session, begin));
      for (int step = 0; ok && step < 3; ++step) {
        const int list = static_cast<int>(random() % kLists);
        ok = random() % 2 == 0 ? Read(session, list, &did) : Append(session, list, next++, &did);
      }
      const std::string end = Run(session, random() % 8 == 0 ? "ROLLBACK" : "COMMIT");
      if (end == "COMMIT") history.push_back(std::move(did));
    }
    return history;
  }

  /// `table_each`: each list is a table of its own.
  Dependencies RunAll(bool table_each, const std::string& begin) {
    table_each_ = table_each;
    for (int list = 0; list < kLists; ++list) {
      Run(one_, "CREATE OR REPLACE TABLE list" + std::to_string(list) + " AS SELECT " + std::to_string(list) +
                    " AS list, '' AS elements");
    }
    Run(one_, "CREATE OR REPLACE TABLE lists AS SELECT range AS list, '' AS elements FROM range(" +
                  std::to_string(kLists) + ")");
    std::vector<std::vector<Appends>> histories(kThreads);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] { histories[static_cast<size_t>(thread)] = RunThread(thread, begin); });
    for (std::thread& thread : threads) thread.join();
    std::vector<Appends> history;
    for (auto& part : histories) std::ranges::move(part, std::back_inserter(history));
    std::map<int, std::vector<int>> lists;
    size_t stored = 0, appended = 0;
    for (int list = 0; list < kLists; ++list) {
      lists[list] = Elements(Run(one_, "SELECT elements FROM " + Table(list) + Where(list)));
      stored += lists[list].size();
    }
    for (const Appends& t : history) {
      for (const auto& [list, added] : t.appended) appended += added.size();
    }
    EXPECT_EQ(stored, appended);
    EXPECT_GT(history.size(), size_t{kThreads});
    return {history, lists};
  }

  bool table_each_ = false;
};

/// Lists are rows of one table: transactions that append to different ones both commit, also if neither has seen the other.
TEST_F(AppendHistories, OfOneTableAreOfSnapshots) {
  bool both = false;
  for (int turn = 0; turn < 50 && !both; ++turn) {
    const Dependencies history = RunAll(false, "BEGIN");
    EXPECT_FALSE(HasCycle(history.OfSnapshots()));
    for (size_t t = 0; t < history.anti.size(); ++t) {
      both |= std::ranges::any_of(history.anti[t], [&](size_t other) { return history.anti[other].contains(t); });
    }
  }
  EXPECT_TRUE(both);
}

TEST_F(AppendHistories, OfSerializableHaveAnOrder) {
  for (const bool table_each : {false, true})
    EXPECT_FALSE(HasCycle(RunAll(table_each, "BEGIN ISOLATION LEVEL SERIALIZABLE").All()));
}

TEST_F(AppendHistories, OfSeveralTablesAreOfSnapshots) { EXPECT_FALSE(HasCycle(RunAll(true, "BEGIN").OfSnapshots())); }

// So many that threads share the marks, which are packed at the end: as a record of the log, or by SQLite after a change of names.
TEST_F(Transactions, MarksOfMillionsOfRowsAreThereAfterTheCommit) {
  Run(one_, "SET tablet_rows = 1000000");
  Run(one_, "CREATE TABLE many AS SELECT i FROM generate_series(1, 5000000) AS s(i)");
  for (const std::string& other : {std::string(), std::string("CREATE TABLE other (x INTEGER)")}) {
    const int64_t divisor = other.empty() ? 3 : 5;
    Run(one_, "BEGIN");
    EXPECT_EQ(Run(one_, "DELETE FROM many WHERE i % " + std::to_string(divisor) + " = 0 AND i % 2 = 1"),
              other.empty() ? "DELETE 833333" : "DELETE 333333");
    Run(one_, "SAVEPOINT s");
    Run(one_, "DELETE FROM many");
    EXPECT_EQ(Run(one_, "SELECT count(*) FROM many"), "0\n");
    Run(one_, "ROLLBACK TO s");
    if (!other.empty()) {
      EXPECT_FALSE(Failed(Run(one_, other)));
    }
    EXPECT_EQ(Run(one_, "COMMIT"), "COMMIT");
    two_ = Open();
    EXPECT_EQ(Run(two_, "SELECT count(*), sum(i % 2) FROM many"),
              other.empty() ? "4166667,1666667\n" : "3833334,1333334\n");
    EXPECT_FALSE(Failed(Run(two_, "PRAGMA integrity_check")));
  }
  two_.reset();
  one_ = Open();
  EXPECT_EQ(Run(one_, "SELECT count(*) FROM many WHERE i % 5 = 0 AND i % 2 = 1"), "0\n");
}

}  // namespace
}  // namespace tessera
