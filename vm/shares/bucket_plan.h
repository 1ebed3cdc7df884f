// Where the rows of an exchanged join go: keys are cut into buckets, and each bucket has a rank, or is spread over all.
// Ranks make the same plan of the same counts. Private to the interpreters (vm/ and kernels/).
//
//  - Most buckets go to one rank, adjacent ones to the same, so that all ranks get about as many rows.
//  - Of a bucket with very many rows that probe, a heavy key in most cases, these are spread over the ranks, and its rows
//    of the join table go to all of them.
//  - Of one with very many rows of the join table these are spread, if the join is an inner one, and its rows that probe
//    go to all ranks. (Other joins ask whether a row has any match, on whatever rank.)
//
// Start at: PlanBuckets. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::vm {

inline constexpr uint32_t kBuckets = 1024;
/// Rows by bucket.
using BucketRows = std::vector<uint32_t>;

/// What stands in the place of a rank: the rows stay where they are; they are dealt out to the ranks; each goes to all
/// ranks.
inline constexpr uint16_t kStay = 0xFFFD, kDeal = 0xFFFE, kToAll = 0xFFFF;

struct BucketPlan {
  std::vector<uint16_t> build, probe;  ///< by bucket: a rank, or one of the above
  uint64_t spread = 0;                 ///< buckets of which one side is spread
};

/// `build`, `probe`: by rank. `spread_build`: it is an inner join.
BucketPlan PlanBuckets(const std::vector<BucketRows>& build, const std::vector<BucketRows>& probe, bool spread_build);

/// How many rows rank `rank` gets, and how many it sends to others, at most.
struct Moved {
  uint64_t received = 0, sent = 0;
};
Moved RowsMoved(const std::vector<uint16_t>& targets, const std::vector<BucketRows>& rows, size_t rank);

}  // namespace tessera::vm
