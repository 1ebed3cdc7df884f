// What the optimiser makes of queries, by the plan of EXPLAIN: a test for each rule. That the rows stay the same is for
// the SQL tests and the differential tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    SessionOptions options;
    options.device = DeviceChoice::kHost;
    session_ = std::move(*Session::Open(options));
    // A large table of facts, a middle one and two small ones, as sales, orders, customers and nations.
    Answer("CREATE TABLE digit (x INTEGER)");
    Answer("INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)");
    Answer("CREATE TABLE nation (id INTEGER PRIMARY KEY, name TEXT)");
    Answer("INSERT INTO nation SELECT x, 'nation ' || CAST(x AS TEXT) FROM digit");
    Answer("CREATE TABLE customer (id INTEGER PRIMARY KEY, nation INTEGER NOT NULL, name TEXT NOT NULL)");
    Answer(
        "INSERT INTO customer SELECT a.x * 100 + b.x * 10 + c.x, c.x, 'name ' || CAST(a.x * 100 + b.x * 10 + c.x AS "
        "TEXT) FROM digit a, digit b, digit c");
    Answer(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, day INTEGER NOT NULL, price "
        "DECIMAL(12,2))");
    Answer("INSERT INTO orders SELECT c.id * 10 + d.x, c.id, (c.id * 7 + d.x) % 100, c.id FROM customer c, digit d");
    Answer("CREATE TABLE item (orders INTEGER NOT NULL, line INTEGER NOT NULL, part INTEGER NOT NULL, n BIGINT)");
    Answer("INSERT INTO item SELECT o.id, d.x, (o.id * 3 + d.x) % 500, d.x FROM orders o, digit d");
    Answer("SET read_runs = off");  // so that plans do not depend on how the columns are stored
  }

  std::string Answer(const std::string& sql) { return tessera::Answer(session_.get(), sql); }

  /// The plan, without estimates of rows.
  std::string PlanOf(const std::string& query) {
    const std::string answer = Answer("EXPLAIN (PROGRAM) " + query);
    std::string plan = answer.substr(0, answer.find("\n--") == std::string::npos ? 0 : answer.find("\n--"));
    for (size_t at; (at = plan.find("  (~")) != std::string::npos;) plan.erase(at, plan.find(')', at) + 1 - at);
    return plan;
  }
  /// Whether the plan has these pieces, in this order.
  testing::AssertionResult Has(const std::string& query, const std::vector<std::string>& pieces) {
    const std::string plan = PlanOf(query);
    size_t at = 0;
    for (const std::string& piece : pieces) {
      at = plan.find(piece, at);
      if (at == std::string::npos) return testing::AssertionFailure() << "no \"" << piece << "\" in\n" << plan;
      at += piece.size();
    }
    return testing::AssertionSuccess();
  }

  /// The names of the program's sections: "scan item -> groups of 1 keys".
  std::vector<std::string> SectionsOf(const std::string& query) {
    const std::string answer = Answer("EXPLAIN (PROGRAM) " + query);
    std::vector<std::string> names;
    for (size_t at = 0; (at = answer.find("-- section ", at)) != std::string::npos;) {
      const size_t name = answer.find(": ", at) + 2;
      at = answer.find('\n', name);
      names.push_back(answer.substr(name, at - name));
    }
    return names;
  }

  std::unique_ptr<Session> session_;
};

TEST_F(PlanTest, RunsAreReadWhereNothingElseIs) {
  Answer("CREATE TABLE visit AS SELECT g / 32 AS day, g % 7 AS kind FROM generate_series(0, 9999) s(g)");
  EXPECT_TRUE(Has("SELECT count(*) FROM visit WHERE day < 9", {"Scan visit where"}));
  Answer("SET read_runs = on");
  EXPECT_TRUE(Has("SELECT count(*) FROM visit WHERE day < 9", {"Scan runs of day in visit where visit.day < 9"}));
  EXPECT_TRUE(Has("SELECT DISTINCT day FROM visit", {"Distinct", "Scan runs of day in visit"}));
  EXPECT_TRUE(Has("SELECT id FROM customer WHERE id IN (SELECT day FROM visit)", {"runs of day in visit"}));
  // Of two tables the larger one: rows of both would have to be multiplied.
  Answer("CREATE TABLE stay AS SELECT g / 64 AS day FROM generate_series(0, 19999) s(g)");
  const std::string plan = PlanOf("SELECT count(*) FROM visit v, stay s WHERE v.day = s.day");
  EXPECT_NE(plan.find("runs of day in stay"), std::string::npos) << plan;
  EXPECT_EQ(plan.find("runs of day in visit"), std::string::npos) << plan;
  for (const char* other :
       {"SELECT count(*) FROM visit WHERE day < 9 AND kind = 3", "SELECT sum(kind) FROM visit", "SELECT day FROM visit",
        "SELECT var_pop(day::float8) FROM visit", "SELECT count(*) FROM visit"})
    EXPECT_TRUE(Has(other, {"Scan visit"})) << other;
}

TEST_F(PlanTest, WhatAllArmsOfAnOrAskIsTakenOut) {
  EXPECT_TRUE(Has(
      "SELECT count(*) FROM orders, customer WHERE (customer.id = customer AND day = 1) OR (customer.id = customer AND "
      "day = 2)",
      {"Hash join on customer.id = orders.customer\n", "Scan orders where orders.day = 1 OR orders.day = 2"}));
  // An arm that asks for nothing else makes the OR true.
  EXPECT_TRUE(
      Has("SELECT count(*) FROM orders WHERE (day = 1 AND id > 5) OR day = 1", {"Scan orders where orders.day = 1\n"}));
  // What can fail stays where the other tests of its arm protect it.
  EXPECT_TRUE(
      Has("SELECT count(*) FROM orders WHERE (id <> 0 AND 10 / id > 1 AND day = 1) OR (id <> 0 AND 10 / id > 1 AND day "
          "= 2)",
          {"Scan orders where orders.id <> 0 and ", "10 / orders.id > 1", " OR ", "10 / orders.id > 1"}));
}

TEST_F(PlanTest, ArmsOfAnOrGiveEachRelationItsFilter) {
  EXPECT_TRUE(
      Has("SELECT count(*) FROM orders, customer WHERE customer.id = customer AND ((day = 1 AND nation = 2) OR (day = "
          "3 AND "
          "nation = 4))",
          {"where orders.day = 1 AND customer.nation = 2 OR orders.day = 3 AND customer.nation = 4",
           "Scan orders where orders.day = 1 OR orders.day = 3",
           "Scan customer where customer.nation = 2 OR customer.nation = 4"}));
}

TEST_F(PlanTest, EqualitiesAreTransitive) {
  EXPECT_TRUE(Has("SELECT count(*) FROM orders, customer WHERE customer.id = customer AND customer < 5",
                  {"Scan orders where orders.customer < 5", "Scan customer where customer.id < 5"}));
  // a = b and b = c: c is joined to a, which has the fewer rows.
  EXPECT_TRUE(
      Has("SELECT count(*) FROM customer a, customer b, customer c WHERE a.id = b.id AND b.id = c.id AND c.nation = 1",
          {"Hash join (unique key)", "Hash join (unique key)", "Scan customer"}));
  // Two columns of one relation that equal a third are both compared.
  EXPECT_EQ(Answer("SELECT count(*) FROM orders o, customer c WHERE o.customer = c.id AND o.day = c.id"),
            Answer("SELECT count(*) FROM orders WHERE customer = day"));
}

TEST_F(PlanTest, ContradictionsAreFound) {
  EXPECT_TRUE(Has("SELECT count(*) FROM orders WHERE day < 5 AND day > 7", {"where false"}));
  EXPECT_TRUE(
      Has("SELECT count(*) FROM orders, customer WHERE customer = customer.id AND customer = 1 AND customer.id = 2",
          {"where false"}));
  EXPECT_FALSE(Has("SELECT count(*) FROM orders WHERE day < 5 AND day > 3", {"false"}));
}

TEST_F(PlanTest, ConditionsOfTheLeftSideArePartOfTheKey) {
  EXPECT_TRUE(Has("SELECT c.id, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id AND c.nation = 3",
                  {"Hash left join on CASE WHEN c.nation = 3 THEN c.id END = o.customer\n"}));
  EXPECT_TRUE(Has(
      "SELECT c.id FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND c.nation = 3)",
      {"Hash anti join on CASE WHEN c.nation = 3 THEN c.id END = o.customer\n"}));
  // A row looks at one other at most, or the condition may fail.
  EXPECT_TRUE(Has("SELECT o.id, c.id FROM orders o LEFT JOIN customer c ON o.customer = c.id AND o.day = 3",
                  {"left join (unique key) on o.customer = c.id and o.day = 3\n"}));
  EXPECT_FALSE(
      Has("SELECT c.id, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id AND CAST(c.name AS INTEGER) = 3",
          {"CASE"}));
}

