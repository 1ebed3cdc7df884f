// Unit tests of session/program_cache.h, by what a session answers: a program is used again while nothing that it was
// compiled from has changed, and never after.

#include "session/program_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

class ProgramCacheTest : public testing::Test {
 protected:
  ProgramCacheTest() { session_ = Open(""); }

  static std::unique_ptr<Session> Open(const std::string& directory) {
    SessionOptions options;
    options.directory = directory;
    options.device = DeviceChoice::kHost;
    options.threads = 1;
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok());
    return std::move(*session);
  }

  static std::string Csv(Session* session, const std::string& sql) {
    ResultTextOptions options;
    options.format = ResultFormat::kCsv;
    options.headers = false;
    return Answer(session, sql, options);
  }
  std::string Csv(const std::string& sql) { return Csv(session_.get(), sql); }
  void Run(const std::string& sql) {
    const std::string answer = Answer(session_.get(), sql);
    EXPECT_EQ(answer.find("ERROR"), std::string::npos) << answer;
  }
  bool kept() const { return session_->last_timing().kept; }

  /// The query gives `answer`; its program is `kept` or it is compiled.
  void Expect(const std::string& sql, const std::string& answer, bool kept) {
    EXPECT_EQ(Csv(sql), answer) << sql;
    EXPECT_EQ(this->kept(), kept) << sql;
    EXPECT_TRUE(session_->last_was_query()) << sql;
  }
  /// It is compiled, and found the second time.
  void ExpectKept(const std::string& sql, const std::string& answer) {
    Expect(sql, answer, false);
    Expect(sql, answer, true);
  }
  /// Its text is compiled each time.
  void ExpectNeverKept(const std::string& sql) {
    for (int i = 0; i < 3; ++i) {
      const std::string answer = Csv(sql);
      EXPECT_EQ(answer.find("ERROR"), std::string::npos) << answer;
      EXPECT_FALSE(kept()) << sql;
    }
  }

  std::unique_ptr<Session> session_;
};

TEST_F(ProgramCacheTest, ATextThatComesAgainIsNotCompiled) {
  Run("CREATE TABLE t (a INTEGER, s TEXT)");
  Run("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x')");
  ExpectKept("SELECT s, sum(a) FROM t GROUP BY s ORDER BY s", "x,4\ny,2\n");
  ExpectKept("SELECT 1", "1\n");
  ExpectKept("WITH w AS (SELECT a FROM t) SELECT count(*) FROM w x JOIN w y USING (a)", "3\n");
  ExpectKept("VALUES (1), (2)", "1\n2\n");
  // Another text is another statement, in spaces and case too.
  Expect("SELECT  1", "1\n", false);
  EXPECT_LT(session_->last_timing().compile, session_->last_timing().total);
}

TEST_F(ProgramCacheTest, ErrorsOfRowsComeAgain) {
  Run("CREATE TABLE t (a INTEGER)");
  Run("INSERT INTO t VALUES (1)");
  const std::string error = Csv("SELECT 2147483647 + a FROM t");
  EXPECT_NE(error.find("out of range"), std::string::npos) << error;
  EXPECT_EQ(Csv("SELECT 2147483647 + a FROM t"), error);
  EXPECT_TRUE(kept());
  EXPECT_NE(Csv("SELECT b FROM t").find("ERROR"), std::string::npos);
  Run("CREATE OR REPLACE TABLE t AS SELECT 5 AS b");
  Expect("SELECT b FROM t", "5\n", false);
}

TEST_F(ProgramCacheTest, ChangesOfRows) {
  Run("CREATE TABLE t (a INTEGER, s TEXT)");
  const std::string counted = "SELECT count(*), min(a), max(a), count(DISTINCT s) FROM t";
  const std::string filtered = "SELECT a FROM t WHERE a > 10 AND s = 'x' ORDER BY a";
  ExpectKept(counted, "0,,,0\n");
  ExpectKept(filtered, "");
  Run("INSERT INTO t VALUES (1, 'x'), (20, 'x')");
  ExpectKept(counted, "2,1,20,1\n");
  ExpectKept(filtered, "20\n");
  Run("UPDATE t SET a = 30 WHERE a = 1");
  ExpectKept(counted, "2,20,30,1\n");
  ExpectKept(filtered, "20\n30\n");
  Run("DELETE FROM t WHERE a = 20");
  ExpectKept(counted, "1,30,30,1\n");
  ExpectKept(filtered, "30\n");
  Run("VACUUM t");
  Expect(counted, "1,30,30,1\n", false);
  const std::string file = testing::TempDir() + "program_cache_" + std::to_string(getpid()) + ".csv";
  std::ofstream(file) << "40,x\n";
  Run("COPY t FROM '" + file + "' (FORMAT csv)");
  std::filesystem::remove(file);
  ExpectKept(counted, "2,30,40,1\n");
  ExpectKept(filtered, "30\n40\n");
  Run("INSERT INTO t SELECT a + 100, 'y' FROM t");
  ExpectKept(counted, "4,30,140,2\n");
}

