// What the loop of a nested-loop join still computes for each pair, by the listing of EXPLAIN: expressions of one side
// are columns of its join table, or registers. An expression that can fail stays in the loop.

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

class Hoist : public testing::Test {
 protected:
  Hoist() {
    SessionOptions options;
    options.device = DeviceChoice::kHost;
    session_ = std::move(*Session::Open(options));
    Answer("CREATE TABLE r (a INTEGER, b BIGINT, f DOUBLE PRECISION, x REAL, n DECIMAL(8,2), w DECIMAL(30,2), t TEXT)");
    Answer("CREATE TABLE s (a INTEGER, b BIGINT, f DOUBLE PRECISION, x REAL, n DECIMAL(8,2), w DECIMAL(30,2), t TEXT)");
    Answer(
        "INSERT INTO r VALUES (1, 9223372036854775807, 1, 1, 1, 99999999999999999999, 'a'), (7, 1, 2, 2, 2, 2, 'b'), "
        "(NULL, 1, 2, 2, 2, "
        "2, 'b')");
    Answer("INSERT INTO s VALUES (1, 1, 1, 1, 1, 1, 'a'), (2, 1, 2, 2, 2, 2, 'b')");
    Answer("SET join_strategy = grid");
  }

  std::string Answer(const std::string& sql) { return tessera::Answer(session_.get(), sql); }

  /// Opcodes and first operands from the head of the join's loop to the end of its conditions; with `sinks`, to the end
  /// of its turn.
  std::string Loop(const std::string& query, bool sinks = false) {
    std::istringstream listing(Answer("EXPLAIN (PROGRAM) SELECT " + query));
    std::string line, out;
    bool probed = false, in_loop = false;
    while (std::getline(listing, line)) {
      std::istringstream words(line);
      std::string address, opcode, operand;
      if (!(words >> address >> opcode) || address.find_first_not_of("0123456789") != std::string::npos) continue;
      words >> operand;
      if (in_loop && (opcode == "Next" || (opcode == "SkipIfNone" && !sinks))) return out;
      if (in_loop && opcode != "SkipIfNone") out += (out.empty() ? "" : ", ") + opcode + " " + operand;
      probed |= opcode == "Probe";
      in_loop |= probed && opcode == "MaskSave";
    }
    return "no loop in:\n" + Answer("EXPLAIN (PROGRAM) SELECT " + query);
  }
  std::string Order(const std::string& query) {
    const std::string plan = Answer("EXPLAIN (PROGRAM) SELECT " + query);
    const size_t from = plan.find("sorted by "), to = plan.find(" where ", from);
    return from == std::string::npos ? "" : plan.substr(from + 10, to - from - 10);
  }

  std::unique_ptr<Session> session_;
};

TEST_F(Hoist, SidesOfAComparisonAreColumns) {
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE r.a > s.f"), "Load c0, FilterGtF t0.0");
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE abs(r.f) * 2 < s.a % 7 + s.f"), "Load c0, FilterLtF t0.0");
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE r.f BETWEEN s.f - 1 AND s.f + 1"),
            "Load c0, FilterGeF t0.0, Load c0, FilterLeF t0.1");
  // Statistics say that it fits.
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE r.a * 2 < s.a + 1"), "Load c0, FilterLtI t0.0");
}

TEST_F(Hoist, RowsAreSortedByThem) {
  EXPECT_EQ(Order("count(*) FROM r, s WHERE r.a * 2 < s.a"), "r.a * 2 and s.a");
  EXPECT_EQ(Order("count(*) FROM r, s WHERE r.f > abs(s.x) AND r.a <> s.a + 1"), "r.f and abs(s.x)");
  EXPECT_EQ(Order("count(*) FROM r, s WHERE r.a * 2 + s.a > 10"), "r.a * 2 and s.a");
  EXPECT_EQ(Order("count(*) FROM r, s WHERE r.b + 1 > s.b"), "r.b and s.b");  // the sum can fail
  EXPECT_EQ(Order("count(*) FROM r, s WHERE (r.a IN (1, 7) OR r.f + 1 > s.f)"), "r.f + 1 and s.f");
}

TEST_F(Hoist, WhatFeedsTheSinksIsComputedBefore) {
  EXPECT_EQ(Loop("sum(r.f * 2), sum(s.f + 1) FROM r, s WHERE r.f < s.f", true),
            "Load c0, FilterLtF t0.1, Group c0, Load c1, SumF a0, Load t0.0, SumF a1");
  EXPECT_EQ(Loop("r.f * s.f + r.x * 2 FROM r, s WHERE r.a < s.a", true),
            "Load c0, FilterLtI t0.0, Load c2, MulF t0.1, AddF c1, Store r0, Emit emit");
  // A condition whose value is needed is a BOOLEAN column.
  EXPECT_EQ(Loop("CASE WHEN r.a = 1 THEN 10 ELSE 20 END FROM r, s WHERE r.a < s.a", true),
            "Load c0, FilterLtI t0.0, Load c1, Store r0, Emit emit");
}

TEST_F(Hoist, RegistersWhereTheDriverIsNotStored) {
  Answer("SET grid_pruning = off");
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE r.f * 2 > s.f + 1"), "Load r0, FilterGtF t0.0");
}

TEST_F(Hoist, WhatCanFailStays) {
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE r.b + 1 > s.b"), "Load c0, AddIX #0, FilterGtI t0.0");
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE CAST(r.f AS INTEGER) > s.a").substr(0, 13), "Load c0, FToI");
  // What does not fail in it moves.
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE CAST(r.f * 2 AS INTEGER) > s.a").substr(0, 13), "Load c0, FToI");
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE s.b / 2 + 1 > r.f"), "Load t0.0, FilterGtF c0");
  EXPECT_NE(Loop("count(*) FROM r, s WHERE r.b / s.a > r.b + 1").find("AddIX"), std::string::npos);
}

TEST_F(Hoist, WideValuesTextAndNoOpsStay) {
  EXPECT_NE(Loop("count(*) FROM r, s WHERE r.w + 1 > s.w").find("AddW"), std::string::npos);
  EXPECT_NE(Loop("count(*) FROM r, s WHERE length(s.t) > r.a").find("LengthT"), std::string::npos);
  EXPECT_EQ(Order("count(*) FROM r, s WHERE CAST(r.x AS DOUBLE PRECISION) > s.f"), "r.x and s.f");
  EXPECT_EQ(Order("count(*) FROM r, s WHERE CAST(r.a AS BIGINT) > s.b"), "r.a and s.b");
  EXPECT_EQ(Loop("count(*) FROM r, s WHERE CAST(r.w AS DOUBLE PRECISION) > s.f"), "Load c0, FilterGtF t0.0");
}

}  // namespace
}  // namespace tessera