TEST_F(PlanTest, ConditionsOfPairsThatAreNeverTrueAreFound) {
  EXPECT_TRUE(Has("SELECT c.id, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id AND o.day > c.nation + 99",
                  {"Scan orders o where false"}));
  EXPECT_TRUE(Has("SELECT count(*) FROM customer c, orders o WHERE o.day > c.nation + 99", {"where false"}));
  EXPECT_FALSE(Has("SELECT count(*) FROM customer c, orders o WHERE o.day > c.nation + 98", {"false"}));
}

TEST_F(PlanTest, OuterJoinsByRangesAreGrids) {
  EXPECT_TRUE(Has("SELECT c.id, o.id FROM customer c LEFT JOIN orders o ON c.id BETWEEN o.day AND o.customer",
                  {"Hash left join on c.id = o.value", "Grid join sorted by", "Distinct", "Scan customer c"}));
  EXPECT_TRUE(Has(
      "SELECT c.id FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE c.id BETWEEN o.day AND o.customer)",
      {"Hash anti join on c.id = o.value", "Distinct", "Grid join sorted by"}));
  EXPECT_TRUE(Has("SELECT c.id, o.id FROM customer c FULL JOIN orders o ON c.id BETWEEN o.day AND o.customer",
                  {"Hash left join on", "Grid join", "Hash anti join on", "Grid join"}));
  // Without an end a range has too many rows to store.
  EXPECT_TRUE(Has("SELECT c.id, o.id FROM customer c LEFT JOIN orders o ON c.id > o.day", {"Loop left join on"}));
}

TEST_F(PlanTest, DomainsHaveTheRowsThatOtherJoinsLeave) {
  const std::string value = "(SELECT count(*) FROM item i WHERE i.line < o.day AND i.part = o.customer)";
  EXPECT_TRUE(Has("SELECT " + value + " FROM orders o WHERE o.id IN (SELECT x FROM digit)",
                  {"Build: Scan domain", "Distinct", "Hash semi join on o.id = digit.x"}));
  EXPECT_TRUE(Has("SELECT " + value + " FROM orders o JOIN digit ON o.id = digit.x",
                  {"Build: Scan domain", "Distinct", "Hash semi join on o.id = digit.x"}));
  EXPECT_TRUE(Has("SELECT " + value + " FROM orders o JOIN customer c ON o.customer = c.id AND c.nation = 3",
                  {"Scan domain", "Distinct", "semi join", "where c.nation = 3"}));
}

TEST_F(PlanTest, RowsThatMeetManyAreGroupedBeforeTheyAreJoined) {
  EXPECT_TRUE(Has(
      "SELECT a.day, count(*), sum(a.price), max(b.price) FROM orders a JOIN orders b ON a.day = b.day GROUP BY a.day",
      {"Group by a.day: sum(a.count), sum(a.sum), max(b.price)", "Group by a.day: count(*), sum(a.price)"}));
  EXPECT_TRUE(Has("SELECT a.day, sum(a.id), sum(b.id) FROM orders a JOIN orders b ON a.day = b.day GROUP BY a.day",
                  {"Group by a.day: sum(a.sum), sum(", "* ", "Group by a.day: "}));
  // A sum of floating-point numbers is another one if they are multiplied.
  EXPECT_FALSE(Has(
      "SELECT a.day, sum(a.id), sum(CAST(b.id AS DOUBLE PRECISION)) FROM orders a JOIN orders b ON a.day = b.day AND "
      "a.customer = b.customer GROUP BY a.day",
      {"Group by", "Group by"}));
}

TEST_F(PlanTest, LimitsBoundTheArmsOfAUnion) {
  EXPECT_TRUE(Has("SELECT id FROM orders UNION ALL SELECT part FROM item LIMIT 3 OFFSET 4",
                  {"Limit 3 offset 4", "Limit 7", "Scan orders", "Union all", "Limit 7", "Scan item"}));
  EXPECT_FALSE(Has("SELECT id FROM orders UNION SELECT part FROM item LIMIT 3", {"Limit 3", "Limit"}));
  EXPECT_FALSE(Has("SELECT id FROM orders UNION ALL SELECT part FROM item ORDER BY 1 LIMIT 3", {"Limit 3", "Limit"}));
}

TEST_F(PlanTest, DistinctWithALimitEndsOnceThereAreEnoughGroups) {
  EXPECT_TRUE(
      Has("SELECT DISTINCT day, customer FROM orders LIMIT 3", {"Limit 3", "Group by orders.day, orders.customer"}));
  EXPECT_TRUE(Has("SELECT DISTINCT day FROM orders ORDER BY day LIMIT 3", {"Limit 3", "Distinct"}));
  // All of these rows take years.
  const std::string rows = " FROM generate_series(1, 1000000000000000) s(i)";
  EXPECT_EQ(Answer("SELECT count(*) FROM (SELECT DISTINCT i % 3" + rows + " LIMIT 3) d"), "count(*)\n3\n");
  EXPECT_EQ(Answer("SELECT count(*) FROM (SELECT i % 5" + rows + " GROUP BY i % 5 LIMIT 2) d"), "count(*)\n2\n");
  EXPECT_EQ(Answer("SELECT count(*) FROM (SELECT i" + rows + " UNION ALL SELECT -i" + rows + " LIMIT 4) d"),
            "count(*)\n4\n");
}

TEST_F(PlanTest, ValuesAreAList) {
  EXPECT_TRUE(Has("SELECT id FROM customer WHERE name IN (VALUES ('a'), ('b'))",
                  {"Scan customer where customer.name IN ('a', 'b')"}));
  EXPECT_TRUE(Has("SELECT id FROM customer WHERE id <> ALL (VALUES (1), (2))",
                  {"Scan customer where NOT customer.id IN (1, 2)"}));
  EXPECT_TRUE(Has("SELECT id FROM customer WHERE id + 1 IN (VALUES (1), (2))", {"semi join on customer.id + 1"}));
}

TEST_F(PlanTest, DistinctAggregatesOfManyArgumentsAreReadApart) {
  EXPECT_TRUE(
      Has("SELECT count(DISTINCT id), count(DISTINCT day), count(DISTINCT customer), count(DISTINCT price), count(*) "
          "FROM orders",
          {"Aggregate count(*)", "Aggregate count(distinct orders.id)", "Aggregate count(distinct orders.day)"}));
  EXPECT_TRUE(Has("SELECT count(DISTINCT id), count(DISTINCT day), count(DISTINCT customer) FROM orders",
                  {"Aggregate count(distinct orders.id), count(distinct orders.day)"}));
}

TEST_F(PlanTest, BuildSidesJoinFirst) {
  // Orders are built with the filter of their customers, and these with that of their nation.
  EXPECT_TRUE(
      Has("SELECT count(*) FROM item, orders, customer, nation WHERE item.orders = orders.id AND orders.customer = "
          "customer.id AND customer.nation = nation.id AND nation.name = 'nation 3'",
          {"Scan item", "Build: Hash join (unique key) on orders.customer = customer.id", "Scan orders",
           "Build: Hash join (unique key) on customer.nation = nation.id", "Scan customer", "Build: Scan nation"}));
  // With a value that is asked of rows of no relation, too.
  EXPECT_TRUE(Has(
      "SELECT count(*) FROM item, orders, customer WHERE item.orders = orders.id AND orders.customer = customer.id AND "
      "customer.nation = 3 AND orders.day > (SELECT min(id) FROM nation)",
      {"Scan item", "Build: ", "orders.customer = customer.id", "Scan orders", "Build: Scan customer"}));
  // With more relations than are searched through, too.
  std::string from = "item", where = "item.part >= 0";
  for (int i = 0; i < 12; ++i) {
    const std::string o = "o" + std::to_string(i);
    from += ", orders " + o;
    where += " AND " + o + ".id = item.orders";
  }
  EXPECT_TRUE(Has("SELECT count(*) FROM " + from + " WHERE " + where + " AND o7.day = 4", {"Scan item", "Build: "}));
  EXPECT_EQ(Answer("SELECT count(*) FROM " + from + " WHERE " + where + " AND o7.day = 4"), "count(*)\n1000\n");
}