TEST_F(ProgramCacheTest, ChangesOfOtherTablesDoNotMatter) {
  Run("CREATE TABLE t (a INTEGER)");
  Run("CREATE TABLE u (a INTEGER)");
  Run("INSERT INTO t VALUES (1)");
  ExpectKept("SELECT a FROM t", "1\n");
  Run("INSERT INTO u VALUES (2)");
  Run("CREATE TABLE v (a INTEGER)");
  Run("DROP TABLE u");
  Expect("SELECT a FROM t", "1\n", true);
}

TEST_F(ProgramCacheTest, ChangesOfTables) {
  Run("CREATE TABLE t (a INTEGER)");
  Run("INSERT INTO t VALUES (1)");
  ExpectKept("SELECT * FROM t", "1\n");
  Run("CREATE OR REPLACE TABLE t AS SELECT 'x' AS s, 2 AS b");
  ExpectKept("SELECT * FROM t", "x,2\n");
  // A table that a query only names in a WITH which nothing reads.
  ExpectKept("WITH w AS (SELECT * FROM t) SELECT 1", "1\n");
  Run("DROP TABLE t");
  for (const char* sql : {"SELECT * FROM t", "WITH w AS (SELECT * FROM t) SELECT 1"})
    EXPECT_NE(Csv(sql).find("table \"t\" does not exist"), std::string::npos) << sql;
  // One of the same name, the same columns and the same number of changes.
  Run("CREATE TABLE t (s TEXT, b INTEGER)");
  Run("INSERT INTO t VALUES ('y', 3)");
  Expect("SELECT * FROM t", "y,3\n", false);
}

TEST_F(ProgramCacheTest, ChangesOfTypes) {
  Run("CREATE TYPE mood AS ENUM ('sad', 'ok')");
  ExpectKept("SELECT 'ok'::mood > 'sad'::mood", "true\n");
  Run("DROP TYPE mood");
  EXPECT_NE(Csv("SELECT 'ok'::mood > 'sad'::mood").find("type \"mood\" does not exist"), std::string::npos);
  Run("CREATE TYPE mood AS ENUM ('ok', 'sad')");
  ExpectKept("SELECT 'ok'::mood > 'sad'::mood", "false\n");
}

TEST_F(ProgramCacheTest, Settings) {
  Run("CREATE TABLE t (m TIMESTAMP WITH TIME ZONE)");
  Run("INSERT INTO t VALUES ('2026-07-01 00:30:00+00')");
  const std::string sql = "SELECT m::date, m < '2026-07-01 01:00:00' FROM t";
  ExpectKept(sql, "2026-07-01,true\n");
  Run("SET TIME ZONE 'America/New_York'");
  ExpectKept(sql, "2026-06-30,true\n");
  Run("SET TIME ZONE 'Europe/Berlin'");
  ExpectKept(sql, "2026-07-01,false\n");
  for (const char* set : {"SET join_strategy = loop", "SET read_runs = off", "SET invisible_join = off",
                          "SET grid_pruning = off", "RESET join_strategy"}) {
    Run(set);
    ExpectKept(sql, "2026-07-01,false\n");
  }
  Run("SET threads = 2");  // it does not matter to the compiler
  Expect(sql, "2026-07-01,false\n", true);
}

