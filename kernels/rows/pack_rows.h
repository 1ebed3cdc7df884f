// Rows packed as columns of stored tablets are, to be kept or to go to another device: each column less its least value,
// in 1, 2, 4 or 8 bytes, and a NULL as the code after the greatest one. Private to kernels/.
//
// Start at: PackedRows, StartPack.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/rows/column_summary.h"
#include "kernels/rows/device_rows.h"
#include "tablet/values/types.h"

namespace tessera::kernels {

/// A column of 64 bits of rows, and where its codes are.
struct PackedColumn {
  uint64_t base = 0;       ///< value = base + code
  uint64_t null_code = 0;  ///< of NULL, if has_null_code
  uint64_t at = 0;         ///< offset of the codes
  uint64_t null_at = 0;    ///< offset of its NULL bytes, if has_null_bytes
  uint32_t column = 0;     ///< of DeviceRows::low
  uint8_t width = 0;       ///< bytes of a code; 0: all rows have code 0
  bool has_null_code = false, has_null_bytes = false;
  bool is_high = false;  ///< upper halves: it has no NULLs of its own
};

/// How the rows of a rank lie once they are packed: the same for all who know their number and `summaries`, which are of
/// the first kMaxSummaries columns.
class PackedRows {
 public:
  PackedRows() = default;
  PackedRows(const std::vector<SqlType>& columns, std::span<const ColumnSummary> summaries, uint64_t rows);
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return bytes_; }
  const std::vector<PackedColumn>& columns() const { return columns_; }
  /// A column of the rows; the upper halves of a wide one are the next of columns().
  const PackedColumn& column(size_t number) const { return columns_[places_[number]]; }

 private:
  /// A place after those that are taken.
  uint64_t Take(uint64_t width);

  std::vector<PackedColumn> columns_;
  std::vector<size_t> places_;  ///< in columns_, of each column that is not of upper halves
  uint64_t rows_ = 0, bytes_ = 0;
};

/// Packs the first packed.rows() rows to `to`, or unpacks them from `from` to the rows from `first` on. Addresses are
/// multiples of 16. Kernels may read codes after the last row, up to a multiple of kPaddedRows: they are 0.
inline constexpr uint64_t kPaddedRows = 16;
cudaError_t StartPack(const PackedRows& packed, const RowColumns& rows, void* to, cudaStream_t stream);
/// Some rows become the packed ones from `first` on: row list[i] the i-th of them. Zeros follow the last of all.
struct RowsToPack {
  const uint32_t* list = nullptr;
  uint64_t rows = 0, first = 0;
};
cudaError_t StartPackSome(const PackedRows& packed, const RowColumns& rows, const RowsToPack& some, void* to,
                          cudaStream_t stream);
cudaError_t StartUnpack(const PackedRows& packed, const void* from, const RowColumns& rows, uint64_t first,
                        cudaStream_t stream);

}  // namespace tessera::kernels
