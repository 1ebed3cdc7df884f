// What one row of a join costs, in the time that a scan takes for a row. Private to compiler/.
//
// Measured on the host with star and TPC-H queries. On a GPU all of them are smaller, and about in the same proportion.
//
// Start at: CostOfTable.
#pragma once

#include <limits>

namespace tessera {

struct TableCost {
  double rows;  ///< join tables of up to so many rows
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

/// For a join table of so many rows.
inline const TableCost& CostOfTable(double rows) {
  const TableCost* c = kTableCosts;
  while (rows > c->rows) ++c;
  return *c;
}

}  // namespace tessera
