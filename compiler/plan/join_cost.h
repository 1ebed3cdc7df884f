// What joins cost, in the time that a scan takes for a row: a row of a join table, and a join by each strategy. Private to
// compiler/.
//
// Measured on the host with star and TPC-H queries. On a GPU all of them are smaller, and about in the same proportion.
//
// Start at: CostOfTable, CostOf. Pure functions; any thread.
#pragma once

#include <limits>

#include "compiler/plan/plan_options.h"
#include "vm/program/join_strategy.h"

namespace tessera {

struct TableCost {
  double rows;  ///< join tables of up to this number of rows
  double probe, build;
};

inline constexpr TableCost kTableCosts[] = {
    {1 << 12, 1, 4},   // L1 and L2
    {1 << 17, 2, 6},   // L3
    {1 << 21, 4, 12},  // beyond
    {std::numeric_limits<double>::infinity(), 8, 20},
};

/// A table of keys alone, which most often are numbers, is a set of bits. It costs this part of a table with rows.
inline constexpr double kBitsCost = 0.5;

/// To make a row's identifier of a text: of one that many rows have it is found once for a tablet; one that few have is looked
/// for among all, which costs more for each of its bytes.
inline constexpr double kTextCost = 2, kRareTextCost = 15, kTextByteCost = 1.5;

/// For a join table of that number of rows.
inline const TableCost& CostOfTable(double rows) {
  const TableCost* c = kTableCosts;
  while (rows > c->rows) ++c;
  return *c;
}

/// The sides of a join, as far as its cost depends on them.
struct JoinSides {
  double probing = 0;        ///< rows that look for matches
  double side = 0;           ///< rows of the join table
  double made = 0;           ///< rows that leave the join
  double cost = 0;           ///< of both sides together
  double texts = 0;          ///< to make the texts of a row of the table
  bool is_joined = false;    ///< the rows of the table come from joins
  bool tests_pairs = false;  ///< there are conditions, but no keys
  /// How many rows of the table have the same key, and how many pairs have equal keys. 0: nothing is known, or the join
  /// needs its keys: those of others in the block follow from them, or there is at most one match. Only strategies by
  /// key can run it then.
  double matches = 0, meeting = 0;
};

/// The cost of a strategy that cannot run a join.
inline constexpr double kCannot = std::numeric_limits<double>::infinity();

/// Of a join by the strategy, with what its sides cost.
double CostOf(vm::JoinStrategy strategy, const JoinSides& sides, const PlanOptions& options);
/// The least one of those that `options` allow, and whose it is.
double CostOfCheapest(const JoinSides& sides, const PlanOptions& options, vm::JoinStrategy* strategy);

}  // namespace tessera
