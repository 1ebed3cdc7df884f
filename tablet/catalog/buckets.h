// Buckets of a table WITH (distribute_by = ...): rows with equal values in these columns are in one bucket, and so are
// equal values of two tables. A tablet has rows of one bucket, so that a rank that has all tablets of some buckets has all
// rows with their values. FORMAT.md gives the hash.
//
// Start at: BucketsOf. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tablet/values/row_batch.h"

namespace tessera {

/// Of every distributed table, so that buckets of two tables meet. 64 give up to 64 ranks a share, four of them equal
/// ones, and seven ranks 9 or 10 each.
inline constexpr int kBuckets = 64;

/// The bucket of each row: equal for values that a join takes for equal without converting them, and for NULL and NULL.
/// `columns`: their numbers, at least one; none of a floating-point type or INTERVAL.
std::vector<uint8_t> BucketsOf(const RowBatch& batch, const std::vector<int>& columns);

}  // namespace tessera
