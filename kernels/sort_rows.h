// Sorting the rows of a join table by one of its columns: how the host starts it. Private to kernels/.
//
// Start at: SortScratchBytes, StartSort, StartGather.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::kernels {

/// The column that rows are sorted by: ascending, NULL last; of doubles -0.0 equals 0.0 and NaN is greater than every
/// number. Rows that compare equal keep their order.
struct SortColumn {
  const int64_t* values = nullptr;
  const uint8_t* null = nullptr;
  bool is_float = false;
  int64_t low = 0, high = 0;  ///< of integers that are not NULL: fewer bits take fewer passes
  uint32_t rows = 0;
};

/// Bytes of device memory that StartSort needs besides the order.
cudaError_t SortScratchBytes(const SortColumn& column, size_t* bytes);
/// order[i] becomes the number of the row that comes i-th.
cudaError_t StartSort(const SortColumn& column, uint32_t* order, void* scratch, size_t scratch_bytes,
                      cudaStream_t stream);

/// Columns of 64 bits and of NULL bytes, each with room for `capacity` rows, one behind the other.
struct RowColumns {
  uint64_t* low = nullptr;
  uint8_t* null = nullptr;
  uint64_t capacity = 0;
};
/// Row i of `to` becomes row order[i] of `from`, in `columns` columns and `null_columns` columns of NULL bytes.
cudaError_t StartGather(const RowColumns& from, const RowColumns& to, uint32_t columns, uint32_t null_columns,
                        const uint32_t* order, uint32_t rows, cudaStream_t stream);

}  // namespace tessera::kernels
