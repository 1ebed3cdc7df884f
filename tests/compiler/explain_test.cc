// EXPLAIN: the tree of what runs, and what a run has measured of it, as text and as JSON.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

class ExplainTest : public testing::Test {
 protected:
  ExplainTest() {
    SessionOptions options;
    options.device = DeviceChoice::kHost;
    session_ = std::move(*Session::Open(options));
    Answer("SET read_runs = off");
    Answer("CREATE TABLE nation (id INTEGER PRIMARY KEY, name TEXT NOT NULL)");
    Answer("INSERT INTO nation SELECT x, 'nation ' || x FROM range(25) r(x)");
    Answer("CREATE TABLE customer (id INTEGER PRIMARY KEY, nation INTEGER NOT NULL, name TEXT NOT NULL)");
    Answer("INSERT INTO customer SELECT x, x % 25, 'name ' || x FROM range(1000) r(x)");
    Answer("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, day INTEGER, price DECIMAL(12,2))");
    Answer("INSERT INTO orders SELECT x, x % 1000, x % 100, x FROM range(20000) r(x)");
  }

  std::string Answer(const std::string& sql) { return tessera::Answer(session_.get(), sql); }

  std::unique_ptr<Session> session_;
};

TEST_F(ExplainTest, OneLineAStep) {
  EXPECT_EQ(
      Answer("EXPLAIN (COSTS off) SELECT nation.name, sum(price) AS s FROM orders, customer, nation WHERE customer = "
             "customer.id AND nation = nation.id AND day < 50 GROUP BY nation.name HAVING sum(price) > 10 ORDER BY s "
             "DESC LIMIT 3"),
      "Limit 3\n"
      "  Sort by s desc\n"
      "    Filter groups (1 condition)\n"
      "      Group by nation.name: sum(orders.price)\n"
      "        Hash join (unique key) on customer.nation = nation.id\n"
      "          Hash join (unique key) on orders.customer = customer.id\n"
      "            Scan orders where orders.day < 50\n"
      "            Build: Scan customer\n"
      "          Build: Scan nation\n");
  EXPECT_EQ(Answer("EXPLAIN SELECT 1"), "One row\n");
}

TEST_F(ExplainTest, RowsThatWereMade) {
  EXPECT_EQ(
      Answer("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT nation.name, sum(price) AS s FROM orders, "
             "customer, nation WHERE customer = customer.id AND nation = nation.id AND day < 50 GROUP BY "
             "nation.name HAVING sum(price) > 10 ORDER BY s DESC LIMIT 3"),
      "Limit 3  (3 rows, on host)\n"
      "  Sort by s desc\n"
      "    Filter groups (1 condition)\n"
      "      Group by nation.name: sum(orders.price)  (25 rows, on host)\n"
      "        Hash join (unique key) on customer.nation = nation.id  (10000 rows)\n"
      "          Hash join (unique key) on orders.customer = customer.id  (10000 rows)\n"
      "            Scan orders where orders.day < 50  (20000 read)\n"
      "            Build: Scan customer  (1000 rows, on host)\n"
      "          Build: Scan nation  (25 rows, on host)\n");
  EXPECT_EQ(
      Answer("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT count(*) FROM (SELECT day FROM orders WHERE "
             "id < 3 UNION ALL SELECT id FROM nation UNION ALL VALUES (1), (2)) u"),
      "Aggregate count(*)  (1 rows, on host)\n"
      "  Scan union  (30 rows)\n"
      "    Scan orders where orders.id < 3  (3 rows, 20000 read, on host)\n"
      "    Union all\n"
      "      Scan nation  (25 rows, on host)\n"
      "    Union all\n"
      "      2 rows of values  (on host)\n");
  const std::string all = Answer("EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM orders");
  const std::regex line(
      R"(Scan orders  \(~20000 rows, 20000 actual, 1 tablets, 0 skipped, [\d.]+ KB, [\d.]+ ms on host\)\n)"
      R"(20000 rows; compiled in [\d.]+ ms, executed in [\d.]+ ms; at most [\d.]+ .?B of memory\n)");
  EXPECT_TRUE(std::regex_match(all, line)) << all;
}

