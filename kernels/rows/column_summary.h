// What is known of a column of rows on the device. Private to kernels/.
//
// Start at: ColumnSummary. Plain data.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// How many columns of rows, the first ones, are summarised.
inline constexpr uint32_t kMaxSummaries = 16;

/// What a column of rows holds. NULLs give no value.
struct ColumnSummary {
  int64_t low = INT64_MAX, high = INT64_MIN;
  unsigned long long nulls = 0;
};

}  // namespace tessera::kernels