TEST_F(PlanTest, FiltersChooseKeysThatTheOtherSideHas) {
  // 200 years, of which five have sales: those of one year are a fifth of all sales, not one of two hundred.
  Answer("CREATE TABLE calendar AS SELECT g AS day, g / 100 AS year FROM generate_series(0, 19999) s(g)");
  Answer("CREATE TABLE sale AS SELECT 10000 + g % 500 AS day, g % 10000 AS orders FROM generate_series(0, 49999) s(g)");
  const std::vector<std::string> orders_are_looked_up = {"on sale.orders = orders.id", "on sale.day = calendar.day",
                                                         "Scan sale", "Build: Scan calendar where calendar.year = 102",
                                                         "Build: Scan orders"};
  const std::string query = "SELECT sum(price) FROM sale, calendar, orders WHERE sale.day = calendar.day AND ";
  EXPECT_TRUE(Has(query + "sale.orders = orders.id AND year = 102", orders_are_looked_up));
  // Of a primary key, too.
  Answer("CREATE TABLE keyed (day INTEGER PRIMARY KEY, year INTEGER)");
  Answer("INSERT INTO keyed SELECT day, year FROM calendar");
  Answer("DROP TABLE calendar");
  Answer("ALTER TABLE keyed RENAME TO calendar");
  EXPECT_TRUE(Has(query + "sale.orders = orders.id AND year = 102", orders_are_looked_up));
  // Where sales are of all years, one year has few of them.
  Answer("DROP TABLE sale");
  Answer("CREATE TABLE sale AS SELECT g % 20000 AS day, g % 10000 AS orders FROM generate_series(0, 49999) s(g)");
  EXPECT_TRUE(Has(query + "sale.orders = orders.id AND year = 102",
                  {"Hash join on orders.id = sale.orders", "Scan orders", "Build: ", "Scan sale"}));
}

TEST_F(PlanTest, ElevenRelationsAreSearchedThrough) {
  // Nations alone make the fewest rows, but their tables are made of nothing for that.
  std::string from = "orders", where = "orders.price > 1 AND n0.name = 'nation 3'";
  for (int i = 0; i < 10; ++i) {
    const std::string n = "n" + std::to_string(i);
    from += ", nation " + n;
    where += " AND orders.day = " + n + ".id";
  }
  const std::string plan = PlanOf("SELECT count(*) FROM " + from + " WHERE " + where);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(plan.find(" on orders.day = n" + std::to_string(i) + ".id"), std::string::npos) << plan;
  }
}

TEST_F(PlanTest, RangesSayHowOftenOneColumnIsLess) {
  Answer("CREATE TABLE level AS SELECT g % 100 AS low, g % 1000 AS high FROM generate_series(0, 9999) s(g)");
  const auto expected = [&](const std::string& condition) {
    return Answer("EXPLAIN SELECT * FROM level WHERE " + condition);
  };
  EXPECT_NE(expected("high < low").find("(~500 rows)"), std::string::npos) << expected("high < low");
  EXPECT_NE(expected("low >= high").find("(~500 rows)"), std::string::npos) << expected("low >= high");
  EXPECT_NE(expected("low < high").find("(~9500 rows)"), std::string::npos) << expected("low < high");
  EXPECT_NE(expected("high < low + 900").find("(~9500 rows)"), std::string::npos) << expected("high < low + 900");
  EXPECT_NE(expected("high < low - 100").find("(~0 rows)"), std::string::npos) << expected("high < low - 100");
}

TEST_F(PlanTest, FirstKeysOfAFilteredSideBoundTheScan) {
  const auto bounds = [&](const std::string& query) {
    return Answer("EXPLAIN (PROGRAM) " + query).find("within the keys of t0") != std::string::npos;
  };
  const std::string query =
      "SELECT count(*) FROM item, orders WHERE item.orders = orders.id AND item.part = orders.day";
  EXPECT_TRUE(bounds(query + " AND orders.price > 3"));
  EXPECT_FALSE(bounds(query));
  Answer("SET invisible_join = off");
  EXPECT_FALSE(bounds(query + " AND orders.price > 3"));
}

TEST_F(PlanTest, TextsAreComputedBeforeALargerTableIsJoined) {
  const auto query = [](const std::string& text) {
    return "SELECT t, count(*) FROM orders, (SELECT " + text +
           " AS t, * FROM customer WHERE nation < 4) c WHERE customer = c.id GROUP BY t";
  };
  EXPECT_TRUE(Has(query("substring(name, 1, 7)"), {"Group by c.t", "orders.customer", "Scan orders", "Build: Scan c",
                                                   "Scan customer where customer.nation < 4"}));
  // A number is soon computed; and a table that is as large does not repeat the texts.
  EXPECT_TRUE(Has(query("nation + 1"), {"Build: Scan customer where customer.nation < 4"}));
  EXPECT_TRUE(
      Has("SELECT t, count(*) FROM nation, (SELECT substring(name, 1, 7) AS t, * FROM customer) c WHERE nation.id = "
          "c.nation GROUP BY t",
          {"Scan customer", "Build: Scan nation"}));
  EXPECT_EQ(Answer("SELECT count(*), max(n), min(t) FROM (" +
                   query("substring(name, 1, 7)").replace(10, 8, "count(*) AS n") + ") x"),
            Answer("SELECT count(*), max(n), min(t) FROM (SELECT substring(name, 1, 7) AS t, count(*) AS n FROM "
                   "orders, customer WHERE "
                   "customer = customer.id AND nation < 4 GROUP BY substring(name, 1, 7)) x"));
}

TEST_F(PlanTest, TextsOfASideAreComputedWhereItIsStored) {
  const std::string of = " FROM orders, customer WHERE customer = customer.id ";
  const auto after_join = [&](const std::string& query) {
    const std::string listing = Answer("EXPLAIN (PROGRAM) " + query);
    return listing.substr(std::min(listing.find(": scan orders"), listing.size()));
  };
  const std::string text = "SELECT substring(name, 1, 7), count(*)" + of + "GROUP BY 1";
  EXPECT_EQ(after_join(text).find("SubstringT"), std::string::npos);
  const std::string either = "SELECT count(*) AS n" + of + "AND (name LIKE '%1' OR orders.price > 500)";
  EXPECT_EQ(after_join(either).find("like"), std::string::npos);
  EXPECT_NE(after_join(either).find("Probe"), std::string::npos);
  // Identifiers tell whether texts are equal.
  EXPECT_NE(after_join("SELECT count(*)" + of + "AND (name = 'customer 1' OR orders.price > 500)").find("FilterEqT"),
            std::string::npos);
  EXPECT_EQ(Answer(either), Answer("SELECT (SELECT count(*)" + of + "AND name LIKE '%1') + (SELECT count(*)" + of +
                                   "AND name NOT LIKE '%1' AND orders.price > 500) AS n"));
}

TEST_F(PlanTest, TextsOfASideInsideOfASideAreComputedWhereItIsStored) {
  // The items are looked up in few orders, which have their customers with them, and these their nations.
  const std::string of =
      " FROM item, orders, customer, nation WHERE item.orders = orders.id AND customer = customer.id AND nation = "
      "nation.id AND orders.day = 5";
  const std::string query = "SELECT substring(nation.name, 8, 1), count(*)" + of +
                            " AND substring(customer.name, 6, 1) <> substring(nation.name, 8, 1) GROUP BY 1";
  const std::string listing = Answer("EXPLAIN (PROGRAM) " + query);
  const size_t last = listing.find(": scan item");
  ASSERT_NE(last, std::string::npos) << listing;
  EXPECT_EQ(listing.find("SubstringT", last), std::string::npos) << listing;
  // The same with the texts of the nations made by hand.
  EXPECT_EQ(Answer(query + " ORDER BY 1"),
            Answer("SELECT nation::TEXT AS \"substring(nation.name, 8, 1)\", count(*)" + of +
                   " AND substring(customer.name, 6, 1) <> nation::TEXT GROUP BY 1 ORDER BY 1"));
}

