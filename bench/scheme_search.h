// The tree of schemes that packs a stream into the fewest bytes, found by trying all of them: what the planner
// (tablet/schemes/scheme_planner.h) is measured against. The streams that a scheme makes are packed independently of one
// another, so the best tree of a depth is the best scheme with the best trees below it, and all trees need not be packed.
//
// Start at: SearchTrees. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tablet/schemes/bit_packing.h"
#include "tablet/schemes/packed_stream.h"

namespace tessera::bench {

struct FoundTree {
  SchemeTree tree;
  uint64_t bytes = 0;  ///< of the nodes and payloads
};

namespace search {

inline constexpr size_t kMostBitmaps = 64;

/// Sorts a copy: exact, where the planner estimates.
inline Values DifferentOf(std::span<const uint64_t> values) {
  Values different(values.begin(), values.end());
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  return different;
}

inline Values NumbersOf(std::span<const uint64_t> values, const Values& different) {
  Values numbers(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    numbers[i] =
        static_cast<uint64_t>(std::lower_bound(different.begin(), different.end(), values[i]) - different.begin());
  }
  return numbers;
}

/// What SEP may divide by: what all values less the least one are multiples of, powers of ten, powers of two.
inline Values DivisorsOf(std::span<const uint64_t> values, uint64_t least, uint64_t greatest) {
  uint64_t common = 0;
  for (size_t i = 0; i < values.size() && common != 1; ++i) common = std::gcd(common, values[i] - least);
  Values divisors;
  if (common > 1) divisors.push_back(common);
  for (uint64_t power = 10; power <= greatest / 2 && power <= 1000000; power *= 10) divisors.push_back(power);
  for (int bit = 1; bit < BitsOf(greatest); ++bit) divisors.push_back(uint64_t{1} << bit);
  std::sort(divisors.begin(), divisors.end());
  divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
  return divisors;
}

inline FoundTree BestLeaf(std::span<const uint64_t> values) {
  uint64_t all = 0, bytes_of_values = 0;
  for (const uint64_t value : values) {
    all |= value;
    bytes_of_values += static_cast<uint64_t>(std::max(1, (BitsOf(value) + 7) / 8));
  }
  const uint64_t ns = 8 * PackedWords(values.size(), BitsOf(all));
  const uint64_t nsv = 8 * (PackedWords(values.size(), 2) + (bytes_of_values + 7) / 8);
  const bool varies = all <= UINT32_MAX && nsv < ns;
  return {SchemeTree::Leaf(varies ? Scheme::kNsv : Scheme::kNs), sizeof(PackedNode) + (varies ? nsv : ns)};
}

}  // namespace search

/// The best tree of at most `depth` schemes from root to leaf. REQUIRES: there are values.
inline FoundTree SearchTrees(std::span<const uint64_t> values, int depth) {
  FoundTree best = search::BestLeaf(values);
  if (depth <= 1 || values.empty()) return best;
  const auto consider = [&](Scheme scheme, uint64_t parameter, uint64_t payload,
                            std::initializer_list<const Values*> streams) {
    FoundTree found{{scheme, parameter, {}}, sizeof(PackedNode) + payload};
    for (const Values* stream : streams) {
      FoundTree child = SearchTrees(*stream, depth - 1);
      found.bytes += child.bytes;
      if (found.bytes >= best.bytes) return;
      found.tree.children.push_back(std::move(child.tree));
    }
    best = std::move(found);
  };
  uint64_t greatest = 0;
  int64_t least = INT64_MAX;
  for (const uint64_t value : values) {
    greatest = std::max(greatest, value);
    least = std::min(least, static_cast<int64_t>(value));
  }
  if (least != 0) {
    const Values less = LessBase(values, static_cast<uint64_t>(least));
    consider(Scheme::kFor, 0, 0, {&less});
  }
  const Values deltas = DeltasOf(values);
  consider(Scheme::kDelta, 0, 0, {&deltas});
  Values first, second;
  SplitRuns(values, &first, &second);
  if (first.size() < values.size()) consider(Scheme::kRle, 0, 0, {&first, &second});
  const Values different = search::DifferentOf(values);
  if (different.size() < values.size()) {
    const Values numbers = search::NumbersOf(values, different);
    consider(Scheme::kDict, 0, 0, {&different, &numbers});
  }
  if (different.size() <= search::kMostBitmaps) {
    consider(Scheme::kBitmap, 0, 8 * PackedWords(values.size(), 1) * different.size(), {&different});
  }
  for (const uint64_t divisor : search::DivisorsOf(values, static_cast<uint64_t>(least), greatest)) {
    Separate(values, divisor, &first, &second);
    consider(Scheme::kSep, divisor, 0, {&first, &second});
  }
  return best;
}

}  // namespace tessera::bench
