// Kernels that bring rows to the ranks of their keys: how the host starts them. Private to kernels/.
//
// Start at: KeyBuckets, StartCountBuckets.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/join/join_kernels.h"
#include "kernels/rows/device_rows.h"
#include "tablet/values/types.h"
#include "vm/shares/bucket_plan.h"

namespace tessera::kernels {

using vm::BucketPlan;
using vm::BucketRows;
using vm::kBuckets;

/// Keys of a join that is exchanged.
inline constexpr uint32_t kMaxExchangeKeys = 16;

/// How keys are cut into buckets, on both sides and all ranks alike: by their hash; or, if they are one integer and lie
/// densely, by its upper bits, so that a table that is addressed directly has room for one rank's keys only.
struct KeyBuckets {
  bool by_range = false;
  int64_t low = 0;
  uint32_t shift = 0;
};
/// `key`: of the first key, over all rows of the join table, this many. `is_integer`: it is the only one, of 64 bits or
/// less on both sides.
KeyBuckets ChooseBuckets(const ColumnSummary& key, uint64_t rows, bool is_integer);

/// The keys of rows, which are their first columns.
struct RowKeys {
  const uint64_t* low[kMaxExchangeKeys] = {};
  const uint64_t* high[kMaxExchangeKeys] = {};  ///< nullptr: of 64 bits
  const uint8_t* null[kMaxExchangeKeys] = {};
  uint32_t count = 0;
};
/// REQUIRES: keys <= kMaxExchangeKeys.
RowKeys KeysOf(const DeviceRows& rows, const std::vector<SqlType>& columns, size_t keys);

/// Adds the rows to the counts of their buckets, which are cleared before.
cudaError_t StartCountBuckets(const RowKeys& keys, const KeyBuckets& by, uint32_t rows, uint32_t* counts,
                              cudaStream_t stream);

/// Where rows of each bucket go: `targets` has kBuckets of BucketPlan, on the device. Parts are ranks; the last one, of
/// number `ranks`, goes to all.
struct RowTargets {
  const uint16_t* targets = nullptr;
  uint32_t ranks = 0, own = 0;
};
/// Adds to counts[p] how many rows belong to part p. `counts` is cleared before.
cudaError_t StartCountRows(const RowKeys& keys, const KeyBuckets& by, const RowTargets& to, uint32_t rows,
                           uint32_t* counts, cudaStream_t stream);
/// Lists the rows, those of one part together. `places`: where the next row of each part goes, changed on the way.
cudaError_t StartListRows(const RowKeys& keys, const KeyBuckets& by, const RowTargets& to, uint32_t rows,
                          uint32_t* places, uint32_t* list, cudaStream_t stream);

}  // namespace tessera::kernels