TEST_F(ProgramCacheTest, WhatHoldsForAMomentIsNotKept) {
  Run("CREATE TABLE t (a INTEGER)");
  Run("INSERT INTO t VALUES (1), (2)");
  for (const char* sql :
       {"SELECT now()", "SELECT CURRENT_DATE", "SELECT CURRENT_TIMESTAMP", "SELECT LOCALTIME", "SELECT today()",
        "SELECT 'now'::timestamp", "SELECT 'tomorrow'::date", "SELECT age(DATE '2020-01-01')",
        "SELECT a FROM t WHERE DATE '2020-01-01' + a < CURRENT_DATE", "SELECT random()",
        "SELECT a FROM t ORDER BY random()", "SELECT a FROM t TABLESAMPLE BERNOULLI (50)",
        "SELECT count(*) FROM (SELECT gen_random_uuid() FROM t)", "SELECT setseed(0.5)", "SELECT uuid()",
        "SELECT * FROM tessera_cache()", "SHOW TABLES", "DESCRIBE t", "SELECT * FROM tessera_chunks('t')"}) {
    ExpectNeverKept(sql);
  }
  ExpectKept("SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100) REPEATABLE (7)", "2\n");
  const std::string first = Csv("SELECT random()");
  EXPECT_NE(first, Csv("SELECT random()"));
  EXPECT_NE(Csv("SELECT gen_random_uuid()"), Csv("SELECT gen_random_uuid()"));
  // setseed() says what comes next, each time.
  Csv("SELECT setseed(0.25)");
  const std::string seeded = Csv("SELECT random()");
  Csv("SELECT setseed(0.25)");
  EXPECT_EQ(Csv("SELECT random()"), seeded);
  const std::string tables = Csv("SHOW TABLES");
  Run("CREATE TABLE another (a INTEGER)");
  EXPECT_NE(Csv("SHOW TABLES"), tables);
}

TEST_F(ProgramCacheTest, VariablesAndRowsThatTheCompilerReads) {
  Run("SET VARIABLE x = 1");
  Expect("SELECT getvariable('x')", "1\n", false);
  Run("SET VARIABLE x = 'two'");
  Expect("SELECT getvariable('x')", "two\n", false);
  Run("CREATE TABLE t (k TEXT, v INTEGER)");
  Run("INSERT INTO t VALUES ('a', 1), ('b', 2)");
  const std::string pivot = "PIVOT t ON k USING sum(v)";
  Expect(pivot, "1,2\n", false);
  Run("INSERT INTO t VALUES ('c', 3)");
  Expect(pivot, "1,2,3\n", false);
}

TEST_F(ProgramCacheTest, WhatIsNoQueryRunsEachTime) {
  Run("CREATE TABLE t (a INTEGER, d DOUBLE PRECISION DEFAULT random())");
  for (int i = 0; i < 3; ++i) {
    Run("INSERT INTO t (a) SELECT 1");
    EXPECT_FALSE(kept());
    Run("INSERT INTO t (a) VALUES (2)");
    EXPECT_FALSE(kept());
  }
  Expect("SELECT count(*), count(DISTINCT d) FROM t", "6,6\n", false);
  for (int i = 0; i < 3; ++i) {
    Run("UPDATE t SET a = a + 1");
    EXPECT_FALSE(kept());
  }
  Expect("SELECT sum(a) FROM t", "27\n", false);
  // EXPLAIN shows what compiling makes, and EXPLAIN ANALYZE what it takes.
  for (int i = 0; i < 2; ++i) {
    Run("EXPLAIN SELECT sum(a) FROM t");
    EXPECT_FALSE(kept());
    Run("EXPLAIN ANALYZE SELECT sum(a) FROM t");
    EXPECT_FALSE(kept());
    EXPECT_FALSE(session_->last_was_query());
  }
}

TEST_F(ProgramCacheTest, OfAnotherProcess) {
  const std::string directory = testing::TempDir() + "program_cache_" + std::to_string(getpid());
  {
    session_ = Open(directory);
    const std::unique_ptr<Session> other = Open(directory);
    Run("CREATE TABLE t (a INTEGER)");
    Run("INSERT INTO t VALUES (1)");
    ExpectKept("SELECT a FROM t", "1\n");
    EXPECT_EQ(Csv(other.get(), "SELECT a FROM t"), "1\n");
    Csv(other.get(), "UPDATE t SET a = 2");
    ExpectKept("SELECT a FROM t", "2\n");
    Csv(other.get(), "DROP TABLE t");
    Csv(other.get(), "CREATE TABLE t (a TEXT)");
    Csv(other.get(), "INSERT INTO t VALUES ('x')");
    ExpectKept("SELECT a FROM t", "x\n");
  }
  session_ = nullptr;
  std::filesystem::remove_all(directory);
}

