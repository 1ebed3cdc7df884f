// A function for each row of vm/program/join_strategies.def.
#include "compiler/plan/join_cost.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace tessera {
namespace {

/// To go on with a row after it was found, to test a condition on a candidate.
constexpr double kMatchCost = 1, kTestCost = 1;
/// To store the rows of joins, whose columns come from several tables, compared with those of a table; and to end one
/// pipeline and begin another.
constexpr double kJoinedCost = 2, kPipelineCost = 20000;
/// Pairs fewer than these are found soon in any way; and with more rows than these a grid's sides are costly to sort.
constexpr double kLeastMatches = 1e6, kMostGridRows = 1 << 24;

/// To make the table, and to look each row up in it. (Sums are made in one order, so that costs that are equal are so to the
/// last bit, and the first of several orders of joins stays the one that is taken.)
double CostOfLooks(const JoinSides& sides) {
  const TableCost& c = CostOfTable(sides.side);
  double build = c.build * sides.side;
  if (sides.is_joined) build = kJoinedCost * build + kPipelineCost;
  build += std::round(sides.texts * sides.side);  // (a whole number, so that equal sums stay equal in any order)
  return sides.cost + build + (sides.tests_pairs ? kTestCost * sides.side : c.probe) * sides.probing;
}

double CostOfHash(const JoinSides& sides, const PlanOptions&) { return CostOfLooks(sides) + kMatchCost * sides.made; }

/// To sort both sides costs what a table of one of them does. Then equal keys are side by side: a range of that many rows is
/// compared in the time in which a chain of PlanOptions::grid_from_matches is followed. The larger side drives.
double CostOfGrid(const JoinSides& sides, const PlanOptions& options) {
  const bool worth = options.grid_pruning && sides.side <= sides.probing && sides.meeting >= kLeastMatches &&
                     sides.side + sides.probing <= kMostGridRows;
  if (!worth) return kCannot;
  return CostOfLooks(sides) + kMatchCost * sides.made * (options.grid_from_matches / sides.matches);
}

/// As a grid; the GPU takes some launches more to find the units than the host to list them.
double CostOfDp(const JoinSides& sides, const PlanOptions& options) {
  return options.on_device ? CostOfGrid(sides, options) + kPipelineCost : kCannot;
}

/// Row by row of the table.
double CostOfLoop(const JoinSides& sides, const PlanOptions&) {
  const double pairs = std::max(sides.probing, 1.0) * std::max(sides.side, 1.0);
  return sides.cost + kPipelineCost + kTestCost * pairs + kMatchCost * sides.made;
}

constexpr double (*kCosts[])(const JoinSides&, const PlanOptions&) = {
#define JOIN_STRATEGY(Name, ...) CostOf##Name,
#include "vm/program/join_strategies.def"
};

}  // namespace

double CostOf(vm::JoinStrategy strategy, const JoinSides& sides, const PlanOptions& options) {
  if (!vm::Info(strategy).by_key && sides.matches <= 0) return kCannot;
  return kCosts[static_cast<size_t>(strategy)](sides, options);
}

double CostOfCheapest(const JoinSides& sides, const PlanOptions& options, vm::JoinStrategy* strategy) {
  double least = kCannot;
  *strategy = {};
  for (size_t i = 0; i < std::size(vm::kJoinStrategies); ++i) {
    const auto s = static_cast<vm::JoinStrategy>(i);
    if (options.join != JoinChoice::kAuto && options.join != ChoiceOf(s)) continue;
    // (Of two that cost the same, the later one needs no table of keys.)
    const double cost = CostOf(s, sides, options);
    if (cost == kCannot || cost > least) continue;
    least = cost;
    *strategy = s;
  }
  return least;
}

}  // namespace tessera
