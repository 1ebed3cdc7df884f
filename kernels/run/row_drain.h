// Brings rows from the device to the host, piece by piece: the next one travels while threads of the host move the last
// one on. Private to kernels/.
//
// Start at: RowDrain::Run. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "kernels/launch/sinks.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/rows/sort_rows.h"
#include "tablet/values/types.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// How rows lie on the device, see DeviceRows.
struct RowShape {
  uint64_t columns = 0, wide = 0;  ///< all columns; those that are wide
  uint64_t bytes = 1;              ///< of a row, at least 1
};
RowShape ShapeOf(const std::vector<SqlType>& types);

/// Room for more values. reserve gives no more than it is asked for, so doubling is up to us.
template <class T>
void ReserveMore(uint64_t n, std::vector<T>* values) {
  if (values->capacity() < values->size() + n)
    values->reserve(std::max<uint64_t>(values->size() + n, 2 * values->capacity()));
}

/// Takes a piece of that many rows, which is valid until it returns.
using TakeRows = std::function<Status(const RowColumns&, uint64_t)>;

class RowDrain {
 public:
  RowDrain(GpuDevice* gpu, const vm::SectionContext& context) : gpu_(*gpu), context_(context) {}
  RowDrain(const RowDrain&) = delete;
  RowDrain& operator=(const RowDrain&) = delete;

  /// Rows order[0 .. rows) of the output (without order: its first rows).
  Status Run(const Output& from, const RowShape& shape, const uint32_t* order, uint64_t rows, const TakeRows& take);
  /// Adds a piece to the end of `to`, by several threads if it is large.
  void Append(const RowColumns& from, const RowShape& shape, uint64_t rows, vm::RowSet* to) const;
  /// How many rows have left the device.
  uint64_t rows() const { return rows_; }

 private:
  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  RunBuffer packed_;  ///< a piece on its way
  uint64_t rows_ = 0;
};

}  // namespace tessera::kernels