TEST_F(ProgramCacheTest, AKeptProgramHoldsNoFile) {
  const std::string directory = testing::TempDir() + "program_cache_files_" + std::to_string(getpid());
  const auto tablets = [&] {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      n += entry.path().filename().string().starts_with("t") && entry.path().extension() == ".bin" ? 1 : 0;
    return n;
  };
  {
    session_ = Open(directory);
    Run("CREATE TABLE t (a INTEGER)");
    Run("INSERT INTO t VALUES (1)");
    const size_t before = tablets();
    ASSERT_EQ(before, 1U);
    ExpectKept("SELECT sum(a) FROM t", "1\n");
    Run("DROP TABLE t");
    Run("CREATE TABLE u (a INTEGER)");  // a writer removes what nothing holds
    EXPECT_EQ(tablets(), 0U);
  }
  session_ = nullptr;
  std::filesystem::remove_all(directory);
}

TEST_F(ProgramCacheTest, PreparedStatements) {
  Run("CREATE TABLE t (a INTEGER, s TEXT)");
  Run("INSERT INTO t VALUES (1, 'x'), (2, 'y')");
  Run("PREPARE q AS SELECT s FROM t WHERE a = $1");
  EXPECT_FALSE(session_->last_was_query());
  ExpectKept("EXECUTE q (1)", "x\n");
  Expect("EXECUTE q (2)", "y\n", true);
  Expect("EXECUTE q (1 + 0)", "x\n", true);  // by the value, not by how it is written
  ExpectKept("EXECUTE q (NULL)", "");
  Run("UPDATE t SET s = 'z' WHERE a = 1");
  ExpectKept("EXECUTE q (1)", "z\n");
  Run("CREATE OR REPLACE TABLE t AS SELECT DATE '2026-01-01' AS s, 1.5 AS a");
  ExpectKept("EXECUTE q (1)", "");
  Run("DEALLOCATE q");
  Run("PREPARE q AS SELECT $1 + 1");
  ExpectKept("EXECUTE q (1)", "2\n");
  // Values of other types, and texts that run into each other, are other statements.
  Run("PREPARE texts AS SELECT $1 || '|' || $2");
  ExpectKept("EXECUTE texts ('a', 'bc')", "a|bc\n");
  ExpectKept("EXECUTE texts ('ab', 'c')", "ab|c\n");
  Run("PREPARE moment AS SELECT $1::integer, now()");
  for (int i = 0; i < 2; ++i) {
    Csv("EXECUTE moment (1)");
    EXPECT_FALSE(kept());
  }
}

// A statement that was compiled for some values answers for others of the same types where WHERE compares columns with
// them. Each answer is that of the text with the values in it.
class HeldParametersTest : public ProgramCacheTest {
 protected:
  HeldParametersTest() {
    Run("CREATE TABLE t (k INTEGER, b BIGINT NOT NULL, n NUMERIC(8, 2), f DOUBLE PRECISION, r REAL, s TEXT, d DATE, m "
        "TIMESTAMP)");
    Run("INSERT INTO t SELECT x, x * 10, x / 4.0, x / 2.0, x / 8.0, 'text ' || x % 50, DATE '2026-01-01' + x::integer, "
        "TIMESTAMP '2026-01-01' + x * INTERVAL '1 hour' FROM range(300) AS g(x)");
    Run("INSERT INTO t (b) VALUES (-1)");
  }

  /// The number of runs, one for each of `lists` of values ("1, 2"), that were not compiled.
  int Runs(const std::string& query, const std::vector<std::string>& lists) {
    Run("PREPARE q AS " + query);
    int filled = 0;
    for (const std::string& list : lists) {
      const std::string answer = Csv("EXECUTE q (" + list + ")");
      filled += kept() ? 1 : 0;
      // (As the text of another statement, so that nothing of it is kept.)
      std::vector<std::string> values;
      size_t from = 0;
      for (size_t comma; (comma = list.find(", ", from)) != std::string::npos; from = comma + 2)
        values.push_back(list.substr(from, comma - from));
      values.push_back(list.substr(from));
      std::string text = query;
      for (size_t i = 0; i < values.size(); ++i) {
        const std::string name = "$" + std::to_string(i + 1);
        for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), values[i]);
      }
      EXPECT_EQ(answer, Csv(text)) << text;
    }
    Run("DEALLOCATE q");
    return filled;
  }
};

