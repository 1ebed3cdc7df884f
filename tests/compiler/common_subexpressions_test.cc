// How often the instructions of a value that a section needs twice stand in the listing of EXPLAIN.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

class CommonSubexpressionsTest : public testing::Test {
 protected:
  CommonSubexpressionsTest() {
    SessionOptions options;
    options.device = DeviceChoice::kHost;
    session_ = std::move(*Session::Open(options));
    Answer("CREATE TABLE r (a INTEGER, b BIGINT, d DATE, p DECIMAL(12,2), q DECIMAL(12,2), t TEXT)");
    Answer(
        "INSERT INTO r VALUES (1, 9223372036854775807, '2001-01-01', 1, 0.1, 'a'), (2, 1, '2002-02-02', 2, 0.2, 'b')");
    Answer("CREATE TABLE s (a INTEGER, u TEXT)");
    Answer("INSERT INTO s VALUES (1, 'a'), (2, 'b'), (2, 'c')");
  }

  std::string Answer(const std::string& sql) { return tessera::Answer(session_.get(), sql); }
  /// How many instructions of the query's program have this opcode.
  int Count(const std::string& opcode, const std::string& query) {
    const std::string listing = Answer("EXPLAIN (PROGRAM) SELECT " + query);
    int n = 0;
    for (size_t at = 0; (at = listing.find(" " + opcode + " ", at)) != std::string::npos; at += opcode.size()) ++n;
    return n;
  }

  std::unique_ptr<Session> session_;
};

TEST_F(CommonSubexpressionsTest, ArgumentsOfAggregatesShareTheirParts) {
  EXPECT_EQ(Count("MulI", "sum(p * (1 - q)), sum(p * (1 - q) * (1 + q)) FROM r"), 2);
  EXPECT_EQ(Count("SubI", "sum(p * (1 - q)), sum(p * (1 - q) * (1 + q)) FROM r"), 1);
  // The other way round, too, and where the first one is in a CASE: it comes second then.
  EXPECT_EQ(Count("MulI", "sum(p * (1 - q) * (1 + q)), sum(p * (1 - q)) FROM r"), 2);
  EXPECT_EQ(Count("MulI", "sum(CASE WHEN a > 1 THEN p * (1 - q) END), sum(p * (1 - q)) FROM r"), 1);
}

TEST_F(CommonSubexpressionsTest, AllClausesShareThem) {
  const char* const year = "extract(year FROM d)";
  EXPECT_EQ(Count("DatePartD", std::string(year) + ", count(*) FROM r WHERE " + year + " % 2 = 1 GROUP BY 1"), 1);
  EXPECT_EQ(Count("DatePartD", std::string("a, ") + year + ", " + year + " + 1 FROM r WHERE " + year + " % 2 = 1"), 1);
  EXPECT_EQ(Count("SubstringT", "substring(u || t, 2), substring(u || t, 2) || '.' FROM r JOIN s ON r.a = s.a"), 1);
  EXPECT_EQ(Count("DivF", "avg(p), avg(p) + 1 FROM r GROUP BY a HAVING avg(p) > 1"), 2);  // by the scale, by the count
}

TEST_F(CommonSubexpressionsTest, WhatIsCheapIsComputedAgain) {
  EXPECT_EQ(Count("AddI", "max((a + 1) * 2), min(a + 1) FROM r"), 2);
}

TEST_F(CommonSubexpressionsTest, ABranchDoesNotServeTheRowsOfAnother) {
  EXPECT_EQ(Count("DatePartD",
                  "CASE WHEN a = 1 THEN extract(year FROM d) WHEN a = 2 THEN extract(year FROM d) + 1 END FROM r"),
            2);
  EXPECT_EQ(
      Count(
          "DatePartD",
          "count(*) FROM r WHERE (a = 1 AND extract(year FROM d) % 2 = 1) OR (a = 2 AND extract(year FROM d) % 3 = 1)"),
      2);
  // But what the first condition of a CASE reads, all its branches have.
  EXPECT_EQ(Count("DatePartD",
                  "CASE WHEN extract(year FROM d) % 2 = 1 THEN extract(year FROM d) WHEN a = 2 THEN "
                  "extract(year FROM d) + 1 END FROM r"),
            1);
}

TEST_F(CommonSubexpressionsTest, ACallOfRandomIsItsOwn) {
  EXPECT_EQ(Count("RandomF", "random(), random() FROM r"), 2);
  EXPECT_EQ(Count("RandomF", "floor(random() * 6) + floor(random() * 6) FROM r"), 2);
}

TEST_F(CommonSubexpressionsTest, ACaseWhoseValuesFitHas64Bits) {
  EXPECT_EQ(Count("SumW", "sum(CASE WHEN a > 1 THEN p * (1 - q) ELSE 0 END) FROM r"), 0);
  EXPECT_EQ(Count("StoreW", "sum(CASE WHEN a > 1 THEN p * (1 - q) ELSE 0 END) FROM r"), 1);  // of the sum
}

}  // namespace
}  // namespace tessera