/// The tree says what runs: each section of the program is in it.
TEST_F(ExplainTest, EachSectionIsInTheTree) {
  for (const std::string& query : std::vector<std::string>{
           "SELECT 1", "VALUES (1), (2)", "SELECT count(DISTINCT day), sum(price) FROM orders GROUP BY customer",
           "SELECT DISTINCT day FROM orders ORDER BY day LIMIT 3", "SELECT rank() OVER (ORDER BY day) FROM orders",
           "SELECT avg(price) OVER (PARTITION BY day) FROM orders",
           "SELECT x.id FROM orders x FULL JOIN customer y ON x.customer = y.id",
           "SELECT id FROM orders WHERE day IN (SELECT id FROM nation) AND customer NOT IN (SELECT id FROM customer)",
           "SELECT (SELECT max(day) FROM orders o WHERE o.customer = c.id) FROM customer c",
           "WITH q AS (SELECT day, count(*) AS n FROM orders GROUP BY day) SELECT * FROM q x, q y WHERE x.n = y.day",
           "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 5) SELECT x FROM r",
           "SELECT id FROM nation UNION SELECT day FROM orders",
           "SELECT id FROM nation EXCEPT ALL SELECT day FROM orders", "SELECT median(day) FROM orders",
           "SELECT count(*) FROM nation a, nation b WHERE a.id < b.id",
           "SELECT upper(name), count(*) FROM nation WHERE name LIKE '%1' GROUP BY ROLLUP (upper(name))"}) {
    std::set<int> told, made;
    const std::string tree = Answer("EXPLAIN (VERBOSE) " + query), program = Answer("EXPLAIN (PROGRAM) " + query);
    const std::regex numbers(R"(section ([\d, ]+)\))"), number(R"(\d+)"), head(R"(-- section (\d+): (.*))");
    for (std::sregex_iterator i(tree.begin(), tree.end(), numbers), end; i != end; ++i) {
      const std::string list = (*i)[1];
      for (std::sregex_iterator n(list.begin(), list.end(), number); n != end; ++n) told.insert(std::stoi(n->str()));
    }
    for (std::sregex_iterator i(program.begin(), program.end(), head), end; i != end; ++i) {
      if ((*i)[2].str().find("map of entries") == std::string::npos) made.insert(std::stoi((*i)[1]));
    }
    EXPECT_EQ(told, made) << query << "\n" << tree << program;
  }
}

TEST_F(ExplainTest, LongLinesAreCut) {
  std::string condition = "name <> 'x'";
  for (int i = 0; i < 30; ++i) condition += " AND name <> 'a name of some length " + std::to_string(i) + "'";
  const std::string query = "SELECT count(*) FROM customer WHERE " + condition;
  std::istringstream lines(Answer("EXPLAIN " + query));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 102u) << line;  // "…" has three bytes
  EXPECT_EQ(Answer("EXPLAIN " + query).find("length 29"), std::string::npos);
  EXPECT_NE(Answer("EXPLAIN (VERBOSE) " + query).find("length 29"), std::string::npos);
  // As query 4 of TPC-DS: three arms, of which each is joined six times.
  std::string arms, from, where = "true";
  for (const char* arm : {"s", "c", "w"}) {
    arms += std::string(arms.empty() ? "" : " UNION ALL ") +
            "SELECT customer.id AS customer_id, customer.name AS customer_name, nation.name AS country, day AS dyear, "
            "sum(((price - 1) + (price + 2) - price) / 2) AS year_total, '" +
            arm +
            "' AS sale_type FROM customer, orders, nation WHERE customer.id = customer AND nation = nation.id GROUP BY "
            "customer.id, customer.name, nation.name, day";
  }
  for (int i = 0; i < 6; ++i) {
    const std::string t = "t" + std::to_string(i);
    from += std::string(from.empty() ? "" : ", ") + "year_total " + t;
    where += " AND " + t + ".customer_id = t0.customer_id AND " + t + ".sale_type = '" + "scw"[i % 3] + "' AND " + t +
             ".dyear = " + std::to_string(i % 2) + " AND " + t + ".year_total >= 0";
  }
  const std::string large = "WITH year_total AS (" + arms + ") SELECT t0.customer_id FROM " + from + " WHERE " + where +
                            " AND CASE WHEN t0.year_total > 0 THEN t1.year_total / t0.year_total END > CASE WHEN "
                            "t2.year_total > 0 THEN t3.year_total / t2.year_total END ORDER BY 1 LIMIT 100";
  const std::string analyzed = Answer("EXPLAIN ANALYZE " + large);
  EXPECT_NE(analyzed.find("executed in"), std::string::npos) << analyzed;
  EXPECT_LT(analyzed.size(), 8000u) << analyzed;
}