TEST_F(HeldParametersTest, OneProgramAnswersForAllValues) {
  EXPECT_EQ(Runs("SELECT * FROM t WHERE k = $1", {"1", "2", "299", "300", "-5", "2147483647"}), 5);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE $1 < b ORDER BY k", {"2900", "2989", "2990", "0", "9223372036854775807"}), 4);
  EXPECT_EQ(Runs("SELECT count(*), sum(k) FROM t WHERE k BETWEEN $1 AND $2", {"5, 9", "9, 5", "0, 298", "7, 7"}), 3);
  EXPECT_EQ(Runs("SELECT count(*) FROM t WHERE NOT k BETWEEN $1 AND $2", {"5, 9", "9, 5", "0, 299"}), 2);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k <> $1 AND k < $2 ORDER BY 1", {"3, 5", "0, 1", "0, 0"}), 2);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE s = $1 ORDER BY 1", {"'text 7'", "'text 8'", "''", "'no'"}), 3);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE s >= $1 AND s < $2 ORDER BY 1",
                 {"'text 47', 'text 49'", "'a', 'b'", "'text 1', 'text 12'"}),
            2);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE d = $1", {"'2026-02-01'", "'2026-03-05'", "'1990-01-01'"}), 2);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE m > $1 ORDER BY 1", {"'2026-01-13 05:30:00'", "'2026-01-12'"}), 1);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE f = $1 OR n = $2 ORDER BY 1", {"0.5, 0.75", "7.5, 0.25", "3.5, 0.11"}), 2);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k = $1 AND k = $2", {"1, 2", "3, 3", "0, 0"}), 2);
  EXPECT_EQ(Runs("SELECT x.k, y.s FROM t x JOIN t y ON x.k = y.k WHERE x.k = $1", {"17", "18", "-1"}), 2);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.k = t.k + 1 AND u.b = $1)", {"20", "2990"}),
            1);
  EXPECT_EQ(
      Runs("SELECT s, count(*) FROM (SELECT k + 1 AS l, s FROM t) u WHERE l = $1 GROUP BY s", {"9", "300", "500"}), 2);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k = $1 UNION ALL SELECT b FROM t WHERE b = $1", {"10", "20", "7"}), 2);
}

TEST_F(HeldParametersTest, WhatDependsOnTheValueIsCompiled) {
  // Into NULL.
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k = $1", {"4", "NULL", "5"}), 1);
  // A bound of more digits than the column's is rounded, and the comparison is another one.
  EXPECT_EQ(Runs("SELECT count(*) FROM t WHERE n < $1", {"1.000", "1.001", "1.500"}), 1);
  EXPECT_EQ(Runs("SELECT count(*) FROM t WHERE n = $1", {"1.000", "1.001", "1.500"}), 1);
  // Parts of expressions, limits, patterns, lists and outputs are constants.
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k = $1 + 1", {"4", "5", "6"}), 0);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k = $1 AND $1 > 5", {"4", "7", "8"}), 0);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k < $1 ORDER BY k LIMIT $2", {"9, 2", "9, 3", "8, 3"}), 0);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE s LIKE $1 ORDER BY k", {"'text 7'", "'text 4_'", "'%5'"}), 0);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE s ~ $1 ORDER BY k", {"'^text 7$'", "'4.'"}), 0);
  EXPECT_EQ(Runs("SELECT k FROM t WHERE k IN ($1, $2) ORDER BY k", {"1, 2", "1, 3"}), 0);
  EXPECT_EQ(Runs("SELECT k, $1::integer AS v FROM t WHERE k = $1", {"1", "2"}), 0);
  EXPECT_EQ(Runs("SELECT count(*) FROM t WHERE k BETWEEN SYMMETRIC $1 AND $2", {"1, 2", "5, 3"}), 0);
  // A REAL is compared with what it can hold.
  EXPECT_EQ(Runs("SELECT count(*) FROM t WHERE r > $1::double precision", {"1.5", "0.1"}), 0);
  // How many rows a range leaves says how to join.
  EXPECT_EQ(Runs("SELECT count(*) FROM t x JOIN t y ON x.k = y.k WHERE x.k < $1", {"3", "200"}), 0);
  // These change rows.
  Run("PREPARE d AS DELETE FROM t WHERE k = $1");
  for (const char* const k : {"1", "2"}) {
    Run(std::string("EXECUTE d (") + k + ")");
    EXPECT_FALSE(kept());
  }
  Expect("SELECT count(*), min(k) FROM t WHERE k < 5", "3,0\n", false);
}

