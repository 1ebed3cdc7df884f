// Long and deep statements: an answer or an error, never a crash, on a stack of ordinary size.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/interrupt.h"
#include "tests/compiler/bind_fixture.h"

namespace tessera {
namespace {

std::string Repeat(std::string_view s, int n) {
  std::string out;
  out.reserve(s.size() * static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kPatience = 4000;
constexpr size_t kStackBytes = size_t{16} << 20;  // with its guards a frame is about eight times as large
#else
/// Milliseconds from Ctrl-C to the end of compiling, on a busy machine.
constexpr int kPatience = 400;
/// A quarter of what is ordinary, so that three quarters are left to what comes after the binder.
constexpr size_t kStackBytes = size_t{2} << 20;
#endif

/// Runs `work` on a thread with a small stack.
void OnSmallStack(std::function<void()> work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto run = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

const char* const kTooDeep = "statement is nested too deeply (more than 1000 levels)";
const char* const kTooLarge = "expression is too large: operands that are used twice are nested too deeply";

struct Shape {
  const char* name;
  std::function<std::string(int)> sql;
  const char* at_900;  // what 900 levels give
};

TEST_F(BindTest, DeepStatements) {
  const Shape shapes[] = {
      {"parentheses", [](int n) { return "SELECT " + Repeat("(", n) + "1" + Repeat(")", n); }, "no error"},
      {"sum", [](int n) { return "SELECT i" + Repeat("+1", n) + " FROM t"; }, "no error"},
      {"minus", [](int n) { return "SELECT " + Repeat("- ", n) + "i FROM t"; }, "no error"},
      {"not", [](int n) { return "SELECT " + Repeat("NOT ", n) + "flag FROM t"; }, "no error"},
      {"calls", [](int n) { return "SELECT " + Repeat("abs(", n) + "i" + Repeat(")", n) + " FROM t"; }, "no error"},
      {"case", [](int n) { return "SELECT " + Repeat("CASE WHEN i=1 THEN ", n) + "i" + Repeat(" END", n) + " FROM t"; },
       "no error"},
      {"simple case",
       [](int n) { return "SELECT " + Repeat("CASE ", n) + "i" + Repeat(" WHEN 1 THEN 2 END", n) + " FROM t"; },
       "no error"},
      {"casts",
       [](int n) { return "SELECT i" + Repeat("::decimal(12,2)", n / 2) + Repeat("::int::bigint", n / 4) + " FROM t"; },
       "no error"},
      {"is true", [](int n) { return "SELECT flag" + Repeat(" IS TRUE", n) + " FROM t"; }, "no error"},
      {"and or",
       [](int n) {
         return "SELECT 1 FROM t WHERE " + Repeat("i=1 AND (s=2 OR (", n / 3) + "flag" + Repeat("))", n / 3);
       },
       "no error"},
      {"nullif", [](int n) { return "SELECT " + Repeat("nullif(", n) + "i" + Repeat(",1)", n) + " FROM t"; },
       kTooLarge},
      {"between",
       [](int n) { return "SELECT 1 FROM t WHERE " + Repeat("(", n) + "flag" + Repeat(" BETWEEN false AND true)", n); },
       kTooLarge},
      {"greatest", [](int n) { return "SELECT " + Repeat("greatest(", n) + "i" + Repeat(",1)", n) + " FROM t"; },
       kTooLarge},
      {"subqueries", [](int n) { return Repeat("(SELECT ", n) + "1" + Repeat(")", n); }, kTooDeep},
      {"unions", [](int n) { return "SELECT 1" + Repeat(" UNION SELECT 1", n); }, "no error"},
      {"intersections", [](int n) { return "SELECT 1" + Repeat(" INTERSECT SELECT 1", n); }, kTooDeep},
      {"unions in unions", [](int n) { return Repeat("SELECT 1 UNION (", n) + "SELECT 1" + Repeat(")", n); }, kTooDeep},
      {"joins",
       [](int n) {
         std::string sql = "SELECT 1 FROM t t0";
         for (int i = 1; i <= n; ++i) sql += " JOIN t t" + std::to_string(i) + " ON true";
         return sql;
       },
       "a query of more than 64 tables is not supported"},
  };
  OnSmallStack([&] {
    for (const Shape& s : shapes) {
      EXPECT_EQ(Message(s.sql(900)), s.at_900) << s.name;
      for (int levels : {3500, 100000}) {
        const std::string message = Message(s.sql(levels));
        const bool expected = message == kTooDeep || message == s.at_900 ||
                              (std::string_view(s.name) == "parentheses" && message == "no error");
        EXPECT_TRUE(expected) << s.name << " " << levels << ": " << message;
      }
    }
  });
  EXPECT_EQ(Message("SELECT " + Repeat("(", 100000) + "1" + Repeat(")", 100000)), kTooDeep);
  EXPECT_EQ(Message("SELECT 1" + Repeat("+1", 100000)), kTooDeep);
}

/// WITH c0 AS (`first`), c1 AS (`next` with c0 for @), ... SELECT 1 FROM the last.
std::string Chain(int n, std::string_view first, std::string_view next) {
  std::string sql = "WITH c0 AS (" + std::string(first) + ")";
  for (int i = 1; i <= n; ++i) {
    sql += ", c" + std::to_string(i) + " AS (";
    for (char c : next) sql += c == '@' ? "c" + std::to_string(i - 1) : std::string(1, c);
    sql += ")";
  }
  return sql + " SELECT count(*) FROM c" + std::to_string(n);
}

// Each query of WITH that names the one before is bound without recursion, but makes the tree deeper.
TEST_F(BindTest, ChainsOfWith) {
  const std::string wrapped = "SELECT " + Repeat("abs(", 400) + "(SELECT max(i) FROM @)" + Repeat(")", 400) + " AS i";
  const std::pair<std::string, int> most[] = {
      {"SELECT * FROM @", 240},
      {"SELECT i + 1 AS i FROM @", 240},
      {"SELECT i, count(*) AS n FROM @ GROUP BY i", 240},
      {"SELECT a.i FROM @ a JOIN @ b ON a.i = b.i", 190},
      {"SELECT a.i FROM t LEFT JOIN @ a ON a.i = t.i AND a.i > 1", 190},
      {"SELECT DISTINCT i FROM t WHERE i IN (SELECT i FROM @)", 30},
      {"SELECT i FROM t WHERE EXISTS (SELECT 1 FROM @ a WHERE a.i = t.i)", 30},
      {"SELECT (SELECT max(i) FROM @) AS i", 30},
      {wrapped, 1},
  };
  for (const auto& [next, n] : most) {
    OnSmallStack([&, &next = next, n = n] {
      const Result<Compiled> compiled = Compile("EXPLAIN " + Chain(n, "SELECT i FROM t", next), snapshot_);
      // What does not fit the machine is refused by a later stage.
      EXPECT_EQ(compiled.ok() ? "" : compiled.status().message(),
                compiled.ok() ? "" : "a statement of more than 4096 pipelines is not supported");
      EXPECT_EQ(Message(Chain(1500, "SELECT i FROM t", next)), kTooDeep) << next;
    });
  }
  OnSmallStack([&] { EXPECT_EQ(Message(Chain(30000, "SELECT i FROM t", "SELECT * FROM @")), kTooDeep); });
  // Queries of WITH beside one another are not deep.
  std::string wide = "WITH c0 AS (SELECT 1 AS i)";
  for (int i = 1; i < 20000; ++i) wide += ", c" + std::to_string(i) + " AS (SELECT 1 AS i)";
  EXPECT_EQ(Message(wide + " SELECT * FROM c19999"), "no error");
}

// The output of a derived table takes the place of a column of the query around it.
TEST_F(BindTest, ExpressionsThatGrowByMerging) {
  std::string sql = "SELECT i FROM t";
  for (int level = 0; level < 50; ++level) sql = "SELECT i" + Repeat("+1", 150) + " AS i FROM (" + sql + ") q";
  OnSmallStack([&] {
    const Result<Compiled> compiled = Compile("EXPLAIN " + sql, snapshot_);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  });
}

TEST_F(BindTest, MostJoins) {
  const auto joins = [](int n, const std::string& join) {
    std::string sql = "SELECT 1 FROM " + Repeat("(", n) + "t t0";
    for (int i = 1; i <= n; ++i)
      sql += " " + join + " t t" + std::to_string(i) + " ON t0.i = t" + std::to_string(i) + ".i)";
    return sql;
  };
  OnSmallStack([&] {
    for (const char* join : {"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"}) {
      EXPECT_EQ(Message(joins(20, join)), "no error") << join;
      for (const int n : {900, 20000}) {
        const std::string many = Message(joins(n, join));
        EXPECT_TRUE(many == kTooDeep || many == "a query of more than 64 tables is not supported") << many;
      }
    }
  });
}

TEST_F(BindTest, ManyNamesInUsing) {
  std::string names = "c0";
  for (int i = 1; i < 200000; ++i) names += ", c" + std::to_string(i);
  EXPECT_EQ(Message("SELECT 1 FROM t JOIN u USING (" + names + ")"),
            "column \"c0\" specified in USING clause does not exist in left table");
}

TEST_F(BindTest, TablesOfManyColumns) {
  std::string columns = "c0 INTEGER";
  for (int i = 1; i < 100000; ++i) columns += ", c" + std::to_string(i) + " INTEGER";
  EXPECT_EQ(Message("CREATE TABLE wide (" + columns + ")"), "table \"wide\" has more than 4096 columns");
}

TEST_F(BindTest, WideStatements) {
  OnSmallStack([&] {
    EXPECT_EQ(Message("SELECT 1 FROM t WHERE i = 1" + Repeat(" AND i = 1", 20000)), "no error");
    EXPECT_EQ(Message("SELECT 1 FROM t WHERE i = 1" + Repeat(" OR i = 1", 20000)), "no error");
    EXPECT_EQ(Message("SELECT 1 FROM t WHERE i IN (1" + Repeat(",123456", 10000) + ")"), "no error");
    EXPECT_EQ(Message("SELECT 1 FROM t WHERE i IN (s" + Repeat(",123456", 10000) + ")"), "no error");
    EXPECT_EQ(Message("SELECT i" + Repeat(",i", 3999) + " FROM t"), "no error");
    EXPECT_EQ(Message("SELECT coalesce(i" + Repeat(",s", 10000) + ") FROM t"), "no error");
    EXPECT_EQ(Message("SELECT concat(v" + Repeat(",v", 10000) + ") FROM t"), "no error");
    EXPECT_EQ(Message("SELECT CASE i" + Repeat(" WHEN 1 THEN 2", 20000) + " END FROM t"), "no error");
    EXPECT_EQ(Message("SELECT greatest(i" + Repeat(",s", 1000) + ") FROM t"), kTooLarge);
  });
}

TEST_F(BindTest, MostItemsOfOneSelect) {
  const std::string columns = "a result of more than 4096 columns is not supported";
  EXPECT_EQ(Message("SELECT i" + Repeat(",i", 4095) + " FROM t"), "no error");
  EXPECT_EQ(Message("SELECT i" + Repeat(",i", 4096) + " FROM t"), columns);
  EXPECT_EQ(Message("SELECT i" + Repeat(",i", 9999) + " FROM t"), columns);
  // Each of these differs from all others.
  const auto list = [](const char* before, int n, const char* after) {
    std::string sql;
    for (int k = 0; k < n; ++k) sql += (k == 0 ? "" : ",") + (before + std::to_string(k)) + after;
    return sql;
  };
  EXPECT_EQ(Message("SELECT 1 FROM t GROUP BY " + list("i+", 4096, "")), "no error");
  EXPECT_EQ(Message("SELECT 1 FROM t GROUP BY " + list("i+", 4097, "")),
            "GROUP BY of more than 4096 expressions is not supported");
  EXPECT_EQ(Message("SELECT 1 FROM t ORDER BY " + list("i+", 4096, "")), "no error");
  EXPECT_EQ(Message("SELECT 1 FROM t ORDER BY " + list("i+", 10000, "")),
            "ORDER BY of more than 4096 expressions is not supported");
  // Many aggregates in one column.
  EXPECT_EQ(Message("SELECT concat(" + list("sum(i+", 4096, ")") + ") FROM t"), "no error");
  EXPECT_EQ(Message("SELECT concat(" + list("sum(i+", 4097, ")") + ") FROM t"),
            "more than 4096 aggregates in one SELECT are not supported");
}

TEST_F(BindTest, ManyRows) {
  const Result<Statement> bound =
      BindText("INSERT INTO u VALUES (1, 2, 'x')" + Repeat(",(-12345, NULL, 'some text')", 19999));
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->change.values.rows, 20000u);
  EXPECT_EQ(bound->change.values.columns[0].fixed.back(), -12345);
}

TEST_F(BindTest, LongText) {
  EXPECT_EQ(Message("SELECT '" + std::string(1 << 20, 'x') + "'"), "no error");
  EXPECT_EQ(Message("SELECT 1" + std::string(1 << 20, ' ')), "no error");
  EXPECT_EQ(Message(std::string(1 << 20, ';')), "no statement");
  EXPECT_EQ(Message("SELECT '" + std::string(5 << 20, 'x') + "'"),
            "statement is too long (5242889 bytes, at most 4194304)");
  // An error message does not repeat a megabyte.
  EXPECT_LT(Message("SELECT 1 '" + std::string(1 << 20, 'x') + "'").size(), 300u);
}

// PostgreSQL's scanner takes time with the square of the length of such text.
TEST_F(BindTest, OperatorsWithoutEnd) {
  for (const char* piece : {"+", "/*", "/**/", "<>", "@"}) {
    EXPECT_EQ(Message("SELECT 1 " + Repeat(piece, 200000) + " 2"), "operator too long") << piece;
  }
  EXPECT_EQ(Message("SELECT 1 /*" + Repeat("*", 200000) + "*/"), "no error");
  EXPECT_EQ(Message("SELECT '" + Repeat("/*", 100000) + "'"), "no error");
}

TEST_F(BindTest, CompilingStopsSoon) {
  std::string list = "0", conjunction = "SELECT 1 FROM t WHERE i <> 0";
  for (int i = 1; i < 200000; ++i) list += "," + std::to_string(i);
  for (int i = 1; i < 100000; ++i) conjunction += " AND i <> " + std::to_string(i);
  const std::string statements[] = {
      "SELECT 1" + Repeat("+1", 600000), "SELECT 1" + Repeat(",1", 600000), "SELECT 1 FROM t WHERE i IN (" + list + ")",
      conjunction, "SELECT '" + std::string(1800000, 'a') + "' LIKE '%" + Repeat("a_", 900000) + "b%'"};
  for (const std::string& sql : statements) {
    for (const int milliseconds : {30, 300}) {
      std::atomic<bool> cancel{false};
      std::chrono::steady_clock::time_point since;
      std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        since = std::chrono::steady_clock::now();
        cancel = true;
      });
      bool stopped = false;
      try {
        const InterruptScope scope(&cancel);
        (void)Compile(sql, snapshot_);
      } catch (const Interruption&) {
        stopped = true;
      }
      const auto end = std::chrono::steady_clock::now();
      canceller.join();
      if (stopped) {
        EXPECT_LT(end - since, std::chrono::milliseconds(kPatience)) << sql.substr(0, 30);
      }
    }
  }
  // The parser is free again.
  EXPECT_EQ(Message("SELECT i" + Repeat(", i + 1", 3000) + " FROM t"), "no error");
}

TEST_F(BindTest, ManyThreadsBindAtOnce) {
  const std::string long_sql = "SELECT i" + Repeat(", i + 1", 3000) + " FROM t";
  std::vector<pthread_t> threads(4);
  std::function<void()> work = [&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(Message(i % 2 == 0 ? long_sql : "SELECT i + 1 FROM t"), "no error");
      EXPECT_EQ(Message("SELECT j FROM t"), "column \"j\" does not exist");
    }
  };
  const auto run = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  for (pthread_t& t : threads) ASSERT_EQ(pthread_create(&t, nullptr, run, &work), 0);
  for (pthread_t& t : threads) pthread_join(t, nullptr);
}

}  // namespace
}  // namespace tessera
