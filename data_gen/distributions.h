// The six columns of the papers on virtual machines for SQL on GPUs: three distributions, each as 32-bit integers and
// as 32-bit floats. uniform_gen has them in one table, join_gen in both of its tables.
//
// Start at: PutDistributions().
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "data_gen/random.h"
#include "data_gen/row_buffer.h"

namespace tessera {

inline constexpr char kDistributionColumns[] = "uniformi,normali5,normali20,uniformf,normalf5,normalf20";
/// Six values, the longest (a float) of 15 characters, and their separators.
inline constexpr size_t kLongestDistributions = 96;

/// Two independent normal numbers, mean 0, standard deviation 1 (Box and Muller, 1958). At most 8.6 in size.
inline std::pair<double, double> Normals(RandomRow& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Unit()));  // 1 - Unit() is never 0
  const double angle = 2 * std::numbers::pi * random.Unit();
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// The values of one row: uniform in [-100, 100], normal with standard deviation 5 and 20, first rounded to integers,
/// then as floats, all independent. `end` follows the last one. Draws six numbers.
inline void PutDistributions(RandomRow& random, char end, RowBuffer& rows) {
  const auto [integer5, float5] = Normals(random);
  const auto [integer20, float20] = Normals(random);
  rows.Put(random.Between(-100, 100), ',');
  rows.Put(std::lround(5 * integer5), ',');
  rows.Put(std::lround(20 * integer20), ',');
  rows.Put(static_cast<float>(200 * random.Unit() - 100), ',');
  rows.Put(static_cast<float>(5 * float5), ',');
  rows.Put(static_cast<float>(20 * float20), end);
}

}  // namespace tessera