TEST_F(HeldParametersTest, TablesAndSettingsAreThoseOfTheRun) {
  Run("PREPARE q AS SELECT count(*) FROM t WHERE k >= $1");
  Expect("EXECUTE q (10)", "290\n", false);
  Expect("EXECUTE q (20)", "280\n", true);
  Run("DELETE FROM t WHERE k = 25");
  Expect("EXECUTE q (20)", "279\n", false);
  Expect("EXECUTE q (26)", "274\n", true);
  Run("ALTER TABLE t ALTER COLUMN k TYPE BIGINT");
  Expect("EXECUTE q (26)", "274\n", false);
  Run("PREPARE z AS SELECT count(*) FROM t WHERE m::timestamptz >= $1");
  Csv("EXECUTE z ('2026-01-02 00:00:00')");
  Run("SET timezone = 'America/New_York'");
  const std::string there = Csv("EXECUTE z ('2026-01-02 00:00:00')");
  Run("SET program_cache = 0");
  EXPECT_EQ(Csv("EXECUTE z ('2026-01-02 00:00:00')"), there);
}

// A kept program knows the strings of its runs before. More programs than have strings take turns here.
TEST_F(ProgramCacheTest, TextsOfRunsBefore) {
  Run("CREATE TABLE words (w TEXT, n INTEGER)");
  const auto query = [](int i) {
    return "SELECT w, sum(n) + " + std::to_string(i) + " FROM words WHERE w <> 'none' GROUP BY w ORDER BY w LIMIT 2";
  };
  for (int turn = 1; turn <= 4; ++turn) {
    Run("INSERT INTO words SELECT 'w' || (g % 100 + " + std::to_string(100 * turn) +
        "), 1 FROM generate_series(1, 1000) AS s(g)");
    for (int i = 0; i < 12; ++i) {
      const std::string sum = std::to_string(10 + i);
      for (int again = 0; again < 3; ++again) EXPECT_EQ(Csv(query(i)), "w100," + sum + "\nw101," + sum + "\n");
      EXPECT_TRUE(kept());
      EXPECT_EQ(Csv("SELECT count(DISTINCT w) FROM words"), std::to_string(100 * turn) + "\n");
    }
  }
}

TEST_F(ProgramCacheTest, ItIsBounded) {
  Run("CREATE TABLE t (a INTEGER)");
  Run("INSERT INTO t VALUES (1)");
  const auto text = [](size_t i) { return "SELECT a + " + std::to_string(i) + " FROM t"; };
  for (size_t i = 0; i <= ProgramCache::kMostPrograms; ++i) Expect(text(i), std::to_string(i + 1) + "\n", false);
  Expect(text(1), "2\n", true);   // the first one made room for the last
  Expect(text(0), "1\n", false);  // and this makes room by the one that was used least recently
  Expect(text(2), "3\n", false);
  Expect(text(1), "2\n", true);
  Run("SET program_cache = 0");
  Expect(text(1), "2\n", false);
  Expect(text(1), "2\n", false);
  Run("RESET program_cache");
  ExpectKept(text(1), "2\n");
}

TEST(ProgramCache, CountsBytes) {
  const Snapshot none;
  ProgramCache cache;
  const auto program = [] {
    const Result<Compiled> compiled = Compile("SELECT 1", Snapshot());
    EXPECT_TRUE(compiled.ok());
    return std::make_shared<vm::Program>(*compiled->program);
  };
  cache.Keep("a", program(), {}, none, {});
  EXPECT_EQ(cache.programs(), 0U);  // no limit was set
  cache.SetLimit(1 << 20);
  cache.Keep("a", program(), {}, none, {});
  cache.Keep("b", program(), {}, none, {});
  EXPECT_EQ(cache.programs(), 2U);
  const uint64_t both = cache.bytes();
  EXPECT_GT(both, 200U);
  // A long text counts; one that would take more than a quarter is left out.
  cache.Keep(std::string(1000, 'x'), program(), {}, none, {});
  EXPECT_GT(cache.bytes(), both + 1000);
  cache.Keep(std::string(1 << 18, 'y'), program(), {}, none, {});
  EXPECT_EQ(cache.programs(), 3U);
  // Keeping a text again replaces it.
  cache.Keep("b", program(), {}, none, {});
  EXPECT_EQ(cache.programs(), 3U);
  EXPECT_NE(cache.Find("a", none, {}), nullptr);
  cache.SetLimit(both / 2 + 8);  // room for one, the one that was used last
  EXPECT_EQ(cache.programs(), 1U);
  EXPECT_NE(cache.Find("a", none, {}), nullptr);
  EXPECT_EQ(cache.Find("b", none, {}), nullptr);
  PlanOptions loops;
  loops.join = JoinChoice::kLoop;
  EXPECT_EQ(cache.Find("a", none, loops), nullptr);
  EXPECT_EQ(cache.programs(), 0U);  // what no longer holds goes
  EXPECT_EQ(cache.bytes(), 0U);
}

}  // namespace
}  // namespace tessera
