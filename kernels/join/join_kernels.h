// Making join tables from their rows: how the host starts the kernels. Private to kernels/.
//
// Start at: StartSummarize, StartBuildTables.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/launch/launch.h"
#include "kernels/rows/column_summary.h"

namespace tessera::kernels {

inline constexpr uint32_t kMaxPackedPayload = 8;

/// Rows as Emit leaves them: low[column][capacity], null likewise. `control` has the counters of the launch that makes
/// them; it may not have run yet. nullptr: there are `rows` rows. The kernel adds to summaries[0 .. columns).
struct RowsToSummarize {
  const int64_t* low = nullptr;
  const uint8_t* null = nullptr;
  uint64_t capacity = 0;
  const Control* control = nullptr;
  uint64_t rows = 0;
  ColumnSummary* summaries = nullptr;
  uint32_t columns = 0;
};
cudaError_t StartSummarize(const RowsToSummarize* tables, size_t count, cudaStream_t stream);

/// How a table is made from its rows. JoinRecord says what `probe`, `width` and the rest mean.
struct JoinBuild {
  uint32_t rows = 0;
  uint32_t keys = 0;
  const int64_t* row_columns = nullptr;  ///< keys first, as in JoinRecord
  uint64_t row_capacity = 0;
  uint32_t hashed = 0, columns = 0;
  uint32_t wide_keys = 0;        ///< hashed: a bit for each key of 128 bits
  uint32_t* collided = nullptr;  ///< hashed: becomes 1 if different keys have the same number
  int64_t low[kMaxJoinKeys] = {};
  uint64_t stride[kMaxJoinKeys] = {};
  ProbeKind probe = ProbeKind::kBits;
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
/// Tables are small and many: one launch makes several.
cudaError_t StartBuildTables(const JoinBuild* builds, size_t count, cudaStream_t stream);

}  // namespace tessera::kernels