TEST_F(PlanTest, TextsAreMadeForTheRowsThatLimitLeaves) {
  const std::string query = "SELECT name || '!' AS n, id FROM customer ORDER BY nation, id DESC LIMIT 3";
  const std::string listing = Answer("EXPLAIN (PROGRAM) " + query);
  EXPECT_GT(listing.find("ConcatT"), listing.find("rows of rows -> rows")) << listing;
  EXPECT_EQ(Answer(query), "n,id\nname 990!,990\nname 980!,980\nname 970!,970\n");
  EXPECT_EQ(Answer("SELECT name || '!' AS n FROM customer WHERE id IN (7, 8, 9) ORDER BY name LIMIT 2 OFFSET 1"),
            "n\nname 8!\nname 9!\n");
  // What the order needs is made before.
  for (const char* other : {"SELECT name || '!' AS n FROM customer ORDER BY 1 LIMIT 3",
                            "SELECT name || '!' AS n FROM customer ORDER BY id"})
    EXPECT_EQ(Answer(std::string("EXPLAIN (PROGRAM) ") + other).find("rows of rows"), std::string::npos) << other;
}

TEST_F(PlanTest, RareTextsAreMadeOfFewRows) {
  Answer(
      "CREATE TABLE product AS SELECT g AS id, g || repeat(' ' || g * 7919, 12) AS text, g % 10 AS kind FROM "
      "generate_series(0, 4999) s(g)");
  const std::string query = " FROM orders, product WHERE orders.customer = product.id AND day < 90 GROUP BY ";
  EXPECT_TRUE(Has("SELECT kind, count(*)" + query + "kind", {"Scan orders", "Build: Scan product"}));
  EXPECT_TRUE(Has("SELECT text, count(*)" + query + "text", {"Scan product", "Build: Scan orders"}));
}

TEST_F(PlanTest, FiltersPassGroupByAndDistinct) {
  EXPECT_TRUE(
      Has("SELECT * FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t WHERE customer = 7 AND n > 2",
          {"Filter groups (1 condition)", "Scan orders where orders.customer = 7"}));
  EXPECT_TRUE(Has("SELECT customer, count(*) FROM orders GROUP BY customer HAVING customer = 7 AND count(*) > 1",
                  {"Filter groups (1 condition)", "Scan orders where orders.customer = 7"}));
  EXPECT_TRUE(Has(
      "SELECT a, b FROM (SELECT DISTINCT o.day AS a, c.nation AS b FROM orders o, customer c) t WHERE a = b AND a < 5",
      {"Distinct", "Hash join on o.day = c.nation", "Scan orders o where o.day < 5",
       "Scan customer c where c.nation < 5"}));
  // Not where a LIMIT has chosen among the rows.
  EXPECT_TRUE(Has("SELECT * FROM (SELECT customer FROM orders ORDER BY id LIMIT 3) t WHERE customer = 7",
                  {"Scan t where t.customer = 7", "Limit 3"}));
  EXPECT_EQ(Answer("SELECT * FROM (SELECT customer FROM orders ORDER BY id LIMIT 3) t WHERE customer = 7"),
            "customer\n");
}

TEST_F(PlanTest, GroupsAreMadeOnlyForKeysThatCanOccur) {
  // By the filter of the relation with the key ...
  EXPECT_TRUE(Has(
      "SELECT count(*) FROM customer c WHERE nation = 3 AND 5 < (SELECT avg(price) FROM orders WHERE customer = c.id)",
      {"Group by orders.customer", "Hash semi join (unique key) on orders.customer = c.id", "Scan orders",
       "Build: Scan customer c where c.nation = 3"}));
  // ... or of one in which the key must be found.
  EXPECT_TRUE(
      Has("SELECT count(*) FROM orders o WHERE customer IN (SELECT id FROM customer WHERE nation = 3) AND 5 < (SELECT "
          "avg(price) FROM orders WHERE customer = o.customer)",
          {"Group by orders.customer", "Hash semi join (unique key) on orders.customer = customer.id"}));
  EXPECT_EQ(Answer("SELECT count(*) FROM customer c WHERE nation = 3 AND 5 < (SELECT avg(price) FROM orders WHERE "
                   "customer = c.id)"),
            "count(*)\n99\n");
}

TEST_F(PlanTest, RowsAreGroupedBeforeTheyAreJoined) {
  // The side of an outer join, by its key; then each customer is a row.
  EXPECT_TRUE(
      Has("SELECT c.id, count(o.id) FROM customer c LEFT JOIN orders o ON o.customer = c.id AND day < 90 GROUP BY c.id",
          {"Hash left join (unique key) on c.id = o.customer", "Scan customer c", "Build: Scan o",
           "Group by o.customer: count(o.id)", "Scan orders o where o.day < 90"}));
  // They are grouped again where the keys are others.
  EXPECT_TRUE(Has("SELECT nation, max(price) FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY nation",
                  {"Group by c.nation: max(o.max)", "Hash left join (unique key) on c.id = o.customer",
                   "Group by o.customer: max(o.price)"}));
  // An inner join only if that is the only grouping.
  EXPECT_TRUE(
      Has("SELECT c.id, c.name, sum(price) FROM customer c, orders o WHERE o.customer = c.id GROUP BY c.id, c.name",
          {"Hash join (unique key) on ", "Group by o.customer: sum(o.price)", "Scan orders o"}));
  EXPECT_TRUE(Has("SELECT nation, sum(price) FROM customer c, orders o WHERE o.customer = c.id GROUP BY nation",
                  {"Group by c.nation: sum(o.price)", "Hash join (unique key) on o.customer = c.id", "Scan orders o",
                   "Build: Scan customer c"}));
  // Not for few of the keys, nor where the rows are few, nor for what is of all rows of the join.
  const auto stays = [&](const std::string& select, const std::string& more) {
    return Has(
        "SELECT c.id, " + select + " FROM customer c LEFT JOIN orders o ON o.customer = c.id" + more + " GROUP BY c.id",
        {"Group by c.id: ", "Hash left join on c.id = o.customer"});
  };
  EXPECT_TRUE(stays("count(o.id)", " WHERE nation = 3"));
  EXPECT_TRUE(stays("count(o.id)", " AND day = 3"));
  EXPECT_TRUE(stays("sum(c.nation)", ""));
  EXPECT_TRUE(stays("count(DISTINCT o.day)", ""));
}

TEST_F(PlanTest, RowsAreGroupedByTheKeyOfATableBeforeItsTextsCome) {
  Answer(
      "CREATE TABLE person AS SELECT g AS k, 'name ' || g AS name, 'town ' || g % 50 AS town FROM generate_series(0, "
      "499) s(g)");
  Answer(
      "CREATE TABLE bill AS SELECT g % 600 AS person, g / 600 % 5 AS day, g / 100 AS id, g % 7 AS n FROM "
      "generate_series(0, 39999) s(g)");
  const std::string query = ", sum(n) FROM bill, person WHERE person = k ";
  EXPECT_TRUE(Has("SELECT name, town" + query + "GROUP BY name, town",
                  {"Group by person.name, person.town", "person.k = groups.key", "Scan person", "Scan groups",
                   "Group by bill.person: sum(bill.n)", "Scan bill"}));
  EXPECT_TRUE(Has("SELECT name, town, day" + query + "AND day IN (3, 4) GROUP BY name, town, day",
                  {"Group by person.name, person.town, groups.key", "Group by bill.person, bill.day: sum(bill.n)"}));
  // With the identifiers there are as many groups as rows; one text is soon compared; and few persons are left.
  for (const char* other : {"GROUP BY name, town, id", "GROUP BY name, k", "AND k < 9 GROUP BY name, town"}) {
    const std::string plan = PlanOf("SELECT count(*)" + query + other);
    EXPECT_EQ(plan.find("Scan groups"), std::string::npos) << plan;
  }
}

TEST_F(PlanTest, GroupsAreThoseOfTheValuesThatFiltersLeave) {
  const auto has = [&](const std::string& query, const char* rows) {
    const std::string plan = Answer("EXPLAIN " + query);
    return plan.find(rows) != std::string::npos ? testing::AssertionSuccess() : testing::AssertionFailure() << plan;
  };
  EXPECT_TRUE(
      has("SELECT day, count(*) FROM orders WHERE day IN (1, 2) GROUP BY day", "orders.day: count(*)  (~2 rows)"));
  EXPECT_TRUE(has("SELECT DISTINCT day FROM orders WHERE day < 20", "Distinct  (~20 rows)"));
  EXPECT_TRUE(has("SELECT customer, count(*) FROM orders WHERE id < 50 GROUP BY customer", "count(*)  (~50 rows)"));
  // Of lists of a column's values the shortest counts.
  EXPECT_TRUE(has("SELECT * FROM orders WHERE day IN (1, 2, 3) AND (day = 1 OR day = 3)", "(~199 rows)"));
}

