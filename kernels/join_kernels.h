// Making join tables from their rows: how the host starts the kernels. Private to kernels/.
//
// Start at: StartSummarize, StartBuildTable.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/machine.h"

namespace tessera::kernels {

/// The first so many columns of a join table are looked through before it is laid out.
inline constexpr uint32_t kMaxSummaries = 16;
inline constexpr uint32_t kMaxPackedPayload = 8;

/// What a column of rows holds. NULLs give no value.
struct ColumnSummary {
  int64_t low = INT64_MAX, high = INT64_MIN;
  unsigned long long nulls = 0;
};

/// Rows as Emit leaves them: low[column][capacity], null likewise. `count` and `valid` are the counters of the launch
/// that made them, which may not have run yet. Adds to summaries[0 .. columns).
cudaError_t StartSummarize(const int64_t* low, const uint8_t* null, uint64_t capacity, const Control* control,
                           ColumnSummary* summaries, uint32_t columns, cudaStream_t stream);

/// How a table is made from its rows. JoinRecord says what `lookup`, `width` and the rest mean.
struct JoinBuild {
  uint32_t rows = 0;
  uint32_t keys = 0;
  const int64_t* key[kMaxJoinKeys] = {};
  int64_t low[kMaxJoinKeys] = {};
  uint64_t stride[kMaxJoinKeys] = {};
  JoinLookup lookup = JoinLookup::kBits;
  uint8_t width = 0;
  bool packed = false;  ///< the value is the sum of (payload - base) << shift; else 1 + the row's number
  uint32_t payload = 0;
  const int64_t* column[kMaxPackedPayload] = {};
  const uint8_t* null[kMaxPackedPayload] = {};  ///< nullptr: none is NULL
  int64_t base[kMaxPackedPayload] = {};
  uint32_t shift[kMaxPackedPayload] = {};
  uint32_t null_field[kMaxPackedPayload] = {};
  uint32_t* bits = nullptr;  ///< cleared, as `values`; nullptr: the table has none
  void* values = nullptr;
  uint32_t* next = nullptr;  ///< nullptr: keys are unique
  uint32_t slot_shift = 0, slot_mask = 0;
};
cudaError_t StartBuildTable(const JoinBuild& build, cudaStream_t stream);

}  // namespace tessera::kernels
