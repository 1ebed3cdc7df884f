// What joins cost by each strategy, and which strategy an order of joins takes.

#include "compiler/plan/join_cost.h"

#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "compiler/compiler.h"
#include "compiler/plan/plan_options.h"
#include "tests/compiler/bind_fixture.h"
#include "vm/program/join_strategy.h"

namespace tessera {
namespace {

using vm::JoinStrategy;

/// Two tables joined by a key of which the smaller has this many rows each.
JoinSides Sides(double probing, double side, double matches) {
  JoinSides s{.probing = probing, .side = side};
  s.matches = matches;
  s.made = s.meeting = probing * matches;
  return s;
}

JoinStrategy Cheapest(const JoinSides& sides, const PlanOptions& options = {}) {
  JoinStrategy strategy;
  EXPECT_LT(CostOfCheapest(sides, options, &strategy), kCannot);
  return strategy;
}

TEST(JoinCost, OfMoreRowsIsMore) {
  for (size_t i = 0; i < std::size(vm::kJoinStrategies); ++i) {
    const auto s = static_cast<JoinStrategy>(i);
    PlanOptions options;
    options.on_device = true;
    const double cost = CostOf(s, Sides(1e5, 1e4, 100), options);
    EXPECT_LT(cost, kCannot) << vm::Info(s).word;
    EXPECT_LT(cost, CostOf(s, Sides(2e5, 1e4, 100), options)) << vm::Info(s).word;
    EXPECT_LT(cost, CostOf(s, Sides(1e5, 2e4, 100), options)) << vm::Info(s).word;
  }
}

TEST(JoinCost, OnlyKeysWhereTheyAreNeeded) {
  for (size_t i = 0; i < std::size(vm::kJoinStrategies); ++i) {
    const auto s = static_cast<JoinStrategy>(i);
    JoinSides sides{.probing = 1e6, .side = 1e5};
    sides.made = 1e6;
    PlanOptions options;
    options.on_device = true;
    EXPECT_EQ(CostOf(s, sides, options) < kCannot, vm::Info(s).by_key) << vm::Info(s).word;
  }
}

TEST(JoinCost, AGridWithManyMatches) {
  PlanOptions options;
  options.grid_from_matches = 1000;
  EXPECT_EQ(Cheapest(Sides(1e6, 1e5, 999), options), JoinStrategy::kHash);
  EXPECT_EQ(Cheapest(Sides(1e6, 1e5, 1000), options), JoinStrategy::kGrid);
  EXPECT_EQ(Cheapest(Sides(999, 999, 1000), options), JoinStrategy::kHash);    // soon found
  EXPECT_EQ(Cheapest(Sides(1e5, 1e6, 1000), options), JoinStrategy::kHash);    // the larger side does not drive
  EXPECT_EQ(Cheapest(Sides(1.7e7, 1e5, 1000), options), JoinStrategy::kHash);  // costly to sort
  JoinSides of_joins = Sides(1e6, 1e5, 1000);
  of_joins.matches = of_joins.meeting = 0;
  EXPECT_EQ(Cheapest(of_joins, options), JoinStrategy::kHash);
  options.grid_pruning = false;
  EXPECT_EQ(Cheapest(Sides(1e6, 1e5, 1000), options), JoinStrategy::kHash);
  options.grid_pruning = true;
  options.on_device = true;
  EXPECT_EQ(Cheapest(Sides(1e6, 1e5, 1000), options), JoinStrategy::kGrid);
  options.join = JoinChoice::kHash;  // it was asked for
  EXPECT_EQ(Cheapest(Sides(1e6, 1e5, 1000), options), JoinStrategy::kHash);
}

TEST(JoinCost, ALoopNeverPays) {
  for (const double probing : {0.0, 0.01, 1.0, 3.0, 1e3, 1e6}) {
    for (const double side : {0.0, 0.01, 1.0, 3.0, 1e3, 4096.0, 1e5, 1e6}) {
      if (side > probing) continue;  // that side would not be built
      const JoinSides sides = Sides(probing, side, 2);
      EXPECT_LT(CostOf(JoinStrategy::kHash, sides, {}), CostOf(JoinStrategy::kLoop, sides, {}))
          << probing << " " << side;
    }
  }
}

TEST(JoinCost, ChoicesAreTheStrategies) {
  EXPECT_STREQ(kJoinChoices, "auto, hash, dp, grid, loop");
  EXPECT_EQ(StrategyOf(JoinChoice::kAuto), std::nullopt);
  EXPECT_EQ(AskedFor(JoinChoice::kAuto), nullptr);
  for (size_t i = 0; i < std::size(vm::kJoinStrategies); ++i) {
    const auto s = static_cast<JoinStrategy>(i);
    EXPECT_EQ(StrategyOf(ChoiceOf(s)), s);
    EXPECT_EQ(AskedFor(ChoiceOf(s)), &vm::Info(s));
    EXPECT_TRUE(vm::IsKnown(s));
  }
  EXPECT_FALSE(vm::IsKnown(static_cast<JoinStrategy>(std::size(vm::kJoinStrategies))));
  EXPECT_EQ(ChoiceOf(JoinStrategy::kGrid), JoinChoice::kGrid);
  EXPECT_EQ(ChoiceOf(JoinStrategy::kLoop), JoinChoice::kLoop);
}

class JoinOrder : public BindTest {
 protected:
  JoinOrder() {
    AddTable("CREATE TABLE f (k INTEGER, x INTEGER)");
    AddTable("CREATE TABLE d (k INTEGER, x INTEGER)");
    for (auto& table : snapshot_.tables) {
      auto larger = std::make_shared<TableInfo>(*table);
      larger->rows = table->schema.name == "f" ? 1000000 : 200000;
      for (ColumnStatistics& s : larger->statistics) s.distinct = 100;
      table = std::move(larger);
    }
  }
  /// Of the first join table.
  std::string Strategy(const std::string& sql, const PlanOptions& options = {}) {
    const Result<Compiled> compiled = Compile(sql, snapshot_, options);
    if (!compiled.ok()) return compiled.status().message();
    return vm::Info(compiled->program->joins[0].strategy).word;
  }
};

TEST_F(JoinOrder, TakesTheCheapestStrategy) {
  const std::string many = "SELECT count(*) FROM f JOIN d ON f.k = d.k";
  EXPECT_EQ(Strategy(many), "grid");
  PlanOptions options;
  options.grid_from_matches = 2001;  // a key of d has 2,000 rows
  EXPECT_EQ(Strategy(many, options), "hash");
  options.grid_from_matches = 2000;
  EXPECT_EQ(Strategy(many, options), "grid");
  // Other joins follow from the keys.
  EXPECT_EQ(Strategy("SELECT count(*) FROM f JOIN d ON f.k = d.k JOIN d e ON e.k = d.k"), "hash");
  EXPECT_EQ(Strategy("SELECT count(*) FROM f WHERE k IN (SELECT k FROM d)"), "hash");
}

}  // namespace
}  // namespace tessera