TEST_F(PlanTest, GroupingsThatAreThereTwiceAreMadeOnce) {
  const auto scans = [&](const std::string& query) {
    const std::string plan = PlanOf(query);
    size_t n = 0;
    for (size_t at = 0; (at = plan.find("Scan orders", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const std::string days = "(SELECT customer, day, sum(price) AS p FROM orders WHERE day < 50 GROUP BY customer, day)";
  const std::string means = "(SELECT customer, avg(p) AS mean FROM " + days + " d GROUP BY customer)";
  EXPECT_EQ(scans("SELECT count(*) FROM " + days + " a, " + means + " b WHERE a.customer = b.customer AND p > mean"),
            1u);
  // With other columns, and other aggregates.
  EXPECT_EQ(
      scans("SELECT a.n, b.m FROM (SELECT day, count(*) AS n FROM orders GROUP BY day) a, (SELECT max(price) AS m, day "
            "FROM orders GROUP BY day) b WHERE a.day = b.day"),
      1u);
  // Other rows, other keys, other groups, and values of their own.
  for (const char* other : {"SELECT day, count(*) AS n FROM orders WHERE id > 7 GROUP BY day",
                            "SELECT customer AS day, count(*) AS n FROM orders GROUP BY customer",
                            "SELECT day, count(*) AS n FROM orders GROUP BY day HAVING count(*) > 3",
                            "SELECT day, count(*) AS n FROM orders WHERE random() > 0.5 GROUP BY day"}) {
    EXPECT_EQ(scans("SELECT a.n, b.n FROM (SELECT day, count(*) AS n FROM orders GROUP BY day) a, (" +
                    std::string(other) + ") b WHERE a.day = b.day"),
              2u)
        << other;
  }
}

TEST_F(PlanTest, KeysComputedOfOtherKeysAreLeftOut) {
  EXPECT_TRUE(Has("SELECT day, day + 1, day / 7, count(*) FROM orders GROUP BY day, day + 1, day / 7",
                  {"Group by orders.day: count(*)"}));
  EXPECT_TRUE(Has("SELECT day + customer, customer, day, max(price) FROM orders GROUP BY 1, 2, 3",
                  {"Group by orders.customer, orders.day: max(orders.price)"}));
  // Not where a column is no key, nor where equal keys may differ.
  EXPECT_TRUE(Has("SELECT day + 1, day + 2, count(*) FROM orders GROUP BY 1, 2",
                  {"Group by orders.day + 1, orders.day + 2: count(*)"}));
  EXPECT_TRUE(
      Has("SELECT f, 1 / f FROM (SELECT CAST(day AS DOUBLE PRECISION) AS f FROM orders LIMIT 9) z GROUP BY f, 1 / f",
          {"Group by z.f, "}));
}

TEST_F(PlanTest, GroupsOfSingleRowsAreRows) {
  EXPECT_EQ(SectionsOf("SELECT o.id, c.name, sum(price), count(*), count(price) FROM orders o, customer c WHERE "
                       "o.customer = c.id GROUP BY o.id, c.name HAVING min(price) > 3"),
            (std::vector<std::string>{"scan customer c -> build t0", "scan orders o -> rows"}));
  const auto stays = [&](const std::string& query) {
    const std::vector<std::string> sections = SectionsOf(query);
    return std::any_of(sections.begin(), sections.end(),
                       [](const std::string& s) { return s.find(" -> groups") != std::string::npos; });
  };
  EXPECT_TRUE(stays("SELECT o.id, sum(n) FROM orders o, item WHERE orders = o.id GROUP BY o.id"));
  EXPECT_TRUE(stays("SELECT id, avg(price) FROM orders GROUP BY id"));
  EXPECT_TRUE(stays("SELECT orders, sum(n) FROM item GROUP BY orders"));
  // A derived table of such rows still has a unique key.
  EXPECT_TRUE(
      Has("SELECT count(*) FROM orders o LEFT JOIN (SELECT c.id, max(n.name) AS m FROM customer c, nation n WHERE "
          "n.id = c.nation GROUP BY c.id) t ON t.id = o.customer WHERE m IS NULL",
          {"Hash left join (unique key) on o.customer = t.id"}));
}

TEST_F(PlanTest, LargeSidesAreRestrictedToKeysThatAreLookedUp) {
  const std::string query =
      "SELECT count(*) FROM orders o WHERE day = 3 AND EXISTS (SELECT * FROM item i WHERE i.orders = o.id AND i.n <> "
      "o.day)";
  EXPECT_TRUE(
      Has(query, {"Hash semi join on o.id = i.orders", "Scan orders o", "Build: Hash semi join on i.orders = o.id",
                  "Scan item i", "Build: Scan orders o where o.day = 3"}));
  EXPECT_EQ(Answer(query), "count(*)\n100\n");
}

TEST_F(PlanTest, KeysThatALargerSideHasCostASmallerOneNothing) {
  const std::string from = "SELECT count(*) FROM orders o, customer WHERE customer = customer.id AND nation = 3 AND ",
                    larger = "EXISTS (SELECT * FROM item a WHERE a.orders = o.id AND a.part < o.day)",
                    smaller =
                        "NOT EXISTS (SELECT * FROM item b WHERE b.orders = o.id AND b.part < 40 AND b.n * 9 > o.day)";
  const std::vector<std::string> restricted = {"Build: Hash semi join on b.orders = o.id", "Scan item b"};
  EXPECT_TRUE(Has(from + larger + " AND " + smaller, restricted));
  EXPECT_FALSE(Has(from + smaller, restricted));
  EXPECT_EQ(
      Answer(from + larger + " AND " + smaller),
      Answer("SELECT count(*) FROM orders o WHERE customer IN (SELECT id FROM customer WHERE nation = 3) AND "
             "(SELECT min(part) FROM item WHERE orders = o.id) < day AND NOT coalesce((SELECT max(n) * 9 FROM item "
             "WHERE orders = o.id AND part < 40) > day, false)"));
  EXPECT_NE(Answer(from + larger + " AND " + smaller), Answer(from + larger));
  // Their table is made once.
  const std::vector<std::string> sections = SectionsOf(from + larger + " AND " + smaller);
  EXPECT_EQ(std::count(sections.begin(), sections.end(), "scan orders o -> rows"), 1);
  EXPECT_EQ(std::ranges::count_if(
                sections, [](const std::string& s) { return s.starts_with("stored rows of orders o -> build"); }),
            1);
  // One that is made of stored rows inside a side is not that of the pipeline around it.
  Answer("CREATE TABLE fact AS SELECT item.* FROM item, digit WHERE x < 3");
  EXPECT_FALSE(Has(
      "SELECT count(*) FROM fact i, orders o, customer c WHERE i.orders = o.id AND o.customer = c.id AND c.nation = 3 "
      "AND EXISTS (SELECT * FROM item a WHERE a.orders = o.id AND a.part < o.day) AND NOT EXISTS (SELECT * FROM item b "
      "WHERE b.orders = o.id AND b.part < 40 AND b.n > i.part)",
      restricted));
}

TEST_F(PlanTest, RowsWhoseKeysRestrictALargeSideAreMadeOnce) {
  const std::string query =
      "SELECT count(*) AS c FROM orders o, customer WHERE customer = customer.id AND nation = 3 AND EXISTS (SELECT * "
      "FROM "
      "item a WHERE a.orders = o.id AND a.part < o.day) AND NOT EXISTS (SELECT * FROM item b WHERE b.orders = o.id AND "
      "b.part > o.day + 400)";
  EXPECT_TRUE(
      Has(query, {"Hash anti join on o.id = b.orders", "Hash semi join on o.id = a.orders",
                  "Store: Hash join (unique key) on o.customer = customer.id", "Scan orders o",
                  "Build: Hash semi join on a.orders = o.id", "Scan item a", "Build: Stored rows of orders o",
                  "Build: Hash semi join on b.orders = o.id", "Scan item b", "Build: Stored rows of orders o"}));
  const std::vector<std::string> sections = SectionsOf(query);
  EXPECT_EQ(std::count(sections.begin(), sections.end(), "scan orders o -> rows"), 1);
  EXPECT_EQ(std::count(sections.begin(), sections.end(), "stored rows of orders o -> groups of 0 keys"), 1);
  EXPECT_EQ(
      Answer(query),
      Answer("SELECT count(*) AS c FROM orders o WHERE customer IN (SELECT id FROM customer WHERE nation = 3) AND "
             "(SELECT min(part) FROM item WHERE orders = o.id) < day AND NOT (SELECT max(part) FROM item WHERE "
             "orders = o.id) > day + 400"));
}

TEST_F(PlanTest, RowsAreDroppedBeforeTheyLookIntoALargeSide) {
  // Few parts are left, and the pairs of parts and lines are many: the parts come first.
  Answer("CREATE TABLE part (id INTEGER PRIMARY KEY, size INTEGER NOT NULL)");
  Answer("INSERT INTO part SELECT c.x * 100 + b.x * 10 + a.x, a.x FROM digit a, digit b, digit c WHERE c.x < 5");
  Answer("CREATE TABLE pair (part INTEGER NOT NULL, line INTEGER NOT NULL, cost BIGINT, PRIMARY KEY (part, line))");
  Answer("INSERT INTO pair SELECT p.id, x, p.id + x FROM part p, digit");
  const std::string query =
      "SELECT sum(cost * n) FROM item, pair, part WHERE pair.part = part.id AND pair.part = item.part AND "
      "pair.line = item.line AND size = 3";
  EXPECT_TRUE(
      Has(query, {"Hash join (unique key) on item.part = pair.part and item.line = pair.line",
                  "Hash semi join (unique key) on item.part = part.id", "Scan item",
                  "Build: Scan part where part.size = 3", "Build: Hash join (unique key) on pair.part = part.id"}));
  // A key of the large side itself, whose rows are few: its table is a set of bits.
  EXPECT_TRUE(
      Has("SELECT sum(item.n * orders.price) FROM item, orders WHERE item.orders = orders.id AND item.part = "
          "orders.day AND "
          "price = 3",
          {"item.part = orders.day", "Hash semi join (unique key) on item.orders = orders.id", "Scan item",
           "Build: Scan orders where orders.price = 3", "Build: Scan orders where orders.price = 3"}));
  EXPECT_EQ(
      Answer("SELECT sum(item.n * orders.price) FROM item, orders WHERE item.orders = orders.id AND item.part = "
             "orders.day "
             "AND price = 3"),
      Answer("SELECT sum(item.n * orders.price) FROM item, orders WHERE item.orders = orders.id AND item.part + 0 = "
             "orders.day + 0 AND price = 3"));
}

TEST_F(PlanTest, ASideHasTheKeysOfAnEarlierOne) {
  // The lines that look for pairs have found their part, so pairs of other parts are not needed.
  Answer("CREATE TABLE part (id INTEGER PRIMARY KEY, size INTEGER)");
  Answer(
      "INSERT INTO part SELECT c.x * 100 + b.x * 10 + a.x, NULLIF(a.x, 4) FROM digit a, digit b, digit c WHERE c.x < "
      "5");
  Answer("CREATE TABLE pair (part INTEGER, line INTEGER NOT NULL, cost BIGINT)");
  Answer("INSERT INTO pair SELECT p.id, x, p.id + x FROM part p, digit UNION ALL SELECT NULL, x, 0 FROM digit");
  const std::string lines = "SELECT count(*) AS c, sum(n) AS s FROM item JOIN part ON item.part = part.id ";
  const std::string semi = "Build: Hash semi join (unique key) on pair.part = part.id";
  const std::vector<std::string> restricted = {"Hash join (unique key) on item.part = part.id",
                                               "Scan item",
                                               "Build: Scan part where part.size = 3",
                                               semi,
                                               "Scan pair",
                                               "Build: Scan part where part.size = 3"};
  const std::string left = "LEFT JOIN pair ON pair.part = item.part AND pair.line = item.line AND pair.cost > 7 ";
  EXPECT_TRUE(Has(lines + left + "WHERE size = 3", restricted));
  // The part is scanned once.
  const std::vector<std::string> sections = SectionsOf(lines + left + "WHERE size = 3");
  EXPECT_EQ(std::count(sections.begin(), sections.end(), "scan part -> build t0"), 1);
  EXPECT_EQ(std::count_if(sections.begin(), sections.end(), [](const auto& s) { return s.starts_with("scan part"); }),
            1);
  const std::string costs = "SELECT count(*) AS c, count(cost) AS n, sum(cost) AS s FROM ";
  EXPECT_EQ(
      Answer(costs + "item JOIN part ON item.part = part.id " + left + "WHERE size = 3"),
      Answer(costs + "(SELECT (SELECT max(cost) FROM pair WHERE pair.part = item.part AND pair.line = item.line AND "
                     "cost > 7) AS cost FROM item, part WHERE item.part = part.id AND size = 3) z"));
  const std::string exists =
      "EXISTS (SELECT * FROM pair WHERE pair.part = item.part AND pair.line = item.line AND pair.cost > 300)";
  const std::string same = "(SELECT max(cost) FROM pair WHERE pair.part = item.part AND pair.line = item.line) ";
  EXPECT_TRUE(Has(lines + "WHERE size = 3 AND " + exists, {semi}));
  EXPECT_EQ(Answer(lines + "WHERE size = 3 AND " + exists), Answer(lines + "WHERE size = 3 AND " + same + "> 300"));
  EXPECT_EQ(Answer(lines + "WHERE size = 3 AND NOT " + exists),
            Answer(lines + "WHERE size = 3 AND " + same + "<= 300"));
  EXPECT_EQ(Answer(lines + "WHERE size = 3 AND (" + exists + " OR n = 5)"),
            Answer(lines + "WHERE size = 3 AND (" + same + "> 300 OR n = 5)"));
  // Not if the earlier side keeps all its rows, or gives rows without a match as well.
  EXPECT_FALSE(Has(lines + left, {semi}));
  EXPECT_FALSE(Has("SELECT count(*) FROM item LEFT JOIN part ON item.part = part.id AND size = 3 " + left, {semi}));
}

TEST_F(PlanTest, ConditionsOnSeveralColumnsComeBehindAJoinThatLeavesFewRows) {
  // The instructions of the section that scans item, without operands.
  const auto order = [&](const std::string& where) {
    const std::string listing =
        Answer("EXPLAIN (PROGRAM) SELECT sum(n) FROM item, orders WHERE orders = id AND " + where);
    const size_t begin = listing.find("scan item -> groups"), compare = listing.find("FilterGtI", begin);
    const size_t probe = listing.find("\n", listing.find(" Probe ", begin));
    EXPECT_NE(compare, std::string::npos) << listing;
    EXPECT_NE(probe, std::string::npos) << listing;
    return probe < compare ? "probe, compare" : "compare, probe";
  };
  EXPECT_STREQ(order("day = 3 AND part > n"), "probe, compare");
  EXPECT_STREQ(order("day = 3 AND line > n"), "probe, compare");
  // Most rows find their order, so that it is better to compare first, if that leaves fewer of them.
  EXPECT_STREQ(order("day < 90 AND line > n"), "compare, probe");
  EXPECT_STREQ(order("day < 90 AND part > n"), "probe, compare");
  EXPECT_EQ(Answer("SELECT sum(n) AS s FROM item, orders WHERE orders = id AND day = 3 AND part > n"),
            Answer("SELECT sum(CASE WHEN part > n THEN n END) AS s FROM item, orders WHERE orders = id AND day = 3"));
}

TEST_F(PlanTest, TextIsReadAfterTheLimit) {
  const std::string query =
      "SELECT customer.id, customer.name, nation.name, sum(price) AS s FROM orders, customer, nation WHERE customer = "
      "customer.id AND nation = nation.id GROUP BY customer.id, customer.name, nation.name ORDER BY s DESC LIMIT 2";
  EXPECT_TRUE(Has(query, {"Sort by s desc", "Hash join (unique key) on customer.id = groups.key", "Limit 2",
                          "Group by orders.customer: sum(orders.price)"}));
  EXPECT_EQ(Answer(query), "id,name,name,s\n999,name 999,nation 9,9990.00\n998,name 998,nation 8,9980.00\n");
  // Names that the order or HAVING needs stay with the groups, and so do those that no key determines.
  EXPECT_TRUE(Has(
      "SELECT customer.id, name FROM orders, customer WHERE customer = customer.id GROUP BY customer.id, name ORDER BY "
      "name LIMIT 2",
      {"Limit 2", "Group by customer.id, customer.name"}));
  EXPECT_TRUE(Has("SELECT nation, name FROM customer GROUP BY nation, name ORDER BY nation LIMIT 2",
                  {"Limit 2", "Group by customer.nation, customer.name"}));
}

TEST_F(PlanTest, RangesChooseTheWidthOfArithmetic) {
  // DECIMAL(24,4) by its type, and less than 2^63 by its values.
  const std::string listing = Answer("EXPLAIN (PROGRAM) SELECT sum(price * price) FROM orders");
  EXPECT_EQ(listing.find("IToW"), std::string::npos) << listing;
  EXPECT_EQ(listing.find("SumW"), std::string::npos) << listing;
  EXPECT_EQ(Answer("SELECT sum(price * price) FROM orders"), "sum(price * price)\n3328335000.0000\n");
}

TEST_F(PlanTest, RowsThatAreOnlyCopiedAreReadWhereTheyAre) {
  using Names = std::vector<std::string>;
  const std::string counts = "SELECT customer, count(*) AS n FROM orders GROUP BY customer";
  const std::string counted = "scan orders -> groups of 1 keys";
  EXPECT_EQ(SectionsOf("SELECT n, count(*) FROM (" + counts + ") t GROUP BY n"),
            (Names{counted, "rows of t -> groups of 1 keys", "groups -> rows"}));
  EXPECT_EQ(SectionsOf("WITH t AS (" + counts + ") SELECT a.n FROM t a, t b WHERE a.customer = b.n"),
            (Names{counted, "rows of b -> build t0", "rows of a -> rows"}));
  // The result itself, what is filtered, computed or cut stays.
  EXPECT_EQ(SectionsOf(counts), (Names{counted, "groups -> rows"}));
  EXPECT_EQ(SectionsOf("SELECT m, count(*) FROM (SELECT customer, count(*) + 1 AS m FROM orders GROUP BY customer) t "
                       "GROUP BY m"),
            (Names{counted, "groups -> rows", "rows of t -> groups of 1 keys", "groups -> rows"}));
  EXPECT_EQ(SectionsOf("SELECT n, count(*) FROM (" + counts + " LIMIT 5) t GROUP BY n"),
            (Names{counted, "groups -> rows, limit 5", "rows of t -> groups of 1 keys", "groups -> rows"}));
}

TEST_F(PlanTest, ConditionsGoIntoTheArmsOfSetOperations) {
  // As far as the stored tables, where they are filters on encoded values.
  EXPECT_TRUE(Has("SELECT * FROM (SELECT id FROM orders UNION ALL SELECT n FROM item) q WHERE id < 5",
                  {"Scan orders where orders.id < 5", "Union all", "Scan item where item.n < 5"}));
  EXPECT_TRUE(Has("SELECT id FROM (SELECT id, day FROM orders UNION SELECT orders, part FROM item) q WHERE day = 5",
                  {"Group by", "Scan orders where orders.day = 5", "Union all", "Scan item where item.part = 5"}));
  EXPECT_TRUE(Has("SELECT * FROM (SELECT id FROM orders EXCEPT ALL SELECT line FROM item) q WHERE id > 7",
                  {"Repeat rows by their counts", "Scan orders where orders.id > 7", "Scan item where item.line > 7"}));
  EXPECT_TRUE(
      Has("SELECT day FROM (SELECT day FROM orders INTERSECT (SELECT line FROM item EXCEPT SELECT x FROM digit)) "
          "q WHERE day > 7",
          {"Scan orders where orders.day > 7", "Scan item where item.line > 7", "Scan digit where digit.x > 7"}));
  // Not past a LIMIT.
  EXPECT_TRUE(Has("SELECT * FROM (SELECT id FROM orders UNION ALL SELECT n FROM item LIMIT 9) q WHERE id < 5",
                  {"where q.id < 5", "Limit 9", "Scan orders\n", "Scan item\n"}));
}

TEST_F(PlanTest, ConditionsOfAllReadersGoIntoAQueryOfWith) {
  const std::string days = "WITH w AS (SELECT customer, day, sum(price) AS s FROM orders GROUP BY customer, day) ";
  EXPECT_TRUE(Has(
      days + "SELECT a.s, b.s FROM w a, w b WHERE a.customer = b.customer AND a.day = 4 AND b.day = 5",
      {"Scan a where a.day = 4", "Scan orders where orders.day = 4 OR orders.day = 5\n", "Scan b where b.day = 5"}));
  EXPECT_TRUE(Has(days + "SELECT a.s, b.s FROM w a LEFT JOIN w b ON a.customer = b.customer AND b.day = 5 AND b.s > 7 "
                         "WHERE a.day = 4",
                  {"Filter groups", "Scan orders where orders.day = 4 OR orders.day = 5\n"}));
  EXPECT_TRUE(Has(days + "SELECT s FROM w WHERE day = 4 UNION ALL SELECT s FROM w WHERE day = 5 UNION ALL "
                         "SELECT max(s) FROM w WHERE day = 6",
                  {"Scan orders where orders.day = 4 OR orders.day = 5 OR orders.day = 6\n"}));
  // A reader of all rows.
  EXPECT_TRUE(Has(days + "SELECT a.s FROM w a, w b WHERE a.customer = b.customer AND a.day = 4", {"Scan orders\n"}));
  // An arm whose constant no reader asks for.
  EXPECT_TRUE(
      Has("WITH w AS (SELECT id, day, 'a' AS k FROM orders UNION ALL SELECT orders, line, 'b' FROM item UNION ALL "
          "SELECT id, nation, 'c' FROM customer) SELECT count(*) FROM w x, w y WHERE x.id = y.id AND x.k = 'a' AND "
          "x.day = 1 AND y.k = 'b' AND y.day = 2",
          {"Scan orders where orders.day = 1\n", "Scan item where item.line = 2\n", "Scan customer where false\n"}));
  // Not past a LIMIT, and not what could fail.
  EXPECT_TRUE(
      Has("WITH w AS (SELECT id, day FROM orders LIMIT 99) SELECT count(*) FROM w a, w b WHERE a.id = b.id AND "
          "a.day = 1 AND b.day = 2",
          {"Scan orders\n"}));
  EXPECT_TRUE(
      Has("WITH w AS (SELECT DISTINCT id, day FROM orders) SELECT count(*) FROM w a, w b WHERE a.id = b.id AND "
          "CAST(a.day AS SMALLINT) = 1 AND b.day = 2",
          {"Scan orders\n"}));
}

TEST_F(PlanTest, ArmsOfUnionAllAreJoinedAndGroupedByThemselves) {
  const std::string rows =
      "(SELECT customer AS c, day AS d, price AS p FROM orders UNION ALL SELECT part, line, n FROM item)";
  // Groups of each arm, with a copy of the join; then groups of these.
  EXPECT_TRUE(
      Has("SELECT c.nation, sum(u.p), count(*) FROM " + rows + " u, customer c WHERE c.id = u.c GROUP BY c.nation",
          {"Group by union.key: sum(union.sum), sum(union.count)\n", "Scan union", "Group by", "Scan orders",
           "Build: Scan c", "Union all", "Group by", "Scan item", "Build: Scan c"}));
  EXPECT_TRUE(
      Has("SELECT max(p), count(*) FROM " + rows + " u",
          {"Aggregate max(union.max), sum(union.count)", "Aggregate max(CAST(orders.price AS DECIMAL(21,2))), count(*)",
           "Scan orders\n", "Aggregate max(", "Scan item\n"}));
  // What a filter of another relation leaves of the arms, without groups.
  EXPECT_TRUE(Has("SELECT DISTINCT u.c, u.d, u.p FROM " + rows + " u, customer c WHERE c.id = u.c AND c.nation = 3",
                  {"Distinct", "Scan union", "Hash join", "Scan orders", "Union all", "Hash join", "Scan item"}));
  // Many groups, another relation that is large, too, or one that leaves all rows.
  EXPECT_TRUE(Has("SELECT c, d, p, count(*) FROM " + rows + " u GROUP BY c, d, p",
                  {"Group by union.c, union.d, union.p: count(*)", "Scan orders\n", "Union all", "Scan item\n"}));
  EXPECT_TRUE(Has("SELECT d, count(*) FROM " + rows + " u, item i WHERE i.orders = u.c GROUP BY d",
                  {"count(*)", "Scan union"}));
  EXPECT_TRUE(Has("SELECT u.c, u.d, u.p FROM " + rows + " u, customer c WHERE c.id = u.c",
                  {"Hash join", "Scan u", "Union all"}));
  // The rows are the same.
  EXPECT_EQ(Answer("SELECT c.nation, sum(u.p), count(*) FROM " + rows +
                   " u, customer c WHERE c.id = u.c AND c.nation < 2 GROUP BY c.nation ORDER BY 1"),
            "nation,sum(u.p),count(*)\n0,540000.00,11000\n1,541000.00,11000\n");
}

TEST_F(PlanTest, EqualitiesTakeConditionsToOuterSides) {
  const std::string sums = "(SELECT orders AS o, part, sum(n) AS n FROM item GROUP BY orders, part) s";
  EXPECT_TRUE(Has("SELECT * FROM orders LEFT JOIN " + sums + " ON s.o = orders.id WHERE orders.id = 7",
                  {"Scan orders where orders.id = 7\n", "Scan item where item.orders = 7\n"}));
  EXPECT_TRUE(
      Has("SELECT * FROM customer WHERE id < 9 AND NOT EXISTS (SELECT 1 FROM orders WHERE customer = customer.id)",
          {"Scan orders where orders.customer < 9\n"}));
  // By way of another outer join, which asks for it in ON or by its own equality.
  EXPECT_TRUE(
      Has("SELECT * FROM nation LEFT JOIN customer c ON c.nation = nation.id LEFT JOIN orders o ON o.day = c.nation "
          "WHERE nation.id IN (3, 4)",
          {"Scan orders o where o.day IN (3, 4)\n"}));
  // Not what is asked of the other side alone, nor through another operator.
  EXPECT_TRUE(Has("SELECT * FROM customer c LEFT JOIN orders o ON o.customer = c.id AND o.customer < 5",
                  {"Scan customer c\n"}));
  EXPECT_TRUE(
      Has("SELECT * FROM nation LEFT JOIN digit ON digit.x >= nation.id WHERE nation.id = 3", {"Scan digit\n"}));
}

TEST_F(PlanTest, OtherValuesOfAKeyAreAskedOfItsGroup) {
  const std::string pairs =
      "SELECT a.part, a.line AS x, b.line AS y FROM item a, item b WHERE a.part = b.part AND a.line <> b.line";
  EXPECT_TRUE(Has("SELECT count(*) FROM digit WHERE x IN (SELECT part FROM (" + pairs + ") p)",
                  {"Filter groups (1 condition)", "Group by a.part: min(a.line), max(a.line)", "Scan item a\n"}));
  // Read twice, also by way of another join.
  const std::string twice = PlanOf("WITH p AS (" + pairs +
                                   ") SELECT count(*) FROM orders o WHERE id IN (SELECT part FROM p) AND "
                                   "day IN (SELECT d.x FROM digit d, p WHERE d.x = p.part)");
  EXPECT_NE(twice.find("Group by a.part: min(a.line), max(a.line)"), std::string::npos) << twice;
  EXPECT_EQ(twice.find("<>"), std::string::npos) << twice;
  // The pairs are counted, or one of the values is read, or there is one row for a key.
  EXPECT_TRUE(Has("SELECT count(*) FROM (" + pairs + ") p", {"a.line <> b.line"}));
  EXPECT_TRUE(Has("SELECT count(*) FROM digit WHERE x IN (SELECT y FROM (" + pairs + ") p)", {"a.line <> b.line"}));
  EXPECT_TRUE(
      Has("SELECT count(*) FROM digit WHERE x IN (SELECT a.id FROM orders a, orders b WHERE a.id = b.id AND a.day <> "
          "b.day)",
          {"a.day <> b.day"}));
}

TEST_F(PlanTest, SumsWithConstantsShareOneSum) {
  EXPECT_TRUE(Has("SELECT sum(line), sum(line + 1), sum(2 + line), sum(line - 3), count(*) FROM item",
                  {"Aggregate sum(item.line), count(*)\n"}));
  EXPECT_TRUE(
      Has("SELECT line, sum(n + 1), sum(n + 2), sum(n + 3), sum(part - 1), sum(part), sum(part + 1) FROM item GROUP BY "
          "line "
          "HAVING sum(n + 2) > 5",
          {"Group by item.line: sum(item.n), count(*), sum(item.part)\n"}));
  // Two sums are as fast as a sum and a count; others are of different rows.
  EXPECT_TRUE(Has("SELECT sum(line + 1), sum(line + 2) FROM item", {"sum(item.line + 1), sum(item.line + 2)"}));
  EXPECT_TRUE(Has("SELECT sum(DISTINCT line), sum(DISTINCT line + 1), sum(line + 2), sum(line * 2) FROM item",
                  {"sum(distinct item.line + 1)"}));
  // A row, or a sum, that may be out of range.
  EXPECT_TRUE(Has("SELECT sum(n), sum(n + 9223372036854775800), sum(n + 2) FROM item", {"sum(item.n + 2)"}));
}

TEST_F(PlanTest, MeansOfCoarserGroupsAreMadeOfFinerOnes) {
  EXPECT_TRUE(Has("SELECT customer, day, avg(id) FROM orders GROUP BY ROLLUP (customer, day)",
                  {"Scan groups", "Group by orders.customer, orders.day: sum(CAST(orders.id AS DECIMAL(10,0))), count(",
                   "Union all", "Scan groups", "Union all", "Scan groups"}));
}

TEST_F(PlanTest, ManyMatchesAreComparedSideBySide) {
  EXPECT_TRUE(Has("SELECT count(*) FROM item a, item b WHERE a.line = b.line AND a.n < b.part",
                  {"Grid join sorted by a.line and b.line where a.line = b.line"}));
  EXPECT_TRUE(Has("SELECT count(*) FROM item a, item b WHERE a.part = b.part", {"Hash join"})) << "200 matches";
  EXPECT_TRUE(Has("SELECT count(*) FROM item a, item b WHERE a.line = b.line AND a.part = b.part", {"Hash join"}));
  EXPECT_TRUE(Has("SELECT count(*) FROM item a LEFT JOIN item b ON a.line = b.line", {"Hash left join"}));
  EXPECT_TRUE(
      Has("SELECT count(*) FROM item a, item b, nation c WHERE a.line = b.line AND a.line = c.id", {"Hash join"}));
  EXPECT_TRUE(Has("SELECT count(*) FROM item a, item b WHERE a.line = b.line AND a.orders < 4", {"Hash join"}))
      << "few rows probe";
  // Nothing is known of the values of derived tables.
  EXPECT_TRUE(
      Has("SELECT count(*) FROM (SELECT orders AS o FROM item UNION ALL SELECT part FROM item) a, "
          "(SELECT orders AS o FROM item UNION ALL SELECT id FROM orders) b WHERE a.o = b.o",
          {"Hash join"}));
  Answer("SET join_strategy = hash");
  EXPECT_TRUE(Has("SELECT count(*) FROM item a, item b WHERE a.line = b.line", {"Hash join"}));
  Answer("SET join_strategy = DEFAULT");
  // The rows are the same.
  EXPECT_EQ(
      Answer("SELECT count(*), sum(a.line) FROM item a, item b WHERE a.line = b.line AND a.n < 4 AND b.orders < 99"),
      "count(*),sum(a.line)\n3960000,5940000\n");
}

TEST_F(PlanTest, ArmsOfOneOperatorAreOneList) {
  using Sections = std::vector<std::string>;
  EXPECT_EQ(SectionsOf("SELECT x FROM digit UNION ALL SELECT id FROM nation UNION ALL SELECT day FROM orders"),
            (Sections{"scan digit -> rows", "scan nation -> rows after those of section 0",
                      "scan orders -> rows after those of section 1", "rows of union -> rows"}));
  EXPECT_EQ(SectionsOf("SELECT x FROM digit UNION SELECT id FROM nation UNION SELECT day FROM orders"),
            (Sections{"scan digit -> rows", "scan nation -> rows after those of section 0",
                      "scan orders -> rows after those of section 1", "rows of union -> groups of 1 keys",
                      "groups -> rows"}));
  EXPECT_EQ(
      SectionsOf("SELECT x FROM digit EXCEPT SELECT id FROM nation EXCEPT VALUES (1), (2)"),
      (Sections{"scan digit -> rows", "scan nation -> rows after those of section 0",
                "values -> rows after those of section 1", "rows of except -> groups of 1 keys", "groups -> rows"}));
}

TEST_F(PlanTest, RowsOfValuesAreMadeInOneSection) {
  std::string values = "VALUES (0, 'a')";
  for (int i = 1; i < 1000; ++i) values += ", (" + std::to_string(i) + ", 'b')";
  EXPECT_TRUE(Has(values, {"Scan values", "1000 rows of values"}));
  EXPECT_EQ(SectionsOf(values), (std::vector<std::string>{"values -> rows", "rows of values -> rows"}));
  EXPECT_EQ(Answer("SELECT count(*), sum(a) FROM (" + values + ") AS v(a, b) WHERE b = 'b' AND a > 989"),
            "count(*),sum(a)\n10,9945\n");
}

}  // namespace
}  // namespace tessera