TEST_F(ExplainTest, Json) {
  const std::string expected = R"json([
  {
    "Plan": {
      "Node Type": "Aggregate",
      "Strategy": "Hashed",
      "Group Key": ["nation.name"],
      "Step": "Group by nation.name: count(*)",
      "Plans": [
        {
          "Node Type": "Hash Join",
          "Parent Relationship": "Outer",
          "Join Type": "Left",
          "Inner Unique": true,
          "Hash Cond": "o.day = nation.id",
          "Step": "Hash left join (unique key) on o.day = nation.id",
          "Plans": [
            {
              "Node Type": "Seq Scan",
              "Parent Relationship": "Outer",
              "Relation Name": "orders",
              "Alias": "o",
              "Step": "Scan orders o"
            },
            {
              "Node Type": "Seq Scan",
              "Parent Relationship": "Inner",
              "Relation Name": "nation",
              "Alias": "nation",
              "Filter": "nation.name <> '\"'",
              "Step": "Build: Scan nation where nation.name <> '\"'"
            }
          ]
        }
      ]
    }
  }
]
)json";
  EXPECT_EQ(
      Answer("EXPLAIN (FORMAT JSON, COSTS off) SELECT name, count(*) FROM orders o LEFT JOIN nation ON day = nation.id "
             "AND name <> '\"' GROUP BY name"),
      expected);

  const std::string analyzed = Answer("EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM orders");
  for (const char* part :
       {"\"Plan Rows\": 1,", "\"Actual Rows\": 1,", "\"Actual Rows\": 20000,", "\"Actual Total Time\": ",
        "\"Planning Time\": ", "\"Execution Time\": ", "\"Where\": \"host\"", "\"Rows Read\": 20000"})
    EXPECT_NE(analyzed.find(part), std::string::npos) << part << "\n" << analyzed;
}

TEST_F(ExplainTest, ChangesAreRun) {
  const std::string form = "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) ";
  Answer("BEGIN");
  EXPECT_EQ(Answer(form + "DELETE FROM nation WHERE id < 5"),
            "Delete from nation\n  Scan nation where nation.id < 5  (5 rows, 25 read, on host)\n");
  EXPECT_EQ(Answer(form + "UPDATE nation SET name = 'x' WHERE id = 7 RETURNING id"),
            "Update nation\n  Scan nation where nation.id = 7  (1 rows, 25 read, on host)\n");
  EXPECT_EQ(Answer(form + "INSERT INTO nation VALUES (1, 'a'), (2, 'b')"), "Insert into nation\n  2 rows of values\n");
  EXPECT_EQ(Answer(form + "INSERT INTO nation SELECT id, 'c' FROM nation ON CONFLICT DO NOTHING"),
            "Insert into nation\n  Scan nation  (22 rows, on host)\n");
  EXPECT_EQ(Answer("SELECT count(*), count(DISTINCT name) FROM nation"), "count(*),count(DISTINCT name)\n22,22\n");
  EXPECT_EQ(Answer(form + "CREATE TABLE small AS SELECT day, count(*) FROM orders WHERE day < 3 GROUP BY day"),
            "Create table small\n  Group by orders.day: count(*)  (3 rows, on host)\n"
            "    Scan orders where orders.day < 3  (20000 read)\n");
  EXPECT_EQ(Answer("SELECT count(*) FROM small"), "count(*)\n3\n");
  Answer("ROLLBACK");
  EXPECT_EQ(Answer("SELECT count(*) FROM nation"), "count(*)\n25\n");
  EXPECT_NE(Answer("SELECT * FROM small").find("does not exist"), std::string::npos);
  Answer("EXPLAIN DELETE FROM nation");
  EXPECT_EQ(Answer("SELECT count(*) FROM nation"), "count(*)\n25\n");
}

TEST_F(ExplainTest, OfPreparedStatements) {
  Answer("PREPARE q AS SELECT id FROM nation WHERE id < $1");
  EXPECT_EQ(Answer("EXPLAIN (ANALYZE, TIMING off, COSTS off, SUMMARY off) EXECUTE q (3)"),
            "Scan nation where nation.id < 3  (3 rows, 25 read, on host)\n");
  EXPECT_NE(Answer("EXPLAIN (FORMAT JSON) EXECUTE q (3)").find("\"Filter\": \"nation.id < 3\""), std::string::npos);
}

}  // namespace
}  // namespace tessera
